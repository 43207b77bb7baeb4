"""Subscriptions of the asyncio client: iterating, gaps, credit, the end."""

from __future__ import annotations

import asyncio

import pytest

from headgate.protocol.aio import Client, connect
from headgate.protocol.errors import LocalError
from headgate.protocol.limits import CREDIT_DEFAULT
from headgate.protocol.messages import Gap
from tests.support.fake_broker import fake_broker


async def publish_numbers(client: Client, topic: str, count: int) -> None:
    await client.publish_batch(topic, {"number": list(range(count))}, [b""] * count)


async def test_events_come_in_order_with_all_their_parts() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a/b")
        await client.publish("a/b", {"x": 1}, b'{"k": [1]}', content_type="application/json")
        event = await anext(subscription)
        assert (event.id, event.time, event.topic, event.attributes) == ("fake.1", 1.0, "a/b", {"x": 1})
        assert (event.json(), event.text, event.content_type) == ({"k": [1]}, '{"k": [1]}', "application/json")
        assert event.subscription == subscription.number == 1
        assert (subscription.pattern, subscription.where) == ("a/b", "")
        await publish_numbers(client, "a/b", 3000)
        numbers = [(await anext(subscription)).attributes["number"] for _ in range(3000)]
        assert numbers == list(range(3000))


async def test_breaking_off_a_loop_loses_nothing() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a")
        await publish_numbers(client, "a", 10)
        async for event in subscription:
            if event.attributes["number"] == 3:
                break
        rest = [event.attributes["number"] for event in await anext(subscription.batches())]
        while rest[-1] != 9:
            rest += [event.attributes["number"] for event in await anext(subscription.batches())]
        assert rest == [4, 5, 6, 7, 8, 9]


async def test_a_busy_loop_lets_others_have_their_turn() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a")
        await publish_numbers(client, "a", 4000)
        await asyncio.sleep(0)
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        for _ in range(4000):
            await anext(subscription)
        task.cancel()
        await asyncio.wait([task])
        assert turns >= 2


async def test_credit_follows_consumption_and_stops_with_it() -> None:
    async with fake_broker() as fake, await connect(fake.address, credit=100) as client:
        assert fake.hellos[0].credit == 100 < CREDIT_DEFAULT
        subscription = await client.subscribe("a")
        await publish_numbers(client, "a", 80)
        await client.ask("status")
        assert fake.session.credits == []
        for _ in range(80):
            await anext(subscription)
        await fake.until(lambda: fake.session.credits)
        credit = fake.session.credits[-1]
        assert credit.received == 80
        assert 150 <= credit.allowed <= 180


async def test_gaps_are_counted_kept_and_told() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        told: list[Gap] = []
        first = await client.subscribe("a", on_gap=told.append)
        second = await client.subscribe("b")
        fake.say(Gap(1, 5, "slow consumer"), Gap(0, 2, "the connection was lost"))
        await client.ask("status")
        await asyncio.sleep(0)
        assert (first.lost, second.lost, client.lost) == (5, 0, 7)
        assert [gap.count for gap in first.gaps] == [gap.count for gap in told] == [5, 2]
        assert [gap.reason for gap in second.gaps] == ["the connection was lost"]


async def test_closing_ends_the_loop_and_the_subscription() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        async with await client.subscribe("a") as subscription:
            waiting = asyncio.ensure_future(anext(subscription, None))
            await asyncio.sleep(0)
        assert await waiting is None
        assert not fake.session.subscriptions
        await client.publish("a")
        assert [batch async for batch in subscription.batches()] == []
        await subscription.close()


async def test_closing_the_client_ends_the_loop() -> None:
    async with fake_broker() as fake:
        client = await connect(fake.address)
        subscription = await client.subscribe("a")
        waiting = asyncio.ensure_future(anext(subscription, None))
        await asyncio.sleep(0)
        await client.close()
        assert await waiting is None
        await subscription.close()


async def test_ack_is_refused_with_advice() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a")
        await client.publish("a")
        with pytest.raises(LocalError, match="durable"):
            await (await anext(subscription)).ack()


async def test_options_travel_as_they_were_set() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await client.subscribe("a", "x > 1", exact=True, durable="d", start="now", ordered=True)
        await client.subscribe("b")
        first, second = fake.session.subscriptions.values()
        assert first.condition == "x > 1"
        assert first.options == {"exact": True, "durable": "d", "from": "now", "ordered": True}
        assert second.options == {}


async def test_what_one_turn_of_the_loop_acknowledges_is_one_ack() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a", durable="d")
        for first in (7, 8, 9, 20):
            fake.hand(1, first, ["x"])
        events = [await anext(subscription) for _ in range(4)]
        for event in events:
            await event.ack()
        assert await subscription.acked()
        assert [ack.spans for ack in fake.acks] == [[7, 9, 20, 20]]


async def test_a_loop_over_many_events_acknowledges_in_few_acks() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a", durable="d")
        fake.hand(1, 1, ["x"] * 3000)
        count = 0
        async for event in subscription:
            await event.ack()
            count += 1
            if count == 3000:
                break
        assert await subscription.acked()
        assert sum(ack.spans[1] - ack.spans[0] + 1 for ack in fake.acks) == 3000
        assert len(fake.acks) < 10
