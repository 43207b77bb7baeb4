"""The interface of a measured server: how it is started, and its bytes. No client library is used, so none is measured.

Three small roles. A `Peer` starts its server and encodes events; a `Publisher` writes chunks that were encoded before
the clock started; a `Subscriber` counts what comes in. A peer whose deliveries all have the same length is counted by
dividing bytes, which makes the sink as cheap as the kernel lets it be.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..kit import MeasurementFailed, Want, Workload
from ..limits import ARRIVALS_PER_CHUNK_MAX, BODY_LENGTH, CHUNK_EVENTS, IN_FLIGHT_ARRIVALS_MAX

__all__ = ["BODY", "Chunk", "Peer", "Publisher", "SizedSubscriber", "Subscriber", "dial", "installed", "read_until"]

BODY = (b"0123456789abcdef" * 8)[:BODY_LENGTH]
_ANSWER_SECONDS_MAX = 30.0
_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(slots=True)
class Chunk:
    """Bytes for one write, and what they cause: deliveries at the sink, and how many of them somebody asked for."""

    data: bytearray
    events: int
    arrivals: int
    useful: int
    frames: int = 1


class Publisher:
    """The generator's connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def prepare(self, chunk: Chunk) -> None:
        """Do what can be done before the clock is read for the next `send`, of this chunk; never waits."""

    def send(self, chunk: Chunk) -> None:
        """Write a chunk, waiting as long as the server makes us."""
        self.connection.sendall(chunk.data)

    def settle(self) -> None:
        """Read what the server has answered; never waits."""

    def finish(self) -> None:
        """Wait for the last answer, then close."""
        self.connection.close()


class Subscriber(ABC):
    """One of the sink's connections, with its subscriptions in force."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.lost = 0

    @abstractmethod
    def feed(self, view: memoryview) -> int:
        """How many deliveries these bytes complete."""

    def finish(self) -> None:
        """Close, in the order that the protocol asks for."""
        self.connection.close()


class SizedSubscriber(Subscriber):
    """A subscriber whose deliveries all have the same length."""

    def __init__(self, connection: socket.socket, length: int) -> None:
        super().__init__(connection)
        self._length = length
        self._waiting = 0

    def feed(self, view: memoryview) -> int:
        count, self._waiting = divmod(self._waiting + len(view), self._length)
        return count


class Peer(ABC):
    """A kind of server."""

    name: ClassVar[str]
    in_flight_arrivals_max: ClassVar[int] = IN_FLIGHT_ARRIVALS_MAX

    @property
    def label(self) -> str:
        """Its name in the report."""
        return self.name

    @abstractmethod
    def version(self) -> str | None:
        """The installed version; None when it is not installed."""

    @abstractmethod
    def command(self, port: int, folder: Path) -> list[str]:
        """How to start it on this port, keeping all its files in this folder."""

    @abstractmethod
    def publisher(self, port: int) -> Publisher:
        """A connection ready to publish."""

    @abstractmethod
    def subscriber(self, port: int, wants: Sequence[Want]) -> Subscriber:
        """A connection whose subscriptions are in force."""

    @abstractmethod
    def encode(self, workload: Workload, first: int, last: int) -> bytearray:
        """The bytes that publish the events first to last - 1 of the ring."""

    def arrivals(self, workload: Workload) -> list[int]:
        """For each event, the deliveries that the sink will count: a flood, since peers know topics only."""
        return workload.flood()

    def chunks(self, workload: Workload) -> list[Chunk]:
        """The ring of the generator, one write each."""
        useful, arrivals = workload.useful(), self.arrivals(workload)
        step = max(1, min(CHUNK_EVENTS, ARRIVALS_PER_CHUNK_MAX // max(1, max(arrivals))))
        if workload.publishers > 1:
            step = 1
        return [
            Chunk(
                self.encode(workload, first, first + step),
                step,
                sum(arrivals[first : first + step]),
                sum(useful[first : first + step]),
            )
            for first in range(0, len(workload.events) - step + 1, step)
        ]

    def single(self, workload: Workload) -> Chunk:
        """The first event of the ring alone, for latency."""
        return Chunk(self.encode(workload, 0, 1), 1, self.arrivals(workload)[0], workload.useful()[0])


def dial(port: int) -> socket.socket:
    """A blocking connection to a server on the loopback."""
    connection = socket.create_connection(("127.0.0.1", port), _ANSWER_SECONDS_MAX)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_until(connection: socket.socket, mark: bytes, count: int = 1) -> bytes:
    """Everything up to the `count`th mark, which is the last thing the server sends for now."""
    received = bytearray()
    while received.count(mark) < count:
        data = connection.recv(65536)
        if not data:
            raise MeasurementFailed("a server", f"closed the connection after {bytes(received[-200:])!r}")
        received += data
    return bytes(received)


def installed(program: str, *arguments: str) -> str | None:
    """The first line that a program says about itself; None when it is not installed."""
    path = find(program)
    if path is None:
        return None
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False, timeout=10)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else program


def find(program: str) -> str | None:
    """Where a program is; servers often live where a user's PATH does not look."""
    return shutil.which(program) or shutil.which(program, path=_SYSTEM_FOLDERS)
