"""The nemesis of a cluster: it strikes as drawn, spares who must be spared, and heals everything at the end."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headgate.broker.simulator.engine import ClusterWorld
from headgate.broker.simulator.faults import CLUSTER_FAULTS, ClusterFaultOptions, ClusterNemesis, parse_cluster_faults
from headgate.broker.simulator.workloads import ClusterHistory
from tests.broker.simulator.test_cluster_world import new_world


def struck(options: ClusterFaultOptions, count: int = 5, seconds: float = 60.0) -> tuple[ClusterWorld, ClusterNemesis]:
    """A world after so long under these faults."""
    world = new_world(count)
    nemesis = ClusterNemesis(world, ClusterHistory(), options)
    world.run_for(seconds)
    return world, nemesis


def test_kinds_are_parsed() -> None:
    assert parse_cluster_faults("crash,pause") == ("crash", "pause")
    assert parse_cluster_faults("none") == ()
    assert parse_cluster_faults("all") == CLUSTER_FAULTS
    with pytest.raises(ValueError, match="no such fault: fire"):
        parse_cluster_faults("crash,fire")


def test_only_what_was_asked_for_is_drawn_and_told() -> None:
    options = ClusterFaultOptions.drawn(Random(1), ("crash",), 2)
    assert options.crash < float("inf") and options.pause == float("inf")
    assert "crash every" in str(options) and "pause every" not in str(options)
    assert "no faults" in str(ClusterFaultOptions())


@pytest.mark.parametrize("kind", [kind for kind in CLUSTER_FAULTS if kind != "slow"])
def test_every_kind_happens(kind: str) -> None:
    rate: Any = {kind: 1.0}
    options = replace(ClusterFaultOptions(down_seconds_max=0.5, pause_seconds_max=0.5), **rate)
    _, nemesis = struck(options)
    wanted = 0 if kind == "cut" else 1  # nobody is connected here
    assert nemesis.done[kind] >= wanted
    assert sum(nemesis.done.values()) == nemesis.done[kind]


def test_no_more_are_in_trouble_than_may_be() -> None:
    world = new_world(5)
    options = ClusterFaultOptions(crash=0.2, pause=0.2, leave=0.5, together=1, down_seconds_max=5.0)
    ClusterNemesis(world, ClusterHistory(), options)
    for _ in range(300):
        world.run_for(0.1)
        assert len(world.serving()) >= 4


def test_in_the_end_everything_is_whole_again() -> None:
    options = ClusterFaultOptions(crash=1.0, pause=1.0, partition=1.0, together=2)
    world, nemesis = struck(options, seconds=20.0)
    nemesis.stop()
    assert len(world.serving()) == 5 and not world.peers._blocked
    done = dict(nemesis.done)
    world.run_for(45.0)
    assert nemesis.done == done
    assert all(node.cluster.settled(world.now) for node in world.nodes())
