"""Frames: any cut of the stream gives the same frames; lengths that no frame has are refused; memory follows bytes."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.errors import ErrorCode, LocalError, ProtocolViolation
from headgate.protocol.limits import FRAME_LENGTH_MAX, HANDSHAKE_FRAME_LENGTH_MAX
from headgate.protocol.wire import FrameReader, frame

BODIES = [b"a", b"bc" * 100, b"\x00" * 4, bytes(range(256))]
STREAM = b"".join(b"".join(frame([body])) for body in BODIES)


def read(reader: FrameReader, *pieces: bytes) -> list[bytes]:
    return [bytes(view) for piece in pieces for view in reader.feed(piece)]


def test_the_length_comes_first_big_endian() -> None:
    assert frame([b"ab", b"c"]) == [b"\x00\x00\x00\x03abc"]
    assert frame([b"ab"]) == [b"\x00\x00\x00\x02ab"]


def test_large_chunks_are_not_copied() -> None:
    large = bytes(5000)
    head, same = frame([b"ab", large])
    assert head == (5002).to_bytes(4, "big") + b"ab"
    assert same is large


def test_a_frame_over_the_limit_is_our_own_error() -> None:
    assert sum(map(len, frame([b"a", bytes(FRAME_LENGTH_MAX - 1)]))) == FRAME_LENGTH_MAX + 4
    with pytest.raises(LocalError, match="split"):
        frame([b"a", bytes(FRAME_LENGTH_MAX)])
    with pytest.raises(LocalError, match="at most 9 bytes, not 10"):
        frame([bytes(10)], 9)


def test_a_stream_cut_anywhere_gives_the_same_frames() -> None:
    for place in range(len(STREAM) + 1):
        assert read(FrameReader(), STREAM[:place], STREAM[place:]) == BODIES
    assert read(FrameReader(), *(STREAM[place : place + 1] for place in range(len(STREAM)))) == BODIES


@given(st.lists(st.integers(1, len(STREAM) - 1), unique=True).map(sorted))
def test_a_stream_cut_many_times_gives_the_same_frames(places: list[int]) -> None:
    cuts = zip([0, *places], [*places, len(STREAM)], strict=True)
    assert read(FrameReader(), *(STREAM[start:end] for start, end in cuts)) == BODIES


def test_only_the_frame_that_was_cut_is_copied() -> None:
    reader, whole = FrameReader(), b"".join(frame([b"later" * 100]))
    assert read(reader, whole[:7]) == []
    data = whole[7:] + whole
    cut, later = reader.feed(memoryview(data))
    assert bytes(cut) == bytes(later) == b"later" * 100
    assert later.obj is data
    assert len(cut.obj) == len(whole), "what follows was copied as well"  # type: ignore[arg-type]  # a bytearray
    assert not reader.waiting


def test_ten_thousand_frames_come_in_one_segment() -> None:
    assert read(FrameReader(), b"\x00\x00\x00\x01x" * 10_000) == [b"x"] * 10_000


def test_waiting_tells_of_a_begun_frame() -> None:
    reader = FrameReader()
    states = [(read(reader, bytes([byte])), reader.waiting)[1] for byte in b"\x00\x00\x00\x02ab"]
    assert states == [True, True, True, True, True, False]


@pytest.mark.parametrize("limit", [HANDSHAKE_FRAME_LENGTH_MAX, FRAME_LENGTH_MAX])
def test_the_limit_itself_passes_and_one_more_does_not(limit: int) -> None:
    assert read(FrameReader(limit), limit.to_bytes(4, "big"), bytes(limit)) == [bytes(limit)]
    reader = FrameReader(limit)
    with pytest.raises(ProtocolViolation, match=f"{limit + 1} bytes is over the limit of {limit}") as caught:
        read(reader, (limit + 1).to_bytes(4, "big"))
    assert caught.value.code is ErrorCode.TOO_LARGE
    assert not reader.waiting


@pytest.mark.parametrize("split", [1, 2, 4])
def test_no_frame_is_empty(split: int) -> None:
    with pytest.raises(ProtocolViolation, match="at least one byte"):
        read(FrameReader(), *(bytes(split) for _ in range(4 // split)))


def test_a_claimed_length_takes_no_memory() -> None:
    with pytest.raises(ProtocolViolation):
        read(FrameReader(FRAME_LENGTH_MAX), b"\xff\xff\xff\xff")
    reader = FrameReader(FRAME_LENGTH_MAX)
    tracemalloc.start()
    assert read(reader, FRAME_LENGTH_MAX.to_bytes(4, "big"), b"x") == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reader.waiting
    assert peak < 4096


def test_a_large_frame_in_small_pieces_takes_linear_time() -> None:
    body = bytes(FRAME_LENGTH_MAX)
    stream = FRAME_LENGTH_MAX.to_bytes(4, "big") + body
    began = time.process_time()
    frames = read(FrameReader(FRAME_LENGTH_MAX), *(stream[place : place + 512] for place in range(0, len(stream), 512)))
    assert time.process_time() - began < 1.0, "what was kept is copied for every piece"
    assert frames == [body]


def test_the_limit_may_change_between_two_frames() -> None:
    reader = FrameReader(1)
    frames = reader.feed(b"\x00\x00\x00\x01x\x00\x00\x00\x02yz")
    assert bytes(next(frames)) == b"x"
    reader.length_max = 2
    assert bytes(next(frames)) == b"yz"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", "HTTP"),
        (b"POST / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"HEAD / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"PUT / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"OPTIONS / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"\x16\x03\x03\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b'CONNECT {"verbose":false}\r\n', "NATS"),
    ],
)
def test_a_stranger_is_told_that_this_is_the_wrong_port(data: bytes, name: str) -> None:
    for pieces in ([data], [data[place : place + 1] for place in range(len(data))]):
        with pytest.raises(ProtocolViolation, match=f"the other side speaks .*{name}"):
            read(FrameReader(), *pieces)


def test_other_strangers_are_refused_for_their_length() -> None:
    for data in (b"*1\r\n$4\r\nPING\r\n", b"AMQP\x00\x00\x09\x01", b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"):
        with pytest.raises(ProtocolViolation, match="over the limit"):
            read(FrameReader(), data)
