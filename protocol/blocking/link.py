"""The link of a blocking client to its broker: it dials, shakes hands, and dials again, or the next one, when lost.

Everything happens inside `turn`: one turn reads and writes, or waits for the next attempt, or makes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..addresses import Addresses
from ..client import Attempt, Conversation, Dialling, Retry, Telling, reason_of
from ..errors import CannotConnect, ConnectionLost, HeadgateError
from ..messages import Goodbye
from ..wire import State
from .limits import CLOSE_SECONDS_MAX
from .sharing import Sharing
from .wire import Wire

__all__ = ["Link"]


def _never() -> bool:
    return False


class Link:
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
        self.addresses = addresses
        self.failure: HeadgateError | None = None
        self.reconnects = 0
        self._conversation = conversation
        self._retry = retry
        self._clock = conversation.publications.clock = clock
        self._telling = telling or Telling()
        self._sharing = sharing
        self._wire: Wire | None = None
        self._dialling: Dialling | None = None
        self._attempt: Attempt | None = None
        self._attempt_at = 0.0
        self._rests_until: float | None = None

    @property
    def connected(self) -> bool:
        """There is a connection, as far as the last turn saw."""
        return self._wire is not None

    def open(self, wait_seconds: float) -> None:
        """Connect for the first time; raises CannotConnect when that fails until `wait_seconds` are over."""
        patience = Retry(wait_seconds, self._retry.jitter)
        patience.lost(self._clock())
        dialling = Dialling(self.addresses, patience, self._conversation.limits, at_once=True)
        last: Exception = ConnectionLost("there was no time to try")
        while self._conversation.fatal is None and (attempt := dialling.next(self._clock())) is not None:
            time.sleep(attempt.pause)
            try:
                return self._dial(dialling, attempt)
            except (OSError, HeadgateError) as error:
                dialling.failed(attempt.address, error)
                self._telling.failed(attempt.address, reason_of(error))
                last = error
        raise CannotConnect(self.addresses.text, dialling.reason) from last

    def turn(self, seconds: float | None, done: Callable[[], bool] = _never) -> None:
        """Do the next thing, waiting for it at most so long. Trouble ends in `failure`, never in an exception.

        Sending may be all that somebody waits for: then it is `done`, and nothing is waited for.
        """
        wire = self._wire
        if wire is None:
            if self._dialling is not None and self._attempt is not None:
                self._try_again(self._dialling, self._attempt, seconds)
            return
        seconds = self._rest(seconds)
        try:
            if self._clock() - wire.last_turn > wire.session.heartbeat_seconds:
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

    def bound(self, seconds: float) -> None:
        """Look for a broker no longer than that from now on."""
        self._retry.bound(seconds)

    def forsake(self, error: HeadgateError) -> None:
        """This connection is another process's: end without a word on it."""
        self.failure = error
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def close(self) -> None:
        """Say goodbye, and wait a moment for the broker to have read it."""
        wire, self._wire = self._wire, None
        if wire is None:
            return
        deadline = self._clock() + CLOSE_SECONDS_MAX
        try:
            for message in (*self._conversation.last_words(), Goodbye(0, "")):
                wire.send(message)
            while self._clock() < deadline:
                wire.turn(deadline - self._clock())
        except (OSError, HeadgateError):
            return  # the end of the stream, which was waited for
        finally:
            wire.close()

    def _rest(self, seconds: float | None) -> float | None:
        """As long as may be waited, for producers that rest must be opened again in time."""
        publications, now = self._conversation.publications, self._clock()
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

    def _dial(self, dialling: Dialling, attempt: Attempt) -> None:
        deadline = self._clock() + attempt.seconds
        wire = Wire(*attempt.target, attempt.seconds, self._clock, self._sharing)
        try:
            wire.send(self._conversation.hello())
            while wire.session.state is State.OPENING:
                left = deadline - self._clock()
                if left <= 0:
                    raise ConnectionLost(f"no answer within {attempt.seconds:g} seconds")
                self._handle(wire, left)
            if wire.session.closed:
                raise wire.session.failure or ConnectionLost("the broker said goodbye")
        except BaseException:
            wire.close()
            raise
        self._wire = wire
        dialling.reached(attempt.address)
        self._retry.connected(self._clock())

    def _try_again(self, dialling: Dialling, attempt: Attempt, seconds: float | None) -> None:
        wait = self._attempt_at - self._clock()
        if wait > 0:
            self._pause(wait if seconds is None else max(0.0, min(wait, seconds)))
            if self._clock() < self._attempt_at:
                return
        sessions = self._conversation.sessions
        try:
            self._dial(dialling, attempt)
            self.reconnects += 1
            resumed = self._conversation.sessions == sessions
            self._telling.reconnected(attempt.address, self._conversation.broker, resumed)
        except (OSError, HeadgateError) as error:
            dialling.failed(attempt.address, error)
            self._telling.failed(attempt.address, reason_of(error))
            self._schedule(dialling, dialling.reason)

    def _pause(self, seconds: float) -> None:
        """Wait, and not longer than until everybody is told something."""
        if self._sharing is None:
            time.sleep(seconds)
        else:
            with self._sharing:
                self._sharing.follow(seconds)

    def _lost(self, wire: Wire, reason: str) -> None:
        wire.close()
        self._wire = None
        self._conversation.interrupted(reason)
        self._retry.lost(self._clock())
        self._telling.disconnected(self.addresses.last or self.addresses.text, reason, self._retry.budget_seconds)
        self._dialling = Dialling(self.addresses, self._retry, self._conversation.limits)
        self._schedule(self._dialling, reason)

    def _schedule(self, dialling: Dialling, reason: str) -> None:
        now = self._clock()
        self._attempt = None if self._conversation.fatal else dialling.next(now)
        if self._attempt is None:
            self.failure = self._conversation.fatal or ConnectionLost(reason)
            self._telling.ended(self.addresses.text, reason_of(self.failure))
            self._conversation.abandon(reason)
        else:
            self._attempt_at = now + self._attempt.pause
