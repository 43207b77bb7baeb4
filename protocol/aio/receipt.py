"""A receipt: an outcome that can be awaited, by as many as like to, each cancelled without harm to the others."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from ..client import Outcome
from .loops import check_loop, current_loop

__all__ = ["Receipt"]


class Receipt(Outcome):
    """What `publish_soon` gives: `await` it to hear from the broker. Events of one batch share one."""

    __slots__ = ("_loop", "_waiters")

    def __init__(self, events: int = 1) -> None:
        super().__init__(events)
        self._loop = current_loop()
        self._waiters: list[asyncio.Future[None]] = []

    def __await__(self) -> Generator[Any, None, Any]:
        self.awaiters += 1
        if not self.settled:
            yield from self.wait().__await__()
        return self.result()

    async def wait(self) -> None:
        """Until it is settled. Unlike `await`, this raises nothing and counts as nobody being told."""
        if not self.settled:
            check_loop(self._loop)
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
