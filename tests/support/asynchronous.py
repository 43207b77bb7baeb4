"""Tests that are coroutines: run to the end, on a loop that lets nothing fail in silence.

Whatever the loop would only have logged (a callback that raised, a task whose error nobody took) fails the test, and
so does a task that is left over.
"""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

__all__ = ["asynchronous"]

Arguments = ParamSpec("Arguments")


def asynchronous(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, None]:
    """Make a test function of a coroutine function."""

    @functools.wraps(test)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        complaints: list[dict[str, Any]] = []

        async def watched() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: complaints.append(context))
            await test(*arguments, **named)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            assert not left, f"left running: {left}"

        asyncio.run(watched())
        # An error that nobody took is reported when its task or future is collected.
        gc.collect(0)
        assert not complaints, complaints

    return run
