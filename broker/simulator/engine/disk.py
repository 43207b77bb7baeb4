"""The disk of a simulated broker: its content, its faults, and the thread that writes to it in virtual time.

    Disk        storage that outlives its broker. It may be full, fail, lose what it confirmed, or damage a row
    ListStore   the seven calls of `core/store.py` over a Disk, without optimisation
    LogHost     the counterpart of the daemon's log writer: all that waits is one transaction, which takes its time

Lost and damaged rows are noticed when the store is opened, as in the real one: rows have checksums, and the number of
commits is stored elsewhere. A crash in the middle of a transaction leaves it on the disk or not, at random; it was not
confirmed in either case. The news that the disk is full takes time too, and what the Node asks for until its WriteOn is
skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from headgate.broker.core.effects import (
    Append,
    CutLog,
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
from headgate.broker.core.inputs import Found, LogInput, NotStored, Opened, RowsRead, Stored, Trimmed
from headgate.broker.core.log_state import LogState, ProducerState
from headgate.broker.core.store import StoreFailed, StoreFull
from headgate.protocol.data import LogName

from ..limits import DISK_IDS_BYTES, DISK_ROWS_MAX, DISK_SECONDS_MAX, DISK_SECONDS_MIN

__all__ = ["Disk", "Entry", "ListStore", "LogHost", "LogList"]


@dataclass(slots=True)
class Entry:
    """One row of a log, with what the store knows of it."""

    first: int
    count: int
    time: int
    row: bytes
    producer: str = ""
    number: int = 0
    rotten: bool = False

    @property
    def next(self) -> int:
        """The position after this row."""
        return self.first + self.count


@dataclass(slots=True)
class LogList:
    """The rows of one log, in order of position."""

    name: LogName
    entries: list[Entry] = field(default_factory=list)
    empty_at: int = 0
    """The next position while the log has no entries."""
    safe: int = 0

    @property
    def first(self) -> int:
        """The first position that the log still has."""
        return self.entries[0].first if self.entries else self.empty_at

    @property
    def next(self) -> int:
        """The position after the last row."""
        return self.entries[-1].next if self.entries else self.empty_at

    def state(self) -> LogState:
        """The same as the core gets it."""
        times = (self.entries[0].time, self.entries[-1].time) if self.entries else (0, 0)
        size = sum(len(entry.row) for entry in self.entries)
        return LogState(self.name, self.first, self.next, size, *times, min(self.safe, self.next))


@dataclass(slots=True)
class _Content:
    epoch: int = 0
    commits: int = 0
    logs: dict[LogName, LogList] = field(default_factory=dict)
    producers: dict[str, ProducerState] = field(default_factory=dict)
    durables: dict[str, bytes] = field(default_factory=dict)
    rotten: set[str] = field(default_factory=set)
    """Durable subscriptions whose state fails its checksum."""


class Disk:
    """Storage that survives its broker. Tests and nemeses set its faults, which hold until they are reset."""

    def __init__(self) -> None:
        self.content = _Content()
        self.full = False
        self.fails = False
        self.brim: Random | None = None
        """Draws which writes a disk that is nearly full still takes; None while it has room."""
        self.known_commits = 0
        """The number of commits, as the real store keeps it in log.mark."""

    def copy(self) -> _Content:
        """Keep a copy of the folder."""
        return deepcopy(self.content)

    def restore(self, backup: _Content) -> None:
        """Replace the folder by the backup. The disk alone does not show that this happened."""
        self.content = deepcopy(backup)
        self.known_commits = self.content.commits

    def lose_all(self) -> None:
        """Replace the disk by an empty one."""
        self.content, self.known_commits = _Content(), 0

    def lose_newest(self, backup: _Content) -> None:
        """Lose every row that was confirmed after the backup."""
        self.content = deepcopy(backup)

    def rot(self, random: Random) -> LogName | None:
        """Damage one row of one log; which log, or None when there is no row."""
        logs = [log for log in self.content.logs.values() if log.entries]
        if not logs:
            return None
        log = random.choice(logs)
        random.choice(log.entries).rotten = True
        return log.name

    def rot_durable(self, random: Random) -> str | None:
        """Damage the state of one durable subscription; which, or None when there is none."""
        if not self.content.durables:
            return None
        name = random.choice(list(self.content.durables))
        self.content.rotten.add(name)
        return name


class ListStore:
    """Stores the rows of one broker's logs as lists on a Disk."""

    def __init__(self, disk: Disk, broker: str, seconds: Callable[[], float], ids_bytes: int = DISK_IDS_BYTES) -> None:
        self._ids_bytes = ids_bytes
        self._disk = disk
        self._broker = broker
        self._seconds = seconds

    def open(self) -> Opened:
        """Load the rows of the disk, without those that are damaged."""
        content, damage, ours = self._disk.content, [], False
        if content.commits < self._disk.known_commits:
            damage.append(f"{self._disk.known_commits - content.commits} commits are missing")
            content.commits, ours = self._disk.known_commits, True
        for log in content.logs.values():
            place = next((place for place, entry in enumerate(log.entries) if entry.rotten), None)
            if place is not None:
                damage.append(f"positions {log.entries[place].first} to {log.next - 1} of {log.name} are damaged")
                ours = ours or log.name.broker == self._broker
                log.empty_at = log.first
                del log.entries[place:]
        if ours or not content.epoch:
            content.epoch = max(content.epoch + 1, int(self._seconds()))
        producers = sorted(content.producers.values(), key=lambda one: (-one.time, one.name))
        for name in sorted(content.rotten):
            damage.append(f"the state of durable subscription {name!r} is damaged")
            content.durables.pop(name, None)
        content.rotten.clear()
        logs = [log.state() for log in content.logs.values()]
        return Opened(content.epoch, logs, producers, damage, dict(content.durables))

    def append(self, entries: Sequence[LogWrite]) -> None:
        """Write all of it. Raises StoreFull or StoreFailed."""
        self._may_write()
        for entry in entries:
            if isinstance(entry, CutLog):
                self._cut(entry)
                continue
            if isinstance(entry, KeepDurable):
                self._keep_durable(entry)
                continue
            if entry.producer is not None:
                self._keep_producer(entry.producer)
            if isinstance(entry, Append):
                self._append(entry)
        self._committed()

    def read(self, log: LogName, position: int, bytes_max: int) -> tuple[list[bytes], int, str]:
        """Rows from the one that holds the position on, where the next begin, and what cannot be read: see RowsRead."""
        found = self._disk.content.logs.get(log)
        if found is None or not found.entries or position >= found.next:
            return [], max(position, 0 if found is None else found.first), ""
        rows: list[bytes] = []
        at = max(position, found.first)
        for entry in found.entries:
            if entry.next <= position:
                continue
            if entry.rotten:
                damage = f"positions {entry.first} to {entry.next - 1} of {log} are damaged"
                return (rows, entry.first, "") if rows else ([], entry.next, damage)
            if rows and sum(map(len, rows)) + len(entry.row) > bytes_max:
                break
            rows.append(entry.row)
            at = entry.next
            if sum(map(len, rows)) >= bytes_max:
                break
        return rows, at, ""

    def trim(self, log: LogName, below: int) -> LogState:
        """Delete the rows that end at or before `below`; returns the log. Raises StoreFull or StoreFailed."""
        self._may_write()
        found = self._disk.content.logs.setdefault(log, LogList(log, empty_at=below))
        end = found.next
        found.entries = [entry for entry in found.entries if entry.next > below]
        found.empty_at = max(end, below)
        self._committed()
        return found.state()

    def mark(self, ends: Mapping[LogName, int]) -> None:
        """Remember these high watermarks. Raises StoreFull or StoreFailed."""
        self._may_write()
        for name, end in ends.items():
            self._disk.content.logs[name].safe = end
        self._committed()

    def find(self, question: FindTime | FindSize | FindIds) -> Any:
        """The value of the Found that answers."""
        logs = self._disk.content.logs
        if isinstance(question, FindIds):
            return self._ids(question)
        log = logs.get(question.log)
        if log is None:
            return None
        if isinstance(question, FindTime):
            return next((entry.first for entry in log.entries if entry.time >= question.time), log.next)
        position, left = log.next, question.bytes
        for entry in reversed(log.entries):
            left -= len(entry.row)
            if left < 0:
                break
            position = entry.first
        return position

    def close(self) -> None:
        """Close the store: nothing is asked of it after this."""

    def _cut(self, cut: CutLog) -> None:
        log = self._disk.content.logs[cut.log]
        at = max(cut.at, log.first)
        assert all(entry.first >= at or entry.next <= at for entry in log.entries)
        self._disk.content.epoch = max(self._disk.content.epoch, cut.epoch)
        log.empty_at = at
        log.entries = [entry for entry in log.entries if entry.next <= at]
        for row in cut.rows:
            self._append(row)
        for state in cut.producers:
            self._keep_producer(state)

    def _keep_producer(self, state: ProducerState) -> None:
        """A state without a fence leaves that as it is."""
        former = self._disk.content.producers.get(state.name)
        fence = state.fence or (b"" if former is None else former.fence)
        self._disk.content.producers[state.name] = replace(state, fence=fence)

    def _keep_durable(self, entry: KeepDurable) -> None:
        content = self._disk.content
        content.rotten.discard(entry.name)
        if entry.state:
            content.durables[entry.name] = entry.state
        else:
            content.durables.pop(entry.name, None)

    def _append(self, entry: Append) -> None:
        content = self._disk.content
        if entry.log.broker == self._broker:
            content.epoch = max(content.epoch, entry.log.epoch)
        log = content.logs.setdefault(entry.log, LogList(entry.log))
        assert not log.entries or log.next == entry.first, (log.name, log.next, entry.first)
        time = max(entry.time, log.entries[-1].time if log.entries else 0)
        kept = Entry(entry.first, entry.count, time, entry.row)
        if entry.ids and entry.producer is not None:
            kept.producer, kept.number = entry.producer.name, entry.producer.next - entry.count
        log.entries.append(kept)

    def _ids(self, question: FindIds) -> tuple[list[bytes], int | None]:
        every = [entry for log in self._disk.content.logs.values() for entry in log.entries]
        wanted = [entry for entry in every if entry.producer == question.producer]
        rows: list[bytes] = []
        left, end = self._ids_bytes, question.after
        for entry in sorted(wanted, key=lambda entry: entry.number):
            if entry.number + entry.count <= question.after:
                continue
            if left <= 0:
                return rows, end
            rows.append(entry.row)
            left -= len(entry.row)
            end = max(end, entry.number + entry.count)
        return rows, None

    def _may_write(self) -> None:
        if self._disk.fails:
            raise StoreFailed("the simulated disk has failed")
        if self._disk.full or (self._disk.brim is not None and self._disk.brim.random() < 0.5):
            raise StoreFull("the simulated disk is full")

    def _committed(self) -> None:
        self._disk.content.commits += 1
        self._disk.known_commits = self._disk.content.commits


