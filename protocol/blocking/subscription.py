"""A subscription of the blocking client: an iterator of events, with a time to wait where one is wanted."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..client import Amended, Inbox, Replaying, SubscriptionCore, Task, check_seconds, durable, receiving, remember
from ..errors import LocalError
from ..messages import AckVerb, Gap
from .driver import drive, run

if TYPE_CHECKING:
    from .client import BlockingClient

__all__ = ["Event", "Subscription"]


class Event(receiving.Event):
    """One event: id, time, topic, attributes, body, content_type, subscription, text, json(). What a
    durable subscription hands out has `delivery`, `delivery_count` and `redelivered`, and wants to be acknowledged.
    """

    __slots__ = ()

    def json(self) -> Any:
        """The body as JSON; raises ValueError when it is not."""
        return json.loads(self.body)

    def ack(self, *, wait: bool = False) -> bool:
        """Acknowledge it: it is done with, and never handed out again once the broker has confirmed that.

        False when it is too late: it was or will be handed out again, after `ack_wait` or a lost connection. That is
        not known of every one until `wait` or `subscription.acked()` has waited for the broker.
        """
        say = (AckVerb.ACK, None, "")
        return self._waited(*say) if wait else self._say(*say)

    def nak(self, delay: float | None = None, *, wait: bool = False) -> bool:
        """Hand it out again, to whoever may have it, after so many seconds or the subscription's backoff."""
        if delay is not None:
            check_seconds("delay", delay)
        say = (AckVerb.NAK, delay, "")
        return self._waited(*say) if wait else self._say(*say)

    def in_progress(self, *, wait: bool = False) -> bool:
        """Still at work on it: `ack_wait` begins anew."""
        say = (AckVerb.PROGRESS, None, "")
        return self._waited(*say) if wait else self._say(*say)

    def term(self, reason: str = "", *, wait: bool = False) -> bool:
        """Give it up: it is a dead letter, with this reason, and never handed out again."""
        say = (AckVerb.TERM, None, reason)
        return self._waited(*say) if wait else self._say(*say)

    def _say(self, verb: AckVerb, seconds: float | None, text: str) -> bool:
        raise LocalError("only events of a durable subscription are acknowledged: subscribe with durable='NAME'")

    def _waited(self, verb: AckVerb, seconds: float | None, text: str) -> bool:
        return self._say(verb, seconds, text)


class DurableEvent(Event, durable.HandedEvent):
    """An event of a durable subscription."""

    __slots__ = ()

    def _say(self, verb: AckVerb, seconds: float | None, text: str) -> bool:
        return self.inbox.client.settle(self, verb, seconds, text)

    def _waited(self, verb: AckVerb, seconds: float | None, text: str) -> bool:
        return run(self.inbox.client.settling(self, verb, seconds, text))


