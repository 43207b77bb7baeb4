"""The thread that has the disk, in virtual time: the twin of `daemon/log_writer.py`.

What waits is one transaction, and takes its time to reach the disk; what comes meanwhile is the next one. A crash in
that time leaves the transaction on the disk or not, as chance will have it; nobody was told of it either way.

That the disk is full takes its time to be heard as well, and what the Node asks for meanwhile is passed over, up to
its WriteOn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

from headgate.broker.core.effects import Append, CutLog, KeepProducer, LogEffect, LogWrite, ReadRows, TrimLog, WriteOn
from headgate.broker.core.inputs import Found, LogInput, NotStored, RowsRead, Stored, Trimmed
from headgate.broker.core.store import StoreFailed, StoreFull

from .limits import DISK_ROWS_MAX, DISK_SECONDS_MAX, DISK_SECONDS_MIN
from .log_store import ListStore

__all__ = ["LogHost"]


class LogHost:
    """Between a Host and its store, for one life."""

    def __init__(
        self,
        store: ListStore,
        feed: Callable[[LogInput], None],
        after: Callable[[float, Callable[[], None]], None],
        random: Random,
        stands_still: Callable[[], bool] = lambda: False,
    ) -> None:
        self.slowness = 1.0
        """So many times longer than usual everything takes."""
        self._store = store
        self._feed = feed
        self._after = after
        self._random = random
        self._told = Random(0)  # chance of its own, so that how long a failure is on its way changes nothing else
        self._stands_still = stands_still
        self._writes: list[LogWrite | TrimLog] = []
        self._under_way: list[LogWrite] = []
        self._busy = False
        self._refusing = False
        self._ended = False
        self.hasty = False
        """Go on writing without having heard that the Node knows of a failure: a bug to be found."""

    def ask(self, effect: LogEffect) -> None:
        """Something of the store."""
        if isinstance(effect, WriteOn):
            self._refusing = False
        elif isinstance(effect, Append | KeepProducer | CutLog | TrimLog):
            if isinstance(effect, TrimLog) or not self._refusing:
                self._writes.append(effect)
            self._go_on()
        else:
            self._later(lambda: self._look_up(effect))

    def crash(self) -> None:
        """The process is gone."""
        under_way, self._under_way = self._under_way, []
        if under_way and not self._ended and self._random.random() < 0.5:
            try:
                self._store.append(under_way)
            except (StoreFull, StoreFailed):
                under_way.clear()
        self._ended = True

    def _go_on(self) -> None:
        if self._busy or self._ended or not self._writes:
            return
        self._busy = True
        trim = self._writes[0]
        if isinstance(trim, TrimLog):
            del self._writes[0]
            self._later(lambda: self._trim(trim))
            return
        entries: list[LogWrite] = []
        for write in self._writes[:DISK_ROWS_MAX]:
            if isinstance(write, TrimLog):
                break
            entries.append(write)
        del self._writes[: len(entries)]
        self._under_way = entries
        self._later(self._append)

    def _append(self) -> None:
        entries, self._under_way = self._under_way, []
        self._busy = False
        try:
            self._store.append(entries)
        except StoreFull as full:
            self._refuse(full.reason)
        except StoreFailed as failed:
            self._fail(failed.reason)
        else:
            self._feed(Stored(entries[-1].ticket))
        self._go_on()

    def _trim(self, trim: TrimLog) -> None:
        self._busy = False
        try:
            with suppress(StoreFull):  # the rows stay, and are asked for again
                self._feed(Trimmed(self._store.trim(trim.log, trim.below)))
        except StoreFailed as failed:
            self._fail(failed.reason)
        self._go_on()

    def _refuse(self, reason: str) -> None:
        """All that waits builds on what failed, and so does what the Node asks for before it has heard of it."""
        self._refusing = not self.hasty
        self._writes = [write for write in self._writes if isinstance(write, TrimLog)]
        seconds = self._told.uniform(DISK_SECONDS_MIN, DISK_SECONDS_MAX)
        self._after(seconds, lambda: self._due(lambda: self._feed(NotStored(reason))))

    def _fail(self, reason: str) -> None:
        self._ended = True
        self._feed(NotStored(reason, fatal=True))

    def _look_up(self, effect: LogEffect) -> None:
        if isinstance(effect, ReadRows):
            self._feed(RowsRead(effect.ticket, *self._store.read(effect.log, effect.position, effect.bytes_max)))
        elif not isinstance(effect, Append | KeepProducer | CutLog | TrimLog | WriteOn):
            self._feed(Found(effect.ticket, self._store.find(effect)))

    def _later(self, act: Callable[[], None]) -> None:
        """When the disk has done it; a process that stands still has this thread stand still as well."""
        seconds = self._random.uniform(DISK_SECONDS_MIN, DISK_SECONDS_MAX) * self.slowness
        self._after(seconds, lambda: self._due(act))

    def _due(self, act: Callable[[], None]) -> None:
        if self._stands_still():
            self._later(act)
        elif not self._ended:
            act()
