"""Rows that are no longer part of a log: how they are put aside, and when they are thrown away.

They are kept for people: rows that were found damaged, the sound ones behind them, rows that were taken back. The key
of a row (`found`) says when it was put aside, in microseconds since 1970, so the oldest come first:

    younger than aside_seconds_min    kept, however many they are: somebody who was told today may want them today
    older, and all of them together
    have more than aside_bytes        the oldest go, until they have not
    older than aside_seconds          go
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from headgate.broker.core.inputs import AsideRemoved

from .limits import LogLimits
from .tables import ENTRY_COLUMNS, BadDurable

__all__ = ["Aside", "Change", "put_durables_aside", "put_entries_aside"]

_MICROSECONDS = 1_000_000

_UNTIMED = 10**15
"""Keys below this, a moment of 2001, count rows of before keys were times."""


def put_entries_aside(connection: sqlite3.Connection, span: tuple[int, int], seconds: float) -> None:
    """Move the entries of these keys, within the transaction that is open. Raises sqlite3.Error."""
    numbered = f"SELECT ? + row_number() OVER (ORDER BY place), {ENTRY_COLUMNS} FROM entry"
    key = _last_key(connection, seconds)
    connection.execute(f"INSERT INTO aside {numbered} WHERE place >= ? AND place < ? ORDER BY place", (key, *span))
    connection.execute("DELETE FROM entry WHERE place >= ? AND place < ?", span)


def put_durables_aside(connection: sqlite3.Connection, bad: Sequence[BadDurable], seconds: float) -> None:
    """Move these states, within the transaction that is open. Raises sqlite3.Error."""
    key = _last_key(connection, seconds)
    rows = [(key + number, one.row) for number, one in enumerate(bad, 1)]
    moved = "?, NULL, NULL, NULL, NULL, CAST(name AS BLOB), NULL, crc, state"
    connection.executemany(f"INSERT INTO aside SELECT {moved} FROM durable WHERE rowid = ?", rows)
    connection.executemany("DELETE FROM durable WHERE rowid = ?", [(one.row,) for one in bad])


def _last_key(connection: sqlite3.Connection, seconds: float) -> int:
    """Keys above this one are free, and say the time."""
    (last,) = connection.execute("SELECT max(found) FROM aside").fetchone()
    return max(int(seconds * _MICROSECONDS), last or 0)


class Change(NamedTuple):
    """A statement that makes the table smaller, or gives times to rows; and what is gone with it."""

    statement: str
    arguments: tuple[int, ...]
    rows: int = 0
    bytes: int = 0


class Aside:
    """Says which rows are to be thrown away, a few at a time, and counts those that were."""

    def __init__(self, limits: LogLimits) -> None:
        self._limits = limits
        self._bytes: int | None = None  # all that is aside; None while nobody has added it up
        self._removed = AsideRemoved(0, 0)
        self.due = float("inf")
        """When to look, in seconds since 1970."""

    def grew(self) -> None:
        """Something was put aside, perhaps in an earlier life."""
        self._bytes, self.due = None, 0.0

    def next_change(self, connection: sqlite3.Connection, seconds: float) -> Change | None:
        """What is to be done now; None when nothing is before `due`. Raises sqlite3.Error."""
        key = _last_key(connection, seconds)
        which = "SELECT found, coalesce(length(body), 0) FROM aside ORDER BY found LIMIT ?"
        oldest = connection.execute(which, (self._limits.aside_rows,)).fetchall()
        if oldest and oldest[0][0] < _UNTIMED:
            some = "SELECT found FROM aside WHERE found < ? ORDER BY found LIMIT ?"
            change = f"UPDATE aside SET found = found + ? WHERE found IN ({some})"
            return Change(change, (key, _UNTIMED, self._limits.aside_rows))
        self.due = float("inf")
        rows = size = last = 0
        for found, length in oldest:
            if not self._is_due(connection, found, size, seconds):
                break
            rows, size, last = rows + 1, size + length, found
        if not rows:
            return None
        self.due = 0.0
        return Change("DELETE FROM aside WHERE found <= ?", (last,), rows, size)

    def changed(self, change: Change) -> None:
        """It is on the disk."""
        self._bytes = None if self._bytes is None else self._bytes - change.bytes
        self._removed = AsideRemoved(self._removed.rows + change.rows, self._removed.bytes + change.bytes)

    def take_removed(self) -> AsideRemoved | None:
        """What was thrown away since the last time."""
        removed, self._removed = self._removed, AsideRemoved(0, 0)
        return removed if removed.rows else None

    def _is_due(self, connection: sqlite3.Connection, found: int, gone: int, seconds: float) -> bool:
        """Whether this row is to go when rows of so many bytes are gone; if not, when to look again."""
        limits, since = self._limits, found / _MICROSECONDS
        if self._bytes is None:
            (self._bytes,) = connection.execute("SELECT coalesce(sum(length(body)), 0) FROM aside").fetchone()
        kept = limits.aside_seconds_min if self._bytes - gone > limits.aside_bytes else limits.aside_seconds
        if since + kept > seconds:
            self.due = since + kept
        return since + kept <= seconds
