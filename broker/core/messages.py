"""Declares what brokers say to each other: typed messages, whose fields say what they may hold.

A message between brokers travels in an envelope of the wire, LETTER or CONTROL, as a kind (a number) and a list. Here
that list has a type. Each room declares its own messages as dataclasses, in its `messages.py`:

    @CONTROLS.message(16)
    @dataclass(slots=True)
    class Loss:
        \"\"\"So many events of a stream were lost on their way to their subscribers.\"\"\"

        stream: Text
        count: Counter

`CONTROLS.write(Loss("quotes", 3))` is `(16, ["quotes", 3])`, and `CONTROLS.read(16, ["quotes", 3])` the message again.
Whatever does not fit is a ProtocolViolation that names the message and the field, so no other part looks at what
another broker sent; what only two fields together can say wrong is told by the message's own `check`. There are two
vocabularies because a LETTER names the lives of both ends and a CONTROL does not. SPEC.md section 18.3 is drawn from
them, and a property test writes, spoils and reads every message that is declared.

The kinds of fields are values of `Field`; an annotation has the type in memory and the kind on the wire beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import ATTRIBUTE_NAME_LENGTH_MAX, CREDIT_MAX, TEXT_LENGTH_MAX

__all__ = [
    "ADDRESS_LENGTH_MAX",
    "ANYTHING",
    "CONTROLS",
    "Declared",
    "COUNTER",
    "IDENTIFIER",
    "LETTERS",
    "STORE",
    "MAP",
    "TEXT",
    "Address",
    "Counter",
    "Field",
    "Flag",
    "Identifier",
    "Name",
    "Text",
    "Unfit",
    "Vocabulary",
    "binary",
    "choice",
    "declared",
    "listed",
    "nested",
    "nullable",
    "record",
    "text",
    "whole",
]

ADDRESS_LENGTH_MAX = 300
"""A host name has at most 253 characters; the rest is the port."""

M = TypeVar("M")


class Unfit(Exception):
    """This value is not what a field may hold."""


@dataclass(frozen=True, slots=True)
class Field:
    """A kind of field: what it may hold (`wanted`, in words), how it is read and how it is written.

    `read` raises Unfit. `write` is None where the value travels as it is. `parts` are the kinds that it is made of;
    with `bound` (the largest number, or length) and `label` they tell a property test how to make an example.
    """

    wanted: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] | None = None
    parts: tuple[Field, ...] = ()
    bound: int = 0
    label: str = ""


def _as(check: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if check(value):
            return value
        raise Unfit

    return read


def whole(most: int) -> Field:
    """A whole number from 0 to `most`."""
    return Field(
        f"a whole number from 0 to {_power(most)}",
        _as(lambda value: type(value) is int and 0 <= value <= most),
        bound=most,
        label="whole",
    )


def _power(number: int) -> str:
    """A large number as people know it: 2^53, 2^64 - 1."""
    if number < 2**20 or (number & (number - 1) and number & (number + 1)):
        return str(number)
    return f"2^{number.bit_length()} - 1" if number & 1 else f"2^{number.bit_length() - 1}"


def choice(kind: type[IntEnum]) -> Field:
    """One of the numbers of an enumeration."""
    known = {int(one): one.name.lower().replace("_", " ") for one in kind}
    names = ", ".join(f"{one} ({known[one]})" for one in sorted(known))
    return Field(
        f"one of {names}", _as(lambda value: type(value) is int and value in known), bound=max(known), label="choice"
    )


def text(most: int, least: int = 0) -> Field:
    """A string of `least` to `most` characters."""
    wanted = f"a string of {least} to {most} characters" if least else f"a string of at most {most} characters"
    return Field(
        wanted, _as(lambda value: type(value) is str and least <= len(value) <= most), bound=most, label="text"
    )


def binary(most: int) -> Field:
    """Bytes, at most so many."""
    return Field(
        f"a bin of at most {most} bytes",
        _as(lambda value: type(value) is bytes and len(value) <= most),
        bound=most,
        label="binary",
    )


def listed(field: Field, most: int, least: int = 0) -> Field:
    """A list of values of one kind; a tuple in memory."""
    read_one, write_one = field.read, field.write

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or not least <= len(value) <= most:
            raise Unfit
        return tuple([read_one(one) for one in value])

    def write(values: tuple[Any, ...]) -> list[Any]:
        return list(values) if write_one is None else [write_one(one) for one in values]

    count = f"{least} to {most}" if least else f"at most {most}"
    return Field(f"a list of {count}, each {field.wanted}", read, write, (field,), most, "listed")


def nullable(field: Field) -> Field:
    """The same, or nil; None in memory."""
    read_one, write_one = field.read, field.write

    def read(value: Any) -> Any:
        return None if value is None else read_one(value)

    def write(value: Any) -> Any:
        return value if value is None or write_one is None else write_one(value)

    return Field(f"nil or {field.wanted}", read, write, (field,), label="nullable")


def record(kind: type[M], check: Callable[[M], bool] | None = None) -> Field:
    """A NamedTuple whose fields are annotated like a message's; a list of them on the wire."""
    fields = _fields_of(kind)
    kinds = [field for _, field in fields]
    readers = [field.read for field in kinds]
    writers = [(place, field.write) for place, field in enumerate(kinds) if field.write is not None]
    names = ", ".join(name for name, _ in fields)

    def read(value: Any) -> M:
        if type(value) is not list or len(value) != len(readers):
            raise Unfit
        made = kind(*[read_one(part) for read_one, part in zip(readers, value, strict=True)])
        if check is not None and not check(made):
            raise Unfit
        return made

    def write(value: Any) -> list[Any]:
        parts = list(value)
        for place, write_one in writers:
            assert write_one is not None
            parts[place] = write_one(parts[place])
        return parts

    return Field(f"[{names}]", read, write, tuple(kinds), label="record")


