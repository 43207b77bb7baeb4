"""Replaying: what a subscription of the asyncio client gives until it has caught up, by the steps of `replay.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..messages import Gap
from ..outcome import Outcome
from ..receiving import Event, Inbox
from ..replay import Replay, Step

if TYPE_CHECKING:
    from .client import Client

__all__ = ["Replaying"]


class Replaying:
    """Reads the logs for one inbox, and has it subscribed by `subscribe` when it is time. `live` when that is done.

    Whoever waits for events may be cancelled at any moment: what was begun goes on with the next one who waits.
    """

    def __init__(self, client: Client, inbox: Inbox, start: str | int, subscribe: Callable[[Inbox], Outcome]) -> None:
        self._client = client
        self._inbox = inbox
        self._subscribe = subscribe
        self._subscribed: Outcome | None = None
        self._replay = Replay(start, lambda count, reason: inbox.gap(Gap(inbox.number, count, reason)))
        self._events: list[Event] = []
        inbox.covered = self._replay.covered

    @property
    def live(self) -> bool:
        """Whatever comes now comes from the broker."""
        return self._replay.step is Step.LIVE and not self._events

    async def begin(self, event: type[Event]) -> None:
        """Go so far that a place, pattern or condition that is none was refused. Raises Refused."""
        await self._go(event)
        await self._go(event)

    async def take(self, event: type[Event]) -> list[Event]:
        """The next events; none when there are none any more."""
        while not self._events and self._replay.step is not Step.LIVE:
            if self._inbox.ended:
                break
            await self._go(event)
        events, self._events = self._events, []
        return events

    async def _go(self, event: type[Event]) -> None:
        request, replay = self._inbox.request, self._replay
        if replay.step is Step.LIST:
            replay.listed(await self._client.logs(request.pattern.split("/")[0]))
        elif replay.step is Step.READ:
            name, position = replay.next_read
            chunk = await self._client.read_log(name, position, 0, request.pattern, request.condition)
            self._events += self._inbox.read(replay.taken(name, chunk), event)
        elif replay.step is Step.SUBSCRIBE:
            if self._subscribed is None:
                self._subscribed = self._subscribe(self._inbox)
            await self._subscribed  # type: ignore[misc]  # the conversation makes Receipts
            replay.subscribed()
