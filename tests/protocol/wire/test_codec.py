"""Messages and bytes: each type there and back, and every bad msgpack of the checklist becomes a ProtocolViolation."""

from __future__ import annotations

import math
import time
import tracemalloc
from typing import Any

import msgpack
import pytest

from headgate.protocol.data import Portion, join_u32
from headgate.protocol.errors import ErrorCode, LocalError, ProtocolViolation
from headgate.protocol.limits import (
    BATCH_EVENTS_MAX,
    COLUMNS_MAX,
    CONDITION_LENGTH_MAX,
    CONTROL_LENGTH_MAX,
    CREDIT_MAX,
    INTEREST_ATTRIBUTES_MAX,
    LIST_LENGTH_MAX,
    PUBLISH_LENGTH_MAX,
    SUBSCRIBE_LENGTH_MAX,
    TEXT_LENGTH_MAX,
)
from headgate.protocol.messages import (
    MESSAGE_TYPES,
    Answer,
    Ask,
    Credit,
    Deliver,
    Goodbye,
    Hello,
    Interest,
    Message,
    Ping,
    Publish,
)
from headgate.protocol.wire import decode, encode, encode_chunks
from headgate.protocol.wire.codec import kind_of
from tests.support.samples import MESSAGES, deliver, name_of

BY_NAME = {name_of(message): message for message in MESSAGES}
ZERO = bytes(4)


def refused(data: bytes) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode(data)
    assert 0 < len(caught.value.text) <= 400
    return caught.value


def packed(*parts: Any) -> bytes:
    data: bytes = msgpack.packb(parts)
    return data


@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_a_message_comes_back(message: Message) -> None:
    data = encode(message)
    assert data == b"".join(encode_chunks(message))
    for form in (data, bytearray(data), memoryview(data)):
        assert decode(form) == message
        assert kind_of(form) is type(message)
    assert encode(decode(data)) == data


@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_a_truncated_message_is_refused_at_every_offset(message: Message) -> None:
    data = encode(message)
    for end in range(len(data)):
        refused(data[:end])


@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
@pytest.mark.parametrize("tail", [b"\x00", b"\xc0", b"\xc1", b"\x91"])
def test_what_follows_a_message_is_refused(message: Message, tail: bytes) -> None:
    refused(encode(message) + tail)


@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_a_message_has_its_number_of_fields(message: Message) -> None:
    data = encode(message)
    refused(bytes([data[0] + 1]) + data[1:] + b"\xc0")
    parts = msgpack.unpackb(data)
    missing = {"HELLO": 2, "CREDIT": 3}.get(name_of(message), 1)  # their last one may be left out
    refused(msgpack.packb(parts[:-missing]))


WRONG: list[Any] = [None, True, -1, 1.5, CREDIT_MAX + 1, 2**64 - 1, -(2**63), math.nan, [1], [[]], {"a": 1}]
WRONG += ["x" * (TEXT_LENGTH_MAX + 1), "x" * (CONDITION_LENGTH_MAX + 1), b"x" * 257]


LONG = {("PRODUCE", 7), ("COPY", 5)}
"""Bins that have no limit of their own: ids, and a row."""
CONDITION = ("SUBSCRIBE", 4)
"""The one string that may be longer than a text."""
BACKOFF = ("ACK", 5)
"""The one number of seconds that may be -1."""
FIXED = [one for one in MESSAGES if name_of(one) not in ("ANSWER", "LETTER", "CONTROL")]


@pytest.mark.parametrize("message", FIXED, ids=name_of)
def test_a_field_of_another_kind_is_refused(message: Message) -> None:
    parts = msgpack.unpackb(encode(message))
    for place in range(1, len(parts)):
        for value in WRONG:
            long = (name_of(message), place) in LONG and type(value) is bytes
            long |= (name_of(message), place) == BACKOFF and value == -1
            long |= (name_of(message), place) == CONDITION and type(value) is str and len(value) <= CONDITION_LENGTH_MAX
            if not may_stand(parts[place], value) and not long:
                refused(msgpack.packb([*parts[:place], value, *parts[place + 1 :]]))


