"""The disk's thread in virtual time: one transaction for all that waits, and failures mean the same as outside."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from headgate.broker.core.effects import Append, CutLog, FindTime, LogEffect, ReadRows, TrimLog, WriteOn
from headgate.broker.core.inputs import Found, LogInput, NotStored, RowsRead, Stored, Trimmed
from headgate.broker.simulator.engine import Disk, ListStore, LogHost, World
from headgate.broker.simulator.limits import DISK_ROWS_MAX, DISK_SECONDS_MAX
from headgate.protocol.data import LogKind, LogName

NOW = 1_700_000_000
LOG = LogName("ann", NOW, LogKind.EVENTS, "quotes")


def row(ticket: int) -> Append:
    return Append(ticket, LOG, b"row", ticket - 1, 1, 0)


class Bench:
    """A disk, its thread, and whoever hears of it."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.disk = Disk()
        self.store = ListStore(self.disk, "ann", lambda: NOW)
        self.store.open()
        self.heard: list[LogInput] = []
        self.still = False
        self.then: Callable[[LogInput], None] = lambda happened: None
        self.host = LogHost(self.store, self._hear, self.world.after, Random(seed), lambda: self.still)

    def _hear(self, happened: LogInput) -> None:
        self.heard.append(happened)
        self.then(happened)

    def ask(self, *effects: LogEffect) -> None:
        for effect in effects:
            self.host.ask(effect)

    def run(self) -> list[LogInput]:
        self.world.run_for(1.0)
        return self.heard

    @property
    def rows(self) -> int:
        return len(self.store.read(LOG, 0, 999)[0])


def test_what_waits_is_one_transaction() -> None:
    bench = Bench()
    bench.ask(*(row(ticket) for ticket in range(1, DISK_ROWS_MAX + 5)))
    assert bench.heard == [] and bench.rows == 0, "a disk takes its time"
    assert bench.run() == [Stored(1), Stored(DISK_ROWS_MAX + 1), Stored(DISK_ROWS_MAX + 4)]


def test_questions_are_answered() -> None:
    bench = Bench()
    bench.ask(row(1))
    bench.run()
    bench.ask(ReadRows(7, LOG, 0, 99), FindTime(8, LOG, 0))
    bench.run()
    assert sorted(bench.heard[1:], key=lambda one: type(one).__name__) == [Found(8, 0), RowsRead(7, [b"row"], 1, "")]
    bench.ask(TrimLog(LOG, 1))
    assert bench.run()[-1] == Trimmed(bench.store.trim(LOG, 1))


def test_a_trim_keeps_its_place() -> None:
    bench = Bench()
    bench.ask(row(1), row(2), TrimLog(LOG, 2), row(3))
    assert [type(happened) for happened in bench.run()] == [Stored, Stored, Trimmed, Stored]
    assert bench.store.read(LOG, 0, 99)[1] == 3 and bench.rows == 1


def test_when_the_disk_is_full_all_that_is_pending_has_failed() -> None:
    bench = Bench()
    bench.disk.full = True
    bench.ask(row(1), row(2), TrimLog(LOG, 1))

    def again(happened: LogInput) -> None:
        bench.disk.full = False
        if isinstance(happened, NotStored):
            bench.ask(row(3), WriteOn(), Append(4, LOG, b"row", 0, 1, 0))

    bench.then = again
    heard = bench.run()
    assert heard[0] == NotStored("the simulated disk is full") and heard[-1] == Stored(4)
    assert bench.rows == 1


def test_a_trim_on_a_full_disk_changes_nothing() -> None:
    bench = Bench()
    bench.disk.full = True
    bench.ask(TrimLog(LOG, 1))
    assert bench.run() == []


def test_a_disk_that_fails_answers_no_more() -> None:
    bench = Bench()
    bench.disk.fails = True
    bench.ask(row(1), ReadRows(1, LOG, 0, 9))
    bench.run()
    bench.disk.fails = False
    bench.ask(row(2), ReadRows(2, LOG, 0, 9), TrimLog(LOG, 1))
    bench.run()
    assert [one for one in bench.heard if isinstance(one, NotStored)] == [
        NotStored("the simulated disk has failed", fatal=True)
    ]
    assert not any(isinstance(one, RowsRead) and one.ticket == 2 for one in bench.heard) and bench.rows == 0


def test_a_trim_on_a_failing_disk_is_the_end_as_well() -> None:
    bench = Bench()
    bench.disk.fails = True
    bench.ask(TrimLog(LOG, 1))
    assert bench.run() == [NotStored("the simulated disk has failed", fatal=True)]


def test_a_crash_leaves_what_was_under_way_or_does_not() -> None:
    left = set()
    for seed in range(20):
        bench = Bench(seed)
        bench.ask(row(1))
        bench.run()
        bench.ask(row(2), row(3))
        bench.host.crash()
        bench.run()
        assert bench.heard == [Stored(1)]
        left.add(bench.rows)
    assert left == {1, 2}, "the second may be there; the third was never begun"


@pytest.mark.parametrize("fault", ["full", "fails"])
def test_a_crash_on_a_bad_disk_leaves_nothing(fault: str) -> None:
    for seed in range(6):
        bench = Bench(seed)
        setattr(bench.disk, fault, True)
        bench.ask(row(1))
        bench.host.crash()
        assert bench.rows == 0


def test_while_the_process_stands_still_so_does_its_disk() -> None:
    bench = Bench()
    bench.still = True
    bench.ask(row(1))
    assert bench.run() == [] and bench.rows == 0
    bench.still = False
    assert bench.run() == [Stored(1)]


def test_a_slow_disk_is_slow() -> None:
    bench = Bench()
    bench.host.slowness = 1000.0
    bench.ask(row(1))
    bench.world.run_for(DISK_SECONDS_MAX)
    assert bench.heard == []
    bench.world.run_for(1000 * DISK_SECONDS_MAX)
    assert bench.heard == [Stored(1)]


def test_the_end_of_a_log_is_a_write_like_others() -> None:
    bench = Bench()
    bench.ask(row(1), row(2), CutLog(3, LOG, 1, 5, [], []))
    assert bench.run()[-1] == Stored(3)
    assert bench.rows == 1
