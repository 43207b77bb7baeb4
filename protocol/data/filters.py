"""Filters of documents that say nothing: so full that nearly every twig is in them. (protocol/SPEC.md, 6.4)

A filter that is more than half full costs as much as one that says something: its publisher leaves it out, and the
event goes to everybody who asks for some structure. One that is nearly full is a mistake of who chose its length, or a
lie, so its event is refused, with what to do: here by the publisher's own library, and by the broker that it comes to.
Filters of values are never refused, for the texts of a long document fill them honestly.
"""

from __future__ import annotations

from ..limits import FILTER_BITS_MAX, FILTER_FULL_SHARE, FILTER_SATURATED_SHARE
from .columns import FILTER_COLUMNS

__all__ = ["STRUCTURE_COLUMNS", "is_full", "is_saturated", "saturated_text"]

STRUCTURE_COLUMNS = FILTER_COLUMNS[0]
"""How the names of columns begin that hold filters of names and pairs of names."""


def is_full(bits: int, length: int) -> bool:
    """Whether a filter with so many of its bits set is left out."""
    return bits > length * FILTER_FULL_SHARE


def is_saturated(bits: int, length: int) -> bool:
    """Whether an event with such a filter of structure is refused."""
    return bits > length * FILTER_SATURATED_SHARE


def saturated_text(bits: int, length: int) -> str:
    """Why it is refused, and what to do."""
    longer = min(4 * length, FILTER_BITS_MAX)
    return (
        f"the filter of this document has {bits} of its {length} bits set, so that nearly every XPATH lets it pass:"
        f" raise structure.l of the stream (`headgate schema put STREAM '{{\"structure.l\": {longer}}}'`, and learn"
        " structure.map anew with `headgate schema learn`, if it has one), or publish smaller documents"
    )
