"""Link: dialling, failing to, and dialling again."""

from __future__ import annotations

import asyncio
import time

from headgate.protocol.addresses import Addresses
from headgate.protocol.aio import connect
from headgate.protocol.aio.link import Link
from headgate.protocol.aio.receipt import Receipt
from headgate.protocol.client import ClientOptions, Conversation, Retry
from tests.support.fake_broker import fake_broker


class Linked:
    """A link, and what it says."""

    def __init__(self, address: str) -> None:
        self.conversation = Conversation(ClientOptions(), Receipt)
        self.changed = asyncio.Event()
        self.link = Link(
            Addresses(address, lambda: 0.0, shuffle=False),
            self.conversation,
            Retry(10.0, lambda: 0.0),
            time.monotonic,
            self.changed.set,
        )


async def test_it_opens_and_closes_with_goodbye() -> None:
    async with fake_broker() as fake:
        linked = Linked(fake.address)
        assert not linked.link.connected
        await linked.link.open(0)
        assert linked.link.connected
        await linked.link.close()
        assert not linked.link.connected
        assert fake.goodbyes == 1
        await linked.link.close()


async def test_closing_ends_the_attempts() -> None:
    async with fake_broker() as fake:
        linked = Linked(fake.address)
        await linked.link.open(0)
        await fake.close()
        while linked.link.connected:
            linked.changed.clear()
            await linked.changed.wait()
        await linked.link.close()


async def test_a_producer_that_cannot_be_opened_yet_is_opened_a_little_later() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        fake.log.unavailable = 2
        await client.publish("a", mode="stored")
        assert fake.asked == ["producer.open"] * 3
        assert client._link._resting is None
    async with fake_broker() as fake:
        fake.log.unavailable = 100
        client = await connect(fake.address)
        receipt = client.publish_soon("a", mode="stored")
        await fake.until(lambda: fake.asked)
        await client._link.close()
        assert not receipt.settled
