"""The thread that has the disk: one commit for all that waits, answers in order, and what a failure means."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import pytest

from headgate.broker.core.effects import (
    Append,
    CutLog,
    FindTime,
    KeepDurable,
    KeepProducer,
    KeepWatermarks,
    LogWrite,
    ReadRows,
    TrimLog,
    WriteOn,
)
from headgate.broker.core.inputs import Found, LogInput, NotStored, RowsRead, Stored, Trimmed
from headgate.broker.core.log_state import LogState, ProducerState
from headgate.broker.core.store import StoreFailed, StoreFull
from headgate.broker.daemon.log import LogLimits, LogWriter
from headgate.protocol.data import LogKind, LogName

SECONDS = 10.0
LOG = LogName("ann", 7, LogKind.EVENTS, "quotes")


def row(ticket: int, size: int = 1) -> Append:
    return Append(ticket, LOG, bytes(size), ticket, 1, 0)


class SlowStore:
    """Says what was asked of it, and does each thing when it may."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Any] = SimpleQueue()
        self.may: SimpleQueue[Exception | None] = SimpleQueue()
        self.untidy = False
        self.closed = threading.Event()

    def _called(self, *call: Any) -> None:
        self.calls.put(call)
        error = self.may.get(timeout=SECONDS)
        if error is not None:
            raise error

    def append(self, entries: Sequence[LogWrite]) -> None:
        self._called("append", [entry.ticket for entry in entries])

    def read(self, log: LogName, position: int, bytes_max: int) -> tuple[list[bytes], int, str]:
        self._called("read", position)
        return [b"row"], position + 1, ""

    def find(self, question: Any) -> Any:
        self._called("find", question.ticket)
        return 99

    def trim(self, log: LogName, below: int) -> LogState:
        self._called("trim", below)
        return LogState(log, below, below, 0, 0, 0)

    def mark(self, ends: Mapping[LogName, int]) -> None:
        self._called("mark", dict(ends))

    def tidy(self) -> None:
        self.untidy = False
        self._called("tidy")

    def open(self) -> Any:
        """Nobody asks."""

    def close(self) -> None:
        self.closed.set()


class Bench:
    """A writer on a slow store. The loop is whoever calls `turn`."""

    def __init__(self, **limits: int) -> None:
        self.store = SlowStore()
        self.posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.heard: list[LogInput] = []
        self.writer = LogWriter(self.store, self.heard.append, self.posted.put, LogLimits(**limits))

    def called(self, error: Exception | None = None) -> tuple[Any, ...]:
        """The next thing that the store is asked, which then has this end."""
        call: tuple[Any, ...] = self.store.calls.get(timeout=SECONDS)
        self.store.may.put(error)
        return call

    def turn(self) -> LogInput:
        """The next thing that the loop hears."""
        self.posted.get(timeout=SECONDS)()
        return self.heard[-1]

    def end(self) -> None:
        assert self.writer.close(SECONDS) or self.writer.failed


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.end()


def test_there_is_no_thread_until_something_is_asked() -> None:
    before = threading.active_count()
    bench = Bench()
    assert threading.active_count() == before
    assert bench.writer.close(0) and bench.store.closed.is_set()


def test_what_comes_during_a_commit_is_the_next_one(bench: Bench) -> None:
    bench.writer.ask(row(1))
    call = bench.store.calls.get(timeout=SECONDS)
    for ticket in (2, 3, 4):
        bench.writer.ask(row(ticket))
    bench.writer.ask(KeepProducer(5, ProducerState("p", 1, 0, b"", 0)))
    bench.writer.ask(CutLog(6, LOG, 1, 1, [], []))
    bench.store.may.put(None)
    assert call == ("append", [1]) and bench.turn() == Stored(1)
    assert bench.called() == ("append", [2, 3, 4, 5, 6]) and bench.turn() == Stored(6)


def test_a_commit_is_bounded_in_rows_and_bytes() -> None:
    bench = Bench(commit_rows=3, commit_bytes=10)
    bench.writer.ask(ReadRows(1, LOG, 0, 1))
    call = bench.store.calls.get(timeout=SECONDS)
    for ticket in range(1, 4):
        bench.writer.ask(row(ticket))
    bench.writer.ask(row(4, size=20))
    for ticket in (5, 6):
        bench.writer.ask(KeepDurable(ticket, "a", bytes(6)))
    bench.writer.ask(row(7))
    bench.store.may.put(None)
    assert call == ("read", 0)
    assert [bench.called()[1] for _ in range(4)] == [[1, 2, 3], [4], [5, 6], [7]]
    bench.end()


def test_lookups_take_turns_with_commits() -> None:
    bench = Bench(lookups_per_turn=2, commit_rows=1)
    bench.writer.ask(FindTime(1, LOG, 0))
    call = bench.store.calls.get(timeout=SECONDS)
    for ticket in (1, 2, 3):
        bench.writer.ask(row(ticket))
    for position in range(5):
        bench.writer.ask(ReadRows(10 + position, LOG, position, 1))
    bench.store.may.put(None)
    order = [bench.called()[0] for _ in range(8)]
    assert call == ("find", 1)
    assert order == ["append", "read", "read", "append", "read", "read", "append", "read"]
    heard = [bench.turn() for _ in range(9)]
    assert heard[0] == Found(1, 99) and heard[1] == Stored(1)
    assert heard[2] == RowsRead(10, [b"row"], 1, "")
    bench.end()


