"""Which lists a subscription is put on, for a stream whose placement is `counting`; or why it is anchored instead.

What the planner finds that a condition *needs* (`planner.needs_of`: one of some values, or a number in one of some
ranges) is made a dimension of the kind `count` and keys on it, attribute by attribute. Only attributes that the schema
declares are counted, ranges only where it says minimum and maximum. Whatever else the condition says, and the topic
below the stream, is for the subscription's home to look at, when counting has made it a candidate.

    numbers of an attribute with a domain      the cells, by which a value and a range meet in one list
    other values                               the keys of the values
    more than IN_KEYS_MAX ranges               so many, the smallest gaps between them closed
    too much                                   more than IN_KEYS_MAX values, or RANGE_SHARE_MAX of a range: not counted,
                                               as long as another attribute is

c3, the number of lists on which an event must meet the subscription, is the number of attributes that are counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from headgate.matching import Pattern, Tree, Value

from ..keyspace import Dimension, Domain, Segment, count_dimension, equality_key
from ..limits import DEFAULT_LIMITS
from .planner import IN_KEYS_MAX, RANGE_SHARE_MAX, Anchor, Need, closed, declared, needs_of, plan

__all__ = ["Counted", "CountedPart", "Resting", "plan_counting", "plan_resting"]


@dataclass(frozen=True, slots=True)
class CountedPart:
    """One attribute of a counted subscription. `about` has values, or both end cells of stretches, as in an anchor."""

    dimension: Dimension
    segments: tuple[Segment, ...]
    about: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """Where a counted subscription rests: on every one of these an event that it matches has a key."""

    stream: str
    parts: tuple[CountedPart, ...]

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """One for each attribute."""
        return tuple(part.dimension for part in self.parts)

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
    used: Collection[Dimension],
    counting: bool,
    ordered: bool,
    dimensions_max: int = DEFAULT_LIMITS.dimensions,
) -> tuple[Resting, str]:
    """Where a subscription rests, and what keeps it from being counted where that is wanted.

    `used` are the dimensions that this broker's clients use of the stream, of which there is a bound.
    """
    uncounted = ""
    if counting:
        counted = plan_counting(pattern, condition, schema)
        if not isinstance(counted, Counted):
            uncounted = counted
        elif len({*used, *counted.dimensions}) <= dimensions_max:
            return counted, ""
        else:
            uncounted = f"clients of its broker use {dimensions_max} dimensions of the stream already"
    anchor = plan(pattern, condition, schema, single_key=ordered)
    if len(used) >= dimensions_max and anchor.dimension not in used:
        anchor = plan(pattern, None, None)
    return anchor, uncounted


def plan_counting(pattern: Pattern, condition: Tree | None, schema: Mapping[str, Any] | None) -> Counted | str:
    """The lists of a subscription, or what keeps it from being counted."""
    if condition is None:
        return "it has no condition"
    needs = needs_of(pattern, condition, schema)
    attributes = schema.get("attributes") if schema is not None else None
    known = {name: one for name, one in needs.items() if isinstance(attributes, Mapping) and name in attributes}
    if not known:
        return "it asks no attribute that the schema declares for a value, or for a range"
    stream = pattern.stream
    parts = [_part(stream, name, declared(stream, schema, name), need) for name, need in known.items()]
    counted = tuple(part for part in parts if part is not None)
    if counted:
        return Counted(stream, counted)
    return f"what it asks for is too much: more than {IN_KEYS_MAX} values, or {RANGE_SHARE_MAX:.0%} of a range or more"


def _part(stream: str, name: str, domain: Domain | None, need: Need) -> CountedPart | None:
    """The lists of one attribute; None when they would be too many."""
    values = [] if need.points is None else list(need.points.values())
    if 0 < len(values) <= IN_KEYS_MAX:
        numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
        if domain is not None and len(numbers) == len(values):
            return _stretches(domain, [range(cell, cell + 1) for cell in sorted({domain.cell(one) for one in numbers})])
        keys = {equality_key(stream, name, one): one for one in values}
        segments = tuple(Segment(key, key) for key in keys if key is not None)
        return CountedPart(count_dimension(name), segments, tuple(keys.values()))
    cells = closed(need.cells or (), IN_KEYS_MAX)
    if domain is None or not cells or sum(map(len, cells)) / domain.cells >= RANGE_SHARE_MAX:
        return None
    return _stretches(domain, cells)


def _stretches(domain: Domain, cells: Sequence[range]) -> CountedPart:
    segments = tuple(Segment(domain.key_of_cell(one[0]), domain.key_of_cell(one[-1])) for one in cells)
    ends = tuple(end for one in cells for end in (one[0], one[-1]))
    return CountedPart(count_dimension(domain.attribute, domain), segments, ends)
