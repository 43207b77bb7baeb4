"""Replaying: what a subscription gives that begins in the past, by the steps of `replay.py`, as work for a task.

While it is live there is nothing to do, but for a look at the logs now and then, until a gap comes next in its inbox.
Whoever waits for events may be cancelled, or have no time to see the end of a step: what was begun goes on with whoever
waits next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data import LogName
from ..errors import CannotConnect, ConnectionLost, ErrorCode, HeadgateError, Refused
from ..messages import Gap
from .catalogue import Chunk
from .outcome import Outcome
from .receiving import Event, Inbox
from .replay import Looks, Replay, Step
from .task import Task, Work, settled

if TYPE_CHECKING:
    from .core import ClientCore

__all__ = ["Replaying"]

_PASSING = (ErrorCode.NOT_FOUND, ErrorCode.NOT_STORED, ErrorCode.UNAVAILABLE)
"""Why a log cannot be read now: nobody within reach has it, or it is not on enough disks yet."""


class Replaying:
    """Reads the logs for one inbox, and has it subscribed when it is time."""

    def __init__(self, client: ClientCore, inbox: Inbox, start: str | int) -> None:
        limits = client.limits
        self._client = client
        self._inbox = inbox
        self._clock = client.clock
        self._subscribed: Outcome | None = None
        self._replay = Replay(start, lambda count, reason: inbox.tell(Gap(inbox.number, count, reason)), limits)
        self._events: list[Event] = []
        self._said: list[Gap] = []
        self._is_stored = True
        self._task: Task[list[Event]] | None = None
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
        return max(0.0, self._rests_until - self._clock())

    @property
    def is_late(self) -> bool:
        """Whether there was no time to finish what has to be done before anything else."""
        return self._task is not None

    def rested(self, seconds: float) -> None:
        """Nothing came for so long since the inbox listened, though whoever waited could have had it."""
        self._was_quiet = seconds >= self._quiet_seconds

    def hasten(self) -> Outcome:
        """Subscribe now, without waiting for it: what comes until it was read up to there waits in the inbox."""
        if self._subscribed is None:
            self._client.check_usable()
            self._subscribed = self._client.say_subscribe(self._inbox)
        return self._subscribed

    def begin(self, event: type[Event]) -> Work[None]:
        """Go so far that a place, pattern or condition that is none was refused. Raises Refused."""
        self._began_at = self._clock()
        while self._replay.step in (Step.LIST, Step.SEEK):
            yield from self._go(event)
        yield from self._go(event)

    def take(self, event: type[Event]) -> Task[list[Event]]:
        """The next events from the logs; none while what comes next was delivered, or is to come.

        The same task until it has come to its end, or the inbox has.
        """
        if self._task is not None and self._inbox.ended:
            self._task.close()
            self._task = None
        if self._task is None:
            self._task = Task(self._take(event))
        return self._task

    def _take(self, event: type[Event]) -> Work[list[Event]]:
        inbox, replay = self._inbox, self._replay
        self._may_mark, self._was_quiet = self._was_quiet and inbox.is_quiet, False
        try:
            while not self._events:
                if inbox.ended:
                    self._give_up()
                    break
                if replay.step is Step.LIVE:
                    if inbox.at_gap:
                        self._close_gap()
                        replay.lost()
                    elif self.rest_seconds:
                        break
                    elif not self._client.connected:
                        # Nobody can be asked now, and what was delivered need not wait for it.
                        self._began_at = self._clock()
                        self._rest()
                        break
                    else:
                        replay.look_again()
                    self._began_at = self._clock()
                try:
                    yield from self._go(event)
                except HeadgateError:
                    if not inbox.ended:
                        raise
                    # What its end broke off says nothing: the inbox knows why it ended, if there is a why.
        finally:
            self._task = None
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
                yield from self._client.confirming(self._inbox)
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
        now = self._clock()
        self._rests_until = now + self._looks.pause(bool(self._replay.away), now - self._began_at)

    def _list(self, stream: str) -> Work[None]:
        try:
            survey = yield from self._client.over_logs().survey(stream)
        except (CannotConnect, ConnectionLost):
            self._client.check_usable()
            return  # the client finds another broker, and that one is asked
        self._is_stored = survey.stored
        self._replay.listed(survey.logs, survey.away, survey.copies, self._may_mark and self._inbox.is_quiet)

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

    def _close_gap(self) -> None:
        with self._client.sharing:
            self._said += self._inbox.close_gap()

    def _judge(self) -> None:
        """What was missing has been read, if it was kept at all."""
        said, self._said = self._said, []
        if not self._is_stored:
            for gap in said:
                self._inbox.tell(gap)

    def _give_up(self) -> None:
        """Nothing is read any more: what was missing is missing."""
        while self._inbox.at_gap:
            self._close_gap()
        said, self._said = self._said, []
        for gap in said:
            self._inbox.tell(gap)
