"""The store on a disk: SQLite, one file, one connection, one transaction for everything that waits.

    log.db        all logs of this broker and the copies that it holds of others' (log_tables.py says what is in it)
    log.db-wal    the newest commits, until a checkpoint takes them over
    log.mark      the number of the last commit (log_mark.py says what for)

They come into being with the first row: a broker without stored streams has none. What is found when a broker starts,
and what becomes of it when it is damaged, is in log_recovery.py.

When a commit returns, its bytes are on the disk (write-ahead log, `synchronous = FULL`). When there is no room, nothing
of it is, and the store goes on. Any other failure is the last thing the store does: after a failed fsync the system may
have thrown pages away, and another fsync would say that all is well. For the same reason checkpoints are ours to make:
SQLite makes its own within a commit, and does not say when one fails.

A full disk cannot be emptied without room: a trim is written to log.db-wal before it frees anything, and what is in
log.db-wal may need as much again in log.db before its place can be used anew. So the log stops before the disk is full,
leaving a margin (`daemon/disk_room.py`). For rows of so many bytes there must be free

    size + what log.db-wal holds + size + margin    at first: for the rows in log.db-wal, and all of it in log.db later
    growth + the larger of size and margin          else: log.db-wal is taken over and cut to nothing before that.
                                                    `growth` is what log.db has no pages for that are free since a trim

So a commit into trimmed pages borrows from the margin, and the next one gives it back. That is how a full log goes on:
retention frees pages within log.db, which never gets smaller, and publishing goes on in them.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from headgate.broker.core.effects import Append, CutLog, FindIds, FindSize, FindTime, KeepDurable, LogWrite
from headgate.broker.core.inputs import AsideRemoved, Opened
from headgate.broker.core.limits import POSITIONS_MAX
from headgate.broker.core.log_state import LogState, ProducerState
from headgate.broker.core.store import StoreFailed, StoreFull
from headgate.protocol.data import LogName

from ..disk_room import NO_ROOM, DiskSpace, disk_space
from .aside import Aside
from .check import check_marker, free_name, set_aside
from .errors import LogUnwritable, NoFile
from .limits import DEFAULT_LIMITS, LOG_PAGE_BYTES, LOG_PROBE_BYTES, LogLimits
from .lookups import Lookups
from .mark import Mark, MarkFile
from .recovery import recover
from .tables import (
    READ_ERRORS,
    VERSION,
    LogRow,
    Meta,
    connect,
    connect_new,
    create,
    entry_check,
    new_identity,
    place_of,
    save_durables,
    save_entries,
    save_logs,
    save_meta,
    save_producers,
    save_watermarks,
)

__all__ = ["SqliteLogStore"]

_SWEEP = "DELETE FROM entry WHERE place IN (SELECT place FROM entry WHERE place >= ? AND place < ? LIMIT ?)"


class SqliteLogStore:
    """Keeps the rows of every log, and what is known of producers, in one SQLite file.

    `broker/core/store.py` has the calls. One caller at a time.
    """

    def __init__(
        self,
        directory: Path,
        broker: str,
        seconds: Callable[[], float] = time.time,
        opener: Callable[..., Any] = sqlite3.connect,
        space: Callable[[Path], DiskSpace | None] = disk_space,
        limits: LogLimits = DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        self._space = space
        self.path = directory / "log.db"
        self._broker = broker
        self._seconds = seconds
        self._opener = opener
        self._mark = MarkFile(directory / "log.mark")
        self._connection: sqlite3.Connection | None = None
        self._meta = Meta(VERSION, b"", broker, 0, 0)
        self._logs: dict[LogName, LogRow] = {}
        self._numbers = 0
        """The last number that a log was given."""
        self._sweeps: dict[int, int] = {}
        """Log number -> the key below which its rows have been let go of, and may still be there."""
        self._aside = Aside(limits)
        self._written = 0
        """Bytes since the last checkpoint, about."""
        self._failed = ""

    def open(self) -> Opened:
        """What the store holds. Raises LogUnusable when it is none of ours, or cannot be written."""
        for file in (self.path, self.path.with_name("log.db-wal"), self._mark.path):
            if file.is_dir():
                raise NoFile(file)
        mark = self._mark.read()
        if not self.path.exists():
            return self._opened_empty(mark)
        found = recover(self.path, self._broker, mark, self._seconds, self._opener, self._limits)
        self._connection, self._meta = found.connection, found.meta
        self._logs = {log.name: log for log in found.logs}
        self._aside.grew()
        self._numbers = max((log.number for log in found.logs), default=0)
        self._written = self._limits.checkpoint_bytes  # what the last life left is taken over as soon as there is time
        self._sweeps = {log.number: place_of(log.number, log.first) for log in found.logs if log.first}
        try:
            self._mark.write(Mark(self._meta.identity, self._meta.commits, self._meta.epoch))
            self._mark.synchronise()
            check_marker(self.path).unlink(missing_ok=True)
        except OSError as error:
            self._connection.close()
            raise LogUnwritable(self._mark.path, error.strerror or str(error)) from error
        return Opened(
            self._meta.epoch, [log.state() for log in found.logs], found.producers, found.damage, found.durables
        )

    def commit_bytes(self) -> int:
        """Rows of one transaction: half of what is kept free at most, so that a small disk is filled all the same."""
        space = self._space(self.path.parent)
        most = self._limits.commit_bytes
        return most if space is None else min(most, space.margin // 2)

    def append(self, entries: Sequence[LogWrite]) -> None:
        """All of it on the disk. Raises StoreFull or StoreFailed."""
        self._make_room(sum(_size_of(entry) for entry in entries))
        seed, rows, cuts = self._ready().seed, [], []
        producers: dict[str, ProducerState] = {}
        changed: dict[LogName, LogRow] = {}
        durables: dict[str, bytes] = {}
        epoch = self._meta.epoch
        for entry in entries:
            if isinstance(entry, Append):
                if entry.producer is not None:
                    _put(producers, entry.producer)
                rows.append(self._row(entry, changed, seed))
                if entry.log.epoch > epoch and entry.log.broker == self._broker:
                    epoch = entry.log.epoch
            elif isinstance(entry, CutLog):
                for state in entry.producers:
                    _put(producers, state)
                rows += [self._row(row, changed, seed) for row in entry.rows]
                epoch = max(epoch, entry.epoch)
                cuts.append((changed.setdefault(entry.log, replace(self._logs[entry.log])), entry.at))
            elif isinstance(entry, KeepDurable):
                durables[entry.name] = entry.state
            else:
                _put(producers, entry.producer)

        def write(connection: sqlite3.Connection) -> None:
            save_entries(connection, rows)
            for log, position in cuts:
                set_aside(connection, log, position, self._seconds())
            save_logs(connection, seed, list(changed.values()))
            save_producers(connection, seed, list(producers.values()))
            if durables:
                save_durables(connection, seed, durables)

        self._commit(write, epoch)
        self._logs |= changed
        if cuts:
            self._aside.grew()
        size = sum(len(row[7]) for row in rows) + sum(map(len, durables.values()))
        self._written += size + (len(rows) + len(durables) + 4) * LOG_PAGE_BYTES

    def read(self, log: LogName, position: int, bytes_max: int) -> tuple[list[bytes], int, str]:
        """Rows from the one that holds the position on, where the next begin, and what cannot be read: see RowsRead."""
        found = self._logs.get(log)
        return self._lookups.read(found, position, bytes_max) if found is not None else ([], position, "")

    def trim(self, log: LogName, below: int) -> LogState:
        """The log, without the rows that end at or before `below`. Raises StoreFull or StoreFailed."""
        self._ready()
        trimmed = replace(self._logs[log]) if log in self._logs else self._new_log(log, below)
        if below >= trimmed.next:
            trimmed.first = trimmed.next = below
            trimmed.before, trimmed.first_time, trimmed.last_time = trimmed.total, 0, 0
        elif below > trimmed.first:
            found = self._guarded(lambda _: self._lookups.row_at(trimmed, below))
            trimmed.first, trimmed.before, trimmed.first_time = found
        if trimmed != self._logs.get(log):
            self._commit(lambda connection: save_logs(connection, self._meta.seed, [trimmed]), self._meta.epoch)
            self._logs[log] = trimmed
            self._sweeps[trimmed.number] = place_of(trimmed.number, trimmed.first)
        return trimmed.state()

    def mark(self, ends: Mapping[LogName, int]) -> None:
        """Remember these high watermarks. Raises StoreFull or StoreFailed."""
        self._ready()
        marked = [(self._logs[name], end) for name, end in ends.items() if name in self._logs]
        seed, safe = self._meta.seed, {log.number: end for log, end in marked}
        self._commit(lambda connection: save_watermarks(connection, seed, safe), self._meta.epoch)
        for log, end in marked:
            log.safe = end

    def find(self, question: FindTime | FindSize | FindIds) -> Any:
        """The value of the Found that answers; None as well when damage keeps us from knowing."""
        try:
            if isinstance(question, FindIds):
                if self._connection is None:
                    return [], None
                return self._lookups.ids(question.producer, question.after, self._sweeps)
            log = self._logs.get(question.log)
            if log is None:
                return None
            if isinstance(question, FindTime):
                return self._lookups.time(log, question.time)
            return self._lookups.size(log, question.bytes)
        except READ_ERRORS:
            return None

    @property
    def untidy(self) -> bool:
        """Whether `tidy` has something to do."""
        if self._connection is None:
            return False
        return bool(self._sweeps) or self._written >= self._limits.checkpoint_bytes or self._aside_is_due

    def tidy(self) -> AsideRemoved | None:
        """Some of what need not be done at once: a checkpoint, or rows thrown away. Raises StoreFull or StoreFailed."""
        self._ready()
        if self._written >= self._limits.checkpoint_bytes:
            self._guarded(lambda connection: connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall())
            self._written = 0
        elif self._sweeps:
            number, end = next(iter(self._sweeps.items()))
            swept = 0

            def sweep(connection: sqlite3.Connection) -> None:
                nonlocal swept
                swept = connection.execute(_SWEEP, (place_of(number, 0), end, self._limits.sweep_rows)).rowcount

            if self._guarded(lambda _: self._lookups.any_below(number, end)):
                self._commit(sweep, self._meta.epoch)
                self._written += swept * LOG_PAGE_BYTES
            if swept < self._limits.sweep_rows:
                del self._sweeps[number]
        elif self._aside_is_due:
            change = self._guarded(lambda connection: self._aside.next_change(connection, self._seconds()))
            if change is None:
                return self._aside.take_removed()

            def apply(connection: sqlite3.Connection) -> None:
                connection.execute(change.statement, change.arguments)

            self._commit(apply, self._meta.epoch)
            self._aside.changed(change)
            self._written += change.rows * LOG_PAGE_BYTES
        return None

    @property
    def _aside_is_due(self) -> bool:
        return self._aside.due <= self._seconds()

    def close(self) -> None:
        """Nothing more will be asked. After a failure the file is left as it is: closing would write into it."""
        if self._connection is not None and not self._failed:
            with suppress(sqlite3.Error, OSError):  # the write-ahead file stays, and the next start reads it
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._mark.synchronise()
            self._connection.close()
            self._connection = None
        self._mark.close()

    def _opened_empty(self, mark: Mark | None) -> Opened:
        """No log.db: as on the first day, unless a mark says that there was one."""
        epoch, damage = int(self._seconds()), []
        if mark is not None and mark.commits:
            epoch = max(epoch, mark.epoch + 1)
            damage.append(f"{self.path} is missing, and log.mark says that there was one: what it held is not here")
        wal = self.path.with_name(self.path.name + "-wal")
        if wal.exists():  # it would be taken for that of the file to come
            aside = free_name(self.path, "-wal")
            wal.rename(aside)
            damage.append(f"{wal.name} was there without {self.path.name}: it is kept as {aside.name}")
        self._meta = self._meta._replace(epoch=epoch)
        return Opened(epoch, [], [], damage)

    def _row(self, entry: Append, changed: dict[LogName, LogRow], seed: int) -> tuple[Any, ...]:
        """The entry as a row of the table, and its log in `changed` as it is with it."""
        log = changed.get(entry.log)
        if log is None:
            known = self._logs.get(entry.log)
            log = replace(known) if known is not None else self._new_log(entry.log, entry.first)
            changed[entry.log] = log
        if log.first == log.next:
            log.first = log.next = entry.first
            log.first_time = log.last_time = entry.time
        assert log.next == entry.first, (entry.log, log.next, entry.first)
        assert entry.count > 0 and entry.first + entry.count <= POSITIONS_MAX
        log.next += entry.count
        log.total += len(entry.row)
        log.last_time = max(log.last_time, entry.time)
        ids_of, number = None, None
        if entry.ids and entry.producer is not None:
            ids_of, number = entry.producer.name, entry.producer.next - entry.count
        place = place_of(log.number, entry.first)
        crc = entry_check(seed, place, entry.count, log.last_time, log.total, ids_of, number, entry.row)
        return (place, entry.count, log.last_time, log.total, ids_of, number, crc, entry.row)

    def _new_log(self, name: LogName, first: int) -> LogRow:
        self._numbers += 1
        return LogRow(self._numbers, name, first, first, 0, 0, 0, 0)

    def _ready(self) -> Meta:
        """The description of a file that may be written; it is made when there is none yet."""
        if self._failed:
            raise StoreFailed(self._failed)
        if self._connection is None:
            self._create()
        return self._meta

    def _create(self) -> None:
        """An empty log.db, complete before it has that name."""
        beside = self.path.with_name("log.new.db")
        meta = self._meta._replace(identity=new_identity())
        try:
            connection = connect_new(beside, self._opener)
            try:
                create(connection, meta)
            finally:
                connection.close()
            beside.replace(self.path)
            _synchronise(self.path.parent)
            self._connection, self._meta = connect(self.path, self._opener), meta
            self._write_mark()
            self._mark.synchronise()
        except (sqlite3.Error, OSError) as error:
            # Nothing was stored before there is a file, so nothing is in doubt.
            raise StoreFull(f"cannot begin {self.path.name}: {error}") from error

    def _make_room(self, size: int) -> None:
        """Grows the file before a write, so that a full disk is found before a transaction begins.

        Raises StoreFull, or StoreFailed.
        """
        space = self._space(self.path.parent)
        if space is None or self._failed:
            return
        wal = self.path.with_name(self.path.name + "-wal")
        held = wal.stat().st_size if wal.exists() else 0
        if space.free >= 2 * size + held + space.margin:
            return
        unused = 0
        if self._connection is not None:
            if held:
                self._guarded(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
                self._written, space = 0, self._space(self.path.parent) or space
            unused = self._guarded(lambda connection: connection.execute("PRAGMA freelist_count").fetchone()[0])
        growth = max(0, size - unused * LOG_PAGE_BYTES)
        if space.free < growth + max(size, space.margin):
            kept = f"{space.free:,} bytes are free, and {space.margin:,} are kept for making room"
            raise StoreFull(f"no room for {self.path.name}: {kept}")

    def _commit(self, write: Callable[[sqlite3.Connection], None], epoch: int) -> None:
        """One transaction; when it is on the disk, so is the number of commits beside it."""
        meta = self._meta._replace(commits=self._meta.commits + 1, epoch=epoch)

        def transaction(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            write(connection)
            save_meta(connection, meta)
            connection.execute("COMMIT")

        self._guarded(transaction)
        self._meta = meta
        self._write_mark()

    def _guarded(self, act: Callable[[sqlite3.Connection], Any]) -> Any:
        """Do it; a full disk is one thing, any other failure the end."""
        connection = self._connection
        assert connection is not None
        try:
            return act(connection)
        except sqlite3.Error as error:
            if self._for_want_of_room(error):
                try:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                except sqlite3.Error as worse:
                    self._fail(worse)
                self._written = (
                    self._limits.checkpoint_bytes
                )  # what is to be taken over is worth a try: that may make room
                raise StoreFull(f"no room for {self.path.name}: {error}") from error
            self._fail(error)
        except Exception as error:  # a fault of ours: what it left behind is not known either
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            with suppress(OSError):  # the next start looks at all of it then, however large it is
                check_marker(self.path).touch()
        self._failed = f"writing {self.path} failed: {error} ({name})"
        raise StoreFailed(self._failed) from error

    def _for_want_of_room(self, error: sqlite3.Error) -> bool:
        """Whether that is why; of a write that failed SQLite does not say more, so another one is tried."""
        name = getattr(error, "sqlite_errorname", "")
        if name != "SQLITE_IOERR_WRITE":
            return bool(name == "SQLITE_FULL")
        return not _probe(self.path.with_name("log.probe"))

    def _write_mark(self) -> None:
        with suppress(OSError):  # it stays behind, as after a power failure: the log itself is what counts
            self._mark.write(Mark(self._meta.identity, self._meta.commits, self._meta.epoch))

    @property
    def _lookups(self) -> Lookups:
        assert self._connection is not None
        return Lookups(self._connection, self._meta.seed, self._limits.ids_bytes)


def _size_of(entry: LogWrite) -> int:
    """Bytes that it takes in the file, with the pages around it that change."""
    if isinstance(entry, CutLog):
        return sum(_size_of(row) for row in entry.rows) + LOG_PAGE_BYTES
    if isinstance(entry, KeepDurable):
        return 2 * LOG_PAGE_BYTES + len(entry.state) * 9 // 8  # a page of its index as well
    return LOG_PAGE_BYTES + (len(entry.row) * 9 // 8 if isinstance(entry, Append) else 0)


def _synchronise(directory: Path) -> None:
    """A new name is on disk when its directory is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _probe(path: Path) -> bool:
    """Whether some bytes can be written there; False when that fails for want of room."""
    try:
        path.write_bytes(bytes(LOG_PROBE_BYTES))
    except OSError as error:
        return error.errno not in NO_ROOM
    finally:
        path.unlink(missing_ok=True)
    return True


def _put(producers: dict[str, ProducerState], state: ProducerState) -> None:
    """The newest state of a producer, with the newest fence that there is."""
    former = producers.get(state.name)
    if former is not None and former.fence and not state.fence:
        state = replace(state, fence=former.fence)
    producers[state.name] = state