def may_stand(right: Any, value: Any) -> bool:
    """Whether a wrong value is, by chance, allowed where `right` stands."""
    if type(right) is str:
        return "/" in right and type(value) is str  # topics have no limit of their own here
    if type(right) is list:
        return value is None and type(right[0]) is str
    return type(right) is type(value) and type(right) in (bool, float, dict) and repr(value) != "nan"


NOT_ARRAYS = [b"", b"\x90", b"\x91", b"\xc0", b"\xc1", b"\x01", b"\x80", b"\x81\x05\x07", b"\xa2\x05\x07"]
NOT_SHORT = [
    b"\xdc\x00\x02\x05\x07",
    b"\xdd\x00\x00\x00\x02\x05\x07",
    b"\x92\xcc\x05\x07",
    b"\x91\xc3",
    b"\x92\xff\x07",
]


@pytest.mark.parametrize("data", [*NOT_ARRAYS, *NOT_SHORT])
def test_a_message_begins_with_a_short_array_and_its_type(data: bytes) -> None:
    assert "begins with its type number" in refused(data).text


def test_an_unknown_type_is_refused() -> None:
    for number in range(128):
        if number not in MESSAGE_TYPES:
            assert refused(packed(number, 1)).text == f"unknown message type {number}"


@pytest.mark.parametrize("byte", [b"\xc1", b"\xd4\x05x", b"\xc7\x00\x05", b"\xc7\x00\xff", b"\xd6\xff\x00\x00\x00\x00"])
def test_what_msgpack_never_uses_and_extensions_are_refused_anywhere(byte: bytes) -> None:
    for head in (b"\x92\x05", b"\x93\x12\x01", b"\x93\x12\x01\x91", b"\x93\x12\x01\x81\xa1a", b"\x98\x0c", b"\x9a\x0e"):
        refused(head + byte)


@pytest.mark.parametrize("code", range(-128, 128))
def test_no_extension_of_any_type_passes(code: int) -> None:
    for length in (0, 1, 2, 4, 8, 12, 16):
        body = bytes([0xC7, length, code & 0xFF]) + bytes(length)
        refused(b"\x93\x12\x01" + body)


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a"], ids=["lists", "maps"])
def test_depth_is_survived(opening: bytes) -> None:
    accepted = 0
    for depth in range(1, 2001, 7):
        try:
            decode(b"\x93\x12\x01" + opening * depth + b"\xc0")
            accepted += 1
        except ProtocolViolation:
            continue
    assert 0 < accepted < 286  # some depth is taken, and not all


