"""The papers' models: what the papers describe and no broker does, or does otherwise, over plain tables in memory.

`fingers` has the far links of STATE 4.1 and of Chord (`FingerPlan`: `ONE_WAY_BASE_2`, `BOTH_WAYS_BASE_2` and
`BOTH_WAYS_BASE_4`), the tables that come of them (`ideal_table`) and the way of a message (`travel`, `Hops`).
`multicast` has one message to many brokers (STATE 4.2), to a set (`split_set`, `spread_set`) or to a segment
(`spread_segment`). `counting` has the scheme of RANGE 3 (`CountingScheme`, `counting_scheme`, `constraints_of`), its
store (`CountingStore`) and the collection of its lists (`Collection`), made of `Constraint`, `Entry` and `Placement`.

`filters` has dynamic filters on a segment (STATE 4.3): `Levels` of them (MFD), each a width in base 4 (`BASE`,
`parts_of_width`, `place_of_width`), with what becomes of a value (`Passed`) and its messages (`sf_messages`,
`mfd_messages`).

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
from .filters import BASE, Levels, Passed, mfd_messages, parts_of_width, place_of_width, sf_messages
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

__all__ = [
    "BASE",
    "BOTH_WAYS_BASE_2",
    "BOTH_WAYS_BASE_4",
    "Collection",
    "Constraint",
    "CountingScheme",
    "CountingStore",
    "Entry",
    "FingerPlan",
    "Hops",
    "Levels",
    "Passed",
    "mfd_messages",
    "parts_of_width",
    "place_of_width",
    "sf_messages",
    "ONE_WAY_BASE_2",
    "Placement",
    "constraints_of",
    "counting_scheme",
    "ideal_table",
    "split_set",
    "spread_segment",
    "spread_set",
    "travel",
]
