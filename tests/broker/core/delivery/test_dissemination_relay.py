"""Relaying: rows of another broker's batch, or of ours that waited, keep their places and reach whom they should."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.delivery import Plan
from headgate.protocol.data import Batch
from headgate.protocol.messages import Deliver, Unsubscribe
from tests.support.builders import make_publish, quote_batch
from tests.support.node_cluster import events_of
from tests.support.node_world import NodeWorld

ORIGIN = "00000000000000aa-3"


def relay(world: NodeWorld, batch: Batch, plans: list[Plan], base: int, places: Any) -> None:
    """As FORWARD and DELIVER of other brokers do it."""
    stream = world.node.streams.find("quotes")
    assert stream is not None
    world.node.dissemination.relay(stream, batch, plans, (ORIGIN, base, places, 7))
    flush(world)


def flush(world: NodeWorld) -> None:
    """Hand on what was appended outside of an input."""
    for effect in world.node.effects:
        world._sent.setdefault(effect.link, []).append(effect.message)  # type: ignore[union-attr]  # all are Sends
    world.node.effects.clear()


def sessions(world: NodeWorld, links: list[int]) -> list[Any]:
    return [world.node.subscribers.by_link[link] for link in links]


@st.composite
def relayed(draw: st.DrawFn) -> tuple[list[dict[int, int | list[int]]], int, list[int]]:
    """For each row, which of three clients want it under which numbers; and where the rows stand."""
    wants = st.dictionaries(
        st.integers(0, 2), st.integers(1, 3) | st.lists(st.integers(1, 3), min_size=2, unique=True), max_size=3
    )
    plans = draw(st.lists(wants, min_size=1, max_size=9))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 50]), min_size=len(plans), max_size=len(plans)))
    first = draw(st.integers(0, 5))
    return plans, draw(st.integers(0, 2**40)), [first + sum(steps[:row]) for row in range(len(plans))]


@given(relayed(), st.booleans())
def test_each_row_goes_to_who_wants_it_and_stands_where_it_stood(
    world_of: tuple[list[dict[int, int | list[int]]], int, list[int]], in_a_row: bool
) -> None:
    wants, base, places = world_of
    world = NodeWorld()
    links = [world.connect() for _ in range(3)]
    who = sessions(world, links)
    where: Any = range(len(wants)) if in_a_row else places
    batch = quote_batch([f"quotes/{row % 2}" for row in range(len(wants))], [str(row) for row in range(len(wants))])
    plans = [tuple(part for link, numbers in want.items() for part in (who[link], numbers)) for want in wants]
    relay(world, batch, plans, base, where)
    for link, number_of in ((link, [want.get(place) for want in wants]) for place, link in enumerate(links)):
        messages = world.take(link)
        expected = [
            (number, ORIGIN, base + where[row])
            for row, numbers in enumerate(number_of)
            if numbers is not None
            for number in ([numbers] if isinstance(numbers, int) else numbers)
        ]
        assert events_of(messages) == expected
        for message in messages:
            assert isinstance(message, Deliver)
            portion = message.portion
            bodies = Batch(portion.topics, portion.count, portion.lengths, portion.records).pieces()
            rows = [list(where).index(portion.base + offset - base) for offset in portion.rows()]
            assert bodies == [batch.pieces()[row] for row in rows]
            assert portion.topics.split("\n") in ([f"quotes/{row % 2}" for row in rows], [f"quotes/{rows[0] % 2}"])
            assert portion.time == 7


def test_one_plan_is_for_every_row() -> None:
    world = NodeWorld()
    (who,) = sessions(world, [world.connect()])
    relay(world, quote_batch("quotes/a", list("abc")), [(who, 1)], 10, range(3))
    assert [place for _, _, place in events_of(world.take(1))] == [10, 11, 12]


def test_sessions_that_share_a_portion_do_not_move_it_twice() -> None:
    world = NodeWorld()
    links = [world.connect() for _ in range(3)]
    plan = tuple(part for who in sessions(world, links) for part in (who, 1))
    relay(world, quote_batch("quotes/a", list("ab")), [plan, plan], 10, [5, 9])
    deliveries = [world.take(link) for link in links]
    assert [events_of(messages) for messages in deliveries] == [[(1, ORIGIN, 15), (1, ORIGIN, 19)]] * 3
    first, second, third = (messages[0] for messages in deliveries)
    assert isinstance(first, Deliver) and isinstance(second, Deliver) and isinstance(third, Deliver)
    assert first.portion is second.portion is third.portion


def test_what_was_carried_before_goes_first() -> None:
    world = NodeWorld()
    link = world.subscriber()
    stream = world.node.streams.by_name["quotes"]
    world.node.dissemination.carry(stream, quote_batch("quotes/a", ["mine"]), 0)
    relay(world, quote_batch("quotes/a", ["theirs"]), [(*sessions(world, [link]), 1)], 3, range(1))
    assert world.delivered(link) == [(1, "mine"), (1, "theirs")]


def test_places_are_taken_in_order_and_what_was_carried_before_keeps_its_own() -> None:
    world = NodeWorld()
    link, publisher = world.subscriber(), world.connect()
    dissemination = world.node.dissemination
    stream = world.node.streams.by_name["quotes"]
    dissemination.carry(stream, quote_batch("quotes/a", ["x", "y"]), 0)
    assert dissemination.take_sequence(5) == 2
    flush(world)
    assert [place for _, _, place in events_of(world.take(link))] == [0, 1]
    assert dissemination.take_sequence(1) == 7
    world.say(publisher, make_publish(1))
    assert [place for _, _, place in events_of(world.take(link))] == [8]


def test_the_plan_of_our_own_clients_leaves_out_what_is_no_more() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "price > 1"), ("quotes", "price > 2"))
    (who,) = sessions(world, [link])
    plan_of = world.node.dissemination.plan_of_clients
    assert plan_of((1, 2)) == (who, [1, 2])
    assert plan_of((2, 77)) == (who, 2)
    assert plan_of((77,)) == () == plan_of(())
    world.say(link, Unsubscribe(1, 1))
    assert plan_of((1, 2)) == (who, 2)
    peer = world.node.peers.session_of(99, 1)
    world.node.subscribers.by_identity[2].session = peer
    assert plan_of((1, 2)) == (), "it is another broker's, and rests here"


def test_plans_are_those_of_the_index_without_what_is_not_allowed() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "price > 1"), ("quotes/a", ""))
    (who,) = sessions(world, [link])
    stream = world.node.streams.by_name["quotes"]
    batch = quote_batch(["quotes/a", "quotes/b", "quotes/a"], ["1", "2", "3"], price=[2, 2, 1])
    plans_of = world.node.dissemination.plans_of
    assert plans_of(stream, batch, None) == [(who, [1, 2]), (who, 1), (who, 2)]
    assert plans_of(stream, batch, lambda groups: [((1,), [1])]) == [(), (who, 1), ()]
    assert plans_of(stream, batch, lambda groups: [(some, rows[:1]) for some, rows in groups if 2 in some]) == [
        (who, [1, 2]),
        (),
        (who, 2),
    ]
