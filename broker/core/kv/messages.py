"""What the keyed stores of two brokers say to each other, and what a store asks of its host.

A message is a kind and a list, within what msgpack can say. Items travel as [name, low, high, version, value]. What
others sent is read by the functions here, which raise ProtocolViolation at the first thing that cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from headgate.protocol.errors import ProtocolViolation

from ..effects import Note
from ..keyspace import RING_SIZE, Stretch
from .limits import ITEM_BYTES_MAX, LEASE_SECONDS, NAME_PARTS_MAX, NAME_TEXT_LENGTH_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX

__all__ = [
    "Added",
    "Copied",
    "Item",
    "KeyedEffect",
    "Kind",
    "Name",
    "Placed",
    "Removed",
    "Renewal",
    "Route",
    "SetOut",
    "Tell",
    "Unplaced",
    "Verdict",
    "View",
    "checked_body",
    "item_bytes",
    "items_of",
    "pages",
    "written",
]

Name = tuple[str | int, ...]


class Item(NamedTuple):
    """A thing that lives at every owner of a key of [low, high]. A name keeps its segment for life."""

    name: Name
    low: int
    high: int
    version: int
    value: Any | None
    """None: a tombstone."""

    @property
    def rank(self) -> tuple[int, bool]:
        """Of two items of one name the one of higher rank stays: the newer, and of two equally old the tombstone."""
        return self.version, self.value is None


class View(NamedTuple):
    """What the ring says at this moment."""

    after: int
    """The broker before us: our keys are (after, me]; all of them when both are one."""
    me: int
    siblings: tuple[int, ...]
    """The next r live brokers, nearest first; fewer when there are fewer."""
    serving: bool
    """The ring has adopted us: the broker before us knows us."""
    certain: bool = False
    """Nobody else can hold anything: no seeds, and nobody known."""
    further: tuple[int, ...] = ()
    """Who comes after the siblings, as far as known: asked for keys of which the siblings have parts only."""


class Kind(IntEnum):
    """The messages. The names in brackets are the parts of the list."""

    PUT = 1
    """[origin, ticket, part, start, until, hops, items] to the owner of `start`: store these from there to `until`."""
    STORED = 2
    """[origin, ticket, part, start, last] to the origin: confirmed from start to last. Goes to where he is, or was."""
    STREAM = 3
    """[sequence, first, last, after, upto, items] owner to sibling: a page of all that lies in (after, upto]."""
    COPY = 4
    """[sequence, items] owner to sibling: a write."""
    COPIED = 5
    """[sequence, verdict] sibling to owner: everything up to this is stored here; or why not."""
    OFFER = 6
    """[items] sibling to owner: you did not send me these, or older."""
    LEASE = 7
    """[number] sibling to owner: may I go on answering for your keys?"""
    GRANTED = 8
    """[number, after, milliseconds] owner to sibling: for those of (after, me], so long from when you asked; or 0, when
    he counts you among his siblings no longer."""
    RENEW = 9
    """[number, after] owner to first sibling: are the keys of (after, me] still mine?"""
    RENEWED = 10
    """[number, verdict] first sibling to owner."""
    FETCH = 11
    """[number, after, last, anyway, whole, count, digest] new owner to sibling: these are mine now; what is there?"""
    PAGE = 12
    """[number, last, verdict, items] the answer, page after page."""
    PAGED = 13
    """[number] a page was taken in."""
    CHECK = 14
    """[sequence, after, count, digest] owner to sibling: do you hold the same?"""


class Copied(IntEnum):
    """Verdicts of COPIED."""

    STORED = 0
    REFUSED = 1
    DIFFERENT = 2


class Renewal(IntEnum):
    """Verdicts of RENEWED."""

    YES = 0
    MINE = 1
    """The asked broker owns these keys itself."""
    ANOTHERS = 2
    """Somebody else was promised some of them a moment ago."""


class Verdict(IntEnum):
    """What the pages of a PAGE are."""

    WHOLE = 0
    PARTIAL = 1
    BUSY = 2
    MOVING = 3
    """Busy, by hearsay of somebody who hopes for the keys; up to HOPING the more directly."""
    HOPING = 7
    """Busy, and copies are coming, or somebody who may have them has not answered yet."""
    OWNED = 8
    """Somebody lives who owns some of them: the asker has not heard of him, or lost those keys to him."""


@dataclass(slots=True)
class Tell:
    """Effect: carry this to that broker. It may be lost when the link is down; in order within one link."""

    identifier: int
    kind: int
    body: list[Any]


@dataclass(slots=True)
class Route:
    """Effect: carry this to the owner of the key, who hands it to its own store. It may be lost."""

    key: int
    kind: int
    body: list[Any]


@dataclass(slots=True)
class Placed:
    """Effect: every key of every item of this put is covered; whoever answers for one of them knows the item."""

    ticket: int


@dataclass(slots=True)
class Unplaced:
    """Effect: given up. Some brokers may have the items nevertheless."""

    ticket: int


@dataclass(slots=True)
class Added:
    """Effect: this item is held from now on, as owner or for another."""

    item: Item


@dataclass(slots=True)
class Removed:
    """Effect: this item is held no longer; an update is Removed and Added."""

    item: Item


@dataclass(slots=True)
class SetOut:
    """Inside a store: a part of a put of our own sets out to the owners of the keys from start to until."""

    ticket: int
    part: int
    start: int
    until: int
    items: list[Item]


KeyedEffect = Tell | Route | Placed | Unplaced | Added | Removed | SetOut | Note


# --- Writing and reading ----------------------------------------------------------------------------------------------


def written(items: Iterable[Item]) -> list[Any]:
    """Items as they travel."""
    return [[list(item.name), item.low, item.high, item.version, item.value] for item in items]


_COUNTED_LENGTH = 4096
"""Characters of a string whose bytes are counted and not guessed: a long list has to fit."""


def _value_bytes(value: Any) -> int:
    kind = type(value)
    if kind is str:
        if len(value) > _COUNTED_LENGTH and not value.isascii():
            return len(value.encode("utf-8", "surrogatepass")) + 5
        return len(value) * (1 if value.isascii() else 4) + 5
    if kind is bytes:
        return len(value) + 5
    if kind is list or kind is tuple:
        return sum(map(_value_bytes, value)) + 5
    if kind is dict:
        return sum(_value_bytes(key) + _value_bytes(one) for key, one in value.items()) + 5
    return 9


def item_bytes(item: Item) -> int:
    """An upper estimate of what it takes on the wire."""
    return _value_bytes(item.name) + _value_bytes(item.value) + 32


def pages(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The same items in portions of what one message may carry; none when there are none."""
    page: list[Item] = []
    filled = 0
    for item in items:
        page.append(item)
        filled += item_bytes(item)
        if len(page) >= PAGE_ITEMS_MAX or filled >= PAGE_BYTES_MAX:
            yield page
            page, filled = [], 0
    if page:
        yield page


