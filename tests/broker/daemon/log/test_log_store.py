"""The store on a disk: what a commit means, what a full and what a failing disk do to it, what it leaves for later.

That it means what a list would is in tests/conformance/test_log_stores.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from errno import EDQUOT, EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.core.effects import Append, CutLog, FindIds, FindSize, FindTime, KeepDurable, KeepProducer
from headgate.broker.core.log_state import LogState, ProducerState
from headgate.broker.core.store import StoreFailed, StoreFull
from headgate.broker.daemon.disk_room import DiskSpace
from headgate.broker.daemon.log import LogLimits, SqliteLogStore
from headgate.broker.daemon.log import store as module
from headgate.broker.daemon.log.mark import MarkFile
from headgate.protocol.data import LogKind, LogName

NOW = 1_700_000_000
LOG = LogName("ann", NOW, LogKind.EVENTS, "quotes")
STATE = ProducerState("p", 1, 3, b"d", NOW)


class Faulty(sqlite3.Connection):
    """A connection that fails on statements that begin so, with this code."""

    fails_on = ""
    code = ""
    left = -1
    """So many statements more until one fails; negative: none."""

    def execute(self, statement: str, *arguments: Any) -> Any:
        self._may(statement)
        return super().execute(statement, *arguments)

    def executemany(self, statement: str, *arguments: Any) -> Any:
        self._may(statement)
        return super().executemany(statement, *arguments)

    def _may(self, statement: str) -> None:
        self.left -= 1
        if self.left == -1 or (self.fails_on and statement.startswith(self.fails_on)):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = self.code
            raise error


class Bench:
    """A store, and the connections that it opened."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self.folder = folder
        self.connections: list[Faulty] = []
        self.store = SqliteLogStore(folder, "ann", lambda: NOW, self._connect, limits=LogLimits(**limits))
        self.end = 0

    def _connect(self, *arguments: Any, **named: Any) -> Faulty:
        self.connections.append(sqlite3.connect(*arguments, factory=Faulty, **named))
        return self.connections[-1]

    def fail(self, statement: str, code: str) -> None:
        self.connections[-1].fails_on, self.connections[-1].code = statement, code

    def append(self, size: int = 10, count: int = 1, log: LogName = LOG) -> None:
        self.store.append([Append(1, log, bytes(size), self.end, count, NOW + self.end)])
        self.end += count

    def reopened(self) -> list[LogState]:
        """What another life finds."""
        self.store.close()
        again = SqliteLogStore(self.folder, "ann", lambda: NOW)
        opened = again.open()
        again.close()
        assert opened.damage == []
        return opened.logs


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.store.open()
    yield bench
    bench.store.close()


def test_without_a_row_there_is_no_file(bench: Bench) -> None:
    assert bench.store.find(FindIds(1, "p", 0)) == ([], None)
    assert bench.store.find(FindTime(1, LOG, 0)) is None and bench.store.find(FindSize(1, LOG, 0)) is None
    assert bench.store.read(LOG, 5, 100) == ([], 5, "")
    assert not bench.store.untidy
    bench.store.close()
    assert list(bench.folder.iterdir()) == []


def test_the_first_row_makes_it_and_leaves_nothing_else(bench: Bench) -> None:
    bench.append()
    assert sorted(path.name for path in bench.folder.iterdir()) == ["log.db", "log.db-wal", "log.mark"]
    assert {path.stat().st_mode & 0o777 for path in bench.folder.iterdir()} == {0o600}, "events are nobody else's"
    bench.store.close()
    assert sorted(path.name for path in bench.folder.iterdir()) == ["log.db", "log.mark"]


def test_what_was_left_of_a_beginning_is_no_hindrance(bench: Bench) -> None:
    (bench.folder / "log.new.db").write_bytes(b"half of it")
    bench.append()
    assert [state.next for state in bench.reopened()] == [1]


def test_every_commit_is_counted_beside_the_log(bench: Bench) -> None:
    for commits in (1, 2, 3):
        bench.append()
        mark = MarkFile(bench.folder / "log.mark").read()
        assert mark is not None and (mark.commits, mark.epoch) == (commits, NOW)


