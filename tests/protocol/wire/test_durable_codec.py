"""The words of durable subscriptions as bytes: what fits comes back, and numbers that cannot be are refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.data import Portion, join_u32
from headgate.protocol.errors import ErrorCode, ProtocolViolation
from headgate.protocol.limits import (
    ACK_SPANS_MAX,
    BATCH_EVENTS_MAX,
    CONTROL_LENGTH_MAX,
    CREDIT_MAX,
    FRAME_LENGTH_MAX,
    LOG_CHUNK_ROWS_MAX,
)
from headgate.protocol.messages import Ack, Acked, AckVerb, Ended, Fetched, Handed
from headgate.protocol.wire import decode, encode, encode_chunks
from tests.support.samples import handed

HANDED: list[Any] = [23, 1, 7, b"", "ann", 0, 0, b"", "a", bytes(8), b""]
ACK: list[Any] = [24, 1, 1, 0, [3, 4], -1, ""]


def packed(parts: list[Any]) -> bytes:
    data: bytes = msgpack.packb(parts)
    return data


def refused(parts: list[Any]) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode(packed(parts))
    return caught.value


def test_defaults_are_valid_on_the_wire() -> None:
    for message in (Ack(0, 1, AckVerb.ACK, [1, 1]), Acked(1), Ended(1, 110, ""), Fetched(1, 107, "gone", [])):
        assert decode(encode(message)) == message


def test_counts_are_told_when_one_is_not_the_first() -> None:
    message = decode(encode(handed()))
    assert isinstance(message, Handed) and list(message.count_list()) == [1, 3]
    first = decode(packed(HANDED))
    assert isinstance(first, Handed) and not first.count_list()


def test_a_portion_is_encoded_once_for_deliveries_of_both_kinds() -> None:
    message = handed()
    head, records = encode_chunks(message)
    assert records is message.portion.records and message.portion.encoded is not None
    assert head.endswith(message.portion.encoded)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_535, 65_536])
def test_the_records_of_a_handed_follow_its_head_uncopied(size: int) -> None:
    portion = Portion("o", 1, 2, b"", "a", size.to_bytes(4, "little"), bytes(size), 1)
    head, records = encode_chunks(Handed(1, 9, b"", portion))
    assert records is portion.records
    assert head + records == packed([23, 1, 9, b"", "o", 1, 2, b"", "a", portion.lengths, bytes(size)])


NOT_NUMBERED: list[tuple[int, Any]] = [(1, -1), (2, 0), (2, CREDIT_MAX), (2, True), (3, bytes(4)), (3, bytes(8))]
NOT_NUMBERED += [(3, join_u32([1, 0])), (3, join_u32([1, 1, 1])), (3, b"\x01" * 7), (3, ""), (3, [])]
NOT_PORTIONS: list[tuple[int, Any]] = [(4, "o" * 257), (5, -1), (6, 1.0), (7, bytes(4)), (7, bytes(12)), (8, "a\nb\nc")]
NOT_PORTIONS += [(9, b""), (9, bytes(3)), (9, bytes(4 * BATCH_EVENTS_MAX + 4)), (10, b"x"), (10, "")]


@pytest.mark.parametrize(("place", "value"), NOT_NUMBERED + NOT_PORTIONS)
def test_a_handed_that_does_not_fit_is_refused(place: int, value: Any) -> None:
    assert isinstance(decode(packed(HANDED)), Handed)
    assert refused([*HANDED[:place], value, *HANDED[place + 1 :]]).text


def test_delivery_numbers_end_where_doubles_end() -> None:
    assert isinstance(decode(packed([*HANDED[:2], CREDIT_MAX - 1, *HANDED[3:]])), Handed)


NOT_SPANS: list[Any] = [[1], [2, 1], [1, 2, 2, 3], [5, 6, 1, 2], [1, 2, 3], [1, CREDIT_MAX + 1], [-1, 2], [True, 2]]
NOT_SPANS += [[1.0, 2], [[1, 2]], ["a", "b"], None, {}, b"", list(range(2 * ACK_SPANS_MAX + 2))]


@pytest.mark.parametrize("spans", NOT_SPANS, ids=lambda spans: repr(spans)[:30])
def test_spans_ascend_and_are_apart(spans: Any) -> None:
    refused([*ACK[:4], spans, *ACK[5:]])
    refused([25, 1, spans])


def test_an_ack_names_something_and_an_answer_may_name_nothing() -> None:
    assert "1 to 4096 pairs" in refused([*ACK[:4], [], *ACK[5:]]).text
    assert decode(packed([25, 1, []])) == Acked(1)


@given(st.lists(st.integers(0, 12), max_size=8))
def test_spans_are_taken_when_the_reference_says_so(numbers: list[int]) -> None:
    pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
    right = len(numbers) % 2 == 0 and all(first <= last for first, last in pairs)
    right = right and all(before[1] < after[0] for before, after in pairwise(pairs))
    try:
        message = decode(packed([25, 1, numbers]))
    except ProtocolViolation:
        assert not right
        return
    assert right and message == Acked(1, numbers)


def test_an_ack_of_the_most_spans_fits_its_frame() -> None:
    spans = [CREDIT_MAX - 4 * ACK_SPANS_MAX + 2 * place for place in range(2 * ACK_SPANS_MAX)]
    for message in (Ack(1, 1, AckVerb.TERM, spans, -1, "x" * 60_000), Acked(1, spans)):
        data = encode(message)
        assert len(data) < CONTROL_LENGTH_MAX and decode(data) == message


@pytest.mark.parametrize("verb", [-1, 5, True, 1.0, None, "ack"])
def test_a_verb_is_one_of_five(verb: Any) -> None:
    for known in AckVerb:
        assert decode(packed([*ACK[:3], int(known), *ACK[4:]])) == Ack(1, 1, known, [3, 4])
    refused([*ACK[:3], verb, *ACK[4:]])


@pytest.mark.parametrize("seconds", [-2, -0.5, 86_401, float("nan"), float("inf"), True, None, "1"])
def test_a_delay_is_seconds_or_the_backoff(seconds: Any) -> None:
    for right in (-1, -1.0, 0, 0.25, 86_400):
        assert isinstance(decode(packed([*ACK[:5], right, ""])), Ack)
    refused([*ACK[:5], seconds, ""])


def test_rows_are_fetched_up_to_a_frame() -> None:
    full = Fetched(1, 0, "", [b"x" * (FRAME_LENGTH_MAX - 100)])
    assert decode(encode(full)) == full
    assert refused([37, 1, 0, "", [b"x" * FRAME_LENGTH_MAX]]).code is ErrorCode.TOO_LARGE
    many = Fetched(1, 0, "", [b""] * LOG_CHUNK_ROWS_MAX)
    assert decode(encode(many)) == many
    refused([37, 1, 0, "", [b""] * (LOG_CHUNK_ROWS_MAX + 1)])
