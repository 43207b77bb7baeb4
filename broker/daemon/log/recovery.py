"""What is done with the log.db that a broker finds when it starts.

    of another broker, or its write-ahead file is of another log      refused: nothing is touched
    rows that do not pass their check                                 put aside, with all behind them in that log
    states of durable subscriptions that do not                       put aside, each alone: other brokers have them
    a file that SQLite cannot follow any more                         what can be read is copied into a new one; the
                                                                      old one is kept beside it, under another name
    fewer commits than log.mark knows of                              told; there is nothing to put aside

Whenever something of our own logs is missing, a new epoch begins: a position that a client has seen is never given to
another event. A copy of another broker's log that was cut is fetched again from where it ends, so that takes no epoch.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headgate.broker.core.log_state import ProducerState

from .aside import put_durables_aside
from .check import bad_from, check_marker, cut, described, foreign_wal, free_name
from .errors import ForeignLog, ForeignWal, LogUnusable, LogUnwritable
from .limits import DEFAULT_LIMITS, LogLimits
from .mark import Mark
from .salvage import Recovered, salvage
from .tables import (
    READ_ERRORS,
    VERSION,
    Meta,
    connect,
    forget_producers,
    load_durables,
    load_logs,
    load_meta,
    load_producers,
    load_watermarks,
    save_meta,
)

__all__ = ["recover"]

_UNWRITABLE = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH", "SQLITE_BUSY", "SQLITE_LOCKED")


def recover(
    path: Path,
    broker: str,
    mark: Mark | None,
    seconds: Callable[[], float],
    opener: Callable[..., Any] = sqlite3.connect,
    limits: LogLimits = DEFAULT_LIMITS,
) -> Recovered:
    """Open what is there. Raises LogUnusable when it is not ours to open."""
    for file in (path.parent, path, path.with_name(path.name + "-wal")):
        if file.exists() and not os.access(file, os.R_OK | os.W_OK):
            raise LogUnwritable(file, "it may not be read and written")
    known = _refuse_strangers(path, broker)
    try:
        found = _as_it_is(path, opener, limits, seconds())
        _compare_with_mark(path, found, mark)
        _check_entries(path, found, limits, seconds())
    except _Broken as broken:
        found = salvage(path, broker, known, broken.why, mark, opener)
    except OSError as error:
        raise LogUnwritable(path, error.strerror or str(error)) from error
    if found.ours:
        _begin_epoch(path, found, max(int(seconds()), mark.epoch + 1 if mark else 0))
    return found


class _Broken(Exception):
    """SQLite cannot follow the file; `why` in its words."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _refuse_strangers(path: Path, broker: str) -> Meta | None:
    """What the main file says of itself without its write-ahead file; None when it says nothing sound."""
    address = f"file:{quote(str(path))}?mode=ro&immutable=1"
    try:
        peek = sqlite3.connect(address, uri=True)
    except sqlite3.Error as error:
        raise LogUnwritable(path, str(error)) from error
    try:
        meta = load_meta(peek)
        root = peek.execute("SELECT rootpage FROM sqlite_master WHERE name = 'meta'").fetchone()
    except READ_ERRORS as error:
        if getattr(error, "sqlite_errorname", "").startswith(_UNWRITABLE):
            raise LogUnwritable(path, str(error)) from error
        meta = None
    finally:
        peek.close()
    if meta is None:
        return None
    if meta.version != VERSION:
        raise LogUnusable(
            path, f"has version {meta.version}", f"this broker reads version {VERSION}: use the newer one"
        )
    if meta.broker != broker:
        raise ForeignLog(path, meta.broker, broker)
    wal = path.with_name(path.name + "-wal")
    if foreign_wal(wal, root[0], meta.identity):
        raise ForeignWal(wal)
    return meta


def _as_it_is(path: Path, opener: Callable[..., Any], limits: LogLimits, seconds: float) -> Recovered:
    """The file, with everything checked but its entries. Raises _Broken or LogUnwritable."""
    connection: sqlite3.Connection | None = None
    try:
        connection = connect(path, opener)
        found = _described(path, connection, limits, seconds)
        _forget_old_producers(connection, found.producers, limits.producers)
    except (*READ_ERRORS, _Broken) as error:
        if connection is not None:
            connection.close()
        if getattr(error, "sqlite_errorname", "").startswith(_UNWRITABLE):
            raise LogUnwritable(path, str(error)) from error
        raise _Broken(str(error)) from error
    return found