IDENTIFIER = whole(2**64 - 1)
COUNTER = whole(CREDIT_MAX)
FLAG = Field("true or false", _as(lambda value: type(value) is bool), label="flag")
NAME = text(ATTRIBUTE_NAME_LENGTH_MAX)
TEXT = text(TEXT_LENGTH_MAX)
ADDRESS = text(ADDRESS_LENGTH_MAX)
ANYTHING = Field("anything", lambda value: value, label="anything")
MAP = Field("a map with string keys", _as(lambda value: type(value) is dict), label="map")

Identifier = Annotated[int, IDENTIFIER]
Counter = Annotated[int, COUNTER]
Flag = Annotated[bool, FLAG]
Name = Annotated[str, NAME]
Text = Annotated[str, TEXT]
Address = Annotated[str, ADDRESS]


def _fields_of(kind: type[Any]) -> list[tuple[str, Field]]:
    """The fields of a declaration, in order."""
    found: list[tuple[str, Field]] = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        fields = [one for one in get_args(hint) if isinstance(one, Field)]
        assert len(fields) == 1, f"{kind.__name__}.{name} does not say what it may hold"
        found.append((name, fields[0]))
    return found


@dataclass(frozen=True, slots=True)
class Declared:
    """A message of a vocabulary: its kind, its class, and the names and kinds of its fields."""

    kind: int
    message: type[Any]
    fields: tuple[tuple[str, Field], ...]
    has_check: bool

    def write(self, message: Any) -> list[Any]:
        """The fields in order, as they travel."""
        return [
            getattr(message, name) if field.write is None else field.write(getattr(message, name))
            for name, field in self.fields
        ]

    def read(self, body: Any) -> Any:
        """The message of these fields. Raises ProtocolViolation."""
        if type(body) is not list or len(body) != len(self.fields):
            count = f"{len(body)}" if type(body) is list else "no list of them"
            raise ProtocolViolation(f"{self.message.__name__} has {len(self.fields)} fields, not {count}")
        parts: list[Any] = []
        for (name, field), value in zip(self.fields, body, strict=True):
            try:
                parts.append(field.read(value))
            except Unfit:
                text = f"{self.message.__name__}: {name} is not {field.wanted}"
                raise ProtocolViolation(text[:300]) from None
        message = self.message(*parts)
        if self.has_check:
            complaint = message.check()
            if complaint:
                raise ProtocolViolation(f"{self.message.__name__}: {complaint}")
        return message


def declared(message: type[Any], kind: int = -1) -> Declared:
    """What a dataclass with annotated fields declares; without a kind it is a part of an envelope."""
    return Declared(kind, message, tuple(_fields_of(message)), hasattr(message, "check"))


class Vocabulary:
    """Holds every message of one envelope by its kind, and by its class."""

    def __init__(self, envelope: str) -> None:
        self.envelope = envelope
        self._by_kind: dict[int, Declared] = {}
        self._by_class: dict[type[Any], Declared] = {}

    def message(self, kind: int) -> Callable[[type[M]], type[M]]:
        """Declare a dataclass as the message of this kind. A kind is given once, and never to another message."""
        assert kind not in self._by_kind, f"{self.envelope} {kind} is {self._by_kind[kind].message.__name__} already"

        def declare(message: type[M]) -> type[M]:
            self._by_kind[kind] = self._by_class[message] = declared(message, kind)
            return message

        return declare

    def __iter__(self) -> Iterator[Declared]:
        return iter([self._by_kind[kind] for kind in sorted(self._by_kind)])

    def kind_of(self, message: type[Any]) -> int:
        """The kind under which a message travels."""
        return self._by_class[message].kind

    def write(self, message: Any) -> tuple[int, list[Any]]:
        """What travels: the kind and the fields."""
        known = self._by_class[type(message)]
        return known.kind, known.write(message)

    def read(self, kind: int, body: Any) -> Any:
        """The message that travelled. Raises ProtocolViolation."""
        known = self._by_kind.get(kind)
        if known is None:
            raise ProtocolViolation(f"no {self.envelope} has kind {kind}")
        return known.read(body)


LETTERS = Vocabulary("LETTER")
"""What the lives of two brokers say about the ring."""

CONTROLS = Vocabulary("CONTROL")
"""Everything else that is small."""

STORE = Vocabulary("STORE")
"""What the stores of keys say; carried in CONTROL, to a broker or to the owner of a key."""


def nested(vocabulary: Vocabulary) -> Field:
    """Another message inside a message: [kind, fields]."""

    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != 2 or type(value[0]) is not int:
            raise Unfit
        return vocabulary.read(value[0], value[1])

    def write(message: Any) -> list[Any]:
        return list(vocabulary.write(message))

    return Field(f"[kind, fields] of another {vocabulary.envelope}", read, write, label="nested")