@pytest.mark.parametrize(
    "mark", [b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9", b"\xdc", b"\xde", b"\xda", b"\xc5", b"\xc8"]
)
@pytest.mark.parametrize("head", [b"\x92\x05", b"\x93\x12\x01", b"\x98\x0c", b"\x9a\x0e", b"\x94\x11\x01\xa1x"])
def test_huge_counts_are_refused_without_memory(mark: bytes, head: bytes) -> None:
    tracemalloc.start()
    for count in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\xff\xff\xff"):
        refused(head + mark + count)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def peak_of(data: bytes) -> int:
    """Bytes taken while a message is refused."""
    tracemalloc.start()
    refused(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


NESTED = [
    b"\xde\x04\x00\xa1a",
    b"\xdc\x01\x00",
    b"\xdc\x20\x00",
    b"\x98",
    b"\xdd\x00\x00\x01\x00",
    b"\x81\xa1a",
    b"\xde\x01\x00\xa1a",
]


CLIENTS = [b"\x98\x0c", b"\x9d\x13", b"\x94\x11\x01\xa1x", b"\x96\x08\x01\x01\xa0\xa0", b"\x98\x01", b"\x9b\x14"]


@pytest.mark.parametrize("opening", NESTED)
@pytest.mark.parametrize("head", CLIENTS)
def test_nested_counts_of_a_client_take_bounded_memory(opening: bytes, head: bytes) -> None:
    # Lists for 1024 members, as an ASK may have (the attributes of an event to explain), a thousand deep: 8 MiB.
    assert peak_of(head + opening * 5000) < 10 * 2**20


@pytest.mark.parametrize("opening", NESTED)
def test_nested_counts_of_a_stranger_take_next_to_no_memory(opening: bytes) -> None:
    assert peak_of(b"\x98\x01" + opening * (4094 // len(opening))) < 2**19


@pytest.mark.parametrize("opening", NESTED)
@pytest.mark.parametrize("head", [b"\x9a\x0e", b"\x93\x12\x01", b"\x96\x15"])
def test_nested_counts_of_a_broker_take_bounded_memory(opening: bytes, head: bytes) -> None:
    assert peak_of(head + opening * 5000) < 96 * 2**20


@pytest.mark.parametrize("filler", [b"\x90", b"\x80", b"\x91\xc0", b"\x81\xa0\xc4\x00"])
@pytest.mark.parametrize("head", [b"\x98\x0c", b"\x9d\x13"])
def test_a_publish_of_small_values_takes_little_more_than_its_bytes(head: bytes, filler: bytes) -> None:
    level = filler
    for _ in range(6):
        level = b"\x98" + level * 8
    data = head + level
    assert len(data) > 2**18
    assert peak_of(data) < 2**16


def test_a_large_frame_of_nothing_is_read_in_bounded_time() -> None:
    level = b"\x98" + b"\x90" * 8
    for _ in range(6):
        level = b"\x98" + level * 8
    data = b"\x98\x0c" + level
    assert PUBLISH_LENGTH_MAX / 2 < len(data) < PUBLISH_LENGTH_MAX
    began = time.process_time()
    refused(data)
    assert time.process_time() - began < 5


def test_duplicate_keys_are_refused() -> None:
    refused(b"\x94\x11\x01\xa1x\x82\xa1a\x01\xa1a\x02")
    refused(b"\x93\x12\x01\x82\xa1a\x01\xa1a\x02")
    refused(b"\x98\x0c\x01\x01\xa1a\xc4\x04" + ZERO + b"\x82\xa1a\xc4\x00\xa1a\xc4\x00\xc3\xc4\x00")


@pytest.mark.parametrize(
    "key", [b"\x01", b"\xc0", b"\xc3", b"\xc4\x01a", b"\x90", b"\x80", b"\xcb" + bytes(8), b"\xa1\xff"]
)
def test_keys_are_strings(key: bytes) -> None:
    for head in (b"\x94\x11\x01\xa1x", b"\x93\x12\x01", b"\x93\x12\x01\x91", b"\x96\x08\x01\x01\xa0\xa0"):
        refused(head + b"\x81" + key + b"\x01")
    refused(b"\x98\x0c\x01\x01\xa1a\xc4\x04" + ZERO + b"\x81" + key + b"\xc4\x00\xc3\xc4\x00")


def test_empty_and_long_keys_belong_to_the_verb() -> None:
    for message in (Ask(1, "x", {"": 1, "k" * CONDITION_LENGTH_MAX: 2}), Answer(1, {"": {"": [None]}})):
        assert decode(encode(message)) == message
    refused(encode(Ask(1, "x", {"k" * (CONDITION_LENGTH_MAX + 1): 2})))


@pytest.mark.parametrize("text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_invalid_utf8_is_refused(text: bytes) -> None:
    refused(b"\x93\x04\x00" + bytes([0xA0 + len(text)]) + text)


def test_numbers_of_any_size_pass_in_an_answer() -> None:
    for value in (2**64 - 1, -(2**63), math.inf, -0.0, 1e308, None, True):
        assert decode(encode(Answer(1, value))) == Answer(1, value)
    assert math.isnan(decode(encode(Answer(1, math.nan))).value)  # type: ignore[union-attr]


def test_counters_end_where_doubles_end() -> None:
    assert decode(encode(Ping(CREDIT_MAX))) == Ping(CREDIT_MAX)
    for value in (CREDIT_MAX + 1, -1, True, 1.0):
        refused(packed(5, value))


def test_texts_are_counted_in_bytes() -> None:
    longest = Goodbye(0, "x" * TEXT_LENGTH_MAX)
    assert decode(encode(longest)) == longest
    refused(encode(Goodbye(0, "é" * (TEXT_LENGTH_MAX // 2 + 1))))


@pytest.mark.parametrize("attributes", [["a"] * (INTEREST_ATTRIBUTES_MAX + 1), [""], ["é" * 129], [1], [None]])
def test_an_interest_names_few_attributes(attributes: list[Any]) -> None:
    refused(packed(16, "quotes", attributes))
    assert decode(encode(Interest("quotes", None))) == Interest("quotes", None)


def test_frames_are_limited_by_type() -> None:
    for kind, limit in (
        (8, SUBSCRIBE_LENGTH_MAX),
        (17, SUBSCRIBE_LENGTH_MAX),
        (12, PUBLISH_LENGTH_MAX),
        (19, PUBLISH_LENGTH_MAX),
        (20, CONTROL_LENGTH_MAX),
    ):
        violation = refused(bytes([0x94, kind]) + bytes(limit - 1))
        assert violation.code is ErrorCode.TOO_LARGE
        assert refused(bytes([0x94, kind]) + bytes(limit - 2)).code is ErrorCode.PROTOCOL


@pytest.mark.parametrize(
    "message",
    [Goodbye(0, "\ud800"), Answer(1, int), Answer(1, 2**64), Ask(1, "x", {"a": {1, 2}}), Interest("\udfff", None)],
    ids=ascii,
)
def test_what_cannot_be_written_is_our_own_error(message: Message) -> None:
    with pytest.raises(LocalError, match="cannot be encoded"):
        encode(message)
    assert encode(Ping(1)) == b"\x92\x05\x01"


PUBLISH = [12, 1, 1, "a", ZERO, {}, True, b""]


NOT_BATCHES = [(3, b"a"), (3, "a\nb"), (4, b""), (4, bytes(3)), (4, b"\x01" + bytes(3)), (7, ""), (7, b"x"), (7, [])]
NOT_COLUMNS: list[Any] = [
    [],
    None,
    [{}],
    {"a": "x"},
    {"a": None},
    {"": b""},
    {"a": {"b": b""}},
    {"é" * 129: b""},
    {"a" * 257: b""},
]
NOT_PUBLISHES: list[tuple[int, Any]] = [(1, 0), (2, 0), (2, 3), (2, 1.0), (2, True), (6, 1), (6, None), *NOT_BATCHES]
NOT_PUBLISHES += [(4, bytes(4 * BATCH_EVENTS_MAX + 4)), *((5, columns) for columns in NOT_COLUMNS)]


@pytest.mark.parametrize(("place", "value"), NOT_PUBLISHES)
def test_a_publish_that_does_not_fit_is_refused(place: int, value: Any) -> None:
    assert isinstance(decode(packed(*PUBLISH)), Publish)
    refused(packed(*PUBLISH[:place], value, *PUBLISH[place + 1 :]))


def test_match_columns_are_limited() -> None:
    def columns(count: int) -> bytes:
        return packed(*PUBLISH[:5], {str(number): b"" for number in range(count)}, True, b"")

    assert isinstance(decode(columns(COLUMNS_MAX)), Publish)
    refused(columns(COLUMNS_MAX + 1))


DELIVER = [14, [[1], 2], None, "ann", 0, 0, b"", "a", bytes(8), b""]


NOT_ROUTES: list[Any] = [
    [],
    {},
    [[1]],
    [[1], 1],
    [[1], 3],
    [[1], 1, [2], 0, [3], 1],
    [[], 2],
    [True, 2],
    [-1, 2],
    [[1], 2, [1]],
]
NOT_ROUTES += [[[1], 2, [1]], [[True], 2], [[-1], 2], [[1], 2.0], [[[1]], 2]]
NOT_PORTIONS: list[tuple[int, Any]] = [(3, "o" * 257), (6, bytes(4)), (6, bytes(7)), (6, bytes(12))]
NOT_PORTIONS += [(7, "a\nb\nc"), (8, bytes(4)), (9, b"x")]
NOT_PORTIONS += [(2, []), (2, "ann@1"), (2, ["ann@1"]), (2, ["ann@1", -1]), (2, ["ann@1", 2**53 + 1]), (2, [1, 1])]
NOT_PORTIONS += [(2, ["ann@1", True]), (2, ["o" * 257, 1]), (2, ["ann@1", 1, 1]), (2, {})]


@pytest.mark.parametrize(("place", "value"), [*((1, routes) for routes in NOT_ROUTES), *NOT_PORTIONS])
def test_a_deliver_that_does_not_fit_is_refused(place: int, value: Any) -> None:
    assert isinstance(decode(packed(*DELIVER)), Deliver)
    refused(packed(*DELIVER[:place], value, *DELIVER[place + 1 :]))


def test_one_subscription_is_a_bare_number_and_runs_hide_that() -> None:
    message = decode(packed(14, [7, 1, [8, 9], 1], *DELIVER[2:]))
    assert isinstance(message, Deliver)
    assert list(message.runs()) == [([7], 1), ([8, 9], 1)]


def test_a_number_for_each_event_is_a_bin() -> None:
    message = decode(packed(14, join_u32([7, 9]), *DELIVER[2:]))
    assert isinstance(message, Deliver)
    assert list(message.runs()) == [([7], 1), ([9], 1)]
    assert decode(encode(message)) == message
    for broken in (b"", join_u32([7]), join_u32([7, 8, 9]), join_u32([7, 8]) + b"x"):
        refused(packed(14, broken, *DELIVER[2:]))


def test_routes_may_be_as_long_as_a_batch_and_a_session() -> None:
    many = [part for number in range(BATCH_EVENTS_MAX) for part in ([number], 1)]
    lengths = bytes(4 * BATCH_EVENTS_MAX)
    assert isinstance(decode(packed(14, many, None, "ann", 0, 0, b"", "a", lengths, b"")), Deliver)
    everyone = list(range(LIST_LENGTH_MAX))
    assert isinstance(decode(packed(14, [everyone, 1], None, "ann", 0, 0, b"", "a", ZERO, b"")), Deliver)
    refused(packed(14, [[*everyone, 1], 1], None, "ann", 0, 0, b"", "a", ZERO, b""))


def test_a_portion_is_encoded_once() -> None:
    first, second = deliver(), deliver()
    second.portion = first.portion
    second.routes = [[9], 2]
    _, tail = encode_chunks(first)
    assert encode_chunks(second)[1] is tail
    assert first.portion.offsets == join_u32([0, 3])


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_535, 65_536])
def test_the_records_of_a_deliver_follow_its_head_uncopied(size: int) -> None:
    portion = Portion("o", 1, 2, b"", "a", size.to_bytes(4, "little"), bytes(size), 1)
    head, records = encode_chunks(Deliver([1, 1], portion))
    assert records is portion.records
    assert head + records == msgpack.packb([14, [1, 1], None, "o", 1, 2, b"", "a", portion.lengths, bytes(size)])


def test_a_bound_in_bytes_may_be_left_out() -> None:
    for message, fields in ((Credit(5, 3), 2), (Hello(name="n"), 7)):
        body = encode(message)
        assert len(msgpack.unpackb(body)) == 1 + fields
        assert decode(body) == message
