"""Subscriptions of the blocking client: iterating with and without patience, gaps, credit, the end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from headgate.protocol.blocking import connect_blocking
from headgate.protocol.errors import LocalError
from headgate.protocol.messages import Gap
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


def test_events_come_in_order_and_patience_ends(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a", "x > 1")
        client.publish_batch("a", {"number": list(range(10))}, [b""] * 10)
        first = [event.attributes["number"] for event in islice(subscription, 3)]
        assert first == [0, 1, 2]
        assert next(subscription).attributes["number"] == 3
        rest = [event.attributes["number"] for event in subscription.events(0.01)]
        assert rest[-1] == 9
        assert subscription.take(0.0) == []
        assert list(subscription.batches(0.0)) == []
        assert (subscription.pattern, subscription.where, subscription.number) == ("a", "x > 1", 1)


def test_breaking_off_a_loop_loses_nothing(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a")
        client.publish_batch("a", {"number": list(range(6))}, [b""] * 6)
        for event in subscription:
            if event.attributes["number"] == 2:
                break
        found: list[object] = []
        while len(found) < 3:
            found += [event.attributes["number"] for event in subscription.take(5)]
        assert found == [3, 4, 5]


def test_credit_follows_consumption(fake: Fake) -> None:
    with connect_blocking(fake.thing.address, credit=20) as client:
        subscription = client.subscribe("a")
        client.publish_batch("a", None, [b""] * 15)
        for _ in range(15):
            next(subscription)
        subscription.take(0.0)
        client.ask("status")
        credit = fake.thing.session.credits[-1]
        assert (credit.allowed <= 35, credit.received) == (True, 15)


def test_gaps_are_told_in_the_applications_own_call(fake: Fake) -> None:
    told: list[Gap] = []
    with connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a", on_gap=told.append)
        fake.call(lambda broker: broker.say(Gap(1, 5, "slow consumer"), Gap(0, 1, "lost")))
        client.ask("status")
        assert (subscription.lost, client.lost, len(subscription.gaps), told) == (5, 6, 2, [])
        subscription.take(0.0)
        assert [gap.count for gap in told] == [5, 1]


def test_closing_ends_the_loop(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        with client.subscribe("a") as subscription:
            client.publish("a")
        assert list(subscription) == []
        assert fake.thing.session.subscriptions == {}
        other = client.subscribe("a")
    assert list(other) == []
    assert next(other, None) is None


def test_ack_is_refused_with_advice(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a")
        client.publish("a")
        event = next(subscription)
        with pytest.raises(LocalError, match="durable"):
            event.ack()
        with pytest.raises(ValueError):
            event.json()
