"""A client that knows several brokers loses one: both kinds of client go on with another, and tell of the gap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headgate.protocol.aio import connect
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.errors import UnknownOutcome
from headgate.protocol.messages import Gap
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]
SECONDS = 5.0


async def until(predicate: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not predicate():
            await asyncio.sleep(0)


async def test_the_asyncio_client_moves_with_all_that_it_has() -> None:
    told: list[Gap] = []
    async with fake_broker("ann") as ann, fake_broker("bob") as bob:
        both = f"{ann.address},{bob.address}"
        async with await connect(both, shuffle=False, linger_seconds=0) as client:
            assert (client.broker, client.address, client.addresses) == ("ann", ann.address, tuple(both.split(",")))
            subscription = await client.subscribe("a", on_gap=told.append)
            ann.acknowledging = False
            sent = client.publish_soon("a", {"n": 1})
            await ann.until(lambda: ann.published)
            assert (await anext(subscription)).attributes == {"n": 1}
            closing = asyncio.ensure_future(ann.close())
            await until(lambda: not client.connected)
            late = client.publish_soon("a", {"n": 2})
            await closing
            with pytest.raises(UnknownOutcome):
                await sent
            await late
            await subscription.until_confirmed()
            assert (client.broker, client.address, client.reconnects) == ("bob", bob.address, 1)
            await client.publish("a", {"n": 3})
            # What was published without knowing of the new subscription is not what the test is about.
            numbers = [(await anext(subscription)).attributes["n"]]
            while numbers[-1] != 3:
                numbers.append((await anext(subscription)).attributes["n"])
            assert [batch.column("n") for batch in ann.batches] == [[1]], "nothing is sent a second time"
            assert [batch.column("n") for batch in bob.batches] == [[2], [3]]
            assert [(gap.subscription, gap.count) for gap in told] == [(subscription.number, 0)]
            assert "moved to another broker, bob" in told[0].reason
            assert list(subscription.gaps) == told


@pytest.mark.slow
def test_the_blocking_client_moves_with_all_that_it_has() -> None:
    told: list[Gap] = []
    with in_thread(lambda: fake_broker("ann")) as ann, in_thread(lambda: fake_broker("bob")) as bob:
        both = f"{ann.thing.address},{bob.thing.address}"
        with connect_blocking(both, shuffle=False, linger_seconds=0) as client:
            assert (client.broker, client.address) == ("ann", ann.thing.address)
            subscription = client.subscribe("a", on_gap=told.append)
            client.publish("a", {"n": 1})
            ann.thing.acknowledging = False
            client.publish_soon("a", {"n": 2})
            ann.run(ann.thing.until(lambda: len(ann.thing.published) == 2))
            ann.run(ann.thing.close())
            with pytest.raises(UnknownOutcome):
                client.flush()
            assert subscription.until_confirmed(SECONDS)
            client.publish("a", {"n": 3})
            numbers = [event.attributes["n"] for event, _ in zip(subscription.events(SECONDS), range(3), strict=False)]
            assert numbers == [1, 2, 3]
            assert (client.broker, client.address, client.reconnects) == ("bob", bob.thing.address, 1)
            assert [batch.column("n") for batch in bob.thing.batches] == [[3]]
            assert [(gap.subscription, gap.count) for gap in told] == [(subscription.number, 0)]
            assert "moved to another broker, bob" in told[0].reason