class Subscription(SubscriptionCore):
    """Made by `BlockingClient.subscribe`. `for event in subscription` waits for ever; `events(seconds)` does not.

    What is not taken waits: `credit` events or `credit_bytes` of them here, and then at the broker, which in the end
    drops the oldest and says so (`lost`, `gaps`, `on_gap`). When a client has several subscriptions, one that is `full`
    does not hold up the others.
    """

    def __init__(
        self,
        client: BlockingClient,
        inbox: Inbox,
        on_gap: Callable[[Gap], None] | None,
        replaying: Replaying | None = None,
    ) -> None:
        super().__init__(inbox, replaying)
        self._client = client
        self._left: deque[Event] = deque()  # taken, and not handed out yet
        self._taking = threading.RLock()  # who reads logs for it
        self._on_gap = on_gap
        self._untold: list[Gap] = []
        if on_gap is not None:
            inbox.on_gap = self._untold.append
        self._event = Event if self._durable is None else DurableEvent
        if self._durable is not None:
            self._durable.on_drop = self._left.clear
        remember(self)

    def forked(self, error: LocalError) -> None:
        """This is a child of the process that subscribed: what its inbox says is all that is left."""
        self._left.clear()
        self._replaying = None  # and with it the lock, which another thread of the parent may have

    def until_confirmed(self, seconds: float | None = None) -> bool:
        """Wait until the broker has it, or so many seconds have passed; tells which. Raises what ended it.

        What comes until it is taken waits here, within the window of credit, whatever there is to be read before it.
        """
        deadline = None if seconds is None else self._client.clock() + seconds
        try:
            return drive(Task(self._confirming(self._client)), deadline)
        finally:
            self._tell_gaps()

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def __next__(self) -> Event:
        for event in self.events():
            return event
        raise StopIteration

    def events(self, seconds: float | None = None) -> Iterator[Event]:
        """Events one by one; ends when it is closed, or when nothing came for so many seconds."""
        left = self._left
        while True:
            # Other threads may be at it as well: each event goes to one of them.
            try:
                event = left.popleft()
            except IndexError:
                batch = self.take(seconds)
                if not batch:
                    return
                left.extend(batch)
            else:
                yield event

    def batches(self, seconds: float | None = None) -> Iterator[list[Event]]:
        """The same events as lists, as they came."""
        while batch := self.take(seconds):
            yield batch

    def take(self, seconds: float | None = None) -> list[Event]:
        """The next events; none when it is closed, or when nothing came for so many seconds. Raises what ended it."""
        if self._left:
            with suppress(IndexError):
                return [self._left.popleft() for _ in range(len(self._left))]
        if self._replaying is None:
            return self._take(seconds)
        with self._taking:
            return self._take(seconds)

    def _take(self, seconds: float | None) -> list[Event]:
        inbox = self._inbox
        deadline = None if seconds is None else self._client.clock() + seconds
        while True:
            if self._replaying is not None:
                task = self._replaying.take(Event)
                is_done = drive(task, deadline)
                self._tell_gaps()
                if not is_done or task.result:
                    return cast("list[Event]", task.result if is_done else [])
            self._client.give_credit()
            if not inbox.waiting and not self._wait(deadline):
                continue
            self._tell_gaps()
            with self._client.sharing:
                if inbox.at_gap:
                    continue
                if not inbox.waiting:
                    if inbox.failure is not None:
                        raise inbox.failure
                    if inbox.ended or (deadline is not None and self._client.clock() >= deadline):
                        return []
                    continue  # another thread was quicker
                events = inbox.take(self._event)
            if events:
                return cast("list[Event]", events)

    def _wait(self, deadline: float | None) -> bool:
        """Until something comes or this time; False when the logs have to be looked at before."""
        if self._durable is not None:
            return self._wait_attached(self._durable, deadline)
        inbox, replaying = self._inbox, self._replaying
        seconds = None if deadline is None else max(0.0, deadline - self._client.clock())
        is_short = replaying is not None and (seconds is None or replaying.rest_seconds < seconds)
        if replaying is not None and is_short:
            seconds = replaying.rest_seconds
            inbox.listen()
        came = self._client.wait(lambda: inbox.waiting or inbox.ended, seconds)
        if replaying is not None and is_short and not came:
            replaying.rested(seconds or 0.0)
        return came or not is_short

    def _wait_attached(self, inbox: durable.DurableInbox, deadline: float | None) -> bool:
        """The same for a durable subscription, which is asked for again after a rest."""
        now = self._client.clock()
        if inbox.rest_until is not None and inbox.rest_until <= now:
            self._client.attach(inbox)
        rest = inbox.rest_until
        until = min((one for one in (rest, deadline) if one is not None), default=None)
        came = self._client.wait(
            lambda: inbox.waiting or inbox.ended or inbox.rest_until != rest,
            None if until is None else max(0.0, until - now),
        )
        return (came and inbox.rest_until == rest) or until == deadline

    def _tell_gaps(self) -> None:
        """Here, in the application's own call, so that what its callback raises reaches the application."""
        while self._untold and self._on_gap is not None:
            self._on_gap(self._untold.pop(0))

    def ack_all(self, upto: receiving.Event, *, wait: bool = False) -> bool:
        """Acknowledge everything that was handed out up to this event, which is one of a durable subscription."""
        return run(self._client.settling_all(self._inbox, upto, wait))

    def acked(self, seconds: float | None = None) -> bool:
        """Wait until the broker has answered every acknowledgement so far, or so many seconds; whether all since the
        last call count.

        Those that do are on disks: their events are never handed out again.
        """
        task = Task(self._client.settled_all(self._inbox))
        return drive(task, None if seconds is None else self._client.clock() + seconds) and task.result

    def amend(self, *, where: str | None = None, pattern: str | None = None) -> Amended:
        """Ask for something else from now on, with another condition, another pattern, or both; "" is no condition.

        Events before this returns are by the old words, those after it by the new ones; none comes twice, and none is
        missed that both want. Tells how many places in the cluster were told, kept, and are to be removed.
        Raises Refused, and then all is as before.
        """
        return run(self._amending(self._client, where, pattern))

    def close(self) -> None:
        """Unsubscribe; nothing of it comes any more. A durable subscription stays, and is attached to by its name."""
        self._left.clear()
        if not self._inbox.ended:
            self._client.unsubscribe(self._inbox)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
