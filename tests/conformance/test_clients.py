"""One suite over both clients, against a real broker: whoever knows one of them knows the other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headgate.protocol.client import ClientLimits
from headgate.protocol.errors import CannotConnect, ConnectionLost, ErrorCode, LocalError, Refused, UnknownOutcome
from tests.support.both_worlds import WORLDS, taken
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.live_broker import LiveBroker, live_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]


@pytest.fixture(scope="module")
def broker() -> Iterator[Threaded[LiveBroker]]:
    with in_thread(live_broker) as threaded:
        yield threaded


@pytest.fixture(params=WORLDS.values(), ids=WORLDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


@pytest.fixture
def client(kind: Any, broker: Threaded[LiveBroker]) -> Iterator[Any]:
    made = kind(broker.thing.address)
    yield made
    made.close()


def test_the_condition_decides(client: Any) -> None:
    subscription = client.subscribe("quotes/*/OTE", "price BETWEEN 8.30 AND 8.70 AND volume > 1000")
    for market, price, volume in (("NYSE", 8.5, 2000), ("NYSE", 8.9, 2000), ("ATHEX", 8.3, 1001), ("NYSE", 8.5, 1000)):
        client.publish(f"quotes/{market}/OTE", {"price": price, "volume": volume})
    client.publish("quotes/NYSE/IBM", {"price": 8.5, "volume": 2000})
    client.publish("quotes/NYSE/OTE", {"price": 8.4, "volume": 5000}, "last")
    events = taken(subscription, 3)
    assert [(event.topic, event.attributes["price"]) for event in events] == [
        ("quotes/NYSE/OTE", 8.5),
        ("quotes/ATHEX/OTE", 8.3),
        ("quotes/NYSE/OTE", 8.4),
    ]
    assert (events[-1].text, events[-1].content_type) == ("last", "text/plain")
    assert len({event.id for event in events}) == 3
    subscription.close()


def test_every_kind_of_value_comes_back_as_it_was(client: Any) -> None:
    subscription = client.subscribe("values")
    attributes = {"n": None, "t": True, "i": -(2**63), "f": 0.1, "s": "é\n", "deep": {"er": {"x": 2**63 - 1}}}
    client.publish("values/all", attributes, bytes(range(256)), content_type="application/x")
    (event,) = taken(subscription, 1)
    deep = {name: value for name, value in attributes.items() if name != "deep"}
    assert event.attributes == {**deep, "deep.er.x": 2**63 - 1}
    assert (event.body, event.content_type) == (bytes(range(256)), "application/x")


def test_patterns_match_below_unless_exact(client: Any) -> None:
    below, exact = client.subscribe("tree/a"), client.subscribe("tree/a", exact=True)
    for topic in ("tree", "tree/a", "tree/a/b", "tree/b"):
        client.publish(topic)
    client.publish("tree/a", None, b"end")
    assert [event.topic for event in taken(below, 3)] == ["tree/a", "tree/a/b", "tree/a"]
    assert [event.topic for event in taken(exact, 2)] == ["tree/a", "tree/a"]


def test_columns_and_single_events_keep_the_order_of_their_stream(client: Any) -> None:
    subscription = client.subscribe("order", "number >= 0")
    for number in range(100):
        client.publish_soon("order/single", {"number": number})
    client.publish_batch("order/batch", {"number": list(range(100, 5000))}, [b"x"] * 4900)
    client.publish_soon("order/single", {"number": 5000})
    client.flush()
    numbers = [event.attributes["number"] for event in taken(subscription, 5001)]
    assert numbers == list(range(5001))


def test_credit_smaller_than_the_traffic_still_lets_all_through(kind: Any, broker: Threaded[LiveBroker]) -> None:
    client = kind(broker.thing.address, credit=50)
    subscription = client.subscribe("credit")
    client.publish_batch("credit", {"number": list(range(3000))}, [b""] * 3000)
    assert [event.attributes["number"] for event in taken(subscription, 3000)] == list(range(3000))
    client.close()


def test_a_lost_connection_is_found_again(client: Any, broker: Threaded[LiveBroker]) -> None:
    subscription = client.subscribe("again")
    client.publish("again", {"number": 0})
    assert len(taken(subscription, 1)) == 1
    broker.call(lambda live: live.daemon.server.abort_all())
    for number in range(1, 4):
        client.publish("again", {"number": number})
    assert [event.attributes["number"] for event in taken(subscription, 3)] == [1, 2, 3]


def test_refusals_say_why(client: Any) -> None:
    for pattern, where, code in (
        ("quotes/#", None, ErrorCode.BAD_PATTERN),
        ("quotes", "price >", ErrorCode.BAD_CONDITION),
        ("*", None, ErrorCode.BAD_PATTERN),
    ):
        with pytest.raises(Refused) as caught:
            client.subscribe(pattern, where)
        assert caught.value.code == code
        assert len(caught.value.text) > 10
    with pytest.raises(Refused):
        client.ask("no such verb")
    with pytest.raises(Refused):
        client.publish("quotes", mode="stored")
    with pytest.raises(LocalError):
        client.publish("quotes//x")
    client.publish("quotes")


def test_the_broker_answers_questions(client: Any) -> None:
    assert isinstance(client.ask("status"), dict)


def test_nothing_comes_after_unsubscribing(client: Any) -> None:
    subscription, other = client.subscribe("gone"), client.subscribe("gone")
    subscription.close()
    client.publish("gone")
    assert len(taken(other, 1)) == 1


@pytest.mark.parametrize(
    ("argument", "value", "advice"),
    [
        ("retry_seconds", "30", "a number of seconds, 0 or more, or None"),
        ("retry_seconds", -1, "a number of seconds, 0 or more, or None"),
        ("retry_seconds", float("nan"), "a number of seconds"),
        ("retry_seconds", True, "a number of seconds"),
        ("wait_seconds", None, "a number of seconds, 0 or more, not None"),
        ("linger_seconds", "1", "a number of seconds"),
        ("heartbeat_seconds", None, "a number of seconds"),
        ("linger_seconds", -1, "a number of seconds, 0 or more"),
        ("credit", 1.5, "a whole number"),
        ("credit", 0, "how many deliveries may be under way, at least 1"),
        ("batch_events", 5000, "1 to 4096"),
        ("batch_events", None, "a whole number"),
        ("name", 7, "a string"),
        ("producer", b"me", "a string"),
        ("on_disconnected", 5, "a function of one string"),
        ("on_reconnected", "print", "a function of one string"),
        ("logger", "headgate", "a logging.Logger"),
    ],
)
def test_an_argument_that_is_none_is_refused_at_once(kind: Any, argument: str, value: object, advice: str) -> None:
    with pytest.raises(LocalError, match=f"{argument} is {advice}"):
        kind("127.0.0.1:1", **{argument: value})


def test_an_address_that_is_none_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(LocalError, match="an address is a string"):
        kind(7400)


def test_a_client_outlives_its_broker_and_says_what_happens(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It looks for one as long as it takes, whatever its hooks do; publishes wait for that."""
    caplog.set_level(logging.INFO, "headgate")
    told: list[str] = []

    def lost(reason: str) -> None:
        told.append("lost")
        raise ZeroDivisionError(reason)

    with in_thread(fake_broker) as fake:
        client = kind(fake.thing.address, on_disconnected=lost, on_reconnected=lambda broker: told.append(broker))
        subscription = client.subscribe("a")
        fake.run(fake.thing.close())
        publishing = threading.Thread(target=client.publish, args=("a", {"x": 1}))
        publishing.start()
        deadline = time.monotonic() + 20
        while "lost" not in told:
            assert time.monotonic() < deadline
            publishing.join(0.01)
        assert publishing.is_alive()
        fake.run(fake.thing.listen())
        publishing.join(20)
        (event,) = taken(subscription, 1)
        assert (event.attributes, told) == ({"x": 1}, ["lost", "fake"])
        client.close()
    levels = [record.levelname for record in caplog.records]
    assert levels == ["WARNING", "ERROR", "INFO"], caplog.text
    assert "trying again until a broker answers" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "connected again to broker fake" in caplog.text and "with its session" in caplog.text


