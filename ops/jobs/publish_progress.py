"""Progress of the publish job: events in the cluster's logs since it began, and how many tasks are done.

A Python source of Spark has no counter that the driver could read while a job runs. The logs can be asked, though: how
much they grew says how far the job is, with a word less certainty when others publish at the same time. Of a job with a
name the producers say exactly what is new and what was there.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Protocol, TextIO

from headgate.protocol.errors import HeadgateError

__all__ = ["Logs", "Progress"]


class Logs(Protocol):
    """The part of a client that is used here."""

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Ask a broker."""

    def logs(self, stream: str | None = None, kind: str | int = "events") -> list[Any]:
        """List the logs."""


class Progress:
    """Says where the job is, every two seconds, from a thread of its own, while the block runs."""

    def __init__(
        self,
        session: Any,
        client: Logs,
        job: str = "",
        quiet: bool = False,
        stream: TextIO | None = None,
        every_seconds: float = 2.0,
    ) -> None:
        self._every_seconds = every_seconds
        self._tracker = session.sparkContext.statusTracker()
        self._client = client
        self._job = job
        self._quiet = quiet
        self._stream = sys.stderr if stream is None else stream
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._there = self._known()
        self._before = self._count()
        self._began = time.monotonic()
        self._seconds = 0.0
        self._grown = 0

    def __enter__(self) -> Progress:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._look()
        if self._job and error is None:
            self._grown = self._known() - self._there

    def summary(self) -> str:
        """The summary at the end."""
        rate = self._grown / max(self._seconds, 1e-3)
        there = f", {self._there:,} were there" if self._job else ""
        return f"{self._grown:,} new{there}: events in the log after {self._seconds:.1f} s, {rate:,.0f} a second"

    def line(self) -> str:
        """The progress line of this moment."""
        tasks = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
        known = [info for info in tasks if info is not None]
        done, total = sum(info.numCompletedTasks for info in known), sum(info.numTasks for info in known)
        return f"{self._grown:,} events, {self._seconds:.0f} s, {done} of {total} tasks"

    def _look(self) -> None:
        self._grown = self._count() - self._before
        self._seconds = time.monotonic() - self._began

    def _count(self) -> int:
        return sum(log.next for log in self._client.logs(None, "events"))

    def _known(self) -> int:
        """How many events the cluster knows of the job; 0 for one without a name."""
        after: str | None = "" if self._job else None
        events = 0
        while after is not None:
            page = self._client.ask("producers", job=self._job, after=after)
            events += sum(row["next"] for row in page["producers"])
            after = page["next"]
        return events

    def _run(self) -> None:
        while not self._done.wait(self._every_seconds):
            try:
                self._look()
            except HeadgateError as error:
                print(f"the log cannot be asked just now: {error}", file=self._stream)
                continue
            if not self._quiet:
                print(self.line(), file=self._stream, flush=True)
