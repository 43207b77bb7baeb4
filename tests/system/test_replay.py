"""Replay with real brokers: whoever begins in the past sees each event of a stored stream once, whatever goes on."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import headgate
from headgate.matching import deltas, parse_condition
from headgate.matching.dynamic import DumbReferences
from headgate.ops.bench.kit import fleet
from tests.support.child_broker import child_broker
from tests.support.live_broker import live_broker
from tests.system.processes import Broker, running_broker, start
from tests.system.processes import headgate as command
from tests.system.test_restart import free_address

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

STORED = {"durability": "stored"}


async def published(client: headgate.Client, numbers: range, topic: str = "quotes/a") -> None:
    """So many events, in batches of a few, stored."""
    for number in numbers:
        client.publish_soon(topic, {"n": number}, b"x", mode="stored")
        if number % 7 == 0:
            await client.flush()
    await client.flush()


async def taken(subscription: headgate.Subscription, count: int) -> list[headgate.Event]:
    events: list[headgate.Event] = []
    async with asyncio.timeout(40):
        async for event in subscription:
            events.append(event)
            if len(events) == count:
                return events
    raise AssertionError("the subscription ended")


def numbers(events: list[headgate.Event]) -> list[Any]:
    return [event.attributes["n"] for event in events]


async def test_it_catches_up_with_a_publisher_that_does_not_stop() -> None:
    async with live_broker() as broker:
        publisher, reader = [await headgate.connect(broker.address) for _ in range(2)]
        await publisher.ask("schema.put", stream="quotes", schema=STORED)
        await published(publisher, range(3000))
        going_on = asyncio.get_running_loop().create_task(published(publisher, range(3000, 9000)))
        whole = await reader.subscribe("quotes", start="start")
        half = await reader.subscribe("quotes", where="n % 2 = 0", start="start")
        found = await taken(whole, 9000)
        assert numbers(found) == list(range(9000))
        assert numbers(await taken(half, 4500)) == list(range(0, 9000, 2))
        assert found[0].position.endswith(":0") and found[-1].position.endswith(":8999")
        await going_on
        assert whole.lost == half.lost == 0
        await publisher.close()
        await reader.close()


async def test_an_event_has_one_id_live_and_in_the_log_and_both_clients_read_it() -> None:
    async with live_broker() as broker, await headgate.connect(broker.address) as client:
        await client.ask("schema.put", stream="quotes", schema=STORED)
        live = await client.subscribe("quotes")
        await published(client, range(50))
        heard = await taken(live, 50)
        past = await taken(await client.subscribe("quotes", start="start"), 50)
        assert [event.id for event in heard] == [event.id for event in past]
        assert [(event.time, event.topic, event.body) for event in heard] == [
            (event.time, event.topic, event.body) for event in past
        ]

        def blocking() -> list[tuple[str, str]]:
            with headgate.connect_blocking(broker.address) as other:
                subscription = other.subscribe("quotes", start=past[10].position)
                return [
                    (event.id, event.position) for event, _ in zip(subscription.events(10), range(40), strict=False)
                ]

        found = await asyncio.to_thread(blocking)
        assert found == [(event.id, event.position) for event in past[10:]]


async def test_delta_from_the_start_is_exact_while_its_source_goes_on() -> None:
    """Exactly the crossings, each once: what is read and what comes live are compared with what was handed out."""
    async with live_broker() as broker:
        publisher, reader = [await headgate.connect(broker.address) for _ in range(2)]
        await publisher.ask("schema.put", stream="quotes", schema=STORED)
        random, price, walk, twin = Random(3), 100, list[int](), DumbReferences([None])
        twin.add(1, deltas(parse_condition("DELTA(n) > 9")))
        for _ in range(1500):
            price += random.randint(-4, 4)
            walk.append(price)

        async def publish(prices: list[int]) -> None:
            for place, number in enumerate(prices):
                publisher.publish_soon("quotes/a", {"n": number}, mode="stored")
                if place % 25 == 0:
                    await publisher.flush()
            await publisher.flush()

        await publish(walk[:500])
        going_on = asyncio.get_running_loop().create_task(publish(walk[500:]))
        moved = await reader.subscribe("quotes", where="n IS NOT NULL AND DELTA(n) > 9", start="start")
        assert moved.where == "n IS NOT NULL AND DELTA(n) > 9"
        expected = [number for number in walk if twin.fire("quotes/a", [number], 0.0)]
        assert 30 < len(expected) < 500
        assert numbers(await taken(moved, len(expected))) == expected
        await going_on
        await publisher.close()
        await reader.close()


async def test_a_killed_broker_loses_nothing_that_was_stored_and_nothing_is_there_twice(tmp_path: Path) -> None:
    address = free_address()
    client = None
    for life in range(3):
        async with child_broker(tmp_path, listen=address, name="ann") as broker:
            if client is None:
                client = await headgate.connect(address)
                await client.ask("schema.put", stream="quotes", schema=STORED)
            going_on = asyncio.get_running_loop().create_task(published(client, range(life * 1000, life * 1000 + 1000)))
            await asyncio.sleep(0.3)
            if life < 2:
                broker.signal(signal.SIGKILL)
                await broker.exit()
                async with child_broker(tmp_path, listen=address, name="ann"):
                    await going_on
            else:
                await going_on
                found = await taken(await client.subscribe("quotes", start="start"), 3000)
                assert numbers(found) == list(range(3000))
                assert len({event.position for event in found}) == 3000
                (log,) = await client.logs("quotes")
                assert (log.first, log.next) == (0, 3000)
                await client.close()


async def test_logs_of_three_brokers_are_one_stream_and_a_copy_stands_in_for_a_dead_one(tmp_path: Path) -> None:
    async with fleet(3, tmp_path) as cluster:
        clients = [await headgate.connect(address) for address in cluster.addresses]
        await clients[0].ask("schema.put", stream="quotes", schema=STORED)
        for place, client in enumerate(clients):
            await published(client, range(place * 100, place * 100 + 100))
        assert len(await clients[0].logs("quotes")) == 3
        found = await taken(await clients[1].subscribe("quotes", start="start"), 300)
        assert sorted(numbers(found)) == list(range(300))
        cluster.members[2].kill()
        await cluster.settled()
        again = await taken(await clients[0].subscribe("quotes", start="start"), 300)
        assert sorted(numbers(again)) == list(range(300)), "its siblings have copies"
        assert {event.id for event in again} == {event.id for event in found}
        for client in clients[:2]:
            await client.close()
        clients[2]._link._retry.budget_seconds = 0.0
        await clients[2].close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path, "--name", "ann") as running:
        yield running


def run(broker: Broker, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    done = command(*words, text=text, HEADGATE_SERVER=broker.address)
    assert done.returncode == 0, done.stderr
    return done


def test_the_command_line_replays_and_goes_on(broker: Broker) -> None:
    run(broker, "schema", "put", "quotes", json.dumps(STORED))
    lines = "".join(json.dumps({"topic": "quotes/a", "attrs": {"n": number}}) + "\n" for number in range(10))
    run(broker, "pub", "--jsonl", "-", "--mode", "stored", text=lines)
    first = run(
        broker, "sub", "quotes", "--from", "start", "--where", "n > 3", "--count", "3", "--json", "--timeout", "20"
    )
    rows = [json.loads(line) for line in first.stdout.splitlines()]
    assert [row["attrs"]["n"] for row in rows] == [4, 5, 6]
    process = start(
        "sub", "quotes", "--from", rows[-1]["position"], "--count", "5", "--json", "--server", broker.address
    )
    assert process.stderr is not None and process.stderr.readline() == b"subscribed\n"
    run(broker, "pub", "quotes/b", "--attr", "n=10", "--mode", "stored")
    out, _ = process.communicate(timeout=30)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["attrs"]["n"] for row in rows] == [6, 7, 8, 9, 10]
    refused = command("pub", "memory/a", "--mode", "stored", HEADGATE_SERVER=broker.address)
    assert refused.returncode == 1 and "headgate schema put memory" in refused.stderr