def _described(path: Path, connection: sqlite3.Connection, limits: LogLimits, seconds: float) -> Recovered:
    meta = load_meta(connection)
    if meta is None:
        raise _Broken("its own description is damaged")
    if _is_checked_whole(path, limits):
        (told,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if told != "ok":
            raise _Broken(" ".join(told.split()))
    logs, bad_logs, _ = load_logs(connection, meta.seed)
    producers, bad_producers, _ = load_producers(connection, meta.seed)
    if bad_logs or bad_producers:
        raise _Broken(f"{bad_logs} logs and {bad_producers} producers in it do not pass their check")
    safe = load_watermarks(connection, meta.seed)
    for log in logs:
        log.safe = safe.get(log.number, 0)
    durables, bad, _ = load_durables(connection, meta.seed)
    if bad:
        _transaction(connection, lambda: put_durables_aside(connection, bad, seconds))
    damage = [
        f"the state of durable subscription {one.name!r} fails its checksum: put aside in {path.name}" for one in bad
    ]
    return Recovered(connection, meta, logs, producers, damage, durables=durables)


def _is_checked_whole(path: Path, limits: LogLimits) -> bool:
    return path.stat().st_size <= limits.checked_bytes or check_marker(path).exists()


def _forget_old_producers(connection: sqlite3.Connection, producers: list[ProducerState], producers_max: int) -> None:
    """Those beyond the bound."""
    old = [one.name for one in producers[producers_max:]]
    del producers[producers_max:]
    if old:
        _transaction(connection, lambda: forget_producers(connection, old))


def _transaction(connection: sqlite3.Connection, write: Callable[[], object]) -> None:
    """All of it, or nothing when the disk is full: that must not keep a broker from its start."""
    try:
        connection.execute("BEGIN")
        write()
        connection.execute("COMMIT")
    except sqlite3.OperationalError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _compare_with_mark(path: Path, found: Recovered, mark: Mark | None) -> None:
    """Whether the newest commits are there."""
    meta, wal = found.meta, path.with_name(path.name + "-wal")
    if mark is None or mark.identity != meta.identity:
        if meta.commits:
            what = "is missing or damaged" if mark is None else "belongs to another log.db"
            told = f"log.mark {what}: whether {path.name} has its newest rows cannot be told, so a new epoch begins"
            found.damage.append(told)
            found.ours = True
    elif meta.commits < mark.commits:
        kept = ""
        if wal.exists() and wal.stat().st_size:
            aside = free_name(path, "-wal")
            shutil.copyfile(wal, aside)
            kept = f"; what is left of {wal.name} is kept as {aside.name}"
        told = f"{path.name} lacks its newest {mark.commits - meta.commits} commits"
        found.damage.append(f"{told}: {wal.name} is missing, damaged or cut short{kept}")
        found.ours = True


def _check_entries(path: Path, found: Recovered, limits: LogLimits, seconds: float) -> None:
    """Put aside what does not pass. Raises _Broken."""
    connection, seed = found.connection, found.meta.seed
    newest = None if _is_checked_whole(path, limits) else limits.checked_rows
    left = limits.checked_bytes
    try:
        for log in found.logs:
            position, why, read = bad_from(connection, seed, log, newest)
            if why:
                found.damage.append(f"{described(log.name, position, log.next)}: {why}; put aside in {path.name}")
                cut(connection, seed, log, position, seconds)
                found.ours = found.ours or log.name.broker == found.meta.broker
            left -= read
            if newest is not None and left < 0:
                break
    except READ_ERRORS as error:
        connection.close()
        raise _Broken(str(error)) from error


def _begin_epoch(path: Path, found: Recovered, epoch: int) -> None:
    """Our own logs go on under another number, and the file says so before any message does."""
    found.meta = found.meta._replace(epoch=max(epoch, found.meta.epoch + 1))
    try:
        found.connection.execute("BEGIN IMMEDIATE")
        save_meta(found.connection, found.meta)
        found.connection.execute("COMMIT")
    except sqlite3.Error as error:
        problem = f"has lost something ({found.damage[0]}), and cannot begin another epoch ({error})"
        raise LogUnusable(path, problem, "make room on that disk") from error
