"""The asyncio driver of tasks: it awaits what they wait for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..client import Close, Connect, Dial, Pause, Settled, Task, Work

if TYPE_CHECKING:
    from .client import Client
    from .link import Link

__all__ = ["drive", "run"]

Result = TypeVar("Result")


async def drive(task: Task[Result]) -> Result:
    """Go on with a task to its end. Who is cancelled here leaves it where it waits, and may drive it again."""
    wanted = task.begin()
    while wanted is not None:
        try:
            if isinstance(wanted, Settled):
                value = await wanted.outcome.wait()  # type: ignore[attr-defined]  # the conversation makes Receipts
            else:
                value = await _come(wanted)
        except Exception as error:
            wanted = task.fail(error)
        else:
            wanted = task.give(value)
    return task.result


async def run(work: Work[Result]) -> Result:
    """See work through to its end, or end it where this is cancelled."""
    task = Task(work)
    try:
        return await drive(task)
    finally:
        task.close()


async def _come(wanted: Dial | Close | Pause | Connect) -> Any:
    if isinstance(wanted, Pause):
        return await asyncio.sleep(wanted.until - wanted.link.clock())
    if isinstance(wanted, Connect):
        return await cast("Link", wanted.link).connect(wanted.attempt)
    client = cast("Client", wanted.client)
    if isinstance(wanted, Close):
        return await client.close()
    async with client.dialling:
        if wanted.name not in wanted.others:
            wanted.others[wanted.name] = await client.another(wanted.address)
        return wanted.others[wanted.name]
