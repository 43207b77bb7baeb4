"""Arbitrary bytes into the frame reader and the decoder: a value or a ProtocolViolation, never anything else."""

from __future__ import annotations

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.data import SCALAR_TYPES, decode_column, decode_record
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import MESSAGE_TYPES
from headgate.protocol.wire import FrameReader, decode, encode
from headgate.protocol.wire.codec import kind_of

lengths = st.sampled_from([b"", b"\x00\x00\x00\x01", b"\x00\x00\x00\x05", b"\x00\x00\x10\x00", b"\x00\x00\x10\x01"])
streams = st.lists(st.tuples(lengths, st.binary(max_size=12)), max_size=6).map(
    lambda parts: b"".join(head + tail for head, tail in parts)
)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats()
leaves = st.none() | st.booleans() | numbers | st.text(max_size=5) | st.binary(max_size=12)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
fields = st.lists(anything, max_size=9)


def read(pieces: list[bytes]) -> tuple[list[bytes], str]:
    """The frames in these pieces, and why reading ended early."""
    reader, frames = FrameReader(), []
    try:
        for piece in pieces:
            for view in reader.feed(piece):
                frames.append(bytes(view))
    except ProtocolViolation as violation:
        return frames, violation.text
    return frames, ""


@given(streams | st.binary(max_size=60))
def test_frames_do_not_depend_on_how_bytes_come_in(data: bytes) -> None:
    whole = read([data])
    assert read([data[place : place + 1] for place in range(len(data))]) == whole
    half = len(data) // 2
    assert read([data[:half], b"", data[half:]]) == whole
    assert sum(4 + len(one) for one in whole[0]) <= len(data)


@given(st.binary(max_size=100))
def test_bytes_are_a_message_or_a_violation(data: bytes) -> None:
    decoded_or_refused(data)


@given(st.sampled_from(sorted(MESSAGE_TYPES)), st.binary(max_size=60))
def test_bytes_behind_a_type_are_a_message_or_a_violation(number: int, tail: bytes) -> None:
    for count in (0x91, 0x92, 0x98, 0x99):
        decoded_or_refused(bytes([count, number]) + tail)


@given(st.sampled_from(sorted(MESSAGE_TYPES)), fields)
def test_any_fields_are_a_message_or_a_violation(number: int, parts: list[object]) -> None:
    decoded_or_refused(msgpack.packb([number, *parts]))


def decoded_or_refused(data: bytes) -> None:
    """What was decoded can be written and means the same again."""
    try:
        message = decode(data)
    except ProtocolViolation as violation:
        assert violation.text
        return
    assert type(message) is kind_of(data)
    again = encode(message)
    assert encode(decode(again)) == again


@given(
    st.binary(max_size=40) | st.lists(anything, max_size=4).map(lambda parts: msgpack.packb(parts)), st.integers(1, 4)
)
def test_bytes_are_a_column_or_a_violation(data: bytes, count: int) -> None:
    for column in (data, b"m" + data, b"d" + data, b"q" + data):
        try:
            values = decode_column(column, count)
        except ProtocolViolation:
            continue
        assert len(values) == count
        assert set(map(type, values)) <= SCALAR_TYPES
        assert all(-(2**63) <= value < 2**63 for value in values if type(value) is int)


@given(st.binary(max_size=40) | st.lists(anything, min_size=2, max_size=3).map(lambda parts: msgpack.packb(parts)))
def test_bytes_are_a_record_or_a_violation(data: bytes) -> None:
    try:
        attributes, body, content_type = decode_record(data)
    except ProtocolViolation:
        return
    assert set(map(type, attributes)) <= {str}
    assert set(map(type, attributes.values())) <= SCALAR_TYPES
    assert (type(body), type(content_type)) == (bytes, str)
