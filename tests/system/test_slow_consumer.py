"""One of fifty subscribers stops reading. The others get everything; it gets what fits and a true count of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

import headgate
from headgate.broker.core import Node
from headgate.broker.daemon.limits import DEFAULT_LIMITS, DaemonLimits
from headgate.protocol.aio import Client, Subscription
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Credit, Deliver, Gap, Goodbye, Message
from tests.support.live_broker import LiveBroker, live_broker
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_until

SUBSCRIBERS = 50
BATCHES = 100
EVENTS = 10
BODY = b"x" * 16 * 1024
PUBLISHED = BATCHES * EVENTS
OUTBOX_BYTES = 512 * 1024


class Scene:
    """A broker, 49 who read, one who does not, and a publisher."""

    def __init__(self, broker: LiveBroker, stalled: RawClient, publisher: Client) -> None:
        self.broker = broker
        self.stalled = stalled
        self.publisher = publisher
        self.readers: list[tuple[Client, Subscription]] = []
        self.heard: list[list[object]] = []

    @property
    def node(self) -> Node:
        return self.broker.daemon.node

    async def publish(self) -> None:
        """Everything, watching the bounds after each batch."""
        for batch in range(BATCHES):
            numbers = list(range(batch * EVENTS, (batch + 1) * EVENTS))
            await self.publisher.publish_batch("news/today", {"number": numbers}, [BODY] * EVENTS)
            self.node.validate()
            assert self.node.statistics(0).outbox_bytes <= OUTBOX_BYTES

    async def read(self, place: int) -> None:
        """One of the 49."""
        async for event in self.readers[place][1]:
            self.heard[place].append(event.attributes["number"])

    async def others_got_everything(self) -> None:
        """Exactly, in order, over one connection, without a gap."""
        await wait_until(lambda: min(map(len, self.heard)) >= PUBLISHED)
        assert self.heard == [list(range(PUBLISHED))] * (SUBSCRIBERS - 1)
        assert {(client.lost, client.reconnects) for client, _ in self.readers} == {(0, 0)}


@asynccontextmanager
async def scene(policy: str, credit: int = 1_000_000, limits: DaemonLimits = DEFAULT_LIMITS) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(live_broker(limits, slow_consumer=policy, outbox_bytes=OUTBOX_BYTES))
        stalled = await RawClient.greeted(broker.address, credit=credit, name="stalled")
        stack.push_async_callback(stalled.close)
        await stalled.subscribe(1, "news")
        publisher = await stack.enter_async_context(await headgate.connect(broker.address, name="publisher"))
        found = Scene(broker, stalled, publisher)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        reading = []
        for place in range(SUBSCRIBERS - 1):
            client = await headgate.connect(broker.address, name=f"reader {place}")
            found.readers.append((client, await client.subscribe("news")))
            found.heard.append([])
            reading.append(group.create_task(found.read(place)))
        yield found
        for client, _ in found.readers:
            await client.close()
        await asyncio.wait(reading)


async def rest_of(client: RawClient, events: int) -> list[Message]:
    """What comes until deliveries and gaps add up to so many events, credit given as it goes."""
    heard: list[Message] = []
    delivered = gaps = 0
    while delivered + gaps < events:
        message = await client.hear()
        heard.append(message)
        if isinstance(message, Deliver):
            delivered += message.portion.count
            await client.say(Credit(delivered + 1000, delivered))
        elif isinstance(message, Gap):
            assert message.subscription == 1
            gaps += message.count
    return heard


def numbers_of(heard: list[Message]) -> list[int]:
    """The places in the broker's sequence of all that was delivered."""
    portions = [message.portion for message in heard if isinstance(message, Deliver)]
    return [portion.base + row for portion in portions for row in portion.rows()]


@pytest.mark.parametrize("credit", [1_000_000, 25], ids=["its socket is full", "its credit is used up"])
async def test_the_oldest_are_dropped_and_counted_exactly(credit: int) -> None:
    async with scene("drop", credit) as found:
        await found.publish()
        await found.others_got_everything()
        dropped = found.node.statistics(0).drops["slow"]
        assert dropped > 0, "the stall must have been long enough to matter"
        heard = await rest_of(found.stalled, PUBLISHED)
        gaps = [message for message in heard if isinstance(message, Gap)]
        assert sum(gap.count for gap in gaps) == dropped == found.node.statistics(0).drops["slow"]
        assert {gap.reason for gap in gaps} == {"slow consumer"}
        numbers = numbers_of(heard)
        assert len(numbers) == len(set(numbers)) == PUBLISHED - dropped
        assert numbers == sorted(numbers)
        assert numbers[-EVENTS:] == list(range(PUBLISHED - EVENTS, PUBLISHED)), "the newest are kept"
        assert found.node.statistics(0).outbox_bytes == 0
        await found.publisher.publish("news/today", {"number": 0})
        assert (await found.stalled.hear_a(Deliver)).portion.count == 1


async def test_or_the_slow_one_is_disconnected() -> None:
    async with scene("disconnect", limits=DaemonLimits(close_seconds=30.0)) as found:
        await found.publish()
        await found.others_got_everything()
        heard = await found.stalled.hear_the_end()
        assert isinstance(heard[-1], Goodbye) and heard[-1].code == ErrorCode.SLOW_CONSUMER
        numbers = numbers_of(heard)
        assert numbers == list(range(len(numbers))) and len(numbers) < PUBLISHED
        found.node.validate()
        assert {session.name for session in found.node.subscribers.by_link.values()} >= {"publisher", "reader 48"}
