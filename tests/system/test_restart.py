"""A broker that dies and comes back: its clients go on by themselves, and its event ids never repeat."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import pytest

import headgate
from headgate.protocol.messages import Goodbye
from tests.support.child_broker import child_broker
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.slow


def free_address() -> str:
    """An address that nobody has, as far as one can know."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


async def test_a_client_outlives_a_killed_broker(tmp_path: Path) -> None:
    address = free_address()
    async with child_broker(tmp_path, listen=address, name="ann") as first:
        client = await headgate.connect(address)
        subscription = await client.subscribe("a", where="n > 0")
        await client.publish("a", {"n": 1})
        before = await anext(subscription)
        first.signal(signal.SIGKILL)
        assert await first.exit() == -signal.SIGKILL
    async with child_broker(tmp_path, listen=address, name="ann"):
        await client.publish("a", {"n": 0})
        await client.publish("a", {"n": 2})
        after = await anext(subscription)
        assert (before.attributes, after.attributes) == ({"n": 1}, {"n": 2})
        assert client.reconnects == 1
        assert [gap.subscription for gap in subscription.gaps] != [], "what may have been missed is said"
        assert before.id != after.id
        hash_before, life_before = before.origin.split("-")
        hash_after, life_after = after.origin.split("-")
        assert hash_before == hash_after and int(life_after, 16) > int(life_before, 16)
        await client.close()


async def test_schemas_survive_a_killed_broker(tmp_path: Path) -> None:
    schema = {"attributes": {"price": {"type": "float", "min": 0.0, "max": 1000.0}}}
    async with child_broker(tmp_path) as first, await headgate.connect(first.address) as client:
        await client.ask("schema.put", stream="quotes", schema=schema)
        first.signal(signal.SIGKILL)
        assert await first.exit() == -signal.SIGKILL
    async with child_broker(tmp_path) as second, await headgate.connect(second.address) as client:
        assert (await client.ask("schema.get", stream="quotes"))["schema"] == schema


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_a_stop_in_the_middle_of_traffic_is_clean(tmp_path: Path, loop: str) -> None:
    async with child_broker(tmp_path, loop=loop) as child:
        heard = await RawClient.greeted(child.address)
        await heard.subscribe(1, "a")
        published = 0

        async def publish() -> None:
            nonlocal published
            client = await headgate.connect(child.address, retry_seconds=0.0)
            try:
                while True:
                    await client.publish("a", {"n": published}, b"x" * 100)
                    published += 1
            except headgate.HeadgateError:
                return

        publishing = [asyncio.get_running_loop().create_task(publish()) for _ in range(3)]
        for _ in range(200):
            await heard.hear()
        child.signal(signal.SIGTERM)
        last = await heard.hear_the_end()
        assert isinstance(last[-1], Goodbye)
        assert await child.exit() == 0
        async with asyncio.timeout(10):
            await asyncio.gather(*publishing)
        assert published >= 200
        assert "Traceback" not in child.stderr
        assert {line["level"] for line in child.lines()} <= {"info", "debug"}
        await heard.close()


async def test_a_port_that_was_just_left_can_be_taken_at_once(tmp_path: Path) -> None:
    address = free_address()
    for _ in range(2):
        async with child_broker(tmp_path, listen=address) as child, await headgate.connect(address) as client:
            await client.publish("a", {})
            child.signal(signal.SIGTERM)
            assert await child.exit() == 0
