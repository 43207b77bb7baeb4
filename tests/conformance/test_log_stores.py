"""Both stores, the daemon's and the simulator's, mean the same by their seven calls: what a list would."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headgate.broker.core.effects import Append, CutLog, FindIds, FindSize, FindTime, KeepDurable, KeepProducer
from headgate.broker.core.inputs import Opened
from headgate.broker.core.log_state import ProducerState
from headgate.broker.core.store import LogStore
from headgate.broker.daemon.log import LogLimits, SqliteLogStore
from headgate.broker.simulator.engine import Disk, ListStore
from headgate.protocol.data import LogKind, LogName
from tests.support.store_twin import StoreTwin

NOW = 1_700_000_000
LOGS = [
    LogName("ann", NOW, LogKind.EVENTS, "quotes"),
    LogName("ann", NOW, LogKind.DELIVERIES, "quotes"),
    LogName("ann", NOW, LogKind.EVENTS, "Γεια"),
    LogName("bob", NOW - 5, LogKind.EVENTS, "quotes"),
]
NEXT = LogName("ann", NOW, LogKind.EVENTS, "next")
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Memory, where there is such a folder: what a crash of the machine leaves is not asked here."""
PRODUCERS = ["p/1", "p/2"]
DURABLES = ["billing", "λογαριασμός", "billing "]
SMALL = LogLimits(ids_bytes=40)
"""So that there are answers that do not hold everything."""
which_log = st.sampled_from(LOGS)
positions = st.integers(0, 60)


class OnDisk:
    """The daemon's store, in a directory of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=FAST))
        self.lives = 0
        self.store = self._begin()

    def _begin(self) -> SqliteLogStore:
        self.lives += 1
        (self.folder / str(self.lives)).mkdir()
        return SqliteLogStore(self.folder / str(self.lives), "ann", lambda: NOW, limits=SMALL)

    def crash(self) -> LogStore:
        """What a killed process leaves behind is what its files hold at that moment."""
        before, old = self.folder / str(self.lives), self.store
        self.store = self._begin()
        for file in before.iterdir():
            shutil.copyfile(file, self.folder / str(self.lives) / file.name)
        old.close()
        return self.store

    def restart(self) -> LogStore:
        self.store.close()
        self.store = SqliteLogStore(self.store.path.parent, "ann", lambda: NOW, limits=SMALL)
        return self.store

    def tidy(self) -> None:
        if self.store.untidy:
            self.store.tidy()

    def end(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


class InLists:
    """The simulator's."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.store = ListStore(self.disk, "ann", lambda: NOW, ids_bytes=40)

    def crash(self) -> LogStore:
        self.store = ListStore(self.disk, "ann", lambda: NOW, ids_bytes=40)
        return self.store

    restart = crash

    def tidy(self) -> None:
        """There is nothing to tidy."""

    def end(self) -> None:
        """There is nothing to end."""


