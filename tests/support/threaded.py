"""Something asynchronous that lives in a thread of its own, for tests of what blocks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Generic, TypeVar

__all__ = ["Threaded", "in_thread"]

Thing = TypeVar("Thing")
Result = TypeVar("Result")

SECONDS_MAX = 20


class Threaded(Generic[Thing]):
    """The thing, and a way to talk to it on its own loop."""

    def __init__(self, thing: Thing, loop: asyncio.AbstractEventLoop) -> None:
        self.thing = thing
        self._loop = loop

    def call(self, function: Callable[[Thing], Result]) -> Result:
        """What the function says of the thing, there."""

        async def there() -> Result:
            return function(self.thing)

        return self.run(there())

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of a coroutine, there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS_MAX)


@contextmanager
def in_thread(manager: Callable[[], AbstractAsyncContextManager[Thing]]) -> Iterator[Threaded[Thing]]:
    """Enter the manager on a loop in a new thread, and leave it at the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="in_thread")
    thread.start()
    try:
        context = manager()
        thing = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(SECONDS_MAX)
        try:
            yield Threaded(thing, loop)
        finally:
            asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(SECONDS_MAX)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS_MAX)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
