"""Subscriptions of the asyncio client that begin in the past: each event once, then what comes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from protocol.aio import Client, Event, Subscription, connect
from protocol.errors import LocalError, Refused
from protocol.messages import Gap
from tests.support.asynchronous import asynchronous
from tests.support.fake_broker import FakeBroker, fake_broker


async def publish(client: Client, *numbers: int, topic: str = "a") -> None:
    for number in numbers:
        await client.publish(topic, {"n": number}, mode="stored")


async def take(subscription: Subscription, count: int) -> list[Event]:
    events: list[Event] = []
    async for event in subscription:
        events.append(event)
        if len(events) == count:
            break
    return events


@asynchronous
async def test_from_the_start_and_then_what_comes() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        live = await client.subscribe("a")
        await publish(client, *range(7))
        past = await client.subscribe("a", start="start")
        assert fake.session.subscriptions.keys() == {1}, "it reads before it subscribes"
        first = await take(past, 7)
        await publish(client, 7)
        (last,) = await take(past, 1)
        assert [event.attributes["n"] for event in [*first, last]] == list(range(8))
        assert [event.position for event in first] == [f"fake@1:{number}" for number in range(7)]
        assert last.position == "" and {event.subscription for event in first} == {past.number}
        assert [event.id for event in await take(live, 8)] == [event.id for event in [*first, last]]
        assert past.confirmed and isinstance(first[0], Event)
        await past.close()


@asynchronous
async def test_what_is_delivered_while_it_reads_comes_once() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client, await connect(fake.address) as other:
        await publish(other, *range(4))
        past = await client.subscribe("a", start="start")
        events = await take(past, 2)
        await publish(other, 4, 5)
        events += await take(past, 2)

        def deliver_again(broker: FakeBroker) -> None:
            for base, batch in enumerate(list(broker.batches), 1):
                broker._route(batch, base)

        events += await take(past, 2)
        deliver_again(fake)
        await publish(other, 6)
        events += await take(past, 1)
        assert [event.attributes["n"] for event in events] == list(range(7))


@asynchronous
async def test_from_a_position() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, *range(5))
        for start in (3, "fake@1:3"):
            events = await take(await client.subscribe("a", start=start), 2)
            assert [event.attributes["n"] for event in events] == [3, 4]
        end = await client.subscribe("a", start="fake@1:5")
        now = await client.subscribe("a", start="now")
        await publish(client, 5)
        for subscription in (end, now):
            assert [event.attributes["n"] for event in await take(subscription, 1)] == [5]


@asynchronous
async def test_exact_is_kept_to_while_it_reads() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, 0, topic="a")
        fake.log.rows["a"][0].topics = "a/b"
        await publish(client, 1, topic="a")
        fake.log.cutting = False
        events = await take(await client.subscribe("a", start="start"), 2)
        assert [event.topic for event in events] == ["a/b", "a"]
        (event,) = await take(await client.subscribe("a", exact=True, start="start"), 1)
        assert event.topic == "a"


@asynchronous
async def test_what_retention_took_is_a_gap() -> None:
    told: list[Gap] = []
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, *range(5))
        fake.log.trim(3)
        past = await client.subscribe("a", start="fake@1:1", on_gap=told.append)
        assert [event.attributes["n"] for event in await take(past, 2)] == [3, 4]
        await asyncio.sleep(0)  # the callback is the loop's to call
        assert past.lost == 2 and [gap.count for gap in told] == [2] and "retention" in told[0].reason


@asynchronous
async def test_a_stream_without_a_log_is_subscribed_to_at_once() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        past = await client.subscribe("a", start="start")
        assert past.confirmed
        await client.publish("a", {"n": 1})
        assert [event.attributes["n"] for event in await take(past, 1)] == [1]


@asynchronous
async def test_no_place_to_begin_is_told_at_once() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, 1)
        with pytest.raises(LocalError, match="no place to begin"):
            await client.subscribe("a", start="yesterday")
        with pytest.raises(Refused, match="ends at 1"):
            await client.subscribe("a", start=7)
        with pytest.raises(Refused, match="no log ann@1"):
            await client.subscribe("a", start="ann@1:0")
        assert fake.session.subscriptions == {}


@asynchronous
async def test_one_that_is_closed_while_it_reads_ends() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, *range(9))
        past = await client.subscribe("a", start="start")
        await take(past, 1)
        await past.close()
        assert [event async for event in past] == []
        assert fake.session.subscriptions == {}


@asynchronous
async def test_a_lost_connection_holds_it_up_and_nothing_more() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, *range(9))
        past = await client.subscribe("a", start="start")
        events = await take(past, 2)
        fake.drop()
        events += await take(past, 7)
        await publish(client, 9)
        events += await take(past, 1)
        assert [event.attributes["n"] for event in events] == list(range(10))


@asynchronous
async def test_who_waits_may_be_cancelled_at_any_moment() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, *range(6))
        past = await client.subscribe("a", start="start")
        numbers: list[object] = []
        turns = 0
        while len(numbers) < 6:
            waiting = asyncio.ensure_future(anext(past))
            for _ in range(turns % 200):
                await asyncio.sleep(0)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                numbers.append((await waiting).attributes["n"])
            turns += 7
        await publish(client, 6)
        numbers += [event.attributes["n"] for event in await take(past, 1)]
        assert numbers == list(range(7))
