"""The asyncio client: batching, outcomes, reconnects with and without the session, the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headgate.protocol.aio import Client, connect
from headgate.protocol.client import ClientLimits
from headgate.protocol.errors import (
    ConnectionLost,
    ErrorCode,
    Fenced,
    LocalError,
    Refused,
    UnknownOutcome,
)
from headgate.protocol.messages import Interest
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.limited import connect_limited


async def noticed(client: Client) -> None:
    """The client knows that its connection is gone."""
    async with asyncio.timeout(10):
        while client.connected:
            await asyncio.sleep(0)


async def lost_connection(fake: FakeBroker, client: Client, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Cut the connection, do something, and wait until the client is back."""
    count = len(fake.hellos)
    fake.drop()
    await noticed(client)
    meanwhile()
    await fake.until(lambda: len(fake.hellos) > count)
    await client.ask("status")


async def test_what_is_published_in_one_turn_travels_together() -> None:
    async with fake_broker() as fake, await connect(fake.address, linger_seconds=60, batch_events=4) as client:
        for number in range(10):
            client.publish_soon("a/b", {"number": number})
        client.publish_soon("other", {"number": 10})
        await client.flush()
        assert [batch.count for batch in fake.batches] == [4, 4, 2, 1]
        assert [publish.sequence for publish in fake.published] == [1, 2, 3, 4]


async def test_an_acknowledgement_lets_the_open_batch_go() -> None:
    async with fake_broker() as fake, await connect(fake.address, linger_seconds=60) as client:
        fake.acknowledging = False
        first = client.publish_soon("a")
        await fake.until(lambda: fake.published)
        second = client.publish_soon("a")
        await client.ask("status")
        assert len(fake.published) == 1
        fake.acknowledge()
        await asyncio.gather(first.wait(), second.wait())
        assert len(fake.published) == 2


async def test_the_linger_is_over_after_its_time() -> None:
    async with fake_broker() as fake, await connect(fake.address, linger_seconds=0.001) as client:
        fake.acknowledging = False
        client.publish_soon("a")
        await fake.until(lambda: fake.published)
        client.publish_soon("a")
        await fake.until(lambda: len(fake.published) == 2)
        fake.acknowledge()


async def test_no_linger_is_no_batching() -> None:
    async with fake_broker() as fake, await connect(fake.address, linger_seconds=0) as client:
        for _ in range(5):
            client.publish_soon("a")
        await client.flush()
        assert [batch.count for batch in fake.batches] == [1] * 5


async def test_only_columns_of_interest_are_sent() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        fake.say(Interest("a", ["x"]))
        await client.ask("status")
        await client.publish("a", {"x": 1, "y": 2})
        await client.publish("b", {"x": 1, "y": 2})
        assert [(list(batch.columns), batch.complete) for batch in fake.batches] == [(["x"], False), (["x", "y"], True)]


async def test_what_is_no_event_is_refused_before_it_joins_a_batch() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        good = client.publish_soon("a")
        for topic, attributes, body in (
            ("", None, b""),
            ("a\nb", None, b""),
            ("a//b", None, b""),
            ("a/*", None, b""),
            ("a", {"x": 2**63}, b""),
            ("a", {"x": object()}, b""),
            ("a", {"": 1}, b""),
            ("a", None, "\ud800"),
            ("a", None, 5),
            ("a", None, b"x" * 1_100_000),
        ):
            with pytest.raises(LocalError):
                client.publish_soon(topic, attributes, body)  # type: ignore[arg-type]  # the 5 is meant
        with pytest.raises(LocalError):
            await client.publish("a", mode="maybe")
        await good
        assert fake.events == 1


async def test_too_much_waiting_is_refused_until_there_is_room() -> None:
    limits = ClientLimits(queue_bytes=2000)
    async with fake_broker() as fake, await connect_limited(fake.address, limits, linger_seconds=0) as client:
        fake.acknowledging = False
        with pytest.raises(LocalError, match=r"client\.ready"):
            for _ in range(100):
                client.publish_soon("a", None, b"x" * 100)
        waiting = asyncio.ensure_future(client.publish("a"))
        await client.ask("status")
        assert not waiting.done()
        fake.acknowledge()
        await client.ready()
        await waiting
        await client.publish_batch("a", None, [b"x" * 500] * 20)


async def test_a_resumed_session_loses_and_doubles_nothing() -> None:
    async with fake_broker() as fake, await connect(fake.address, linger_seconds=0) as client:
        subscription = await client.subscribe("a")
        fake.acknowledging = False
        receipts = [client.publish_soon("a", {"number": number}) for number in range(3)]
        await fake.until(lambda: len(fake.published) == 3)
        fake.session.accepted = 2
        fake.batches.pop()
        fake.acknowledging = True
        await lost_connection(fake, client, lambda: receipts.append(client.publish_soon("a", {"number": 3})))
        for receipt in receipts:
            await receipt
        assert client.reconnects == 1
        assert [publish.sequence for publish in fake.published] == [1, 2, 3, 3, 4]
        numbers = [(await anext(subscription)).attributes["number"] for _ in range(5)]
        # The script forgot that it had routed number 2: what comes twice is what was sent again.
        assert numbers == [0, 1, 2, 2, 3]
        assert fake.hellos[1].received == 3
        assert not subscription.gaps


