"""The thread that has the disk: it takes all that waits, makes one transaction of it, and tells the loop.

    loop       ask(effect) ----- queue -----> thread: appends, one transaction; some lookups; what is left to tidy
    loop  <--- feed(Stored, RowsRead, Found ...) --- post --- thread

While one transaction is on its way to the disk the next one gathers in the queue, so the cost of a synchronisation is
shared by whatever came meanwhile: alone an append waits for one, under load for two. Lookups take turns with commits,
a few each time. What is left to tidy waits until nothing is asked for, or for some commits.

When the disk is full, what comes after may build on what failed: positions, and what producers have sent. So from the
moment of a failure on nothing is appended, until the Node has heard of it. Which asks are from before that only the
Node can say, for its host may hold inputs back: when the loop hands in NotStored, the Node may be given a batch first.
So the Node says it itself (WriteOn), the moment it handles NotStored, and on the way of all its asks:

    what it asked for before it knew   lies before WriteOn in the queue: passed over, and failed by the Node as well
    what it asked for since            lies behind it: written

whatever was held back, and for how long. At most one NotStored is on its way, since nothing is tried before WriteOn.

After any other failure the thread writes no more, answers no more and does not end: it holds the connection, which
would write to the disk once more if it were closed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Protocol

from headgate.broker.core.effects import (
    Append,
    FindIds,
    FindSize,
    FindTime,
    KeepDurable,
    KeepWatermarks,
    LogEffect,
    LogWrite,
    ReadRows,
    TrimLog,
    WriteOn,
)
from headgate.broker.core.inputs import AsideRemoved, Found, LogInput, NotStored, RowsRead, Stored, Trimmed
from headgate.broker.core.store import LogStore, StoreFull

from .limits import DEFAULT_LIMITS, LOG_JOIN_SECONDS, LogLimits

__all__ = ["LogWriter", "TidyStore"]

_END = object()


class TidyStore(LogStore, Protocol):
    """A store that leaves work for quiet moments."""

    @property
    def untidy(self) -> bool:
        """Whether there is some."""

    def tidy(self) -> AsideRemoved | None:
        """Do some of it; returns what is to be told. Raises StoreFull or StoreFailed."""


class LogWriter:
    """The loop's side: `ask`, and `close` at the end. `feed` is called on the loop, `post` brings a call there."""

    def __init__(
        self,
        store: TidyStore,
        feed: Callable[[LogInput], None],
        post: Callable[[Callable[[], None]], object],
        limits: LogLimits = DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        self._store = store
        self._feed = feed
        self._post = post
        self._queue: SimpleQueue[object] = SimpleQueue()
        self._writes: deque[LogWrite | TrimLog | KeepWatermarks] = deque()
        self._lookups: deque[ReadRows | FindTime | FindSize | FindIds] = deque()
        self._refusing = False
        self._crammed = False
        """There was no room to tidy; there may be after the next write that succeeds."""
        self._untidied = 0
        """Commits since something was tidied."""
        self._ending = False
        self.failed = False
        """The disk has failed: nothing is written or answered any more."""
        self._thread: threading.Thread | None = None

    def ask(self, effect: LogEffect) -> None:
        """Hand it to the thread, which there is from the first time on."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
            self._thread.start()
        self._queue.put(effect)

    def close(self, seconds: float) -> bool:
        """Write what was asked for, and end; False when that takes longer, or when the disk has failed."""
        if self._thread is None:
            self._store.close()
            return True
        self._queue.put(_END)
        deadline = monotonic() + seconds
        while self._thread.is_alive() and not self.failed and monotonic() < deadline:
            self._thread.join(LOG_JOIN_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ending or self._writes or self._lookups:
            try:
                self._take(wait=not (self._ending or self._writes or self._lookups or self._tidies))
                self._write()
                for _ in range(min(self._limits.lookups_per_turn, len(self._lookups))):
                    self._tell(self._looked_up(self._lookups.popleft()))
                if self._tidies and (self._is_quiet() or self._untidied >= self._limits.commits_untidied):
                    self._tidy()
            except Exception as error:
                self._failed(error)
        self._store.close()

    def _is_quiet(self) -> bool:
        return not (self._writes or self._lookups) and self._queue.empty()

    @property
    def _tidies(self) -> bool:
        return self._store.untidy and not self._crammed

    def _take(self, wait: bool) -> None:
        """All that is in the queue, to where it belongs."""
        try:
            while True:
                self._sort(self._queue.get(block=wait, timeout=self._limits.look_seconds))
                wait = False
        except Empty:
            return

    def _sort(self, asked: object) -> None:
        if asked is _END:
            self._ending = True
        elif isinstance(asked, WriteOn):
            self._refusing = False
        elif isinstance(asked, ReadRows | FindTime | FindSize | FindIds):
            self._lookups.append(asked)
        elif isinstance(asked, TrimLog | KeepWatermarks) or (isinstance(asked, LogWrite) and not self._refusing):
            self._writes.append(asked)

    def _write(self) -> None:
        """What waits at the front, as far as one transaction takes it."""
        entries = self._next_entries()
        try:
            if entries:
                self._store.append(entries)
                self._crammed = False
                self._untidied += 1
                self._tell(Stored(entries[-1].ticket))
            elif self._writes:
                write = self._writes.popleft()
                if isinstance(write, TrimLog):
                    self._tell(Trimmed(self._store.trim(write.log, write.below)))
                elif isinstance(write, KeepWatermarks):
                    self._store.mark(write.logs)
        except StoreFull as full:
            if entries:
                self._refuse(full.reason)

    def _next_entries(self) -> Sequence[LogWrite]:
        entries: list[LogWrite] = []
        left = self._limits.commit_bytes
        while self._writes and left > 0 and len(entries) < self._limits.commit_rows:
            write = self._writes[0]
            if isinstance(write, TrimLog | KeepWatermarks):
                break
            if isinstance(write, Append):
                left -= len(write.row)
            elif isinstance(write, KeepDurable):
                left -= len(write.state)
            entries.append(write)
            self._writes.popleft()
        return entries

    def _looked_up(self, asked: ReadRows | FindTime | FindSize | FindIds) -> LogInput:
        if isinstance(asked, ReadRows):
            return RowsRead(asked.ticket, *self._store.read(asked.log, asked.position, asked.bytes_max))
        return Found(asked.ticket, self._store.find(asked))

    def _tidy(self) -> None:
        self._untidied = 0
        try:
            removed = self._store.tidy()
            if removed is not None:
                self._tell(removed)
        except StoreFull:
            self._crammed = True

    def _refuse(self, reason: str) -> None:
        """Nothing more until the Node has heard."""
        self._refusing = True
        self._writes = deque(write for write in self._writes if isinstance(write, TrimLog | KeepWatermarks))
        self._tell(NotStored(reason))

    def _failed(self, error: Exception) -> None:
        """The end of all writing, in this thread that keeps the connection for ever."""
        self.failed = True
        reason = str(error) or type(error).__name__
        self._tell(NotStored(reason, fatal=True))
        while True:
            self._queue.get()

    def _tell(self, happened: LogInput) -> None:
        self._post(lambda: self._feed(happened))
