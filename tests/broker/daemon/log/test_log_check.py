"""Row by row: the first thing that is wrong with a log, and where it ends once that is put aside."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.broker.daemon.log.check import bad_from, check_marker, cut, described, entry_fault, foreign_wal, free_name
from headgate.broker.daemon.log.tables import (
    VERSION,
    LogRow,
    Meta,
    connect,
    create,
    entry_check,
    load_logs,
    new_identity,
    place_of,
    save_entries,
    save_meta,
)
from headgate.protocol.data import LogKind, LogName

META = Meta(VERSION, new_identity(), "ann", 7, 0)
NAME = LogName("ann", 7, LogKind.EVENTS, "quotes")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect(tmp_path / "log.db")
    create(connection, META)
    yield connection
    connection.close()


def filled(connection: sqlite3.Connection) -> LogRow:
    """Ten rows of two events each, from position 4 on, and a row of the next log behind them."""
    total, rows = 100, []
    for number in range(10):
        place, body = place_of(1, 4 + 2 * number), bytes(number)
        total += number
        crc = entry_check(META.seed, place, 2, 50 + number, total, None, None, body)
        rows.append((place, 2, 50 + number, total, None, None, crc, body))
    save_entries(connection, [*rows, (place_of(2, 0), 1, 1, 1, None, None, 0, b"")])
    return LogRow(1, NAME, 4, 24, 100, total, 50, 59)


def test_a_sound_log_is_sound(connection: sqlite3.Connection) -> None:
    log = filled(connection)
    assert bad_from(connection, META.seed, log) == (24, "", 45)
    assert bad_from(connection, META.seed, log, newest=2) == (24, "", 7 + 8 + 9)
    assert bad_from(connection, META.seed, log, newest=99) == (24, "", 45)


@pytest.mark.parametrize(
    ("change", "position", "why"),
    [
        ("UPDATE entry SET body = x'00' WHERE place % 65536 = 10", 10, "checksum"),
        ("UPDATE entry SET time = 3 WHERE place % 65536 = 10", 10, "checksum"),
        ("UPDATE entry SET count = 'x' WHERE place % 65536 = 10", 10, "damaged"),
        ("UPDATE entry SET number = x'00' WHERE place % 65536 = 10", 10, "damaged"),
        ("UPDATE entry SET body = NULL WHERE place % 65536 = 4", 4, "damaged"),
        ("DELETE FROM entry WHERE place % 65536 = 10", 10, "missing"),
        ("DELETE FROM entry WHERE place % 65536 = 22", 22, "missing"),
        ("DELETE FROM entry WHERE place % 65536 = 4", 4, "missing"),
    ],
)
def test_the_first_fault_is_found(connection: sqlite3.Connection, change: str, position: int, why: str) -> None:
    log = filled(connection)
    connection.execute(change)
    found, reason, _ = bad_from(connection, META.seed, log)
    assert found == position and why in reason


def test_with_another_seed_nothing_passes(connection: sqlite3.Connection) -> None:
    assert bad_from(connection, META.seed + 1, filled(connection))[:2] == (4, "a row fails its checksum")


def test_what_is_cut_off_is_put_aside(connection: sqlite3.Connection) -> None:
    log = filled(connection)
    cut(connection, META.seed, log, 10, 7.0)
    assert log == LogRow(1, NAME, 4, 10, 100, 103, 50, 52)
    assert load_logs(connection, META.seed)[0] == [log]
    assert bad_from(connection, META.seed, log) == (10, "", 3)
    aside = [place for (place,) in connection.execute("SELECT place FROM aside ORDER BY found")]
    assert aside == [place_of(1, position) for position in range(10, 24, 2)]
    (left,) = connection.execute("SELECT count(*) FROM entry").fetchone()
    assert left == 3 + 1, "the next log is another matter"


def test_a_log_may_be_cut_to_nothing(connection: sqlite3.Connection) -> None:
    log = filled(connection)
    cut(connection, META.seed, log, 4, 7.0)
    assert log == LogRow(1, NAME, 4, 4, 100, 100, 0, 0)


def test_a_cut_behind_which_a_log_begins_by_now_ends_it_there(connection: sqlite3.Connection) -> None:
    log = filled(connection)
    log.first, log.before, log.first_time = 10, 103, 53
    cut(connection, META.seed, log, 6, 7.0)
    assert log == LogRow(1, NAME, 10, 10, 103, 103, 0, 0), "though rows before are still there, to be swept"
    aside = [place for (place,) in connection.execute("SELECT place FROM aside ORDER BY found")]
    assert aside == [place_of(1, position) for position in range(10, 24, 2)]


def test_the_rows_of_another_log_do_not_say_how_one_ends(connection: sqlite3.Connection) -> None:
    filled(connection)
    other = LogRow(2, NAME._replace(stream="other"), 3, 9, 5, 8, 1, 1)
    cut(connection, META.seed, other, 6, 7.0)
    assert (other.next, other.total, other.last_time) == (3, 5, 0), "its rows before are missing"


def test_entries_know_their_place() -> None:
    crc = entry_check(1, 5, 2, 3, 4, "p", 6, b"x")
    assert entry_fault(1, (5, 2, 3, 4, "p", 6, crc, b"x"), 5) == ""
    assert entry_fault(1, (5, 2, 3, 4, "p", 6, crc, b"x"), 4) == "rows are missing"


def test_positions_are_told_in_words() -> None:
    assert described(NAME, 4, 10) == "positions 4 to 9 of events 'quotes' in ann@7"
    assert "kind 9" in described(NAME._replace(kind=9), 0, 1)


def test_a_damaged_file_is_kept_under_a_name_of_its_own(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        free = free_name(tmp_path / "log.db")
        assert free.name == f"log.damaged-{number}.db"
        free.touch()
    assert free_name(tmp_path / "log.db", "-wal").name == "log.damaged-1.db-wal"


def test_the_marker_stands_beside_the_log() -> None:
    assert check_marker(Path("data/log.db")) == Path("data/log.check")


def test_a_write_ahead_file_knows_its_log(connection: sqlite3.Connection, tmp_path: Path) -> None:
    wal = tmp_path / "log.db-wal"
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'meta'").fetchone()
    assert not foreign_wal(wal, page, META.identity), "an empty one is nobody's"
    save_meta(connection, META)
    assert not foreign_wal(wal, page, META.identity)
    assert not foreign_wal(wal, page + 1, new_identity()), "other pages say nothing"
    assert foreign_wal(wal, page, new_identity())
    assert not foreign_wal(tmp_path / "none", page, META.identity)
    data = wal.read_bytes()
    start = data.index(META.identity)
    wal.write_bytes(data[:start] + bytes(8) + data[start + 8 :])
    assert not foreign_wal(wal, page, META.identity), "damage is no other log"
    wal.write_bytes(data[: start + 2])
    assert not foreign_wal(wal, page, new_identity())
