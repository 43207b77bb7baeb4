"""A subscription of the asyncio client: an asynchronous iterator of events, one by one or batch by batch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..client import Amended, Inbox, Replaying, SubscriptionCore, check_seconds, durable, receiving
from ..errors import LocalError
from ..messages import AckVerb, Gap
from .driver import drive, run
from .limits import TURN_EVENTS_MAX

if TYPE_CHECKING:
    from .client import Client

__all__ = ["Event", "Subscription"]


class Event(receiving.Event):
    """One event: id, time, topic, attributes, body, content_type, subscription, text, json(). What a
    durable subscription hands out has `delivery`, `delivery_count` and `redelivered`, and wants to be acknowledged.
    """

    __slots__ = ()

    def json(self) -> Any:
        """The body as JSON; raises ValueError when it is not."""
        return json.loads(self.body)

    async def ack(self, *, wait: bool = False) -> bool:
        """Acknowledge it: it is done with, and never handed out again once the broker has confirmed that.

        False when it is too late: it was or will be handed out again, after `ack_wait` or a lost connection. That is
        not known of every one until `wait` or `subscription.acked()` has waited for the broker.
        """
        say = (AckVerb.ACK, None, "")
        return await self._waited(*say) if wait else self._say(*say)

    async def nak(self, delay: float | None = None, *, wait: bool = False) -> bool:
        """Hand it out again, to whoever may have it, after so many seconds or the subscription's backoff."""
        if delay is not None:
            check_seconds("delay", delay)
        say = (AckVerb.NAK, delay, "")
        return await self._waited(*say) if wait else self._say(*say)

    async def in_progress(self, *, wait: bool = False) -> bool:
        """Still at work on it: `ack_wait` begins anew."""
        say = (AckVerb.PROGRESS, None, "")
        return await self._waited(*say) if wait else self._say(*say)

    async def term(self, reason: str = "", *, wait: bool = False) -> bool:
        """Give it up: it is a dead letter, with this reason, and never handed out again."""
        say = (AckVerb.TERM, None, reason)
        return await self._waited(*say) if wait else self._say(*say)

    def _say(self, verb: AckVerb, seconds: float | None, text: str) -> bool:
        raise LocalError("only events of a durable subscription are acknowledged: subscribe with durable='NAME'")

    async def _waited(self, verb: AckVerb, seconds: float | None, text: str) -> bool:
        return self._say(verb, seconds, text)


class DurableEvent(Event, durable.HandedEvent):
    """An event of a durable subscription."""

    __slots__ = ()

    def _say(self, verb: AckVerb, seconds: float | None, text: str) -> bool:
        return self.inbox.client.settle(self, verb, seconds, text)

    async def _waited(self, verb: AckVerb, seconds: float | None, text: str) -> bool:
        return await run(self.inbox.client.settling(self, verb, seconds, text))


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
        self._event = Event if self._durable is None else DurableEvent
        if self._durable is not None:
            self._durable.on_drop = self._drop
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

    async def ack_all(self, upto: receiving.Event, *, wait: bool = False) -> bool:
        """Acknowledge everything that was handed out up to this event, which is one of a durable subscription."""
        return await run(self._client.settling_all(self._inbox, upto, wait))

    async def acked(self) -> bool:
        """Wait until the broker has answered every acknowledgement so far; whether all since the last call count.

        Those that do are on disks: their events are never handed out again.
        """
        return await run(self._client.settled_all(self._inbox))

    async def amend(self, *, where: str | None = None, pattern: str | None = None) -> Amended:
        """Ask for something else from now on, with another condition, another pattern, or both; "" is no condition.

        Events before this returns are by the old words, those after it by the new ones; none comes twice, and none is
        missed that both want. Tells how many places in the cluster were told, kept, and are to be removed.
        Raises Refused, and then all is as before.
        """
        return await run(self._amending(self._client, where, pattern))

    async def close(self) -> None:
        """Unsubscribe; nothing of it comes any more. A durable subscription stays, and is attached to by its name."""
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
        events = inbox.take(self._event)
        self._taken += len(events) or 1
        self._client.pump()
        return cast("list[Event]", events)

    async def _change(self) -> None:
        """Until something has come of it, or the logs have to be looked at."""
        self._arrived.clear()
        if self._replaying is not None:
            seconds = self._replaying.rest_seconds
            self._inbox.listen()
        elif self._durable is not None and self._durable.rest_until is not None:
            seconds = max(0.0, self._durable.rest_until - self._client.clock())
        else:
            await self._arrived.wait()
            return
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            if self._replaying is not None:
                self._replaying.rested(seconds)
            elif self._durable is not None:
                self._client.attach(self._durable)

    def _drop(self) -> None:
        """What was taken and not given to the application is handed out again."""
        self._current = iter(())
