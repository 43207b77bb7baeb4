"""The checkers that look into brokers: content with a sound cluster, and they find each damage that is done to it."""

from __future__ import annotations

import pytest

from headgate.broker.core import Node
from headgate.broker.core.keyspace import count_dimension
from headgate.broker.simulator.checkers import (
    STATE_CHECKERS,
    EdgesLaid,
    FreshScopes,
    NothingWaits,
    OneOwner,
    Replicated,
    RingKept,
    SameSummaries,
    StateChecker,
    scope_of,
)
from headgate.broker.simulator.engine import ClusterWorld, Violation
from headgate.broker.simulator.workloads import ClusterClient, ClusterHistory, Traits, Workload
from tests.broker.simulator.test_cluster_world import new_world


def subscribed(condition: str = "") -> tuple[ClusterWorld, ClusterHistory, Node]:
    """Three brokers, a client with a subscription, and the Node that is its home."""
    world, history = new_world(3), ClusterHistory()
    client = ClusterClient("c", world, history, [], Workload(world.random), Traits())
    client.dial()
    world.run_for(1.0)
    client._subscribe_to(1, "quotes/OTE", condition, False)
    world.run_for(3.0)
    assert client.subscriptions[1].acknowledged and client._host is not None
    return world, history, client._host.node


def complaint(kind: type[StateChecker], world: ClusterWorld, history: ClusterHistory, at_rest: bool = False) -> str:
    checker = kind(world, history)
    with pytest.raises(Violation) as caught:
        checker.finish() if at_rest else checker.look()
    return caught.value.text


def other_than(world: ClusterWorld, home: Node) -> Node:
    return next(node for node in world.nodes() if node is not home)


def test_a_sound_cluster_has_no_complaints() -> None:
    world, history, _ = subscribed()
    for kind in STATE_CHECKERS:
        checker = kind(world, history)
        checker.look()
        checker.finish()
    assert all(scope_of(node, world.now).everything for node in world.nodes())


def test_every_checker_is_in_the_list() -> None:
    assert {*STATE_CHECKERS, RingKept} == set(StateChecker.__subclasses__())


def test_a_scope_without_the_item_is_out_of_date() -> None:
    world, history, home = subscribed()
    items = other_than(world, home).cluster.kv.items.table
    (name,) = [name for name in items if name[0] == "sub"]
    del items[name]
    assert "has it not" in complaint(FreshScopes, world, history)
    assert "2 copies, not 3" in complaint(Replicated, world, history, at_rest=True)
    history.incidents.parted()
    FreshScopes(world, history).look()


def test_two_owners_are_found() -> None:
    world, history, home = subscribed()
    thief, ownership = other_than(world, home), home.cluster.kv.ownership
    piece = ownership.pieces[0]
    for one in thief.cluster.kv.ownership.pieces:
        one.stretch = piece.stretch
    thief.cluster.kv.leases.holds = lambda stretch, now: True  # type: ignore[method-assign]
    assert "both own keys" in complaint(OneOwner, world, history)


def test_a_summary_that_misses_a_dimension_is_found() -> None:
    world, history, home = subscribed()
    del other_than(world, home).registry.usage.summaries["quotes"]
    assert "does not know that" in complaint(SameSummaries, world, history)
    assert "does not know that" in complaint(SameSummaries, world, history, at_rest=True)


def test_a_vertex_from_which_events_do_not_find_a_subscription_is_found() -> None:
    world, history, home = subscribed("XPATH 'a/b'")
    EdgesLaid(world, history).look()
    edges = other_than(world, home).registry.edges
    (cube,) = edges._cubes.values()
    cube.joined[255] = {}
    assert "lets no event on from 11111111" in complaint(EdgesLaid, world, history)


def test_what_waits_in_the_end_is_found() -> None:
    world, history, home = subscribed()
    home.forwarding._waiting.own.append(None)  # type: ignore[arg-type]
    assert "wait at" in complaint(NothingWaits, world, history, at_rest=True)


def test_lists_that_are_not_known_and_events_that_wait_for_them_are_found() -> None:
    world, history, home = subscribed()
    dimension = count_dimension("symbol")
    (mine,) = home.registry._mine.values()
    mine.dimensions = (*mine.dimensions, dimension)
    assert f"uses {dimension} of quotes" in complaint(SameSummaries, world, history, at_rest=True)
    home.forwarding.gathering.events = 3
    assert "3 events wait for lists" in complaint(NothingWaits, world, history, at_rest=True)
