"""Link: dialling, failing to, and dialling again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from headgate.protocol.addresses import Addresses
from headgate.protocol.aio import connect
from headgate.protocol.aio.link import Link
from headgate.protocol.aio.receipt import Receipt
from headgate.protocol.client import ClientLimits, ClientOptions, Conversation, Retry
from headgate.protocol.errors import CannotConnect, ConnectionLost, ErrorCode, LocalError, ProtocolViolation
from headgate.protocol.messages import Error, Goodbye, Scope
from tests.support.fake_broker import fake_broker


class Linked:
    """A link, and what it says."""

    def __init__(self, address: str, retry_seconds: float = 10.0, limits: ClientLimits | None = None) -> None:
        self.conversation = Conversation(ClientOptions(limits=limits or ClientLimits()), Receipt)
        self.changed = asyncio.Event()
        self.link = Link(
            Addresses(address, lambda: 0.0, shuffle=False),
            self.conversation,
            Retry(retry_seconds, lambda: 0.0),
            time.monotonic,
            self.changed.set,
        )

    async def until_failed(self) -> None:
        await self.until(lambda: self.link.failure is not None)

    async def until(self, predicate: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not predicate():
                self.changed.clear()
                await self.changed.wait()


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


async def test_nobody_there_is_said_after_one_attempt() -> None:
    async with fake_broker() as fake:
        await fake.close()
        with pytest.raises(CannotConnect, match="is a broker running there") as caught:
            await Linked(fake.address).link.open(0)
        assert caught.value.address == fake.address


async def test_it_may_wait_for_a_broker_to_come() -> None:
    async with fake_broker() as fake:
        await fake.close()
        linked = Linked(fake.address)
        opening = asyncio.ensure_future(linked.link.open(10))
        await asyncio.sleep(0)
        await fake.listen()
        await opening
        await linked.link.close()


async def test_an_address_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(LocalError):
        Linked("a:b:c")


async def test_a_broker_that_never_answers_is_given_up() -> None:
    async with fake_broker() as fake:
        fake.silent = True
        with pytest.raises(CannotConnect, match="no answer within"):
            await Linked(fake.address, limits=ClientLimits(handshake_seconds=0.05)).link.open(0)


async def test_a_broker_that_hangs_up_in_the_handshake_is_no_broker() -> None:
    async with fake_broker() as fake:
        fake.silent = True
        opening = asyncio.ensure_future(Linked(fake.address).link.open(0))
        await fake.until(lambda: fake.hellos)
        fake.drop()
        with pytest.raises(CannotConnect):
            await opening


async def test_an_end_that_dialling_would_repeat_is_final() -> None:
    async with fake_broker() as fake:
        linked = Linked(fake.address)
        await linked.link.open(0)
        fake.say(Error(ErrorCode.REPLACED, Scope.CONNECTION, 0, "another one has this session"))
        await linked.until_failed()
        assert isinstance(linked.link.failure, ProtocolViolation)
        assert len(fake.hellos) == 1


async def test_a_goodbye_of_the_broker_is_a_reason_to_come_back() -> None:
    async with fake_broker() as fake:
        linked = Linked(fake.address)
        await linked.link.open(0)
        fake.say(Goodbye(ErrorCode.SHUTTING_DOWN, "restarting"))
        await fake.until(lambda: len(fake.hellos) == 2)
        while not linked.link.connected:
            linked.changed.clear()
            await linked.changed.wait()
        assert fake.hellos[1].session == fake.session.key
        await linked.link.close()


async def test_the_budget_ends_the_attempts() -> None:
    async with fake_broker() as fake:
        linked = Linked(fake.address, retry_seconds=0.04)
        await linked.link.open(0)
        await fake.close()
        await linked.until_failed()
        assert isinstance(linked.link.failure, ConnectionLost)


async def test_closing_ends_the_attempts() -> None:
    async with fake_broker() as fake:
        linked = Linked(fake.address)
        await linked.link.open(0)
        await fake.close()
        while linked.link.connected:
            linked.changed.clear()
            await linked.changed.wait()
        await linked.link.close()


async def test_of_several_brokers_the_first_that_answers_is_taken() -> None:
    async with fake_broker("ann") as ann, fake_broker("bob") as bob:
        await ann.close()
        linked = Linked(f"{ann.address},{bob.address}")
        await linked.link.open(0)
        assert (linked.conversation.broker, linked.link.addresses.last) == ("bob", bob.address)
        await linked.link.close()
        await bob.close()
        with pytest.raises(CannotConnect, match="is a broker running there") as caught:
            await Linked(f"{ann.address},{bob.address}").link.open(0)
        assert caught.value.address == f"{ann.address},{bob.address}"


async def test_a_broker_that_hangs_is_passed_over() -> None:
    async with fake_broker("ann") as ann, fake_broker("bob") as bob:
        ann.silent = True
        linked = Linked(f"{ann.address},{bob.address}", limits=ClientLimits(dial_seconds=0.05))
        await linked.link.open(0)
        assert linked.conversation.broker == "bob"
        await linked.link.close()


async def test_a_lost_broker_is_asked_first_and_another_one_takes_over() -> None:
    async with fake_broker("ann") as ann, fake_broker("bob") as bob:
        linked = Linked(f"{ann.address},{bob.address}")
        await linked.link.open(0)
        ann.drop()
        await ann.until(lambda: len(ann.hellos) == 2)
        await linked.until(lambda: linked.link.reconnects == 1)
        assert (linked.conversation.broker, bob.hellos) == ("ann", [])
        await ann.close()
        await linked.until(lambda: linked.link.reconnects == 2)
        assert (linked.conversation.broker, linked.link.addresses.last) == ("bob", bob.address)
        await ann.listen()
        bob.drop()
        await linked.until(lambda: linked.link.reconnects == 3)
        assert linked.conversation.broker == "bob", "who has the session now is asked first"
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
