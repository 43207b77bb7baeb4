"""Tasks: held, reported, ended."""

from __future__ import annotations

import asyncio
from typing import Any

from headgate.protocol.aio import Tasks


async def test_a_task_is_held_until_it_ends() -> None:
    tasks = Tasks()
    gate = asyncio.Event()
    task = tasks.start(gate.wait(), "waits")
    assert len(tasks) == 1
    gate.set()
    assert await task
    await asyncio.sleep(0)
    assert len(tasks) == 0


async def test_stop_cancels_and_waits() -> None:
    tasks = Tasks()
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    tasks.start(work(), "works")
    await asyncio.sleep(0)
    await tasks.stop()
    assert ended == [True]
    await tasks.stop()


async def test_a_task_may_stop_the_others() -> None:
    tasks = Tasks()
    other = tasks.start(asyncio.Event().wait(), "other")
    await tasks.start(tasks.stop(), "stops")
    assert other.cancelled()


async def test_a_failure_is_reported_at_once() -> None:
    reported: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: reported.append(context))

    async def fails() -> None:
        raise ValueError("why")

    await asyncio.wait([Tasks().start(fails(), "this one")])
    await asyncio.sleep(0)
    loop.set_exception_handler(handler)
    assert [str(context["exception"]) for context in reported] == ["why"]
    assert "this one" in reported[0]["message"]