class AgainstLists(RuleBasedStateMachine):
    """Whatever is asked of a store, it answers as the twin."""

    kind: Callable[[], Any]

    @initialize()
    def begin(self) -> None:
        self.host = self.kind()
        self.store: LogStore = self.host.store
        self.twin = StoreTwin()
        self.ticket = 0
        self.time = 0
        assert self.store.open() == Opened(NOW)

    @rule(given=st.lists(st.tuples(which_log, st.integers(1, 5), st.integers(0, 40), st.integers(0, 2)), max_size=5))
    def append(self, given: list[tuple[LogName, int, int, int]]) -> None:
        entries: list[Append | KeepProducer] = []
        for log, count, size, producer in given:
            before = [entry for entry in entries if isinstance(entry, Append) and entry.log == log]
            first = before[-1].first + before[-1].count if before else self.twin.ends.get(log, 7)
            self.ticket += 1
            self.time += size % 3
            row = f"{self.ticket:06}".encode() + b"." * size
            state = self._produced(entries, producer, count)
            ids = state is not None and size % 2 == 0
            entries.append(Append(self.ticket, log, row, first, count, self.time, state, ids))
        if entries:
            self.store.append(entries)
            self.twin.append(entries)

    def _produced(self, entries: list[Append | KeepProducer], producer: int, count: int) -> ProducerState | None:
        if not producer:
            return None
        name = PRODUCERS[producer - 1]
        earlier = [one.producer for one in entries if one.producer is not None and one.producer.name == name]
        known = earlier[-1] if earlier else self.twin.producers.get(name)
        return ProducerState(name, 1, (known.next if known else 0) + count, bytes([count]), self.time)

    @rule(epoch=st.integers(2, 9))
    def fence(self, epoch: int) -> None:
        self.ticket += 1
        known = self.twin.producers.get("p/1")
        state = ProducerState("p/1", epoch, known.next if known else 0, b"", self.time)
        self.store.append([KeepProducer(self.ticket, state)])
        self.twin.append([KeepProducer(self.ticket, state)])

    @rule(given=st.lists(st.tuples(st.sampled_from(DURABLES), st.binary(max_size=3)), min_size=1, max_size=4))
    def keep(self, given: list[tuple[str, bytes]]) -> None:
        self.ticket += 1
        entries = [KeepDurable(self.ticket + number, *one) for number, one in enumerate(given)]
        self.store.append(entries)
        self.twin.append(entries)

    @rule(place=st.integers(0, 9), gone=st.integers(0, 5), moved=st.lists(st.integers(1, 5), max_size=3))
    def cut(self, place: int, gone: int, moved: list[int]) -> None:
        """The log of our own that has most ends before one of its rows; some go on in the other epoch.

        Or it ends before its first row, which is where that was asked for before it was trimmed.
        """
        if LOGS[0] not in self.twin.rows:
            return
        rows, at = self.twin.rows[LOGS[0]], self.twin.state(LOGS[0]).first
        if place < len(rows):
            at = rows[place].first
        if not place or not rows:
            at = max(0, at - gone)
        self.ticket += 1
        first, appends = self.twin.ends.get(NEXT, 0), []
        for count in moved:
            self.time += 1
            state = ProducerState("p/2", 1, 1000 + first + count, b"", self.time)
            appends.append(Append(self.ticket, NEXT, b"moved", first, count, self.time, state, count % 2 == 0))
            first += count
        known = self.twin.producers.get("p/1")
        states = [ProducerState("p/1", 1, known.next if known else 0, b"cut", self.time)]
        cut = CutLog(self.ticket, LOGS[0], at, NOW, appends, states)
        self.store.append([cut])
        self.twin.append([cut])

    @rule(log=which_log, below=positions)
    def trim(self, log: LogName, below: int) -> None:
        assert self.store.trim(log, below) == self.twin.trim(log, below)

    @rule(marks=st.dictionaries(which_log, positions))
    def mark(self, marks: dict[LogName, int]) -> None:
        known = {log: end for log, end in marks.items() if log in self.twin.rows}
        self.store.mark(known)
        self.twin.safe |= known

    @rule(log=which_log, position=positions, size=st.integers(0, 100))
    def read(self, log: LogName, position: int, size: int) -> None:
        assert self.store.read(log, position, size) == (*self.twin.read(log, position, size), "")

    @rule(log=which_log, time=st.integers(0, 40), size=st.integers(0, 200))
    def find(self, log: LogName, time: int, size: int) -> None:
        for question in (FindTime(1, log, time), FindSize(1, log, size)):
            assert self.store.find(question) == self.twin.find(question)

    @rule(producer=st.sampled_from(PRODUCERS), after=positions)
    def find_ids(self, producer: str, after: int) -> None:
        found: list[bytes] = []
        upto: int | None = after
        while upto is not None:
            rows, upto = self.store.find(FindIds(1, producer, upto))
            found += rows
        assert found == self.twin.ids(FindIds(1, producer, after))

    @rule()
    def tidy(self) -> None:
        self.host.tidy()

    @rule(crashes=st.booleans())
    def begin_again(self, crashes: bool) -> None:
        self.store = self.host.crash() if crashes else self.host.restart()
        opened = self.store.open()
        assert (opened.epoch, opened.damage) == (NOW, [])
        assert {one.name: one for one in opened.logs} == {log: self.twin.state(log) for log in self.twin.rows}
        assert {one.name: one for one in opened.producers} == self.twin.producers
        assert opened.durables == {name: state for name, state in self.twin.durables.items() if state}

    @invariant()
    def everything_is_read_as_it_was_written(self) -> None:
        for log, rows in getattr(self, "twin", StoreTwin()).rows.items():
            assert self.store.read(log, 0, 10**6)[0] == [row.row for row in rows]

    def teardown(self) -> None:
        if hasattr(self, "host"):
            self.host.end()


class OnDiskAgainstLists(AgainstLists):
    kind = OnDisk


class InListsAgainstLists(AgainstLists):
    kind = InLists


TestOnDisk = OnDiskAgainstLists.TestCase
TestOnDisk.settings = settings(max_examples=40, stateful_step_count=25)
TestInLists = InListsAgainstLists.TestCase
TestInLists.settings = settings(max_examples=60, stateful_step_count=25)
