"""DELTA as clients of one broker see it: what is delivered, and what becomes of the reference when it is not."""

from __future__ import annotations

import pytest

from headgate.broker.core.inputs import Received
from headgate.broker.core.limits import Limits
from headgate.protocol.data import Batch
from headgate.protocol.messages import Gap, Publish, Suback, Unsubscribe
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.node_world import NodeWorld

STREAM = (10, 16, 21, 25, 30, 25, 19, 13, 8)


def ticks(*prices: object, topics: str | list[str] = "quotes/OTE", interest: list[str] | None = None) -> Batch:
    return quote_batch(topics, [str(price) for price in prices], interest, price=list(prices))  # type: ignore[arg-type]


def publish(world: NodeWorld, link: int, *batches: Batch) -> None:
    accepted = world.node.subscribers.by_link[link].accepted
    world.feed(Received(link, [make_publish(accepted + at, batch) for at, batch in enumerate(batches, 1)]))


def bodies(world: NodeWorld, link: int) -> list[str]:
    return [body for _, body in world.delivered(link)]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("interest", [None, []])
def test_the_vector_over_the_wire(alone: bool, interest: list[str] | None) -> None:
    """matching/SPEC.md 8.2, as one batch and event by event, with match columns and with none."""
    world = NodeWorld()
    link = world.subscriber(("quotes", "DELTA(price) > 5"), ("quotes/*", "DELTA(price) > 10"))
    publisher = world.connect()
    if alone:
        for price in STREAM:
            publish(world, publisher, ticks(price, interest=interest))
    else:
        publish(world, publisher, ticks(*STREAM, interest=interest))
    got = world.delivered(link)
    assert [int(body) for number, body in got if number == 1] == [10, 16, 25, 19, 13]
    assert [int(body) for number, body in got if number == 2] == [10, 21, 8]
    statistics = world.node.statistics(world.now)
    assert (statistics.delta_subscriptions, statistics.delta_references) == (2, 2)
    assert (statistics.delta_delivered, statistics.delta_suppressed) == (8, 10)


def test_the_static_part_comes_first_and_plain_subscriptions_get_everything() -> None:
    """8.1: what it keeps out is not compared, and does not become the reference."""
    world = NodeWorld()
    link = world.subscriber(
        ("quotes", "flag AND DELTA(price) > 21"), ("quotes", "price > 90"), ("quotes", "DELTA(price) > 1000")
    )
    flags = [True, False, True, True]
    publish(world, link, quote_batch("quotes/x", list("abcd"), price=[0, 100, 100, 101], flag=flags))
    assert world.delivered(link) == [(1, "a"), (3, "a"), (2, "b"), (2, "c"), (1, "c"), (2, "d")]


def test_wildcards_keep_a_reference_for_each_topic() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "DELTA(price) > 0.05"))
    publish(world, link, ticks(1.0, 1.0, 1.04, 1.2, topics=["quotes/a", "quotes/b", "quotes/a", "quotes/b"]))
    assert bodies(world, link) == ["1.0", "1.0", "1.2"]


def test_many_members_have_one_carrier_and_each_its_own_reference() -> None:
    world = NodeWorld()
    first = world.subscriber(("quotes", "price > 0 AND DELTA(price) > 5"))
    publish(world, first, ticks(10))
    second = world.subscriber(
        ("quotes", "DELTA(price) > 5 AND price > 0"), ("quotes", "DELTA(price) >= 1 AND price > 0")
    )
    publish(world, first, ticks(12))
    assert bodies(world, first) == ["10"] and world.delivered(second) == [(1, "12"), (2, "12")]
    publish(world, first, ticks(16), ticks(17))
    assert bodies(world, first) == ["16"] and world.delivered(second) == [(2, "16"), (2, "17")]
    assert len(world.node.subscribers.carriers) == 1 and len(world.node.streams.by_name["quotes"].index) == 1
    world.say(second, Unsubscribe(9, 1), Unsubscribe(9, 2))
    assert len(world.node.subscribers.carriers) == 1
    world.say(first, Unsubscribe(9, 1))
    assert not world.node.subscribers.carriers and len(world.node.streams.by_name["quotes"].index) == 0
    assert world.node.statistics(world.now).delta_references == 0
    *_, answer = world.say(first, make_subscribe(1, condition="DELTA(price) > 5 AND price > 0"))
    assert isinstance(answer, Suback)
    publish(world, first, ticks(17))
    assert bodies(world, first) == ["17"], "it begins with nothing"


