"""A Node with a disk, both with their hands held: what is asked of the disk happens when the test says so."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from headgate.broker.core import Node
from headgate.broker.core.delivery import Stream
from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Input, LinkDown
from headgate.protocol.data import LogKind, LogName, Row
from headgate.protocol.messages import Answer, Ask, Error, Mode, Publish, Stamp
from tests.support.builders import quote_batch
from tests.support.log_disk import Disk
from tests.support.node_world import NodeWorld

__all__ = ["LogWorld", "answer_in", "stamped"]


class LogWorld(NodeWorld):
    """Stream `quotes` is stored, `memory` is not. `prompt`: the disk answers whatever is asked of it at once."""

    def __init__(self, prompt: bool = False, disk: Disk | None = None, schema: Any = None, **config: Any) -> None:
        super().__init__(**config)
        self.disk = disk or Disk()
        self.prompt = prompt
        self.feed(self.disk.opened())
        self.node.streams.declare("quotes", schema or {"durability": "stored"})

    def feed(self, happened: Input) -> list[Effect]:
        """One input, and what the disk says to what it was asked."""
        effects = super().feed(happened)
        self.disk.ask(effects)
        if self.prompt:
            self.sync()
        return effects

    def sync(self) -> None:
        """The disk answers until nothing more is asked of it."""
        while self.disk.asked:
            self.tell(self.disk.answer())

    def tell(self, said: Iterable[Input]) -> None:
        """The disk says this."""
        for happened in said:
            self.feed(happened)

    def restart(self, seed: int = 2) -> None:
        """The broker dies, and begins another life with what is on its disk."""
        for link in list(self.node.subscribers.by_link):
            self.feed(LinkDown(link, "died"))
        self.node = Node(self.config, Random(seed), self.now)
        self.feed(self.disk.opened())
        self.node.streams.declare("quotes", {"durability": "stored"})

    def name(self, kind: LogKind = LogKind.EVENTS, stream: str = "quotes") -> LogName:
        """A log of this broker."""
        return LogName(self.config.name, self.node.log.epoch, int(kind), stream)

    def rows(self, kind: LogKind = LogKind.EVENTS, stream: str = "quotes") -> list[Row]:
        """What is on disk of it."""
        return self.disk.rows(self.name(kind, stream))

    def ask(self, link: int, verb: str, **arguments: Any) -> Any:
        """A question; the answer, or the ERROR, or None when there is none yet."""
        return answer_in(self.say(link, Ask(77, verb, arguments)))

    @property
    def stream(self) -> Stream:
        """The stored one."""
        stream = self.node.streams.find("quotes")
        assert stream is not None
        return stream


def answer_in(messages: Iterable[object]) -> Any:
    """The value of the ANSWER among these, or the ERROR."""
    for message in messages:
        if isinstance(message, Answer):
            return message.value
        if isinstance(message, Error):
            return message
    return None


def stamped(
    sequence: int, number: int, *bodies: str, producer: str = "p", epoch: int = 1, mode: Mode = Mode.STORED, **more: Any
) -> Publish:
    """A PUBLISH of a producer."""
    names = bodies or (f"event {number}",)
    return Publish(sequence, mode, quote_batch(bodies=names), Stamp(producer, epoch, number, **more))