def test_a_trim_and_high_watermarks_keep_their_place_among_appends(bench: Bench) -> None:
    bench.writer.ask(row(1))
    call = bench.store.calls.get(timeout=SECONDS)
    for effect in (row(2), TrimLog(LOG, 3), KeepWatermarks({LOG: 2}), row(3)):
        bench.writer.ask(effect)
    bench.store.may.put(None)
    assert [call, *(bench.called() for _ in range(4))] == [
        ("append", [1]),
        ("append", [2]),
        ("trim", 3),
        ("mark", {LOG: 2}),
        ("append", [3]),
    ]
    assert [bench.turn() for _ in range(4)][2] == Trimmed(LogState(LOG, 3, 3, 0, 0, 0))


def test_when_the_disk_is_full_all_that_is_pending_has_failed(bench: Bench) -> None:
    bench.writer.ask(row(1))
    call = bench.store.calls.get(timeout=SECONDS)
    for effect in (row(2), TrimLog(LOG, 1), row(3)):
        bench.writer.ask(effect)
    bench.store.may.put(StoreFull("no room"))
    assert call == ("append", [1])
    assert bench.called() == ("trim", 1), "that makes room"
    bench.writer.ask(row(4))  # the Node has not heard of it yet: this builds on what failed
    assert bench.turn() == NotStored("no room")
    bench.writer.ask(row(5))  # nor now: its host held an input back, which it is given before that
    bench.writer.ask(WriteOn())
    bench.writer.ask(row(6))
    assert bench.called() == ("append", [6])
    assert [bench.turn(), bench.turn()][1] == Stored(6)


def test_a_trim_that_finds_no_room_is_no_failure(bench: Bench) -> None:
    bench.writer.ask(TrimLog(LOG, 1))
    assert bench.called(StoreFull("no room")) == ("trim", 1)
    bench.writer.ask(row(1))
    assert bench.called() == ("append", [1]) and bench.turn() == Stored(1)


@pytest.mark.parametrize("error", [StoreFailed("writing log.db failed"), ValueError("a fault of ours")])
def test_after_any_other_failure_nothing_is_written_or_answered(error: Exception) -> None:
    bench = Bench()
    bench.writer.ask(row(1))
    assert bench.called(error) == ("append", [1])
    bench.writer.ask(row(2))
    assert bench.turn() == NotStored(str(error), fatal=True)
    for effect in (row(3), TrimLog(LOG, 1), ReadRows(1, LOG, 0, 1)):
        bench.writer.ask(effect)
    assert not bench.writer.close(SECONDS) and bench.writer.failed
    assert bench.store.calls.empty() and not bench.store.closed.is_set()


def test_what_can_wait_waits_for_a_quiet_moment(bench: Bench) -> None:
    bench.writer.ask(row(1))
    call = bench.store.calls.get(timeout=SECONDS)
    bench.store.untidy = True
    bench.writer.ask(row(2))
    bench.store.may.put(None)
    assert [call[0], bench.called()[0], bench.called()[0]] == ["append", "append", "tidy"]


def test_a_busy_disk_tidies_now_and_then() -> None:
    bench = Bench(commit_rows=1, commits_untidied=2)
    bench.writer.ask(row(1))
    call = bench.store.calls.get(timeout=SECONDS)
    bench.store.untidy = True
    for ticket in (2, 3, 4):
        bench.writer.ask(row(ticket))
    bench.store.may.put(None)
    assert [call[0], *(bench.called()[0] for _ in range(4))] == ["append", "append", "tidy", "append", "append"]
    bench.end()


def test_without_room_to_tidy_it_waits_for_the_next_write(bench: Bench) -> None:
    bench.writer.ask(row(1))
    call = bench.store.calls.get(timeout=SECONDS)
    bench.store.untidy = True
    bench.store.may.put(None)
    assert [call[0], bench.called(StoreFull("no room"))[0]] == ["append", "tidy"]
    bench.store.untidy = True
    bench.writer.ask(ReadRows(1, LOG, 0, 1))
    assert bench.called() == ("read", 0)
    bench.writer.ask(row(2))
    assert [bench.called()[0], bench.called()[0]] == ["append", "tidy"]


def test_a_close_writes_what_was_asked_for_first() -> None:
    bench = Bench()
    bench.writer.ask(row(1))
    call = bench.store.calls.get(timeout=SECONDS)
    bench.writer.ask(row(2))
    assert not bench.writer.close(0), "the disk is slow"
    bench.store.may.put(None)
    assert [call[1], bench.called()[1]] == [[1], [2]]
    assert bench.writer.close(SECONDS) and bench.store.closed.is_set()
    assert [bench.turn(), bench.turn()] == [Stored(1), Stored(2)]
