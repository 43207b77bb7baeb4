"""A job, or a micro-batch, that an earlier run began: what the log has of it, and who may go on.

An earlier run may have had other partitions, and nobody knows how many: Spark tells a task its own number alone. But
that need not be known. What an earlier run has published is, in each partition, the first so many rows. If every such
partition is there again and begins with the same rows, then the log has a beginning of what is written now, and to send
the rest is right, whatever the partitions were. If one is missing, or begins with other rows, they were cut in another
way: rows of one partition are in the log under another, and whoever sent anything might repeat them.

So each task compares the beginning of its own partition and says so, by opening its producer once more with the epoch
of an attempt that is `compared`. Who has something to send looks first whether all partitions that an earlier run has
published have said so in this run, and waits for them. Those that do not come are not there.

So runs must not share epochs. The clock alone does not see to that: a second run may be planned in the same second as
the first, or by a driver whose clock is behind. Whoever plans a run therefore asks for the newest epoch of the job, and
takes a later time than that if the clock has none (a hybrid logical clock: `planned_behind`).

With ids nobody has to wait: who has something to send asks for the ids of what earlier runs have published, in whatever
partition, once for all tasks of its Python worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol

from headgate.protocol.errors import ErrorCode, HeadgateError, Refused

from ..errors import IdsUnknown, OtherWrite
from ..limits import COMPARE_SECONDS_MAX, IDS_KNOWN_MAX, PEERS_LOOK_SECONDS, RUN_EPOCHS
from .marks import Mark, mark_of

__all__ = [
    "Asking",
    "Patience",
    "check_mode",
    "check_purges",
    "earlier_runs",
    "epoch_of",
    "ids_between",
    "ids_of_earlier_runs",
    "is_compared",
    "planned_behind",
    "shut_out",
    "wait_for_others",
]

_CURE = "run it as before, or, for another job, under another 'producerId'"


class Asking(Protocol):
    """What is asked of a client; `protocol.blocking` has it."""

    def ask(self, verb: str, **arguments: Any) -> Any:
        """A question to a broker."""

    def producer_ids(self, producer: str, after: int) -> list[str]:
        """Some ids of a producer's events from that one on."""


def epoch_of(planned_us: int) -> int:
    """Every attempt of a run that was planned then has a larger one, and every attempt of an earlier run a smaller."""
    return planned_us // 1_000_000 * RUN_EPOCHS


def is_compared(epoch: int, run_epoch: int, own: int) -> bool:
    """Whether an attempt of this run has said that its rows are those of the earlier run; `own` is of this run too.

    A later run does not count: this one is over then, though its task may not know.
    """
    return epoch % 2 == 1 and run_epoch <= epoch < own + RUN_EPOCHS


def check_mode(job: str, found: Mark | None, mark: Mark) -> None:
    """Raises OtherWrite unless what the log has of this micro-batch was written in the same mode."""
    if found is None:
        raise OtherWrite(job, "the log has events of it that this source has not written", _CURE)
    if found.mode != mark.mode:
        reason = f"an earlier run wrote it with 'idempotence' '{found.mode}', and this one has '{mark.mode}'"
        raise OtherWrite(job, reason, _CURE)


def check_purges(client: Asking, job: str, streams: Collection[str], epoch: int, patience: Patience) -> None:
    """Raises OtherWrite when one of these streams was purged after the run with this epoch had published to it.

    It is for jobs whose rows go to several streams: one purge takes some of their rows, and the rest is still there.
    """
    for stream in streams:
        if any(row["epoch"] > epoch for row in _listed(client, f"{stream}/*", b"", b"", patience)):
            reason = f"an earlier run has published to stream {stream!r}, which was purged since: its rows are gone"
            cure = f"run it under another 'producerId', with the rows of {stream!r} alone"
            raise OtherWrite(job, reason, cure)


class Patience:
    """How long a task may wait, from now on."""

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._begun = clock()
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep

    @property
    def waited(self) -> float:
        """So many seconds."""
        return self._clock() - self._begun

    @property
    def is_over(self) -> bool:
        """It has waited long enough."""
        return self.waited >= self._seconds

    def pause(self) -> None:
        """Wait until it is time to look again."""
        self._sleep(PEERS_LOOK_SECONDS)


def _listed(client: Asking, job: str, begins: bytes, unless: bytes, patience: Patience) -> Iterator[dict[str, Any]]:
    """The producers of a job, some by their marks. A cluster that cannot say is asked again for a while."""
    after: str | None = ""
    while after is not None:
        try:
            page = client.ask("producers", job=job, after=after, begins=begins, unless=unless)
        except Refused as error:
            if error.code != ErrorCode.UNAVAILABLE or patience.is_over:
                raise
            patience.pause()
            continue
        yield from page["producers"]
        after = page["next"]


