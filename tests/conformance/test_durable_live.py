"""Durable subscriptions of both clients against a real broker: nothing is missed, and what comes again is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.protocol.errors import ErrorCode, Refused
from tests.support.both_worlds import WORLDS, finished, taken
from tests.support.live_broker import LiveBroker, live_broker
from tests.support.threaded import Threaded, in_thread


@pytest.fixture(scope="module")
def broker() -> Iterator[Threaded[LiveBroker]]:
    with in_thread(live_broker) as threaded:
        yield threaded


@pytest.fixture(params=WORLDS.values(), ids=WORLDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def client(kind: Any, broker: Threaded[LiveBroker], request: pytest.FixtureRequest) -> Iterator[Any]:
    made = kind(broker.thing.address, name="first")
    made.stream = f"s{abs(hash(request.node.name))}"
    made.ask("schema.put", stream=made.stream, schema={"durability": "stored"})
    yield made
    made.close()


def publish(client: Any, *numbers: int) -> None:
    for number in numbers:
        client.publish(f"{client.stream}/x", {"number": number}, str(number), mode="stored")


def numbers_of(events: list[Any]) -> list[int]:
    return [event.attributes["number"] for event in events]


def test_what_was_not_acknowledged_comes_again(client: Any, kind: Any, broker: Threaded[LiveBroker]) -> None:
    name = f"{client.stream} d"
    first = client.subscribe(client.stream, "number > 1", durable=name)
    publish(client, 1, 2, 3, 4)
    events = taken(first, 3)
    assert numbers_of(events) == [2, 3, 4] and not any(event.redelivered for event in events)
    assert finished(client, events[0].ack(wait=True)) is True
    first.close()
    publish(client, 5)
    with kind(broker.thing.address, name="second") as other:
        second = other.subscribe("", durable=name)
        again = taken(second, 3)
        assert [(event.attributes["number"], event.delivery_count) for event in again] == [(3, 2), (4, 2), (5, 1)]
        assert finished(client, events[1].ack()) is False, "it is another one's by now"
        assert finished(other, second.ack_all(again[-1])) is True
        assert finished(other, second.acked()) is True
    row = client.ask("durable", name=name)
    assert (row["waiting"], row["unacked"]) == (0, 0)


def test_everything_up_to_each_event_in_turn_is_acknowledged(client: Any) -> None:
    name = f"{client.stream} d"
    publish(client, *range(10))
    subscription = client.subscribe(client.stream, durable=name, start="start")
    for event in taken(subscription, 10):
        assert finished(client, subscription.ack_all(event, wait=True)) is True
    row = client.ask("durable", name=name)
    assert (row["waiting"], row["unacked"]) == (0, 0)


def test_one_at_a_time_unless_it_takes_over(client: Any, kind: Any, broker: Threaded[LiveBroker]) -> None:
    name = f"{client.stream} d"
    first = client.subscribe(client.stream, durable=name)
    with kind(broker.thing.address, name="second") as other:
        with pytest.raises(Refused) as caught:
            other.subscribe(client.stream, durable=name)
        assert caught.value.code == ErrorCode.DUPLICATE
        second = other.subscribe(client.stream, durable=name, takeover=True)
        with pytest.raises(Refused):
            taken(first, 1)
        publish(client, 7)
        assert numbers_of(taken(second, 1)) == [7]


def test_shared_gives_each_event_to_one(client: Any, kind: Any, broker: Threaded[LiveBroker]) -> None:
    name = f"{client.stream} d"
    first = client.subscribe(client.stream, durable=name, sharing="shared", window=2)
    with kind(broker.thing.address, name="second") as other:
        second = other.subscribe("", durable=name, window=2)
        publish(client, *range(4))
        mine, others = taken(first, 2), taken(second, 2)
        assert sorted(numbers_of(mine) + numbers_of(others)) == [0, 1, 2, 3]
        for event in mine:
            finished(client, event.ack())
        for event in others:
            finished(other, event.ack())
        assert finished(client, first.acked()) and finished(other, second.acked())


def test_nak_and_term(client: Any) -> None:
    name = f"{client.stream} d"
    subscription = client.subscribe(client.stream, durable=name, max_deliver=2)
    publish(client, 1, 2)
    one, two = taken(subscription, 2)
    assert finished(client, one.in_progress(wait=True)) and finished(client, one.nak(0.05, wait=True))
    assert finished(client, two.term("broken", wait=True))
    (again,) = taken(subscription, 1)
    assert (again.attributes["number"], again.delivery_count, again.redelivered) == (1, 2, True)
    assert finished(client, again.nak(wait=True)), "for the last time"
    dead = client.ask("dead", name=name)
    assert [(row["stream"], row["delivered"]) for row in dead] == [(client.stream, 1), (client.stream, 2)]
    assert client.ask("dead_replay", name=name, all=True) == {"replayed": 2}
    assert sorted(numbers_of(taken(subscription, 2))) == [1, 2]


def test_where_it_begins(client: Any) -> None:
    publish(client, 1, 2)
    early = client.subscribe(client.stream, durable=f"{client.stream} start", start="start")
    late = client.subscribe(client.stream, durable=f"{client.stream} now")
    publish(client, 3)
    assert (numbers_of(taken(early, 3)), numbers_of(taken(late, 1))) == ([1, 2, 3], [3])


def test_an_acknowledgement_that_comes_too_late_is_stale(client: Any) -> None:
    subscription = client.subscribe(client.stream, durable=f"{client.stream} d", ack_wait=0.2)
    publish(client, 1)
    (first,) = taken(subscription, 1)
    (second,) = taken(subscription, 1)
    assert (second.attributes["number"], second.delivery_count) == (1, 2)
    assert second.delivery > first.delivery
    assert finished(client, first.ack(wait=True)) is False and subscription.stale == 1
    assert finished(client, second.ack(wait=True)) is True


def test_what_was_removed_ends_with_its_reason(client: Any) -> None:
    name = f"{client.stream} d"
    subscription = client.subscribe(client.stream, durable=name)
    client.ask("durable_rm", name=name)
    with pytest.raises(Refused) as caught:
        taken(subscription, 1)
    assert caught.value.code == ErrorCode.NOT_FOUND
    with pytest.raises(Refused) as caught:
        client.subscribe("", durable=name)
    assert caught.value.code == ErrorCode.NOT_FOUND


def test_a_condition_changes_while_it_runs(client: Any) -> None:
    name = f"{client.stream} d"
    subscription = client.subscribe(client.stream, "number > 5", durable=name)
    publish(client, 9, 1)
    assert numbers_of(taken(subscription, 1)) == [9]
    client.ask("durable_set", name=name, where="number < 5", **{"from": "ack"})
    publish(client, 8, 2)
    assert sorted(numbers_of(taken(subscription, 2))) == [1, 2]
