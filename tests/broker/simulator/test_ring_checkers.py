"""Each checker of the ring world sees what it is there to see."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.effects import Note
from headgate.broker.core.membership import ChordConfig, Letter, Notify, Owning, Post, State, Tick
from headgate.broker.core.membership.members import after
from headgate.broker.simulator.checkers import (
    Consequences,
    InvariantHolds,
    NobodyStartsOver,
    OneQuery,
    RingChecker,
    ServesWhenAdopted,
)
from headgate.broker.simulator.engine import RingHost, RingNetworkOptions, RingWorld, Violation


@pytest.fixture
def world() -> RingWorld:
    world = RingWorld(1, ChordConfig(list_length=2), RingNetworkOptions())
    world.open_ring(5)
    for host in world.living():
        host.feed(Tick())
    return world


def ring_of(host: RingHost) -> Any:
    assert host.machine is not None and host.machine.ring is not None
    return host.machine.ring


def caught(checker: RingChecker, host: RingHost | None = None, *effects: Any) -> str:
    try:
        if host is None:
            checker.settled()
        else:
            checker.step(host, Tick(), effects)
    except Violation as violation:
        return violation.promise
    return ""


def test_a_sound_ring_passes_all(world: RingWorld) -> None:
    host = world.brokers["broker-0"]
    for kind in (InvariantHolds, Consequences, OneQuery, ServesWhenAdopted, NobodyStartsOver):
        checker = kind(world)
        assert caught(checker) == caught(checker, host) == ""


def test_a_broken_ring_is_seen(world: RingWorld) -> None:
    ring = ring_of(world.brokers["broker-0"])
    last = after(ring.successors[-1])
    ring.successors = (last, after(last))
    assert caught(InvariantHolds(world)) == "InvariantHolds"
    assert caught(Consequences(world)) == "Consequences"


def test_answers_are_looked_at_only_if_so_wished(world: RingWorld) -> None:
    snapshot = world.snapshot()
    member = next(iter(snapshot.members))
    snapshot.answers = [(member, after(member), after(after(member)))]
    world.snapshot = lambda: snapshot  # type: ignore[method-assign]
    checker = InvariantHolds(world)
    assert caught(checker) == "InvariantHolds"
    checker.sees_answers = False
    assert caught(checker) == ""


def test_pointers_told_in_the_middle_of_a_step_are_seen(world: RingWorld) -> None:
    host = world.brokers["broker-0"]
    ring = ring_of(host)
    me, other = ring.identity.me, ring.successors[0]
    told = Post(other.address, Letter(me, other, State(1, ring.predecessor, ring.successors)))
    assert caught(OneQuery(world), host, told) == ""
    ring.stabilize(0.0)
    ring.identity.effects.clear()
    assert caught(OneQuery(world), host, told) == "OneQuery"


def test_serving_before_the_predecessor_said_so_is_seen(world: RingWorld) -> None:
    host = world.brokers["broker-0"]
    me = ring_of(host).identity.me
    checker = ServesWhenAdopted(world)
    world.now = 1.0
    stranger = me._replace(identifier=me.identifier - 1)
    assert caught(checker, host, Owning(ring_of(host).predecessor, me, True)) == ""
    assert caught(checker, host, Owning(stranger, me, False)) == ""
    assert caught(checker, host, Owning(stranger, me, True)) == "ServesWhenAdopted"
    checker.step(host, Tick(), [Post(me.address, Letter(stranger, me, Notify()))])
    assert caught(checker, host, Owning(stranger, me, True)) == ""


def test_what_was_served_in_the_mesh_until_it_opened_the_ring_may_go_on(world: RingWorld) -> None:
    host = world.brokers["broker-0"]
    ring = ring_of(host)
    me, world.now = ring.identity.me, 1.0
    near, far = me._replace(identifier=me.identifier - 1), me._replace(identifier=me.identifier - 9)
    cases = [
        (Owning(far, me, True), near, ""),
        (Owning(near, me, True), far, "ServesWhenAdopted"),
        (Owning(far, me, False), near, "ServesWhenAdopted"),
        (Owning(far, me._replace(incarnation=0), True), near, "ServesWhenAdopted"),
    ]
    for in_mesh, after_opening, promise in cases:
        checker = ServesWhenAdopted(world)
        machine: Any = host.machine
        machine.ring = None
        assert caught(checker, host, in_mesh) == ""
        machine.ring = ring
        assert caught(checker, host, Owning(after_opening, me, True)) == promise, in_mesh
        assert caught(checker, host, Owning(near._replace(identifier=7), me, True)) == "ServesWhenAdopted", "once"


def test_leaving_the_ring_is_seen(world: RingWorld) -> None:
    host = world.brokers["broker-0"]
    assert caught(NobodyStartsOver(world), host, Note("joined a ring", {})) == ""
    assert caught(NobodyStartsOver(world), host, Note("left the ring", {})) == "NobodyStartsOver"