def earlier_runs(client: Asking, job: str, mark: Mark, patience: Patience) -> Iterator[tuple[dict[str, Any], Mark]]:
    """The producers with events of this batch that another run began, and their marks. Raises OtherWrite."""
    for row in _listed(client, job, mark.of_batch, mark.of_run, patience):
        if row["next"]:
            found = mark_of(row["digest"])
            check_mode(job, found, mark)
            assert found is not None
            yield row, found


def planned_behind(client: Asking, job: str, now_us: int, patience: Patience) -> int:
    """When a run counts as planned, in microseconds: now, or later if need be to be behind all attempts before."""
    newest = max((int(row["epoch"]) for row in _listed(client, job, b"", b"", patience)), default=0)
    return max(now_us, (newest // RUN_EPOCHS + 1) * 1_000_000)


def shut_out(client: Asking, job: str, run_epoch: int, patience: Patience) -> None:
    """Tasks of earlier runs that have published nothing yet will not do so any more.

    Those that have are shut out by whoever opens their producers in this run. Once for all tasks of a Python worker.
    """
    global _shut_job
    if _shut_job != (job, run_epoch):
        for row in _listed(client, job, b"", b"", patience):
            if not row["next"] and row["epoch"] < run_epoch:
                _shut(client, row, run_epoch)
        _shut_job = (job, run_epoch)


def wait_for_others(
    client: Asking, job: str, name: str, mark: Mark, run_epoch: int, epoch: int, patience: Patience
) -> None:
    """Return when all partitions of earlier runs were compared in the run of this attempt, which has this epoch.

    Raises OtherWrite when no task of this run has come for one of them in the time there is, or a later run has begun.
    """
    while True:
        left = {
            row["name"]: row["epoch"]
            for row, _ in earlier_runs(client, job, mark, patience)
            if row["name"] != name and not is_compared(row["epoch"], run_epoch, epoch)
        }
        if not left:
            return
        if max(left.values()) - epoch >= RUN_EPOCHS:
            raise OtherWrite(job, "a later run of it has begun", "let one run end before the next, or name them apart")
        missing = [one for one, its in left.items() if its < run_epoch]
        if (missing and patience.is_over) or patience.waited >= COMPARE_SECONDS_MAX:
            names = ", ".join(one.rpartition("/")[2] for one in (missing or left))
            reason = f"an earlier run has events of its partitions {names} in the log, and no task of this run has "
            reason += f"compared its rows with them within {patience.waited:.0f} s: the rows are cut into other "
            reason += "partitions now, or there are fewer cores for them"
            cure = "run it with as many partitions as before, or give every row an id and set option 'eventIdColumn' "
            raise OtherWrite(job, reason, cure + "from the first run on")
        patience.pause()


def ids_between(client: Asking, producer: str, start: int, end: int) -> list[str]:
    """The ids of a producer's events from one up to another. Raises IdsUnknown unless all can be had."""
    ids: list[str] = []
    while start + len(ids) < end:
        try:
            ids += client.producer_ids(producer, start + len(ids))
        except HeadgateError as error:
            gone = f"of its events {start} to {end - 1} the ids from {start + len(ids)} on cannot be had ({error})"
            raise IdsUnknown(producer, gone) from error
        if len(ids) > IDS_KNOWN_MAX:
            raise IdsUnknown(producer, f"it has more than {IDS_KNOWN_MAX} ids: publish a job of such size in parts")
    return ids[: end - start]


_known: tuple[Any, frozenset[str]] = (None, frozenset())
"""The ids of earlier runs of one job, which do not change while it runs: for the next task of this Python worker."""


_shut_job: Any = None
"""The job and the run for which this Python worker has done so."""


def ids_of_earlier_runs(
    client: Asking, job: str, mark: Mark, run_epoch: int, patience: Patience, servers: str
) -> frozenset[str]:
    """Every id that earlier runs have published in this micro-batch. Raises OtherWrite, or IdsUnknown."""
    global _known
    key = (servers, job, mark.of_run)
    if _known[0] != key:
        ids: set[str] = set()
        for row, found in earlier_runs(client, job, mark, patience):
            end = _shut(client, row, run_epoch) if row["epoch"] < run_epoch else row["next"]
            ids.update(ids_between(client, row["name"], found.base, end))
            if len(ids) > IDS_KNOWN_MAX:
                raise IdsUnknown(row["name"], f"its job has more than {IDS_KNOWN_MAX} ids: publish it in parts")
        _known = key, frozenset(ids)
    return _known[1]


def _shut(client: Asking, row: dict[str, Any], run_epoch: int) -> int:
    """How many events a producer has, to which no earlier run adds from now on."""
    try:
        return int(client.ask("producer.open", producer=row["name"], epoch=run_epoch)["next"])
    except Refused as error:
        if error.code != ErrorCode.FENCED:
            raise
        return int(row["next"])  # its task in this run was faster: what it adds are rows of its own
