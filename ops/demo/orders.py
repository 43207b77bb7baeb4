"""The demo's durable subscriber: a process that takes orders, is killed together with its broker, and misses none.

Orders are published to a stored stream, one by one, while the play goes on. `headgate sub --durable` prints them in a
process of its own, connected to the broker that is to be killed. Both are killed in the same moment; another process
with the same name goes on where the first one was, for the cluster has kept its place. What both have printed must be
all orders that were published, and an order that was printed twice must be marked as redelivered the second time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.protocol.aio import Client, Tasks, connect

from .limits import ARRIVAL_TICK_SECONDS, ORDER_PAUSE_SECONDS, ORDERS_ARRIVAL_SECONDS, START_SECONDS

__all__ = ["STREAM", "OrderDesk", "OrdersTold"]

STREAM = "orders"
DURABLE = "order desk"

_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class OrdersTold:
    """What came of the orders."""

    published: int
    taken: int
    missing: int
    redelivered: int
    """Printed a second time, and marked so."""
    repeated: int
    """Printed a second time as if it were the first."""
    killed: bool

    @property
    def exact(self) -> bool:
        """Every order was taken, and what came twice was marked."""
        return not self.missing and not self.repeated


class OrderDesk:
    """Publishes orders to some brokers, and takes them through a durable subscription."""

    def __init__(self) -> None:
        self._servers: list[str] = []
        self._taker: dict[str, str] = {}
        self._client: Client | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._published = 0
        self._seen: set[int] = set()
        self._redelivered = self._repeated = 0
        self._killed = False
        self._stop = asyncio.Event()
        self._tasks = Tasks()

    async def open(
        self, servers: Sequence[str], publisher: Mapping[str, Any] | None = None, taker: Mapping[str, str] | None = None
    ) -> None:
        """Begin to take, with the first of these brokers, and to publish, with the last; each as who it is told to."""
        self._servers, self._taker = list(servers), dict(taker or {})
        self._client = await connect(
            ",".join([servers[-1], *servers[:-1]]), name="demo orders", shuffle=False, **(publisher or {})
        )
        await self._client.ask("schema.put", stream=STREAM, schema={"durability": "stored"})
        await self._take_orders()
        self._tasks.start(self._publish(self._client), "demo orders")

    async def kill(self) -> None:
        """Kill the process that takes orders, and start another one."""
        assert self._process is not None, "it was opened"
        self._killed = True
        self._process.kill()
        await self._process.wait()
        await self._take_orders()

    async def close(self) -> OrdersTold:
        """Publish no more, wait for what is missing, and tell."""
        self._stop.set()
        loop = asyncio.get_running_loop()
        before, since = -1, loop.time()
        while len(self._seen) < self._published and loop.time() < since + ORDERS_ARRIVAL_SECONDS:
            if len(self._seen) != before:
                before, since = len(self._seen), loop.time()
            await asyncio.sleep(ARRIVAL_TICK_SECONDS)
        missing = self._published - len(self._seen)
        return OrdersTold(self._published, len(self._seen), missing, self._redelivered, self._repeated, self._killed)

    async def end(self) -> None:
        """Stop whatever is left."""
        process = self._process
        if process is not None and process.returncode is None:
            process.terminate()
            await process.wait()
        await self._tasks.stop()
        if self._client is not None:
            await self._client.close()

    # --- Inside ------------------------------------------------------------------------------------------------------

    async def _publish(self, client: Client) -> None:
        """One order after the other; each has its answer before the next."""
        while not self._stop.is_set():
            await client.publish(f"{STREAM}/web", {"number": self._published}, b"an order", mode="stored")
            self._published += 1
            try:
                async with asyncio.timeout(ORDER_PAUSE_SECONDS):
                    await self._stop.wait()
            except TimeoutError:
                continue

    async def _take_orders(self) -> None:
        """Start a process, and wait until it has its subscription."""
        servers = ",".join(self._servers)
        words = ("sub", STREAM, "--durable", DURABLE, "--json", "--server", servers, "--wait", f"{START_SECONDS:g}")
        path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "headgate.ops.cli", *words),
            env={**os.environ, "PYTHONPATH": path, **self._taker},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None and process.stderr is not None, "they were asked for"
        subscribed = asyncio.Event()
        self._tasks.start(self._read(process.stdout), "demo orders taken")
        self._tasks.start(_read_errors(process.stderr, subscribed), "demo orders told")
        async with asyncio.timeout(2 * START_SECONDS):
            await subscribed.wait()

    async def _read(self, output: asyncio.StreamReader) -> None:
        async for line in output:
            try:
                order: dict[str, Any] = json.loads(line)
            except ValueError:
                continue  # cut off where the process was killed
            number = order["attrs"]["number"]
            if number not in self._seen:
                self._seen.add(number)
            elif order["redelivered"]:
                self._redelivered += 1
            else:
                self._repeated += 1


async def _read_errors(errors: asyncio.StreamReader, subscribed: asyncio.Event) -> None:
    async for line in errors:
        if line.strip() == b"subscribed":
            subscribed.set()
