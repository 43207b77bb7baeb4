"""The simulator's disk: what goes wrong with it, and how its store tells. The rest is in tests/conformance."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.core.effects import Append, KeepDurable
from headgate.broker.core.inputs import Opened
from headgate.broker.core.store import StoreFailed, StoreFull
from headgate.broker.simulator.engine import Disk, ListStore
from headgate.protocol.data import LogKind, LogName

NOW = 1_700_000_000
OURS = LogName("ann", NOW, LogKind.EVENTS, "quotes")
COPY = LogName("bob", NOW, LogKind.EVENTS, "quotes")


def store_on(disk: Disk, seconds: float = NOW) -> ListStore:
    return ListStore(disk, "ann", lambda: seconds)


def fill(disk: Disk, log: LogName = OURS, rows: int = 4) -> ListStore:
    store = store_on(disk)
    store.open()
    for number in range(rows):
        store.append([Append(number + 1, log, b"row", number, 1, number)])
    return store


def ends(opened: Opened) -> dict[LogName, int]:
    return {state.name: state.next for state in opened.logs}


def test_a_disk_outlives_its_store() -> None:
    disk = Disk()
    fill(disk)
    opened = store_on(disk, NOW + 50).open()
    assert (opened.epoch, opened.damage, ends(opened)) == (NOW, [], {OURS: 4})


def test_a_full_disk_refuses_and_a_failing_one_fails() -> None:
    disk = Disk()
    store = fill(disk)
    disk.full = True
    for act in (lambda: store.append([Append(9, OURS, b"row", 4, 1, 9)]), lambda: store.trim(OURS, 2)):
        with pytest.raises(StoreFull):
            act()
    disk.fails = True
    with pytest.raises(StoreFailed):
        store.append([Append(9, OURS, b"row", 4, 1, 9)])
    disk.full = disk.fails = False
    assert ends(store_on(disk).open()) == {OURS: 4}


def test_what_rots_is_told_when_read_and_left_out_when_opened() -> None:
    disk = Disk()
    store = fill(disk)
    assert disk.rot(Random(1)) == OURS
    bad = next(place for place, entry in enumerate(disk.content.logs[OURS].entries) if entry.rotten)
    assert store.read(OURS, 0, 999)[:2] == ([b"row"] * bad, bad) if bad else store.read(OURS, 0, 999)[2]
    assert store.read(OURS, bad, 999)[1:] == (bad + 1, f"positions {bad} to {bad} of {OURS} are damaged")
    opened = store_on(disk).open()
    assert ends(opened) == {OURS: bad} and opened.epoch == NOW + 1 and len(opened.damage) == 1
    assert store_on(disk).open() == Opened(NOW + 1, opened.logs, [], [])


def test_a_copy_that_rots_takes_no_epoch() -> None:
    disk = Disk()
    fill(disk, COPY)
    disk.rot(Random(1))
    opened = store_on(disk).open()
    assert opened.epoch == NOW and opened.damage


def test_nothing_rots_on_an_empty_disk() -> None:
    assert Disk().rot(Random(1)) is None


def test_a_state_of_a_durable_subscription_that_rots_is_told_once_and_gone() -> None:
    disk = Disk()
    store = fill(disk)
    store.append([KeepDurable(9, "a", b"1"), KeepDurable(10, "b", b"2"), KeepDurable(11, "a", b"3")])
    assert store_on(disk).open().durables == {"a": b"3", "b": b"2"}
    name = disk.rot_durable(Random(1))
    opened = store_on(disk).open()
    assert name in ("a", "b") and name not in opened.durables and len(opened.durables) == 1
    assert opened.damage == [f"the state of durable subscription {name!r} is damaged"] and opened.epoch == NOW
    assert store_on(disk).open().damage == []
    assert Disk().rot_durable(Random(1)) is None


def test_lost_commits_are_noticed_and_an_old_folder_is_not() -> None:
    disk = Disk()
    fill(disk, rows=2)
    backup = disk.copy()
    store = store_on(disk)
    store.append([Append(3, OURS, b"row", 2, 1, 2)])
    disk.lose_newest(backup)
    opened = store_on(disk).open()
    assert opened.epoch == NOW + 1 and opened.damage == ["1 commits are missing"] and ends(opened) == {OURS: 2}
    disk.restore(backup)
    assert store_on(disk).open() == Opened(NOW, opened.logs, [], [])
    disk.lose_all()
    assert store_on(disk, NOW + 7).open() == Opened(NOW + 7)
