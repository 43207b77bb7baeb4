"""Crowds, floods and storms of all resources, beside a witness; and what they leave behind: nothing."""

from __future__ import annotations

import asyncio
import gc
import resource
import tracemalloc
from pathlib import Path

import pytest

import headgate
from headgate.broker.core.limits import Limits
from headgate.broker.daemon.limits import DaemonLimits
from headgate.matching.limits import PARSED_KEPT
from headgate.protocol.data import make_batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import (
    Deliver,
    Error,
    Goodbye,
    Hello,
    Mode,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from headgate.protocol.wire import SessionLimits
from tests.support.child_broker import child_broker
from tests.support.live_broker import LiveBroker
from tests.support.raw_client import RawClient, framed
from tests.support.waiting import wait_until
from tests.support.witness import besieged

LEFT_BYTES_MAX = 4 * 1024 * 1024
"""What may be more than before a storm: caches with bounds of their own, and the witness's notes."""


async def crowd(address: str, size: int) -> list[RawClient]:
    """So many sockets that say nothing."""
    clients: list[RawClient] = []
    while len(clients) < size:
        wave = min(200, size - len(clients))
        clients += await asyncio.gather(*(RawClient.connect(address) for _ in range(wave)))
    return clients


async def ended(broker: LiveBroker, client: RawClient, others: int = 2) -> None:
    """The client says goodbye, and the broker has let go of it."""
    await client.say(Goodbye(ErrorCode.GOODBYE, ""))
    await client.close()
    await wait_until(lambda: broker.daemon.server.connections == others)


def held_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def held_objects() -> int:
    gc.collect()
    return len(gc.get_objects())


@pytest.mark.parametrize("size", [200, pytest.param(2000, marks=pytest.mark.slow)])
async def test_idle_sockets_are_cut_by_the_deadline(size: int) -> None:
    async with besieged(limits=DaemonLimits(session=SessionLimits(handshake_seconds=3))) as broker:
        clients = await crowd(broker.address, size)
        for client in clients:
            heard = await client.hear_the_end()
            assert [one.code for one in heard if isinstance(one, Error)] == [ErrorCode.TIMEOUT]
        for client in clients:
            await client.close()
        await wait_until(lambda: broker.daemon.server.connections == 2)
        assert broker.daemon.node.statistics(0).sessions == 2


async def test_a_crowd_over_connections_max_costs_nobody_inside() -> None:
    async with besieged(connections_max=50) as broker:
        inside = [await RawClient.greeted(broker.address) for _ in range(48)]
        outside = await crowd(broker.address, 300)
        heard = [await client.hear_the_end() for client in outside]
        assert all(one == [] or isinstance(one[-1], Error) for one in heard)
        assert broker.daemon.server.refused == 300
        for client in [*outside, *inside]:
            await client.close()
        await wait_until(lambda: broker.daemon.server.connections == 2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [3000, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_a_storm_of_subscriptions_leaves_nothing_behind(size: int) -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)

        async def storm(rounds: int) -> None:
            for start in range(0, rounds, 500):
                pairs = [
                    message
                    for number in range(1, 501)
                    for message in (
                        Subscribe(number, number, "storm", f"a = {start + number} AND b > {number}"),
                        Unsubscribe(number, number),
                    )
                ]
                await client.say(*pairs)
                answers = [await client.hear() for _ in pairs]
                assert {type(answer) for answer in answers} == {Suback, Unsuback}

        await storm(500 + PARSED_KEPT)  # so many conditions stay read
        before = held_objects()
        await storm(size)
        assert held_objects() - before < size // 2, "not one object is left for every other subscription"
        assert broker.daemon.node.statistics(0).subscriptions == 2
        await ended(broker, client)


async def identical(count: int) -> None:
    """One filter from many sessions, as often as it takes; one event finds them all; then they go."""
    async with besieged() as broker:
        clients = [await RawClient.greeted(broker.address) for _ in range(-(-count // 5000))]
        for client in clients:
            numbers = range(1, count // len(clients) + 1)
            await client.say(*(Subscribe(number, number, "same", "a = 1 AND b = 2") for number in numbers))
            for _ in numbers:
                assert isinstance(await client.hear_a(Suback), Suback)
        async with await headgate.connect(broker.address) as publisher:
            await publisher.publish("same", {"a": 1, "b": 2})
            await publisher.publish("same", {"a": 1, "b": 3})
        for client in clients:
            delivery = await client.hear_a(Deliver)
            assert delivery.routes[1] == 1 and len(delivery.routes[0]) == count // len(clients)
        for place, client in enumerate(clients, start=1):
            await ended(broker, client, 2 + len(clients) - place)
        assert broker.daemon.node.statistics(0).subscriptions == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_identical_filters(size: int) -> None:
    await identical(size)


async def test_a_thousand_subscriptions_that_match_everything() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(*(Subscribe(number, number, "witness") for number in range(1, 1001)))
        for _ in range(1000):
            await client.hear_a(Suback)
        delivery = await client.hear_a(Deliver)
        while len(delivery.routes[0]) < 1000:
            delivery = await client.hear_a(Deliver)
        assert sorted(delivery.routes[0]) == list(range(1, 1001)), "one delivery names them all"
        await ended(broker, client)


async def test_more_subscriptions_than_a_session_may_have_are_refused_one_by_one() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(*(Subscribe(number, number, "many/a") for number in range(1, 17_001)))
        answers = [await client.hear() for _ in range(17_000)]
        refused = [answer for answer in answers if isinstance(answer, Error)]
        assert {error.code for error in refused} == {ErrorCode.LIMIT}
        assert 0 < len(refused) < 17_000
        await client.say(Publish(1, Mode.ACCEPTED, make_batch(["many/a"], {}, [b"x"])))
        assert len((await client.hear_a(Deliver)).routes[0]) == 17_000 - len(refused)
        await ended(broker, client)


async def test_connections_that_come_and_go_leave_nothing_behind() -> None:
    async with besieged(grace_seconds=0) as broker:
        tracemalloc.start()
        try:
            before = held_bytes()
            for _ in range(10):
                clients = await crowd(broker.address, 50)
                for client in clients:
                    await client.write(framed(Hello()) + b"\x00\x00\x00\x05")
                for client in clients:
                    client.reset()
                    await client.close()
            await wait_until(lambda: broker.daemon.server.connections == 2)
            await wait_until(lambda: broker.daemon.node.statistics(0).sessions == 2)
            assert held_bytes() - before < LEFT_BYTES_MAX
        finally:
            tracemalloc.stop()


async def test_streams_without_end_meet_an_end() -> None:
    async with besieged(limits=DaemonLimits(node=Limits(streams=100))) as broker:
        client = await RawClient.greeted(broker.address)
        for sequence in range(1, 201):
            await client.say(Publish(sequence, Mode.ACCEPTED, make_batch([f"stream{sequence}"], {}, [b""])))
        refused = [await client.hear_a(Error) for _ in range(101)]
        assert {error.code for error in refused} == {ErrorCode.LIMIT}
        assert len(broker.daemon.node.streams.by_name) == 100
        await ended(broker, client)


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_a_full_table_of_descriptors_is_survived(tmp_path: Path, loop: str) -> None:
    async with child_broker(tmp_path, loop=loop) as child, await headgate.connect(child.address) as inside:
        resource.prlimit(child.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        outside = await crowd(child.address, 200)
        subscription = await inside.subscribe("a")
        await inside.publish("a", {}, b"still here")
        assert (await anext(subscription)).body == b"still here"
        for client in outside:
            await client.close()
        async with await headgate.connect(child.address, wait_seconds=10) as late:
            await late.publish("a", {}, b"room again")
        assert (await anext(subscription)).body == b"room again"
        assert inside.reconnects == 0
        assert len(child.stderr.splitlines()) < 200, "the log has no line for each refusal"
