"""The one owner of asyncio tasks: it holds them (the loop's own references are weak), and ends them.

A task that fails is reported to the loop's exception handler at once, not when it is collected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

__all__ = ["Tasks"]


class Tasks:
    """Background work of one owner."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Any], None] = {}

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run it in the background."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task] = None
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """Cancel all and wait until each has ended; whoever calls this from one of them is left out."""
        current = asyncio.current_task()
        others = [task for task in self._running if task is not current]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            context = {"message": f"{task.get_name()} failed", "exception": task.exception(), "task": task}
            task.get_loop().call_exception_handler(context)
