"""Questions for lists and their answers: they travel whole, in as many messages as it takes; nonsense is refused."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.forwarding import AskLists, Lists, list_messages
from headgate.broker.core.forwarding.messages import Piece, Spot, ask_messages
from headgate.broker.core.keyspace import Dimension, count_dimension, declared_domain
from headgate.broker.core.messages import CONTROLS
from headgate.broker.core.placement import IDENTITIES_PER_MESSAGE_MAX, KEYS_PER_MESSAGE_MAX, SubscriptionId
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import ATTRIBUTE_NAME_LENGTH_MAX, PAGE_LENGTH_MAX
from headgate.protocol.messages import Control
from headgate.protocol.wire import decode, encode

PRICE = declared_domain("quotes", "price", 0, 20, 0.01)
DIMENSIONS = (count_dimension("symbol"), count_dimension("price", PRICE))

keys = st.integers(0, 2**64 - 1)
spots = st.builds(Spot, st.sampled_from(DIMENSIONS), keys)
identities = st.builds(SubscriptionId, keys, st.integers(1, 2**40), st.integers(1, 9), st.integers(0, 2**32))


def body(message: AskLists | Lists) -> list[Any]:
    """As it comes out of the codec at the other side."""
    read = decode(encode(Control(*CONTROLS.write(message))))
    assert isinstance(read, Control) and read.kind == CONTROLS.kind_of(type(message))
    return list(read.body)


def parse_ask(body: list[Any]) -> AskLists:
    return cast(AskLists, CONTROLS.read(CONTROLS.kind_of(AskLists), body))


def parse_lists(body: list[Any]) -> tuple[int, list[Piece]]:
    lists = cast(Lists, CONTROLS.read(CONTROLS.kind_of(Lists), body))
    return lists.number, list(lists.pieces())


def gathered(pieces: list[Piece]) -> dict[Spot, list[SubscriptionId]]:
    lists: dict[Spot, list[SubscriptionId]] = {}
    places: dict[Spot, int] = {}
    ended: set[Spot] = set()
    for piece in pieces:
        assert piece.place == places.get(piece.spot, 0) and piece.spot not in ended
        places[piece.spot] = piece.place + 1
        lists.setdefault(piece.spot, []).extend(piece.identities)
        if piece.last:
            ended.add(piece.spot)
    assert ended == set(lists)
    return lists


@given(st.lists(spots, min_size=1, max_size=20, unique=True), st.integers(0, 9))
def test_a_question_travels(some: list[Spot], hops: int) -> None:
    (message,) = ask_messages(5, "b1:7401", hops, "quotes", some)
    read = parse_ask(body(message))
    assert (read.number, read.address, read.hops, read.stream) == (5, "b1:7401", hops, "quotes")
    assert sorted(read.spots) == sorted(some)


@given(st.dictionaries(spots, st.lists(identities, max_size=5, unique=True), max_size=9))
def test_an_answer_travels(lists: dict[Spot, list[SubscriptionId]]) -> None:
    pieces: list[Piece] = []
    for message in list_messages(5, lists.items()):
        number, some = parse_lists(body(message))
        assert number == 5
        pieces += some
    assert gathered(pieces) == lists


@pytest.mark.parametrize(
    "length", [IDENTITIES_PER_MESSAGE_MAX * times + more for times in (1, 2) for more in (-1, 0, 1)]
)
def test_long_lists_come_in_pieces(length: int) -> None:
    long = [SubscriptionId(number % 3, number, 1, 1) for number in range(length)]
    lists = {Spot(DIMENSIONS[0], 1): long[:10], Spot(DIMENSIONS[0], 2): long, Spot(DIMENSIONS[1], 3): []}
    pieces: list[Piece] = []
    for message in list_messages(5, lists.items()):
        some = parse_lists(body(message))[1]
        assert sum(len(piece.identities) for piece in some) <= IDENTITIES_PER_MESSAGE_MAX
        pieces += some
    assert gathered(pieces) == lists


def test_the_largest_messages_fit() -> None:
    wide = [
        Dimension("count", f"{number:06}".ljust(ATTRIBUTE_NAME_LENGTH_MAX, "x"), 0, 0, 1, 0.1) for number in range(3000)
    ]
    some = [Spot(dimension, 2**64 - 1) for dimension in wide]
    asked = list(ask_messages(2**63, "b" * 300, 9, "q" * 1024, some))
    assert len(asked) == 3000 // KEYS_PER_MESSAGE_MAX
    identity = SubscriptionId(2**64 - 1, 2**63, 9, 2**32)
    told = list(
        list_messages(2**63, [(spot, [identity._replace(broker=spot.key - at)] * 4) for at, spot in enumerate(some)])
    )
    assert all(len(encode(Control(*CONTROLS.write(message)))) < PAGE_LENGTH_MAX // 2 for message in (*asked, *told))


QUESTION = [5, "b1:7401", 0, "quotes", [[["count", "symbol"], [1]]]]


@pytest.mark.parametrize(
    "wrong",
    [
        [], QUESTION[:4], [*QUESTION, 1], ["5", *QUESTION[1:]], [-1, *QUESTION[1:]], [5, 7, *QUESTION[2:]],
        [5, "b", -1, *QUESTION[3:]], [5, "b", 65, *QUESTION[3:]], [5, "b", 0, 7, QUESTION[4]],
        [*QUESTION[:4], 7], [*QUESTION[:4], []], [*QUESTION[:4], [7]], [*QUESTION[:4], [[["count", "symbol"], []]]],
        [*QUESTION[:4], [[["count", "symbol"], [-1]]]], [*QUESTION[:4], [[["count", "symbol"], [2**64]]]],
        [*QUESTION[:4], [[["count", "symbol"], [True]]]], [*QUESTION[:4], [[["equal", "symbol"], [1]]]],
        [*QUESTION[:4], [[["count"], [1]]]],
        [*QUESTION[:4], [[["count", "symbol"], list(range(KEYS_PER_MESSAGE_MAX + 1))]]],
    ],
)  # fmt: skip
def test_nonsense_is_no_question(wrong: list[Any]) -> None:
    with pytest.raises(ProtocolViolation):
        parse_ask(wrong)


ANSWER = [5, [[7, 1]], [[["count", "symbol"], 1, 0, True, [0, 3, 2]]]]


@pytest.mark.parametrize(
    "wrong",
    [
        [], ANSWER[:2], [*ANSWER, 1], ["5", *ANSWER[1:]], [5, 7, ANSWER[2]], [5, [7], ANSWER[2]], [5, [[7]], ANSWER[2]],
        [5, [[7, "1"]], ANSWER[2]], [5, [[7, -1]], ANSWER[2]], [5, [[2**64, 1]], ANSWER[2]], [*ANSWER[:2], 7],
        [*ANSWER[:2], [7]], [*ANSWER[:2], [[["equal", "symbol"], 1, 0, True, []]]],
        *([*ANSWER[:2], [[["count", "symbol"], *part]]] for part in (
            [-1, 0, True, []], [2**64, 0, True, []], [1, -1, True, []], [1, 0, 1, []], [1, 0, True, 7],
            [1, 0, True, [0, 3]], [1, 0, True, [1, 3, 2]], [1, 0, True, [0, 3, 0]], [1, 0, True, [0, -3, 2]],
            [1, 0, True, [0, 3.0, 2]], [1, 0, True],
        )),
    ],
)  # fmt: skip
def test_nonsense_is_no_answer(wrong: list[Any]) -> None:
    with pytest.raises(ProtocolViolation):
        parse_lists(wrong)


def test_an_answer_as_it_is() -> None:
    spot = Spot(DIMENSIONS[0], 1)
    assert parse_lists(ANSWER) == (5, [Piece(spot, 0, True, [SubscriptionId(7, 3, 2, 1)])])
