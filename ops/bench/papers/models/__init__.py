"""The papers' models: what the papers describe and no broker does, or does otherwise, over plain tables in memory.

`fingers` has the far links of STATE 4.1 and of Chord (`FingerPlan`: `ONE_WAY_BASE_2`, `BOTH_WAYS_BASE_2` and
`BOTH_WAYS_BASE_4`), the tables that come of them (`ideal_table`) and the way of a message (`travel`, `Hops`).
`multicast` has one message to many brokers (STATE 4.2), to a set (`split_set`, `spread_set`) or to a segment
(`spread_segment`). `counting` has the scheme of RANGE 3 (`CountingScheme`, `counting_scheme`, `constraints_of`), its
store (`CountingStore`) and the collection of its lists (`Collection`), made of `Constraint`, `Entry` and `Placement`.

`segments` has dynamic filters on a segment (STATE 4.3) in messages and hops (`Cost`): an `Item` by itself at one owner
(`Local`), on a segment (`Sf`), in levels (`Mfd`), or sent to all homes (`Home`), over the ways of an `Overlay`; keys by
`key_of`.

They use the broker's own routing tables, keys and planner, so their figures are about the product. A model moves into
the product on the day a broker uses it.
"""

from .counting import (
    Collection,
    Constraint,
    CountingScheme,
    CountingStore,
    Entry,
    Placement,
    constraints_of,
    counting_scheme,
)
from .fingers import (
    BOTH_WAYS_BASE_2,
    BOTH_WAYS_BASE_4,
    ONE_WAY_BASE_2,
    FingerPlan,
    Hops,
    ideal_table,
    travel,
)
from .multicast import split_set, spread_segment, spread_set
from .segments import Cost, Home, Item, Local, Mfd, Overlay, Sf, key_of

__all__ = [
    "BOTH_WAYS_BASE_2",
    "BOTH_WAYS_BASE_4",
    "Collection",
    "Constraint",
    "Cost",
    "CountingScheme",
    "CountingStore",
    "Entry",
    "FingerPlan",
    "Home",
    "Hops",
    "Item",
    "Local",
    "Mfd",
    "ONE_WAY_BASE_2",
    "Overlay",
    "Placement",
    "Sf",
    "constraints_of",
    "counting_scheme",
    "ideal_table",
    "key_of",
    "split_set",
    "spread_segment",
    "spread_set",
    "travel",
]
