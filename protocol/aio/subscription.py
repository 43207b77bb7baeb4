"""A subscription of the asyncio client: an asynchronous iterator of events, one by one or batch by batch."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..client import Inbox, receiving
from ..errors import LocalError
from ..messages import Gap
from .limits import TURN_EVENTS_MAX

if TYPE_CHECKING:
    from .client import Client
    from .replaying import Replaying

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


class Subscription:
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
        self._client = client
        self._inbox = inbox
        self._replaying = replaying
        self._arrived = asyncio.Event()
        self._current: Iterator[Event] = iter(())
        self._taken = 0
        inbox.on_change = self._arrived.set
        if replaying is not None:
            replaying.until_confirmed = self.until_confirmed
        if on_gap is not None:
            loop = asyncio.get_running_loop()
            # In a callback of its own: what it raises is the loop's to report, and does not harm the connection.
            inbox.on_gap = lambda gap: cast(None, loop.call_soon(on_gap, gap))

    @property
    def number(self) -> int:
        """What its events carry as `subscription`."""
        return self._inbox.number

    @property
    def pattern(self) -> str:
        """FROM."""
        return self._inbox.request.pattern

    @property
    def where(self) -> str:
        """WHERE."""
        return self._inbox.request.condition

    @property
    def lost(self) -> int:
        """Deliveries of this subscription that the broker had to drop."""
        return self._inbox.lost

    @property
    def gaps(self) -> deque[Gap]:
        """The last gaps, each with count and reason; those with subscription 0 concern the whole client."""
        return self._inbox.gaps

    @property
    def full(self) -> bool:
        """Whether so much waits here untaken that the broker keeps what follows, and goes on with the others."""
        return self._inbox.held

    @property
    def stalls(self) -> int:
        """How often it was full."""
        return self._inbox.stalls

    @property
    def confirmed(self) -> bool:
        """Whether the broker has it; not so from the gap that tells of a new session until it has it again."""
        return self._inbox.confirmed

    @property
    def begins(self) -> dict[str, int]:
        """Where it began in each log that it reads: position by log, as in "ann@1763492000". Empty without `start`."""
        return self._replaying.begins if self._replaying is not None else {}

    async def until_confirmed(self) -> None:
        """Wait until the broker has it: every event published from then on is seen. Raises what ended it.

        What comes until it is taken waits here, within the window of credit, whatever there is to be read before it.
        """
        self._client.check_loop()
        if self._replaying is not None and not self._inbox.ended:
            self._replaying.hasten()
        while not self._inbox.confirmed:
            if self._inbox.ended:
                raise self._inbox.failure or LocalError("this subscription is closed: nothing comes any more")
            self._arrived.clear()
            await self._arrived.wait()

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
                events = await self._replaying.take(Event)
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
