"""Faults: their kinds, rates drawn from the seed, and a nemesis that can be stopped."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from headgate.broker.simulator.engine import World
from headgate.broker.simulator.faults import FAULTS, FaultOptions, Nemesis, parse_faults


class FakeConnection:
    """Counts what is done to it."""

    def __init__(self) -> None:
        self.cuts = self.stops = self.starts = 0

    def cut(self) -> None:
        """It broke."""
        self.cuts += 1

    def client_stops_reading(self) -> None:
        """Paused."""
        self.stops += 1

    def client_reads_again(self) -> None:
        """Healed."""
        self.starts += 1


class FakeNetwork:
    """As many connections as one likes."""

    def __init__(self, count: int) -> None:
        self.connections: dict[int, Any] = {number: FakeConnection() for number in range(count)}


def nemesis_of(options: FaultOptions, count: int = 3) -> tuple[World, FakeNetwork, Nemesis]:
    world, network = World(1), FakeNetwork(count)
    return world, network, Nemesis(world, network, options)  # type: ignore[arg-type]  # a fake with the same one field


@pytest.mark.parametrize(
    ("text", "kinds"),
    [("none", ()), ("", ()), ("cuts", ("cuts",)), ("cuts,pauses,slow", FAULTS), ("slow,none", ("slow",))],
)
def test_faults_are_named(text: str, kinds: tuple[str, ...]) -> None:
    assert parse_faults(text) == kinds


def test_a_fault_that_does_not_exist_is_told_which_do() -> None:
    with pytest.raises(ValueError, match=r"no such fault: fire; there are cuts, pauses, slow"):
        parse_faults("cuts,fire")


def test_only_what_was_asked_for_happens() -> None:
    for seed in range(20):
        assert FaultOptions.drawn(Random(seed), ()).cut_interval_seconds == float("inf")
        drawn = FaultOptions.drawn(Random(seed), ("cuts",))
        assert drawn.cut_interval_seconds < float("inf") == drawn.pause_interval_seconds
        assert drawn.slow_probability == 0.0
        assert FaultOptions.drawn(Random(seed), FAULTS).slow_probability > 0.0


def test_runs_draw_different_rates() -> None:
    assert len({FaultOptions.drawn(Random(seed), FAULTS) for seed in range(30)}) > 10


def test_every_connection_meets_its_fate() -> None:
    world, network, nemesis = nemesis_of(FaultOptions(cut_interval_seconds=0.1, pause_interval_seconds=0.1))
    world.run_for(20.0)
    assert sum(connection.cuts for connection in network.connections.values()) == nemesis.cuts > 50
    assert all(
        connection.cuts and connection.stops and connection.starts for connection in network.connections.values()
    )


def test_without_connections_nothing_happens_and_time_goes_on() -> None:
    world, _, nemesis = nemesis_of(FaultOptions(cut_interval_seconds=0.1, pause_interval_seconds=0.1), count=0)
    world.run_for(5.0)
    assert nemesis.cuts == nemesis.pauses == 0
    assert world.steps > 20


def test_a_nemesis_that_was_stopped_heals_and_does_no_more() -> None:
    world, network, nemesis = nemesis_of(FaultOptions(cut_interval_seconds=0.1, pause_interval_seconds=0.1))
    world.run_for(3.0)
    nemesis.stop()
    cuts, pauses = nemesis.cuts, nemesis.pauses
    world.run_for(30.0)
    assert (nemesis.cuts, nemesis.pauses) == (cuts, pauses)
    assert all(connection.starts for connection in network.connections.values())
