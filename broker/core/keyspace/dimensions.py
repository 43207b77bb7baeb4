"""Dimensions: ways to put subscriptions away, such that an event knows where to look for them.

    topic   depth                             under the first so many levels of the topic: `quotes/NYSE`
    equal   attribute                         under the value of the attribute
    range   attribute, min, max, precision    along the arc of the attribute, cell by cell (`keys.py`)
    count   attribute                         as `equal`, for subscriptions that are counted (`placement/counting.py`)
    count   attribute, min, max, precision    as `range`, for the same
    cube    column, bits, routing, phi        at a vertex of the hypercube of Bloom keys (`vertices.py`)

A subscription rests on one dimension, at one key or at several; one that is counted rests on one for each attribute. On
each dimension an event has at most one key, so it meets each subscription there at most once. It has none where no
subscription on that dimension can want it: no such attribute, no number, a topic that is too short. The cube is the
exception: an event has one vertex, its own, and goes on from there to others (`Step`), to each at most once.

The domain is part of a range's name. When a schema changes, its ranges are another dimension, and what rests on the
former one stays right where it is.

**Looking up a batch.** `RowKeys` gives the key of every row, `DimensionPlaces` what its caller made of that key: a
*place*, such as the number of a link, or None. Both remember what they made of a value, so that a row costs the type
check of its value and one look-up, and both forget it together when `KeyMemory` says so. Places are forgotten when the
caller's epoch changes, keys never become wrong.

    values   OTE  IBM  OTE  NULL         one column of the batch
    keys     17   99   17   None         equality_key, remembered by value
    places   2    None 2    None         place_of(key), remembered by value for one epoch

Python's 1 and True are one key of a dictionary and two values of ours, so bools are looked up as (True,) and (False,).
NaN is unequal to itself and never remembered. Integers that share a double are looked up apart and share their key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from headgate.matching import Value
from headgate.matching.cube import FOLD
from headgate.matching.values import known
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import ATTRIBUTE_NAME_LENGTH_MAX, TOPIC_LEVELS_MAX

from .keys import Domain, declared_domain, equality_key, prefix_key
from .vertices import Vertices, is_cube

__all__ = [
    "COUNT",
    "CUBE",
    "FLOOD",
    "KBPP",
    "KBSP",
    "ROUTINGS",
    "EQUAL",
    "KEY_MEMORY_BYTES_MAX",
    "RANGE",
    "TOPIC",
    "KeyMemory",
    "RowKeys",
    "AtVertex",
    "Dimension",
    "DimensionPlaces",
    "Step",
    "count_dimension",
    "cube_dimension",
    "equal_dimension",
    "key_of",
    "parse_dimension",
    "parse_step",
    "range_dimension",
    "topic_dimension",
]

KEY_MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024
"""What all dimensions of a broker together remember keys and places with: some 300,000 values. Beyond it all is
forgotten, and each value costs a hash again, about two microseconds."""

REMEMBERED_BYTES: Final = 104
"""What a remembered key or place costs beside the value's letters: a slot of a dictionary, a boxed value and number.
Measured as 147 to 170 bytes for both together."""

TOPIC: Final = "topic"
EQUAL: Final = "equal"
RANGE: Final = "range"
COUNT: Final = "count"
CUBE: Final = "cube"

KBSP: Final = "kbsp"
KBPP: Final = "kbpp"
FLOOD: Final = "flood"
ROUTINGS: Final = (KBSP, KBPP, FLOOD)
"""How events find the vertices of a cube where somebody rests: they follow what subscriptions left on their way up
(BLOOM 4.5), or visit all vertices below their own (4.4), or all there are."""

_WORDS: Final = {EQUAL: "values", RANGE: "ranges", COUNT: "lists"}

_SCALARS: Final = frozenset((str, int, float, bool, type(None)))


class Dimension(NamedTuple):
    """The name of a dimension: what it is ordered by. Equal names are the same dimension, on every broker."""

    kind: str
    attribute: str = ""
    depth: int = 0
    minimum: float = 0.0
    maximum: float = 0.0
    precision: float = 0.0
    routing: str = ""
    phi: str = ""

    def wire(self) -> list[Any]:
        """As a list for messages, with only what the kind needs."""
        if self.kind == TOPIC:
            return [TOPIC, self.depth]
        if self.kind == CUBE:
            return [CUBE, self.attribute, self.depth, self.routing, self.phi]
        if not self.is_arc:
            return [self.kind, self.attribute]
        return [self.kind, self.attribute, self.minimum, self.maximum, self.precision]

    @property
    def is_arc(self) -> bool:
        """Whether it is ordered by the cells of a domain."""
        return self.precision > 0

    def domain(self, stream: str) -> Domain:
        """The domain of a dimension that is an arc."""
        domain = declared_domain(stream, self.attribute, self.minimum, self.maximum, self.precision)
        assert domain is not None, "an arc is made of a domain"
        return domain

    def vertices(self, stream: str) -> Vertices:
        """The vertices of a dimension that is a cube."""
        return Vertices(stream, self.attribute, self.depth, self.phi)

    def __str__(self) -> str:
        if self.kind == CUBE:
            by = "" if self.phi == FOLD else f" by map {sha256(self.phi.encode()).hexdigest()[:8]}"
            return f"the cube of {1 << self.depth} vertices ({self.routing}), keys of {self.attribute}{by}"
        if self.kind == TOPIC:
            return f"the first {self.depth} levels of the topic" if self.depth > 1 else "the stream"
        name = f"{_WORDS[self.kind]} of {self.attribute}"
        return f"{name}, {self.minimum:.15g} to {self.maximum:.15g} by {self.precision:.15g}" if self.is_arc else name


def topic_dimension(depth: int) -> Dimension:
    """By the first so many levels of the topic."""
    return Dimension(TOPIC, depth=depth)


def equal_dimension(attribute: str) -> Dimension:
    """By the value of an attribute."""
    return Dimension(EQUAL, attribute)


def range_dimension(domain: Domain) -> Dimension:
    """By the cell of a declared attribute."""
    return Dimension(RANGE, domain.attribute, 0, *_bounds(domain))


def count_dimension(attribute: str, domain: Domain | None = None) -> Dimension:
    """By the value of an attribute, or by its cell, for subscriptions that are counted."""
    return Dimension(COUNT, attribute) if domain is None else Dimension(COUNT, attribute, 0, *_bounds(domain))


def cube_dimension(column: str, bits: int, routing: str, phi: str) -> Dimension:
    """By the key of a filter, of so many bits."""
    return Dimension(CUBE, column, bits, routing=routing, phi=phi)


class AtVertex(NamedTuple):
    """A vertex of a cube, where subscriptions rest."""

    dimension: Dimension
    vertex: int


class Step(NamedTuple):
    """A vertex that events come to, and the bit that they cleared last; as many as there are bits at their own."""

    dimension: Dimension
    vertex: int
    cleared: int

    def wire(self) -> list[Any]:
        """As a list for messages."""
        return [*self.dimension.wire(), self.vertex, self.cleared]


def _bounds(domain: Domain) -> tuple[float, float, float]:
    return float(domain.minimum), float(domain.maximum), float(domain.precision)


def parse_dimension(wire: Any) -> Dimension:
    """A dimension as another broker wrote it; ProtocolViolation when it is none."""
    match wire:
        case [kind, depth] if kind == TOPIC and type(depth) is int and 0 < depth <= TOPIC_LEVELS_MAX:
            return topic_dimension(depth)
        case [kind, attribute] if kind in (EQUAL, COUNT) and _is_name(attribute):
            return Dimension(kind, attribute)
        case [kind, column, bits, routing, phi] if kind == CUBE and _is_cube(column, bits, routing, phi):
            return cube_dimension(column, bits, routing, phi)
        case [kind, attribute, *bounds] if kind in (RANGE, COUNT) and _is_name(attribute) and len(bounds) == 3:
            if all(type(bound) in (int, float) for bound in bounds):
                minimum, maximum, precision = (float(bound) for bound in bounds)
                if declared_domain("", attribute, minimum, maximum, precision) is not None:
                    return Dimension(kind, attribute, 0, minimum, maximum, precision)
    raise ProtocolViolation(f"not a dimension: {wire!r:.200}")


def parse_step(wire: Any) -> Dimension | Step:
    """What another broker asks for in a FORWARD: a dimension, or a vertex of a cube; ProtocolViolation when neither."""
    match wire:
        case [kind, _, bits, _, _, vertex, cleared] if kind == CUBE:
            dimension = parse_dimension(wire[:5])
            if type(vertex) is type(cleared) is int and 0 <= vertex < 1 << bits and 0 <= cleared <= bits:
                return Step(dimension, vertex, cleared)
            raise ProtocolViolation(f"not a vertex of {dimension}: {wire[5:]!r:.200}")
    dimension = parse_dimension(wire)
    if dimension.kind == CUBE:
        raise ProtocolViolation(f"a vertex of {dimension} is not named")
    return dimension


def _is_cube(column: object, bits: object, routing: object, phi: object) -> bool:
    if type(column) is not str or type(bits) is not int or type(phi) is not str:
        return False
    return routing in ROUTINGS and is_cube(column, bits, phi)


def _is_name(attribute: object) -> bool:
    if type(attribute) is not str or len(attribute) > ATTRIBUTE_NAME_LENGTH_MAX:
        return False
    return 0 < len(attribute.encode("utf-8", "surrogatepass")) <= ATTRIBUTE_NAME_LENGTH_MAX


# --- The key of a row -------------------------------------------------------------------------------------------------


def key_of(stream: str, dimension: Dimension, topic: str, attributes: Mapping[str, Value]) -> int | None:
    """Where one event looks on a dimension; None where no subscription there can want it. The plain form of
    `RowKeys`."""
    if dimension.kind == TOPIC:
        return _topic_key(dimension.depth, topic)
    if dimension.kind == CUBE:
        cube = dimension.vertices(stream)
        one = cube.filter_of(attributes.get(dimension.attribute))
        return cube.key(cube.vertex_of(one)) if one else None
    value = known(attributes.get(dimension.attribute))
    return dimension.domain(stream).key(value) if dimension.is_arc else equality_key(stream, dimension.attribute, value)


def _topic_key(depth: int, topic: str) -> int | None:
    levels = topic.split("/", depth)
    return prefix_key("/".join(levels[:depth])) if len(levels) >= depth else None


class KeyMemory:
    """Counts what tables of keys and places remember; over the bound all of them are emptied at once."""

    __slots__ = ("_bytes_max", "_sizes", "_tables", "spent")

    def __init__(self, bytes_max: int = KEY_MEMORY_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._tables: dict[int, dict[Any, Any]] = {}
        self._sizes: dict[int, int] = {}
        self.spent = 0

    def spend(self, table: dict[Any, Any], value: object) -> None:
        """The table is going to remember one more value."""
        size = REMEMBERED_BYTES
        if type(value) is str:
            size += len(value) if value.isascii() else 4 * len(value)
        if self.spent + size > self._bytes_max:
            for one in self._tables.values():
                one.clear()
            self._tables.clear()
            self._sizes.clear()
            self.spent = 0
        self._tables[id(table)] = table  # held, so that its id stays its own
        self._sizes[id(table)] = self._sizes.get(id(table), 0) + size
        self.spent += size

    def forget(self, table: dict[Any, Any]) -> None:
        """Empty one table."""
        table.clear()
        self._tables.pop(id(table), None)
        self.spent -= self._sizes.pop(id(table), 0)

    def validate(self) -> None:
        """Asserts that the memory of all tables is counted, and within its bound."""
        assert self._tables.keys() == self._sizes.keys()
        assert self.spent == sum(self._sizes.values()) <= self._bytes_max


class _Table(dict[Any, Any]):
    """Remembers what `make` made of a value."""

    __slots__ = ("_make", "_memory")

    def __init__(self, make: Callable[[Any], Any], memory: KeyMemory) -> None:
        super().__init__()
        self._make = make
        self._memory = memory

    def __missing__(self, value: Any) -> Any:
        made = self._make(value)
        if value == value:
            self._memory.spend(self, value)
            self[value] = made
        return made


class RowKeys:
    """The keys of the rows of batches of one stream on one dimension."""

    __slots__ = ("_domain", "_keys", "_memory", "_prefixes", "dimension", "key", "stream")

    def __init__(self, stream: str, dimension: Dimension, memory: KeyMemory | None = None) -> None:
        self.stream = stream
        self.dimension = dimension
        self._memory = memory if memory is not None else KeyMemory()
        self._domain = dimension.domain(stream) if dimension.is_arc else None
        of_value = self._key_of_value if self._domain is None else self._key_in_range
        self._keys = _Table(self._key_of_topic if dimension.kind == TOPIC else of_value, self._memory)
        self._prefixes = _Table(prefix_key, self._memory)
        self.key: Callable[[Any], int | None] = self._keys.__getitem__

    def forget(self) -> None:
        """Give back the memory; the part that lets go of these keys says so."""
        self._memory.forget(self._keys)
        self._memory.forget(self._prefixes)

    def of(self, topics: Sequence[str], count: int, columns: Mapping[str, Sequence[Value]]) -> list[int | None]:
        """The key of each row, or None; `topics` has one for all rows, or one a row."""
        return _look_up(self._keys, self.dimension, topics, count, columns)

    def _key_of_topic(self, topic: str) -> int | None:
        depth = self.dimension.depth
        levels = topic.split("/", depth)
        if len(levels) < depth:
            return None
        key: int = self._prefixes["/".join(levels[:depth])]  # remembered apart: thousands of topics share one number
        return key

    def _key_of_value(self, value: Any) -> int | None:
        return equality_key(self.stream, self.dimension.attribute, _plain(value))

    def _key_in_range(self, value: Any) -> int | None:
        assert self._domain is not None
        return self._domain.key(_plain(value))


def _clean(value: Any) -> Any:
    """What to look a value up by."""
    kind = type(value)
    if kind is str or kind is float:
        return value
    return (value,) if kind is bool else known(value)


def _plain(value: Any) -> Value:
    """The value that is looked up by this."""
    return value[0] if type(value) is tuple else known(value)


def _look_up(
    table: _Table, dimension: Dimension, topics: Sequence[str], count: int, columns: Mapping[str, Sequence[Value]]
) -> list[Any]:
    """What the table remembers for each row, in order."""
    if dimension.kind == TOPIC:
        return [table[topics[0]]] * count if len(topics) == 1 else list(map(table.__getitem__, topics))
    column = columns.get(dimension.attribute)
    if column is None:
        return [None] * count
    if count == 1:  # what follows is made for many rows, and would cost a lone one three times as much
        return [table[_clean(column[0])]]
    kinds = set(map(type, column))
    values: Sequence[Any] = column if kinds <= _SCALARS else list(map(known, column))
    if bool in kinds:
        values = [(value,) if value is True or value is False else value for value in values]
    return list(map(table.__getitem__, values))


class DimensionPlaces:
    """What the rows' keys mean to the caller at the moment: one of few places, or None."""

    __slots__ = ("_epoch", "_memory", "_place_of", "_places", "dimension", "keys", "stream")

    def __init__(self, stream: str, dimension: Dimension, memory: KeyMemory | None = None) -> None:
        memory = self._memory = memory if memory is not None else KeyMemory()
        self.stream = stream
        self.dimension = dimension
        self.keys = RowKeys(stream, dimension, memory)
        self._places = _Table(self._place, memory)
        self._epoch: object = None
        self._place_of: Callable[[int], Any] = _nowhere

    def of(
        self,
        topics: Sequence[str],
        count: int,
        columns: Mapping[str, Sequence[Value]],
        epoch: object,
        place_of: Callable[[int], Any],
    ) -> list[Any]:
        """The place of each row; None for a row without a key, and wherever `place_of` says so.

        In one epoch `place_of` must go on giving the same answers: it is asked about each value once.
        """
        if epoch != self._epoch:
            self._epoch = epoch
            self._memory.forget(self._places)
        self._place_of = place_of
        return _look_up(self._places, self.dimension, topics, count, columns)

    def forget(self) -> None:
        """Give back the memory; the part that lets go of these places says so."""
        self._memory.forget(self._places)
        self.keys.forget()

    def _place(self, value: Any) -> Any:
        key = self.keys.key(value)
        return None if key is None else self._place_of(key)


def _nowhere(key: int) -> None:
    return None
