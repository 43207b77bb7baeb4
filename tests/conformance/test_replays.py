"""Subscriptions that begin in the past, of both clients: each event once, then what comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.protocol.client import ClientLimits, receiving
from headgate.protocol.errors import ConnectionLost, ErrorCode, LocalError, Refused
from headgate.protocol.messages import Gap
from tests.support.both_worlds import WORLDS, taken
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.fake_broker_log import early
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]
LOOKING_OFTEN = ClientLimits(replay_poll_seconds=0.01)


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


@pytest.fixture(params=WORLDS.values(), ids=WORLDS)
def connect(request: pytest.FixtureRequest) -> Any:
    return request.param


def publish(client: Any, *numbers: int, topic: str = "a") -> None:
    for number in numbers:
        client.publish(topic, {"n": number}, mode="stored")


def test_from_the_start_and_then_what_comes(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        live = client.subscribe("a")
        publish(client, *range(7))
        past = client.subscribe("a", start="start")
        assert fake.thing.session.subscriptions.keys() == {1}, "it reads before it subscribes"
        first = taken(past, 7)
        publish(client, 7)
        (last,) = taken(past, 1)
        assert [event.attributes["n"] for event in [*first, last]] == list(range(8))
        assert [event.position for event in first] == [f"fake@1:{number}" for number in range(7)]
        assert last.position == "fake@1:7" and {event.subscription for event in first} == {past.number}
        assert [event.id for event in taken(live, 8)] == [event.id for event in [*first, last]]
        assert past.confirmed and isinstance(first[0], receiving.Event)
        past.close()


def test_what_is_delivered_while_it_reads_comes_once(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client, connect(fake.thing.address) as other:
        publish(other, *range(4))
        past = client.subscribe("a", start="start")
        events = taken(past, 2)
        publish(other, 4, 5)
        events += taken(past, 2)

        def deliver_again(broker: FakeBroker) -> None:
            for base, batch in enumerate(list(broker.batches), 1):
                broker._route(batch, base, True)

        events += taken(past, 2)
        fake.call(deliver_again)
        publish(other, 6)
        events += taken(past, 1)
        assert [event.attributes["n"] for event in events] == list(range(7))


def test_from_a_position(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, *range(5))
        for start in (3, "fake@1:3"):
            events = taken(client.subscribe("a", start=start), 2)
            assert [event.attributes["n"] for event in events] == [3, 4]
        end = client.subscribe("a", start="fake@1:5")
        now = client.subscribe("a", start="now")
        publish(client, 5)
        for subscription in (end, now):
            assert [event.attributes["n"] for event in taken(subscription, 1)] == [5]


def test_exact_is_kept_to_while_it_reads(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, 0, topic="a")
        fake.thing.log.rows["a"][0].topics = "a/b"
        publish(client, 1, topic="a")
        fake.thing.log.cutting = False
        events = taken(client.subscribe("a", start="start"), 2)
        assert [event.topic for event in events] == ["a/b", "a"]
        (event,) = taken(client.subscribe("a", exact=True, start="start"), 1)
        assert event.topic == "a"


def test_what_retention_took_is_a_gap(connect: Any, fake: Fake) -> None:
    told: list[Gap] = []
    with connect(fake.thing.address) as client:
        publish(client, *range(5))
        fake.call(lambda broker: broker.log.trim(3))
        past = client.subscribe("a", start="fake@1:1", on_gap=told.append)
        assert [event.attributes["n"] for event in taken(past, 2)] == [3, 4]
        assert past.lost == 2 and [gap.count for gap in told] == [2] and "retention" in told[0].reason


def test_a_stream_without_a_log_is_subscribed_to_at_once(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        past = client.subscribe("a", start="start")
        assert past.confirmed
        client.publish("a", {"n": 1})
        assert [event.attributes["n"] for event in taken(past, 1)] == [1]


def test_no_place_to_begin_is_told_at_once(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, 1)
        with pytest.raises(LocalError, match="no place to begin"):
            client.subscribe("a", start="yesterday")
        with pytest.raises(Refused, match="ends at 1"):
            client.subscribe("a", start=7)
        with pytest.raises(Refused, match="no log ann@1"):
            client.subscribe("a", start="ann@1:0")
        assert fake.thing.session.subscriptions == {} and not client._conversation._reading


def test_one_that_is_closed_while_it_reads_ends(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, *range(9))
        past = client.subscribe("a", start="start")
        taken(past, 1)
        past.close()
        assert list(past) == []
        assert fake.thing.session.subscriptions == {}


def test_a_lost_session_is_made_up_for_from_the_log(connect: Any, fake: Fake) -> None:
    told: list[Gap] = []
    with connect(fake.thing.address) as other, connect(fake.thing.address) as client:
        publish(other, *range(3))
        past = client.subscribe("a", start="start", on_gap=told.append)
        events = taken(past, 3)
        publish(other, 3, 4)
        events += taken(past, 2)
        fake.call(FakeBroker.forget)
        fake.call(FakeBroker.drop)
        publish(other, *range(5, 9))
        events += taken(past, 4)
        publish(other, 9)
        events += taken(past, 1)
        assert [event.attributes["n"] for event in events] == list(range(10))
        assert [event.position[-2:] for event in events[5:]] == [":5", ":6", ":7", ":8", ":9"]
        assert not told and not past.gaps and past.lost == 0
        assert past.begins == {"fake@1": 0} and client.subscribe("a").begins == {}
        assert list(past.events(0.01)) == []


def test_a_gap_of_a_stream_in_memory_is_told(connect: Any, fake: Fake) -> None:
    told: list[Gap] = []
    fake.thing.stored = False
    with connect(fake.thing.address) as client:
        past = client.subscribe("a", start="now", on_gap=told.append)
        fake.call(lambda broker: broker.say(Gap(past.number, 2, "slow consumer")))
        client.publish("a", {"n": 4})
        assert [event.attributes["n"] for event in taken(past, 1)] == [4]
        assert [gap.count for gap in told] == [2] and past.lost == 2


def test_a_gap_that_nobody_closes_any_more_is_told(connect: Any, fake: Fake) -> None:
    client = connect(fake.thing.address, retry_seconds=0.0)
    past = client.subscribe("a", start="now")
    fake.call(lambda broker: broker.say(Gap(past.number, 2, "slow consumer")))
    client.ask("status")
    fake.run(fake.thing.close())
    with pytest.raises(ConnectionLost):
        taken(past, 1)
    assert past.lost == 2
    client.close()


def test_brokers_that_cannot_be_reached_are_named_and_read_when_they_are_back(connect: Any, fake: Fake) -> None:
    told: list[Gap] = []
    with in_thread(lambda: fake_broker("other")) as other:
        with connect(other.thing.address) as there:
            publish(there, 1)
        fake.thing.others = [other.thing]
        other.run(other.thing.close())
        with connect(fake.thing.address, limits=LOOKING_OFTEN) as client:
            publish(client, 0)
            past = client.subscribe("a", start="start", on_gap=told.append)
            assert [event.attributes["n"] for event in taken(past, 1)] == [0]
            assert list(past.events(0.05)) == []
            assert [gap.reason[:30] for gap in told] == ["broker other cannot be reached"]
            other.run(other.thing.listen())
            assert [event.position for event in taken(past, 1)] == ["other@1:0"]
            assert len(told) == 1


def test_what_is_not_on_enough_disks_yet_holds_nothing_up(
    connect: Any, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Gap] = []
    with connect(fake.thing.address, limits=LOOKING_OFTEN) as client:
        publish(client, *range(4))
        log = fake.thing.log
        read = log.read
        monkeypatch.setattr(log, "read", early(2, read))
        past = client.subscribe("a", start="start", on_gap=told.append)
        assert [event.attributes["n"] for event in taken(past, 2)] == [0, 1]
        assert list(past.events(0.05)) == [] and past.confirmed
        publish(client, 4)
        assert [event.attributes["n"] for event in taken(past, 1)] == [4]
        assert [gap.count for gap in told] == [0] and "too few disks" in told[0].reason
        monkeypatch.setattr(log, "read", read)
        assert [event.attributes["n"] for event in taken(past, 2)] == [2, 3]
        assert len(told) == 1


def test_a_durable_one_is_refused_before_anything_is_read(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, 1)
        fake.thing.refusals["mine"] = ErrorCode.UNSUPPORTED
        with pytest.raises(Refused):
            client.subscribe("a", durable="mine", start="start")
        assert "survey" not in fake.thing.asked


def test_who_waits_for_the_confirmation_of_one_that_is_not_read_has_it_at_once(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, *range(9))
        past = client.subscribe("a", start="start")
        assert not past.confirmed
        assert past.until_confirmed(10) and past.confirmed
        assert len(fake.thing.session.subscriptions) == 1
        publish(client, 9, 10)
        events = taken(past, 11)
        publish(client, 11)
        assert [event.attributes["n"] for event in [*events, *taken(past, 1)]] == list(range(12))
        past.close()
        with pytest.raises(LocalError, match="closed"):
            past.until_confirmed()


def test_one_whose_client_has_lost_its_broker_says_so(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address, retry_seconds=0.0) as client:
        publish(client, *range(9))
        past = client.subscribe("a", start="start")
        taken(past, 1)
        fake.run(fake.thing.close())
        with pytest.raises(ConnectionLost):
            taken(past, 9)
        with pytest.raises(ConnectionLost):
            past.until_confirmed()


def test_a_lost_connection_holds_it_up_and_nothing_more(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, *range(9))
        past = client.subscribe("a", start="start")
        events = taken(past, 2)
        fake.call(FakeBroker.drop)
        events += taken(past, 7)
        publish(client, 9)
        events += taken(past, 1)
        assert [event.attributes["n"] for event in events] == list(range(10))


def test_what_the_broker_had_to_drop_is_read_where_it_belongs(connect: Any, fake: Fake) -> None:
    broker = fake.thing
    with connect(broker.address) as client:
        past = client.subscribe("a", start="start")
        publish(client, 0, 1)
        deliver, broker._route = broker._route, lambda batch, base: broker.batches.append(batch)  # type: ignore[method-assign]
        publish(client, 2, 3)
        broker._route = deliver  # type: ignore[method-assign]
        fake.call(lambda broker: broker.say(Gap(past.number, 2, "slow consumer")))
        publish(client, 4)
        assert [event.attributes["n"] for event in taken(past, 5)] == list(range(5))
        assert not past.gaps and past.lost == 0
