"""Finds the subscriptions that each event of a batch satisfies.

`Index` joins two things that do not know each other: the topic tables of `matching.topics` and, for each pattern, a
predicate index. `match` answers with `Matches`, groups of subscriptions and rows; `Statistics` is a snapshot.

**Theory.** A condition is cut into parts that must all hold (`parts_of`). A part that a structure can look up is an
*anchor*: a key, a prefix, a range or a filter. A condition is filed under its most selective anchors, one within the
other, and compiled code tests what is left. A row then reaches only the conditions whose anchors it fits, so the work
for a row is that of its answer and not that of the number of conditions. Selectivity is guessed from a sample of the
traffic.

`RangeTable` finds the ranges that hold a value in the time of two bisections; `Span` is a range in it and `Answers`
what a cell of it holds.

Order of reading: `index`, `columns` (a batch made clean), `predicates`, `anchors`, `steps`, `conditions`, `ranges` with
`range_blocks` and `wide_ranges`, `traffic`.
"""

from .anchors import parts_of
from .index import Index, Matches, Statistics
from .range_blocks import Answers, Span
from .ranges import RangeTable

__all__ = [
    "Answers",
    "Index",
    "Matches",
    "RangeTable",
    "Span",
    "Statistics",
    "parts_of",
]
