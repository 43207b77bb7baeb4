"""What stores say to each other: read back as written, and refused at the first thing that cannot be."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import RING_SIZE
from headgate.broker.core.kv import Item
from headgate.broker.core.kv.limits import ITEM_BYTES_MAX, NAME_PARTS_MAX, NAME_TEXT_LENGTH_MAX, PAGE_ITEMS_MAX
from headgate.broker.core.kv.messages import item_bytes, pages
from headgate.broker.core.messages import STORE
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import PAGE_LENGTH_MAX
from tests.support.keyed_parts import Kind, item, written

numbers = st.integers(0, RING_SIZE - 1)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
names = st.lists(st.text(max_size=20) | st.integers(-(2**63), RING_SIZE - 1), min_size=1, max_size=6).map(tuple)
items = st.builds(Item, names, numbers, numbers, numbers, values)

GOOD: dict[Kind, list[Any]] = {
    Kind.PUT: [1, 2, 0, 5, 9, 0, written([item(1, 5, high=9)])],
    Kind.STORED: [0, 1, 2, 3, 4],
    Kind.STREAM: [1, True, False, 3, 4, []],
    Kind.COPY: [1, written([item(1, 5)])],
    Kind.COPIED: [1, 2],
    Kind.OFFER: [written([item(1, 5)])],
    Kind.LEASE: [1],
    Kind.GRANTED: [1, 2, 2500],
    Kind.RENEW: [1, 2],
    Kind.RENEWED: [1, 2],
    Kind.FETCH: [1, 2, 3, False, True, 4, 5],
    Kind.PAGE: [1, True, 0, []],
    Kind.PAGED: [1],
    Kind.CHECK: [1, 2, 3, 4],
    Kind.TELLALL: [1, written([item(1, 0, high=RING_SIZE - 1)])],
    Kind.TOLD: [1, True, 2, [3, 4], [5]],
}


def checked_body(kind: int, body: Any) -> list[Any]:
    message = STORE.read(int(kind), body)
    return [getattr(message, name) for name in message.__slots__]


def items_of(body: Any) -> list[Item]:
    return list(STORE.read(Kind.OFFER, [body]).items)


@given(st.lists(items, max_size=5))
def test_items_are_read_as_they_were_written(some: list[Item]) -> None:
    carried = msgpack.unpackb(msgpack.packb(written(some)), strict_map_key=False)
    assert items_of(carried) == some


@given(items)
def test_the_estimate_is_not_below_what_an_item_takes(one: Item) -> None:
    assert item_bytes(one) >= len(msgpack.packb(written([one]))) - 1


@given(st.lists(items, max_size=40))
def test_pages_are_the_items_in_order(some: list[Item]) -> None:
    assert [one for page in pages(some) for one in page] == some
    assert all(pages(some))


def test_a_page_has_an_end_in_number_and_in_bytes() -> None:
    assert [len(page) for page in pages([item(1, 5)] * (PAGE_ITEMS_MAX + 1))] == [PAGE_ITEMS_MAX, 1]
    large = item(1, 5, value=b"x" * (ITEM_BYTES_MAX - 100))
    assert max(sum(map(item_bytes, page)) for page in pages([large] * 20)) <= PAGE_LENGTH_MAX - 64 * 1024


@pytest.mark.parametrize("kind", list(Kind))
def test_a_good_message_is_read(kind: Kind) -> None:
    assert len(checked_body(kind, GOOD[kind])) == len(GOOD[kind])


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("wrong", [None, "x", -1, RING_SIZE, 1.0, [[1]], {}, b""])
def test_a_wrong_part_anywhere_is_refused(kind: Kind, wrong: Any) -> None:
    for place in range(len(GOOD[kind])):
        body = [*GOOD[kind]]
        body[place] = wrong
        with pytest.raises(ProtocolViolation):
            checked_body(kind, body)
    for body in (GOOD[kind][:-1], [*GOOD[kind], 1], tuple(GOOD[kind]), wrong):
        with pytest.raises(ProtocolViolation):
            checked_body(kind, body)


def test_true_is_no_number_and_one_is_no_flag() -> None:
    with pytest.raises(ProtocolViolation):
        checked_body(Kind.LEASE, [True])
    with pytest.raises(ProtocolViolation):
        checked_body(Kind.PAGE, [1, 1, 0, []])


@pytest.mark.parametrize("kind", [0, 17, 255, -1])
def test_an_unknown_kind_is_refused(kind: int) -> None:
    with pytest.raises(ProtocolViolation, match="has kind"):
        checked_body(kind, [])


@pytest.mark.parametrize(("kind", "place", "largest"), [(Kind.COPIED, 1, 2), (Kind.RENEWED, 1, 2), (Kind.PAGE, 2, 8)])
def test_a_verdict_that_there_is_not_is_refused(kind: Kind, place: int, largest: int) -> None:
    body = [*GOOD[kind]]
    body[place] = largest
    checked_body(kind, body)
    body[place] = largest + 1
    with pytest.raises(ProtocolViolation):
        checked_body(kind, body)


def test_nobody_is_granted_more_than_a_lease() -> None:
    with pytest.raises(ProtocolViolation):
        checked_body(Kind.GRANTED, [1, 2, 2501])


@pytest.mark.parametrize(
    "wrong",
    [
        "x",
        ["sub"],
        [[], 1, 1, 1, None],
        [["x"] * (NAME_PARTS_MAX + 1), 1, 1, 1, None],
        [["x" * (NAME_TEXT_LENGTH_MAX + 1)], 1, 1, 1, None],
        [[None], 1, 1, 1, None],
        [[True], 1, 1, 1, None],
        [["x"], -1, 1, 1, None],
        [["x"], 1, RING_SIZE, 1, None],
        [["x"], 1, 1, 1.0, None],
        [["x"], 1, 1, 1, b"x" * (ITEM_BYTES_MAX + 1)],
        [["x"], 1, 1, 1],
    ],
)
def test_a_wrong_item_is_refused(wrong: Any) -> None:
    with pytest.raises(ProtocolViolation):
        items_of([wrong])


def test_too_many_items_are_refused() -> None:
    with pytest.raises(ProtocolViolation):
        items_of(written([item(1, 5)]) * (PAGE_ITEMS_MAX + 1))


@pytest.mark.parametrize(
    ("start", "until", "some"),
    [
        (5, 9, []),
        (4, 9, [item(1, 5, high=9)]),
        (5, 10, [item(1, 5, high=9)]),
        (8, 7, [item(1, 5, high=9)]),
        (5, 9, [item(1, 5, high=9), item(2, 5, high=8)]),
    ],
)
def test_a_put_stays_within_the_segment_of_its_items(start: int, until: int, some: list[Item]) -> None:
    with pytest.raises(ProtocolViolation):
        checked_body(Kind.PUT, [1, 2, 0, start, until, 0, written(some)])
