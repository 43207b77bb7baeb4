"""What brokers say to each other about events: that some were lost, and which subscriptions are on which lists.

A question for lists (ASK) names each list by its dimension and a key on it. A broker that does not answer for a key
hands its part of the question on, and the answer (LISTS) goes straight back to the asker. A list may come in pieces, of
which the last says so; they arrive in order, or the last ones not at all, for a link loses nothing before it breaks. A
first piece begins the list anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from headgate.protocol.errors import ProtocolViolation

from ..keyspace import COUNT, Dimension, parse_dimension
from ..limits import ROUTE_HOPS_MAX
from ..messages import CONTROLS, IDENTIFIER, Address, Counter, Field, Flag, Identifier, Text, listed, record, whole
from ..placement import IDENTITIES_PER_MESSAGE_MAX, KEYS_PER_MESSAGE_MAX, SubscriptionId

__all__ = ["AskLists", "Lists", "Loss", "Piece", "Spot", "ask_messages", "list_messages"]


@CONTROLS.message(16)
@dataclass(slots=True)
class Loss:
    """So many events of a stream were lost on their way to their subscribers."""

    stream: Text
    count: Counter

    def check(self) -> str:
        """A loss is of something."""
        return "" if self.count else "no event was lost"


def _read_dimension(value: Any) -> Dimension:
    dimension = parse_dimension(value)
    if dimension.kind != COUNT:
        raise ProtocolViolation(f"there are no lists on the dimension of {dimension}")
    return dimension


COUNTED = Annotated[
    Dimension, Field("a dimension that is counted on", _read_dimension, Dimension.wire, label="dimension")
]


class Spot(NamedTuple):
    """A list: a dimension, and a key on it."""

    dimension: Dimension
    key: int


class DimensionKeys(NamedTuple):
    """Lists of one dimension: the keys."""

    dimension: COUNTED
    keys: Annotated[tuple[int, ...], listed(IDENTIFIER, KEYS_PER_MESSAGE_MAX)]


@CONTROLS.message(24)
@dataclass(slots=True)
class AskLists:
    """What is on these lists? Numbered by the broker that asks, which is reached at `address`."""

    number: Identifier
    address: Address
    hops: Annotated[int, whole(ROUTE_HOPS_MAX)]
    stream: Text
    lists: Annotated[tuple[DimensionKeys, ...], listed(record(DimensionKeys), KEYS_PER_MESSAGE_MAX)]

    def check(self) -> str:
        """An answer has to stay within bounds."""
        count = sum(len(one.keys) for one in self.lists)
        return "" if 0 < count <= KEYS_PER_MESSAGE_MAX else f"1 to {KEYS_PER_MESSAGE_MAX} lists, not {count}"

    @property
    def spots(self) -> list[Spot]:
        """The lists, one by one."""
        return [Spot(dimension, key) for dimension, keys in self.lists for key in keys]


class Home(NamedTuple):
    """One life of a broker that subscriptions belong to."""

    broker: Identifier
    life: Identifier


class WirePiece(NamedTuple):
    """A part of a list: its place among the parts; of each subscription the place of its home, number, attributes."""

    dimension: COUNTED
    key: Identifier
    place: Counter
    last: Flag
    subscriptions: Annotated[tuple[int, ...], listed(IDENTIFIER, 3 * IDENTITIES_PER_MESSAGE_MAX)]


class Piece(NamedTuple):
    """A part of a list in an answer."""

    spot: Spot
    place: int
    last: bool
    identities: list[SubscriptionId]


@CONTROLS.message(25)
@dataclass(slots=True)
class Lists:
    """This is on them: subscriptions by the place of their home in `homes`."""

    number: Identifier
    homes: Annotated[tuple[Home, ...], listed(record(Home), IDENTITIES_PER_MESSAGE_MAX)]
    parts: Annotated[tuple[WirePiece, ...], listed(record(WirePiece), KEYS_PER_MESSAGE_MAX)]

    def check(self) -> str:
        """Subscriptions have a home that is named, and speak of an attribute."""
        for part in self.parts:
            flat = part.subscriptions
            if len(flat) % 3 or not all(flat[2::3]) or max(flat[::3], default=-1) >= len(self.homes):
                return "subscriptions are triples of a home, a number and how many attributes it has"
        return ""

    def pieces(self) -> Iterator[Piece]:
        """The parts, with the subscriptions' identities."""
        homes = self.homes
        for dimension, key, place, last, flat in self.parts:
            found = [
                SubscriptionId(homes[at].broker, number, attributes, homes[at].life)
                for at, number, attributes in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
            ]
            yield Piece(Spot(dimension, key), place, last, found)


def ask_messages(number: int, address: str, hops: int, stream: str, spots: Sequence[Spot]) -> Iterator[AskLists]:
    """The question, in as many messages as it takes."""
    for start in range(0, len(spots), KEYS_PER_MESSAGE_MAX):
        keys: dict[Dimension, list[int]] = {}
        for spot in spots[start : start + KEYS_PER_MESSAGE_MAX]:
            keys.setdefault(spot.dimension, []).append(spot.key)
        lists = tuple(DimensionKeys(dimension, tuple(some)) for dimension, some in keys.items())
        yield AskLists(number, address, hops, stream, lists)


def list_messages(number: int, lists: Iterable[tuple[Spot, Sequence[SubscriptionId]]]) -> Iterator[Lists]:
    """The answer, in as many messages as it takes."""
    room, homes, parts = IDENTITIES_PER_MESSAGE_MAX, dict[Home, int](), list[WirePiece]()
    for spot, identities in lists:
        place = start = 0
        while True:
            some = identities[start : start + room]
            start += len(some)
            last = start == len(identities)
            flat: list[int] = []
            for one in some:
                flat += (homes.setdefault(Home(one.broker, one.life), len(homes)), one.number, one.attributes)
            parts.append(WirePiece(spot.dimension, spot.key, place, last, tuple(flat)))
            room -= len(some)
            place += 1
            if room <= 0 or len(parts) >= KEYS_PER_MESSAGE_MAX:
                yield Lists(number, tuple(homes), tuple(parts))
                room, homes, parts = IDENTITIES_PER_MESSAGE_MAX, {}, []
            if last:
                break
    if parts:
        yield Lists(number, tuple(homes), tuple(parts))