def _wrong(what: str) -> ProtocolViolation:
    return ProtocolViolation(f"a store message between brokers is wrong: {what}")


def items_of(body: Any) -> list[Item]:
    """The items of a message, each checked."""
    if not isinstance(body, list) or len(body) > PAGE_ITEMS_MAX:
        raise _wrong(f"its items are no list of at most {PAGE_ITEMS_MAX}")
    return [_item_of(each) for each in body]


def _item_of(body: Any) -> Item:
    if not isinstance(body, list) or len(body) != 5:
        raise _wrong("an item is not [name, low, high, version, value]")
    name, low, high, version, value = body
    if not isinstance(name, list) or not 1 <= len(name) <= NAME_PARTS_MAX:
        raise _wrong(f"the name of an item is no list of 1 to {NAME_PARTS_MAX} parts")
    for part in name:
        if type(part) is str:
            if len(part) > NAME_TEXT_LENGTH_MAX:
                raise _wrong(f"a part of a name has more than {NAME_TEXT_LENGTH_MAX} characters")
        elif type(part) is not int:
            raise _wrong("a part of a name is neither text nor a whole number")
    for number in (low, high, version):
        if type(number) is not int or not 0 <= number < RING_SIZE:
            raise _wrong("low, high and version of an item are numbers from 0 to 2^64 - 1")
    item = Item(tuple(name), low, high, version, value)
    if item_bytes(item) > ITEM_BYTES_MAX:
        raise _wrong(f"an item has more than {ITEM_BYTES_MAX} bytes")
    return item