def test_a_new_epoch_of_our_own_begins_with_its_first_row_and_is_kept(bench: Bench) -> None:
    bench.append()
    bench.end = 0
    bench.append(log=LOG._replace(epoch=NOW + 9))
    bench.append(log=LogName("bob", NOW + 99, LogKind.EVENTS, "quotes"))
    bench.store.close()
    store = SqliteLogStore(bench.folder, "ann", lambda: NOW)
    assert store.open().epoch == NOW + 9
    store.close()


@pytest.mark.parametrize("first", [0, 2])
def test_a_row_that_does_not_follow_is_a_fault_of_ours(bench: Bench, first: int) -> None:
    bench.append()
    with pytest.raises(AssertionError):
        bench.store.append([Append(1, LOG, b"", first, 1, NOW)])


def test_what_fails_half_way_leaves_nothing(bench: Bench) -> None:
    bench.append()
    bench.fail("COMMIT", "SQLITE_FULL")
    with pytest.raises(StoreFull, match=r"no room for log\.db: disk I/O error"):
        bench.store.append([Append(1, LOG, b"x", 1, 1, NOW, STATE, ids=True), KeepProducer(2, STATE)])
    bench.fail("", "")
    assert bench.store.find(FindIds(1, "p", 0)) == ([], None)
    bench.append(size=77)
    assert bench.reopened() == [LogState(LOG, 0, 2, 87, NOW, NOW + 1)]


def test_whichever_statement_finds_the_disk_full_nothing_of_the_commit_is_left(bench: Bench) -> None:
    bench.append()
    statements = 0
    while True:
        bench.fail("", "SQLITE_FULL")
        bench.connections[-1].left = statements
        try:
            bench.store.append([Append(1, LOG, b"x", bench.end, 1, NOW, STATE, ids=True), KeepProducer(2, STATE)])
        except StoreFull:
            statements += 1
            assert bench.store.read(LOG, 0, 99) == ([bytes(10)], 1, "")
            assert bench.store.find(FindIds(1, "p", 0)) == ([], None)
            continue
        break
    assert statements == 6, "BEGIN, rows, logs, producers, the description and COMMIT"
    bench.connections[-1].left = -1
    assert bench.reopened() == [LogState(LOG, 0, 2, 11, NOW, NOW)]


def test_a_disk_that_is_really_full_refuses_and_goes_on(bench: Bench) -> None:
    bench.append()
    bench.connections[-1].execute("PRAGMA max_page_count = 20")
    with pytest.raises(StoreFull, match="full"):
        for _ in range(100):
            bench.append(size=5_000)
    held = bench.end
    bench.connections[-1].execute("PRAGMA max_page_count = 2000")
    bench.append(size=5_000)
    assert [state.next for state in bench.reopened()] == [held + 1]


def test_trimming_makes_room_on_a_full_disk(bench: Bench) -> None:
    bench.append(size=5_000)
    bench.connections[-1].execute("PRAGMA max_page_count = 40")
    with pytest.raises(StoreFull):
        for _ in range(100):
            bench.append(size=5_000)
    assert bench.store.trim(LOG, bench.end - 2).first == bench.end - 2
    while bench.store.untidy:
        bench.store.tidy()
    for _ in range(10):
        bench.append(size=5_000)


def test_a_beginning_without_room_is_tried_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "missing")
    bench.store.open()
    with pytest.raises(StoreFull, match=r"cannot begin log\.db"):
        bench.append()
    bench.folder.mkdir()
    bench.append()
    assert [state.next for state in bench.reopened()] == [1]


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
@pytest.mark.parametrize("code", ["SQLITE_IOERR_FSYNC", "SQLITE_IOERR_WRITE", "SQLITE_CORRUPT"])
def test_any_other_failure_is_the_last_thing_it_does(bench: Bench, statement: str, code: str) -> None:
    bench.append()
    bench.fail(statement, code)
    with pytest.raises(StoreFailed, match=rf"writing .*log\.db failed: disk I/O error \({code}\)"):
        bench.append()
    bench.fail("", "")
    for act in (bench.append, bench.store.tidy, lambda: bench.store.trim(LOG, 1)):
        with pytest.raises(StoreFailed, match=code):
            act()
    before = {path.name: path.read_bytes() for path in bench.folder.iterdir()}
    bench.store.close()
    assert {path.name: path.read_bytes() for path in bench.folder.iterdir()} == before, "closing would write"
    assert ("log.check" in before) == (code == "SQLITE_CORRUPT"), "the next start looks at all of it"
    bench.connections[-1].close()


