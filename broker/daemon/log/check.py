"""Looking at a log.db row by row: where a log stops being sound, and cutting it there."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Sequence
from itertools import count
from operator import eq
from pathlib import Path
from typing import Any

from headgate.protocol.data import LogKind, LogName

from .aside import put_entries_aside
from .tables import ENTRY_COLUMNS, IDENTITY_PREFIX, LogRow, entry_check, place_of, save_logs

__all__ = ["bad_from", "check_marker", "cut", "described", "entry_fault", "foreign_wal", "free_name", "set_aside"]

_WAL_HEAD = struct.Struct(">IIIIIIII")
_FRAME_HEAD = struct.Struct(">IIIIII")


def described(name: LogName, first: int, end: int) -> str:
    """Positions of a log, for people."""
    kind = LogKind(name.kind).name.lower() if name.kind in tuple(LogKind) else f"kind {name.kind}"
    return f"positions {first} to {end - 1} of {kind} {name.stream!r} in {name.partition}"


def check_marker(path: Path) -> Path:
    """A file beside the log that says: look at all of it, however large it is."""
    return path.with_name(f"{path.stem}.check")


def free_name(path: Path, suffix: str = "") -> Path:
    """A name beside the log under which a damaged file can be kept."""
    for number in count(1):
        found = path.with_name(f"{path.stem}.damaged-{number}{path.suffix}{suffix}")
        if not found.exists():
            return found
    raise AssertionError


def bad_from(connection: sqlite3.Connection, seed: int, log: LogRow, newest: int | None = None) -> tuple[int, str, int]:
    """Where the log stops being sound, why, and the bytes looked at; no reason when it is sound to its end.

    With `newest` only so many of its last rows are looked at. Raises sqlite3.Error.
    """
    begin, end = place_of(log.number, log.first), place_of(log.number, log.next)
    expected, read = begin, 0
    if newest is not None:
        which = "SELECT place FROM entry WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1 OFFSET ?"
        found = connection.execute(which, (begin, end, newest)).fetchone()
        expected = found[0] if found else begin
    rows = connection.execute(
        f"SELECT {ENTRY_COLUMNS} FROM entry WHERE place >= ? AND place < ? ORDER BY place", (expected, end)
    )
    try:
        for row in rows:
            why = entry_fault(seed, row, expected)
            if why:
                return expected - place_of(log.number, 0), why, read
            expected += row[1]
            read += len(row[7])
    finally:
        rows.close()
    if expected != end:
        return expected - place_of(log.number, 0), "rows are missing", read
    return log.next, "", read


def entry_fault(seed: int, row: Sequence[Any], expected: int) -> str:
    """What is wrong with an entry that should begin there; empty when nothing is."""
    place, number_of_events, time, total, ids_of, number, crc, body = row
    if place != expected:
        return "rows are missing"
    if list(map(type, (number_of_events, time, total, crc, body))) != [int, int, int, int, bytes]:
        return "a row is damaged"
    if type(ids_of) not in (str, type(None)) or type(number) not in (int, type(None)):
        return "a row is damaged"
    if entry_check(seed, place, number_of_events, time, total, ids_of, number, body) != crc:
        return "a row fails its checksum"
    return ""


def cut(connection: sqlite3.Connection, seed: int, log: LogRow, position: int, seconds: float) -> None:
    """Put everything from this position on aside; the log ends there. Raises sqlite3.Error."""
    connection.execute("BEGIN IMMEDIATE")
    set_aside(connection, log, position, seconds)
    save_logs(connection, seed, [log])
    connection.execute("COMMIT")


def set_aside(connection: sqlite3.Connection, log: LogRow, position: int, seconds: float) -> None:
    """The same within the transaction that is open; how the log is then is yet to be saved. Raises sqlite3.Error.

    What the log begins behind was let go of, and is thrown away by others.
    """
    position = max(position, log.first)
    put_entries_aside(connection, (place_of(log.number, position), place_of(log.number + 1, 0)), seconds)
    _end_at(connection, log, position)


def _end_at(connection: sqlite3.Connection, log: LogRow, position: int) -> None:
    """Let the log end at this position, as its last row before says; without one, where it begins."""
    span = (place_of(log.number, log.first), place_of(log.number, position))
    which = "SELECT total, time FROM entry WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1"
    last = connection.execute(which, span).fetchone()
    if last is None:
        log.next, log.total, log.first_time, log.last_time = log.first, log.before, 0, 0
    else:
        log.next, (log.total, log.last_time) = position, last


def foreign_wal(wal: Path, page_number: int, identity: bytes) -> bool:
    """Whether the page of that number, which every commit of ours writes, is that of another log in this file."""
    try:
        data = wal.open("rb")
    except OSError:
        return False
    with data:
        head = data.read(_WAL_HEAD.size)
        if len(head) < _WAL_HEAD.size:
            return False
        _, _, page_bytes, _, *salts, _, _ = _WAL_HEAD.unpack(head)
        while len(frame := data.read(_FRAME_HEAD.size)) == _FRAME_HEAD.size:
            number, _, *own_salts, _, _ = _FRAME_HEAD.unpack(frame)
            page = data.read(page_bytes)
            if own_salts != salts:
                return False  # left over from before: SQLite stops here as well
            if number == page_number and _of_another(page, identity):
                return True
    return False


def _of_another(page: bytes, identity: bytes) -> bool:
    """It has an identity, and not ours with some damage: that is told elsewhere."""
    found = page.find(IDENTITY_PREFIX)
    other = page[found : found + len(identity)]
    return found >= 0 and len(other) == len(identity) and sum(map(eq, other, identity)) <= len(identity) // 2
