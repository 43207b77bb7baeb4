"""A column: the values of one attribute for every event of a batch, as bytes and back.

The first byte names the form, the rest is the column:

    m   a msgpack array, one value an event: nil, bool, integer, float or string, in any mix
    d   float64, little-endian, eight bytes an event
    q   int64, little-endian, eight bytes an event
    b   a msgpack array, one bin an event or nil: the filters of documents, in the columns that are named for them

The typed forms are what columnar producers (Spark, numpy) have at hand: no object per value on either side. A
broker decodes a column only when a condition reads it.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgpack

from ..errors import LocalError, ProtocolViolation
from ..limits import FILTER_BITS_MAX

FILTER_COLUMNS = ("#structure/", "#values/")
"""How the names of columns begin that hold filters, and no attribute."""

LEVEL_COLUMNS = "#level/"
"""How the names of columns begin that hold a level of each topic, from 0: read off the topics, whatever is sent."""

__all__ = [
    "FILTER_COLUMNS",
    "LEVEL_COLUMNS",
    "SCALAR_TYPES",
    "Scalar",
    "decode_column",
    "encode_column",
    "has_wide_integer",
]

Scalar = None | bool | int | float | str

SCALAR_TYPES = frozenset((type(None), bool, int, float, str))
"""What msgpack makes of a scalar; comparing types as a set is one C call a column."""

_INT64_MAX = 2**63 - 1
_TYPED = ("d", "q")
_UINT64 = b"\xcf"


def has_wide_integer(values: Iterable[object], encoded: bytes) -> bool:
    """Whether a value is an integer over int64. msgpack writes those as uint64, whose mark is looked for first."""
    return _UINT64 in encoded and any(type(value) is int and value > _INT64_MAX for value in values)


def encode_column(values: Sequence[Scalar]) -> bytes:
    """The column as bytes; an `array` of doubles or of 64-bit integers takes the typed form.

    Raises LocalError when a value is not a scalar.
    """
    if isinstance(values, array) and values.typecode in _TYPED:
        if sys.byteorder == "big":
            values = array(values.typecode, values)
            values.byteswap()
        return values.typecode.encode() + values.tobytes()
    if bytes in map(type, values):
        return _encode_filters(values)
    try:
        column: bytes = b"m" + msgpack.packb(values if isinstance(values, list | tuple) else list(values))
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"a column holds null, bool, 64-bit int, float and string: {error}") from error
    if not SCALAR_TYPES.issuperset(map(type, values)) and not all(isinstance(value, Scalar) for value in values):
        raise LocalError("a column holds null, bool, 64-bit int, float and string, and nothing nested")
    if has_wide_integer(values, column):
        raise LocalError("integers have 64 bits with a sign; write larger ones as floats or strings")
    return column


def decode_column(column: bytes, count: int) -> Sequence[Scalar]:
    """The `count` values of a column. Raises ProtocolViolation when it is anything else than a flat column."""
    form = column[:1]
    if form == b"m":
        return _decode_mixed(column, count)
    if form == b"b":
        return _decode_filters(column, count)
    if form not in (b"d", b"q"):
        raise ProtocolViolation(f"a column begins with its form, one of m, d, q, b; not {form!r}")
    if len(column) != 1 + 8 * count:
        raise ProtocolViolation(f"a typed column of {count} events has {8 * count} bytes, not {len(column) - 1}")
    values = array(form.decode())
    values.frombytes(memoryview(column)[1:])
    if sys.byteorder == "big":
        values.byteswap()
    return values.tolist()


def _decode_mixed(column: bytes, count: int) -> Sequence[Scalar]:
    lists: deque[list[Any]] = deque(maxlen=2)  # the column itself comes last; one before it was nested
    try:
        msgpack.unpackb(
            memoryview(column)[1:],
            list_hook=lists.append,
            max_array_len=count,
            max_map_len=0,
            max_ext_len=0,
            max_bin_len=0,
            max_str_len=len(column),
        )
    except Exception as error:  # msgpack raises a dozen kinds; each means the same to us
        raise ProtocolViolation(f"a column is not a flat msgpack array of scalars: {error}") from error
    if len(lists) != 1 or len(lists[0]) != count:
        raise ProtocolViolation(f"a column holds one value for each of its batch's {count} events")
    values = lists[0]
    if not SCALAR_TYPES.issuperset(map(type, values)) or has_wide_integer(values, column):
        raise ProtocolViolation("a column holds nil, bools, 64-bit integers, floats and strings")
    return values


def _encode_filters(values: Sequence[Any]) -> bytes:
    if not {bytes, type(None)}.issuperset(map(type, values)):
        raise LocalError("a column of filters holds bytes and null alone")
    column: bytes = b"b" + msgpack.packb(list(values))
    return column


def _decode_filters(column: bytes, count: int) -> Sequence[Any]:
    try:
        values = msgpack.unpackb(
            memoryview(column)[1:],
            max_array_len=count,
            max_map_len=0,
            max_ext_len=0,
            max_bin_len=FILTER_BITS_MAX // 8,
            max_str_len=0,
        )
    except Exception as error:  # msgpack raises a dozen kinds; each means the same to us
        raise ProtocolViolation(f"a column of filters is a flat msgpack array of bins and nil: {error}") from error
    if type(values) is not list or len(values) != count or not {bytes, type(None)}.issuperset(map(type, values)):
        raise ProtocolViolation(f"a column of filters holds one bin or nil for each of its batch's {count} events")
    return values
