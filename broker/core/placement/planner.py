"""The planner: where one subscription rests. Each has one *anchor*: a dimension, and the keys on it.

What an anchor must do is one thing, and it is tested as such: **whenever pattern and condition are true of an event,
the event's key on the dimension (`keyspace/dimensions.py`) lies in the anchor**. How few other events come by is a
matter of cost.

A pattern says one thing of that kind by itself: the event's topic begins with its literal prefix. A condition is asked
what it *needs*: for each attribute, the values one of which it must have, or the cells one of which it must be in.

    a = 1, a IN (1, 2), a               these values; numbers of a declared attribute are their cells as well
    a IN (1, 2, ... 17 or more)         the cells that it spans, if a is declared; else too much to be stored by value
    a < 5, a BETWEEN 1 AND 2            these cells, if a is declared
    AND                                 what any side needs; of what both need, what they have in common
    OR                                  what all sides need, taken together
    a <> 1, a = b, a LIKE 'x%', ...     nothing

NOT has been pushed down before (`matching.anchors.parts_of`). A condition that needs the impossible is never true: it
says nothing inside an OR, and alone may rest anywhere. Two values are different when their keys are, so equality keys
stand for values here, and 1 = 1.0, 0.0 = -0.0 and NaN = NaN need no thought. Cells stand for numbers in the same way:
what lies in both of two ranges has its cell in both, whatever the rounding.

**Which one is chosen.** The first class of `CLASSES` that has something to say; within the attribute class

    1  one value               2  up to 16 values       3  cells, if fewer than half of all      4  bools only

and among equals the one with fewer keys, then the one named first. Bools come last of all because there are two of
them: a subscription at `active = TRUE` has half of a stream come by. With `single_key` (the option `ordered`) only one
value or the topic will do, for events that go through one broker stay in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias, TypeGuard

from headgate.matching import Pattern, Tree, Value, XPath, extensions, static_part
from headgate.matching.index import parts_of
from headgate.matching.structure import Shape, parse_twig
from headgate.matching.tree import And, Attribute, Between, Compare, In, Literal, Not, Or
from headgate.matching.values import is_null

from ..delivery import Subscription, read_settings
from ..keyspace import (
    CUBE,
    EQUAL,
    KBSP,
    TOPIC,
    Dimension,
    Domain,
    Segment,
    Span,
    cube_dimension,
    declared_domain,
    default_precision,
    equal_dimension,
    equality_key,
    prefix_key,
    range_dimension,
    topic_dimension,
)
from .edges import Laid
from .placement import Wish
from .words import stretches, stretches_text, value_text

__all__ = [
    "CLASSES",
    "IN_KEYS_MAX",
    "RANGE_SHARE_MAX",
    "Anchor",
    "Need",
    "closed",
    "declared",
    "needs_of",
    "plan",
    "plan_anchored",
    "precision_of",
    "twigs_of",
]

IN_KEYS_MAX: Final = 16
"""Keys of one subscription, and stretches of a range. Each is stored and refreshed by itself; with more of them a
subscription wants much of what there is, and rests with those that want everything, at its topic."""

RANGE_SHARE_MAX: Final = 0.5
"""Share of the ring below which a range is worth its copies. At the topic a subscription is stored once and all events
of the topic come by; on half of the ring it is stored on half of the brokers, and half of the events come by still."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where a subscription rests. `about` says what it asks for: a prefix, values, or both end cells of stretches."""

    dimension: Dimension
    segments: tuple[Segment, ...]
    stream: str
    about: tuple[Value, ...]
    why_topic: str = ""
    """Why it is only the topic; empty for the other dimensions."""
    uncounted: str = ""
    """Why it is not counted, where that is the placement of its stream."""
    filter: int = 0
    """Of its twigs, if it rests on the cube."""

    placement: ClassVar[str] = "anchored"

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The one."""
        return (self.dimension,)

    @property
    def laid(self) -> Laid | None:
        """What it leaves on the cube for events to follow; None when it is found without."""
        if self.dimension.kind == CUBE and self.dimension.routing == KBSP:
            return Laid(self.stream, self.dimension, self.filter)
        return None

    def covers(self, key: int | None) -> bool:
        """Whether an event with this key on the dimension meets the subscription."""
        return key is not None and any(segment.covers(key) for segment in self.segments)

    def pieces(self, subscription: Subscription, exact: bool, text: str) -> Iterator[tuple[Segment, list[Any]]]:
        """At each of its keys all that is to know of the subscription."""
        value = [subscription.stream, str(subscription.pattern), exact, text, self.dimension.wire()]
        return ((segment, value) for segment in self.segments)

    def because(self) -> str:
        """Why it rests there, for people."""
        if self.uncounted:
            return (
                f"{self._because()}; the placement of {self.stream} is counting, which it cannot be: {self.uncounted}"
            )
        return self._because()

    def _because(self) -> str:
        dimension, name = self.dimension, f"{self.stream}.{self.dimension.attribute}"
        if dimension.kind == CUBE:
            vertex = f"{dimension.vertices(self.stream).vertex_at(self.segments[0].low):0{dimension.depth}b}"
            asked = " AND ".join(f"XPATH {value_text(twig)}" for twig in self.about)
            return f"it asks {asked}, so it rests at vertex {vertex} of the cube of {self.stream}"
        if dimension.kind == TOPIC:
            return f"{self.why_topic}, so it rests where the topics at and below {self.about[0]} meet"
        if dimension.kind == EQUAL:
            values = [value_text(value) for value in self.about]
            if len(values) == 1:
                return f"it asks {dimension.attribute} = {values[0]}, so it rests where {name} = {values[0]} meets"
            listed = ", ".join(values)
            return (
                f"it asks {dimension.attribute} IN ({listed}), so it rests where each of these values of {name} meets"
            )
        domain = dimension.domain(self.stream)
        share = sum(last - first + 1 for first, last in stretches(self.about)) / domain.cells
        asked = stretches_text(dimension.attribute, domain, self.about)
        return f"it asks {asked}, so it rests along that part of the arc of {name}: {share:.2%} of the ring"


def plan(
    pattern: Pattern, condition: Tree | None, schema: Mapping[str, Any] | None = None, *, single_key: bool = False
) -> Anchor:
    """The anchor of a subscription. `schema` is the stream's, as `schema put` took it, or None."""
    question = _Question(pattern, condition, schema, single_key)
    return next(anchor for choose in CLASSES.values() if (anchor := choose(question)) is not None)