def test_after_a_failed_synchronisation_what_was_acknowledged_is_found(bench: Bench) -> None:
    bench.append()
    bench.fail("COMMIT", "SQLITE_IOERR_FSYNC")
    with pytest.raises(StoreFailed):
        bench.append()
    bench.connections[-1].close()
    assert [state.next for state in bench.reopened()] == [1]


def test_a_failed_write_for_want_of_room_is_a_full_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.append()
    bench.fail("COMMIT", "SQLITE_IOERR_WRITE")
    monkeypatch.setattr(module, "_probe", lambda path: False)
    with pytest.raises(StoreFull):
        bench.append()
    bench.fail("", "")
    bench.append()
    assert [state.next for state in bench.reopened()] == [2]


@pytest.mark.parametrize(("number", "room"), [(ENOSPC, False), (EDQUOT, False), (EIO, True)])
def test_a_probe_tells_a_full_disk_from_a_bad_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, room: bool
) -> None:
    assert module._probe(tmp_path / "log.probe")

    def refuse(path: Path, data: bytes) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert module._probe(tmp_path / "log.probe") == room
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_fails_is_not_passed_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path, checkpoint_bytes=1)
    bench.store.open()
    bench.append()
    assert bench.store.untidy
    bench.fail("PRAGMA wal_checkpoint", "SQLITE_IOERR_FSYNC")
    with pytest.raises(StoreFailed, match="SQLITE_IOERR_FSYNC"):
        bench.store.tidy()
    bench.connections[-1].close()


def test_checkpoints_take_over_what_was_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path, checkpoint_bytes=100_000)
    bench.store.open()
    bench.append()
    before = (bench.folder / "log.db").stat().st_size
    while not bench.store.untidy:
        bench.append(size=20_000)
    bench.store.tidy()
    assert not bench.store.untidy
    assert (bench.folder / "log.db").stat().st_size > before
    bench.store.close()


def test_rows_that_were_trimmed_go_a_few_at_a_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path, sweep_rows=4)
    bench.store.open()
    for _ in range(12):
        bench.append(count=2)
    assert bench.store.trim(LOG, 21) == LogState(LOG, 20, 24, 20, NOW + 20, NOW + 22)
    assert bench.store.read(LOG, 0, 10)[1] == 22
    steps = 0
    while bench.store.untidy:
        bench.store.tidy()
        steps += 1
    assert steps == 3
    (left,) = bench.connections[-1].execute("SELECT count(*) FROM entry").fetchone()
    assert left == 2
    bench.store.close()


def test_what_was_trimmed_and_not_yet_thrown_away_is_so_after_a_restart(bench: Bench) -> None:
    for _ in range(5):
        bench.append()
    bench.store.trim(LOG, 3)
    assert bench.reopened() == [LogState(LOG, 3, 5, 20, NOW + 3, NOW + 4)]
    bench.store = SqliteLogStore(bench.folder, "ann", lambda: NOW, bench._connect)
    bench.store.open()
    while bench.store.untidy:
        bench.store.tidy()
    (left,) = bench.connections[-1].execute("SELECT count(*) FROM entry").fetchone()
    assert left == 2
    bench.store.close()


def test_a_file_of_before_there_were_high_watermarks_gets_them(bench: Bench) -> None:
    for _ in range(5):
        bench.append()
    bench.connections[-1].execute("DROP TABLE watermark")
    assert [state.safe for state in bench.reopened()] == [0]
    store = SqliteLogStore(bench.folder, "ann", lambda: NOW, bench._connect)
    store.open()
    store.mark({LOG: 4, LogName("ann", NOW, LogKind.EVENTS, "never written"): 3})
    store.close()
    assert [state.safe for state in bench.reopened()] == [4]


