"""Which lists a subscription is put on, for a stream whose placement is `counting`; or why it is anchored instead.

What the planner finds that a condition *needs* (`planner.constraints_of`: a value, one of several, a range) is made a
shelf of the kind `count` and keys on it, attribute by attribute. Only attributes that the schema declares are counted,
ranges only where it says minimum, maximum and precision. Whatever else the condition says, and the topic below the
stream, is for the subscription's home to look at, when counting has made it a candidate.

    numbers of an attribute with a domain      the cells, by which a value and a range meet in one list
    other values                               the keys of the values
    too much                                   more than IN_KEYS_MAX values, or RANGE_SHARE_MAX of a range: not counted,
                                               as long as another attribute is

c3, the number of lists on which an event must meet the subscription, is the number of attributes that are counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from headgate.matching import Pattern, Tree, Value

from .counting import Constraint
from .keys import Domain, Span, equality_key
from .limits import SHELVES_MAX
from .multicast import Segment
from .planner import IN_KEYS_MAX, RANGE_SHARE_MAX, Anchor, constraints_of, declared, plan
from .shelves import Shelf, count_shelf

__all__ = ["Counted", "CountedPart", "Resting", "plan_counting", "plan_resting"]


@dataclass(frozen=True, slots=True)
class CountedPart:
    """One attribute of a counted subscription. `about` has values, or both end cells of stretches, as in an anchor."""

    shelf: Shelf
    segments: tuple[Segment, ...]
    about: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """Where a counted subscription rests: on every one of these an event that it matches has a key."""

    stream: str
    parts: tuple[CountedPart, ...]

    @property
    def shelves(self) -> tuple[Shelf, ...]:
        """One for each attribute."""
        return tuple(part.shelf for part in self.parts)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All keys."""
        return tuple(segment for part in self.parts for segment in part.segments)


Resting: TypeAlias = Anchor | Counted
"""Where a subscription rests: at one anchor, or on lists."""


def plan_resting(
    pattern: Pattern,
    condition: Tree | None,
    schema: Mapping[str, Any] | None,
    used: Collection[Shelf],
    counting: bool,
    ordered: bool,
) -> tuple[Resting, str]:
    """Where a subscription rests, and what keeps it from being counted where that is wanted.

    `used` are the shelves that this broker's clients use of the stream, of which there is a bound.
    """
    uncounted = ""
    if counting:
        counted = plan_counting(pattern, condition, schema)
        if not isinstance(counted, Counted):
            uncounted = counted
        elif len({*used, *counted.shelves}) <= SHELVES_MAX:
            return counted, ""
        else:
            uncounted = f"clients of its broker use {SHELVES_MAX} shelves of the stream already"
    anchor = plan(pattern, condition, schema, single_key=ordered)
    if len(used) >= SHELVES_MAX and anchor.shelf not in used:
        anchor = plan(pattern, None, None)
    return anchor, uncounted


def plan_counting(pattern: Pattern, condition: Tree | None, schema: Mapping[str, Any] | None) -> Counted | str:
    """The lists of a subscription, or what keeps it from being counted."""
    if condition is None:
        return "it has no condition"
    constraints = constraints_of(pattern, condition, schema)
    attributes = schema.get("attributes") if schema is not None else None
    known = {name: one for name, one in constraints.items() if isinstance(attributes, Mapping) and name in attributes}
    if not known:
        return "it asks no attribute that the schema declares for a value, or for a range"
    stream = pattern.stream
    parts = [_part(stream, name, declared(stream, schema, name), constraint) for name, constraint in known.items()]
    counted = tuple(part for part in parts if part is not None)
    if counted:
        return Counted(stream, counted)
    return f"what it asks for is too much: more than {IN_KEYS_MAX} values, or {RANGE_SHARE_MAX:.0%} of a range or more"


def _part(stream: str, name: str, domain: Domain | None, constraint: Constraint) -> CountedPart | None:
    """The lists of one attribute; None when they would be too many."""
    if isinstance(constraint, Span):
        assert domain is not None, "a span is made of a declared range"
        return _stretch(domain, domain.span_cells(constraint))
    if len(constraint.values) > IN_KEYS_MAX:
        return None
    numbers = [one for one in constraint.values if isinstance(one, int | float) and not isinstance(one, bool)]
    if domain is not None and len(numbers) == len(constraint.values):
        cells = sorted({domain.cell(number) for number in numbers})
        segments = tuple(Segment(domain.key_of_cell(cell), domain.key_of_cell(cell)) for cell in cells)
        return CountedPart(count_shelf(name, domain), segments, tuple(cell for cell in cells for _ in "lh"))
    keys = {equality_key(stream, name, one): one for one in constraint.values}
    segments = tuple(Segment(key, key) for key in keys if key is not None)
    return CountedPart(count_shelf(name), segments, tuple(keys.values()))


def _stretch(domain: Domain, cells: range) -> CountedPart | None:
    if not cells or len(cells) / domain.cells >= RANGE_SHARE_MAX:
        return None
    segment = Segment(domain.key_of_cell(cells[0]), domain.key_of_cell(cells[-1]))
    return CountedPart(count_shelf(domain.attribute, domain), (segment,), (cells[0], cells[-1]))
