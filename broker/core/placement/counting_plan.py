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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from headgate.matching import Pattern, Tree, Value

from ..delivery import Subscription
from ..keyspace import Dimension, Domain, Segment, count_dimension, equality_key
from .placement import Wish
from .planner import IN_KEYS_MAX, RANGE_SHARE_MAX, Anchor, Need, closed, declared, needs_of, plan_anchored, twigs_of
from .words import stretches_text, value_text

__all__ = ["Counted", "CountedPart", "plan_counted", "plan_counting"]


@dataclass(frozen=True, slots=True)
class CountedPart:
    """One attribute of a counted subscription. `about` has values, or both end cells of stretches, as in an anchor."""

    dimension: Dimension
    segments: tuple[Segment, ...]
    about: tuple[Value, ...]

    def asked(self, stream: str) -> str:
        """What the attribute has to be, in words."""
        name = f"{stream}.{self.dimension.attribute}"
        if self.dimension.is_arc:
            return stretches_text(name, self.dimension.domain(stream), self.about)
        values = [value_text(value) for value in self.about]
        return f"{name} = {values[0]}" if len(values) == 1 else f"{name} IN ({', '.join(values)})"


@dataclass(frozen=True, slots=True)
class Counted:
    """Where a counted subscription rests: on every one of these an event that it matches has a key."""

    stream: str
    parts: tuple[CountedPart, ...]

    placement: ClassVar[str] = "counting"
    laid: ClassVar[None] = None

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """One for each attribute."""
        return tuple(part.dimension for part in self.parts)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All keys."""
        return tuple(segment for part in self.parts for segment in part.segments)

    def pieces(self, subscription: Subscription, exact: bool, text: str) -> Iterator[tuple[Segment, list[Any]]]:
        """Which list, and on how many lists an event must meet it; what it asks for as a whole its home keeps."""
        return (
            (segment, [self.stream, part.dimension.wire(), len(self.parts)])
            for part in self.parts
            for segment in part.segments
        )

    def because(self) -> str:
        """Why it rests there, for people."""
        lists = " and ".join(part.asked(self.stream) for part in self.parts)
        often = "on this list" if len(self.parts) == 1 else f"on {len(self.parts)} of these lists"
        return (
            f"the placement of {self.stream} is counting, so it is on the lists of {lists}; an event that meets it "
            f"{often} is brought to its home, which looks at the topic and all of the condition"
        )


def plan_counted(wish: Wish) -> Counted | Anchor:
    """The lists of a subscription; an anchor when it cannot be counted, or would use too many dimensions."""
    counted = plan_counting(wish.pattern, wish.condition, wish.schema)
    if isinstance(counted, Counted):
        if len({*wish.used, *counted.dimensions}) <= wish.dimensions_max:
            return counted
        counted = f"clients of its broker use {wish.dimensions_max} dimensions of the stream already"
    return replace(plan_anchored(wish), uncounted=counted)


def plan_counting(pattern: Pattern, condition: Tree | None, schema: Mapping[str, Any] | None) -> Counted | str:
    """The lists of a subscription, or what keeps it from being counted."""
    if condition is None:
        return "it has no condition"
    if twigs_of(condition, schema)[1]:
        return "it has XPATH, which its home cannot look at"
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
