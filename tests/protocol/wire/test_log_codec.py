"""The stamp of a PRODUCE as bytes: what fits comes back, and a batch without one is the PUBLISH that it always was."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.errors import LocalError, ProtocolViolation
from headgate.protocol.limits import CREDIT_MAX, DIGEST_LENGTH_MAX
from headgate.protocol.messages import Mode, Publish, Stamp
from headgate.protocol.wire import decode, encode, encode_chunks
from headgate.protocol.wire.codec import decode_stamp, encode_stamp, kind_of
from tests.support.samples import batch

PRODUCE: list[Any] = [19, 1, 2, "job", 2, 100, b"\x01", b"", "a", bytes(4), {}, True, b""]


@given(
    st.text(min_size=1, max_size=30),
    st.integers(0, CREDIT_MAX),
    st.integers(0, CREDIT_MAX),
    st.binary(max_size=DIGEST_LENGTH_MAX),
    st.binary(max_size=300),
)
def test_a_stamp_comes_back(producer: str, epoch: int, number: int, digest: bytes, ids: bytes) -> None:
    stamp = Stamp(producer, epoch, number, digest, ids)
    assert decode_stamp(msgpack.unpackb(b"\x95" + encode_stamp(stamp, msgpack.packb))) == stamp
    message = Publish(7, Mode.STORED, batch(), stamp)
    assert kind_of(encode(message)) is Publish
    assert decode(encode(message)) == message


def test_without_a_stamp_nothing_is_new() -> None:
    plain, stamped = Publish(7, Mode.STORED, batch()), Publish(7, Mode.STORED, batch(), Stamp("job", 2, 100))
    head, records = encode_chunks(plain)
    assert head[:2] == b"\x98\x0c" and encode_chunks(stamped)[1] == records
    body = [*msgpack.unpackb(encode(plain))]
    assert msgpack.unpackb(encode(stamped)) == [19, *body[1:3], "job", 2, 100, b"", b"", *body[3:]]


WRONG: list[tuple[int, Any]] = [(1, 0), (2, 0), (2, 3), (3, ""), (3, "x" * 257), (3, b"job"), (3, None), (4, -1)]
WRONG += [(4, True), (5, CREDIT_MAX + 1), (5, 1.0), (6, bytes(DIGEST_LENGTH_MAX + 1)), (6, ""), (7, "a"), (7, [])]
WRONG += [(8, "a\nb"), (9, bytes(3)), (10, {"a": 1}), (11, None), (12, b"x")]


@pytest.mark.parametrize(("place", "value"), WRONG)
def test_a_produce_that_does_not_fit_is_refused(place: int, value: Any) -> None:
    assert isinstance(decode(msgpack.packb(PRODUCE)), Publish)
    with pytest.raises(ProtocolViolation):
        decode(msgpack.packb([*PRODUCE[:place], value, *PRODUCE[place + 1 :]]))


def test_fire_and_a_stamp_contradict_each_other() -> None:
    with pytest.raises(ProtocolViolation, match="because it is answered"):
        decode(msgpack.packb([19, 0, 0, *PRODUCE[3:]]))


def test_what_cannot_be_written_is_our_own_error() -> None:
    with pytest.raises(LocalError, match="PUBLISH cannot be encoded"):
        encode(Publish(1, 1, batch(), Stamp("\ud800", 0, 0)))
