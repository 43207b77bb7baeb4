"""Purge: removes the rows of a stream's logs, and then its schema.

Retention is what removes rows, on every broker that has some, so it is told to keep a second's worth. When the logs
are empty the schema is removed, and what is known of the producers that wrote there is forgotten: a job that is run
again publishes again. A broker that is down meanwhile keeps its rows, and its producers: it hears of the removal alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from headgate.protocol.data import LogKind

from .limits import PURGE_SECONDS_MAX

__all__ = ["purge"]


async def purge(
    client: Any,
    stream: str,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[int, int]:
    """How many entries went, and how many are left because they came all the time. Raises Refused."""
    from headgate.broker.core.limits import RETENTION_PAUSE_SECONDS, RETENTION_SECONDS_MIN

    # After so long every broker has looked at its logs, the ones that hold copies as well.
    round_seconds = RETENTION_SECONDS_MIN + RETENTION_PAUSE_SECONDS + 1.0
    before = await _entries(client, stream)
    left = before
    if before:
        schema = {"durability": "stored", "retention_seconds": RETENTION_SECONDS_MIN}
        await client.ask("schema.put", stream=stream, schema=schema, replace=True)
        deadline = clock() + PURGE_SECONDS_MAX
        try:
            while left and clock() < deadline:
                await sleep(round_seconds)
                left = await _entries(client, stream)
        finally:  # also when interrupted: the stream must not keep a retention of one second
            await client.ask("schema.rm", stream=stream)
    else:
        await client.ask("schema.rm", stream=stream)
    if not left:
        await client.ask("producers.forget", stream=stream)
    return max(0, before - left), left


async def _entries(client: Any, stream: str) -> int:
    """Entries in all logs of the stream: events, deliveries and subscriptions."""
    logs = [info for kind in LogKind for info in await client.logs(stream, kind)]
    return sum(info.next - info.first for info in logs)
