"""Routing: a message finds the owner of its key whatever the fingers say, and right fingers make the way short."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import MESH_BROKERS_MAX, RING_SIZE, RoutingTable, Way, distance, successor
from headgate.broker.core.keyspace.routing import Step
from headgate.ops.bench.papers.models import (
    BOTH_WAYS_BASE_2,
    BOTH_WAYS_BASE_4,
    ONE_WAY_BASE_2,
    FingerPlan,
    Hops,
    ideal_table,
    travel,
)
from headgate.ops.bench.papers.models.fingers import FingerKey, Path, finger_keys, fingers, links
from tests.support.rings import HostileRing, absolute_distance, hostile_rings, ideal_ring, identifiers, random_members

PLANS = [BOTH_WAYS_BASE_4, ONE_WAY_BASE_2, BOTH_WAYS_BASE_2]


# --- Right with any content -------------------------------------------------------------------------------------------


@given(hostile_rings(), identifiers, st.data())
def test_a_lookup_finds_the_owner_whatever_the_fingers_say(ring: HostileRing, key: int, data: st.DataObject) -> None:
    origin = data.draw(st.sampled_from(ring.living))
    path = travel(ring.tables, origin, key)
    assert path.brokers[0] == origin
    assert path.brokers[-1] == successor(ring.living, key)


@given(hostile_rings(), identifiers, st.data())
def test_a_way_only_grows_and_its_measure_shrinks(ring: HostileRing, key: int, data: st.DataObject) -> None:
    here, way = data.draw(st.sampled_from(ring.living)), data.draw(st.sampled_from(Way))
    measures = {
        Way.NEAREST: lambda one: (absolute_distance(one, key), distance(key, one) < distance(one, key)),
        Way.DIRECT: lambda one: distance(key, one),
        Way.CLOCKWISE: lambda one: distance(one, key),
        Way.ARRIVED: lambda one: distance(key, one),
    }
    step = ring.tables[here].step(key, way)
    assert step.way >= way
    if step.broker is not None and step.way is way and here != key:
        assert measures[way](step.broker) < measures[way](here)


@given(st.sets(identifiers, min_size=1, max_size=40), identifiers, st.sampled_from(PLANS), st.data())
def test_right_tables_need_no_detour(members: set[int], key: int, plan: FingerPlan, data: st.DataObject) -> None:
    ring = sorted(members)
    tables = {broker: ideal_table(broker, ring, plan) for broker in ring}
    path = travel(tables, data.draw(st.sampled_from(ring)), key)
    assert path.brokers[-1] == successor(ring, key)
    assert path.tries == 0
    assert len(set(path.brokers)) == len(path.brokers)


@given(st.sets(identifiers, min_size=1, max_size=40), st.sampled_from(PLANS), st.data())
def test_however_members_crowd_the_way_to_one_is_bounded_by_its_distance(
    members: set[int], plan: FingerPlan, data: st.DataObject
) -> None:
    """At least `power` of a distance below `base * power` is covered by a hop: base - 1 hops a digit."""
    ring = sorted(members)
    origin, target = data.draw(st.sampled_from(ring)), data.draw(st.sampled_from(ring))
    path = travel(ideal_ring(ring, plan), origin, target)
    far = absolute_distance(origin, target) if plan.both_ways else distance(origin, target)
    digits = far.bit_length() if plan.base == 2 else (far.bit_length() + 1) // 2
    assert path.brokers[-1] == target
    assert path.hops <= (plan.base - 1) * digits + (not plan.both_ways)


@given(hostile_rings(), identifiers)
def test_the_nearest_is_the_nearest_of_all_it_knows(ring: HostileRing, key: int) -> None:
    for table in ring.tables.values():
        brokers = [*table.known, table.broker]
        least = min(absolute_distance(one, key) for one in brokers)
        nearest = table.nearest(key)
        assert absolute_distance(nearest, key) == least
        ties = [one for one in brokers if absolute_distance(one, key) == least]
        assert nearest == min(ties, key=lambda one: distance(one, key))
        table.validate()


def test_a_broker_alone_owns_everything() -> None:
    table = RoutingTable(7, 7, [7])
    assert table.predecessor is None
    assert table.step(5) == Step(None, Way.NEAREST)
    assert travel({7: table}, 7, 99) == Path([7], Way.NEAREST, 0)


def test_a_broker_owns_its_own_identifier_even_when_it_knows_no_predecessor() -> None:
    table = RoutingTable(10, None, [20])
    assert table.step(10).broker is None
    assert table.step(9) == Step(20, Way.CLOCKWISE)


def test_a_key_said_to_be_ours_goes_back_to_a_newcomer_only_we_have_heard_of() -> None:
    newcomer = RoutingTable(15, 10, [20, 10])
    tables = {10: RoutingTable(10, 20, [20]), 15: newcomer, 20: RoutingTable(20, 15, [10])}
    assert travel(tables, 10, 12) == Path([10, 20, 15], Way.ARRIVED, 0)
    assert travel(tables, 10, 17).brokers == [10, 20]


def test_a_broker_that_lost_every_neighbour_hands_the_key_to_whom_it_knows() -> None:
    assert RoutingTable(10, None, [], [30, 50]).step(20) == Step(30, Way.ARRIVED)
    assert RoutingTable(10, None, [], [30, 50]).step(45) == Step(50, Way.NEAREST)
    assert RoutingTable(10, None, [], [30, 50]).step(8) == Step(50, Way.CLOCKWISE)


def test_without_the_dead_the_next_successor_takes_over() -> None:
    table = RoutingTable(10, 5, [20, 30], [60])
    assert table.step(15) == Step(20, Way.ARRIVED)
    alive = table.without({20, 5})
    assert alive.step(15) == Step(30, Way.ARRIVED)
    assert alive.predecessor is None
    assert alive.known == (30, 60)


# --- The mesh ---------------------------------------------------------------------------------------------------------


def mesh_tables(members: list[int]) -> dict[int, RoutingTable]:
    tables = {}
    for broker in members:
        ideal = ideal_table(broker, members)
        everybody, mesh = links(ideal, [], members)
        tables[broker] = RoutingTable(broker, ideal.predecessor, ideal.successors, everybody, mesh=mesh)
    return tables


@pytest.mark.parametrize("count", [2, 5, MESH_BROKERS_MAX])
def test_in_a_mesh_every_way_is_one_hop(count: int) -> None:
    members, random = random_members(count, seed=1), Random(2)
    tables = mesh_tables(members)
    for _ in range(300):
        origin, key = random.choice(members), random.randrange(RING_SIZE)
        owner = successor(members, key)
        assert travel(tables, origin, key).brokers == ([origin] if origin == owner else [origin, owner])


def test_a_mesh_that_has_not_heard_of_everybody_is_still_right() -> None:
    members, random = random_members(40, seed=3), Random(4)
    tables = {}
    for broker in members:
        ideal = ideal_table(broker, members)
        some = random.sample(members, 10)
        tables[broker] = RoutingTable(broker, ideal.predecessor, ideal.successors, some, mesh=random.random() < 0.7)
    for _ in range(300):
        key = random.randrange(RING_SIZE)
        assert travel(tables, random.choice(members), key).brokers[-1] == successor(members, key)


def test_links_are_everybody_while_they_are_few_and_then_the_fingers() -> None:
    few, many = random_members(MESH_BROKERS_MAX, seed=5), random_members(MESH_BROKERS_MAX + 1, seed=5)
    table = ideal_table(few[0], few)
    assert links(table, [], few) == (few[1:], True)
    table = ideal_table(many[0], many)
    looked_up = fingers(many[0], many, BOTH_WAYS_BASE_4)
    kept, mesh = links(table, looked_up, many)
    assert not mesh
    assert kept == sorted({table.predecessor, *table.successors, *looked_up})
    assert len(kept) < 20


# --- Fingers ----------------------------------------------------------------------------------------------------------


def test_fingers_lie_at_powers_of_the_base() -> None:
    assert list(BOTH_WAYS_BASE_4.distances())[:4] == [1, 4, 16, 64]
    assert len(list(BOTH_WAYS_BASE_4.distances())) == 32
    assert list(ONE_WAY_BASE_2.distances())[-1] == RING_SIZE // 2
    assert len(list(ONE_WAY_BASE_2.distances())) == 64
    assert len(list(BOTH_WAYS_BASE_2.distances())) == 63


def test_a_finger_is_at_least_so_far_on_either_side() -> None:
    members = [100, 103, 110, 130, RING_SIZE - 20, RING_SIZE - 3]
    assert fingers(100, members, FingerPlan(4, True)) == sorted(set(members) - {100})
    assert fingers(100, [100, 103, 105, 130], ONE_WAY_BASE_2) == [103, 105, 130]
    crowd = list(range(1000, 1040))
    assert fingers(1020, crowd, BOTH_WAYS_BASE_4) == [1000, 1004, 1016, 1019, 1021, 1024, 1036, 1039]


@given(st.sets(identifiers, min_size=1, max_size=30), st.sampled_from(PLANS), st.data())
def test_looking_up_the_finger_keys_brings_what_full_knowledge_brings(
    members: set[int], plan: FingerPlan, data: st.DataObject
) -> None:
    ring = sorted(members)
    broker = data.draw(st.sampled_from(ring))
    table = ideal_table(broker, ring, plan)
    found = {broker}
    for key, behind in finger_keys(table, plan):
        owner = successor(ring, key)
        found.add(ring[ring.index(owner) - 1] if behind and owner != key else owner)
    neighbours = {*table.successors, table.predecessor}
    assert found | neighbours == {broker, *fingers(broker, ring, plan)} | neighbours


def test_distances_within_the_neighbours_are_not_looked_up() -> None:
    table = RoutingTable(1000, 990, [1010, 1100])
    keys = finger_keys(table, BOTH_WAYS_BASE_4)
    assert keys[:3] == [FingerKey(1000 - 16, True), FingerKey(1000 - 64, True), FingerKey(1000 + 256, False)]
    assert not any(key.behind for key in finger_keys(table, ONE_WAY_BASE_2))
    assert len(finger_keys(RoutingTable(5, None, []), BOTH_WAYS_BASE_4)) == 64


# --- How long ways are ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", PLANS)
def test_ways_are_logarithmic(plan: FingerPlan) -> None:
    members, random = random_members(256, seed=6), Random(7)
    tables, hops = ideal_ring(members, plan), Hops()
    for _ in range(400):
        hops.add(travel(tables, random.choice(members), random.randrange(RING_SIZE)).hops)
    assert hops.messages == 400
    assert 2 < hops.mean < 6
    assert hops.longest <= 12


def test_wrong_fingers_cost_hops_and_nothing_else() -> None:
    members, random = random_members(128, seed=8), Random(9)
    lies = {}
    for broker in members:
        ideal = ideal_table(broker, members)
        near = [members[(members.index(broker) + step) % 128] for step in range(-3, 4)]
        lies[broker] = RoutingTable(broker, ideal.predecessor, ideal.successors, near)
    right, wrong = Hops(), Hops()
    truth = ideal_ring(members)
    for _ in range(200):
        origin, key = random.choice(members), random.randrange(RING_SIZE)
        for tables, hops in ((truth, right), (lies, wrong)):
            path = travel(tables, origin, key)
            assert path.brokers[-1] == successor(members, key)
            hops.add(path.hops)
    assert wrong.mean > 2 * right.mean


def test_a_lookup_ends_one_hop_before_the_message_when_a_neighbour_knows_the_owner() -> None:
    assert Path([1, 2, 3], Way.ARRIVED, 0).hops == 2
    assert Path([1, 2, 3], Way.ARRIVED, 0).lookup_hops == 1
    assert Path([1, 2, 3], Way.NEAREST, 0).lookup_hops == 2
    assert Path([1], Way.ARRIVED, 0).lookup_hops == 0
    assert Hops().mean == 0.0
