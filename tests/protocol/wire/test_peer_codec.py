"""Words between brokers as bytes: what fits comes back, what does not is a ProtocolViolation, and memory is bounded."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.data import join_u32
from headgate.protocol.errors import ErrorCode, ProtocolViolation
from headgate.protocol.limits import (
    BATCH_EVENTS_MAX,
    DIMENSION_LENGTH_MAX,
    DIMENSIONS_MAX,
    HANDSHAKE_FRAME_LENGTH_MAX,
    HOPS_MAX,
    LETTER_LENGTH_MAX,
    LIST_LENGTH_MAX,
    PAGE_LENGTH_MAX,
    SETTINGS_MAX,
)
from headgate.protocol.messages import Control, Forward, Letter, Peer
from headgate.protocol.wire import decode, encode
from tests.support.samples import forward

ZERO = bytes(4)
DIMENSION = [["topic", "", 1, None, None, None], ZERO]
FORWARD: list[Any] = [35, [DIMENSION], 1, None, "ann", 0, 0, b"", "a", bytes(8), {}, True, b""]
MEMBER = [2**64 - 1, 65_536, 0, "ann:7401"]


def packed(*parts: Any) -> bytes:
    data: bytes = msgpack.packb(parts)
    return data


def refused(data: bytes) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode(data)
    assert 0 < len(caught.value.text) <= 400
    return caught.value


def test_rows_are_any_numbers_before_and_an_array_after() -> None:
    message = forward()
    for dimension in message.dimensions:
        dimension[1] = list(dimension[1])
    again = decode(encode(message))
    assert again == forward() and encode(again) == encode(message)


NOT_DIMENSIONS: list[Any] = [
    [],
    {},
    [[]],
    [["topic"]],
    [["topic", ZERO]],
    [[["topic"], "x"]],
    [[["topic"], b""]],
    [[["topic"], bytes(3)]],
    [[[], ZERO]],
    [[[[]], ZERO]],
    [[[b"x"], ZERO]],
    [[["x"] * (DIMENSION_LENGTH_MAX + 1), ZERO]],
    [[["topic"], ZERO, ZERO]],
    [[["topic"], join_u32([2])]],
    [[["topic"], join_u32([0, 0])]],
    [[["topic"], join_u32([1, 0])]],
    [[["topic"], join_u32([0, 1, 2])]],
    [[["topic"], join_u32([0, 2**32 - 1])]],
    [DIMENSION] * (DIMENSIONS_MAX + 1),
]
WRONG: list[tuple[int, Any]] = [
    *((1, dimensions) for dimensions in NOT_DIMENSIONS),
    (2, -1),
    (2, HOPS_MAX + 1),
    (2, True),
]
WRONG += [(3, []), (3, "ann@1"), (3, ["ann@1"]), (3, ["ann@1", -1]), (3, ["ann@1", 2**53 + 1]), (3, ["ann@1", True])]
WRONG += [(3, [1, 1]), (3, ["o" * 257, 1]), (3, ["ann@1", 1, 1]), (3, {})]
WRONG += [(4, "o" * 257), (4, b""), (5, -1), (6, 2**53 + 1), (7, ZERO), (7, bytes(7)), (8, "a\nb\nc"), (9, b"")]
WRONG += [
    (9, bytes(4 * BATCH_EVENTS_MAX + 4)),
    (10, {"a": 1}),
    (10, {"": b""}),
    (10, []),
    (11, 1),
    (12, b"x"),
    (12, ""),
]


@pytest.mark.parametrize(("place", "value"), WRONG)
def test_a_forward_that_does_not_fit_is_refused(place: int, value: Any) -> None:
    assert isinstance(decode(packed(*FORWARD)), Forward)
    refused(packed(*FORWARD[:place], value, *FORWARD[place + 1 :]))


def test_a_forward_may_have_as_many_dimensions_and_rows_as_there_are() -> None:
    rows = join_u32(range(BATCH_EVENTS_MAX))
    dimensions = [[["topic", "", depth, None, None, None], rows] for depth in range(DIMENSIONS_MAX)]
    parts = [35, dimensions, HOPS_MAX, None, "ann", 0, 0, b"", "a", bytes(4 * BATCH_EVENTS_MAX), {}, True, b""]
    message = decode(packed(*parts[:1], dimensions[:100], *parts[2:]))
    assert isinstance(message, Forward) and list(message.dimensions[99][1]) == list(range(BATCH_EVENTS_MAX))
    assert refused(packed(*parts)).code is ErrorCode.TOO_LARGE, "4 MiB of rows fit no frame"


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 10))
def test_rows_are_taken_when_they_ascend_below_the_count(rows: list[int], count: int) -> None:
    parts = [35, [[["topic"], join_u32(rows)]], 0, None, "ann", 0, 0, b"", "a", bytes(4 * count), {}, True, b""]
    right = bool(rows) and rows == sorted(set(rows)) and rows[-1] < count
    try:
        message = decode(packed(*parts))
    except ProtocolViolation:
        assert not right
        return
    assert right and isinstance(message, Forward) and list(message.dimensions[0][1]) == rows


NOT_MEMBERS: list[Any] = [
    [],
    [1, 2, 3],
    [*MEMBER, 1],
    [-1, 0, 0, ""],
    [2**64 - 1, 0, -1, ""],
    [1, 1, 1, 1],
    [1.0, 1, 0, ""],
]
NOT_MEMBERS += [[True, 1, 0, ""], [1, 1, 0, "x" * 257], {"a": 1}, 5, "ann"]


@pytest.mark.parametrize("member", NOT_MEMBERS)
def test_a_letter_has_members_at_its_ends(member: Any) -> None:
    assert decode(packed(33, MEMBER, None, 255, [])) == Letter(MEMBER, None, 255, [])
    refused(packed(33, member, None, 1, []))
    refused(packed(33, MEMBER, member, 1, []))
    refused(packed(33, None, MEMBER, 1, []))


@pytest.mark.parametrize(
    ("kind", "body"), [(256, []), (-1, []), (True, []), (1.0, []), (1, None), (1, {}), (1, b""), (1, "x")]
)
def test_kind_and_body_of_an_envelope(kind: Any, body: Any) -> None:
    refused(packed(33, MEMBER, MEMBER, kind, body))
    refused(packed(34, kind, body))


def test_envelopes_are_limited() -> None:
    assert isinstance(decode(encode(Letter(MEMBER, None, 1, [0] * LETTER_LENGTH_MAX))), Letter)
    refused(packed(33, MEMBER, None, 1, [0] * (LETTER_LENGTH_MAX + 1)))
    assert isinstance(decode(encode(Control(1, [0] * LIST_LENGTH_MAX))), Control)
    refused(packed(34, 1, [0] * (LIST_LENGTH_MAX + 1)))
    page = Control(1, [b"x" * (PAGE_LENGTH_MAX - 16)])
    assert decode(encode(page)) == page
    assert refused(encode(Control(1, [b"x" * PAGE_LENGTH_MAX]))).code is ErrorCode.TOO_LARGE


SETTINGS: list[Any] = [
    [],
    None,
    {"a": []},
    {"a": {}},
    {"a": b""},
    {str(number): 1 for number in range(SETTINGS_MAX + 1)},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_fingerprint_is_a_small_map_of_scalars(settings: Any) -> None:
    assert isinstance(decode(packed(32, 1, "ann", 1, "a:1", "a:2", "c", True, {"a": None, "b": 1.5, "c": "x"})), Peer)
    refused(packed(32, 1, "ann", 1, "a:1", "a:2", settings))


def test_a_greeting_fits_the_frame_of_a_handshake() -> None:
    settings = {str(number): "x" * 200 for number in range(SETTINGS_MAX)}
    greeting = encode(Peer(2, "ann", 1, "a:1", "a:2", "c", False, settings))
    assert len(greeting) > HANDSHAKE_FRAME_LENGTH_MAX
    assert refused(greeting).code is ErrorCode.TOO_LARGE


NESTED = [
    b"\xde\x04\x00\xa1a",
    b"\xdc\x01\x00",
    b"\xdc\x04\x00",
    b"\xdc\x40\x00",
    b"\x98",
    b"\xdd\x00\x01\x00\x00",
    b"\x81\xa1a",
    b"\x90",
    b"\x80",
]


def peak_of(data: bytes) -> int:
    tracemalloc.start()
    refused(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("opening", NESTED)
@pytest.mark.parametrize(
    ("head", "most"), [(b"\x97\x20", 2**19), (b"\x95\x21", 2**24), (b"\x93\x22", 2**27), (b"\x9d\x23", 2**22)]
)
def test_nested_counts_take_bounded_memory(opening: bytes, head: bytes, most: int) -> None:
    count = 4_000 // len(opening) if head == b"\x97\x20" else 5_000
    assert peak_of(head + opening * count) < most


def test_a_forward_of_nothing_ends_at_the_first_list_too_many() -> None:
    level = b"\x98" + b"\x90" * 8
    for _ in range(6):
        level = b"\x98" + level * 8
    assert "dimensions" in refused(b"\x9d\x23" + level).text
    assert peak_of(b"\x9d\x23" + level) < 2**20
    assert "one map" in refused(b"\x9d\x23\x92\x80\x80").text


@pytest.mark.parametrize("head", [b"\x97\x20", b"\x95\x21\x90", b"\x93\x22\x01\x91", b"\x9d\x23", b"\x9d\x23\x91\x91"])
def test_extensions_have_no_meaning_here(head: bytes) -> None:
    for extension in (b"\xc7\x00\x05", b"\xd4\x05x", b"\xd6\xff\x00\x00\x00\x00"):
        refused(head + extension)
