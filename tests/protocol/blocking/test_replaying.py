"""Subscriptions of the blocking client that begin in the past: each event once, then what comes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from protocol.blocking import BlockingClient, Event, Subscription, connect_blocking
from protocol.errors import LocalError, Refused
from protocol.messages import Gap
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


def publish(client: BlockingClient, *numbers: int, topic: str = "a") -> None:
    for number in numbers:
        client.publish(topic, {"n": number}, mode="stored")


def take(subscription: Subscription, count: int) -> list[Event]:
    events: list[Event] = []
    for event in subscription:
        events.append(event)
        if len(events) == count:
            break
    return events


def test_from_the_start_and_then_what_comes(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        live = client.subscribe("a")
        publish(client, *range(7))
        past = client.subscribe("a", start="start")
        assert fake.thing.session.subscriptions.keys() == {1}, "it reads before it subscribes"
        first = take(past, 7)
        publish(client, 7)
        (last,) = take(past, 1)
        assert [event.attributes["n"] for event in [*first, last]] == list(range(8))
        assert [event.position for event in first] == [f"fake@1:{number}" for number in range(7)]
        assert last.position == "" and {event.subscription for event in first} == {past.number}
        assert [event.id for event in take(live, 8)] == [event.id for event in [*first, last]]
        assert past.confirmed and isinstance(first[0], Event)
        past.close()


def test_what_is_delivered_while_it_reads_comes_once(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client, connect_blocking(fake.thing.address) as other:
        publish(other, *range(4))
        past = client.subscribe("a", start="start")
        events = take(past, 2)
        publish(other, 4, 5)
        events += take(past, 2)

        def deliver_again(broker: FakeBroker) -> None:
            for base, batch in enumerate(list(broker.batches), 1):
                broker._route(batch, base)

        events += take(past, 2)
        fake.call(deliver_again)
        publish(other, 6)
        events += take(past, 1)
        assert [event.attributes["n"] for event in events] == list(range(7))


def test_from_a_position(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        publish(client, *range(5))
        for start in (3, "fake@1:3"):
            events = take(client.subscribe("a", start=start), 2)
            assert [event.attributes["n"] for event in events] == [3, 4]
        end = client.subscribe("a", start="fake@1:5")
        now = client.subscribe("a", start="now")
        publish(client, 5)
        for subscription in (end, now):
            assert [event.attributes["n"] for event in take(subscription, 1)] == [5]


def test_exact_is_kept_to_while_it_reads(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        publish(client, 0, topic="a")
        fake.thing.log.rows["a"][0].topics = "a/b"
        publish(client, 1, topic="a")
        fake.thing.log.cutting = False
        events = take(client.subscribe("a", start="start"), 2)
        assert [event.topic for event in events] == ["a/b", "a"]
        (event,) = take(client.subscribe("a", exact=True, start="start"), 1)
        assert event.topic == "a"


def test_what_retention_took_is_a_gap(fake: Fake) -> None:
    told: list[Gap] = []
    with connect_blocking(fake.thing.address) as client:
        publish(client, *range(5))
        fake.call(lambda broker: broker.log.trim(3))
        past = client.subscribe("a", start="fake@1:1", on_gap=told.append)
        assert [event.attributes["n"] for event in take(past, 2)] == [3, 4]
        assert past.lost == 2 and [gap.count for gap in told] == [2] and "retention" in told[0].reason


def test_a_stream_without_a_log_is_subscribed_to_at_once(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        past = client.subscribe("a", start="start")
        assert past.confirmed
        client.publish("a", {"n": 1})
        assert [event.attributes["n"] for event in take(past, 1)] == [1]


def test_no_place_to_begin_is_told_at_once(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        publish(client, 1)
        with pytest.raises(LocalError, match="no place to begin"):
            client.subscribe("a", start="yesterday")
        with pytest.raises(Refused, match="ends at 1"):
            client.subscribe("a", start=7)
        with pytest.raises(Refused, match="no log ann@1"):
            client.subscribe("a", start="ann@1:0")
        assert fake.thing.session.subscriptions == {}


def test_one_that_is_closed_while_it_reads_ends(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        publish(client, *range(9))
        past = client.subscribe("a", start="start")
        take(past, 1)
        past.close()
        assert list(past) == []
        assert fake.thing.session.subscriptions == {}
