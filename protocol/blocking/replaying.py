"""Replaying: what a subscription of the blocking client gives that begins in the past, by the steps of `replay.py`.

While it is live there is nothing to do, but for a look at the logs now and then, until a gap comes next in its inbox.
Each step is an errand (`errand.py`): whoever takes may have no time to see its end, and it goes on with who comes next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..client import Chunk, ClientLimits, Event, Inbox, Looks, Outcome, Replay, Step
from ..data import LogName
from ..errors import CannotConnect, ConnectionLost, ErrorCode, HeadgateError, LocalError, Refused
from ..messages import Gap
from .errand import Errand, Work, settled

if TYPE_CHECKING:
    from .client import BlockingClient

__all__ = ["Replaying"]

_PASSING = (ErrorCode.NOT_FOUND, ErrorCode.NOT_STORED, ErrorCode.UNAVAILABLE)
"""Why a log cannot be read now: nobody within reach has it, or it is not on enough disks yet."""


class Replaying:
    """Reads the logs for one inbox, and has it subscribed by `subscribe` when it is time."""

    def __init__(
        self,
        client: BlockingClient,
        inbox: Inbox,
        start: str | int,
        subscribe: Callable[[Inbox], Outcome],
        limits: ClientLimits,
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._subscribe = subscribe
        self._subscribed: Outcome | None = None
        self._replay = Replay(start, lambda count, reason: inbox.tell(Gap(inbox.number, count, reason)), limits)
        self._events: list[Event] = []
        self._said: list[Gap] = []
        self._is_stored = True
        self._errand: Errand[None] | None = None
        self._began_at = self._rests_until = 0.0
        self._looks = Looks(limits)
        self._quiet_seconds = limits.replay_quiet_seconds
        self._was_quiet = self._may_mark = False
        inbox.covered, inbox.heard = self._replay.covered, self._replay.heard

    @property
    def begins(self) -> dict[str, int]:
        """Where each log begins that is read."""
        return self._replay.begins

    @property
    def rest_seconds(self) -> float:
        """How long nothing has to be done unless something comes."""
        return max(0.0, self._rests_until - time.monotonic())

    @property
    def is_late(self) -> bool:
        """Whether there was no time to finish what has to be done before anything else."""
        return self._errand is not None

    def rested(self, seconds: float) -> None:
        """Nothing came for so long since the inbox listened, though whoever waited could have had it."""
        self._was_quiet = seconds >= self._quiet_seconds

    def hasten(self) -> Outcome:
        """Subscribe now, without waiting for it: what comes until it was read up to there waits in the inbox."""
        if self._subscribed is None:
            self._client.check_usable()
            self._subscribed = self._subscribe(self._inbox)
        return self._subscribed

    def begin(self, event: type[Event]) -> None:
        """Go so far that a place, pattern or condition that is none was refused. Raises Refused."""
        self._began_at = time.monotonic()
        while self._replay.step in (Step.LIST, Step.SEEK):
            Errand(self._go(event)).run()
        Errand(self._go(event)).run()

    def take(self, event: type[Event], deadline: float | None = None) -> list[Event]:
        """The next events from the logs; none while what comes next was delivered, or is to come, or `is_late`."""
        inbox, replay = self._inbox, self._replay
        self._may_mark, self._was_quiet = self._was_quiet and inbox.is_quiet, False
        while not self._events:
            if inbox.ended:
                self._errand = None
                self._give_up()
                break
            if replay.step is Step.LIVE and not self.is_late:
                if inbox.at_gap:
                    with self._client.sharing:
                        self._said += inbox.close_gap()
                    replay.lost()
                elif self.rest_seconds:
                    break
                elif not self._client.connected:
                    # Nobody can be asked now, and what was delivered need not wait for it.
                    self._began_at = time.monotonic()
                    self._rest()
                    break
                else:
                    replay.look_again()
                self._began_at = time.monotonic()
            self._errand = self._errand or Errand(self._go(event))
            try:
                if not self._errand.advance(deadline):
                    break
                self._errand = None
            except HeadgateError:
                self._errand = None
                if not inbox.ended:
                    raise
                continue  # what its end broke off says nothing: the inbox knows why it ended, if there is a why
        events, self._events = self._events, []
        return events

    def _go(self, event: type[Event]) -> Work[None]:
        request, replay = self._inbox.request, self._replay
        if replay.step is Step.LIST:
            yield from self._list(request.pattern.split("/")[0])
        elif replay.step is Step.SEEK:
            name, position = replay.next_look
            chunk = yield from self._chunk(name, position, 1, "", "")
            if chunk is not None:
                replay.looked(name, chunk)
        elif replay.step is Step.READ:
            name, position = replay.next_read
            chunk = yield from self._chunk(name, position, 0, request.pattern, request.condition)
            if chunk is not None:
                replay.taken(name, chunk)
        elif replay.step is Step.SUBSCRIBE:
            if replay.is_subscribed:
                yield from self._confirmed()
            else:
                yield from settled(self._client, self.hasten())
            replay.subscribed()
        for piece in replay.drain():
            self._events += self._inbox.read(piece, event)
        if replay.step is Step.LIVE:
            self._rest()
            self._judge()

    def _rest(self) -> None:
        """Until the next look."""
        now = time.monotonic()
        self._rests_until = now + self._looks.pause(bool(self._replay.away), now - self._began_at)

    def _confirmed(self) -> Work[None]:
        """The broker of a new session has it too."""
        inbox = self._inbox
        yield self._client, lambda: inbox.confirmed or inbox.ended
        if inbox.ended:
            raise inbox.failure or LocalError("this subscription is closed: nothing comes any more")

    def _list(self, stream: str) -> Work[None]:
        may_mark = self._may_mark
        try:
            survey = yield from self._client.over_logs().survey(stream)
        except (CannotConnect, ConnectionLost):
            self._client.check_usable()
            return  # the client finds another broker, and that one is asked
        self._is_stored = survey.stored
        self._replay.listed(survey.logs, survey.away, survey.copies, may_mark and self._inbox.is_quiet)

    def _chunk(self, name: LogName, position: int, events: int, pattern: str, condition: str) -> Work[Chunk | None]:
        """Of a log, or nothing when nobody can be asked: its time will come."""
        try:
            return (yield from self._client.over_logs().read(name, position, events, pattern, condition))
        except (CannotConnect, ConnectionLost, Refused) as error:
            self._client.check_usable()
            if isinstance(error, Refused) and error.code not in _PASSING:
                raise
            self._replay.unreadable(name, str(error), isinstance(error, Refused) and error.code == ErrorCode.NOT_STORED)
        return None

    def _judge(self) -> None:
        """What was missing has been read, if it was kept at all."""
        said, self._said = self._said, []
        if not self._is_stored:
            for gap in said:
                self._inbox.tell(gap)

    def _give_up(self) -> None:
        """Nothing is read any more: what was missing is missing."""
        said, self._said = self._said, []
        while self._inbox.at_gap:
            with self._client.sharing:
                said += self._inbox.close_gap()
        for gap in said:
            self._inbox.tell(gap)
