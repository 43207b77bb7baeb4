"""Subscriptions with `start`, and brokers that die: what was missed is read from the logs, once, and no gap is told."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import headgate
from headgate.ops.bench.kit import fleet
from headgate.protocol.messages import Gap
from tests.support.child_broker import child_broker
from tests.system.processes import headgate as command
from tests.system.processes import running_broker, start
from tests.system.test_replay import STORED, numbers, published, taken
from tests.system.test_restart import free_address

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


async def test_the_home_of_a_subscriber_is_killed_and_it_sees_each_event_once(tmp_path: Path) -> None:
    gaps: list[Gap] = []
    async with fleet(3, tmp_path) as cluster, AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(await headgate.connect(cluster.addresses[0]))
        await publisher.ask("schema.put", stream="quotes", schema=STORED)
        readers = [
            await stack.enter_async_context(await headgate.connect(cluster.addresses_from(1), shuffle=False))
            for _ in range(2)
        ]
        whole = await readers[0].subscribe("quotes", start="start", on_gap=gaps.append)
        some = await readers[1].subscribe("quotes", where="n % 10 = 0", start="now", on_gap=gaps.append)
        assert {reader.broker for reader in readers} == {"b1"}
        loop = asyncio.get_running_loop()
        found = [loop.create_task(taken(whole, 12_000)), loop.create_task(taken(some, 1200))]
        going_on = loop.create_task(published(publisher, range(12_000)))
        await asyncio.sleep(1.0)
        cluster.members[1].kill()
        await asyncio.sleep(2.0)
        cluster.members[1].start()
        await cluster.together()
        await going_on
        assert numbers(await found[0]) == list(range(12_000))
        assert numbers(await found[1]) == list(range(0, 12_000, 10))
        assert {reader.broker for reader in readers} != {"b1"}, "they moved"
        assert not gaps and not whole.gaps and not some.gaps


async def test_a_lone_broker_is_killed_and_comes_back(tmp_path: Path) -> None:
    address, gaps = free_address(), list[Gap]()
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(child_broker(tmp_path, listen=address, name="ann"))
        client = await stack.enter_async_context(await headgate.connect(address))
        await client.ask("schema.put", stream="quotes", schema=STORED)
        past = await client.subscribe("quotes", start="start", on_gap=gaps.append)
        found = asyncio.get_running_loop().create_task(taken(past, 4000))
        going_on = asyncio.get_running_loop().create_task(published(client, range(4000)))
        await asyncio.sleep(0.4)
        broker.signal(signal.SIGKILL)
        await broker.exit()
        await stack.enter_async_context(child_broker(tmp_path, listen=address, name="ann"))
        await going_on
        assert numbers(await found) == list(range(4000)) and not gaps


async def test_what_a_slow_subscriber_was_not_sent_it_reads(tmp_path: Path) -> None:
    async with (
        child_broker(tmp_path, name="ann", outbox_bytes=65536) as broker,
        await headgate.connect(broker.address) as publisher,
        await headgate.connect(broker.address, credit=100) as reader,
    ):
        await publisher.ask("schema.put", stream="quotes", schema=STORED)
        slow = await reader.subscribe("quotes", start="start")
        await published(publisher, range(1))
        assert numbers(await taken(slow, 1)) == [0]
        for _ in range(3):
            await published(publisher, range(1, 5000))
            found = await taken(slow, 4999)
            assert numbers(found) == list(range(1, 5000))
        assert reader.lost > 0, "the broker had to drop some"
        assert slow.lost == 0 and not slow.gaps


async def test_brokers_out_of_reach_are_named_and_what_they_have_comes_when_they_are_back(tmp_path: Path) -> None:
    gaps: list[Gap] = []
    async with fleet(3, tmp_path) as cluster:
        clients = [await headgate.connect(address, retry_seconds=0.0) for address in cluster.addresses]
        await clients[0].ask("schema.put", stream="quotes", schema=STORED)
        for place, client in enumerate(clients):
            await published(client, range(place * 100, place * 100 + 100))
        for member in cluster.members[1:]:
            member.kill()
        await asyncio.sleep(4.0)
        past = await clients[0].subscribe("quotes", start="start", on_gap=gaps.append)
        first = await taken(past, 100)
        while not gaps:
            first += await taken(past, 1)
        assert gaps[0].count == 0 and gaps[0].reason.startswith("brokers b1, b2 cannot be reached")
        for member in cluster.members[1:]:
            member.start()
        rest = await taken(past, 300 - len(first))
        assert sorted(numbers(first) + numbers(rest)) == list(range(300))
        assert len(gaps) == 1
        await clients[0].close()


def test_the_command_line_goes_on_behind_the_last_line(tmp_path: Path) -> None:
    with running_broker(tmp_path, "--name", "ann") as broker:

        def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
            done = command(*words, text=text, HEADGATE_SERVER=broker.address)
            assert done.returncode == 0, done.stderr
            return done

        def lines(*numbers: int) -> str:
            return "".join(json.dumps({"topic": "quotes/a", "attrs": {"n": number}}) + "\n" for number in numbers)

        run("schema", "put", "quotes", json.dumps(STORED))
        watcher = start("sub", "quotes", "--from", "now", "--json", "--server", broker.address)
        assert watcher.stdout is not None and watcher.stderr is not None
        assert watcher.stderr.readline() == b"subscribed\n"
        run("pub", "--jsonl", "-", "--mode", "stored", text=lines(*range(5)))
        rows = [json.loads(watcher.stdout.readline()) for _ in range(5)]
        assert [row["attrs"]["n"] for row in rows] == list(range(5))
        log = rows[4]["position"].rpartition(":")[0]
        assert [row["position"] for row in rows] == [f"{log}:{number}" for number in range(5)], "though none was read"
        watcher.send_signal(signal.SIGINT)
        _, told = watcher.communicate(timeout=20)
        assert watcher.returncode == 0 and told.decode() == f"to go on behind the last line: --from {log}:5\n"
        run("pub", "--jsonl", "-", "--mode", "stored", text=lines(*range(5, 20)))
        sub = ("sub", "quotes", "--json", "--timeout", "20", "--count", "6", "--from")
        place, expected = f"{log}:5", 5
        for _ in range(2):
            done = run(*sub, place)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            assert [row["attrs"]["n"] for row in rows] == list(range(expected, expected + 6))
            _, _, place = done.stderr.splitlines()[-1].partition("--from ")
            expected += 6
        refused = command(*sub, "00000000000000aa-1.7", HEADGATE_SERVER=broker.address)
        assert refused.returncode == 2 and "positions as events and `headgate logs` have them" in refused.stderr
