"""A whole cluster that is killed at once and started again, as processes: subscribers need not wait for leases."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import headgate
from headgate.broker.core.kv.limits import LEASE_SECONDS, SETTLE_SECONDS
from tests.support.child_broker import Child, child_broker
from tests.system.processes import start, wait_until
from tests.system.test_restart import free_address

pytestmark = pytest.mark.slow

BROKERS = 3


async def begun(stack: AsyncExitStack, folder: Path, clients: list[str], peers: list[str]) -> list[Child]:
    """All brokers, started at once; they listen."""

    async def one(number: int) -> Child:
        own = folder / f"b{number}"
        own.mkdir(exist_ok=True)
        settings = {"listen": clients[number], "peer_listen": peers[number], "join": ",".join(peers)}
        return await stack.enter_async_context(child_broker(own, name=f"b{number}", **settings))

    return list(await asyncio.gather(*map(one, range(BROKERS))))


def subscribed(words: subprocess.Popen[bytes]) -> str:
    """What `headgate sub` says when its subscription is in force."""
    assert words.stderr is not None
    return words.stderr.readline().decode()


async def test_after_all_were_killed_at_once_a_subscription_does_not_wait_for_leases(tmp_path: Path) -> None:
    clients = [free_address() for _ in range(BROKERS)]
    peers = [free_address() for _ in range(BROKERS)]
    async with AsyncExitStack() as stack:
        children = await begun(stack, tmp_path, clients, peers)
        async with await headgate.connect(clients[0]) as client:
            await client.subscribe("quotes", where="n > 0")
        for child in children:
            child.signal(signal.SIGKILL)
        assert [await child.exit() for child in children] == [-signal.SIGKILL] * BROKERS
    async with AsyncExitStack() as stack:
        children = await begun(stack, tmp_path, clients, peers)
        began = time.monotonic()
        words = start("sub", "quotes", "--where", "n > 0", "--server", clients[1], "--count", "1", "--json")
        try:
            said = await asyncio.to_thread(subscribed, words)
            seconds = time.monotonic() - began
            print(f"`headgate sub` said {said.strip()!r} {seconds:.2f} s after all brokers listened")
            assert "subscribed" in said
            assert seconds < SETTLE_SECONDS + LEASE_SECONDS
            for child in children:
                assert [line["brokers"] for line in child.lines("all brokers are new")] == [BROKERS]
            async with await headgate.connect(clients[2]) as client:
                await client.publish("quotes", {"n": 1})
            wait_until(lambda: words.poll() is not None)
            assert words.returncode == 0
        finally:
            words.kill()
            words.communicate()
