"""A new log.db from what can be read of a damaged one; the damaged one is kept beside it.

Each log is copied up to its first row that cannot be read or does not pass: what comes behind a hole would no longer be
dense, and stays in the old file. How far producers have come is read from their table and, where that has suffered,
from the rows. States of durable subscriptions are copied one by one, as far as they pass.

The old file gets a second name before the new one takes its place, so a crash on the way leaves one or the other.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headgate.broker.core.log_state import ProducerState
from headgate.protocol.data import decode_row
from headgate.protocol.errors import ProtocolViolation

from .check import described, entry_fault, free_name
from .errors import LogUnusable
from .mark import Mark
from .tables import (
    ENTRY_COLUMNS,
    READ_ERRORS,
    VERSION,
    LogRow,
    Meta,
    connect,
    connect_new,
    create,
    entry_check,
    load_durables,
    load_logs,
    load_meta,
    load_producers,
    new_identity,
    place_of,
    save_durables,
    save_logs,
    save_meta,
    save_producers,
)

__all__ = ["Recovered", "salvage"]


@dataclass(slots=True)
class Recovered:
    """A log.db that may be used, what was wrong with it, and whether something of our own logs may be missing."""

    connection: sqlite3.Connection
    meta: Meta
    logs: list[LogRow]
    producers: list[ProducerState]
    damage: list[str] = field(default_factory=list)
    ours: bool = False
    durables: dict[str, bytes] = field(default_factory=dict)


def salvage(
    path: Path,
    broker: str,
    known: Meta | None,
    why: str,
    mark: Mark | None,
    opener: Callable[..., Any] = sqlite3.connect,
) -> Recovered:
    """The new log, open. `known` is what the file was seen to say of itself. Raises LogUnusable."""
    beside, aside = path.with_name(f"{path.stem}.new{path.suffix}"), free_name(path)
    try:
        work = _Salvage(broker, known, mark)
        with closing(connect_new(beside, opener)) as target:
            work.copy(path, target, opener)
        _exchange(path, beside, aside)
        connection = connect(path, opener)
    except (*READ_ERRORS, OSError) as error:
        problem = f"is damaged ({why}), and what can be read of it cannot be copied into a new file ({error})"
        raise LogUnusable(path, problem, "make room on that disk, or move the file away to start without it") from error
    told = f"{path.name} was damaged ({why}): it is kept as {aside.name}, and what could be read of it goes on"
    producers = sorted(work.producers.values(), key=lambda one: (-one.time, one.name))
    return Recovered(connection, work.meta, work.logs, producers, [told, *work.damage], work.ours, work.durables)


class _Salvage:
    """What has been brought over so far."""

    def __init__(self, broker: str, known: Meta | None, mark: Mark | None) -> None:
        self.known = known
        commits, epoch = (mark.commits, mark.epoch) if mark else (0, 0)
        self.meta = Meta(VERSION, new_identity(), broker, epoch, commits + 1)
        self.logs: list[LogRow] = []
        self.producers: dict[str, ProducerState] = {}
        self.durables: dict[str, bytes] = {}
        self.damage: list[str] = []
        self.ours = False
        self._old_seed = (known or self.meta._replace(identity=mark.identity if mark else b"")).seed

    def copy(self, path: Path, target: sqlite3.Connection, opener: Callable[..., Any]) -> None:
        """All that can be read, into a new file, on the disk. Raises sqlite3.Error of the new file alone."""
        create(target, self.meta)
        target.execute("BEGIN IMMEDIATE")
        try:
            source = connect(path, opener, salvage=True)
        except READ_ERRORS as error:
            self._lost_all(str(error))
        else:
            with closing(source):
                self._read_meta(source)
                self._copy_logs(source, target)
                self._copy_producers(source)
                self._copy_durables(source)
        own = [log.name.epoch for log in self.logs if log.name.broker == self.meta.broker]
        self.meta = self.meta._replace(epoch=max([self.meta.epoch, *own]))
        save_meta(target, self.meta)
        save_logs(target, self.meta.seed, self.logs)
        save_producers(target, self.meta.seed, list(self.producers.values()))
        save_durables(target, self.meta.seed, self.durables)
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _lost_all(self, why: str) -> None:
        self.damage.append(f"no log in it can be found any more: {why}")
        self.ours = True

    def _read_meta(self, source: sqlite3.Connection) -> None:
        try:
            self.known = load_meta(source) or self.known
        except READ_ERRORS as error:
            self.damage.append(f"it does not say any more which epoch it was in: {error}")
        if self.known is None:
            self.ours = True
            return
        self._old_seed = self.known.seed
        if self.known.commits + 1 < self.meta.commits:
            self.damage.append(f"it lacks its newest {self.meta.commits - 1 - self.known.commits} commits as well")
            self.ours = True
        commits, epoch = max(self.meta.commits, self.known.commits + 1), max(self.meta.epoch, self.known.epoch)
        self.meta = self.meta._replace(commits=commits, epoch=epoch)

    def _copy_logs(self, source: sqlite3.Connection, target: sqlite3.Connection) -> None:
        logs, bad, why = load_logs(source, self._old_seed, salvage=True)
        if bad or why:
            self._lost_all(why or f"{bad} of them do not pass their check")
        for log in logs:
            end = log.next
            fault = self._copy_log(source, target, log)
            if fault:
                self.damage.append(f"{described(log.name, log.next, end)}: {fault}")
                self.ours = self.ours or log.name.broker == self.meta.broker
            self.logs.append(log)

    def _copy_log(self, source: sqlite3.Connection, target: sqlite3.Connection, log: LogRow) -> str:
        """The rows of one log; why not all of them, and `log` ends where they end."""
        expected, end, fault = place_of(log.number, log.first), place_of(log.number, log.next), ""
        total, last_time = log.before, 0
        for row in _until_unreadable(source, expected, end):
            fault = row if isinstance(row, str) else entry_fault(self._old_seed, row, expected)
            if fault:
                break
            place, number_of_events, time, total, ids_of, number, _, body = row
            crc = entry_check(self.meta.seed, place, number_of_events, time, total, ids_of, number, body)
            values = (place, number_of_events, time, total, ids_of, number, crc, body)
            target.execute(f"INSERT INTO entry ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
            self._see_producer(body)
            expected, last_time = place + number_of_events, time
        if expected == end:
            return ""
        log.next, log.total, log.last_time = expected - place_of(log.number, 0), total, last_time
        if log.next == log.first:
            log.first_time = 0
        return fault or "rows are missing"

    def _see_producer(self, body: bytes) -> None:
        """A row's producer has come so far at least."""
        try:
            row = decode_row(body)
        except ProtocolViolation:  # it passed its check, so somebody wrote it so
            return
        if row.producer:
            state = ProducerState(row.producer, row.epoch, row.number + row.count, row.digest, row.time)
            self._keep(state)

    def _keep(self, state: ProducerState) -> None:
        known = self.producers.get(state.name)
        if known is None:
            self.producers[state.name] = state
        elif (known.epoch, known.next) < (state.epoch, state.next):
            self.producers[state.name] = replace(state, fence=state.fence or known.fence)

    def _copy_producers(self, source: sqlite3.Connection) -> None:
        producers, bad, why = load_producers(source, self._old_seed, salvage=True)
        for one in producers:
            self._keep(one)
        if bad or why:
            why = why or f"{bad} of them do not pass their check"
            self.damage.append(f"producers are known from their rows alone, where those are left: {why}")

    def _copy_durables(self, source: sqlite3.Connection) -> None:
        self.durables, bad, why = load_durables(source, self._old_seed, salvage=True)
        if why:
            self.damage.append(f"states of durable subscriptions are missing: {why}")
        self.damage += [f"the state of durable subscription {one.name!r} fails its checksum" for one in bad]


def _until_unreadable(source: sqlite3.Connection, begin: int, end: int) -> Iterator[Any]:
    """Entries as far as SQLite can follow them; the last thing given is its complaint when it cannot."""
    which = f"SELECT {ENTRY_COLUMNS} FROM entry WHERE place >= ? AND place < ? ORDER BY place"
    try:
        yield from source.execute(which, (begin, end))
    except READ_ERRORS as error:
        yield str(error)


def _exchange(path: Path, beside: Path, aside: Path) -> None:
    """The new file takes the place of the old, which keeps all of its bytes under another name."""
    wal = _wal(path)
    shutil.copyfile(path, aside)
    if wal.exists():
        shutil.copyfile(wal, _wal(aside))
    os.replace(beside, path)
    wal.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")
