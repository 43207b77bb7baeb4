"""Coroutine tests let nothing fail in silence: pytest-asyncio runs them, `watched` looks at what they leave behind.

Whatever the loop would only have logged (a callback that raised, a task whose error nobody took) fails the test, and
so does a task that is left over.
"""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import pytest

__all__ = ["watch", "watched"]

Arguments = ParamSpec("Arguments")


def watched(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, Coroutine[Any, Any, None]]:
    """Fail the coroutine function `test` for what its loop complains of, and for tasks that it leaves running."""

    @functools.wraps(test)
    async def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        complaints: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        others = asyncio.all_tasks()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        await test(*arguments, **named)
        left = asyncio.all_tasks() - others
        assert not left, f"left running: {left}"
        # An error that nobody took is reported when its task or future is collected.
        gc.collect(0)
        await asyncio.sleep(0)
        assert not complaints, complaints

    return run


def watch(item: pytest.Item) -> None:
    """Have the test `item` watched, if it is a coroutine function, or a Hypothesis test of one."""
    test = getattr(item, "obj", None)
    if asyncio.iscoroutinefunction(test):
        item.obj = watched(test)  # type: ignore[attr-defined]
        return
    given = getattr(test, "hypothesis", None)
    inner = getattr(given, "inner_test", None)
    if asyncio.iscoroutinefunction(inner) and not hasattr(inner, "__wrapped__"):
        given.inner_test = watched(inner)