def plan_anchored(wish: Wish) -> Anchor:
    """The anchor of a subscription, by its topic when it would be one dimension too many beside the used ones."""
    anchor = plan(wish.pattern, wish.condition, wish.schema, single_key=wish.ordered)
    if len(wish.used) >= wish.dimensions_max and anchor.dimension not in wish.used:
        return plan(wish.pattern, None, None)
    return anchor


def needs_of(pattern: Pattern, condition: Tree | None, schema: Mapping[str, Any] | None = None) -> Needs:
    """What must be so, attribute by attribute, for the condition to be true; nothing also when it never is."""
    return _Question(pattern, condition, schema, False).needs() or {}


def closed(cells: Sequence[range], count_max: int) -> list[range]:
    """The same cells in no more stretches than that: the smallest gaps between them are closed."""
    gaps = sorted(range(1, len(cells)), key=lambda place: cells[place].start - cells[place - 1].stop)
    shut = dict.fromkeys(gaps[: max(0, len(cells) - count_max)])
    stretches = list(cells[:1])
    for place in range(1, len(cells)):
        if place in shut:
            stretches[-1] = range(stretches[-1].start, cells[place].stop)
        else:
            stretches.append(cells[place])
    return stretches


def declared(stream: str, schema: Mapping[str, Any] | None, attribute: str) -> Domain | None:
    """The domain of an attribute, if the schema declares its bounds."""
    attributes = schema.get("attributes") if schema is not None else None
    entry = attributes.get(attribute) if isinstance(attributes, Mapping) else None
    if not isinstance(entry, Mapping):
        return None
    precision = precision_of(entry)
    if precision is None:
        return None
    return declared_domain(stream, attribute, float(entry["min"]), float(entry["max"]), float(precision))


