"""Columns there and back, and every way in which a column can be no column."""

from __future__ import annotations

import math
import struct
import tracemalloc
from array import array
from typing import Any

import msgpack
import pytest

from headgate.protocol.data import Scalar, decode_column, encode_column
from headgate.protocol.data.columns import has_wide_integer
from headgate.protocol.errors import LocalError, ProtocolViolation

MIXED: list[Scalar] = [None, True, False, 0, -1, 2**63 - 1, -(2**63), 1.5, -0.0, math.inf, "", "naïve", "a\x00b", "𝄞"]


def same(left: object, right: object) -> bool:
    """Equal in value and in type, NaN and -0.0 included."""
    return type(left) is type(right) and repr(left) == repr(right)


def test_a_mixed_column_comes_back_with_its_types() -> None:
    values = decode_column(encode_column([*MIXED, math.nan]), len(MIXED) + 1)
    assert all(map(same, values, [*MIXED, math.nan]))


def test_arrays_take_the_typed_forms() -> None:
    doubles, integers = array("d", [1.5, math.inf]), array("q", [-(2**63), 2**63 - 1])
    assert encode_column(doubles) == b"d" + struct.pack("<2d", *doubles)
    assert encode_column(integers) == b"q" + struct.pack("<2q", *integers)
    assert list(decode_column(encode_column(doubles), 2)) == [1.5, math.inf]
    assert list(decode_column(encode_column(integers), 2)) == [-(2**63), 2**63 - 1]


def test_other_sequences_take_the_mixed_form() -> None:
    for values in ((1, 2), [1, 2], array("i", [1, 2]), range(1, 3)):
        assert encode_column(values) == b"m\x92\x01\x02"


@pytest.mark.parametrize(
    "value",
    [b"x", [1], {"a": 1}, {1}, int, 2**63, 2**64, -(2**63) - 1, "\ud800", 1j, msgpack.ExtType(5, b"")],
    ids=repr,
)
def test_what_is_no_scalar_is_our_own_error(value: Any) -> None:
    with pytest.raises(LocalError, match=r"column|64 bits"):
        encode_column(["fine", value])


NOT_SCALARS = [
    pytest.param(packed, id=packed.hex())
    for packed in (
        b"\x90",  # empty list
        b"\x91\x90",
        b"\x80",  # empty map
        b"\x81\xa1a\x01",
        b"\xc4\x00",  # empty bin in its three forms
        b"\xc5\x00\x00",
        b"\xc6\x00\x00\x00\x00",
        b"\xc4\x01x",
        b"\xc7\x00\x05",  # empty extension
        b"\xd4\x05x",
        b"\xd6\xff\x00\x00\x00\x00",  # timestamp
        b"\xcf" + b"\xff" * 8,  # 2^64 - 1
        b"\xcf\x80" + b"\x00" * 7,  # 2^63
        b"\xc1",  # never used
        b"\xa1\xff",  # invalid UTF-8
        b"\xa3\xed\xa0\x80",  # half a surrogate pair
    )
]


@pytest.mark.parametrize("packed", NOT_SCALARS)
def test_what_is_no_scalar_is_a_violation(packed: bytes) -> None:
    for column, count in ((b"m\x91" + packed, 1), (b"m\x93\x01" + packed + b"\xa1x", 3)):
        with pytest.raises(ProtocolViolation):
            decode_column(column, count)


@pytest.mark.parametrize(
    ("column", "count"),
    [
        (b"", 1),
        (b"m", 1),
        (b"x\x91\x01", 1),
        (b"m\x01", 1),
        (b"m\xa1x", 1),
        (b"m\x80", 1),
        (b"m\x90", 1),
        (b"m\x92\x01\x02", 1),
        (b"m\x91\x01", 2),
        (b"m\x91\x01\x01", 1),
        (b"m\xdd\xff\xff\xff\xff", 4096),
        (b"m\xdc\x10\x00", 4096),
        (b"d", 1),
        (b"d" + bytes(7), 1),
        (b"d" + bytes(9), 1),
        (b"q" + bytes(16), 1),
    ],
)
def test_a_column_of_another_length_or_form_is_a_violation(column: bytes, count: int) -> None:
    with pytest.raises(ProtocolViolation):
        decode_column(column, count)


def test_a_truncated_column_is_a_violation_at_every_offset() -> None:
    column = encode_column(MIXED)
    for end in range(len(column)):
        with pytest.raises(ProtocolViolation):
            decode_column(column[:end], len(MIXED))


def test_an_integer_marked_as_unsigned_is_fine_when_it_fits() -> None:
    assert decode_column(b"m\x91\xcf\x7f" + b"\xff" * 7, 1) == [2**63 - 1]
    assert not has_wide_integer(["Ï"], msgpack.packb(["Ï"]))


@pytest.mark.parametrize("element", [b"\xdc\x10\x00", b"\x90", b"\x91"], ids=["claims", "empty", "deep"])
def test_nested_claims_take_bounded_memory(element: bytes) -> None:
    column = b"m\xdc\x10\x00" + element * 60_000
    tracemalloc.start()
    with pytest.raises(ProtocolViolation):
        decode_column(column, 4096)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 * 2**20
