"""Counting as RANGE 3 has it: an entry a value, on lists that are a dictionary, with both placements of the paper.

What the Node does instead is told in `broker/core/placement/counting.py`: it stores a stretch of cells as one item.
Here every value has an entry of its own, so the figures of the paper come out, and the Node is tested against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from headgate.broker.core.keyspace import Domain, Span, equality_key
from headgate.broker.core.placement import SubscriptionId, declared, met, needs_of
from headgate.matching import Pattern, Tree, Value

__all__ = [
    "ENTRIES_MAX",
    "AnyOf",
    "Collection",
    "Constraint",
    "CountingScheme",
    "CountingStore",
    "Entry",
    "IdentifierLayout",
    "OneOf",
    "Placement",
    "Update",
    "constraints_of",
    "counting_scheme",
    "difference",
]

ENTRIES_MAX = 16_384
"""Entries of one subscription: each is a message to store. A wider range is anchored instead, once a broker."""


@dataclass(frozen=True, slots=True)
class IdentifierLayout:
    """How many bits each part has when a subID is one number (RANGE Figure 3)."""

    broker_bits: int = 64
    number_bits: int = 32
    attribute_bits: int = 9  # a schema declares at most 256

    def pack(self, identity: SubscriptionId) -> int:
        """Pack the three parts into one number, c1 first."""
        assert 0 <= identity.broker < 1 << self.broker_bits
        assert 0 <= identity.number < 1 << self.number_bits
        assert 0 < identity.attributes < 1 << self.attribute_bits
        upper = identity.broker << self.number_bits | identity.number
        return upper << self.attribute_bits | identity.attributes

    def unpack(self, packed: int) -> SubscriptionId:
        """The parts of a packed subID."""
        upper, attributes = divmod(packed, 1 << self.attribute_bits)
        broker, number = divmod(upper, 1 << self.number_bits)
        return SubscriptionId(broker, number, attributes)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A constraint by equality: the value, or one of several as in IN."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A constraint by ranges: a number in one of them, as in `price < 10 OR price > 990`."""

    spans: tuple[Span, ...]


Constraint: TypeAlias = OneOf | Span | AnyOf
"""What a subscription says about one attribute."""


class Entry(NamedTuple):
    """One place where a subID is stored: a list of an attribute at a key."""

    key: int
    attribute: str


class Placement(Enum):
    """Where the values of a declared attribute lie."""

    HASHED = "hashed"
    """RANGE 3.1: anywhere; a range of r values costs r ways across the ring."""
    ORDERED = "ordered"
    """RANGE 4.1: side by side; a range costs one way, and then a walk from successor to successor."""


@dataclass(frozen=True, slots=True)
class CountingScheme:
    """Turns constraints and events of one stream into entries; the same on every broker."""

    stream: str
    domains: Mapping[str, Domain] = field(default_factory=dict)
    placement: Placement = Placement.ORDERED
    on_grid: bool = False
    """Whether every value is a multiple of its attribute's precision, as in the paper."""

    def accepts(self, constraints: Mapping[str, Constraint]) -> bool:
        """Whether this can be stored by counting: spans of declared attributes only, and not too many entries."""
        size = 0
        for name, constraint in constraints.items():
            if isinstance(constraint, OneOf):
                size += len(constraint.values)
            elif name in self.domains:
                size += sum(len(self._cells(self.domains[name], span)) for span in _spans(constraint))
            else:
                return False
        return bool(constraints) and size <= ENTRIES_MAX

    def _cells(self, domain: Domain, span: Span) -> range:
        return domain.grid_cells(span) if self.on_grid else domain.span_cells(span)

    def entries(self, constraints: Mapping[str, Constraint]) -> list[Entry]:
        """Where a subscription is stored, attribute by attribute, each place once."""
        assert self.accepts(constraints), "ask `accepts` first"
        found: dict[Entry, None] = {}
        for name, constraint in constraints.items():
            found.update(dict.fromkeys(self._entries_of(name, constraint)))
        return list(found)

    def _entries_of(self, name: str, constraint: Constraint) -> Iterator[Entry]:
        if not isinstance(constraint, OneOf):
            domain = self.domains[name]
            for cell in chain.from_iterable(self._cells(domain, span) for span in _spans(constraint)):
                yield Entry(self._key_of_cell(domain, cell), name)
            return
        for value in constraint.values:
            key = self._key(name, value)
            if key is not None:
                yield Entry(key, name)

    def questions(self, event: Mapping[str, Value]) -> list[Entry]:
        """Which lists an event asks for: one for each of its attributes that has a value."""
        keys = ((self._key(name, value), name) for name, value in event.items())
        return [Entry(key, name) for key, name in keys if key is not None]

    def _key(self, name: str, value: Value) -> int | None:
        domain = self.domains.get(name)
        if domain is None or value is None or isinstance(value, (bool, str)):
            return equality_key(self.stream, name, value)
        return self._key_of_cell(domain, domain.cell(value))

    def _key_of_cell(self, domain: Domain, cell: int) -> int:
        if self.placement is Placement.ORDERED:
            return domain.key_of_cell(cell)
        key = equality_key(self.stream, domain.attribute, cell)
        assert key is not None
        return key