def precision_of(entry: Mapping[str, Any]) -> int | float | None:
    """The precision of an attribute as its schema has it, or its default; None when its bounds are not declared."""
    low, high, precision = entry.get("min"), entry.get("max"), entry.get("precision")
    if entry.get("type") not in ("int", "float") or not _is_number(low) or not _is_number(high):
        return None
    if precision is None:
        return default_precision(entry["type"] == "int", low, high)
    return precision if _is_number(precision) else None


def _is_number(value: Any) -> TypeGuard[int | float]:
    return type(value) in (int, float) and not is_null(value)


# --- What a condition needs -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Need:
    """What one attribute must be. Each of the two holds by itself; None is: that says nothing, or too much."""

    points: dict[int, Value] | None = None
    """One of these values, by equality key."""
    cells: list[range] | None = None
    """A number in one of these cells of its domain; disjoint, not adjacent, in order."""


Needs: TypeAlias = dict[str, Need]


@dataclass(slots=True)
class _Question:
    """One subscription to be planned."""

    pattern: Pattern
    condition: Tree | None
    schema: Mapping[str, Any] | None
    single_key: bool
    _domains: dict[str, Domain | None] = field(default_factory=dict)

    @property
    def stream(self) -> str:
        """The pattern's first level."""
        return self.pattern.stream

    def domain(self, attribute: str) -> Domain | None:
        """The declared domain of an attribute."""
        if attribute not in self._domains:
            self._domains[attribute] = declared(self.stream, self.schema, attribute)
        return self._domains[attribute]

    def needs(self) -> Needs | None:
        """What must be so for the condition to be true; None when it never is."""
        if self.condition is None:
            return {}
        return _all([self._needs_of(part) for part in parts_of(static_part(self.condition))])

    def _needs_of(self, tree: Tree) -> Needs | None:
        match tree:
            case And(operands):
                return _all([self._needs_of(operand) for operand in operands])
            case Or(operands):
                return _any([self._needs_of(operand) for operand in operands])
            case Compare(operator, Literal() as left, Attribute() as right):
                return self._compared(right.name, _MIRRORED.get(operator, operator), left.value)
            case Compare(operator, Attribute(name), Literal(value)):
                return self._compared(name, operator, value)
            case Between(operand, low, high):
                return self._needs_of(And((Compare(">=", operand, low), Compare("<=", operand, high))))
            case In(Attribute(name), items) if len({item.value for item in items}) > IN_KEYS_MAX:
                return self._listed(name, [item.value for item in items])
            case In(Attribute(name), items):
                return _any([self._point(name, item.value) for item in items])
            case Attribute(name):
                return self._point(name, True)
            case Not(Attribute(name)):
                return self._point(name, False)
            case Literal(value):
                return {} if value is True else None
        return {}

    def _compared(self, name: str, operator: str, value: Value) -> Needs | None:
        """Of `name operator value`."""
        if value is None:
            return None
        if operator == "=":
            return self._point(name, value)
        span_of = _SPANS.get(operator)
        if span_of is None or isinstance(value, (bool, str)):
            return {}
        return self._span(name, span_of(value))

    def _point(self, name: str, value: Value) -> Needs | None:
        key = equality_key(self.stream, name, value)
        if key is None:
            return None
        need = Need({key: value})
        domain = self.domain(name)
        if domain is not None and not isinstance(value, (bool, str)) and value is not None:
            cell = domain.cell(value)
            need.cells = [range(cell, cell + 1)]
        return {name: need}

    def _listed(self, name: str, values: list[Value]) -> Needs:
        """Of a list of more values than keys are stored for: of a declared attribute, what it spans; else too much.

        A key for each would take 20 milliseconds for 10,000 values, to no end.
        """
        domain = self.domain(name)
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if domain is None or not numbers:
            return {name: Need()}
        return {name: Need(cells=[range(domain.cell(min(numbers)), domain.cell(max(numbers)) + 1)])}

    def _span(self, name: str, span: Span) -> Needs | None:
        domain = self.domain(name)
        if domain is None:
            return {}
        cells = domain.span_cells(span)
        return {name: Need(cells=[cells])} if cells else None


