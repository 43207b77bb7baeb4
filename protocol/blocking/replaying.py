"""Replaying: what a subscription of the blocking client gives until it has caught up, by the steps of `replay.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..messages import Gap
from ..receiving import Event, Inbox
from ..replay import Replay, Step

if TYPE_CHECKING:
    from .client import BlockingClient

__all__ = ["Replaying"]


class Replaying:
    """Reads the logs for one inbox, and has it subscribed by `confirm` when it is time. `live` when that is done."""

    def __init__(
        self, client: BlockingClient, inbox: Inbox, start: str | int, confirm: Callable[[Inbox], None]
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._confirm = confirm
        self._replay = Replay(start, lambda count, reason: inbox.gap(Gap(inbox.number, count, reason)))
        self._events: list[Event] = []
        inbox.covered = self._replay.covered

    @property
    def live(self) -> bool:
        """Whatever comes now comes from the broker."""
        return self._replay.step is Step.LIVE and not self._events

    def begin(self, event: type[Event]) -> None:
        """Go so far that a place, pattern or condition that is none was refused. Raises Refused."""
        self._go(event)
        self._go(event)

    def take(self, event: type[Event]) -> list[Event]:
        """The next events; none when there are none any more."""
        while not self._events and self._replay.step is not Step.LIVE:
            if self._inbox.ended:
                break
            self._go(event)
        events, self._events = self._events, []
        return events

    def _go(self, event: type[Event]) -> None:
        request, replay = self._inbox.request, self._replay
        if replay.step is Step.LIST:
            replay.listed(self._client.logs(request.pattern.split("/")[0]))
        elif replay.step is Step.READ:
            name, position = replay.next_read
            chunk = self._client.read_log(name, position, 0, request.pattern, request.condition)
            self._events += self._inbox.read(replay.taken(name, chunk), event)
        elif replay.step is Step.SUBSCRIBE:
            self._confirm(self._inbox)
            replay.subscribed()
