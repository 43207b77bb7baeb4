"""What the stores of two brokers say to each other, and what a store asks of its host.

An item travels as [name, low, high, version, value].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, NamedTuple

from ..effects import Note
from ..keyspace import RING_SIZE, Arc
from ..messages import (
    ANYTHING,
    IDENTIFIER,
    STORE,
    Field,
    Flag,
    Identifier,
    Unfit,
    choice,
    listed,
    record,
    whole,
)
from .limits import (
    BROKERS_MAX,
    ITEM_BYTES_MAX,
    LEASE_SECONDS,
    NAME_PARTS_MAX,
    NAME_TEXT_LENGTH_MAX,
    PAGE_BYTES_MAX,
    PAGE_ITEMS_MAX,
)

__all__ = [
    "Added",
    "Check",
    "Copied",
    "Copy",
    "CopyVerdict",
    "Fetch",
    "Granted",
    "Item",
    "KvEffect",
    "Lease",
    "Name",
    "Offer",
    "Page",
    "Paged",
    "Placed",
    "Put",
    "Removed",
    "Renew",
    "Renewal",
    "Renewed",
    "Route",
    "STORE",
    "SetOut",
    "Stored",
    "Stream",
    "Tell",
    "TellAll",
    "Told",
    "Unplaced",
    "Verdict",
    "View",
    "Walk",
    "item_bytes",
    "pages",
]

Name = tuple[str | int, ...]


def _read_name(value: Any) -> Name:
    if type(value) is not list or not 1 <= len(value) <= NAME_PARTS_MAX:
        raise Unfit
    for part in value:
        if type(part) is str:
            if len(part) > NAME_TEXT_LENGTH_MAX:
                raise Unfit
        elif type(part) is not int:
            raise Unfit
    return tuple(value)


_NAME = Field(f"a list of 1 to {NAME_PARTS_MAX} texts and whole numbers", _read_name, list, label="item name")


class Item(NamedTuple):
    """A thing that lives at every owner of a key of [low, high]. A name keeps its segment for life."""

    name: Annotated[Name, _NAME]
    low: Identifier
    high: Identifier
    version: Identifier
    value: Annotated[Any, ANYTHING]
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
    """No other broker can hold anything: there are no seeds, and none is known."""
    further: tuple[int, ...] = ()
    """Who comes after the siblings, as far as known: asked for keys of which the siblings have parts only."""


class CopyVerdict(IntEnum):
    """What became of copies at a sibling."""

    STORED = 0
    REFUSED = 1
    DIFFERENT = 2


class Renewal(IntEnum):
    """Answers to an owner that asks whether its keys are still its own."""

    YES = 0
    MINE = 1
    """The asked broker owns these keys itself."""
    ANOTHERS = 2
    """Another broker was promised some of them a moment ago."""


class Verdict(IntEnum):
    """What a broker that gained keys is sent: all that there is, parts, or a refusal."""

    WHOLE = 0
    PARTIAL = 1
    BUSY = 2
    MOVING = 3
    """Busy, by hearsay of a broker that hopes for the keys; up to HOPING the more directly."""
    HOPING = 7
    """Busy, and copies are coming, or a broker that may have them has not answered yet."""
    OWNED = 8
    """A living broker owns some of them: the asker has not heard of it, or lost those keys to it."""


@dataclass(slots=True)
class Tell:
    """Effect: carry this message to that broker. It may be lost when the link is down; in order within one link."""

    identifier: int
    message: Any


@dataclass(slots=True)
class Route:
    """Effect: carry this message to the owner of the key, which hands it to its own store. It may be lost."""

    key: int
    message: Any


@dataclass(slots=True)
class Placed:
    """Effect: every key of every item of this put is covered; a broker that answers for one of them knows the item."""

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
class Walk:
    """Inside a store: a broadcast did not reach all brokers, so these set out along the ring."""

    ticket: int
    items: list[Item]


@dataclass(slots=True)
class SetOut:
    """Inside a store: a part of a put of our own sets out to the owners of the keys from start to until."""

    ticket: int
    part: int
    start: int
    until: int
    items: list[Item]


KvEffect = Tell | Route | Placed | Unplaced | Added | Removed | SetOut | Walk | Note


# --- Items on the wire ------------------------------------------------------------------------------------------------


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


def pages(items: Iterable[Item], page_items: int = PAGE_ITEMS_MAX) -> Iterator[list[Item]]:
    """The same items in portions of what one message may carry; none when there are none."""
    page: list[Item] = []
    filled = 0
    for item in items:
        page.append(item)
        filled += item_bytes(item)
        if len(page) >= page_items or filled >= PAGE_BYTES_MAX:
            yield page
            page, filled = [], 0
    if page:
        yield page


_ITEM = record(Item, lambda item: item_bytes(item) <= ITEM_BYTES_MAX)
Items = Annotated[Sequence[Item], listed(_ITEM, PAGE_ITEMS_MAX)]
SomeItems = Annotated[Sequence[Item], listed(_ITEM, PAGE_ITEMS_MAX, 1)]


# --- The messages -----------------------------------------------------------------------------------------------------


@STORE.message(1)
@dataclass(slots=True)
class Put:
    """A put of `origin`, to the owner of `start`: store these items from there to `until`."""

    origin: Identifier
    ticket: Identifier
    part: Identifier
    start: Identifier
    until: Identifier
    hops: Identifier
    items: SomeItems

    def check(self) -> str:
        """The items share one segment, which `start` and `until` lie in."""
        low, high = self.items[0].low, self.items[0].high
        if any(item.low != low or item.high != high for item in self.items):
            return "its items have different segments"
        segment = Arc((low - 1) % RING_SIZE, high)
        if not (segment.covers(self.start) and segment.covers(self.until)):
            return "it starts or ends outside the segment of its items"
        if (self.until - low) % RING_SIZE < (self.start - low) % RING_SIZE:
            return "it ends before it starts"
        return ""


@STORE.message(2)
@dataclass(slots=True)
class Stored:
    """An owner confirms a put from `start` to `last`; goes to where its origin is, or was."""

    origin: Identifier
    ticket: Identifier
    part: Identifier
    start: Identifier
    last: Identifier


@STORE.message(3)
@dataclass(slots=True)
class Stream:
    """An owner sends a sibling a page of all that lies in (after, upto]."""

    sequence: Identifier
    first: Flag
    last: Flag
    after: Identifier
    upto: Identifier
    items: Items


@STORE.message(4)
@dataclass(slots=True)
class Copy:
    """An owner sends a sibling a write."""

    sequence: Identifier
    items: Items


@STORE.message(5)
@dataclass(slots=True)
class Copied:
    """A sibling has stored everything up to this, or says why not."""

    sequence: Identifier
    verdict: Annotated[int, choice(CopyVerdict)]


@STORE.message(6)
@dataclass(slots=True)
class Offer:
    """A sibling tells an owner what it was not sent, or was sent in an older version."""

    items: Items


@STORE.message(7)
@dataclass(slots=True)
class Lease:
    """A sibling asks an owner whether it may go on answering for its keys."""

    number: Identifier


@STORE.message(8)
@dataclass(slots=True)
class Granted:
    """It may, for the keys of (after, owner], so long from when it asked; 0: it is no sibling any more."""

    number: Identifier
    after: Identifier
    milliseconds: Annotated[int, whole(int(LEASE_SECONDS * 1000))]


@STORE.message(9)
@dataclass(slots=True)
class Renew:
    """An owner asks its first sibling: are the keys of (after, owner] still mine?"""

    number: Identifier
    after: Identifier


@STORE.message(10)
@dataclass(slots=True)
class Renewed:
    """The first sibling's answer."""

    number: Identifier
    verdict: Annotated[int, choice(Renewal)]


