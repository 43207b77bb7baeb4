"""What brokers say to each other to count: for which lists one asks, and what is on them. Both travel as Control.

    ASK     [number, address, hops, stream, [[shelf, [key, ...]], ...]]
    LISTS   [number, [[home, life], ...], [[shelf, key, piece, last, [home's place, number, attributes, ...]], ...]]

`number` is the asker's, `address` where he is reached: whoever does not answer for a key hands its part of the question
on, and the answer goes straight back. A list may come in pieces, of which the last says so; they arrive in order, or
the last ones not at all, for a link loses nothing before it breaks. A first piece begins the list anew.

What others sent is read here, and ProtocolViolation raised at the first thing that cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Control

from ..keyspace import COUNT, RING_SIZE, Shelf, parse_shelf
from ..limits import ROUTE_HOPS_MAX
from ..placement import IDENTITIES_PER_MESSAGE_MAX, KEYS_PER_MESSAGE_MAX, SubscriptionId

__all__ = ["ASK", "LISTS", "Piece", "Question", "Spot", "ask_messages", "list_messages", "parse_ask", "parse_lists"]

ASK = 24
"""Kind of Control: what is on these lists?"""

LISTS = 25
"""Kind of Control: this is."""


class Spot(NamedTuple):
    """A list: a shelf, and a key on it."""

    shelf: Shelf
    key: int


@dataclass(slots=True)
class Question:
    """An ASK."""

    number: int
    address: str
    hops: int
    stream: str
    spots: list[Spot]


class Piece(NamedTuple):
    """A part of a list in an answer."""

    spot: Spot
    place: int
    last: bool
    identities: list[SubscriptionId]


def ask_messages(question: Question) -> Iterator[Control]:
    """The question, in as many messages as it takes."""
    for start in range(0, len(question.spots), KEYS_PER_MESSAGE_MAX):
        keys: dict[Shelf, list[int]] = {}
        for spot in question.spots[start : start + KEYS_PER_MESSAGE_MAX]:
            keys.setdefault(spot.shelf, []).append(spot.key)
        shelves = [[shelf.wire(), some] for shelf, some in keys.items()]
        yield Control(ASK, [question.number, question.address, question.hops, question.stream, shelves])


def parse_ask(body: list[Any]) -> Question:
    """A question as another broker wrote it."""
    match body:
        case [int(number), str(address), int(hops), str(stream), list(shelves)]:
            spots = [Spot(shelf, key) for shelf, keys in map(_shelf_and_keys, shelves) for key in keys]
            if 0 <= number < RING_SIZE and 0 <= hops <= ROUTE_HOPS_MAX and 0 < len(spots) <= KEYS_PER_MESSAGE_MAX:
                return Question(number, address, hops, stream, spots)
    raise ProtocolViolation("ASK is [number, address, hops, stream, shelves with their keys]")


def _shelf_and_keys(part: Any) -> tuple[Shelf, list[int]]:
    match part:
        case [wire, list(keys)] if all(type(key) is int and 0 <= key < RING_SIZE for key in keys):
            return _shelf(wire), keys
    raise ProtocolViolation("ASK: a shelf comes with a list of keys")


def _shelf(wire: Any) -> Shelf:
    shelf = parse_shelf(wire)
    if shelf.kind != COUNT:
        raise ProtocolViolation(f"there are no lists on the shelf of {shelf}")
    return shelf


def list_messages(number: int, lists: Iterable[tuple[Spot, Sequence[SubscriptionId]]]) -> Iterator[Control]:
    """The answer, in as many messages as it takes."""
    room, homes, pieces = IDENTITIES_PER_MESSAGE_MAX, dict[tuple[int, int], int](), list[list[Any]]()
    for spot, identities in lists:
        place = start = 0
        while True:
            some = identities[start : start + room]
            start += len(some)
            last = start == len(identities)
            flat: list[int] = []
            for one in some:
                flat += (homes.setdefault((one.broker, one.life), len(homes)), one.number, one.attributes)
            pieces.append([spot.shelf.wire(), spot.key, place, last, flat])
            room -= len(some)
            place += 1
            if room <= 0 or len(pieces) >= KEYS_PER_MESSAGE_MAX:
                yield Control(LISTS, [number, [list(home) for home in homes], pieces])
                room, homes, pieces = IDENTITIES_PER_MESSAGE_MAX, {}, []
            if last:
                break
    if pieces:
        yield Control(LISTS, [number, [list(home) for home in homes], pieces])


def parse_lists(body: list[Any]) -> tuple[int, list[Piece]]:
    """An answer as another broker wrote it: whose question it is, and what is on the lists."""
    match body:
        case [int(number), list(homes), list(pieces)] if all(map(_is_home, homes)):
            return number, [_piece(homes, part) for part in pieces]
    raise ProtocolViolation("LISTS is [number, homes with their lives, pieces of lists]")


def _is_home(part: Any) -> bool:
    return type(part) is list and len(part) == 2 and all(type(one) is int and 0 <= one < RING_SIZE for one in part)


def _piece(homes: list[Any], part: Any) -> Piece:
    match part:
        case [wire, int(key), int(place), bool(last), list(flat)] if 0 <= key < RING_SIZE and place >= 0:
            if len(flat) % 3 == 0 and all(type(one) is int and 0 <= one < RING_SIZE for one in flat):
                triples = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
                if all(index < len(homes) for index in flat[::3]) and all(attributes > 0 for attributes in flat[2::3]):
                    found = [
                        SubscriptionId(homes[index][0], number, attributes, homes[index][1])
                        for index, number, attributes in triples
                    ]
                    return Piece(Spot(_shelf(wire), key), place, last, found)
    raise ProtocolViolation("LISTS: a piece is [shelf, key, place, last, triples of home, number and attributes]")
