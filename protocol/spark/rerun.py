"""A job, or a micro-batch, that an earlier run began: what the log has of it, and who may go on.

An earlier run may have had other partitions, and nobody knows how many: Spark tells a task its own number alone. But
that need not be known. What an earlier run has published is, in each partition, the first so many rows. If every such
partition is there again and begins with the same rows, then the log has a beginning of what is written now, and to send
the rest is right, whatever the partitions were. If one is missing, or begins with other rows, they were cut in another
way: rows of one partition are in the log under another, and whoever sent anything might repeat them.

So each task compares the beginning of its own partition and says so, by opening its producer once more with the epoch
of an attempt that is `compared`. Who has something to send looks first whether all partitions that an earlier run has
published have said so in this run, and waits for them. Those that do not come are not there.

With ids nobody has to wait: who has something to send asks for the ids of what earlier runs have published, in whatever
partition, once for all tasks of its Python worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ..errors import ErrorCode, HeadgateError, Refused
from .errors import IdsUnknown, OtherWrite
from .limits import COMPARE_SECONDS_MAX, IDS_KNOWN_MAX, PEERS_LOOK_SECONDS
from .marks import Mark, mark_of

__all__ = [
    "Asking",
    "Patience",
    "check_mode",
    "earlier_runs",
    "ids_between",
    "ids_of_earlier_runs",
    "is_compared",
    "wait_for_others",
]

_CURE = "run it as before, or, for another job, under another 'producerId'"


class Asking(Protocol):
    """What is asked of a client; `protocol.blocking` has it."""

    def ask(self, verb: str, **arguments: Any) -> Any:
        """A question to a broker."""

    def producer_ids(self, producer: str, after: int) -> list[str]:
        """Some ids of a producer's events from that one on."""


def is_compared(epoch: int, run_epoch: int) -> bool:
    """Whether an attempt of this run, or of a later one, has said that its rows are those of the earlier run."""
    return epoch >= run_epoch and epoch % 2 == 1


def check_mode(job: str, found: Mark | None, mark: Mark) -> None:
    """Raises OtherWrite unless what the log has of this micro-batch was written in the same mode."""
    if found is None:
        raise OtherWrite(job, "the log has events of it that this source has not written", _CURE)
    if found.mode != mark.mode:
        reason = f"an earlier run wrote it with 'idempotence' '{found.mode}', and this one has '{mark.mode}'"
        raise OtherWrite(job, reason, _CURE)


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


def earlier_runs(client: Asking, job: str, mark: Mark, patience: Patience) -> Iterator[tuple[dict[str, Any], Mark]]:
    """The producers with events of this batch that another run began, and their marks. Raises OtherWrite.

    A cluster that cannot say is asked again for a while.
    """
    after: str | None = ""
    while after is not None:
        try:
            page = client.ask("producers", job=job, after=after, begins=mark.of_batch, unless=mark.of_run)
        except Refused as error:
            if error.code != ErrorCode.UNAVAILABLE or patience.is_over:
                raise
            patience.pause()
            continue
        for row in page["producers"]:
            if row["next"]:
                found = mark_of(row["digest"])
                check_mode(job, found, mark)
                assert found is not None
                yield row, found
        after = page["next"]


def wait_for_others(client: Asking, job: str, own: str, mark: Mark, run_epoch: int, patience: Patience) -> None:
    """Return when all partitions of earlier runs were compared in this one.

    Raises OtherWrite when no task of this run has come for one of them in the time there is.
    """
    while True:
        left = {
            row["name"]: row["epoch"]
            for row, _ in earlier_runs(client, job, mark, patience)
            if row["name"] != own and not is_compared(row["epoch"], run_epoch)
        }
        if not left:
            return
        missing = [name for name, epoch in left.items() if epoch < run_epoch]
        if (missing and patience.is_over) or patience.waited >= COMPARE_SECONDS_MAX:
            names = ", ".join(name.rpartition("/")[2] for name in (missing or left))
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
