"""Counting: the paper's own placement, an entry per value per attribute, and a match when an id is met often enough.

RANGE 3, kept beside the anchored placement as `placement = "counting"` so that both can be compared. A subscription is
a constraint on each of a few attributes: one value, several (IN), or a span. Its *subID* has three parts:

    c1  the broker that the subscriber is connected to       c2  its number there       c3  how many attributes

Storing (3.1.1): for each attribute, at the key of each value that satisfies it, the subID goes on that attribute's
list. Matching (3.2): the event asks, for each of its attributes, the broker of its value for the list; a subID that is
on as many lists as its c3 says matches. No broker compares values: the lists *are* the comparison.

    subscription 1 of Figure 2     Exchange = NYSE, Symbol = OTE, 8.30 < Price < 8.70     c3 = 3, and 1 + 1 + 39 entries
    the event of Figure 1          NYSE -> {1}   OTE -> {1, 2}   8.40 -> {1}   8.22 -> {2}
    met                            1 three times: a match; 2 twice, and its c3 is 3: none

Three things the paper leaves open, and what is done here:

* It keeps one list *per attribute and broker*. Two values on one broker would then be one value, and events would
  match that should not. Here a list belongs to an attribute and a key.
* Two constraints on one attribute are first made one by the caller, a span or several, and count once.
* Ranges are stored by cells, and a value between two multiples of the precision is in the nearer one's cell. So the
  cells of a span include those of its open ends, and a match by counting is a *candidate*, which the broker c1, who
  keeps the condition, evaluates. With `on_grid`, where every value is a multiple, the paper's count is exact.

Updating (3.1.2) touches only the difference of old and new entries, also when the two ranges do not meet, where the
paper's recipe would first fill the gap between them. An update that changes c3 changes the id, hence every entry.

How the Node uses it, stream by stream (`placement` in the schema). `counting_plan.py` makes dimensions and keys of what
a condition needs; a stretch of cells is stored as one item, which the keyed store walks along the arc (Figure 7), and
`counting_lists.py` makes the lists of it. The broker that accepted an event asks for them, counts (`met`), and sends
what it found to the homes (`forwarding/counted.py`), where the whole condition decides (`counting_home.py`). The
paper's scheme written out, an entry a value, is `ops/bench/papers/models/counting.py`: what the Node does is tested
against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

__all__ = ["SubscriptionId", "met"]


class SubscriptionId(NamedTuple):
    """A subID: the broker it belongs to (c1), its number there (c2), how many attributes it speaks of (c3).

    `life` says which life of the broker: numbers begin anew in each, and what belongs to a former one is void.
    """

    broker: int
    number: int
    attributes: int
    life: int = 0


def met(lists: Iterable[Iterable[SubscriptionId]]) -> list[SubscriptionId]:
    """The matching of RANGE 3.2 (Figure 5): the subIDs that are on as many of these lists as they have attributes."""
    times = Counter(chain.from_iterable(lists))
    return [identity for identity, count in times.items() if count == identity.attributes]