class LogHost:
    """Writes what a Host asks of its store, one transaction after the other, for one life."""

    def __init__(
        self,
        store: ListStore,
        feed: Callable[[LogInput], None],
        after: Callable[[float, Callable[[], None]], None],
        random: Random,
        stands_still: Callable[[], bool] = lambda: False,
    ) -> None:
        self.slowness = 1.0
        """Every write takes this many times longer than usual."""
        self._store = store
        self._feed = feed
        self._after = after
        self._random = random
        self._told = Random(0)  # of its own: the delay of a failure must not change what others draw
        self._stands_still = stands_still
        self._writes: list[LogWrite | TrimLog | KeepWatermarks] = []
        self._under_way: list[LogWrite] = []
        self._busy = False
        self._refusing = False
        self._ended = False
        self.hasty = False
        """Write on although the Node has not yet confirmed that it knows of a failure: an ablation of this thread."""

    def ask(self, effect: LogEffect) -> None:
        """Ask for one operation of the store."""
        if isinstance(effect, WriteOn):
            self._refusing = False
        elif isinstance(effect, LogWrite | TrimLog | KeepWatermarks):
            if isinstance(effect, TrimLog | KeepWatermarks) or not self._refusing:
                self._writes.append(effect)
            self._go_on()
        else:
            self._later(lambda: self._look_up(effect))

    def crash(self) -> None:
        """End with the process: nothing that waits is written."""
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
        first = self._writes[0]
        if isinstance(first, TrimLog | KeepWatermarks):
            del self._writes[0]
            self._later(lambda: self._tidy(first))
            return
        entries: list[LogWrite] = []
        for write in self._writes[:DISK_ROWS_MAX]:
            if isinstance(write, TrimLog | KeepWatermarks):
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

    def _tidy(self, asked: TrimLog | KeepWatermarks) -> None:
        self._busy = False
        try:
            with suppress(StoreFull):  # it stays as it was, and the Node asks again
                if isinstance(asked, TrimLog):
                    self._feed(Trimmed(self._store.trim(asked.log, asked.below)))
                else:
                    self._store.mark(asked.logs)
        except StoreFailed as failed:
            self._fail(failed.reason)
        self._go_on()

    def _refuse(self, reason: str) -> None:
        """Drop what waits, which builds on the failed write. So does what the Node asks for until it hears of this."""
        self._refusing = not self.hasty
        self._writes = [write for write in self._writes if isinstance(write, TrimLog | KeepWatermarks)]
        seconds = self._told.uniform(DISK_SECONDS_MIN, DISK_SECONDS_MAX)
        self._after(seconds, lambda: self._due(lambda: self._feed(NotStored(reason))))

    def _fail(self, reason: str) -> None:
        self._ended = True
        self._feed(NotStored(reason, fatal=True))

    def _look_up(self, effect: LogEffect) -> None:
        if isinstance(effect, ReadRows):
            self._feed(RowsRead(effect.ticket, *self._store.read(effect.log, effect.position, effect.bytes_max)))
        elif isinstance(effect, FindTime | FindSize | FindIds):
            self._feed(Found(effect.ticket, self._store.find(effect)))

    def _later(self, act: Callable[[], None]) -> None:
        """Act when the disk is done; while the process is paused, this thread is paused too."""
        seconds = self._random.uniform(DISK_SECONDS_MIN, DISK_SECONDS_MAX) * self.slowness
        self._after(seconds, lambda: self._due(act))

    def _due(self, act: Callable[[], None]) -> None:
        if self._stands_still():
            self._later(act)
        elif not self._ended:
            act()
