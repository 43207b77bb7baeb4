"""The cluster's world: brokers find together, die, stand still and come back with what they stored."""

from __future__ import annotations

from headgate.broker.core.effects import Append, Halt
from headgate.broker.core.inputs import Drain
from headgate.broker.simulator.engine import ClusterWorld, Topology
from headgate.protocol.data import LogName
from headgate.protocol.errors import ErrorCode, HeadgateError


def new_world(count: int, seconds: float = 8.0, seed: int = 1) -> ClusterWorld:
    """So many brokers, after a while."""
    failures: list[HeadgateError] = []
    world = ClusterWorld(seed, Topology(), [], lambda side, failure: failures.append(failure))
    for _ in range(count):
        world.add().start()
    world.run_for(seconds)
    others = [one for one in failures if getattr(one, "code", None) != ErrorCode.REPLACED]  # both may dial at once
    assert not others
    return world


def settled(world: ClusterWorld) -> list[bool]:
    """Whether each broker answers for its own key."""
    return [node.cluster.settled(world.now) for node in world.nodes()]


def test_brokers_that_start_together_share_the_keys() -> None:
    for count in (1, 3, 5):
        world = new_world(count)
        assert settled(world) == [True] * count
        assert {len(node.peers.by_link) for node in world.nodes()} == {count - 1}
        for node in world.nodes():
            node.validate()


def test_who_dies_is_missed_and_comes_back_in_a_new_life() -> None:
    world = new_world(3)
    server = world.servers["broker-2"]
    server.crash()
    world.run_for(10.0)
    assert len(world.living()) == 2 and settled(world) == [True, True]
    assert all(len(node.peers.by_link) == 1 for node in world.nodes())
    server.start()
    world.run_for(10.0)
    assert server.life == 2 and server.host is not None
    assert server.host.node.config.incarnation == 2
    assert settled(world) == [True] * 3


def test_what_was_stored_is_there_in_the_next_life() -> None:
    world = new_world(2)
    server = world.servers["broker-1"]
    assert server.host is not None and server.host.records["contacts"] == ["broker-2:7472"]
    server.crash()
    server.start()
    assert server.host.records["contacts"] == ["broker-2:7472"]


def test_a_silent_death_is_found_by_its_silence_alone() -> None:
    for silent in (False, True):
        world = new_world(2)
        world.servers["broker-2"].crash(silent)
        world.run_for(0.5)
        (node,) = world.nodes()
        assert len(node.peers.by_link) == silent
        world.run_for(3.0)
        assert not node.peers.by_link


def test_who_stands_still_hears_everything_when_it_goes_on() -> None:
    world = new_world(3)
    server = world.servers["broker-3"]
    assert server.host is not None
    server.host.pause()
    steps, before = world.steps, server.host.node.cluster.chord
    world.run_for(8.0)
    assert world.steps > steps and not server.serves
    assert server.host.node.cluster.chord is before
    assert not server.host.node.cluster.settled(world.now), "its leases are over by the clock"
    server.host.resume()
    world.run_for(8.0)
    assert settled(world) == [True] * 3


def test_an_orderly_leave_ends_the_process() -> None:
    world = new_world(3)
    seen: list[object] = []
    server = world.servers["broker-1"]
    world.watchers = ()
    assert server.host is not None
    server.host._watchers = (lambda host, happened, effects: seen.append(type(happened)),)
    server.leave()
    server.leave()
    assert seen.count(Drain) == 1 and server not in world.serving()
    world.run_for(2.0)
    assert server.host is None
    assert len(world.living()) == 2


def test_a_log_outlives_its_broker_and_its_epoch_stays() -> None:
    world = new_world(1)
    server = world.servers["broker-1"]
    assert server.host is not None and server.log is not None
    epoch = server.host.node.log.epoch
    log = LogName("broker-1", epoch, 0, "a")
    server.disk.content.epoch = epoch
    server.log.ask(Append(10**6, log, b"row", 0, 1, 0))
    server.log.slowness = 0.0
    server.crash()
    assert server.log is None
    server.start()
    node = server.host.node if server.host is not None else None
    assert node is not None and node.log.available and node.log.epoch == epoch
    assert set(node.log.logs) == set(server.disk.content.logs)


def test_a_broker_whose_disk_has_failed_is_gone_at_once() -> None:
    world = new_world(1)
    server = world.servers["broker-1"]
    assert server.host is not None
    server.host._carry_out[Halt](Halt("the disk has failed"))
    world.run_for(0.0)
    assert server.host is None
    server.start()
    assert server.host is not None
