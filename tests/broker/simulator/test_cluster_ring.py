"""The oracle at the ring of a cluster: it judges what the assumptions allow, and waits where they were exceeded."""

from __future__ import annotations

import pytest

from headgate.broker.core import Node
from headgate.broker.core.inputs import Drain
from headgate.broker.core.membership import Chord
from headgate.broker.core.membership.members import after
from headgate.broker.simulator.checkers import RingKept
from headgate.broker.simulator.engine import ClusterWorld, Violation
from headgate.broker.simulator.limits import CALM_SECONDS
from headgate.broker.simulator.workloads import ClusterHistory
from tests.broker.simulator.test_cluster_world import new_world


def judged(count: int) -> tuple[ClusterWorld, RingKept]:
    """So many brokers in a ring, and the checker in the strict mood."""
    world = new_world(count, 12.0)
    checker = RingKept(world, ClusterHistory())
    world.watchers = [lambda host, happened, effects: checker.step(host, happened, effects)]
    for server in world.living():
        assert server.host is not None
        server.host._watchers = world.watchers
    watch(world, checker, CALM_SECONDS + 1.0)
    assert checker.strict and checker.checked
    checker.excused = 0
    return world, checker


def watch(world: ClusterWorld, checker: RingKept, seconds: float) -> None:
    """Go on, and let the checker look now and then, as a run does."""
    for _ in range(int(seconds * 10)):
        world.run_for(0.1)
        checker.look()


def chord_of(world: ClusterWorld, name: str) -> Chord:
    node = node_of(world, name)
    assert node.cluster.chord is not None
    return node.cluster.chord


def node_of(world: ClusterWorld, name: str) -> Node:
    host = world.servers[name].host
    assert host is not None
    return host.node


def complaint(world: ClusterWorld, seconds: float = 5.0) -> str:
    with pytest.raises(Violation) as caught:
        world.run_for(seconds)
    return caught.value.text


def test_a_large_ring_bears_a_death_and_a_newcomer_and_is_judged_all_the_while() -> None:
    world, checker = judged(7)
    world.servers["broker-3"].crash()
    watch(world, checker, 8.0)
    world.add().start()
    watch(world, checker, 10.0)
    assert checker.strict and checker.excused == 0 and checker.outlived == 1
    checker.finish()


def test_with_the_fifth_of_five_the_assumptions_are_exceeded_and_a_mesh_comes_of_it() -> None:
    world, checker = judged(5)
    world.servers["broker-3"].crash()
    watch(world, checker, 10.0)
    assert not checker.strict and checker.excused
    checker.finish()
    world.servers["broker-3"].start()
    watch(world, checker, 20.0)
    assert checker.strict, "a ring again, and judged again"
    checker.finish()


def test_who_leaves_in_order_is_dead_from_then_on() -> None:
    world, checker = judged(6)
    world.servers["broker-3"].leave()
    watch(world, checker, 5.0)
    assert checker.strict and checker.outlived == 1
    assert len(checker._chords()) == 5


def test_who_is_buried_alive_is_one_that_the_proof_does_not_know() -> None:
    world, checker = judged(6)
    chord_of(world, "broker-1").identity.declare_dead(chord_of(world, "broker-2").me)
    chord_of(world, "broker-1").identity.effects.clear()
    watch(world, checker, 1.0)
    assert not checker.strict
    watch(world, checker, 25.0)
    assert checker.strict, "it came back as another member"
    checker.finish()


def test_nobody_is_judged_while_somebody_stands_still_or_a_partition_is_fresh() -> None:
    world, checker = judged(5)
    host = world.servers["broker-1"].host
    assert host is not None
    checker.strict = False
    host.pause()
    watch(world, checker, 0.2)
    assert not checker._is_calm(checker._snapshot())
    host.resume()
    watch(world, checker, 0.2)
    assert checker._is_calm(checker._snapshot())
    checker.history.incidents.parted()
    assert not checker._is_calm(checker._snapshot())


def test_a_list_that_skips_a_member_is_seen_at_once() -> None:
    world, _ = judged(6)
    ring = chord_of(world, "broker-2").ring
    assert ring is not None
    last = ring.predecessor
    ring.successors = (*ring.successors[2:4], last, after(last))
    assert "SufficientPrincipals" in complaint(world)


def test_who_starts_over_without_need_is_seen() -> None:
    world, _ = judged(6)
    ring = chord_of(world, "broker-2").ring
    assert ring is not None
    ring.shrink([])
    assert "started over" in complaint(world)


def test_at_rest_a_pointer_that_is_not_ideal_is_seen_and_so_is_a_mesh_that_does_not_know_all() -> None:
    world, checker = judged(5)
    ring = chord_of(world, "broker-2").ring
    assert ring is not None
    ring.predecessor = ring.successors[0]
    with pytest.raises(Violation, match="should be"):
        checker.finish()
    small = new_world(3)
    checker = RingKept(small, ClusterHistory())
    checker.finish()
    mesh = chord_of(small, "broker-2").mesh
    assert mesh is not None
    mesh.known.popitem()
    with pytest.raises(Violation, match="knows"):
        checker.finish()
    RingKept(new_world(0), ClusterHistory()).finish()


def test_who_said_farewell_ends_a_ring_of_five_in_one_moment() -> None:
    world, checker = judged(5)
    host = world.servers["broker-4"].host
    assert host is not None
    host.feed(Drain())
    world.run_for(0.1)
    chords = checker._chords()
    assert len(chords) == 4 and all(chord.ring is None and len(chord.members()) == 4 for chord in chords)
    assert not checker.strict
