"""The link of a blocking client to its broker: it dials, shakes hands, and dials again, or the next one, when lost.

Everything happens inside `turn`: one turn reads and writes, or waits for the next attempt, or makes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..addresses import Addresses
from ..client import Attempt, Conversation, LinkCore, Retry, Task, Telling, reason_of
from ..errors import ConnectionLost, HeadgateError
from ..messages import Goodbye
from ..wire import State
from .driver import advance, run
from .limits import CLOSE_SECONDS_MAX
from .sharing import Sharing
from .wire import Wire

__all__ = ["Link"]


def _never() -> bool:
    return False


class Link(LinkCore):
    """Carries the messages of a Conversation over one Wire after another."""

    def __init__(
        self,
        addresses: Addresses,
        conversation: Conversation,
        retry: Retry,
        clock: Callable[[], float],
        telling: Telling | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        super().__init__(addresses, conversation, retry, clock, telling)
        self._sharing = sharing
        self._wire: Wire | None = None
        self._reconnecting: Task[None] | None = None
        self._rests_until: float | None = None

    @property
    def connected(self) -> bool:
        """There is a connection, as far as the last turn saw."""
        return self._wire is not None

    def open(self, wait_seconds: float) -> None:
        """Connect for the first time; raises CannotConnect when that fails until `wait_seconds` are over."""
        run(self.opening(wait_seconds))

    def turn(self, seconds: float | None, done: Callable[[], bool] = _never) -> None:
        """Do the next thing, waiting for it at most so long. Trouble ends in `failure`, never in an exception.

        Sending may be all that somebody waits for: then it is `done`, and nothing is waited for.
        """
        wire = self._wire
        if wire is None:
            if self._reconnecting is not None and self.failure is None:
                advance(self._reconnecting, None if seconds is None else self.clock() + seconds)
            return
        seconds = self._rest(seconds)
        try:
            if self.clock() - wire.last_turn > wire.session.heartbeat_seconds:
                # After a long silence the broker may have given us up: look before anything is entrusted to it.
                self._handle(wire, 0.0)
            if not wire.session.closed:
                for message in self._conversation.outgoing(wire.paused):
                    wire.send(message)
                self._handle(wire, 0.0 if done() else seconds)
            if wire.session.closed:
                raise wire.session.failure or ConnectionLost("the broker said goodbye")
        except (OSError, HeadgateError) as error:
            self._lost(wire, reason_of(error))

    def connect(self, attempt: Attempt) -> None:
        """Make one attempt. Raises OSError, or a HeadgateError."""
        deadline = self.clock() + attempt.seconds
        wire = Wire(*attempt.target, attempt.seconds, self.clock, self._sharing, attempt.security())
        try:
            wire.send(self._conversation.hello())
            while wire.session.state is State.OPENING:
                left = deadline - self.clock()
                if left <= 0:
                    raise ConnectionLost(f"no answer within {attempt.seconds:g} seconds")
                self._handle(wire, left)
            if wire.session.closed:
                raise wire.session.failure or ConnectionLost("the broker said goodbye")
        except BaseException:
            wire.close()
            raise
        self._wire = wire
        self._retry.connected(self.clock())

    def pause(self, seconds: float) -> None:
        """Wait, and not longer than until everybody is told something."""
        if self._sharing is None:
            time.sleep(seconds)
        else:
            with self._sharing:
                self._sharing.follow(seconds)

    def forsake(self, error: HeadgateError) -> None:
        """This connection is another process's: end without a word on it."""
        super().forsake(error)
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def close(self) -> None:
        """Say goodbye, and wait a moment for the broker to have read it."""
        wire, self._wire = self._wire, None
        if wire is None:
            return
        deadline = self.clock() + CLOSE_SECONDS_MAX
        try:
            for message in (*self._conversation.last_words(), Goodbye(0, "")):
                wire.send(message)
            while self.clock() < deadline:
                wire.turn(deadline - self.clock())
        except (OSError, HeadgateError):
            return  # the end of the stream, which was waited for
        finally:
            wire.close()

    def _rest(self, seconds: float | None) -> float | None:
        """As long as may be waited, for producers that rest must be opened again in time."""
        publications, now = self._conversation.publications, self.clock()
        pause = publications.pause_seconds
        if pause is None:
            self._rests_until = None
            return seconds
        if self._rests_until is None:
            self._rests_until = now + pause
        elif now >= self._rests_until:
            self._rests_until = None
            publications.rested()
            return seconds
        left = self._rests_until - now
        return left if seconds is None else min(left, seconds)

    def _handle(self, wire: Wire, seconds: float | None) -> None:
        for message in wire.turn(seconds):
            self._conversation.handle(message)

    def _lost(self, wire: Wire, reason: str) -> None:
        wire.close()
        self._wire = None
        self._reconnecting = Task(self.reconnecting(reason))
        self._reconnecting.begin()
