"""Forks: a client says in a child of its process that it is not to be used there."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from threading import Thread

import pytest

from headgate.protocol.aio import connect
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.data import make_batch
from tests.support.fake_broker import fake_broker
from tests.support.threaded import in_thread

pytestmark = pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="processes are not forked here")

SECONDS_MAX = 20


def in_child(work: Callable[[], object]) -> str:
    """What came of it in a forked child: the class and text of an error."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS_MAX)
        try:
            told = f"fine: {work()}"
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return told


TOLD = "LocalError: this client was connected before the process was forked: connect in the child"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking while there are threads
def test_a_blocking_client_is_of_no_use_in_a_child_and_unharmed_in_its_parent() -> None:
    with in_thread(fake_broker) as fake, connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a")
        assert in_child(lambda: client.publish("a")) == TOLD
        assert in_child(lambda: client.ask("status")) == TOLD
        assert in_child(lambda: client.publish_soon("a")) == TOLD
        assert in_child(client.flush) == TOLD
        assert in_child(lambda: next(subscription)) == TOLD
        assert in_child(client.close) == "fine: None"
        client.publish("a", {"x": 1})
        assert next(subscription).attributes == {"x": 1}
        assert (client.reconnects, fake.thing.goodbyes) == (0, 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_subscription_has_is_its_parents_and_a_lock_of_another_thread_stops_no_child() -> None:
    with in_thread(fake_broker) as fake, connect_blocking(fake.thing.address) as client:
        here, past = client.subscribe("a"), client.subscribe("b", start="start")
        client.publish_batch("a", {"x": [1, 2, 3]}, [b""] * 3)
        assert next(here).attributes == {"x": 1}
        client.publish("a", {"x": 4})
        assert in_child(lambda: next(here)) == TOLD
        assert in_child(here.take) == TOLD
        reader = Thread(target=past.take)
        reader.start()
        fake.run(fake.thing.until(lambda: len(fake.thing.session.subscriptions) == 2))  # it has the lock of who reads
        assert in_child(past.take) == TOLD
        assert in_child(lambda: next(past)) == TOLD
        assert in_child(past.until_confirmed) == TOLD
        assert in_child(past.close) == "fine: None"
        client.publish("b")
        reader.join(SECONDS_MAX)
        assert [next(here).attributes["x"] for _ in range(3)] == [2, 3, 4]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_producer_says_in_a_child_that_it_is_its_parents() -> None:
    with in_thread(fake_broker) as fake, connect_blocking(fake.thing.address) as client:
        producer = client.producer("p", 1)
        fake.thing.acknowledging = False
        batch = make_batch(["a"], {"x": [1]}, [b""])
        producer.publish(batch)
        for call in (producer.flush, producer.close, lambda: producer.publish(batch)):
            assert in_child(call) == TOLD
        assert producer.failure is None and producer.waiting == 1
        fake.thing.acknowledging = True
        fake.call(lambda broker: broker.acknowledge())
        producer.flush()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_an_asyncio_client_is_of_no_use_in_a_child_and_unharmed_in_its_parent() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a")
        assert in_child(lambda: client.publish_soon("a")) == TOLD
        assert in_child(lambda: client.publish("a").send(None)) == TOLD
        assert in_child(lambda: client.ask("status").send(None)) == TOLD
        assert in_child(lambda: subscription.__anext__().send(None)) == TOLD
        assert in_child(lambda: asyncio.new_event_loop().run_until_complete(client.publish("a"))) == TOLD
        await client.publish("a", {"x": 1})
        assert (await anext(subscription)).attributes == {"x": 1}
        assert (client.reconnects, fake.goodbyes) == (0, 0)
