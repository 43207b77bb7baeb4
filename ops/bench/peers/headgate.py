"""Headgate itself, measured as a stranger would: over its wire, with handshake, window, acknowledgements and credit.

Publishing: batches in mode ACCEPTED, encoded before the clock starts. A sequence number that needs 64 bits makes
msgpack write it as 0xcf and eight bytes, so it always sits at the same place and is patched there before each write;
all frames of a chunk have one length, which lets eight strided copies patch any number of them.

Counting: a DELIVER frame begins with its routes, and they alone say how many deliveries it is. The common shape, one
subscription for one run of events, is read by a single `struct` call; every other shape by msgpack. The records are
skipped by the frame's length and never looked at.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgpack

from headgate.protocol.data import Scalar, make_batch
from headgate.protocol.limits import CREDIT_DEFAULT, FRAME_LENGTH_MAX, HEARTBEAT_SECONDS_MAX
from headgate.protocol.messages import (
    Credit,
    Error,
    Gap,
    Goodbye,
    Hello,
    Message,
    Mode,
    Ping,
    Pong,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Welcome,
)
from headgate.protocol.wire import FrameReader, decode, encode, encode_chunks, frame

from ..kit import SOURCES, MeasurementFailed, Want, Workload, free_port
from ..limits import CHUNK_EVENTS, FRAMES_PER_CHUNK_MAX
from .peer import BODY, Chunk, Peer, Publisher, Subscriber, dial

__all__ = ["Headgate", "HeadgatePublisher", "HeadgateSubscriber", "Line", "patch"]

_SEQUENCE_AT = 4 + 3
"""Frame length, array head, type number, 0xcf: then the eight bytes of the sequence."""
_WIDE_SEQUENCE = 1 << 40
_HEAD = struct.Struct(">IHBBB")
"""Frame length; array of 9, type 14; what the routes are; in an array of 2 the subscription and its run of events, or
their first bytes."""
_DELIVER_HEAD, _TWO = 0x9A0E, 0x92
_DELIVER = b"\x9a\x0e"
_ROUTES_MAX = 64 * 1024


def _framed(message: Message) -> bytes:
    return b"".join(frame(encode_chunks(message)))


def patch(data: bytearray, frames: int, sequence: int) -> None:
    """Give the frames of a chunk, all of one length, the sequence numbers from `sequence` on."""
    if frames == 1:
        struct.pack_into(">Q", data, _SEQUENCE_AT, sequence)
        return
    words = array("Q", range(sequence, sequence + frames))
    if sys.byteorder == "little":
        words.byteswap()
    raw, stride = words.tobytes(), len(data) // frames
    for place in range(8):
        data[_SEQUENCE_AT + place :: stride] = raw[place::8]


class Line:
    """A handshaken connection that speaks in messages; for what happens outside the measured path."""

    def __init__(self, port: int, credit: int = CREDIT_DEFAULT) -> None:
        self.connection = dial(port)
        self._reader = FrameReader(FRAME_LENGTH_MAX)
        self.send(Hello(name="bench", credit=credit, heartbeat_seconds=HEARTBEAT_SECONDS_MAX))
        try:
            (welcome,) = self.receive()
            if not isinstance(welcome, Welcome):
                raise MeasurementFailed("headgate", f"answered HELLO with {welcome}")
        except MeasurementFailed:
            self.connection.close()
            raise
        self.window = welcome.window

    def send(self, message: Message) -> None:
        """Write one message."""
        self.connection.sendall(_framed(message))

    def receive(self, data: bytes | None = None) -> list[Message]:
        """The messages in these bytes, or in what comes in next; waits for at least one then."""
        messages: list[Message] = []
        waits = data is None
        while True:
            if data is None:
                data = self.connection.recv(65536)
                if not data:
                    raise MeasurementFailed("headgate", "closed the connection")
            messages += map(decode, self._reader.feed(data))
            if messages or not waits:
                break
            data = None
        for message in messages:
            if isinstance(message, Error | Goodbye):
                raise MeasurementFailed("headgate", f"said {message.text!r} (code {message.code})")
            if isinstance(message, Ping):
                self.send(Pong(message.token))
        return messages

    def close(self) -> None:
        """Say goodbye, so that the session and its subscriptions end at once."""
        try:
            self.send(Goodbye(0, ""))
        except OSError:
            pass
        self.connection.close()


class HeadgatePublisher(Publisher):
    """Keeps to the window: never more unacknowledged batches than WELCOME allowed."""

    def __init__(self, line: Line) -> None:
        super().__init__(line.connection)
        self._line = line
        self._sent = 0
        self._acknowledged = 0
        self._prepared: Chunk | None = None

    def prepare(self, chunk: Chunk) -> None:
        patch(chunk.data, chunk.frames, self._sent + 1)
        self._prepared = chunk

    def send(self, chunk: Chunk) -> None:
        frames, window = chunk.frames, self._line.window
        while self._sent + frames - self._acknowledged > window:
            self._absorb(self._line.receive())
        if self._prepared is not chunk:
            self.prepare(chunk)
        self._prepared = None
        self._sent += frames
        self.connection.sendall(chunk.data)

    def settle(self) -> None:
        self.connection.setblocking(False)
        try:
            data = self.connection.recv(65536)
        except BlockingIOError:
            return
        finally:
            self.connection.setblocking(True)
        self._absorb(self._line.receive(data))

    def finish(self) -> None:
        while self._acknowledged < self._sent:
            self._absorb(self._line.receive())
        self._line.close()

    def _absorb(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, Puback):
                self._acknowledged = message.sequence


class HeadgateSubscriber(Subscriber):
    """Counts deliveries by the routes of each DELIVER, and gives credit as it goes."""

    def __init__(self, line: Line, credit: int = CREDIT_DEFAULT) -> None:
        super().__init__(line.connection)
        self._line = line
        self._kept = b""
        self._skip = 0
        self._events = 0
        self._credit = credit
        self._credit_at = credit // 2

    def feed(self, view: memoryview) -> int:
        position, total = self._skip, len(view)
        if position >= total:
            self._skip = position - total
            return 0
        if self._kept:
            view = memoryview(self._kept + bytes(view))
            self._kept, total = b"", len(view)
        deliveries, head, minimum = 0, _HEAD.unpack_from, _HEAD.size
        while total - position >= minimum:
            length, magic, routes, subscription, run = head(view, position)
            if magic == _DELIVER_HEAD and routes == _TWO and subscription < 0x80 and run < 0x80:
                self._events += run
                deliveries += run
            else:
                counted = self._count(view[position + 4 : position + 4 + length], length)
                if counted < 0:
                    break
                deliveries += counted
            position += 4 + length
        self._skip = max(0, position - total)
        if position < total:
            self._kept = bytes(view[position:])
        if self._events >= self._credit_at:
            self._give_credit()
        return deliveries

    def finish(self) -> None:
        self._line.close()

    def _count(self, body: memoryview, length: int) -> int:
        """Deliveries of a frame of which the beginning is here; -1 when more of it is needed."""
        if bytes(body[:2]) != _DELIVER:
            if len(body) < length:
                return -1
            self._notice(decode(body))
            return 0
        unpacker = msgpack.Unpacker(max_buffer_size=_ROUTES_MAX + 8)
        unpacker.feed(body[2:_ROUTES_MAX])
        try:
            routes = unpacker.unpack()
        except msgpack.OutOfData:
            if len(body) < length:
                return -1
            raise MeasurementFailed("headgate", "sent a DELIVER whose routes are longer than 64 KiB") from None
        if type(routes) is bytes:
            self._events += len(routes) // 4
            return len(routes) // 4
        deliveries = 0
        for subscriptions, run in zip(routes[::2], routes[1::2], strict=True):
            self._events += run
            deliveries += run * (1 if type(subscriptions) is int else len(subscriptions))
        return deliveries

    def _notice(self, message: Message) -> None:
        if isinstance(message, Gap):
            self.lost += message.count
        elif isinstance(message, Ping):
            self._line.send(Pong(message.token))
        elif isinstance(message, Error | Goodbye):
            raise MeasurementFailed("headgate", f"said {message.text!r} (code {message.code})")

    def _give_credit(self) -> None:
        self._credit_at = self._events + self._credit // 2
        self._line.send(Credit(self._events + self._credit, self._events))


class Headgate(Peer):
    """This project's daemon, with batches of a given size."""

    name: ClassVar[str] = "headgate"

    def __init__(self, batch_events: int = CHUNK_EVENTS) -> None:
        self.batch_events = batch_events

    @property
    def label(self) -> str:
        return self.name if self.batch_events == CHUNK_EVENTS else f"{self.name} @{self.batch_events}"

    def version(self) -> str | None:
        return "this tree" if (SOURCES / "broker" / "daemon" / "main.py").exists() else None

    def command(self, port: int, folder: Path) -> list[str]:
        return [
            "env",
            f"HEADGATE_LISTEN=127.0.0.1:{port}",
            f"HEADGATE_ADMIN=127.0.0.1:{free_port()}",
            f"HEADGATE_DATA={folder / 'data'}",
            *(sys.executable, "-m", "headgate.broker"),
        ]

    def publisher(self, port: int) -> HeadgatePublisher:
        return HeadgatePublisher(Line(port))

    def subscriber(self, port: int, wants: Sequence[Want]) -> HeadgateSubscriber:
        line = Line(port)
        requests = [
            _framed(Subscribe(number, number, want.topic, want.condition)) for number, want in enumerate(wants, 1)
        ]
        # In pieces, so that answers never fill one direction while we still write the other.
        for first in range(0, len(requests), 100):
            piece = requests[first : first + 100]
            line.connection.sendall(b"".join(piece))
            open_requests = len(piece)
            while open_requests:
                open_requests -= sum(isinstance(message, Suback) for message in line.receive())
        return HeadgateSubscriber(line)

    def arrivals(self, workload: Workload) -> list[int]:
        """Only what somebody asked for is sent at all."""
        return workload.useful()

    def encode(self, workload: Workload, first: int, last: int) -> bytearray:
        size = self.batch_events
        return bytearray().join(
            self._frame(workload, start, min(start + size, last)) for start in range(first, last, size)
        )

    def chunks(self, workload: Workload) -> list[Chunk]:
        useful, arrivals, size = workload.useful(), self.arrivals(workload), self.batch_events
        frames = 1 if workload.publishers > 1 else max(1, min(CHUNK_EVENTS // size, FRAMES_PER_CHUNK_MAX))
        step = frames * size
        made = []
        for first in range(0, len(workload.events) - step + 1, step):
            data = self.encode(workload, first, first + step)
            if len(data) % frames:
                raise MeasurementFailed("headgate", "the frames of a chunk differ in length")
            rows = slice(first, first + step)
            made.append(Chunk(data, step, sum(arrivals[rows]), sum(useful[rows]), frames))
        return made

    def _frame(self, workload: Workload, first: int, last: int) -> bytes:
        events = workload.events[first:last]
        attributes: dict[str, Sequence[Scalar]] = {}
        if workload.content:
            attributes = {"symbol": [event.symbol for event in events], "price": [event.price for event in events]}
        batch = make_batch([event.topic for event in events], attributes, [BODY] * len(events))
        payload = encode(Publish(_WIDE_SEQUENCE, Mode.ACCEPTED, batch))
        return len(payload).to_bytes(4, "big") + payload
