"""The tables of log.db: what they hold, how each row is checked, how a connection is set up.

    meta       one row: version, identity (random, of this file), broker, epoch of its own logs, commits so far
    log        one row a log: its number, its name, where it begins and ends, in positions, bytes and time
    entry      one row a row of a log; its key is the log's number and the row's first position in one integer, so that
               a log lies in order and is read in order
    producer   how far each producer has come
    fence      which opening of each producer holds; a file of before there was this table gets one
    watermark  up to where a log of our own was on enough disks; a file of before there was this table gets one
    durable    the states of durable subscriptions by name; a file of before there was this table gets one
    aside      entries that were found damaged, and those behind them; and what the log does not go on with because its
               producer sent it again elsewhere: no longer part of a log, and kept for a while (aside.py). A state
               that was found damaged has no place; its name, as bytes, is in `ids_of`

SQLite checks no content, so every row carries a CRC-32 of its own. Its seed is the identity: rows of another log.db,
from a file that was put in the wrong place, do not pass.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from headgate.broker.core.limits import POSITIONS_MAX
from headgate.broker.core.log_state import LogState, ProducerState
from headgate.protocol.data import LogName

from .limits import LOG_CACHE_BYTES, LOG_PAGE_BYTES

__all__ = [
    "BadDurable",
    "READ_ERRORS",
    "ENTRY_COLUMNS",
    "IDENTITY_PREFIX",
    "VERSION",
    "LogRow",
    "Meta",
    "connect",
    "connect_new",
    "create",
    "load_durables",
    "new_identity",
    "number_of",
    "entry_check",
    "forget_producers",
    "load_logs",
    "load_meta",
    "load_producers",
    "load_watermarks",
    "place_of",
    "save_durables",
    "save_entries",
    "save_logs",
    "save_meta",
    "save_producers",
    "save_watermarks",
]

VERSION = 1
IDENTITY_PREFIX = b"HGID"
"""What every identity begins with, so that one can be found in a page."""

_APPLICATION = 0x48474C47  # "HGLG": what `file` shows of it

_POSITION_BITS = POSITIONS_MAX.bit_length() - 1

ENTRY_COLUMNS = "place, count, time, total, ids_of, number, crc, body"

_WATERMARK = "CREATE TABLE IF NOT EXISTS watermark (number INTEGER PRIMARY KEY, safe, crc)"

_DURABLE = "CREATE TABLE IF NOT EXISTS durable (name TEXT PRIMARY KEY, state, crc)"

_FENCE = "CREATE TABLE IF NOT EXISTS fence (name TEXT PRIMARY KEY, fence, crc) WITHOUT ROWID"

_TABLES = f"""
CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), version, identity, broker, epoch, commits, crc);
CREATE TABLE log (number INTEGER PRIMARY KEY, broker, epoch, kind, stream, first, next, before, total,
                  first_time, last_time, crc);
CREATE TABLE entry (place INTEGER PRIMARY KEY, count, time, total, ids_of, number, crc, body);
CREATE TABLE producer (name TEXT PRIMARY KEY, epoch, next, digest, time, crc) WITHOUT ROWID;
CREATE TABLE aside (found INTEGER PRIMARY KEY, {ENTRY_COLUMNS});
{_WATERMARK};
{_DURABLE};
{_FENCE};
CREATE INDEX ids ON entry (ids_of, number) WHERE ids_of IS NOT NULL;
"""

READ_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""How a damaged file shows; the second is SQLite quoting a damaged name in the text of the first."""

_HEAD = struct.Struct(">qqqqq").pack


class Meta(NamedTuple):
    """What the file says of itself."""

    version: int
    identity: bytes
    broker: str
    epoch: int
    commits: int

    @property
    def seed(self) -> int:
        """What every check begins with."""
        return crc32(self.identity)


@dataclass(slots=True)
class LogRow:
    """One log: as LogState, and how many bytes had ever been written when it began (`before`) and ended (`total`).

    `safe` is in a table of its own.
    """

    number: int
    name: LogName
    first: int
    next: int
    before: int
    total: int
    first_time: int
    last_time: int
    safe: int = 0

    def state(self) -> LogState:
        """What the core is told."""
        size, safe = self.total - self.before, min(self.safe, self.next)
        return LogState(self.name, self.first, self.next, size, self.first_time, self.last_time, safe)

    def fields(self) -> tuple[Any, ...]:
        """In the order of the table."""
        ends = (self.first, self.next, self.before, self.total, self.first_time, self.last_time)
        broker, epoch, kind, stream = self.name
        return (self.number, broker, epoch, int(kind), stream, *ends)


def new_identity() -> bytes:
    """One that no other log.db has."""
    return IDENTITY_PREFIX + os.urandom(16)


