"""Each nemesis: it strikes as drawn and where it may, and heals everything in the end."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headgate.broker.core.membership import ChordConfig, Pointers
from headgate.broker.simulator.engine import ClusterWorld, Network, NetworkOptions, RingNetworkOptions, RingWorld, World
from headgate.broker.simulator.faults import (
    CLUSTER_FAULTS,
    FAULTS,
    LOG_FAULTS,
    ClientFaults,
    ClientNemesis,
    ClusterFaults,
    ClusterNemesis,
    LogFaults,
    RingFaults,
    RingNemesis,
    kinds_of,
    may_crash,
)
from headgate.broker.simulator.scenarios import LogOptions, LogScenario
from headgate.broker.simulator.workloads import ClusterHistory
from tests.broker.simulator.test_cluster_world import new_world


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("none", ()),
        ("", ()),
        ("cuts", ("cuts",)),
        ("all", FAULTS),
        ("cuts,pauses,slow", FAULTS),
        ("slow,none", ("slow",)),
    ],
)
def test_faults_are_named(text: str, kinds: tuple[str, ...]) -> None:
    assert kinds_of(FAULTS)(text) == kinds


def test_a_fault_that_does_not_exist_is_told_which_do() -> None:
    with pytest.raises(ArgumentTypeError, match="no such fault: fire; there are cuts, pauses, slow, all and none"):
        kinds_of(FAULTS)("cuts,fire")


# --- of clients ------------------------------------------------------------------------------------------------------


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


def nemesis_of(options: ClientFaults, count: int = 3) -> tuple[World, list[Any], ClientNemesis]:
    world = World(1)
    network = Network(world, NetworkOptions(), lambda side, failure: None)
    connections: list[Any] = [FakeConnection() for _ in range(count)]
    network.connections.update(enumerate(connections))
    return world, connections, ClientNemesis(world, network, options)


OFTEN = ClientFaults(cut_interval_seconds=0.1, pause_interval_seconds=0.1)


def test_only_what_was_asked_for_happens() -> None:
    for seed in range(20):
        assert ClientFaults.drawn(Random(seed), ()).cut_interval_seconds == float("inf")
        drawn = ClientFaults.drawn(Random(seed), ("cuts",))
        assert drawn.cut_interval_seconds < float("inf") == drawn.pause_interval_seconds
        assert drawn.slow_probability == 0.0
        assert ClientFaults.drawn(Random(seed), FAULTS).slow_probability > 0.0


def test_runs_draw_different_rates() -> None:
    assert len({ClientFaults.drawn(Random(seed), FAULTS) for seed in range(30)}) > 10


def test_every_connection_meets_its_fate() -> None:
    world, connections, nemesis = nemesis_of(OFTEN)
    world.run_for(20.0)
    assert sum(connection.cuts for connection in connections) == nemesis.done["cuts"] > 50
    assert all(connection.cuts and connection.stops and connection.starts for connection in connections)


def test_without_connections_nothing_happens_and_time_goes_on() -> None:
    world, _, nemesis = nemesis_of(OFTEN, count=0)
    world.run_for(5.0)
    assert nemesis.done == {"cuts": 0, "pauses": 0}
    assert world.steps > 20


def test_a_nemesis_that_was_stopped_heals_and_does_no_more() -> None:
    world, connections, nemesis = nemesis_of(OFTEN)
    world.run_for(3.0)
    nemesis.stop()
    done = dict(nemesis.done)
    world.run_for(30.0)
    assert nemesis.done == done
    assert all(connection.starts for connection in connections)


# --- of a cluster ----------------------------------------------------------------------------------------------------


def struck(options: ClusterFaults, count: int = 5, seconds: float = 60.0) -> tuple[ClusterWorld, ClusterNemesis]:
    """A world after so long under these faults."""
    world = new_world(count)
    nemesis = ClusterNemesis(world, ClusterHistory(), options)
    world.run_for(seconds)
    return world, nemesis


def test_only_what_was_asked_for_is_drawn_and_told() -> None:
    options = ClusterFaults.drawn(Random(1), ("crash",), 2)
    assert options.crash < float("inf") and options.pause == float("inf")
    assert "crash every" in str(options) and "pause every" not in str(options)
    assert "no faults" in str(ClusterFaults())


@pytest.mark.parametrize("kind", [kind for kind in CLUSTER_FAULTS if kind != "slow"])
def test_every_kind_happens(kind: str) -> None:
    rate: Any = {kind: 1.0}
    options = replace(ClusterFaults(down_seconds_max=0.5, pause_seconds_max=0.5), **rate)
    world = new_world(5)
    connection = FakeConnection()
    world.clients.connections[1] = connection  # type: ignore[assignment]  # a fake
    nemesis = ClusterNemesis(world, ClusterHistory(), options)
    world.run_for(60.0)
    assert nemesis.done[kind] >= 1
    assert sum(nemesis.done.values()) == nemesis.done[kind]
    assert connection.cuts == nemesis.done["cut"]


def test_without_clients_no_connection_is_cut() -> None:
    _, nemesis = struck(ClusterFaults(cut=1.0))
    assert nemesis.done["cut"] == 0


def test_no_more_are_in_trouble_than_may_be() -> None:
    world = new_world(5)
    options = ClusterFaults(crash=0.2, pause=0.2, leave=0.5, together=1, down_seconds_max=5.0)
    ClusterNemesis(world, ClusterHistory(), options)
    for _ in range(300):
        world.run_for(0.1)
        assert len(world.serving()) >= 4


def test_in_the_end_everything_is_whole_again() -> None:
    options = ClusterFaults(crash=1.0, pause=1.0, partition=1.0, together=2)
    world, nemesis = struck(options, seconds=20.0)
    nemesis.stop()
    assert len(world.serving()) == 5
    done = dict(nemesis.done)
    world.run_for(45.0)
    assert nemesis.done == done
    assert all(node.cluster.settled(world.now) for node in world.nodes())


# --- of the log ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOG_FAULTS)
def test_each_kind_happens_alone_and_is_over_in_the_end(kind: str) -> None:
    run = LogScenario(LogOptions(5, seconds=12.0, producers=2, faults=(kind,)))
    run.faults = LogFaults({kind: 0.7}, 0.5, 1)
    run.play()
    assert run.nemesis is not None
    assert run.nemesis.done[kind] > 0
    assert set(run.nemesis.done) <= {kind} | {f"harm: {how}" for how in ("all", "newest", "rot", "backup")}
    assert all(
        server.serves and not server.disk.full and not server.disk.fails for server in run.world.servers.values()
    )
    assert len(run.history.harmed) == (kind == "harm")


def test_rates_are_drawn_for_the_kinds_that_are_asked_for() -> None:
    faults = LogFaults.drawn(Random(1), ("crash", "full"))
    assert set(faults.rates) == {"crash", "full"}
    assert "crash every" in str(faults)
    assert str(LogFaults.drawn(Random(1), ())) == "no faults"


# --- of the ring -----------------------------------------------------------------------------------------------------


def ring_of(count: int) -> RingWorld:
    world = RingWorld(1, ChordConfig(list_length=2), RingNetworkOptions())
    world.open_ring(count)
    return world


def test_a_principal_may_not_crash_when_only_enough_are_left() -> None:
    for count, allowed in ((3, False), (4, True)):
        world = ring_of(count)
        assert all(may_crash(world.snapshot(), host, 2, True) is allowed for host in world.living())


def test_nobody_may_take_another_ones_last_living_successor() -> None:
    world = ring_of(6)
    snapshot = world.snapshot()
    first, second, *_ = sorted(snapshot.members)
    pointers = snapshot.members[first]
    dead = second._replace(padding=1)
    snapshot.members = {**snapshot.members, first: Pointers(pointers.predecessor, (second, dead))}
    allowed = {host.address for host in world.living() if may_crash(snapshot, host, 2, True)}
    assert allowed == {host.address for host in world.living()} - {second.address}


def test_lists_under_way_are_spared_as_well_if_so_wished() -> None:
    world = ring_of(6)
    snapshot = world.snapshot()
    first, second, *_ = sorted(snapshot.members)
    snapshot.answers = [(first, second, second._replace(padding=1))]
    victim = world.brokers[second.address]
    assert not may_crash(snapshot, victim, 2, True)
    assert may_crash(snapshot, victim, 2, False)


def test_who_is_in_no_ring_may_always_crash() -> None:
    world = ring_of(3)
    newcomer = world.add("broker-9", ["broker-0"])
    newcomer.start()
    assert may_crash(world.snapshot(), newcomer, 2, True)


def test_churn_crashes_joins_and_restarts_until_it_is_stopped() -> None:
    world = ring_of(8)
    nemesis = RingNemesis(world, RingFaults(churn_seconds=0.2))
    world.run_for(20.0)
    assert min(nemesis.done[kind] for kind in ("crashes", "joins", "restarts")) > 0
    nemesis.stop()
    before = dict(nemesis.done)
    world.run_for(5.0)
    assert nemesis.done == before
    assert all(world.brokers[address].machine is not None for address in world.first)


def test_a_storm_has_everything_and_ends() -> None:
    world = ring_of(8)
    nemesis = RingNemesis(world, RingFaults(1.0, 1.0, 1.0, within_assumptions=False))
    world.run_for(30.0)
    kinds = ("crashes", "joins", "restarts", "pauses", "partitions", "one-way partitions")
    assert min(nemesis.done[kind] for kind in kinds) > 0
    nemesis.stop()
    assert not world.cut and not any(host.paused for host in world.living())


def test_rates_are_drawn() -> None:
    assert len({RingFaults.storm(Random(seed)) for seed in range(20)}) > 5
    assert RingFaults.churn(Random(1)).within_assumptions
    assert not RingFaults.storm(Random(1)).within_assumptions
