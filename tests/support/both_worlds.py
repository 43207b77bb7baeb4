"""Both clients behind the verbs of the blocking one, so that a test of what they share is written once."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from types import TracebackType
from typing import Any

from headgate.protocol.aio import Event, Subscription, connect
from headgate.protocol.blocking import connect_blocking
from tests.support.limited import connect_blocking_limited, connect_limited

__all__ = ["WORLDS", "asyncio_world", "blocking_world", "finished", "taken"]

SECONDS = 20
"""No call of a test takes longer."""


def blocking_world(address: str, **options: Any) -> Any:
    """The blocking client as it is; `limits` may be among the options."""
    return (connect_blocking_limited if "limits" in options else connect_blocking)(address, **options)


def asyncio_world(address: str, **options: Any) -> Any:
    """The asyncio client on a loop in a thread of its own."""
    return _Client(address, options)


WORLDS: dict[str, Callable[..., Any]] = {"asyncio": asyncio_world, "blocking": blocking_world}


class _Subscription:
    """A subscription of the asyncio client, taken from as from a blocking one."""

    def __init__(self, run: Callable[[Any], Any], subscription: Subscription) -> None:
        self._run = run
        self._subscription = subscription

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subscription, name)

    def take(self, seconds: float | None = None, count: int = 1) -> list[Event]:
        async def there() -> list[Event]:
            events: list[Event] = []
            time = asyncio.timeout(seconds)
            try:
                async with time:
                    while len(events) < count:
                        events.append(await anext(self._subscription))
            except TimeoutError:
                if not time.expired():
                    raise  # of the client, not of this clock
            except StopAsyncIteration:
                pass
            return events

        return list(self._run(there()))

    def events(self, seconds: float | None = None) -> Iterator[Event]:
        while events := self.take(seconds):
            yield from events

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def until_confirmed(self, seconds: float | None = None) -> bool:
        async def there() -> bool:
            async with asyncio.timeout(seconds):
                await self._subscription.until_confirmed()
            return self._subscription.confirmed

        return bool(self._run(there()))

    def close(self) -> None:
        self._run(self._subscription.close())


def finished(client: Any, result: Any) -> Any:
    """What a verb of an event or a subscription gives in the end, in either world."""
    return client._run(result) if inspect.iscoroutine(result) else result


def taken(subscription: Any, count: int, seconds: float = 5.0) -> list[Any]:
    """So many events of a subscription of either world; fewer when nothing more comes. Raises what ended it."""
    if isinstance(subscription, _Subscription):
        return subscription.take(seconds, count)
    return list(islice(subscription.events(seconds), count))


class _Client:
    """Every verb runs on the loop, and is waited for."""

    def __init__(self, address: str, options: dict[str, Any]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        connecting = connect_limited if "limits" in options else connect
        try:
            self._client = self._run(connecting(address, **options))
        except BaseException:
            self._stop()
            raise

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._client, name)
        if not callable(verb):
            return verb

        def call(*arguments: Any, **named: Any) -> Any:
            async def there() -> Any:
                result = verb(*arguments, **named)
                return await result if inspect.iscoroutine(result) else None

            result = self._run(there())
            return _Subscription(self._run, result) if isinstance(result, Subscription) else result

        return call

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._run(self._client.close())
        finally:
            self._stop()

    def __enter__(self) -> _Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()
