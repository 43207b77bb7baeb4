"""Rows that were put aside: kept for a while, thrown away by age and by size, and told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from random import Random

import pytest

from headgate.broker.core.config import NodeConfig
from headgate.broker.core.effects import Append, CutLog, WriteOn
from headgate.broker.core.inputs import AsideRemoved, LogInput
from headgate.broker.core.node import Node
from headgate.broker.core.store import StoreFull
from headgate.broker.daemon.log import LogLimits, LogWriter, SqliteLogStore
from headgate.protocol.data import LogKind, LogName

NOW = 1_700_000_000
DAY = 86_400.0
LIMITS = LogLimits(aside_rows=3, aside_bytes=1000, aside_seconds=30 * DAY, aside_seconds_min=7 * DAY)


class Bench:
    """A store with a clock, whose newest rows are put aside now and then."""

    def __init__(self, folder: Path) -> None:
        self.now = float(NOW)
        self.folder = folder
        self.opened = 0
        self.epoch = NOW
        self.begin()

    def begin(self) -> None:
        self.store = SqliteLogStore(self.folder, "ann", lambda: self.now, limits=LIMITS)
        self.store.open()

    def put_aside(self, rows: int, size: int = 100) -> None:
        """Rows that are written and cut off again, in an epoch of their own."""
        log = LogName("ann", self.epoch, LogKind.EVENTS, "quotes")
        self.store.append([Append(1 + place, log, bytes(size), place, 1, NOW) for place in range(rows)])
        self.epoch += 1
        self.store.append([CutLog(rows + 1, log, 0, self.epoch, [], [])])

    def tidied(self) -> list[AsideRemoved]:
        """What is told until there is nothing left to do."""
        told = []
        for _ in range(100):
            if not self.store.untidy:
                return told
            removed = self.store.tidy()
            told += [removed] if removed is not None else []
        raise AssertionError("it never ends")

    def ask(self, statement: str) -> int:
        self.store.close()
        with sqlite3.connect(self.folder / "log.db") as connection:
            found = connection.execute(statement).fetchone()
        connection.close()
        self.begin()
        return int(found[0]) if found else 0

    @property
    def kept(self) -> int:
        return self.ask("SELECT count(*) FROM aside")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_they_go_when_they_are_old_in_the_order_of_their_age(bench: Bench) -> None:
    bench.put_aside(5)
    bench.now += 20 * DAY
    bench.put_aside(2, size=10)
    assert bench.tidied() == [] and bench.kept == 7
    bench.now += 10 * DAY - 1
    assert bench.tidied() == [] and bench.kept == 7
    bench.now += 2
    assert bench.tidied() == [AsideRemoved(5, 500)] and bench.kept == 2
    bench.now += 20 * DAY
    assert bench.tidied() == [AsideRemoved(2, 20)] and bench.kept == 0
    bench.now += 99 * DAY
    assert not bench.store.untidy or bench.tidied() == []


def test_those_that_are_too_many_go_but_not_in_their_first_week(bench: Bench) -> None:
    bench.put_aside(25)
    bench.now += 7 * DAY - 1
    assert bench.tidied() == [] and bench.kept == 25
    bench.now += 2
    assert bench.tidied() == [AsideRemoved(15, 1500)] and bench.kept == 10
    bench.put_aside(4)
    assert bench.tidied() == [AsideRemoved(4, 400)] and bench.kept == 10


def test_nothing_is_looked_at_before_something_may_be_due(bench: Bench) -> None:
    bench.put_aside(2)
    assert bench.tidied() == []
    bench.now += 29 * DAY
    assert not bench.store.untidy
    bench.now += 1 * DAY + 1
    assert bench.store.untidy


def test_rows_of_before_their_keys_were_times_count_from_the_first_look(bench: Bench) -> None:
    bench.put_aside(7)
    bench.ask("UPDATE aside SET found = (SELECT count(*) FROM aside AS other WHERE other.found <= aside.found)")
    bench.put_aside(1)
    bench.now += 1 * DAY
    assert bench.tidied() == [] and bench.kept == 8
    bench.now += 29 * DAY + 1
    assert bench.tidied() == [AsideRemoved(1, 100)] and bench.kept == 7
    bench.now += 1 * DAY + 1
    assert bench.tidied() == [AsideRemoved(7, 700)] and bench.kept == 0


def test_a_clock_that_was_put_back_keeps_them_longer_and_in_their_order(bench: Bench) -> None:
    bench.put_aside(2)
    bench.now -= 5 * DAY
    bench.put_aside(2, size=1)
    bench.now += 30 * DAY + 1
    assert bench.tidied() == [] and bench.kept == 4
    bench.now += 5 * DAY
    assert bench.tidied() == [AsideRemoved(4, 202)]


def test_a_full_disk_leaves_them_and_counts_them_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put_aside(2)
    bench.now += 31 * DAY
    with monkeypatch.context() as patched:

        def refuse(*_: object) -> None:
            raise StoreFull("no room")

        patched.setattr(bench.store, "_commit", refuse)
        with pytest.raises(StoreFull):
            bench.tidied()
    assert bench.tidied() == [AsideRemoved(2, 200)] and bench.kept == 0


def test_a_disk_that_nobody_asks_anything_looks_all_the_same_and_the_node_tells(bench: Bench) -> None:
    bench.put_aside(3)
    bench.tidied()
    heard: list[LogInput] = []
    calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
    writer = LogWriter(bench.store, heard.append, calls.put, LogLimits(look_seconds=0.001))
    writer.ask(WriteOn())
    bench.now += 31 * DAY
    calls.get(timeout=10.0)()
    assert writer.close(10.0)
    assert heard == [AsideRemoved(3, 300)]
    (note,) = Node(NodeConfig(name="ann", incarnation=1), Random(1), 0.0).handle(heard[0], 1.0)
    assert (note.event, note.facts) == ("rows put aside removed", {"rows": 3, "bytes": 300})