def place_of(number: int, position: int) -> int:
    """The key of a row."""
    return number << _POSITION_BITS | position


def number_of(place: int) -> int:
    """The log that a key is of."""
    return place >> _POSITION_BITS


def entry_check(
    seed: int, place: int, count: int, time: int, total: int, ids_of: str | None, number: int | None, body: bytes
) -> int:
    """The check of one entry."""
    crc = crc32(_HEAD(place, count, time, total, -1 if number is None else number), seed)
    return crc32(body, crc if ids_of is None else crc32(ids_of.encode(), crc))


def connect(path: Path, opener: Any = sqlite3.connect, salvage: bool = False) -> sqlite3.Connection:
    """The one connection: nobody else has the file, every commit is on the disk, checkpoints are ours to make.

    `salvage` reads a file that SQLite would refuse for being shorter than it says.
    """
    connection: sqlite3.Connection = opener(path, isolation_level=None, check_same_thread=False, timeout=0)
    for setting in (
        "locking_mode = EXCLUSIVE",
        f"page_size = {LOG_PAGE_BYTES}",
        "cell_size_check = ON",
        "trusted_schema = OFF",
        "secure_delete = OFF",
        "temp_store = MEMORY",
        "mmap_size = 0",
        f"cache_size = -{LOG_CACHE_BYTES // 1024}",
        "synchronous = FULL",
        # By itself SQLite makes checkpoints within a commit and keeps to itself when they fail.
        "wal_autocheckpoint = 0",
        *(["writable_schema = ON"] if salvage else ["journal_mode = WAL"]),
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection


def connect_new(path: Path, opener: Any = sqlite3.connect) -> sqlite3.Connection:
    """A file that nobody but us may read, in the place of what is left of an earlier attempt. Raises OSError."""
    for old in (path, path.with_name(path.name + "-wal")):
        old.unlink(missing_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return connect(path, opener)


def create(connection: sqlite3.Connection, meta: Meta) -> None:
    """Empty tables, in the main file itself and on the disk."""
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    for statement in filter(str.strip, _TABLES.split(";")):
        connection.execute(statement)
    save_meta(connection, meta)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def load_meta(connection: sqlite3.Connection) -> Meta | None:
    """What the file says of itself; None when that is damaged. Raises sqlite3.Error."""
    row = connection.execute("SELECT version, identity, broker, epoch, commits, crc FROM meta").fetchone()
    if row is None or list(map(type, row)) != [int, bytes, str, int, int, int]:
        return None
    meta = Meta(*row[:5])
    return meta if row[5] == _meta_check(meta) else None


def save_meta(connection: sqlite3.Connection, meta: Meta) -> None:
    """Within the transaction that is open."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (1, ?, ?, ?, ?, ?, ?)", (*meta, _meta_check(meta)))


def load_logs(connection: sqlite3.Connection, seed: int, salvage: bool = False) -> tuple[list[LogRow], int, str]:
    """All logs whose rows pass, how many did not, and why reading ended early: when salvaging; else sqlite3.Error."""
    rows, why = _rows(connection, "SELECT * FROM log ORDER BY number", salvage)
    good = [
        LogRow(number, LogName(broker, epoch, kind, stream), *ends)
        for number, broker, epoch, kind, stream, *ends, crc in rows
        if crc == _fields_check(seed, (number, broker, epoch, kind, stream, *ends))
    ]
    return good, len(rows) - len(good), why


def save_entries(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Within the transaction that is open."""
    connection.executemany(f"INSERT INTO entry ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def save_logs(connection: sqlite3.Connection, seed: int, logs: list[LogRow]) -> None:
    """Within the transaction that is open."""
    rows = [(*fields, _fields_check(seed, fields)) for fields in (log.fields() for log in logs)]
    connection.executemany("INSERT OR REPLACE INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def load_producers(
    connection: sqlite3.Connection, seed: int, salvage: bool = False
) -> tuple[list[ProducerState], int, str]:
    """All producers whose rows pass, the newest first; the rest as above."""
    rows, why = _rows(connection, "SELECT * FROM producer", salvage)
    good = [ProducerState(*fields) for *fields, crc in rows if crc == _fields_check(seed, fields)]
    bad = len(rows) - len(good)
    good.sort(key=lambda one: (-one.time, one.name))
    fences, bad_fences, why_fences = _load_fences(connection, seed, salvage)
    for one in good:
        one.fence = fences.get(one.name, b"")
    return good, bad + bad_fences, why or why_fences


def _load_fences(connection: sqlite3.Connection, seed: int, salvage: bool) -> tuple[dict[str, bytes], int, str]:
    try:
        if not _has_table(connection, "fence"):
            return {}, 0, ""
    except READ_ERRORS as error:
        if not salvage:
            raise
        return {}, 0, str(error)
    rows, why = _rows(connection, "SELECT name, fence, crc FROM fence", salvage)
    good = {name: fence for name, fence, crc in rows if crc == _fields_check(seed, (name, fence))}
    return good, len(rows) - len(good), why


def save_producers(connection: sqlite3.Connection, seed: int, producers: list[ProducerState]) -> None:
    """Within the transaction that is open; a state without a fence leaves that as it is."""
    states = [(one.name, one.epoch, one.next, one.digest, one.time) for one in producers]
    rows = [(*fields, _fields_check(seed, fields)) for fields in states]
    connection.executemany("INSERT OR REPLACE INTO producer VALUES (?, ?, ?, ?, ?, ?)", rows)
    fences = [(one.name, one.fence, _fields_check(seed, (one.name, one.fence))) for one in producers if one.fence]
    if fences:
        connection.execute(_FENCE)
        connection.executemany("INSERT OR REPLACE INTO fence VALUES (?, ?, ?)", fences)


def forget_producers(connection: sqlite3.Connection, names: Sequence[str]) -> None:
    """Within the transaction that is open."""
    connection.execute(_FENCE)
    for table in ("producer", "fence"):
        connection.executemany(f"DELETE FROM {table} WHERE name = ?", [(name,) for name in names])


def load_watermarks(connection: sqlite3.Connection, seed: int) -> dict[int, int]:
    """Number of a log -> its high watermark; those that do not pass are left out. Raises sqlite3.Error."""
    if not _has_table(connection, "watermark"):
        return {}
    which = "typeof(safe) = 'integer' AND typeof(crc) = 'integer'"  # a text that is no UTF-8 would end the reading
    rows = connection.execute(f"SELECT number, safe, crc FROM watermark WHERE {which}").fetchall()
    return {number: safe for number, safe, crc in rows if crc == _fields_check(seed, (number, safe))}


def save_watermarks(connection: sqlite3.Connection, seed: int, safe: Mapping[int, int]) -> None:
    """Within the transaction that is open."""
    connection.execute(_WATERMARK)
    rows = [(*one, _fields_check(seed, one)) for one in safe.items()]
    connection.executemany("INSERT OR REPLACE INTO watermark VALUES (?, ?, ?)", rows)


class BadDurable(NamedTuple):
    """A state that does not pass its check: its row, and its name as far as it can be read."""

    row: int
    name: str


def load_durables(
    connection: sqlite3.Connection, seed: int, salvage: bool = False
) -> tuple[dict[str, bytes], list[BadDurable], str]:
    """Name -> state of all that pass, those that do not, and why reading ended early: as of logs."""
    try:
        if not _has_table(connection, "durable"):
            return {}, [], ""
    except READ_ERRORS as error:
        if not salvage:
            raise
        return {}, [], str(error)
    # As bytes: a name that is damaged may be no text, and one such row must not end the reading.
    question = "SELECT rowid, CAST(name AS BLOB), CAST(state AS BLOB), CAST(crc AS INTEGER) FROM durable ORDER BY rowid"
    rows, why = _rows(connection, question, salvage)
    good: dict[str, bytes] = {}
    bad: list[BadDurable] = []
    for row, name, state, crc in rows:
        if name is not None and state is not None and crc == _durable_check(seed, name, state):
            good[name.decode()] = state
        else:
            bad.append(BadDurable(row, (name or b"").decode(errors="replace")))
    return good, bad, why


def save_durables(connection: sqlite3.Connection, seed: int, durables: Mapping[str, bytes]) -> None:
    """Within the transaction that is open; an empty state is none."""
    connection.execute(_DURABLE)
    kept = [(name, state, _durable_check(seed, name.encode(), state)) for name, state in durables.items() if state]
    gone = [(name,) for name, state in durables.items() if not state]
    connection.executemany("INSERT OR REPLACE INTO durable VALUES (?, ?, ?)", kept)
    connection.executemany("DELETE FROM durable WHERE name = ?", gone)


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def _rows(connection: sqlite3.Connection, query: str, salvage: bool) -> tuple[list[Any], str]:
    rows: list[Any] = []
    try:
        for row in connection.execute(query):
            rows.append(row)  # one by one: those before an unreadable one are kept
    except READ_ERRORS as error:
        if not salvage:
            raise
        return rows, str(error)
    return rows, ""


def _meta_check(meta: Meta) -> int:
    return crc32(repr(tuple(meta)).encode())


def _durable_check(seed: int, name: bytes, state: bytes) -> int:
    return crc32(state, crc32(name + b"\0", seed))


def _fields_check(seed: int, fields: Any) -> int:
    return crc32(repr(tuple(fields)).encode(), seed)
