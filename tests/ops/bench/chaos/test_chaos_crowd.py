"""Readers and publishers of chaos, with a live broker: what they write into the books."""

from __future__ import annotations

import asyncio

from headgate.ops.bench.chaos.content import Wish, wanted
from headgate.ops.bench.chaos.crowd import Books, Publisher, Reader
from headgate.ops.bench.chaos.ledger import Fate, Told, Watch, judge
from headgate.protocol.messages import Gap
from tests.support.live_broker import live_broker
from tests.support.waiting import wait_until

WISHES = [Wish("orders", ""), Wish("quotes", "price < 50"), Wish("sensors", "volume % 2 = 0")]


async def publish(publisher: Publisher, count: int) -> None:
    for _ in range(count):
        publisher.publish()
    await wait_until(lambda: publisher.waiting == 0)


async def test_what_is_published_is_read_and_the_books_balance() -> None:
    books = Books(seed=3)
    async with live_broker() as broker:
        reader = Reader("reader", "test", broker.address, 5.0, books)
        publisher = Publisher("publisher", "test", broker.address, 5.0, books)
        watches = reader.wants(WISHES)
        await asyncio.gather(reader.begin(), publisher.begin())
        assert reader.in_force and not reader.away and not publisher.away
        await publish(publisher, 60)
        assert {event.fate for event in books.events} == {Fate.ACCEPTED}
        assert {event.broker for event in books.events} == {"test"}
        numbers = wanted(3, 60, WISHES)
        await wait_until(lambda: [sorted(watch.seen) for watch in watches] == numbers)
        await publisher.end()
        await reader.end()
    account = judge(watches, numbers, books.events, [], 0)
    assert account.kept and account.calm_wanted == account.delivered > 30
    assert not reader.in_force and books.gave_up == []


async def test_whoever_is_not_at_home_can_go_there() -> None:
    books = Books(seed=3)
    async with live_broker(name="ann") as ann, live_broker(name="bob") as bob:
        reader = Reader("reader", "bob", f"{ann.address},{bob.address}", 5.0, books)
        publisher = Publisher("publisher", "bob", f"{ann.address},{bob.address}", 5.0, books)
        (watch,) = reader.wants(WISHES[:1])
        await asyncio.gather(reader.begin(), publisher.begin())
        assert reader.away and publisher.away
        for client in (reader, publisher):
            client._addresses = bob.address
            await client.come_home()
            assert not client.away
        assert [broker for _, _, broker in watch.in_force] == ["ann"] and watch.broker == "bob"
        await publisher.end()
        await reader.end()


async def test_a_lost_broker_ends_what_is_owed_with_its_fault_and_a_move_begins_it_again() -> None:
    moments = iter(range(100, 1000))
    books = Books(seed=3, clock=lambda: float(next(moments)))
    async with live_broker(name="bob") as bob:
        async with live_broker(name="ann", drain_seconds=0.0) as ann:
            reader = Reader("reader", "ann", f"{ann.address},{bob.address}", 5.0, books)
            (watch,) = reader.wants(WISHES[:1])
            await reader.begin()
            books.fault("ann", "kill")
            lost_at, _ = books.faults["ann"]
        await wait_until(lambda: watch.broker == "bob" and reader.in_force)
        assert [(last, broker) for _, last, broker in watch.in_force] == [(lost_at, "ann")]
        ((kind, seconds),) = books.moves
        assert kind == "kill" and seconds > 0
        await reader.end()


async def test_gaps_are_noted_with_their_counts() -> None:
    books = Books(seed=3, clock=lambda: 7.0)
    async with live_broker() as broker:
        reader = Reader("reader", "test", broker.address, 5.0, books)
        (watch,) = reader.wants(WISHES[:1])
        await reader.begin()
        assert reader.client is not None
        conversation = reader.client._conversation
        for gap in (Gap(1, 3, "slow"), Gap(0, 2, "a link failed"), Gap(0, 0, "nobody knows")):
            conversation.handle(gap)
        await wait_until(lambda: len(watch.told) == 3)
        assert watch.told == [Told(7.0, 3), Told(7.0, 2), Told(7.0, 0)]
        assert reader.in_force, "none of them means that it moved"
        await reader.end()


def test_a_broker_is_lost_by_its_fault_or_when_the_client_noticed() -> None:
    books = Books(seed=1, clock=lambda: 50.0)
    assert books.lost_at("ann", 40.0, 60.0) == (60.0, "nothing")
    books.fault("ann", "stop")
    assert books.lost_at("ann", 40.0, 60.0) == (50.0, "stop")
    assert books.lost_at("ann", 55.0, 60.0) == (60.0, "nothing"), "that fault was before it came"
    assert books.lost_at("bob", 40.0, 60.0) == (60.0, "nothing")


def test_a_watch_that_never_began_has_no_end() -> None:
    watch = Watch("reader.0")
    watch.ends(5.0)
    assert watch.in_force == [] and watch.history() == "in force never; told of nothing"
