"""Two brokers that know nothing of each other, clients that know both, and one of the brokers is killed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import headgate
from tests.support.child_broker import Child, child_broker

pytestmark = pytest.mark.slow


@asynccontextmanager
async def lone_broker(folder: Path, name: str) -> AsyncIterator[Child]:
    (folder / name).mkdir()
    async with child_broker(folder / name, name=name, peer_listen="127.0.0.1:0") as broker:
        yield broker


async def kill(broker: Child) -> None:
    broker.signal(signal.SIGKILL)
    assert await broker.exit() == -signal.SIGKILL


async def test_the_asyncio_client_goes_on_with_the_other_broker(tmp_path: Path) -> None:
    async with lone_broker(tmp_path, "ann") as ann, lone_broker(tmp_path, "bob") as bob:
        both = f"{ann.address},{bob.address}"
        async with await headgate.connect(both, shuffle=False) as client:
            subscriptions = [await client.subscribe("quotes", where=f"n % 2 = {rest}") for rest in (0, 1)]
            await client.publish("quotes/a", {"n": 0})
            assert ((await anext(subscriptions[0])).attributes, client.broker) == ({"n": 0}, "ann")
            await kill(ann)
            for subscription in subscriptions:
                while not subscription.gaps:
                    await asyncio.sleep(0.01)
                await subscription.until_confirmed()
            for number in range(1, 5):
                await client.publish("quotes/a", {"n": number})
            found = [(await anext(one)).attributes["n"] for one in subscriptions for _ in range(2)]
            assert found == [2, 4, 1, 3]
            assert (client.broker, client.address) == ("bob", bob.address)
            for subscription in subscriptions:
                (gap,) = subscription.gaps
                assert (gap.count, "moved to another broker, bob" in gap.reason) == (0, True)


async def test_the_blocking_client_goes_on_with_the_other_broker(tmp_path: Path) -> None:
    async with lone_broker(tmp_path, "ann") as ann, lone_broker(tmp_path, "bob") as bob:
        with headgate.connect_blocking(f"{ann.address},{bob.address}", shuffle=False) as client:
            subscription = client.subscribe("quotes", where="n > 0")
            client.publish("quotes/a", {"n": 1})
            assert next(subscription).attributes == {"n": 1}
            await kill(ann)
            while not subscription.gaps:
                # It lives while it is called, and so notices now.
                assert subscription.take(0.1) == []
            assert subscription.until_confirmed(10.0)
            client.publish("quotes/a", {"n": 2})
            assert next(subscription).attributes == {"n": 2}
            (gap,) = subscription.gaps
            assert (client.broker, "moved to another broker, bob" in gap.reason) == ("bob", True)
