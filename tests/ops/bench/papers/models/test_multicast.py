"""Multicast: each destination exactly once, whatever the fingers say, and by few messages when they are right."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import RING_SIZE, RoutingTable, Segment, Way, distance
from headgate.ops.bench.papers.models import (
    BOTH_WAYS_BASE_4,
    ONE_WAY_BASE_2,
    FingerPlan,
    split_set,
    spread_segment,
    spread_set,
    travel,
)
from headgate.ops.bench.papers.models.multicast import (
    Arc,
    SegmentShare,
    SetShare,
    again,
    before_tail,
    split_segment,
    start_segment,
)
from tests.support.rings import HostileRing, hostile_rings, ideal_ring, identifiers, random_members


def brokers_of(segment: Segment, members: list[int]) -> list[int]:
    """The dumb twin: everybody whose keys, (predecessor, broker], meet the segment."""
    found = []
    for place, broker in enumerate(members):
        first = (members[place - 1] + 1) % RING_SIZE
        owns_low = distance(first, segment.low) <= distance(first, broker)
        if owns_low or segment.covers(first):
            found.append(broker)
    return found


# --- To a set ---------------------------------------------------------------------------------------------------------


@given(hostile_rings(), st.data())
def test_each_of_a_set_is_reached_once_whatever_the_fingers_say(ring: HostileRing, data: st.DataObject) -> None:
    origin = data.draw(st.sampled_from(ring.living))
    wanted = data.draw(st.sets(st.one_of(st.sampled_from(ring.living), identifiers)))
    spread = spread_set(ring.tables, origin, sorted(wanted))
    assert spread.times == dict.fromkeys(wanted & set(ring.living), 1)
    assert sorted(spread.missing) == sorted(wanted - set(ring.living))


@given(st.sets(identifiers, min_size=1, max_size=40), st.sampled_from([BOTH_WAYS_BASE_4, ONE_WAY_BASE_2]), st.data())
def test_with_right_fingers_no_branch_is_longer_than_a_way(
    members: set[int], plan: FingerPlan, data: st.DataObject
) -> None:
    ring = sorted(members)
    tables = ideal_ring(ring, plan)
    origin = data.draw(st.sampled_from(ring))
    wanted = data.draw(st.sets(st.sampled_from(ring)))
    spread = spread_set(tables, origin, sorted(wanted))
    assert spread.times == dict.fromkeys(wanted, 1)
    for broker, depth in spread.depth.items():
        assert depth <= travel(tables, origin, broker).hops


def test_a_split_gives_each_link_what_is_nearest_to_it() -> None:
    table = RoutingTable(100, 90, [110], [150, 200])
    split = split_set(table, [100, 110, 174, 176, 200, 90, 110])
    assert split.here
    assert not split.missing
    assert split.shares == [
        SetShare(110, Way.NEAREST, [110]),
        SetShare(150, Way.NEAREST, [174]),
        SetShare(200, Way.NEAREST, [176, 200]),
        SetShare(90, Way.NEAREST, [90]),
    ]


def test_one_way_links_are_responsible_for_what_lies_ahead_of_them() -> None:
    table = RoutingTable(100, 90, [110], [150, 200], both_ways=False)
    split = split_set(table, [150, 174, 199, 200])
    assert split.shares == [SetShare(150, Way.CLOCKWISE, [150, 174, 199]), SetShare(200, Way.CLOCKWISE, [200])]


def test_who_is_on_no_ring_is_reported_by_the_owner_of_the_place() -> None:
    table = RoutingTable(100, 90, [110], [])
    split = split_set(table, [95])
    assert (split.here, split.shares, split.missing) == (False, [], [95])
    assert spread_set(ideal_ring([1, 5, 9]), 1, [7, 5]).missing == [7]


def test_a_broadcast_costs_little_more_than_one_message_each() -> None:
    members = random_members(300, seed=1)
    spread = spread_set(ideal_ring(members), members[17], members)
    assert spread.times == dict.fromkeys(members, 1)
    assert 299 <= spread.messages <= 310
    assert max(spread.depth.values()) <= 9


# --- To a segment -----------------------------------------------------------------------------------------------------


@given(hostile_rings(), identifiers, identifiers, st.data())
def test_each_broker_of_a_segment_is_reached_once_whatever_the_fingers_say(
    ring: HostileRing, low: int, high: int, data: st.DataObject
) -> None:
    segment = Segment(low, high)
    spread = spread_segment(ring.tables, data.draw(st.sampled_from(ring.living)), segment)
    assert spread.times == dict.fromkeys(brokers_of(segment, ring.living), 1)


@given(
    st.sets(identifiers, min_size=1, max_size=40),
    identifiers,
    identifiers,
    st.sampled_from([BOTH_WAYS_BASE_4, ONE_WAY_BASE_2]),
    st.data(),
)
def test_with_right_fingers_no_branch_to_a_segment_is_longer_than_a_way(
    members: set[int], low: int, high: int, plan: FingerPlan, data: st.DataObject
) -> None:
    ring, segment = sorted(members), Segment(low, high)
    tables, origin = ideal_ring(ring, plan), data.draw(st.sampled_from(ring))
    spread = spread_segment(tables, origin, segment)
    assert spread.times == dict.fromkeys(brokers_of(segment, ring), 1)
    for broker, depth in spread.depth.items():
        is_tail = not before_tail(segment).covers(broker)
        assert depth <= travel(tables, origin, high if is_tail else broker).hops


@given(hostile_rings(deaths=False), st.data())
def test_the_parts_of_a_split_never_overlap(ring: HostileRing, data: st.DataObject) -> None:
    table = ring.tables[data.draw(st.sampled_from(ring.living))]
    start, length = data.draw(identifiers), data.draw(st.integers(1, RING_SIZE))
    way = data.draw(st.sampled_from([Way.NEAREST, Way.CLOCKWISE]))
    given_share = SegmentShare(table.broker, way, [Arc(start, length)], None)
    _, shares = split_segment(table, Segment(start, (start + length) % RING_SIZE), given_share)
    arcs = [arc for share in shares for arc in share.arcs]
    assert sum(arc.length for arc in arcs) <= length
    for arc in arcs:
        assert distance(start, arc.start) + arc.length <= length
        assert not any(other.covers(arc.start) for other in arcs if other is not arc)


def test_a_segment_is_cut_half_way_between_links() -> None:
    table = RoutingTable(100, 90, [110], [150, 200])
    segment = Segment(95, 190)
    here, shares = split_segment(table, segment, start_segment(table, segment))
    assert here
    assert shares == [
        SegmentShare(110, Way.NEAREST, [Arc(110, 21)], None),
        SegmentShare(150, Way.NEAREST, [Arc(131, 45)], None),
        SegmentShare(200, Way.NEAREST, [Arc(176, 14)], Way.NEAREST),
    ]


def test_nobody_is_asked_about_the_place_before_oneself() -> None:
    table = RoutingTable(100, 90, [110], [150, 200])
    segment = Segment(91, 99)
    assert split_segment(table, segment, start_segment(table, segment)) == (True, [])


def test_who_does_not_know_his_predecessor_looks_for_him_once_round() -> None:
    table = RoutingTable(100, None, [110], [150, 200])
    segment = Segment(95, 100)
    here, shares = split_segment(table, segment, start_segment(table, segment))
    assert here
    assert shares == [SegmentShare(200, Way.CLOCKWISE, [Arc(95, 5)], None)]


def test_neighbours_farther_than_half_the_ring_do_not_hand_a_piece_to_and_fro() -> None:
    """Two left of five, and lists that reach round: each took the other for the last before what nobody owns."""
    dead, high = 2**63 - 1, 2**64 - 13
    one, two, late = 15507755975726468983, 2**64 - 13, 2**64 - 17
    tables = {
        one: RoutingTable(one, dead, [late, two, dead], [11550520780344183368]),
        two: RoutingTable(two, late, [dead, one, late], [2, 23]),
    }
    segment = Segment(10, high + 1)
    assert spread_segment(tables, one, segment).times == dict.fromkeys(brokers_of(segment, [one, two]), 1)


def test_a_segment_of_one_key_goes_to_its_owner_alone() -> None:
    tables = ideal_ring([10, 20, 30])
    for key, owner in ((10, 10), (11, 20), (30, 30), (31, 10)):
        spread = spread_segment(tables, 20, Segment(key, key))
        assert spread.times == {owner: 1}


def test_a_segment_that_ends_where_it_began_its_round_does_not_reach_its_tail_twice() -> None:
    tables = ideal_ring([10, 20, 30])
    spread = spread_segment(tables, 20, Segment(5, 4))
    assert spread.times == {10: 1, 20: 1, 30: 1}
    assert spread_segment({7: RoutingTable(7, None, [])}, 7, Segment(9, 8)).times == {7: 1}


def test_a_share_that_could_not_be_handed_over_is_split_again_as_it_came() -> None:
    given_share = SegmentShare(100, Way.NEAREST, [Arc(95, 95)], Way.NEAREST)
    arcs = [Arc(131, 45)]
    assert again(given_share, SegmentShare(150, Way.NEAREST, arcs, None)) == SegmentShare(100, Way.NEAREST, arcs, None)
    tail = again(given_share, SegmentShare(110, Way.NEAREST, [], Way.ARRIVED))
    assert tail == SegmentShare(100, Way.NEAREST, [], Way.NEAREST)


@pytest.mark.parametrize("plan", [BOTH_WAYS_BASE_4, ONE_WAY_BASE_2])
def test_a_segment_costs_the_way_to_it_and_one_message_a_broker(plan: FingerPlan) -> None:
    members, random = random_members(256, seed=2), Random(3)
    tables = ideal_ring(members, plan)
    for _ in range(40):
        low = random.randrange(RING_SIZE)
        segment = Segment(low, (low + random.randrange(RING_SIZE // 8)) % RING_SIZE)
        spread = spread_segment(tables, random.choice(members), segment)
        brokers = brokers_of(segment, members)
        assert spread.times == dict.fromkeys(brokers, 1)
        assert spread.messages <= len(brokers) + 12
