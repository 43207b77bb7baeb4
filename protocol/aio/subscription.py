"""A subscription of the asyncio client: an asynchronous iterator of events, one by one or batch by batch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..client import Inbox, Replaying, SubscriptionCore, receiving
from ..errors import LocalError
from ..messages import Gap
from .driver import drive, run
from .limits import TURN_EVENTS_MAX

if TYPE_CHECKING:
    from .client import Client

__all__ = ["Event", "Subscription"]


class Event(receiving.Event):
    """One event: id, time, topic, attributes, body, content_type, subscription, text, json()."""

    __slots__ = ()

    def json(self) -> Any:
        """The body as JSON; raises ValueError when it is not."""
        return json.loads(self.body)

    async def ack(self) -> None:
        """Acknowledge an event of a durable subscription."""
        raise LocalError("ack is for durable subscriptions, which this broker does not offer yet: leave it out")


class Subscription(SubscriptionCore):
    """Made by `Client.subscribe`. Iterate over it, or over `batches()`; the loop ends when it is closed.

    What is not taken waits: `credit` events or `credit_bytes` of them here, and then at the broker, which in the end
    drops the oldest and says so (`lost`, `gaps`, `on_gap`). When a client has several subscriptions, one that is `full`
    does not hold up the others.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        on_gap: Callable[[Gap], None] | None,
        replaying: Replaying | None = None,
    ) -> None:
        super().__init__(inbox, replaying)
        self._client = client
        self._arrived = asyncio.Event()
        self._current: Iterator[Event] = iter(())
        self._taken = 0
        self._reading = asyncio.Lock()  # who reads logs for it
        inbox.on_change = self._arrived.set
        if on_gap is not None:
            loop = asyncio.get_running_loop()
            # In a callback of its own: what it raises is the loop's to report, and does not harm the connection.
            inbox.on_gap = lambda gap: cast(None, loop.call_soon(on_gap, gap))

    async def until_confirmed(self) -> None:
        """Wait until the broker has it: every event published from then on is seen. Raises what ended it.

        What comes until it is taken waits here, within the window of credit, whatever there is to be read before it.
        """
        self._client.check_loop()
        await run(self._confirming(self._client))

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while True:
            for event in self._current:
                return event
            self._current = iter(await self._take())

    async def batches(self) -> AsyncIterator[list[Event]]:
        """The same events as lists, as they came."""
        while True:
            left = list(self._current)
            if left:
                yield left
            try:
                events = await self._take()
            except StopAsyncIteration:
                return
            if events:
                yield events

    async def close(self) -> None:
        """Unsubscribe; nothing of it comes any more."""
        self._current = iter(())
        if not self._inbox.ended:
            await self._client.unsubscribe(self._inbox)

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _take(self) -> list[Event]:
        """The next events; raises what ended the subscription, StopAsyncIteration when it was closed."""
        inbox = self._inbox
        self._client.check_loop()
        while True:
            if self._replaying is not None:
                async with self._reading:
                    events = await drive(self._replaying.take(Event))
                if events:
                    return cast("list[Event]", events)
            if inbox.waiting:
                break
            if inbox.ended:
                raise inbox.failure or StopAsyncIteration
            await self._change()
            self._taken = 0
        if self._taken >= TURN_EVENTS_MAX:
            # A loop that always finds something would never let the connection read.
            self._taken = 0
            await asyncio.sleep(0)
        events = inbox.take(Event)
        self._taken += len(events) or 1
        self._client.pump()
        return cast("list[Event]", events)

    async def _change(self) -> None:
        """Until something has come of it, or the logs have to be looked at."""
        self._arrived.clear()
        if self._replaying is None:
            await self._arrived.wait()
            return
        seconds = self._replaying.rest_seconds
        self._inbox.listen()
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            self._replaying.rested(seconds)
