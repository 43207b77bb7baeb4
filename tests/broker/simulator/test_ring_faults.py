"""The nemesis: what it does, and what it may not do."""

from __future__ import annotations

from random import Random

from headgate.broker.core.membership import ChordConfig, Pointers
from headgate.broker.simulator.engine import RingNetworkOptions, RingWorld
from headgate.broker.simulator.faults import RingFaultOptions, RingNemesis, may_crash


def new_world(count: int) -> RingWorld:
    world = RingWorld(1, ChordConfig(list_length=2), RingNetworkOptions())
    world.open_ring(count)
    return world


def test_a_principal_may_not_crash_when_only_enough_are_left() -> None:
    for count, allowed in ((3, False), (4, True)):
        world = new_world(count)
        assert all(may_crash(world.snapshot(), host, 2, True) is allowed for host in world.living())


def test_nobody_may_take_another_ones_last_living_successor() -> None:
    world = new_world(6)
    snapshot = world.snapshot()
    first, second, *_ = sorted(snapshot.members)
    pointers = snapshot.members[first]
    dead = second._replace(padding=1)
    snapshot.members = {**snapshot.members, first: Pointers(pointers.predecessor, (second, dead))}
    allowed = {host.address for host in world.living() if may_crash(snapshot, host, 2, True)}
    assert allowed == {host.address for host in world.living()} - {second.address}


def test_lists_under_way_are_spared_as_well_if_so_wished() -> None:
    world = new_world(6)
    snapshot = world.snapshot()
    first, second, *_ = sorted(snapshot.members)
    snapshot.answers = [(first, second, second._replace(padding=1))]
    victim = world.brokers[second.address]
    assert not may_crash(snapshot, victim, 2, True)
    assert may_crash(snapshot, victim, 2, False)


def test_who_is_in_no_ring_may_always_crash() -> None:
    world = new_world(3)
    newcomer = world.add("broker-9", ["broker-0"])
    newcomer.start()
    assert may_crash(world.snapshot(), newcomer, 2, True)


def test_churn_crashes_joins_and_restarts_until_it_is_stopped() -> None:
    world = new_world(8)
    nemesis = RingNemesis(world, RingFaultOptions(churn_seconds=0.2))
    world.run_for(20.0)
    assert min(nemesis.counts[kind] for kind in ("crashes", "joins", "restarts")) > 0
    nemesis.stop()
    before = dict(nemesis.counts)
    world.run_for(5.0)
    assert nemesis.counts == before
    assert all(world.brokers[address].machine is not None for address in world.first)


def test_a_storm_has_everything_and_ends() -> None:
    world = new_world(8)
    nemesis = RingNemesis(world, RingFaultOptions(1.0, 1.0, 1.0, within_assumptions=False))
    world.run_for(30.0)
    kinds = ("crashes", "joins", "restarts", "pauses", "partitions", "one-way partitions")
    assert min(nemesis.counts[kind] for kind in kinds) > 0
    nemesis.stop()
    assert not world.cut and not any(host.paused for host in world.living())


def test_rates_are_drawn() -> None:
    assert len({RingFaultOptions.storm(Random(seed)) for seed in range(20)}) > 5
    assert RingFaultOptions.churn(Random(1)).within_assumptions
    assert not RingFaultOptions.storm(Random(1)).within_assumptions
