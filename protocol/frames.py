"""A byte stream as length-prefixed frames, fed as it comes in, whole or byte by byte.

A frame is a u32 big-endian length and so many bytes. Memory follows the bytes that came, never the length that was
claimed; a length over the limit is refused before anything of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from .errors import ErrorCode, LocalError, ProtocolViolation
from .limits import FRAME_LENGTH_MAX, HANDSHAKE_FRAME_LENGTH_MAX

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

    __slots__ = ("_kept", "_wanted", "length_max")

    def __init__(self, length_max: int = HANDSHAKE_FRAME_LENGTH_MAX) -> None:
        self.length_max = length_max
        self._kept = bytearray()
        self._wanted = _HEAD

    @property
    def waiting(self) -> bool:
        """Part of a frame is here."""
        return bool(self._kept)

    def feed(self, data: bytes | memoryview) -> Iterator[memoryview]:
        """The frames that `data` completes; exhaust it, or give up the connection. A frame is good until the next one.

        Raises ProtocolViolation on a length that no frame has. `length_max` may change between two frames.
        """
        view = memoryview(data)
        start, total = 0, len(view)
        while self._kept:
            # Only what this frame lacks is copied to it: behind it there may be hundreds of KiB.
            kept, end = self._kept, start + self._wanted - len(self._kept)
            kept += view[start:end]
            if end > total:
                return
            start = end
            if self._wanted == _HEAD:
                self._wanted += self._length(kept)
            else:
                self._kept, self._wanted = bytearray(), _HEAD
                yield memoryview(kept)[_HEAD:]
        while total - start >= _HEAD:
            end = start + _HEAD + self._length(view[start : start + _HEAD])
            if end > total:
                self._wanted = end - start
                break
            yield view[start + _HEAD : end]
            start = end
        if start < total:
            self._kept += view[start:]

    def _length(self, head: bytearray | memoryview) -> int:
        """The length that a frame says it has. Raises ProtocolViolation when none may have it."""
        length = int.from_bytes(head, "big")
        if not 0 < length <= self.length_max:
            self._kept = bytearray()
            raise self._refusal(length)
        return length

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
