"""A log in memory that keeps the rules for producers: what the Spark source is tested against without a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.data import Batch, decode_column, decode_record
from headgate.protocol.errors import ErrorCode, Fenced, OutOfSequence, Refused

__all__ = ["FakeClient", "FakeLog", "FakeProducer"]


@dataclass
class _State:
    epoch: int = -1
    next: int = 0
    digest: bytes = b""
    ids: list[str] = field(default_factory=list)


class FakeLog:
    """`events` are (topic, attributes, body) in the order of the log; `producers` what it knows of each."""

    def __init__(self, interest: list[str] | None = None) -> None:
        self.interest = interest
        self.events: list[tuple[str, dict[str, Any], bytes]] = []
        self.batches: list[Batch] = []
        self.producers: dict[str, _State] = {}

    def open(self, name: str, epoch: int, before: Callable[[Batch], None] | None = None) -> FakeProducer:
        """A producer of that name; older ones of it are fenced. `before` is called with each batch before it is in."""
        state = self.producers.setdefault(name, _State())
        if epoch < state.epoch:
            raise Fenced(name, epoch, "opened later")
        state.epoch = epoch
        return FakeProducer(self, name, epoch, state, before)

    def values(self, name: str) -> list[Any]:
        """One attribute of every event."""
        return [attributes.get(name) for _, attributes, _ in self.events]

    def append(self, producer: FakeProducer, batch: Batch, number: int, digest: bytes, ids: bytes) -> None:
        """The rules: a fence, a duplicate, a hole, the next batch."""
        state = self.producers[producer.name]
        batch.check()
        if producer.epoch < state.epoch:
            raise Fenced(producer.name, producer.epoch, "opened later")
        if number + batch.count <= state.next:
            return
        if number != state.next:
            raise OutOfSequence(producer.name, number, f"{state.next} comes next")
        state.next += batch.count
        state.digest = digest
        state.ids += [str(value) for value in decode_column(ids, batch.count)] if ids else []
        self.batches.append(batch)
        topics = batch.topic_list() if "\n" in batch.topics else [batch.topics] * batch.count
        for topic, piece in zip(topics, batch.pieces(), strict=True):
            attributes, body, _ = decode_record(piece)
            self.events.append((topic, attributes, body))


class FakeProducer:
    """One attempt's producer."""

    def __init__(
        self, log: FakeLog, name: str, epoch: int, state: _State, before: Callable[[Batch], None] | None
    ) -> None:
        self.name = name
        self.epoch = epoch
        self.next = state.next
        self.digest = state.digest
        self.flushed = False
        self._number = state.next
        self._log = log
        self._before = before

    def interest(self, stream: str) -> list[str] | None:
        """What the log was made with."""
        return self._log.interest

    def publish(self, batch: Batch, digest: bytes = b"", ids: bytes = b"") -> None:
        """Into the log at once."""
        if self._before is not None:
            self._before(batch)
        self._log.append(self, batch, self._number, digest, ids)
        self._number += batch.count

    def flush(self) -> None:
        """Nothing waits."""
        self.flushed = True

    def close(self) -> None:
        """It publishes nothing more."""


class FakeClient:
    """What the Spark source asks of a client that publishes."""

    PAGE = 3

    def __init__(self, log: FakeLog) -> None:
        self.log = log
        self.asked: list[str] = []
        self.opened: list[tuple[str, int, int]] = []
        self.listed = 0

    def producer(self, name: str, epoch: int, *, inflight: int) -> FakeProducer:
        """A producer; what was opened is remembered."""
        self.opened.append((name, epoch, inflight))
        return self.log.open(name, epoch)

    def interest(self, stream: str) -> list[str] | None:
        """As the log has it."""
        return self.log.interest

    def ask(self, verb: str, **arguments: Any) -> Any:
        """`producers`, in small pages, and `producer.open`."""
        if verb == "producer.open":
            return {"next": self.log.open(arguments["producer"], arguments["epoch"]).next}
        assert verb == "producers"
        self.listed += 1
        rows = [
            {"name": name, "epoch": state.epoch, "next": state.next, "digest": state.digest}
            for name, state in sorted(self.log.producers.items())
            if name.rpartition("/")[0] == arguments["job"]
            and name > arguments["after"]
            and state.digest.startswith(arguments["begins"])
            and not (arguments["unless"] and state.digest.startswith(arguments["unless"]))
        ]
        page = rows[: self.PAGE]
        return {"producers": page, "next": page[-1]["name"] if len(rows) > len(page) else None}

    def producer_ids(self, producer: str, after: int) -> list[str]:
        """In small pages too."""
        self.asked.append(producer)
        ids = self.log.producers[producer].ids[after : after + self.PAGE]
        if not ids:
            raise Refused(ErrorCode.NOT_FOUND, "nobody has it")
        return ids

    @contextmanager
    def connected(self, servers: str, seconds: float, name: str, *access: object) -> Iterator[FakeClient]:
        """In place of `connecting.connected`."""
        yield self
