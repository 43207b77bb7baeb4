"""A receipt: an outcome that can be awaited, by as many as like to, each cancelled without harm to the others; and the
event loop that it belongs to, with a clear error in any other, where who waits would never be woken.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, _get_running_loop
from collections.abc import Generator
from typing import Any

from ..client import Outcome
from ..errors import LocalError

__all__ = ["Receipt", "check_loop", "current_loop"]

current_loop = _get_running_loop
"""The loop that runs in this thread, or None."""


def check_loop(owner: AbstractEventLoop | None) -> None:
    """Raises LocalError unless `owner` runs here; whatever was made outside of any loop belongs to all of them."""
    current = current_loop()
    if current is not owner and owner is not None:
        where = "another event loop" if current is not None else "an event loop that does not run here"
        raise LocalError(
            f"this client belongs to {where}: connect and await in one loop; "
            "without asyncio, or from other threads, use headgate.connect_blocking"
        )


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
            try:
                await waiter
            finally:
                if not self.settled:  # given up: it may be waited for again and again
                    self._waiters.remove(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