_NUMBER, _FLAG, _ITEMS = "number", "flag", "items"

_SHAPES: dict[int, tuple[tuple[str, ...], dict[int, int]]] = {
    Kind.PUT: ((_NUMBER,) * 6 + (_ITEMS,), {}),
    Kind.STORED: ((_NUMBER,) * 5, {}),
    Kind.STREAM: ((_NUMBER, _FLAG, _FLAG, _NUMBER, _NUMBER, _ITEMS), {}),
    Kind.COPY: ((_NUMBER, _ITEMS), {}),
    Kind.COPIED: ((_NUMBER, _NUMBER), {1: max(Copied)}),
    Kind.OFFER: ((_ITEMS,), {}),
    Kind.LEASE: ((_NUMBER,), {}),
    Kind.GRANTED: ((_NUMBER,) * 3, {2: int(LEASE_SECONDS * 1000)}),
    Kind.RENEW: ((_NUMBER, _NUMBER), {}),
    Kind.RENEWED: ((_NUMBER, _NUMBER), {1: max(Renewal)}),
    Kind.FETCH: ((_NUMBER,) * 3 + (_FLAG, _FLAG, _NUMBER, _NUMBER), {}),
    Kind.PAGE: ((_NUMBER, _FLAG, _NUMBER, _ITEMS), {2: max(Verdict)}),
    Kind.PAGED: ((_NUMBER,), {}),
    Kind.CHECK: ((_NUMBER,) * 4, {}),
}
"""Kind -> what the parts are, and the largest value of those that have a smaller one than 2^64 - 1."""


def checked_body(kind: int, body: Any) -> list[Any]:
    """The parts of a message, items made into Items; ProtocolViolation when it is none."""
    shape = _SHAPES.get(kind)
    if shape is None:
        raise _wrong(f"there is no kind {kind}")
    parts, largest = shape
    label = Kind(kind).name
    if not isinstance(body, list) or len(body) != len(parts):
        raise _wrong(f"{label} is no list of {len(parts)} parts")
    read: list[Any] = []
    for place, (part, value) in enumerate(zip(parts, body, strict=True)):
        if part is _ITEMS:
            read.append(items_of(value))
            continue
        if part is _FLAG:
            if type(value) is not bool:
                raise _wrong(f"part {place} of {label} is not true or false")
        elif type(value) is not int or not 0 <= value <= largest.get(place, RING_SIZE - 1):
            raise _wrong(f"part {place} of {label} is out of range")
        read.append(value)
    _check_stretch(kind, read)
    return read


def _check_stretch(kind: int, read: list[Any]) -> None:
    """Items of a PUT share one segment, which `start` and `until` lie in."""
    if kind != Kind.PUT:
        return
    start, until, items = read[3], read[4], read[6]
    if not items:
        raise _wrong("PUT has no items")
    low, high = items[0].low, items[0].high
    if any(item.low != low or item.high != high for item in items):
        raise _wrong("the items of a PUT have different segments")
    segment = Stretch((low - 1) % RING_SIZE, high)
    if not (segment.covers(start) and segment.covers(until)):
        raise _wrong("a PUT starts or ends outside the segment of its items")
    if (until - low) % RING_SIZE < (start - low) % RING_SIZE:
        raise _wrong("a PUT ends before it starts")
