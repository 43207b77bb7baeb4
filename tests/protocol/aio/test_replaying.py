"""Subscriptions of the asyncio client that begin in the past: each event once, then what comes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from headgate.protocol.aio import Client, Event, Subscription, connect
from headgate.protocol.client import ClientLimits, Replay, Replaying
from headgate.protocol.errors import ConnectionLost, ErrorCode, LocalError, Refused
from headgate.protocol.messages import Gap, Hold
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.fake_broker_log import early
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


async def test_what_retention_took_is_a_gap() -> None:
    told: list[Gap] = []
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, *range(5))
        fake.log.trim(3)
        past = await client.subscribe("a", start="fake@1:1", on_gap=told.append)
        assert [event.attributes["n"] for event in await take(past, 2)] == [3, 4]
        await asyncio.sleep(0)  # the callback is the loop's to call
        assert past.lost == 2 and [gap.count for gap in told] == [2] and "retention" in told[0].reason


async def test_a_stream_without_a_log_is_subscribed_to_at_once() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        past = await client.subscribe("a", start="start")
        assert past.confirmed
        await client.publish("a", {"n": 1})
        assert [event.attributes["n"] for event in await take(past, 1)] == [1]


async def test_no_place_to_begin_is_told_at_once() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, 1)
        with pytest.raises(LocalError, match="no place to begin"):
            await client.subscribe("a", start="yesterday")
        with pytest.raises(Refused, match="ends at 1"):
            await client.subscribe("a", start=7)
        with pytest.raises(Refused, match="no log ann@1"):
            await client.subscribe("a", start="ann@1:0")
        assert fake.session.subscriptions == {} and not client._conversation._reading


async def test_one_that_is_closed_while_it_reads_ends() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, *range(9))
        past = await client.subscribe("a", start="start")
        await take(past, 1)
        await past.close()
        assert [event async for event in past] == []
        assert fake.session.subscriptions == {}


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


async def test_one_whose_client_has_lost_its_broker_says_so() -> None:
    async with fake_broker() as fake, await connect(fake.address, retry_seconds=0.0) as client:
        await publish(client, *range(9))
        past = await client.subscribe("a", start="start")
        await anext(past)
        await fake.close()
        with pytest.raises(ConnectionLost):
            await take(past, 9)
        with pytest.raises(ConnectionLost):
            await past.until_confirmed()


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


STORED = {"stream": "a", "schema": {"durability": "stored"}}


async def test_a_lost_session_is_made_up_for_from_the_log() -> None:
    told: list[Gap] = []
    async with fake_broker() as fake, await connect(fake.address) as other, await connect(fake.address) as client:
        fake.answers["schema.get"] = STORED
        await publish(other, *range(3))
        past = await client.subscribe("a", start="start", on_gap=told.append)
        events = await take(past, 3)
        await publish(other, 3, 4)
        events += await take(past, 2)
        fake.forget()
        fake.drop()
        await publish(other, *range(5, 9))
        events += await take(past, 4)
        await publish(other, 9)
        events += await take(past, 1)
        assert [event.attributes["n"] for event in events] == list(range(10))
        assert [event.position[-2:] for event in events[5:]] == [":5", ":6", ":7", ":8", ""]
        await asyncio.sleep(0)
        assert not told and not past.gaps and past.lost == 0
        assert past.begins == {"fake@1": 0}


async def test_what_the_broker_had_to_drop_is_read_where_it_belongs() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        fake.answers["schema.get"] = STORED
        past = await client.subscribe("a", start="start")
        await publish(client, 0, 1)
        deliver, fake._route = fake._route, lambda batch, base: fake.batches.append(batch)  # type: ignore[method-assign]
        await publish(client, 2, 3)
        fake._route = deliver  # type: ignore[method-assign]
        fake.say(Gap(past.number, 2, "slow consumer"))
        await publish(client, 4)
        assert [event.attributes["n"] for event in await take(past, 5)] == list(range(5))
        assert not past.gaps and past.lost == 0


async def test_a_gap_of_a_stream_in_memory_is_told() -> None:
    told: list[Gap] = []
    async with fake_broker() as fake, await connect(fake.address) as client:
        fake.answers["schema.get"] = {"stream": "a", "schema": {}}
        past = await client.subscribe("a", start="now", on_gap=told.append)
        fake.say(Gap(past.number, 2, "slow consumer"))
        await client.publish("a", {"n": 4})
        assert [event.attributes["n"] for event in await take(past, 1)] == [4]
        await asyncio.sleep(0)
        assert [gap.count for gap in told] == [2] and past.lost == 2


async def test_a_gap_that_nobody_closes_any_more_is_told() -> None:
    async with fake_broker() as fake, await connect(fake.address, retry_seconds=0.0) as client:
        past = await client.subscribe("a", start="now")
        fake.say(Gap(past.number, 2, "slow consumer"))
        await client.ask("status")
        await fake.close()
        with pytest.raises(ConnectionLost):
            await take(past, 1)
        assert past.lost == 2


async def test_brokers_that_cannot_be_reached_are_named_and_read_when_they_are_back() -> None:
    told: list[Gap] = []
    async with fake_broker() as fake, fake_broker("other") as other:
        async with await connect(other.address) as there:
            await publish(there, 1)
        rows = [{"name": one.name, "client_address": one.address, "state": "down"} for one in (fake, other)]
        fake.answers |= {"ring": {"brokers": rows, "log_copies": 1}, "schema.get": STORED}
        async with await connect_limited(fake.address, LOOKING_OFTEN) as client:
            await publish(client, 0)
            past = await client.subscribe("a", start="start", on_gap=told.append)
            assert [event.attributes["n"] for event in await take(past, 1)] == [0]
            assert [gap.reason[:30] for gap in past.gaps] == ["broker other cannot be reached"]
            rows[1]["state"] = "up"
            assert [event.position for event in await take(past, 1)] == ["other@1:0"]
            assert len(told) == 1


async def test_what_is_not_on_enough_disks_yet_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Gap] = []
    async with fake_broker() as fake, await connect_limited(fake.address, LOOKING_OFTEN) as client:
        fake.answers["schema.get"] = STORED
        await publish(client, *range(4))
        read = fake.log.read
        monkeypatch.setattr(fake.log, "read", early(2, read))
        past = await client.subscribe("a", start="start", on_gap=told.append)
        assert [event.attributes["n"] for event in await take(past, 2)] == [0, 1]
        waiting = asyncio.ensure_future(take(past, 1))
        await fake.until(lambda: told)
        await fake.until(lambda: fake.session.subscriptions)
        await publish(client, 4)
        assert [event.attributes["n"] for event in await waiting] == [4]
        assert [gap.count for gap in told] == [0] and "too few disks" in told[0].reason
        monkeypatch.setattr(fake.log, "read", read)
        assert [event.attributes["n"] for event in await take(past, 2)] == [2, 3]
        assert len(told) == 1


async def test_a_silence_says_something_although_another_one_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = ClientLimits(replay_mark_seconds=0.01, replay_quiet_seconds=0.0)
    marks: list[bool] = []
    listed = Replay.listed
    monkeypatch.setattr(Replay, "listed", lambda self, *told: (marks.append(told[3]), listed(self, *told)))
    async with fake_broker() as fake, await connect_limited(fake.address, limits, credit=10) as client:
        past, unread = await client.subscribe("a", start="now"), await client.subscribe("b")
        waiting = asyncio.ensure_future(anext(past))
        await fake.until(lambda: any(marks))
        await client.publish_batch("b", None, [b""] * 10)
        await fake.until(lambda: unread.full)  # so the window is not used up any more
        marks.clear()
        await fake.until(lambda: any(marks))
        await take(unread, 10)
        await fake.until(lambda: len(fake.session.holds) == 2)
        assert fake.session.holds == [Hold(2, True), Hold(2, False)] and not unread.full
        waiting.cancel()


async def test_a_durable_one_is_refused_before_anything_is_read() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, 1)
        fake.refusals["a"] = ErrorCode.UNSUPPORTED
        with pytest.raises(Refused):
            await client.subscribe("a", durable="mine", start="start")
        assert "logs" not in fake.asked


async def test_who_waits_for_the_confirmation_of_one_that_is_not_read_has_it_at_once() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, *range(9))
        past = await client.subscribe("a", start="start")
        assert not past.confirmed
        await past.until_confirmed()
        assert past.confirmed and len(fake.session.subscriptions) == 1
        await publish(client, 9, 10)
        events = await take(past, 11)
        await publish(client, 11)
        assert [event.attributes["n"] for event in [*events, *await take(past, 1)]] == list(range(12))


async def test_who_waits_for_a_confirmation_is_woken_by_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ClientLimits(replay_mark_seconds=0.0)
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
