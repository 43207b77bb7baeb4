"""Looking things up in log.db: rows by position, positions by time and by size, a producer's rows that have ids.

Positions, times and running totals of bytes all grow along a log, so any of them is found by halving.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from headgate.broker.core.limits import POSITIONS_MAX
from headgate.protocol.limits import BATCH_EVENTS_MAX

from .check import described, entry_fault
from .limits import DEFAULT_LIMITS
from .tables import ENTRY_COLUMNS, READ_ERRORS, LogRow, number_of, place_of

__all__ = ["Lookups"]

_HEAD = "place, count, time, total, length(body)"  # the length costs no look at the body
_AT = f"SELECT {_HEAD} FROM entry WHERE place <= ? AND place >= ? ORDER BY place DESC LIMIT 1"
_FROM = f"SELECT {ENTRY_COLUMNS} FROM entry WHERE place >= ? AND place < ? ORDER BY place"
_IDS = (
    f"SELECT {ENTRY_COLUMNS} FROM entry WHERE ids_of = ? AND number > ? AND number + count > ? ORDER BY number, place"
)


class Lookups:
    """Questions to one open log.db; nothing is changed by them. All but `read` raise sqlite3.Error at damage."""

    def __init__(self, connection: sqlite3.Connection, seed: int, ids_bytes: int = DEFAULT_LIMITS.ids_bytes) -> None:
        self._connection = connection
        self._seed = seed
        self._ids_bytes = ids_bytes

    def read(self, log: LogRow, position: int, bytes_max: int) -> tuple[list[bytes], int, str]:
        """Rows, where the next begin, and why there are none although there should be."""
        zero, end = place_of(log.number, 0), place_of(log.number, log.next)
        if position >= log.next:
            return [], position, ""
        if log.first == log.next:
            return [], log.next, ""
        rows: list[bytes] = []
        expected, fault = zero + max(position, log.first), ""
        try:
            found = self._connection.execute(_AT, (expected, zero + log.first)).fetchone()
            if found is not None and found[0] + found[1] > expected:
                expected = found[0]
            expected, fault = self._collect(expected, end, bytes_max, rows)
        except READ_ERRORS as error:
            fault = str(error)
        if rows or not fault:
            return rows, expected - zero, ""
        after = self._next_readable(expected, end)
        return [], after - zero, f"{described(log.name, expected - zero, after - zero)}: {fault}"

    def _collect(self, expected: int, end: int, bytes_max: int, rows: list[bytes]) -> tuple[int, str]:
        """Fill `rows`: the place behind the last of them, and what is wrong with the one that is there."""
        left = bytes_max
        cursor = self._connection.execute(_FROM, (expected, end))
        try:
            for row in cursor:
                fault = entry_fault(self._seed, row, expected)
                if fault:
                    return expected, fault
                left -= len(row[7])
                if left < 0 and rows:
                    return expected, ""
                rows.append(row[7])
                expected += row[1]
                if left <= 0:
                    return expected, ""
        except READ_ERRORS as error:
            return expected, str(error)
        finally:
            cursor.close()
        return expected, "" if expected == end else "rows are missing"

    def _next_readable(self, place: int, end: int) -> int:
        """Where to go on behind a row that cannot be read."""
        which = "SELECT place FROM entry WHERE place > ? AND place < ? ORDER BY place LIMIT 1"
        try:
            found = self._connection.execute(which, (place, end)).fetchone()
        except READ_ERRORS:
            return end
        return int(found[0]) if found is not None else end

    def row_at(self, log: LogRow, position: int) -> tuple[int, int, int]:
        """Of the row that holds this position: its first position, the bytes written before it, its time."""
        zero = place_of(log.number, 0)
        place, _, time, total, length = self._at(log, position)
        return place - zero, total - length, time

    def time(self, log: LogRow, time: int) -> int:
        """The first position of that time or later; the log's end when all is older."""
        return self._first(log, lambda row: row[2] >= time)

    def size(self, log: LogRow, size: int) -> int:
        """The first position of the newest rows that together have at most so many bytes."""
        return self._first(log, lambda row: log.total - (row[3] - row[4]) <= size)

    def ids(self, producer: str, after: int, gone: Mapping[int, int]) -> tuple[list[bytes], int | None]:
        """Rows of a producer that have ids, in its order, from the one with its event `after` on, and where to go on.

        `gone` has log numbers and the keys below which their rows were let go of, and may still be there. A row of
        another log may have some of the same events: a client that asks on from the end of what it has misses none.
        """
        rows: list[bytes] = []
        left, end = self._ids_bytes, after
        cursor = self._connection.execute(_IDS, (producer, after - BATCH_EVENTS_MAX, after))
        try:
            for row in cursor:
                if row[0] < gone.get(number_of(row[0]), 0):
                    continue
                if left <= 0:
                    return rows, end
                if fault := entry_fault(self._seed, row, row[0]):
                    raise sqlite3.DatabaseError(f"ids of {producer}: {fault}")
                rows.append(row[7])
                left -= len(row[7])
                end = max(end, row[5] + row[1])
        finally:
            cursor.close()
        return rows, None

    def any_below(self, number: int, end: int) -> bool:
        """Whether a log has rows below this place."""
        which = "SELECT 1 FROM entry WHERE place >= ? AND place < ? LIMIT 1"
        return self._connection.execute(which, (place_of(number, 0), end)).fetchone() is not None

    def _at(self, log: LogRow, position: int) -> Any:
        span = (place_of(log.number, position), place_of(log.number, log.first))
        row = self._connection.execute(_AT, span).fetchone()
        if row is None:
            raise sqlite3.DatabaseError(f"{described(log.name, position, position + 1)}: rows are missing")
        return row

    def _first(self, log: LogRow, holds: Callable[[Any], bool]) -> int:
        """The position of the first row for which something holds that holds for all behind it as well."""
        low, high, zero = log.first, log.next, place_of(log.number, 0)
        assert high <= POSITIONS_MAX
        while low < high:
            row = self._at(log, (low + high) // 2)
            if holds(row):
                high = row[0] - zero
            else:
                low = row[0] + row[1] - zero
        return low