_MIRRORED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}

_SPANS: Final[dict[str, Callable[[int | float], Span]]] = {
    "<": lambda bound: Span(high=bound, with_high=False),
    "<=": lambda bound: Span(high=bound),
    ">": lambda bound: Span(low=bound, with_low=False),
    ">=": lambda bound: Span(low=bound),
}


def _all(sides: Sequence[Needs | None]) -> Needs | None:
    """What a conjunction needs."""
    together: Needs = {}
    for side in sides:
        if side is None:
            return None
        for name, need in side.items():
            before = together.get(name, Need())
            points, cells = _common_points(before, need), _common_cells(before, need)
            if points == {} or cells == []:
                return None
            together[name] = Need(points, cells)
    return together


def _any(sides: Sequence[Needs | None]) -> Needs | None:
    """What a disjunction needs; a side that is never true has no say."""
    possible = [side for side in sides if side is not None]
    if not possible:
        return None
    together: Needs = {}
    for name in possible[0]:
        needs = [side[name] for side in possible if name in side]
        if len(needs) < len(possible):
            continue
        points = [need.points for need in needs if need.points is not None]
        cells = [need.cells for need in needs if need.cells is not None]
        together[name] = Need(
            {key: value for some in points for key, value in some.items()} if len(points) == len(needs) else None,
            _joined([one for some in cells for one in some]) if len(cells) == len(needs) else None,
        )
    return together


def _common_points(left: Need, right: Need) -> dict[int, Value] | None:
    if left.points is None or right.points is None:
        return right.points if left.points is None else left.points
    return {key: value for key, value in left.points.items() if key in right.points}


def _common_cells(left: Need, right: Need) -> list[range] | None:
    if left.cells is None or right.cells is None:
        return right.cells if left.cells is None else left.cells
    both: list[range] = []
    here = there = 0
    while here < len(left.cells) and there < len(right.cells):
        one, other = left.cells[here], right.cells[there]
        common = range(max(one.start, other.start), min(one.stop, other.stop))
        if common:
            both.append(common)
        if one.stop < other.stop:
            here += 1
        else:
            there += 1
    return both


def _joined(cells: list[range]) -> list[range]:
    """The same cells, in order, as few stretches."""
    joined: list[range] = []
    for one in sorted(cells, key=lambda some: some.start):
        if joined and one.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, one.stop))
        else:
            joined.append(one)
    return joined


# --- The classes ------------------------------------------------------------------------------------------------------


def _structure(question: _Question) -> Anchor | None:
    """The vertex of its twigs' filter. One value of an attribute is the better key, where the filter is tested as
    well: an event has one key there, and on the cube it may have a long way. Who wants its events in order cannot rest
    on the cube, where they go different ways."""
    shape, twigs = twigs_of(question.condition, question.schema)
    if not twigs or question.single_key:
        return None
    for need in (question.needs() or {}).values():
        if need.points is not None and len(need.points) == 1 and not isinstance(next(iter(need.points.values())), bool):
            return None
    settings = read_settings(question.schema)
    dimension = cube_dimension(shape.column, settings.structure_n, settings.structure_routing, settings.structure_map)
    vertices = dimension.vertices(question.stream)
    joined = 0
    for twig in twigs:
        joined |= parse_twig(twig).filter(shape.length, shape.hashes)
    key = vertices.key(vertices.vertex_of(joined))
    return Anchor(dimension, (Segment(key, key),), question.stream, twigs, filter=joined)


