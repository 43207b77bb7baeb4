"""Plain values: there and back, and whatever is none is refused."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.data import pack_value, unpack_value
from headgate.protocol.errors import LocalError, ProtocolViolation

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.text(), st.binary()
)
plain = st.recursive(
    scalars, lambda some: st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=5), some, max_size=4)
)


def unpack(data: bytes, bytes_max: int = 10_000, items_max: int = 100) -> Any:
    return unpack_value(data, bytes_max=bytes_max, items_max=items_max)


@given(plain)
def test_values_come_back(value: Any) -> None:
    assert unpack(pack_value(value)) == value


@given(st.binary(max_size=50))
def test_bytes_are_a_value_or_refused(data: bytes) -> None:
    try:
        unpack(data)
    except ProtocolViolation:
        return


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        pack_value([1]) + b"\x00",
        pack_value("x" * 10_000),
        pack_value([0] * 101),
        pack_value({str(at): at for at in range(101)}),
        msgpack.packb({1: 2}),
        b"\x82\xa1a\x01\xa1a\x02",
        msgpack.packb(msgpack.ExtType(1, b"")),
        msgpack.packb(msgpack.Timestamp(1)),
        b"\x91" * 5000,
        b"\xa1\xff",
    ],
)
def test_what_is_no_plain_value_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        unpack(data)


@pytest.mark.parametrize("value", [object(), 2**64, {1, 2}])
def test_what_cannot_be_written_is_an_error_of_ours(value: Any) -> None:
    with pytest.raises(LocalError):
        pack_value(value)
