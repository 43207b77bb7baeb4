"""Rows of a log: there and back, every place of a row checked, and a row that was cut down knows where it came from."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.data import LogKind, LogName, Row, cut_row, decode_row, encode_row, join_u32, row_batch
from headgate.protocol.errors import LocalError, ProtocolViolation
from headgate.protocol.limits import BATCH_EVENTS_MAX, COLUMNS_MAX, CREDIT_MAX, DIGEST_LENGTH_MAX
from tests.support.samples import batch, row

DELIVERIES = Row(0, 3, 5, "ann", 0, b"", "bob", b"", {"sequence": b"m\x93\x01\x02\x03"}, True, b"")


def parts_of(one: Row) -> list[Any]:
    parts: list[Any] = msgpack.unpackb(encode_row(one))
    return parts


def test_a_log_has_a_name_that_people_and_spark_see() -> None:
    name = LogName("ann", 1_763_492_000, LogKind.EVENTS, "quotes")
    assert name.partition == "ann@1763492000"
    assert name == ("ann", 1_763_492_000, 0, "quotes")
    assert [(kind.name, int(kind)) for kind in LogKind] == [("EVENTS", 0), ("DELIVERIES", 1), ("SUBSCRIPTIONS", 2)]


@pytest.mark.parametrize("one", [row(), DELIVERIES], ids=["events", "deliveries"])
def test_a_row_comes_back(one: Row) -> None:
    data = encode_row(one)
    for form in (data, bytearray(data), memoryview(data)):
        assert decode_row(form) == one
    assert encode_row(decode_row(data)) == data


def test_a_row_is_a_batch() -> None:
    assert row_batch(row()) == batch()
    broken = row()
    broken.records += b"x"
    with pytest.raises(ProtocolViolation, match="lengths add up"):
        row_batch(decode_row(encode_row(broken)))


def test_a_row_that_was_cut_down_knows_its_places() -> None:
    one = row()
    assert list(one.places()) == [0, 1]
    one.offsets = join_u32([3, 7])
    assert list(decode_row(encode_row(one)).places()) == [3, 7]


def test_some_events_of_a_row_say_where_they_stood() -> None:
    one = row()
    cut = cut_row(one, [1])
    assert (cut.count, list(cut.places()), cut.topics) == (1, [1], "quotes/NYSE/IBM")
    assert (cut.first, cut.base, cut.producer, cut.number) == (one.first, one.base, "job", 100)
    assert row_batch(cut).pieces() == [row_batch(one).pieces()[1]]
    assert (cut.columns, cut.complete, cut.ids) == ({}, False, b"")
    again = cut_row(cut, [0])
    assert list(again.places()) == [1] and again == cut


WRONG: list[tuple[int, Any]] = [
    (place, value) for place in (0, 2, 4, 12, 13) for value in (-1, CREDIT_MAX + 1, True, 1.0)
]
WRONG += [(1, 0), (1, BATCH_EVENTS_MAX + 1), (1, 3), (1, None), (3, b"ann"), (3, "x" * 257), (5, bytes(4)), (5, "")]
WRONG += [(6, b"quotes"), (7, bytes(4)), (7, bytes(9)), (8, []), (8, {"a": 1}), (8, {1: b""}), (8, None), (9, 1)]
WRONG += [(10, "x"), (11, "x" * 257), (11, None), (14, bytes(DIGEST_LENGTH_MAX + 1)), (14, ""), (15, []), (15, None)]
WRONG += [(8, {str(number): b"" for number in range(COLUMNS_MAX + 1)}), (0, [0]), (0, msgpack.ExtType(5, b""))]


@pytest.mark.parametrize(("place", "value"), WRONG, ids=lambda one: repr(one)[:20])
def test_a_row_that_does_not_fit_is_refused(place: int, value: Any) -> None:
    parts = parts_of(row())
    with pytest.raises(ProtocolViolation):
        decode_row(msgpack.packb([*parts[:place], value, *parts[place + 1 :]]))


def test_a_row_is_whole_and_alone() -> None:
    data, parts = encode_row(row()), parts_of(row())
    broken = [data[:end] for end in range(len(data))]
    broken += [data + b"\xc0", msgpack.packb(parts[:-1]), msgpack.packb([*parts, b""]), msgpack.packb(1)]
    broken += [msgpack.packb([parts, parts]), msgpack.packb({"a": b""}), b"\xc0", b"\x90"]
    broken.append(data.replace(b"\x81\xa6symbol\xc4\x0a", b"\x82\xa6symbol\xc4\x00\xa6symbol\xc4\x0a"))
    for one in broken:
        with pytest.raises(ProtocolViolation):
            decode_row(one)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_row_or_a_violation(tail: bytes) -> None:
    for data in (tail, b"\xdc\x00\x10" + tail):
        try:
            one = decode_row(data)
        except ProtocolViolation as violation:
            assert violation.text
            continue
        assert decode_row(encode_row(one)) == one


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=3))
def test_a_damaged_row_is_a_row_or_a_violation(place: int, bytes_: bytes) -> None:
    data = bytearray(encode_row(row()))
    place %= len(data)
    data[place : place + len(bytes_)] = bytes_
    try:
        one = decode_row(data)
        row_batch(one)
    except ProtocolViolation:
        return
    assert decode_row(encode_row(one)) == one


def test_a_row_of_nothing_takes_little_memory() -> None:
    data = b"\x90"
    for _ in range(5):
        data = b"\xdc\x00\x10" + data * 16
    tracemalloc.start()
    with pytest.raises(ProtocolViolation):
        decode_row(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**16


def test_what_cannot_be_written_is_our_own_error() -> None:
    one = row()
    one.topics = "\ud800"
    with pytest.raises(LocalError, match="cannot be encoded"):
        encode_row(one)
