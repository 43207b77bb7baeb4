"""Disks of a simulated cluster: each row is looked at once, and what a disk loses it has no more."""

from __future__ import annotations

from headgate.broker.simulator.checkers import names_of
from headgate.protocol.data import decode_row
from tests.support.log_stage import LogStage


def test_every_event_has_its_holders_and_every_row_is_told_once() -> None:
    stage, told = LogStage(), []
    stage.disks.found.append(lambda server, log, entry, row: told.append((server.name, entry.first)))
    stage.write(0, 0, "a", "b")
    stage.disks.look()
    stage.write(1, 0, "a", "b")
    stage.write(0, 2, "c")
    stage.disks.look()
    stage.disks.look()
    assert told == [("broker-1", 0), ("broker-1", 2), ("broker-2", 0)]
    assert list(stage.disks.holders["a"]) == [("broker-1", stage.name()), ("broker-2", stage.name())]
    assert list(stage.disks.holders["c"]) == [("broker-1", stage.name())]
    assert stage.disks.rows == 3


def test_a_disk_that_loses_something_is_looked_at_anew() -> None:
    stage = LogStage()
    stage.write(0, 0, "a")
    backup = stage.server(0).disk.copy()
    stage.write(0, 1, "b")
    stage.disks.look()
    stage.server(0).disk.restore(backup)
    stage.disks.look()
    assert (len(stage.disks.holders["a"]), len(stage.disks.holders["b"])) == (1, 0)
    stage.server(0).disk.lose_all()
    stage.disks.look()
    assert list(stage.disks.holders["a"]) == []
    assert list(stage.disks.had["b"]) == ["broker-1"], "what it once had is remembered"


def test_events_are_known_by_their_bodies() -> None:
    stage = LogStage()
    assert names_of(decode_row(stage.write(0, 0, "p:0", "p:1").row)) == ["p:0", "p:1"]