def test_a_high_watermark_that_does_not_pass_its_check_is_none(bench: Bench) -> None:
    for _ in range(5):
        bench.append()
    bench.store.mark({LOG: 3})
    bench.connections[-1].execute("UPDATE watermark SET safe = 5")
    assert [state.safe for state in bench.reopened()] == [0]


def durables_of(bench: Bench) -> dict[str, bytes]:
    """What another life finds."""
    bench.store.close()
    again = SqliteLogStore(bench.folder, "ann", lambda: NOW)
    opened = again.open()
    again.close()
    assert opened.damage == []
    return opened.durables


def test_of_states_of_one_durable_subscription_in_one_commit_the_last_counts_and_is_written_once(bench: Bench) -> None:
    bench.append()
    named: list[str] = []
    bench.connections[-1].set_trace_callback(named.append)
    states = [(1, "a", b"1"), (2, "b", b""), (3, "a", b""), (4, "c", b"9"), (5, "a", b"2" * 100_000)]
    bench.store.append([KeepDurable(*one) for one in states])
    assert len([text for text in named if text.startswith("INSERT OR REPLACE INTO durable")]) == 2
    assert durables_of(bench) == {"a": b"2" * 100_000, "c": b"9"}
    bench.store.open()
    bench.store.append([KeepDurable(1, "a", b"")])
    assert durables_of(bench) == {"c": b"9"}


def test_a_state_that_fails_half_way_is_as_it_was_before(bench: Bench) -> None:
    bench.store.append([KeepDurable(1, "a", b"1")])
    bench.fail("COMMIT", "SQLITE_FULL")
    with pytest.raises(StoreFull):
        bench.store.append([KeepDurable(2, "a", b"2"), KeepDurable(3, "b", b"3")])
    bench.fail("", "")
    assert durables_of(bench) == {"a": b"1"}


def test_a_file_of_before_there_were_durable_subscriptions_gets_them(bench: Bench) -> None:
    bench.append()
    bench.connections[-1].execute("DROP TABLE durable")
    assert durables_of(bench) == {}
    bench.store.open()
    bench.store.append([KeepDurable(1, "a", b"1")])
    assert durables_of(bench) == {"a": b"1"}


@pytest.mark.parametrize("act", ["tidy", "trim"])
def test_a_log_that_cannot_be_followed_while_it_is_changed_is_the_end(bench: Bench, act: str) -> None:
    for _ in range(3):
        bench.append()
    bench.store.trim(LOG, 1)
    bench.connections[-1].execute("ALTER TABLE entry RENAME TO lost")
    with pytest.raises(StoreFailed, match="no such table"):
        bench.store.tidy() if act == "tidy" else bench.store.trim(LOG, 2)
    bench.connections[-1].close()


def test_a_trim_that_changes_nothing_writes_nothing(bench: Bench) -> None:
    bench.append()
    bench.store.trim(LOG, 0)
    mark = MarkFile(bench.folder / "log.mark").read()
    assert mark is not None and mark.commits == 1


def test_damage_is_no_answer_and_no_end(bench: Bench) -> None:
    bench.append()
    bench.connections[-1].execute("ALTER TABLE entry RENAME TO lost")
    assert bench.store.find(FindTime(1, LOG, 0)) is None
    assert bench.store.find(FindIds(1, "p", 0)) is None
    assert "no such table" in bench.store.read(LOG, 0, 9)[2]
    bench.connections[-1].execute("ALTER TABLE lost RENAME TO entry")
    bench.append()


def cut_at(position: int, *rows: Append) -> CutLog:
    return CutLog(9, LOG, position, NOW + 5, list(rows), [ProducerState("p", 1, 1, b"back", NOW)])


