"""A byte stream as length-prefixed frames, fed as it comes in, whole or byte by byte.

A frame is a u32 big-endian length and so many bytes. Memory follows the bytes that came, never the length that was
claimed; a length over the limit is refused before anything of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import ErrorCode, LocalError, ProtocolViolation
from ..limits import FRAME_LENGTH_MAX, HANDSHAKE_FRAME_LENGTH_MAX

__all__ = ["FrameReader", "frame"]

_HEAD = 4
"""Bytes of the length before each frame."""


def frame(chunks: list[bytes], length_max: int = FRAME_LENGTH_MAX) -> list[bytes]:
    """The chunks of one frame behind their length. Small ones are joined, large ones are left alone.

    Raises LocalError over the limit: the other side would close the connection.
    """
    two = len(chunks) == 2
    length = len(chunks[0]) + len(chunks[1]) if two else sum(map(len, chunks))
    if length > length_max:
        raise LocalError(f"a frame has at most {length_max} bytes, not {length}: split what it carries")
    head = length.to_bytes(4, "big") + chunks[0]
    if length <= 4096:
        return [head + chunks[1]] if two else [head]
    return [head, *chunks[1:]]


class FrameReader:
    """Turns received bytes into frames. `waiting` tells whether one has begun and not ended."""

    __slots__ = ("_kept", "_wanted", "length_max", "waiting")

    def __init__(self, length_max: int = HANDSHAKE_FRAME_LENGTH_MAX) -> None:
        self.length_max = length_max
        self._kept = bytearray()
        self._wanted = _HEAD
        self.waiting = False

    def feed(self, data: bytes | memoryview) -> Iterable[memoryview]:
        """The frames that `data` completes; exhaust it, or give up the connection. A frame is good until the next one.

        Raises ProtocolViolation on a length that no frame has. `length_max` may change between two frames.
        """
        view = memoryview(data)
        if not self.waiting and 0 < len(view) - _HEAD == int.from_bytes(view[:_HEAD], "big") <= self.length_max:
            return (view[_HEAD:],)  # one frame and nothing else: what comes alone, every microsecond counts
        return self._frames(view)

    def _frames(self, view: memoryview) -> Iterator[memoryview]:
        start, total = 0, len(view)
        while self.waiting:
            # Only what this frame lacks is copied to it: behind it there may be hundreds of KiB.
            kept, end = self._kept, start + self._wanted - len(self._kept)
            kept += view[start:end]
            if end > total:
                return
            start = end
            if self._wanted == _HEAD:
                length = int.from_bytes(kept, "big")
                if not 0 < length <= self.length_max:
                    self._kept, self.waiting = bytearray(), False
                    raise self._refusal(length)
                self._wanted += length
            else:
                self._kept, self._wanted, self.waiting = bytearray(), _HEAD, False
                yield memoryview(kept)[_HEAD:]
        while total - start >= _HEAD:
            length = int.from_bytes(view[start : start + _HEAD], "big")
            if not 0 < length <= self.length_max:
                raise self._refusal(length)
            end = start + _HEAD + length
            if end > total:
                self._wanted = end - start
                break
            yield view[start + _HEAD : end]
            start = end
        if start < total:
            self._kept += view[start:]
            self.waiting = True

    def _refusal(self, length: int) -> ProtocolViolation:
        if length == 0:
            return ProtocolViolation("a frame has at least one byte")
        text = f"a frame of {length} bytes is over the limit of {self.length_max}"
        known = _FOREIGN.get(length.to_bytes(4, "big")[:3])
        if known:
            text = f"this is a Headgate port and the other side speaks {known}"
        return ProtocolViolation(text, ErrorCode.TOO_LARGE)


_FOREIGN = {
    b"GET": "HTTP (metrics and health are on the admin port, 7402)",
    b"POS": "HTTP (metrics and health are on the admin port, 7402)",
    b"PUT": "HTTP (metrics and health are on the admin port, 7402)",
    b"PRI": "HTTP (metrics and health are on the admin port, 7402)",
    b"HEA": "HTTP (metrics and health are on the admin port, 7402)",
    b"OPT": "HTTP (metrics and health are on the admin port, 7402)",
    b"\x16\x03\x01": "TLS",
    b"\x16\x03\x03": "TLS",
    b"HTT": "HTTP (the port of the clients is 7400, the admin port speaks HTTP)",
    b"CON": "the NATS protocol",
}
