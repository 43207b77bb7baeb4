"""Lookups at the edges; what they mean is in tests/conformance/test_log_stores.py, with damage it is here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.broker.daemon.log.lookups import Lookups
from headgate.broker.daemon.log.tables import (
    VERSION,
    LogRow,
    Meta,
    connect,
    create,
    entry_check,
    place_of,
    save_entries,
)
from headgate.protocol.data import LogKind, LogName

META = Meta(VERSION, b"HGID0123456789abcdef", "ann", 7, 0)
LOG = LogRow(1, LogName("ann", 7, LogKind.EVENTS, "quotes"), 0, 20, 0, 100, 50, 59)
ROW = b"0123456789"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Ten rows of two events and ten bytes each; every row has ids of p."""
    connection = connect(tmp_path / "log.db")
    create(connection, META)
    rows = []
    for number in range(10):
        fields = (place_of(1, 2 * number), 2, 50 + number, 10 * number + 10, "p", 2 * number)
        rows.append((*fields, entry_check(META.seed, *fields, ROW), ROW))
    save_entries(connection, rows)
    yield connection
    connection.close()


@pytest.fixture
def lookups(connection: sqlite3.Connection) -> Lookups:
    return Lookups(connection, META.seed)


@pytest.mark.parametrize(
    ("position", "size", "rows", "after"),
    [(0, 20, 2, 4), (1, 20, 2, 4), (3, 0, 1, 4), (3, 19, 1, 4), (19, 1000, 1, 20), (20, 1000, 0, 20), (99, 9, 0, 99)],
)
def test_rows_are_read_from_the_one_that_holds_the_position(
    lookups: Lookups, position: int, size: int, rows: int, after: int
) -> None:
    assert lookups.read(LOG, position, size) == ([ROW] * rows, after, "")


def test_rows_before_a_damaged_one_come_first_and_then_the_complaint(
    lookups: Lookups, connection: sqlite3.Connection
) -> None:
    connection.execute("UPDATE entry SET body = x'00' WHERE place = ?", (place_of(1, 6),))
    assert lookups.read(LOG, 0, 1000) == ([ROW] * 3, 6, "")
    rows, after, damage = lookups.read(LOG, 6, 1000)
    assert (rows, after) == ([], 8)
    assert damage == "positions 6 to 7 of events 'quotes' in ann@7: a row fails its checksum"
    assert lookups.read(LOG, 8, 1000) == ([ROW] * 6, 20, "")


@pytest.mark.parametrize(("missing", "after"), [(6, 8), (18, 20)])
def test_a_missing_row_is_told(lookups: Lookups, connection: sqlite3.Connection, missing: int, after: int) -> None:
    connection.execute("DELETE FROM entry WHERE place = ?", (place_of(1, missing),))
    assert lookups.read(LOG, 0, 1000) == ([ROW] * (missing // 2), missing, "")
    rows, found, damage = lookups.read(LOG, missing, 1000)
    assert (rows, found) == ([], after) and "rows are missing" in damage


def test_what_sqlite_cannot_follow_is_told(lookups: Lookups, connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE entry RENAME TO lost")
    rows, after, damage = lookups.read(LOG, 4, 1000)
    assert (rows, after) == ([], 20) and "no such table" in damage


def test_positions_are_found_by_time_and_size(lookups: Lookups) -> None:
    assert [lookups.time(LOG, time) for time in (0, 50, 51, 59, 60)] == [0, 0, 2, 18, 20]
    assert [lookups.size(LOG, size) for size in (0, 9, 10, 35, 100, 999)] == [20, 20, 18, 14, 0, 0]
    assert lookups.row_at(LOG, 7) == (6, 30, 53)


def test_a_hole_is_no_answer(lookups: Lookups, connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM entry")
    with pytest.raises(sqlite3.DatabaseError, match="rows are missing"):
        lookups.time(LOG, 55)


def test_ids_come_in_the_order_of_their_producer(connection: sqlite3.Connection) -> None:
    lookups = Lookups(connection, META.seed, ids_bytes=25)
    assert lookups.ids("p", 0, {}) == ([ROW] * 3, 6)
    assert lookups.ids("p", 15, {}) == ([ROW] * 3, None), "the row that has the event 15 begins with 14"
    assert lookups.ids("p", 20, {}) == lookups.ids("p", 99, {}) == ([], None)
    assert lookups.ids("q", 0, {}) == ([], None)
    connection.execute("UPDATE entry SET body = x'00' WHERE place = ?", (place_of(1, 16),))
    with pytest.raises(sqlite3.DatabaseError, match="ids of p: a row fails its checksum"):
        lookups.ids("p", 15, {})


def test_ids_that_two_logs_have_bring_nobody_into_a_circle(connection: sqlite3.Connection) -> None:
    fields = (place_of(2, 0), 5, 50, 10, "p", 0)
    save_entries(connection, [(*fields, entry_check(META.seed, *fields, b"other"), b"other")])
    lookups = Lookups(connection, META.seed, ids_bytes=1)
    found: list[bytes] = []
    upto: int | None = 0
    while upto is not None:
        rows, upto = lookups.ids("p", upto, {})
        found += rows
    assert found == [ROW, b"other", *[ROW] * 8], "the second row of the first log is within the other's"


def test_ids_of_rows_that_were_let_go_of_are_not_found(lookups: Lookups) -> None:
    assert lookups.ids("p", 0, {1: place_of(1, 16), 2: place_of(2, 99)}) == ([ROW] * 2, None)


def test_rows_below_a_place_are_seen(lookups: Lookups) -> None:
    assert lookups.any_below(1, place_of(1, 1))
    assert not lookups.any_below(1, place_of(1, 0))
    assert not lookups.any_below(2, place_of(2, 99))
