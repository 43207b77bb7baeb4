"""A driver whose connections only remember, whose Node can be made to fail, and whose clock is in the test's hand."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, cast

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Input, Received
from headgate.broker.daemon.driver import Driver
from headgate.broker.daemon.records import Records
from headgate.protocol.aio import Connection
from headgate.protocol.data import make_batch
from headgate.protocol.errors import LocalError
from headgate.protocol.messages import Goodbye, Hello, Message, Mode, Publish, Subscribe, Welcome

__all__ = ["Bench", "Breakable", "Wire"]


class Wire:
    """A connection that only remembers."""

    def __init__(self) -> None:
        self.said: list[Message] = []
        self.flushes = 0
        self.closed = False
        self.aborted = False
        self.chokes_on: type = type(None)

    def queue(self, message: Message) -> None:
        if isinstance(message, self.chokes_on):
            raise LocalError("a frame has at most 4 bytes")
        self.said.append(message)

    def flush(self) -> None:
        self.flushes += 1

    def close(self, code: int = 0, text: str = "") -> None:
        if not self.closed:
            self.said.append(Goodbye(code, text))
        self.closed = True

    def abort(self, reason: str = "") -> None:
        self.closed = self.aborted = True

    def heard(self, kind: type[Any]) -> list[Any]:
        return [message for message in self.said if isinstance(message, kind)]


class Breakable(Node):
    """The Node, with a fault that can be switched on and effects that can be slipped in."""

    breaks_on: type = type(None)
    breaks = 0
    extra: tuple[Effect, ...] = ()
    deadline: float | None = None

    def handle(self, happened: Input, now: float) -> list[Effect]:
        if isinstance(happened, self.breaks_on) or (
            isinstance(happened, Received) and isinstance(happened.messages[0], self.breaks_on)
        ):
            self.breaks += 1
            raise RuntimeError("a fault of ours")
        extra, self.extra = self.extra, ()
        return [*super().handle(happened, now), *extra]

    def next_deadline(self) -> float:
        return super().next_deadline() if self.deadline is None else self.deadline


class Bench:
    """A driver with a clock in the test's hand. What is said through its methods comes alone: a millisecond apart."""

    def __init__(self, directory: Path) -> None:
        self.now = 1000.0
        self.records = Records(directory)
        self.node = Breakable(
            NodeConfig("test", 1, outbox_bytes=16 * 1024 * 1024, grace_seconds=0.02), Random(1), self.now
        )
        self.driver = Driver(self.node, self.records, lambda: self.now)

    def feed(self, happened: Input) -> None:
        self.now += 0.001
        self.driver.feed(happened)

    def client(self, link: int, credit: int = 1000) -> Wire:
        wire = Wire()
        self.driver.links[link] = cast(Connection, wire)
        self.feed(Received(link, [Hello(credit=credit)]))
        assert wire.heard(Welcome)
        return wire

    def subscriber(self, link: int, credit: int = 1000) -> Wire:
        wire = self.client(link, credit)
        self.feed(Received(link, [Subscribe(1, 1, "a")]))
        return wire

    def publish(self, link: int, sequence: int = 1, size: int = 1, count: int = 1) -> None:
        batch = make_batch(["a"], {}, [b"x" * size] * count)
        self.feed(Received(link, [Publish(sequence, Mode.ACCEPTED, batch)]))
