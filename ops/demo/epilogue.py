"""The epilogue: more quotes into a stream that is logged, and Spark says from the logs alone what should have come.

The proof before it was made by us, from the seed. This one is Spark's: it reads what the brokers that are left wrote
into their logs, evaluates the same conditions with its own SQL, and compares with the deliveries in the log. It needs
Java and PySpark; without them the demo says how to get them, and ends as it would have.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate.protocol.aio import Client, Subscription, Tasks, connect

from ..jobs import missing_parts
from .audience import WISHES, Wish
from .feed import QuoteFeed
from .limits import (
    ARRIVAL_TICK_SECONDS,
    AUDIT_QUIET_SECONDS,
    AUDIT_QUOTES,
    AUDIT_SECONDS_MAX,
    AUDIT_SETTLE_SECONDS,
    BATCH_EVENTS,
)
from .view import View

__all__ = ["STREAM", "audited", "play_epilogue"]

STREAM = "audited"
"""Where these quotes go, and what the wishes of the audience are changed to."""

_ROOT = Path(__file__).resolve().parent.parent.parent


async def play_epilogue(
    addresses: Sequence[str], seed: int, view: View, quiet_seconds: float = AUDIT_QUIET_SECONDS
) -> dict[str, Any] | None:
    """Publish, wait, let Spark judge: what it said of the stream; None where Spark cannot run."""
    missing = missing_parts()
    if missing:
        view.say(f"no audit by Spark: it needs {missing}. Then the demo ends with one.")
        return None
    view.say(f"epilogue: {AUDIT_QUOTES:,} more quotes, stored and audited; Spark will tell from the logs what came")
    tasks = Tasks()
    servers = ",".join(addresses)
    async with await connect(servers, name="demo epilogue", shuffle=False) as client:
        try:
            await client.ask("schema.put", stream=STREAM, schema={"attributes": {}, "audit": True})
            counts = [0] * len(WISHES)
            for place, wish in enumerate(map(audited, WISHES)):
                subscription = await client.subscribe(wish.pattern, wish.where or None)
                tasks.start(_count(subscription, counts, place), f"demo epilogue {wish.name}")
            await _publish(client, seed)
            await _quiet(counts, quiet_seconds)
            told = await _audit(servers)
        finally:
            await tasks.stop()
    view.audit(told)
    return told


def audited(wish: Wish) -> Wish:
    """The same wish, of the audited stream."""
    _, slash, rest = wish.pattern.partition("/")
    return Wish(wish.name, STREAM + slash + rest, wish.where)


async def _count(subscription: Subscription, counts: list[int], place: int) -> None:
    async for events in subscription.batches():
        counts[place] += len(events)


async def _publish(client: Client, seed: int) -> None:
    feed = QuoteFeed(seed)
    for _ in range(0, AUDIT_QUOTES, BATCH_EVENTS):
        quotes = feed.take(BATCH_EVENTS)
        topics = [STREAM + topic.removeprefix("quotes") for topic in quotes.topics]
        await client.publish_batch(topics, quotes.columns, quotes.bodies, mode="stored")


async def _quiet(counts: list[int], seconds: float) -> None:
    """Until nothing has come for so long."""
    loop = asyncio.get_running_loop()
    before, since = -1, loop.time()
    while loop.time() < since + seconds:
        if sum(counts) != before:
            before, since = sum(counts), loop.time()
        await asyncio.sleep(ARRIVAL_TICK_SECONDS)


async def _audit(servers: str) -> dict[str, Any]:
    """Run `headgate audit` as a process; returns its report of the stream."""
    # One machine has one clock, so nothing is blurred: what was published after SUBACK is owed.
    bounds = ("--settle", str(AUDIT_SETTLE_SECONDS), "--boundary", "0")
    words = ("audit", "--server", servers, "--stream", STREAM, *bounds, "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "headgate.ops.cli", *words),
        cwd=_ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(AUDIT_SECONDS_MAX):
            output, errors = await process.communicate()
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        await process.wait()
        raise
    lines = output.decode("utf-8", "replace").splitlines()
    if not lines:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        return {"clean": False, "lines": [], "troubles": [f"the audit did not run: {last[0]}"]}
    told: dict[str, Any] = json.loads(lines[-1])["streams"][0]
    return told