async def test_a_lost_session_leaves_outcomes_unknown_and_subscribes_again() -> None:
    async with fake_broker() as fake, await connect(fake.address, linger_seconds=0) as client:
        subscription = await client.subscribe("a", "x > 0")
        fake.acknowledging = False
        sent = client.publish_soon("b")
        await fake.until(lambda: fake.published)
        late = []

        def meanwhile() -> None:
            fake.forget()
            fake.acknowledging = True
            late.append(client.publish_soon("a", {"x": 1}))

        await lost_connection(fake, client, meanwhile)
        with pytest.raises(UnknownOutcome) as caught:
            await sent
        assert caught.value.events == 1
        await late[0]
        assert fake.published[-1].sequence == 1
        (again,) = fake.session.subscriptions.values()
        assert (again.subscription, again.condition) == (subscription.number, "x > 0")
        assert (await anext(subscription)).attributes == {"x": 1}
        assert "session ended" in subscription.gaps[0].reason


async def test_a_subscription_that_is_refused_the_second_time_raises_in_its_loop() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a")
        fake.refusals["a"] = ErrorCode.LIMIT
        await lost_connection(fake, client, fake.forget)
        with pytest.raises(Refused):
            await anext(subscription)


async def test_requests_that_crossed_the_loss_are_answered() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        old = await client.subscribe("old")
        fake.acknowledging = False
        subscribing = asyncio.ensure_future(client.subscribe("a"))
        unsubscribing = asyncio.ensure_future(old.close())
        asking = asyncio.ensure_future(client.ask("silence"))
        await fake.until(lambda: [one.pattern for one in fake.session.subscriptions.values()] == ["a"])
        await client.ask("status")
        fake.acknowledging = True
        await lost_connection(fake, client)
        assert (await subscribing).pattern == "a"
        await unsubscribing
        with pytest.raises(ConnectionLost):
            await asking


async def test_nobody_to_be_reached_is_told_to_everybody() -> None:
    async with fake_broker() as fake:
        client = await connect(fake.address, retry_seconds=0.05, linger_seconds=0)
        subscription = await client.subscribe("a")
        fake.acknowledging = False
        sent = client.publish_soon("a")
        await fake.until(lambda: fake.published)
        assert (await anext(subscription)).topic == "a"
        await fake.close()
        await noticed(client)
        unsent = client.publish_soon("a")
        with pytest.raises(UnknownOutcome):
            await sent
        with pytest.raises(ConnectionLost):
            await unsent
        with pytest.raises(ConnectionLost):
            await anext(subscription)
        for call in (client.publish("a"), client.flush(), client.ready(), client.subscribe("a"), client.ask("x")):
            with pytest.raises(ConnectionLost):
                await call
        await subscription.close()
        await client.close()


async def test_giving_up_a_subscribe_takes_it_back() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        fake.acknowledging = False
        subscribing = asyncio.ensure_future(client.subscribe("a"))
        await fake.until(lambda: fake.session.subscriptions)
        subscribing.cancel()
        await fake.until(lambda: not fake.session.subscriptions)


async def test_close_waits_for_what_was_published_and_says_goodbye() -> None:
    async with fake_broker() as fake:
        async with await connect(fake.address, linger_seconds=60) as client:
            for _ in range(3):
                client.publish_soon("a")
        assert fake.events == 3
        assert fake.goodbyes == 1
        await client.close()
        with pytest.raises(LocalError, match="closed"):
            client.publish_soon("a")


async def test_close_without_a_connection_tells_what_was_lost_with_it() -> None:
    async with fake_broker() as fake:
        client = await connect(fake.address, linger_seconds=0)
        await fake.close()
        await noticed(client)
        client.publish_soon("a")
        with pytest.raises(ConnectionLost):
            await client.close()
        await client.close()


async def test_what_is_to_be_stored_carries_a_stamp_and_no_outcome_is_unknown() -> None:
    async with fake_broker() as fake, await connect(fake.address, linger_seconds=0, producer="me") as client:
        await client.publish("a", {"n": 0}, mode="stored")
        fake.acknowledging = False
        receipts = [client.publish_soon("a", {"n": number}, mode="stored") for number in (1, 2)]
        await fake.until(lambda: len(fake.published) == 3)

        def misfortune() -> None:
            fake.forget()
            fake.log.forget()
            fake.acknowledging = True

        await lost_connection(fake, client, misfortune)
        for receipt in receipts:
            await receipt
        await client.publish("a", {"n": 3}, mode="accepted")
        await client.publish_batch("a", {"n": [4, 5]}, [b"", b""], mode="stored")
        rows = fake.log.rows["a"]
        assert [(row.producer, row.number, row.count) for row in rows] == [
            ("me", 0, 1),
            ("me", 1, 1),
            ("me", 2, 1),
            ("me", 3, 2),
        ]
        assert fake.log.duplicates == 2 and rows[0].epoch > 1_700_000_000_000_000


async def test_the_last_one_of_a_name_shuts_out_the_others() -> None:
    async with (
        fake_broker() as fake,
        await connect(fake.address, producer="me") as first,
        await connect(fake.address, producer="me") as last,
    ):
        await first.publish("a", mode="stored")
        await last.publish("a", mode="stored")
        for _ in range(2):
            with pytest.raises(Fenced):
                await first.publish("a", mode="stored")
        await first.publish("a", mode="accepted")
        assert fake.log.end("a") == 2


async def test_without_a_name_each_client_is_somebody_new() -> None:
    async with fake_broker() as fake:
        for name in (None, None, ""):
            async with await connect(fake.address, producer=name) as client:
                await client.publish("a", mode="stored")
        first, second, third = [row.producer for row in fake.log.rows["a"]]
        assert len(first) == len(second) == 16 and first != second and third == ""
        with pytest.raises(LocalError, match="producer's name"):
            await connect(fake.address, producer="x" * 300)
