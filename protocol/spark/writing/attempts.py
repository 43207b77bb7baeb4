"""One attempt of one task to publish its partition: who it is, and what it does from the first row to the last.

What a write is, and by what it is known when it comes again, is in `marks.py`. The epoch puts attempts in order, so
that a newer one fences the older ones: the second in which the driver planned the write (a later one, if an earlier run
has that: `rerun.planned_behind`), then the id of the task's attempt, which grows within a Spark application and is not
given twice. `attemptNumber` would not do: it begins at 0 again after a stage is repeated. The last bit says that the
attempt has compared its rows: see `rerun.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from headgate.protocol.blocking import BlockingClient, Producer
from headgate.protocol.data import Batch

from ..connecting import connected
from ..errors import OtherWrite
from ..layout import Layout
from ..options import WriteOptions
from .marks import Mark, job_name, mark_of
from .rerun import (
    Patience,
    check_mode,
    check_purges,
    epoch_of,
    ids_between,
    ids_of_earlier_runs,
    shut_out,
    wait_for_others,
)
from .sending import Guarded, Sent, WithIds, send_partition

__all__ = ["Attempt", "Run", "publish_attempt"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job, or of a micro-batch. `planned_us` is when the driver planned it, and tells runs apart.

    `rerun` says that there may have been an earlier run of the job under the same name.
    """

    job: str
    planned_us: int
    rerun: bool
    batch: int = 0
    streaming: bool = False

    @property
    def epoch(self) -> int:
        """Every attempt of this run has a larger one, and every attempt of an earlier run a smaller one."""
        return epoch_of(self.planned_us)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task's attempt. `number` counts those of the same task in the same stage."""

    run: Run
    partition: int
    identity: int
    number: int = 0

    @property
    def epoch(self) -> int:
        """Larger than that of every attempt before it, in this application and in earlier ones."""
        return self.run.epoch + 2 * (self.identity + 1)

    def producer(self, idempotence: str, topic: str) -> str:
        """The name under which it publishes."""
        name = f"{job_name(topic, self.run.job)}/{self.partition}"
        return f"{name}/{self.epoch}" if idempotence == "none" else name


class _Publishing:
    """A producer of the client with what the broker said about interest; from now on, or anew as `compared`."""

    def __init__(self, client: BlockingClient, name: str, epoch: int, inflight: int) -> None:
        self._client = client
        self._inflight = inflight
        self._producer: Producer = client.producer(name, epoch, inflight=inflight)
        self.name = name
        self.next = self._producer.next
        self.digest = self._producer.digest

    def compared(self) -> None:
        """Let everybody know that the rows are those that the log has."""
        self._producer.close()
        self._producer = self._client.producer(self.name, self._producer.epoch + 1, inflight=self._inflight)

    def interest(self, stream: str) -> list[str] | None:
        return self._client.interest(stream)

    def publish(self, batch: Batch, digest: bytes = b"", ids: bytes = b"") -> None:
        self._producer.publish(batch, digest, ids)

    def flush(self) -> None:
        self._producer.flush()


def publish_attempt(options: WriteOptions, layout: Layout, attempt: Attempt, batches: Iterable[Any]) -> Sent:
    """Publish the partition's record batches; returns when all of them are in the log. Raises ConnectorError."""
    name = attempt.producer(options.idempotence, options.topic)
    with connected(options.servers, options.ack_seconds, f"spark {name}"[:256], options.access) as client:
        producer = _Publishing(client, name, attempt.epoch, options.inflight)
        guard: Guarded | WithIds | None = None
        if options.idempotence != "none":
            mark, before = _marks(options, attempt, producer)
            make = _guarded if options.idempotence == "guarded" else _with_ids
            guard = make(options, layout, attempt, client, producer, mark, before)
        return send_partition(batches, layout, options.frame_bytes, producer, guard)


def _marks(options: WriteOptions, attempt: Attempt, producer: _Publishing) -> tuple[Mark, Mark | None]:
    """The mark of what this attempt sends; and of what the log has of this batch of its partition, if there is any.

    Raises OtherWrite when the two do not go together.
    """
    run = attempt.run
    mark, before = Mark(run.batch, run.planned_us, options.idempotence, producer.next), mark_of(producer.digest)
    if not producer.next or (before is not None and before.batch < run.batch):
        return mark, None
    if before is not None and before.batch > run.batch:
        reason = f"this is micro-batch {run.batch} of its query, and the log has events of micro-batch {before.batch}"
        cure = "the checkpoint is older than the log; take a newer one, or begin a new query with a new checkpoint"
        raise OtherWrite(producer.name, reason, cure)
    check_mode(producer.name, before, mark)
    assert before is not None
    return Mark(run.batch, before.run, options.idempotence, before.base), before


def _guarded(
    options: WriteOptions,
    layout: Layout,
    attempt: Attempt,
    client: BlockingClient,
    producer: _Publishing,
    mark: Mark,
    before: Mark | None,
) -> Guarded:
    run = attempt.run
    began_here = before is not None and before.run == run.planned_us  # and its predecessor has waited for the others

    def compared(streams: Collection[str]) -> None:
        if before is not None and not options.topic:
            check_purges(client, run.job, streams, epoch_of(before.run), Patience(options.ack_seconds))
        if not began_here:
            producer.compared()

    def wait() -> None:
        if run.rerun and not began_here:
            # Those that did not come while the first attempt waited are not likely to come at all.
            seconds = options.ack_seconds / (4 if attempt.number else 1)
            job = job_name(options.topic, run.job)
            here = Mark(run.batch, run.planned_us, mark.mode, 0)
            patience = Patience(seconds)
            _shut_out(client, job, run, patience)
            wait_for_others(client, job, producer.name, here, run.epoch, attempt.epoch, patience)

    accepted, digest = (0, b"") if before is None else (producer.next - before.base, before.digest)
    return Guarded(producer.name, accepted, digest, layout.topic, mark, compared, wait)


def _shut_out(client: BlockingClient, job: str, run: Run, patience: Patience) -> None:
    """A query is planned anew for every micro-batch, and its tasks are over by then: to look at all of them each time
    would cost much and find nothing."""
    if not run.streaming:
        shut_out(client, job, run.epoch, patience)


def _with_ids(
    options: WriteOptions,
    layout: Layout,
    attempt: Attempt,
    client: BlockingClient,
    producer: _Publishing,
    mark: Mark,
    before: Mark | None,
) -> WithIds:
    run = attempt.run
    own = [] if before is None else ids_between(client, producer.name, before.base, producer.next)
    others: frozenset[str] = frozenset()
    if run.rerun:
        job, here = job_name(options.topic, run.job), Mark(run.batch, run.planned_us, mark.mode, 0)
        patience = Patience(options.ack_seconds)
        _shut_out(client, job, run, patience)
        others = ids_of_earlier_runs(client, job, here, run.epoch, patience, options.servers)
    return WithIds(layout.id_column, (frozenset(own), others), mark)
