"""What a broker does with the log.db that it finds: strangers' are refused, damage is told, and nothing is given twice.

The kit's judge holds every opened copy to this: each log is a beginning of what was acknowledged; where rows are gone,
that is said, and for our own logs a new epoch begins; the log goes on, and the start after that complains of nothing.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from errno import EROFS
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headgate.broker.core.effects import KeepDurable
from headgate.broker.daemon.log import LogLimits, LogUnusable, SqliteLogStore, recovery
from headgate.broker.daemon.log.errors import LogUnwritable, NoFile
from headgate.broker.daemon.log.mark import Mark, MarkFile
from tests.support.damaged_log import NOW, LogKit

FILES = ("log.db", "log.db-wal", "log.mark")
SECTOR = 512
PAGE = 4096


@pytest.fixture(scope="module")
def kit() -> Iterator[LogKit]:
    kit = LogKit().fill()
    yield kit
    kit.end()


@pytest.fixture(scope="module")
def other() -> Iterator[LogKit]:
    """Another broker of that name, on another machine."""
    kit = LogKit().fill(commits=20)
    yield kit
    kit.end()


def bytes_of(kit: LogKit, name: str) -> int:
    return (kit.folder / "killed" / name).stat().st_size


def judged_when_cut(kit: LogKit, name: str, length: int) -> str:
    """What is said of a copy with that file cut to that length."""
    folder = kit.copy()
    with (folder / name).open("r+b") as stream:
        stream.truncate(length)
    return told(kit, folder)


def judged_when_changed(kit: LogKit, name: str, change: Callable[[bytearray], object]) -> str:
    folder = kit.copy()
    data = bytearray((folder / name).read_bytes())
    change(data)
    (folder / name).write_bytes(data)
    return told(kit, folder)


def told(kit: LogKit, folder: Path) -> str:
    opened, refused = kit.judge(folder)
    return refused if opened is None else " / ".join(opened.damage)


def test_a_killed_broker_finds_all_that_it_acknowledged(kit: LogKit) -> None:
    opened, _ = kit.judge(kit.copy())
    assert opened is not None and (opened.epoch, opened.damage) == (NOW, [])
    assert {one.name: one for one in opened.producers} == kit.producers
    assert opened.durables == {name: states[-1] for name, states in kit.durables.items()}
    assert bytes_of(kit, "log.db-wal") > 100_000, "half of it has to be in the write-ahead file"


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_short_is_noticed(kit: LogKit, name: str) -> None:
    size = bytes_of(kit, name)
    for length in range(0, size, max(SECTOR, size // 24 // SECTOR * SECTOR)):
        assert judged_when_cut(kit, name, length)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_anywhere_is_noticed(kit: LogKit, name: str) -> None:
    for length in range(0, bytes_of(kit, name), SECTOR):
        assert judged_when_cut(kit, name, length)


@pytest.mark.parametrize("name", FILES)
def test_flipped_bits_are_noticed_wherever_they_matter(kit: LogKit, name: str) -> None:
    flip_bits(kit, name, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_flipped_bits_are_noticed_wherever_they_matter(kit: LogKit, name: str) -> None:
    flip_bits(kit, name, 600)


def flip_bits(kit: LogKit, name: str, count: int) -> None:
    random = Random(name)
    for _ in range(count):
        bit = random.randrange(8 * bytes_of(kit, name))

        def flip(data: bytearray, bit: int = bit) -> None:
            data[bit // 8] ^= 1 << bit % 8

        judged_when_changed(kit, name, flip)


@pytest.mark.parametrize("name", ["log.db", "log.db-wal"])
def test_zeroed_pages_are_noticed_wherever_they_matter(kit: LogKit, name: str) -> None:
    said = 0
    for start in range(0, bytes_of(kit, name), 8 * PAGE):

        def wipe(data: bytearray, start: int = start) -> None:
            data[start : start + PAGE] = bytes(PAGE)

        said += bool(judged_when_changed(kit, name, wipe))
    assert said


def test_without_the_write_ahead_file_the_missing_commits_are_counted(kit: LogKit) -> None:
    folder = kit.copy()
    (folder / "log.db-wal").unlink()
    said = told(kit, folder)
    assert "lacks its newest 11 commits" in said and "log.db-wal is missing" in said


def test_what_is_left_of_a_write_ahead_file_is_kept(kit: LogKit) -> None:
    said = judged_when_cut(kit, "log.db-wal", 20_000)
    assert "is kept as log.damaged-1.db-wal" in said


def test_without_the_main_file_a_new_epoch_begins(kit: LogKit) -> None:
    folder = kit.copy()
    (folder / "log.db").unlink()
    said = told(kit, folder)
    assert "log.db is missing" in said and "is kept as log.damaged-1.db-wal" in said


def test_without_the_mark_a_new_epoch_begins(kit: LogKit) -> None:
    folder = kit.copy()
    (folder / "log.mark").unlink()
    assert "log.mark is missing or damaged" in told(kit, folder)


def test_the_write_ahead_file_of_another_log_is_refused(kit: LogKit, other: LogKit) -> None:
    folder = kit.copy()
    shutil.copyfile(other.folder / "killed" / "log.db-wal", folder / "log.db-wal")
    assert "belongs to another log.db: put back" in told(kit, folder)


def test_the_mark_of_another_log_is_told(kit: LogKit, other: LogKit) -> None:
    folder = kit.copy()
    shutil.copyfile(other.folder / "killed" / "log.mark", folder / "log.mark")
    assert "log.mark belongs to another log.db" in told(kit, folder)


def test_the_log_of_another_broker_is_refused(kit: LogKit) -> None:
    folder = kit.copy()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(LogUnusable, match="is the log of broker 'ann', not of 'bob'"):
        SqliteLogStore(folder, "bob", lambda: NOW).open()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_log_of_a_later_version_is_refused(kit: LogKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "VERSION", 0)
    assert "has version 1: this broker reads version 0" in told(kit, kit.copy())


@pytest.mark.parametrize("code", ["SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_BUSY"])
def test_a_file_that_may_not_be_written_is_refused_as_it_is(kit: LogKit, code: str) -> None:
    def refuse(*_: object, **__: object) -> sqlite3.Connection:
        error = sqlite3.OperationalError("attempt to write a readonly database")
        error.sqlite_errorname = code
        raise error

    with pytest.raises(LogUnwritable, match=r"readonly database.*make file and directory readable and writable"):
        SqliteLogStore(kit.copy(), "ann", lambda: NOW, refuse).open()


def test_of_a_large_file_the_newest_rows_are_checked(kit: LogKit) -> None:
    limits = LogLimits(checked_bytes=1000, checked_rows=3)
    for back, marked, noticed in ((1, False, True), (20, False, False), (20, True, True)):
        copy = kit.copy()
        if marked:
            (copy / "log.check").touch()
        with sqlite3.connect(copy / "log.db") as connection:
            which = "SELECT place FROM entry WHERE place >> 44 = 1 ORDER BY place DESC LIMIT 1 OFFSET ?"
            (place,) = connection.execute(which, (back,)).fetchone()
            connection.execute("UPDATE entry SET body = zeroblob(length(body)) WHERE place = ?", (place,))
        connection.close()
        store = SqliteLogStore(copy, "ann", lambda: NOW, limits=limits)
        opened = store.open()
        assert any("fails its checksum" in text for text in opened.damage) == noticed
        assert not (copy / "log.check").exists()
        store.close()


class Full(sqlite3.Connection):
    """A connection to a disk without room."""

    def execute(self, statement: str, *arguments: Any) -> Any:
        if statement.startswith("BEGIN"):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorname = "SQLITE_FULL"
            raise error
        return super().execute(statement, *arguments)


def full(*arguments: Any, **named: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = sqlite3.connect(*arguments, factory=Full, **named)
    return connection


def test_a_full_disk_does_not_keep_a_sound_log_from_its_start(kit: LogKit) -> None:
    store = SqliteLogStore(kit.copy(), "ann", lambda: NOW, full, limits=LogLimits(producers=1))
    opened = store.open()
    assert (opened.epoch, opened.damage, len(opened.producers)) == (NOW, [], 1)
    store.close()


def test_a_new_epoch_that_cannot_be_written_is_not_begun(kit: LogKit) -> None:
    folder = kit.copy()
    (folder / "log.mark").unlink()
    with pytest.raises(LogUnusable, match=r"has lost something \(log.mark is missing.*disk is full.*: make room"):
        SqliteLogStore(folder, "ann", lambda: NOW, full).open()


def test_a_mark_that_may_not_be_written_is_told(kit: LogKit, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: MarkFile, mark: Mark) -> None:
        raise OSError(EROFS, "Read-only file system")

    monkeypatch.setattr(MarkFile, "write", refuse)
    with pytest.raises(LogUnwritable, match=r"log\.mark cannot be opened \(Read-only file system\)"):
        SqliteLogStore(kit.copy(), "ann", lambda: NOW).open()


@pytest.mark.parametrize("name", FILES)
def test_a_directory_in_the_place_of_a_file_is_told(kit: LogKit, name: str) -> None:
    folder = kit.copy()
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(NoFile, match=rf"{name} is a directory.*: move that directory away, .* --data"):
        SqliteLogStore(folder, "ann", lambda: NOW).open()
    assert (folder / name).is_dir()


def test_producers_beyond_the_bound_are_forgotten_the_oldest_first(kit: LogKit) -> None:
    newest = max(kit.producers.values(), key=lambda one: one.time)
    folder = kit.copy()
    for _ in range(2):
        store = SqliteLogStore(folder, "ann", lambda: NOW, limits=LogLimits(producers=1))
        assert store.open().producers == [newest]
        store.close()


def changed(kit: LogKit, statement: str) -> Path:
    """A copy after that."""
    copy = kit.copy()
    with sqlite3.connect(copy / "log.db") as connection:
        connection.execute(statement)
    connection.close()
    return copy


@pytest.mark.parametrize(
    "change", ["state = x'00'", "state = 'text'", "state = NULL", "crc = 'x'", "name = CAST(x'62ff' AS TEXT)"]
)
def test_a_damaged_state_of_a_durable_subscription_is_put_aside_alone(kit: LogKit, change: str) -> None:
    copy = changed(kit, f"UPDATE durable SET {change} WHERE name = 'billing-1'")
    store = SqliteLogStore(copy, "ann", lambda: NOW)
    opened = store.open()
    (text,) = opened.damage
    assert text.startswith("the state of durable subscription 'b") and text.endswith("put aside in log.db")
    assert opened.epoch == NOW and sorted(opened.durables) == ["billing-0", "billing-2"]
    store.append([KeepDurable(1, "billing-1", b"new")])
    store.close()
    with sqlite3.connect(copy / "log.db") as connection:
        assert connection.execute("SELECT count(*) FROM aside WHERE place IS NULL").fetchone() == (1,)
    connection.close()
    opened = store.open()
    assert opened.damage == [] and opened.durables["billing-1"] == b"new"
    store.close()


def test_a_damaged_state_stays_where_it_is_while_the_disk_is_full(kit: LogKit) -> None:
    copy = changed(kit, "UPDATE durable SET crc = 1 WHERE name = 'billing-1'")
    for _ in range(2):
        store = SqliteLogStore(copy, "ann", lambda: NOW, full)
        opened = store.open()
        assert len(opened.damage) == 1 and len(opened.durables) == 2
        store.close()


@pytest.mark.parametrize("column", ["safe", "crc"])
def test_a_high_watermark_that_is_no_text_costs_nothing_else(kit: LogKit, column: str) -> None:
    copy = changed(kit, f"INSERT INTO watermark (number, {column}) VALUES (1, CAST(x'ff' AS TEXT))")
    opened, _ = kit.judge(copy)
    assert opened is not None and opened.damage == []
