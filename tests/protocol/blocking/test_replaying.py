"""Subscriptions of the blocking client that begin in the past: each event once, then what comes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.protocol.blocking import BlockingClient, Event, Subscription, connect_blocking
from headgate.protocol.client import ClientLimits, Step
from headgate.protocol.errors import LocalError
from headgate.protocol.messages import Ask
from tests.support.fake_broker import FakeBroker, FakeSession, fake_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]
LOOKING_OFTEN = ClientLimits(replay_poll_seconds=0.01)


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


def test_one_whose_client_is_closed_while_it_reads_ends(fake: Fake) -> None:
    client = connect_blocking(fake.thing.address)
    publish(client, *range(9))
    past = client.subscribe("a", start="start")
    take(past, 2)
    client.close()
    assert list(past) == [] and past.take(1) == []
    with pytest.raises(LocalError, match="closed"):
        past.until_confirmed()


def test_who_has_no_time_to_wait_is_given_what_is_there(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        publish(client, *range(7))
        past = client.subscribe("a", start="start")
        numbers: list[object] = []
        while len(numbers) < 7:
            numbers += [event.attributes["n"] for event in past.take(0.0)]
        publish(client, 7)
        while len(numbers) < 8:
            numbers += [event.attributes["n"] for event in past.take(0.0)]
        assert numbers == list(range(8))


def live(client: BlockingClient) -> Subscription:
    """A subscription that has nothing to read."""
    past = client.subscribe("a", start="now")
    replaying = past._replaying
    assert replaying is not None
    while replaying._replay.step is not Step.LIVE or replaying.is_late:
        assert past.take(0.01) == []
    return past


def look_again(past: Subscription) -> None:
    """It is time to see whether a broker is back."""
    assert past._replaying is not None
    past._replaying._replay.away = ("bob",)
    past._replaying._rests_until = 0.0


def test_a_broker_that_does_not_answer_holds_nobody_up_for_longer_than_asked(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect_blocking(fake.thing.address) as client:
        past = live(client)
        publish(client, 0)
        held: list[tuple[FakeSession, Ask]] = []
        answer = fake.thing._handlers[Ask]
        monkeypatch.setitem(fake.thing._handlers, Ask, lambda session, message: held.append((session, message)))
        look_again(past)
        assert past.take(0.01) == [] and past.take(0.0) == [], "the look comes first"
        fake.run(fake.thing.until(lambda: held))
        monkeypatch.setitem(fake.thing._handlers, Ask, answer)
        assert past.take(0.01) == [] and len(held) == 1, "asked once"
        fake.call(lambda _: answer(*held[0]))
        assert [event.attributes["n"] for event in take(past, 1)] == [0]


def test_one_that_is_closed_waits_for_no_answer(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect_blocking(fake.thing.address) as client:
        past = live(client)
        monkeypatch.setitem(fake.thing._handlers, Ask, lambda session, message: None)
        look_again(past)
        assert past.take(0.01) == [] and past._replaying.is_late
        past.close()
        assert list(past) == []


def test_what_was_delivered_need_not_wait_for_a_broker_to_be_back(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        past = live(client)
        publish(client, 0)
        fake.run(fake.thing.close())
        client.wait(lambda: not client.connected, 5)
        look_again(past)
        assert [event.attributes["n"] for event in past.take(0.0)] == [0]
        fake.run(fake.thing.listen())