def _spans(constraint: Span | AnyOf) -> tuple[Span, ...]:
    return (constraint,) if isinstance(constraint, Span) else constraint.spans


class Update(NamedTuple):
    """What an update has to touch: new entries, and entries that are no longer."""

    store: list[Entry]
    remove: list[Entry]


def difference(old: Iterable[Entry], new: Iterable[Entry]) -> Update:
    """The entries in which two placements differ; what they share stays untouched (RANGE 3.1.2)."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    return Update([entry for entry in after if entry not in before], [entry for entry in before if entry not in after])


class CountingStore:
    """The lists that lie at the keys of one broker."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[Entry, dict[SubscriptionId, None]] = {}

    def __len__(self) -> int:
        """SubIDs stored, each as often as it is on a list."""
        return sum(map(len, self._lists.values()))

    def store(self, entry: Entry, identity: SubscriptionId) -> None:
        """Put a subID on a list; doing it again changes nothing."""
        self._lists.setdefault(entry, {})[identity] = None

    def remove(self, entry: Entry, identity: SubscriptionId) -> None:
        """Take a subID off a list, if it is on it."""
        identities = self._lists.get(entry)
        if identities is not None:
            identities.pop(identity, None)
            if not identities:
                del self._lists[entry]

    def list_at(self, entry: Entry) -> list[SubscriptionId]:
        """The answer to an event's question."""
        return list(self._lists.get(entry, ()))

    def entries(self) -> list[Entry]:
        """Every list that is not empty, in order of keys: what moves when ranges of keys change hands."""
        return sorted(self._lists)

    def validate(self) -> None:
        """Asserts that no list is empty."""
        assert all(self._lists.values()), "an empty list is removed"
        assert all(identity.attributes > 0 for identities in self._lists.values() for identity in identities)


class Collection:
    """The lists of one event, gathered where it was accepted, until all have come."""

    __slots__ = ("_lists", "_waiting")

    def __init__(self, questions: Sequence[Entry]) -> None:
        self._waiting = dict.fromkeys(questions)
        self._lists: list[list[SubscriptionId]] = []

    @property
    def complete(self) -> bool:
        """Whether every list has come."""
        return not self._waiting

    def add(self, entry: Entry, identities: Iterable[SubscriptionId]) -> None:
        """A list came; one that came before, or was not asked for, changes nothing."""
        if entry not in self._waiting:
            return
        del self._waiting[entry]
        self._lists.append(list(dict.fromkeys(identities)))

    def matches(self) -> list[SubscriptionId]:
        """The subIDs met on as many lists as they have attributes, in order."""
        assert self.complete, "a list is missing"
        return sorted(met(self._lists))


def constraints_of(
    pattern: Pattern, condition: Tree | None, schema: Mapping[str, Any] | None = None
) -> dict[str, Constraint]:
    """The same in the words of the paper (`counting.py`). Nothing: anchor it.

    It is what a condition needs, not all that it says: who is counted often enough is a candidate.
    """
    found: dict[str, Constraint] = {}
    for name, need in needs_of(pattern, condition, schema).items():
        domain = declared(pattern.stream, schema, name)
        if need.points is not None:
            found[name] = OneOf(tuple(need.points.values()))
        elif need.cells is not None and domain is not None:
            spans = tuple(_span_of(domain, one) for one in need.cells)
            found[name] = spans[0] if len(spans) == 1 else AnyOf(spans)
    return found


def counting_scheme(
    stream: str, schema: Mapping[str, Any] | None, placement: Placement = Placement.ORDERED
) -> CountingScheme:
    """The paper's placement with the domains that a schema declares."""
    attributes = schema.get("attributes") if schema is not None else None
    names = attributes if isinstance(attributes, Mapping) else {}
    domains = {name: domain for name in names if (domain := declared(stream, schema, name)) is not None}
    return CountingScheme(stream, domains, placement)


def _span_of(domain: Domain, cells: range) -> Span:
    """Numbers that lie in these cells; a bound that doubles cannot express so is left open."""
    first, last = cells[0], cells[-1]
    low, high = (domain.minimum + cell * domain.precision for cell in (first, last))
    return Span(low if 0 < domain.cell(low) <= first else None, high if last <= domain.cell(high) else None)
