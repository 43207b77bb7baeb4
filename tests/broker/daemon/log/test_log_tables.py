"""The tables: checks see every field, positions of two logs never meet, a connection is set up to keep its word."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.core.limits import POSITIONS_MAX
from headgate.broker.core.log_state import LogState, ProducerState
from headgate.broker.daemon.log.limits import LOG_PAGE_BYTES
from headgate.broker.daemon.log.tables import (
    IDENTITY_PREFIX,
    VERSION,
    LogRow,
    Meta,
    connect,
    connect_new,
    create,
    entry_check,
    forget_producers,
    load_logs,
    load_meta,
    load_producers,
    new_identity,
    place_of,
    save_entries,
    save_logs,
    save_meta,
    save_producers,
)
from headgate.protocol.data import LogKind, LogName

META = Meta(VERSION, b"HGID0123456789abcdef", "ann", 1_700_000_000, 0)
LOG = LogRow(3, LogName("ann", 1_700_000_000, LogKind.EVENTS, "quotes"), 5, 9, 100, 250, 11, 12)
STATES = [ProducerState("p", 1, 7, b"d", 20), ProducerState("q", 1, 7, b"", 30), ProducerState("a", 1, 7, b"", 20)]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect(tmp_path / "log.db")
    create(connection, META)
    yield connection
    connection.close()


def one(connection: sqlite3.Connection, question: str) -> Any:
    return connection.execute(question).fetchone()[0]


def test_every_commit_is_synchronised_and_checkpoints_are_ours(connection: sqlite3.Connection) -> None:
    assert one(connection, "PRAGMA journal_mode") == "wal"
    assert one(connection, "PRAGMA synchronous") == 2
    assert one(connection, "PRAGMA wal_autocheckpoint") == 0
    assert one(connection, "PRAGMA busy_timeout") == 0
    assert one(connection, "PRAGMA locking_mode") == "exclusive"
    assert one(connection, "PRAGMA mmap_size") == 0
    assert one(connection, "PRAGMA page_size") == LOG_PAGE_BYTES


def test_nobody_else_has_the_file(connection: sqlite3.Connection, tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        connect(tmp_path / "log.db")


def test_an_empty_log_is_in_the_main_file_itself(connection: sqlite3.Connection, tmp_path: Path) -> None:
    assert (tmp_path / "log.db-wal").stat().st_size == 0
    with sqlite3.connect(f"file:{tmp_path / 'log.db'}?immutable=1", uri=True) as peek:
        assert load_meta(peek) == META


def test_what_was_saved_is_loaded(connection: sqlite3.Connection) -> None:
    save_meta(connection, META._replace(commits=4))
    save_logs(connection, META.seed, [LOG])
    save_producers(connection, META.seed, STATES)
    assert load_meta(connection) == META._replace(commits=4)
    assert load_logs(connection, META.seed) == ([LOG], 0, "")
    producers, bad, why = load_producers(connection, META.seed)
    assert [state.name for state in producers] == ["q", "a", "p"] and (bad, why) == (0, "")
    assert LOG.state() == LogState(LOG.name, 5, 9, 150, 11, 12)


def test_a_fence_stays_as_it_is_until_another_one_comes_and_goes_with_its_producer(
    connection: sqlite3.Connection,
) -> None:
    for fence in (b"one", b""):
        save_producers(connection, META.seed, [replace(STATES[0], fence=fence), *STATES[1:]])
        loaded, *_ = load_producers(connection, META.seed)
        assert {one.name: one.fence for one in loaded if one.fence} == {STATES[0].name: b"one"}
    connection.execute("UPDATE fence SET fence = x'00'")
    assert load_producers(connection, META.seed)[1] == 1, "it does not pass its check"
    forget_producers(connection, [STATES[0].name])
    assert connection.execute("SELECT count(*) FROM fence").fetchone() == (0,)
    connection.execute("DROP TABLE fence")
    assert len(load_producers(connection, META.seed)[0]) == len(STATES) - 1, "a file of before there was this table"
    save_producers(connection, META.seed, [replace(STATES[0], fence=b"new")])
    assert load_producers(connection, META.seed)[1] == 0


@pytest.mark.parametrize("change", ["broker = 'bob'", "epoch = 1", "commits = 9", "identity = 'x'", "version = 2"])
def test_a_changed_description_is_none(connection: sqlite3.Connection, change: str) -> None:
    connection.execute(f"UPDATE meta SET {change}")
    assert load_meta(connection) is None


def test_a_missing_description_is_none(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM meta")
    assert load_meta(connection) is None


@pytest.mark.parametrize(
    "field", ["broker", "epoch", "kind", "stream", "first", "next", "before", "total", "last_time"]
)
def test_a_changed_log_does_not_pass(connection: sqlite3.Connection, field: str) -> None:
    save_logs(connection, META.seed, [LOG])
    connection.execute(f"UPDATE log SET {field} = 77")
    assert load_logs(connection, META.seed) == ([], 1, "")


@pytest.mark.parametrize("field", ["epoch", "next", "digest", "time"])
def test_a_changed_producer_does_not_pass(connection: sqlite3.Connection, field: str) -> None:
    save_producers(connection, META.seed, STATES[:1])
    connection.execute(f"UPDATE producer SET {field} = 78")
    assert load_producers(connection, META.seed) == ([], 1, "")


def test_rows_of_another_file_do_not_pass(connection: sqlite3.Connection) -> None:
    save_logs(connection, META.seed, [LOG])
    assert load_logs(connection, META._replace(identity=new_identity()).seed)[1] == 1
    assert new_identity() != new_identity() and new_identity().startswith(IDENTITY_PREFIX)


def test_what_cannot_be_read_is_told_only_to_who_salvages(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE log")
    connection.execute("DROP TABLE producer")
    for load in (load_logs, load_producers):
        found, bad, why = load(connection, META.seed, salvage=True)
        assert (found, bad) == ([], 0) and "no such table" in why
        with pytest.raises(sqlite3.Error):
            load(connection, META.seed)


def test_every_field_of_an_entry_is_in_its_check() -> None:
    fields: dict[str, Any] = {"place": 1, "count": 2, "time": 3, "total": 4, "ids_of": "p", "number": 5, "body": b"x"}
    others = {"place": 9, "count": 9, "time": 9, "total": 9, "ids_of": "q", "number": 9, "body": b"y"}
    checks = {entry_check(6, **fields), entry_check(7, **fields)}
    for name, other in others.items():
        checks.add(entry_check(6, **fields | {name: other}))
    checks.add(entry_check(6, 1, 2, 3, 4, None, None, b"x"))
    assert len(checks) == 2 + len(others) + 1


def test_logs_lie_one_behind_the_other() -> None:
    assert place_of(1, POSITIONS_MAX - 1) < place_of(2, 0) < place_of(2, 1)
    assert place_of(2**19 - 1, POSITIONS_MAX - 1) < 2**63


def test_a_new_file_takes_the_place_of_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "log.new.db"
    for name in ("log.new.db", "log.new.db-wal"):
        (tmp_path / name).write_bytes(b"half of it")
    connection = connect_new(path)
    create(connection, META)
    connection.close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["log.new.db"]


def test_an_entry_is_written_once(connection: sqlite3.Connection) -> None:
    row = (place_of(1, 0), 1, 1, 1, None, None, 1, b"")
    save_entries(connection, [row])
    with pytest.raises(sqlite3.IntegrityError):
        save_entries(connection, [row])
