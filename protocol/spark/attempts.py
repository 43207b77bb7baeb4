"""One attempt of one task to publish its partition: who it is, and what it does from the first row to the last.

The producer is named after the job and the partition. The epoch puts attempts in order, so that a newer one fences the
older ones: the seconds at which the driver planned the write, and behind them the id of the task's attempt, which grows
within a Spark application and is never given twice. `attemptNumber` would not do: it begins at 0 again after a stage is
repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..batch import Batch
from ..blocking.client import BlockingClient
from ..blocking.producer import Producer
from .connecting import connected
from .layout import Layout
from .limits import MISSING_PARTITIONS_MAX
from .options import WriteOptions
from .sending import Guarded, Sent, WithIds, send_partition

__all__ = ["Attempt", "epoch_of", "known_ids", "publish_attempt"]

_ATTEMPT_BITS = 20


def epoch_of(planned_seconds: int, attempt_id: int) -> int:
    """The epoch of an attempt: larger than that of every attempt before it, in this application and in earlier ones."""
    return (planned_seconds << _ATTEMPT_BITS) + attempt_id


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task's attempt. `rerun` says that there may have been an earlier run of the job under the same name."""

    job: str
    partition: int
    epoch: int
    rerun: bool

    def producer(self, idempotence: str) -> str:
        """The name under which it publishes."""
        name = f"{self.job}/{self.partition}"
        return f"{name}/{self.epoch}" if idempotence == "none" else name


class _Publishing:
    """A producer of the client with what the broker said about interest."""

    def __init__(self, client: BlockingClient, producer: Producer) -> None:
        self._client = client
        self._producer = producer
        self.name = producer.name

    @property
    def next(self) -> int:
        return self._producer.next

    @property
    def digest(self) -> bytes:
        return self._producer.digest

    def interest(self, stream: str) -> list[str] | None:
        return self._client.interest(stream)

    def publish(self, batch: Batch, digest: bytes = b"", ids: bytes = b"") -> None:
        self._producer.publish(batch, digest, ids)

    def flush(self) -> None:
        self._producer.flush()


def publish_attempt(options: WriteOptions, layout: Layout, attempt: Attempt, batches: Iterable[Any]) -> Sent:
    """Publish the partition's record batches; returns when all of them are in the log. Raises ConnectorError."""
    name = attempt.producer(options.idempotence)
    with connected(options.servers, options.ack_seconds, f"spark {name}"[:256]) as client:
        producer = client.producer(name, attempt.epoch, inflight=options.inflight)
        guard: Guarded | WithIds | None = None
        if options.idempotence == "guarded":
            guard = Guarded(name, producer.next, producer.digest, layout.topic)
        elif options.idempotence == "id":
            guard = WithIds(layout.id_column, known_ids(client, attempt, producer.next))
        return send_partition(batches, layout, options.frame_bytes, _Publishing(client, producer), guard)


def known_ids(client: BlockingClient, attempt: Attempt, accepted: int) -> list[str]:
    """The ids in the log: of this partition's earlier attempts and, after a rerun, of every partition of earlier runs.

    Earlier runs may have had other partitions. There is no list of those; they are numbered from 0 and few are missing.
    """
    own = attempt.producer("id")
    ids = _ids_of(client, own) if accepted else []
    if not attempt.rerun:
        return ids
    partition = missing = 0
    while missing < MISSING_PARTITIONS_MAX:
        name = f"{attempt.job}/{partition}"
        found = [] if name == own else _ids_of(client, name)
        missing = 0 if found or name == own else missing + 1
        ids += found
        partition += 1
    return ids


def _ids_of(client: BlockingClient, producer: str) -> list[str]:
    ids: list[str] = []
    after: int | None = 0
    while after is not None:
        page = client.ask("producer.ids", producer=producer, after=after)
        ids += page["ids"]
        after = page["next"]
    return ids
