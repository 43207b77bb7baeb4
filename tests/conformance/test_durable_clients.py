"""Durable subscriptions in both clients, against a scripted broker: the same verbs, the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from headgate.protocol.client import ClientLimits
from headgate.protocol.data import join_u32
from headgate.protocol.errors import ConnectionLost, ErrorCode, LocalError, Refused
from headgate.protocol.messages import AckVerb, Ended, Gap, Subscribe
from tests.support.both_worlds import WORLDS, finished, taken
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]


@pytest.fixture(params=WORLDS.values(), ids=WORLDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


@pytest.fixture
def client(kind: Any, fake: Fake) -> Iterator[Any]:
    made = kind(fake.thing.address)
    yield made
    made.close()


def said(fake: Fake) -> list[tuple[int, list[int]]]:
    """What was said of which numbers, each ACK by itself."""
    return fake.call(lambda it: [(ack.verb, ack.spans) for ack in it.acks])


def handed(fake: Fake, first: int, bodies: list[str], counts: bytes = b"") -> None:
    fake.call(lambda it: it.hand(1, first, bodies, counts))


def subscribed(fake: Fake) -> Subscribe:
    return fake.call(lambda it: next(iter(it.session.subscriptions.values())))


def test_it_asks_for_what_it_was_told(client: Any, fake: Fake) -> None:
    settings = {"sharing": "shared", "ack_wait": 5, "max_deliver": 3, "max_unacked": 10, "dead_letter": "dead/x"}
    subscription = client.subscribe(
        "a", "x > 1", durable="d", start="start", backoff=(1, 2), takeover=True, window=7, exact=True, **settings
    )
    asked = subscribed(fake)
    assert (asked.pattern, asked.condition) == ("a", "x > 1")
    more = {"durable": "d", "from": "start", "backoff": [1, 2], "takeover": True, "window": 7, "exact": True}
    assert asked.options == {**settings, **more}
    assert (subscription.durable, subscription.stale, subscription.begins) == ("d", 0, {})
    assert client.subscribe("a").durable == ""


def test_events_are_handed_out_and_acknowledged(client: Any, fake: Fake) -> None:
    subscription = client.subscribe("a", durable="d")
    handed(fake, 7, ["x", "y", "z"], join_u32([1, 2, 1]))
    events = taken(subscription, 3)
    assert [(event.text, event.delivery, event.delivery_count, event.redelivered) for event in events] == [
        ("x", 7, 1, False),
        ("y", 8, 2, True),
        ("z", 9, 1, False),
    ]
    assert finished(client, events[0].ack()) is True
    assert finished(client, events[1].ack(wait=True)) is True
    assert finished(client, events[2].ack()) is True
    assert finished(client, subscription.acked()) is True
    assert finished(client, subscription.acked()) is True, "there is nothing to wait for"
    assert sorted(number for _, spans in said(fake) for number in range(spans[0], spans[1] + 1)) == [7, 8, 9]


def test_every_verb_is_said(client: Any, fake: Fake) -> None:
    subscription = client.subscribe("a", durable="d")
    handed(fake, 7, ["v", "w", "x", "y", "z"])
    v, w, x, y, z = taken(subscription, 5)
    finished(client, v.nak(wait=True))
    finished(client, w.nak(2.5, wait=True))
    finished(client, x.in_progress(wait=True))
    finished(client, x.term("broken", wait=True))
    finished(client, subscription.ack_all(y, wait=True))
    finished(client, z.in_progress())
    finished(client, z.ack(wait=True))
    acks = fake.call(lambda it: list(it.acks))
    assert [(ack.verb, ack.spans, ack.seconds, ack.text) for ack in acks[:5]] == [
        (AckVerb.NAK, [7, 7], -1, ""),
        (AckVerb.NAK, [8, 8], 2.5, ""),
        (AckVerb.PROGRESS, [9, 9], -1, ""),
        (AckVerb.TERM, [9, 9], -1, "broken"),
        (AckVerb.ACK, [0, 10], -1, ""),
    ]
    assert [(ack.verb, ack.spans) for ack in acks[5:]] == [(AckVerb.PROGRESS, [11, 11]), (AckVerb.ACK, [11, 11])]
    with pytest.raises(LocalError, match="delay is a number"):
        finished(client, z.nak(-1))


def test_what_is_stale_is_told(client: Any, fake: Fake) -> None:
    subscription = client.subscribe("a", durable="d")
    handed(fake, 7, ["x", "y", "z"])
    x, y, z = taken(subscription, 3)
    fake.call(lambda it: it.stale.add(8))
    assert finished(client, x.ack(wait=True)) is True
    assert finished(client, y.ack(wait=True)) is False
    assert subscription.stale == 1
    fake.call(lambda it: it.stale.add(9))
    assert finished(client, z.ack()) is True, "nobody knows yet"
    assert finished(client, subscription.acked()) is False
    assert subscription.stale == 2
    assert finished(client, z.nak()) is False


def test_plain_events_are_not_acknowledged(client: Any, fake: Fake) -> None:
    subscription = client.subscribe("a")
    client.publish("a", {}, "x")
    (event,) = taken(subscription, 1)
    assert (event.delivery, event.delivery_count, event.redelivered) == (0, 1, False)
    for act in (event.ack, event.nak, event.in_progress, event.term, subscription.acked):
        with pytest.raises(LocalError, match="durable='NAME'"):
            finished(client, act())
    with pytest.raises(LocalError, match="durable='NAME'"):
        finished(client, subscription.ack_all(event))
    with pytest.raises(LocalError, match="ack_wait is for durable subscriptions"):
        client.subscribe("a", ack_wait=3)


def test_an_event_of_another_subscription_says_nothing_here(client: Any, fake: Fake) -> None:
    first, second = client.subscribe("a", durable="d"), client.subscribe("a", durable="e")
    handed(fake, 7, ["x"])
    (event,) = taken(first, 1)
    with pytest.raises(LocalError, match="of this subscription"):
        finished(client, second.ack_all(event))


def test_a_lost_connection_takes_what_was_not_given_to_the_application(client: Any, fake: Fake) -> None:
    subscription = client.subscribe("a", durable="d", window=5)
    handed(fake, 7, ["x", "y"])
    (x,) = taken(subscription, 1)
    fake.call(lambda it: it.drop())
    fake.run(fake.thing.until(lambda: not fake.thing.connections))
    with suppress(ConnectionLost):
        client.ask("status")  # the blocking client finds out when it is called
    assert subscription.until_confirmed(5)
    again = subscribed(fake)
    assert (again.subscription, again.pattern, again.options) == (1, "", {"durable": "d", "window": 5})
    assert finished(client, x.ack()) is False and subscription.stale == 1
    handed(fake, 20, ["x", "y"], join_u32([2, 2]))
    assert [(event.text, event.delivery) for event in taken(subscription, 2)] == [("x", 20), ("y", 21)]
    assert list(subscription.gaps) == []


def test_an_ack_that_is_waited_for_ends_with_its_connection(client: Any, fake: Fake) -> None:
    subscription = client.subscribe("a", durable="d")
    handed(fake, 7, ["x"])
    (x,) = taken(subscription, 1)
    fake.call(lambda it: setattr(it, "answering", False))
    finished(client, x.ack())
    fake.run(fake.thing.until(lambda: fake.thing.acks))
    fake.call(lambda it: it.drop())
    assert finished(client, subscription.acked()) is False
    assert subscription.stale == 1


def test_a_broker_that_lets_go_is_asked_again(client: Any, fake: Fake) -> None:
    subscription = client.subscribe("a", durable="d")
    fake.call(lambda it: it.session.subscriptions.clear())
    fake.call(lambda it: it.refusals.update({"d": ErrorCode.UNAVAILABLE}))
    fake.call(lambda it: it.say(Ended(1, ErrorCode.UNAVAILABLE, "its coordinator is gone")))
    assert taken(subscription, 1, 0.3) == [], "it asks again and again"
    fake.call(lambda it: it.refusals.clear())
    assert subscription.until_confirmed(5)
    handed(fake, 20, ["x"])
    assert [event.text for event in taken(subscription, 1)] == ["x"]


def test_an_end_for_good_is_raised(client: Any, fake: Fake) -> None:
    subscription = client.subscribe("a", durable="d")
    handed(fake, 7, ["x"])
    fake.call(lambda it: it.say(Ended(1, ErrorCode.DUPLICATE, "bob took over")))
    with pytest.raises(Refused, match="bob took over") as caught:
        taken(subscription, 2)
    assert caught.value.code == ErrorCode.DUPLICATE
    subscription.close()


def test_a_refusal_is_raised_where_it_is_asked_for(client: Any, fake: Fake) -> None:
    for code in (ErrorCode.DUPLICATE, ErrorCode.UNAVAILABLE):
        fake.call(lambda it, code=code: it.refusals.update({"d": code}))  # type: ignore[misc]
        with pytest.raises(Refused) as caught:
            client.subscribe("a", durable="d")
        assert caught.value.code == code


def test_closing_says_what_is_left_to_say(kind: Any, fake: Fake) -> None:
    with kind(fake.thing.address) as client:
        subscription = client.subscribe("a", durable="d")
        handed(fake, 7, ["x", "y", "z"])
        x, y, _ = taken(subscription, 3)
        finished(client, x.ack())
        subscription.close()
        assert finished(client, y.ack()) is False
    with kind(fake.thing.address) as client:
        subscription = client.subscribe("a", durable="d")
        handed(fake, 20, ["x", "y", "z"])
        finished(client, taken(subscription, 1)[0].ack())
    assert said(fake) == [(AckVerb.ACK, [7, 7]), (AckVerb.ACK, [20, 20])]


def test_closing_waits_for_an_answer_within_bounds(kind: Any, fake: Fake) -> None:
    fake.call(lambda it: setattr(it, "answering", False))
    with kind(fake.thing.address, limits=ClientLimits(ack_seconds=0.1)) as client:
        subscription = client.subscribe("a", durable="d")
        handed(fake, 7, ["x"])
        finished(client, taken(subscription, 1)[0].ack())
    assert said(fake) == [(AckVerb.ACK, [7, 7])]


def test_what_retention_took_is_told(client: Any, fake: Fake) -> None:
    gaps: list[Gap] = []
    subscription = client.subscribe("a", durable="d", on_gap=gaps.append)
    fake.call(lambda it: it.say(Gap(1, 20, "retention took them")))
    handed(fake, 7, ["x"])
    taken(subscription, 1)
    assert (subscription.lost, [gap.count for gap in gaps]) == (20, [20])