def twigs_of(condition: Tree | None, schema: Mapping[str, Any] | None) -> tuple[Shape, tuple[str, ...]]:
    """What filters of the stream are made with, and the twigs that a condition asks for."""
    asked = () if condition is None else extensions(condition)
    return read_settings(schema).shape, tuple(one.twig for one in asked if isinstance(one, XPath))


def _not_yet(question: _Question) -> Anchor | None:
    """Of a class that is not built yet: conditions with its extension rest by what else they say."""
    return None


def _attribute(question: _Question) -> Anchor | None:
    """The best that a single attribute offers."""
    offers = []
    for name, need in (question.needs() or {}).items():
        offers += _offers(question, name, need)
    if not offers:
        return None
    return min(offers, key=lambda offer: offer[:2])[2]()


_Offer: TypeAlias = tuple[int, float, Callable[[], Anchor]]
"""Rank, size within the rank, and how the anchor is made: smaller is better."""


def _offers(question: _Question, name: str, need: Need) -> list[_Offer]:
    """The anchors that one attribute would make."""
    offers: list[_Offer] = []
    keys_max = 1 if question.single_key else IN_KEYS_MAX
    points, cells, domain = need.points, need.cells, question.domain(name)
    if points is not None and len(points) <= keys_max:
        rank = 4 if all(isinstance(value, bool) for value in points.values()) else 1 if len(points) == 1 else 2
        offers.append((rank, len(points), lambda: _equal_anchor(question.stream, name, points)))
    if cells is not None and domain is not None and len(cells) <= IN_KEYS_MAX and not question.single_key:
        share = sum(map(len, cells)) / domain.cells
        if share < RANGE_SHARE_MAX:
            offers.append((3, share, lambda: _range_anchor(domain, cells)))
    return offers


def _equal_anchor(stream: str, name: str, points: dict[int, Value]) -> Anchor:
    segments = tuple(Segment(key, key) for key in sorted(points))
    return Anchor(equal_dimension(name), segments, stream, tuple(points.values()))


def _range_anchor(domain: Domain, cells: list[range]) -> Anchor:
    segments = tuple(Segment(domain.key_of_cell(one[0]), domain.key_of_cell(one[-1])) for one in cells)
    return Anchor(
        range_dimension(domain), segments, domain.stream, tuple(end for one in cells for end in (one[0], one[-1]))
    )


def _topic(question: _Question) -> Anchor:
    """The longest literal prefix: every pattern has one."""
    prefix = question.pattern.literal_prefix
    key = prefix_key(prefix)
    dimension = topic_dimension(prefix.count("/") + 1)
    return Anchor(dimension, (Segment(key, key),), question.stream, (prefix,), _why_only_topic(question))


def _why_only_topic(question: _Question) -> str:
    """For people: what kept the attributes out."""
    needs = question.needs()
    if question.condition is None:
        return "it has no condition"
    if needs is None:
        return "its condition can never be true"
    if not needs:
        return "it asks no attribute for a value, nor for a range that the schema declares"
    if question.single_key:
        return "it wants its events in order, and asks no attribute for one value"
    return f"what it asks for is too much: more than {IN_KEYS_MAX} values, or {RANGE_SHARE_MAX:.0%} of a range or more"


CLASSES: Final[dict[str, Callable[[_Question], Anchor | None]]] = {
    "dynamic": _not_yet,
    "structure": _structure,
    "attribute": _attribute,
    "topic": _topic,
}
"""In order of preference: the first class that gives an anchor is the subscription's."""