@STORE.message(11)
@dataclass(slots=True)
class Fetch:
    """A broker that gained the keys of (after, last] asks a sibling for what is there.

    `anyway`: it has waited long enough for others; `whole`: it has a copy, with this count and digest.
    """

    number: Identifier
    after: Identifier
    last: Identifier
    anyway: Flag
    whole: Flag
    count: Identifier
    digest: Identifier


@STORE.message(12)
@dataclass(slots=True)
class Page:
    """The answer, page after page."""

    number: Identifier
    last: Flag
    verdict: Annotated[int, whole(max(Verdict))]
    items: Items


@STORE.message(13)
@dataclass(slots=True)
class Paged:
    """A page was taken in."""

    number: Identifier


@STORE.message(14)
@dataclass(slots=True)
class Check:
    """An owner asks a sibling whether it holds the same of (after, owner]: so many items, with this digest."""

    sequence: Identifier
    after: Identifier
    count: Identifier
    digest: Identifier


Brokers = Annotated[Sequence[int], listed(IDENTIFIER, BROKERS_MAX)]


@STORE.message(15)
@dataclass(slots=True)
class TellAll:
    """The origin of items of the whole ring tells every broker at once: store these."""

    ticket: Identifier
    items: SomeItems


@STORE.message(16)
@dataclass(slots=True)
class Told:
    """They are stored here.

    `ready`: the keys of (after, sender] are the sender's beyond doubt, and only these siblings and it answer for
    them; `owners`: of whose keys it has whole copies that are kept up to date.
    """

    ticket: Identifier
    ready: Flag
    after: Identifier
    siblings: Brokers
    owners: Brokers