def test_retry_seconds_bound_a_client_that_has_lost_its_broker(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    with in_thread(fake_broker) as fake:
        client = kind(fake.thing.address, retry_seconds=0.05)
        fake.run(fake.thing.close())
        with pytest.raises((ConnectionLost, UnknownOutcome)):
            client.publish("a")
        with pytest.raises(ConnectionLost):
            client.publish("a")
        client.close()
    assert "trying again for 0.05 seconds" in caplog.text
    assert "gave up the connection" in caplog.text


def test_closing_does_not_wait_for_a_broker_that_is_gone(kind: Any) -> None:
    with in_thread(fake_broker) as fake:
        client = kind(fake.thing.address, limits=ClientLimits(ending_seconds=0.05))
        fake.call(lambda broker: setattr(broker, "acknowledging", False))
        client.publish_soon("a")

        def close() -> None:
            with pytest.raises(UnknownOutcome):
                client.close()

        closing = threading.Thread(target=close)
        closing.start()
        fake.run(fake.thing.until(lambda: fake.thing.published))
        fake.run(fake.thing.close())
        closing.join(20)
        assert not closing.is_alive()


def test_nobody_there(kind: Any) -> None:
    with pytest.raises(CannotConnect, match="is a broker running there"):
        kind("127.0.0.1:1")


def test_a_subscription_that_is_not_taken_from_holds_up_no_other(
    kind: Any, broker: Threaded[LiveBroker], caplog: pytest.LogCaptureFixture
) -> None:
    client = kind(broker.thing.address, credit=50)
    unread, read = client.subscribe("hold/unread"), client.subscribe("hold/read")
    client.publish_batch("hold/unread", {"number": list(range(3000))}, [b""] * 3000)
    for number in range(100):
        client.publish("hold/read", {"number": number})
        assert [event.attributes["number"] for event in taken(read, 1)] == [number]
    assert unread.full and unread.stalls == 1 and not read.full
    assert "subscription 1 to hold/unread is full: " in caplog.text
    rows = client.ask("subs", stream="hold")
    assert [row["pace"] for row in rows] == ["full", "ok"]
    assert [event.attributes["number"] for event in taken(unread, 3000)] == list(range(3000))
    assert not unread.full and unread.lost == read.lost == 0
    client.close()


def test_credit_in_bytes_bounds_what_waits(kind: Any, broker: Threaded[LiveBroker]) -> None:
    client = kind(broker.thing.address, credit_bytes=20_000)
    subscription = client.subscribe("bytes")
    for number in range(50):
        client.publish("bytes", {"number": number}, b"x" * 5000)
    assert 20_000 <= subscription._inbox.bytes_waiting < 26_000
    assert [event.attributes["number"] for event in taken(subscription, 50)] == list(range(50))
    client.close()


def test_a_full_subscription_loses_the_oldest_and_is_told(kind: Any) -> None:
    with in_thread(lambda: live_broker(outbox_bytes=64 * 1024)) as small:
        client = kind(small.thing.address, credit=50)
        unread, read = client.subscribe("hold/unread"), client.subscribe("hold/read")
        for number in range(100):
            client.publish_batch("hold/unread", {"number": [number]}, [b"x" * 5000])
            client.publish("hold/read", {"number": number})
            assert [event.attributes["number"] for event in taken(read, 1)] == [number]
        found = []
        while not found or found[-1] < 99:
            found += [event.attributes["number"] for event in taken(unread, 1)]
        assert found == sorted(found) and found[-1] == 99 and unread.stalls >= 1
        assert unread.lost == 100 - len(found) > 30 and unread.gaps[0].reason == "slow consumer"
        assert read.lost == 0
        client.close()


def test_an_event_is_published_with_all_its_parts(kind: Any, fake: Fake) -> None:
    with kind(fake.thing.address, name="me", linger_seconds=60) as client:
        client.publish("a/b", {"x": 1, "deep": {"y": 2.5}}, "text")
        (batch,) = fake.thing.batches
        assert (batch.topics, batch.count, batch.complete, batch.column("deep.y")) == ("a/b", 1, True, [2.5])
        assert (client.broker, client.address, client.connected) == ("fake", fake.thing.address, True)
        assert fake.thing.hellos[0].name == "me"
    assert fake.thing.goodbyes == 1


def test_fire_returns_when_it_was_sent(kind: Any, fake: Fake) -> None:
    with kind(fake.thing.address, heartbeat_seconds=300) as client:
        fake.thing.acknowledging = False
        client.publish("a", mode="fire")
        client.publish_batch("a", None, [b"x"] * 3, mode="fire")
        client.ask("status")
        assert [publish.sequence for publish in fake.thing.published] == [0, 0]
        fake.thing.acknowledging = True


def test_columns_go_by_stream_and_in_order(kind: Any, fake: Fake) -> None:
    with kind(fake.thing.address) as client:
        client.publish_batch(["a/1", "b/1", "a/2", "b/2"], {"x": [1, 2, 3, 4]}, [b""] * 4)
        found = [(batch.topics, batch.column("x")) for batch in fake.thing.batches]
        assert found == [("a/1\na/2", [1, 3]), ("b/1\nb/2", [2, 4])]
        client.publish_batch("a", {"x": range(9000)}, [b""] * 9000)
        assert [batch.count for batch in fake.thing.batches[2:]] == [4096, 4096, 808]
        client.publish_batch("a", None, [])


def test_refusals_reach_who_waits_or_the_flush(kind: Any, fake: Fake) -> None:
    fake.thing.refusals |= {"bad": ErrorCode.BAD_TOPIC, "a/#": ErrorCode.BAD_PATTERN}
    with kind(fake.thing.address) as client:
        with pytest.raises(Refused) as caught:
            client.publish("bad")
        assert (caught.value.code, client.failure_count) == (ErrorCode.BAD_TOPIC, 0)
        client.publish_soon("bad")
        client.publish_soon("bad")
        with pytest.raises(Refused):
            client.flush()
        client.flush()
        assert client.failure_count == 2 and {type(error) for error in client.failures} == {Refused}
        with pytest.raises(Refused):
            client.publish_batch(["good", "bad"], None, [b"", b""])
        with pytest.raises(Refused, match="script"):
            client.subscribe("a/#")
        with pytest.raises(Refused, match="no verb"):
            client.ask("nonsense")
        with pytest.raises(LocalError):
            client.publish("a//b")
        client.publish("good")


def test_a_lost_session_leaves_outcomes_unknown_and_subscribes_again(kind: Any, fake: Fake) -> None:
    with kind(fake.thing.address, linger_seconds=0) as client:
        subscription = client.subscribe("a", "x > 0")
        fake.thing.acknowledging = False
        client.publish_soon("b")
        fake.run(fake.thing.until(lambda: fake.thing.published))

        def misfortune(broker: FakeBroker) -> None:
            broker.drop()
            broker.forget()
            broker.acknowledging = True

        fake.call(misfortune)
        with pytest.raises(UnknownOutcome) as caught:
            client.flush()
        assert caught.value.events == 1
        client.publish("a", {"x": 1})
        (again,) = fake.thing.session.subscriptions.values()
        assert (again.subscription, again.condition) == (subscription.number, "x > 0")
        assert taken(subscription, 1)[0].attributes == {"x": 1}
        assert len(subscription.gaps) == 1 and "session ended" in subscription.gaps[0].reason


def test_a_question_in_flight_is_lost_with_the_connection(kind: Any, fake: Fake) -> None:
    with kind(fake.thing.address) as client:

        def cut() -> None:
            fake.run(fake.thing.until(lambda: fake.thing.asked))
            fake.call(FakeBroker.drop)

        thread = threading.Thread(target=cut)
        thread.start()
        with pytest.raises(ConnectionLost):
            client.ask("silence")
        thread.join()


def test_nobody_to_be_reached_is_told_to_everybody(kind: Any, fake: Fake) -> None:
    client = kind(fake.thing.address, retry_seconds=0.05)
    subscription = client.subscribe("a")
    fake.run(fake.thing.close())
    with pytest.raises((UnknownOutcome, ConnectionLost)):
        client.publish("a")
    calls = (lambda: client.publish("a"), client.flush, client.ready, lambda: client.subscribe("a"))
    for call in (*calls, lambda: client.ask("x"), lambda: taken(subscription, 1)):
        with pytest.raises(ConnectionLost):
            call()
    subscription.close()
    client.close()