def test_a_session_that_ends_leaves_nothing() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "DELTA(price) > 5"), ("quotes/a", "DELTA(volume) > 5"))
    publish(world, link, ticks(1))
    world.drop(link)
    world.wake_at(world.now + 60.0)
    assert not world.node.subscribers.carriers and not world.node.subscribers.by_identity


def test_what_was_dropped_for_a_slow_client_is_forgotten() -> None:
    """8.7: it has not got 20, so 21 is delivered although 20 was to be the reference."""
    world = NodeWorld(outbox_bytes=300)
    link = world.subscriber(("quotes", "DELTA(price) > 5"), credit=1)
    publisher = world.connect()
    publish(world, publisher, ticks(10))
    assert bodies(world, link) == ["10"]
    publish(world, publisher, ticks(20, 30, topics=["quotes/OTE", "quotes/b"]))
    assert world.node.subscribers.by_link[link].drops == 2, "there is no room at all"
    messages = world.grant(link, 100, 1)
    (gap,) = [message for message in messages if isinstance(message, Gap)]
    assert gap.count == 2 and deliveries_of(messages) == []
    publish(world, publisher, ticks(21), ticks(22), ticks(31, topics="quotes/b"))
    assert bodies(world, link) == ["21", "31"]


def test_what_was_lost_with_a_connection_is_forgotten() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "DELTA(price) > 5"))
    publisher = world.connect()
    publish(world, publisher, ticks(10), ticks(20))
    key = world.key(link)
    world.drop(link)
    link, _ = world.resume(key, received=1)
    publish(world, publisher, ticks(21), ticks(22))
    assert bodies(world, link) == ["21"]
    world.drop(link)
    link, _ = world.resume(key, received=2)  # counted anew: 1 and 21
    publish(world, publisher, ticks(23))
    assert bodies(world, link) == []


def test_a_lane_remembers_who_decides_and_not_what_was_decided() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "DELTA(price) > 5"), ("quotes", ""))
    for price in (10, 12, 16):
        publish(world, link, ticks(price))
    assert world.delivered(link) == [(2, "10"), (1, "10"), (2, "12"), (2, "16"), (1, "16")]
    assert world.node.streams.by_name["quotes"].lanes


def test_a_column_that_cannot_be_read_moves_nothing() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "DELTA(price) > 5"))
    good = ticks(10)
    bad = Batch(good.topics, 1, good.lengths, good.records, {"price": b"z"})
    world.say(link, Publish(1, 1, bad))
    publish(world, link, ticks(11))
    assert bodies(world, link) == ["11"]


def test_references_have_a_bound() -> None:
    world = NodeWorld(limits=Limits(references=3))
    link = world.subscriber(("quotes", "DELTA(price) > 5"))
    for topic in "abcd":
        publish(world, link, ticks(1, topics=f"quotes/{topic}"))
    statistics = world.node.statistics(world.now)
    assert (statistics.delta_references, statistics.delta_forgotten) == (3, 1)
    publish(world, link, ticks(2, topics="quotes/d"), ticks(2, topics="quotes/a"))
    assert bodies(world, link) == ["1", "1", "1", "1", "2"], "that of a was the oldest"


def test_a_declared_precision_counts() -> None:
    world = NodeWorld()
    world.node.streams.declare("quotes", {"attributes": {"price": {"type": "float", "precision": 0.01}}})
    link = world.subscriber(("quotes", "DELTA(price) >= 0.05"))
    publish(world, link, ticks(0.1, 0.15))
    assert bodies(world, link) == ["0.1", "0.15"]
