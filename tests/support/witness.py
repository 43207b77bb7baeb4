"""A well-behaved publisher with two subscribers, busy beside whatever else goes on: nothing may disturb them.

One subscriber takes everything, the other one has a condition. At the end every event must have come to each that
wanted it, exactly once and in order, over one connection, without a gap, and no answer may have been very late.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import headgate
from headgate.protocol.aio import Client, Subscription
from tests.support.live_broker import LiveBroker, live_broker
from tests.support.waiting import wait_until

__all__ = ["Witness", "besieged", "witness"]

_EVENTS_MIN = 20
_LATE_SECONDS_MAX = 60.0  # a broker that stands still, not one on a busy machine


class Witness:
    """Publishes numbers until it is stopped, and keeps what came."""

    def __init__(self, client: Client) -> None:
        self.published = 0
        self.late_seconds = 0.0
        self.heard: dict[str, list[int]] = {"all": [], "thirds": []}
        self._client = client
        self._stopping = False

    async def publish(self) -> None:
        """One event after the other, each answered."""
        while not self._stopping or self.published < _EVENTS_MIN:
            began = time.monotonic()
            await self._client.publish("witness/level", {"number": self.published}, b"body")
            self.published += 1
            self.late_seconds = max(self.late_seconds, time.monotonic() - began)
            await asyncio.sleep(0)

    async def listen(self, name: str, subscription: Subscription) -> None:
        """Take what comes until the subscription is closed."""
        async for event in subscription:
            self.heard[name].append(event.attributes["number"])  # type: ignore[arg-type]  # ours are numbers

    def stop(self) -> None:
        """Publish no more."""
        self._stopping = True

    def verdict(self, clients: list[Client], subscriptions: list[Subscription]) -> None:
        """Asserts that all was as if nobody else had been there."""
        expected = list(range(self.published))
        assert self.heard["all"] == expected
        assert self.heard["thirds"] == expected[::3]
        assert [client.reconnects for client in clients] == [0] * len(clients)
        assert [subscription.lost for subscription in subscriptions] == [0] * len(subscriptions)
        assert self.late_seconds < _LATE_SECONDS_MAX, f"an answer took {self.late_seconds:.1f} seconds"


@asynccontextmanager
async def witness(address: str) -> AsyncIterator[Witness]:
    """A witness at work for as long as the block runs; the verdict is at its end."""
    async with (
        await headgate.connect(address, name="witness") as publisher,
        await headgate.connect(address, name="listener") as listener,
    ):
        found = Witness(publisher)
        everything = await listener.subscribe("witness")
        thirds = await listener.subscribe("witness", where="number % 3 = 0")
        async with asyncio.TaskGroup() as group:
            publishing = group.create_task(found.publish())
            listening = [
                group.create_task(found.listen("all", everything)),
                group.create_task(found.listen("thirds", thirds)),
            ]
            try:
                yield found
                found.stop()
                await publishing
                await wait_until(lambda: len(found.heard["all"]) >= found.published)
                await wait_until(lambda: len(found.heard["thirds"]) >= (found.published + 2) // 3)
            finally:
                found.stop()
                for task in listening:
                    task.cancel()
        found.verdict([publisher, listener], [everything, thirds])


@asynccontextmanager
async def besieged(**settings: Any) -> AsyncIterator[LiveBroker]:
    """A real broker with a witness at work on it."""
    async with live_broker(**settings) as broker:
        async with witness(broker.address):
            yield broker
        broker.daemon.node.validate()