def test_a_log_is_cut_and_goes_on_elsewhere_in_one_commit_and_nothing_is_thrown_away(bench: Bench) -> None:
    for _ in range(3):
        bench.append()
    following = LOG._replace(epoch=NOW + 5)
    bench.store.append([cut_at(1, Append(9, following, b"moved", 0, 2, NOW, STATE, ids=True))])
    assert bench.store.read(LOG, 0, 999)[0] == [bytes(10)]
    assert bench.store.read(following, 0, 999)[0] == [b"moved"]
    assert bench.store.find(FindIds(1, "p", 0)) == ([b"moved"], None)
    aside = bench.connections[-1].execute("SELECT count(*) FROM aside").fetchone()
    assert aside == (2,)
    bench.store.close()
    opened = SqliteLogStore(bench.folder, "ann", lambda: NOW).open()
    assert (opened.epoch, opened.damage) == (NOW + 5, [])
    assert {state.name: (state.next, state.bytes) for state in opened.logs} == {LOG: (1, 10), following: (2, 5)}
    assert [(one.next, one.digest) for one in opened.producers] == [(1, b"back")], "moved rows say nothing of it"


def test_a_log_is_cut_whole_or_not_at_all(bench: Bench) -> None:
    for _ in range(2):
        bench.append()
    bench.fail("DELETE FROM entry", "SQLITE_FULL")
    with pytest.raises(StoreFull):
        bench.store.append([cut_at(0, Append(9, LOG._replace(epoch=NOW + 5), b"moved", 0, 1, NOW))])
    bench.fail("", "")
    assert len(bench.store.read(LOG, 0, 999)[0]) == 2
    bench.append()
    assert [(state.name.epoch, state.next) for state in bench.reopened()] == [(NOW, 3)]


def test_a_log_that_is_cut_at_its_beginning_is_empty_and_says_so_after_a_start(bench: Bench) -> None:
    bench.append()
    bench.store.append([cut_at(0)])
    (state,) = bench.reopened()
    assert (state.first, state.next, state.bytes, state.first_time, state.last_time) == (0, 0, 0, 0, 0)


class SmallDisk:
    """So many bytes, of which the files of a folder, and others, take some."""

    def __init__(self, folder: Path, total: int) -> None:
        self.folder = folder
        self.total = total
        self.others = 0

    def __call__(self, _: Path) -> DiskSpace:
        taken = sum(path.stat().st_size for path in self.folder.iterdir())
        return DiskSpace(self.total, max(0, self.total - self.others - taken))


def filled(folder: Path) -> tuple[Bench, SmallDisk]:
    """A store that has filled its disk."""
    bench, disk = Bench(folder), SmallDisk(folder, 4_000_000)
    bench.store = SqliteLogStore(folder, "ann", lambda: NOW, bench._connect, disk)
    bench.store.open()
    with pytest.raises(StoreFull, match=r"no room for log\.db: [0-9,]+ bytes are free, and 500,000 are kept"):
        while True:
            bench.append(size=20_000)
    return bench, disk


def test_a_log_that_fills_its_disk_leaves_a_margin(tmp_path: Path) -> None:
    bench, disk = filled(tmp_path)
    assert 500_000 <= disk(tmp_path).free < 600_000
    assert bench.end * 20_000 > 2_500_000, "what log.db-wal held was taken over, and its place used"
    with pytest.raises(StoreFull):
        bench.append(size=20_000)
    disk.others = -100_000
    bench.append(size=20_000)
    assert [state.next for state in bench.reopened()] == [bench.end]


def test_what_is_trimmed_on_a_full_disk_makes_room(tmp_path: Path) -> None:
    bench, disk = filled(tmp_path)
    trimmed = bench.end - 20
    for _ in range(3):
        assert bench.store.trim(LOG, trimmed).first == trimmed
        while bench.store.untidy:
            bench.store.tidy()
        with pytest.raises(StoreFull):
            while True:
                bench.append(size=20_000)
                assert disk(tmp_path).free > 400_000, "what is borrowed from the margin is less than it"
        assert bench.end > trimmed + 100
        trimmed = bench.end - 20
    assert [state.next for state in bench.reopened()] == [bench.end]


def test_a_disk_that_others_fill_is_waited_for(tmp_path: Path) -> None:
    bench, disk = filled(tmp_path)
    bench.store.trim(LOG, bench.end - 5)
    while bench.store.untidy:
        bench.store.tidy()
    disk.others = 600_000
    with pytest.raises(StoreFull):
        bench.append(size=20_000)
    disk.others = 0
    bench.append(size=20_000)
