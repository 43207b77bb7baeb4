"""The blocking client: the same verbs and outcomes, one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice

import pytest

from headgate.protocol.blocking import connect_blocking
from headgate.protocol.client import ClientLimits
from headgate.protocol.errors import ConnectionLost, LocalError, UnknownOutcome
from headgate.protocol.messages import Interest
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.limited import connect_blocking_limited
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


def test_soon_fills_batches_and_flush_waits(fake: Fake) -> None:
    with connect_blocking(fake.thing.address, linger_seconds=60, batch_events=4) as client:
        for number in range(10):
            client.publish_soon("a", {"number": number})
        client.flush()
        assert [batch.count for batch in fake.thing.batches] == [4, 4, 2]


def test_the_linger_is_over_at_the_next_call_after_it(fake: Fake) -> None:
    now = [0.0]
    with connect_blocking(fake.thing.address, linger_seconds=5) as client:
        client.clock = lambda: now[0]
        client.publish_soon("a")
        client.publish_soon("a")
        now[0] = 5.0
        client.publish_soon("a")
        client.ask("status")
        assert [batch.count for batch in fake.thing.batches] == [3]


def test_more_than_fits_waits_for_room(fake: Fake) -> None:
    with connect_blocking_limited(fake.thing.address, ClientLimits(queue_bytes=2000), linger_seconds=0) as client:
        for _ in range(100):
            client.publish_soon("a", None, b"x" * 300)
        client.ready()
        client.publish_batch("a", None, [b"x" * 500] * 20)
        client.flush()
        assert fake.thing.events == 120


def test_large_events_go_through_a_small_socket(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a")
        client.publish_batch("a", None, [b"x" * 1_000_000] * 12)
        assert sum(len(event.body) for event in islice(subscription, 12)) == 12_000_000


def test_a_resumed_session_loses_and_doubles_nothing(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a")
        client.publish("a", {"number": 0})
        fake.call(FakeBroker.drop)
        client.publish("a", {"number": 1})
        assert client.reconnects == 1
        assert [next(subscription).attributes["number"] for _ in range(2)] == [0, 1]
        assert fake.thing.hellos[1].session == fake.thing.session.key


def test_seconds_bound_a_call_and_not_what_was_published(fake: Fake) -> None:
    with connect_blocking(fake.thing.address, linger_seconds=0) as client:
        fake.run(fake.thing.close())
        for call in (
            lambda: client.publish("a", {"x": 1}, seconds=0.01),
            lambda: client.publish_batch("a", {"x": [2, 3]}, [b"", b""], seconds=0.01),
            lambda: client.flush(0.01),
        ):
            with pytest.raises(UnknownOutcome, match="they go out when a broker answers"):
                call()
        with pytest.raises(ConnectionLost, match=r"no answer within 0\.01 seconds"):
            client.ask("status", seconds=0.01)
        fake.run(fake.thing.listen())
        client.flush(20)
        assert sorted(batch.column("x") for batch in fake.thing.batches)[-2:] == [[1], [2, 3]]
        assert client.ask("status", seconds=20) == {"name": "fake"}


def together(*works: Callable[[], object]) -> list[object]:
    """What each came to in a thread of its own: its value, or its error."""
    found: list[object] = [None] * len(works)

    def run(place: int, work: Callable[[], object]) -> None:
        try:
            found[place] = work()
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=one) for one in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    return found


def test_threads_share_a_client(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:

        def one(thread: int) -> list[object]:
            with client.subscribe(f"a/{thread}") as subscription:
                for number in range(100):
                    client.publish_soon(f"a/{thread}", {"number": number})
                    if number % 10 == 0:
                        client.publish(f"a/{thread}", {"number": -1})
                client.flush()
                assert client.ask("status") == {"name": "fake"}
                return [event.attributes["number"] for event in islice(subscription, 110)]

        for found in together(*(partial(one, thread) for thread in range(6))):
            assert isinstance(found, list), found
            assert [number for number in found if number != -1] == list(range(100))
        assert client.reconnects == 0


def test_threads_share_a_subscription(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a")

        def some() -> list[object]:
            return [event.attributes["number"] for event in subscription.events(seconds=0.2)]

        def all_of_them() -> None:
            for number in range(300):
                client.publish("a", {"number": number})

        *found, none = together(some, some, some, all_of_them)
        assert none is None
        assert sorted(chain.from_iterable(found)) == list(range(300))  # type: ignore[arg-type]


def test_another_thread_may_close_it(fake: Fake) -> None:
    client = connect_blocking(fake.thing.address)
    subscription = client.subscribe("a")

    def close() -> None:
        fake.run(fake.thing.until(lambda: fake.thing.asked))
        client.close()

    taken, asked, closed = together(lambda: list(subscription), lambda: client.ask("silence"), close)
    assert (taken, closed) == ([], None)
    assert isinstance(asked, ConnectionLost) and "closed" in str(asked)
    with pytest.raises(LocalError, match="closed"):
        client.publish("a")


def test_a_client_that_polls_for_its_broker_can_be_closed(fake: Fake) -> None:
    client = connect_blocking(fake.thing.address, linger_seconds=0)
    fake.run(fake.thing.close())
    lost = threading.Event()
    client._telling._on_disconnected = lambda reason: lost.set()

    def close() -> None:
        lost.wait(20)
        client.close()

    found = together(lambda: client.publish("a"), close)
    assert any(isinstance(one, ConnectionLost | UnknownOutcome) for one in found)


def test_a_closed_client_says_so(fake: Fake) -> None:
    client = connect_blocking(fake.thing.address, linger_seconds=60)
    client.publish_soon("a")
    client.close()
    client.close()
    assert fake.thing.events == 1
    with pytest.raises(LocalError, match="closed"):
        client.publish("a")


def test_close_without_a_connection_tells_what_was_lost_with_it(fake: Fake) -> None:
    client = connect_blocking(fake.thing.address, linger_seconds=60)
    fake.run(fake.thing.close())
    client.publish_soon("a")
    client._link.turn(1.0)
    assert not client.connected
    with pytest.raises(ConnectionLost):
        client.close()
    client.close()


def test_what_brokers_filter_on_is_known_when_they_have_said_it(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        assert client.interest("quotes") is None
        fake.call(lambda broker: broker.say(Interest("quotes", ["price"])))
        client.ask("status")
        assert client.interest("quotes") == ["price"]
