"""Waiting for something to become true, where nobody announces it: bounded, and without a fixed pause to get wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["wait_until"]

_LOOK_SECONDS = 0.002


async def wait_until(predicate: Callable[[], object], seconds: float = 10.0) -> None:
    """Return when the predicate holds; fail the test when it does not within `seconds`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not predicate():
        assert loop.time() < deadline, f"still not so after {seconds:g} seconds"
        looked = asyncio.Event()
        loop.call_later(_LOOK_SECONDS, looked.set)
        await looked.wait()
