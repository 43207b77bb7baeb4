"""Subscriptions of the asyncio client that begin in the past: each event once, then what comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from headgate.protocol.aio import Client, Event, Subscription, connect
from headgate.protocol.client import ClientLimits, Replay, Replaying
from headgate.protocol.errors import LocalError
from headgate.protocol.messages import Hold
from tests.support.fake_broker import fake_broker
from tests.support.limited import connect_limited

LOOKING_OFTEN = ClientLimits(replay_poll_seconds=0.01)


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


async def until(predicate: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not predicate():
            await asyncio.sleep(0)


async def test_one_whose_client_is_closed_while_it_reads_ends() -> None:
    async with fake_broker() as fake:
        client = await connect_limited(fake.address, ClientLimits(replay_near_events=0))
        await publish(client, *range(9))
        past = await client.subscribe("a", start="start")
        events: list[Event] = []

        async def read() -> str:
            async for event in past:
                events.append(event)
            return "to its end"

        first = await anext(past)
        reading = asyncio.ensure_future(read())
        await asyncio.sleep(0)
        await client.close()
        assert await reading == "to its end" and len([first, *events]) < 9
        with pytest.raises(LocalError, match="closed"):
            await past.until_confirmed()


async def test_what_was_delivered_need_not_wait_for_a_broker_to_be_back() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        past = await client.subscribe("a", start="now")
        await past.until_confirmed()
        waiting = asyncio.ensure_future(anext(past))
        await publish(client, 0)
        assert (await waiting).attributes["n"] == 0
        await publish(client, 1)
        await fake.close()
        async with asyncio.timeout(5):
            while client.connected:
                await asyncio.sleep(0)
            assert past._replaying is not None
            past._replaying._replay.away = ("bob",)
            past._replaying._rests_until = 0.0
            assert (await anext(past)).attributes["n"] == 1
        await fake.listen()


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


async def test_a_silence_says_something_although_another_one_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = ClientLimits(replay_quiet_seconds=0.01)
    silences: list[Replay] = []
    monkeypatch.setattr(Replay, "was_quiet", lambda replay: silences.append(replay))
    async with fake_broker() as fake, await connect_limited(fake.address, limits, credit=10) as client:
        past, unread = await client.subscribe("a", start="now"), await client.subscribe("b")
        waiting = asyncio.ensure_future(anext(past))
        await until(lambda: silences)
        await client.publish_batch("b", None, [b""] * 10)
        await fake.until(lambda: unread.full)  # so the window is not used up any more
        silences.clear()
        await until(lambda: silences)
        await take(unread, 10)
        await fake.until(lambda: len(fake.session.holds) == 2)
        assert fake.session.holds == [Hold(2, True), Hold(2, False)] and not unread.full
        waiting.cancel()


async def test_who_waits_for_a_confirmation_is_woken_by_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ClientLimits(replay_quiet_seconds=0.0)
    async with fake_broker() as fake, await connect_limited(fake.address, limits) as client:
        past = await client.subscribe("a", start="now")
        fake.acknowledging = False
        fake.forget()
        fake.drop()
        await fake.until(lambda: fake.sessions and fake.session.subscriptions)
        rests: list[float] = []
        monkeypatch.setattr(Replaying, "rested", lambda _, seconds: rests.append(seconds))
        waiting = asyncio.ensure_future(past.until_confirmed())
        for _ in range(10):
            await client.ask("status")
        assert not past.confirmed and not waiting.done() and not rests
        waiting.cancel()
