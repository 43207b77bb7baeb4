"""The link of a blocking client to its broker: it dials, shakes hands, and dials again when the connection is lost.

Everything happens inside `turn`: one turn reads and writes, or waits for the next attempt, or makes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..addresses import split_address
from ..conversation import Conversation
from ..errors import CannotConnect, ConnectionLost, HeadgateError
from ..limits import HANDSHAKE_SECONDS_MAX
from ..messages import Goodbye
from ..retry import Retry, reason_of
from ..session import State
from .limits import CLOSE_SECONDS_MAX
from .wire import Wire

__all__ = ["Link"]


def _never() -> bool:
    return False


class Link:
    """Carries the messages of a Conversation over one Wire after another."""

    def __init__(self, address: str, conversation: Conversation, retry: Retry, clock: Callable[[], float]) -> None:
        self.address = address
        self.failure: HeadgateError | None = None
        self.reconnects = 0
        self._host, self._port = split_address(address)
        self._conversation = conversation
        self._retry = retry
        self._clock = clock
        self._wire: Wire | None = None
        self._next_attempt = 0.0

    @property
    def connected(self) -> bool:
        """There is a connection, as far as the last turn saw."""
        return self._wire is not None

    def open(self, wait_seconds: float) -> None:
        """Connect for the first time; raises CannotConnect when that fails until `wait_seconds` are over."""
        patience = Retry(wait_seconds, self._retry.jitter)
        patience.lost(self._clock())
        while True:
            try:
                return self._dial()
            except (OSError, HeadgateError) as error:
                delay = None if self._conversation.fatal else patience.next_delay(self._clock())
                if delay is None:
                    raise CannotConnect(self.address, reason_of(error)) from error
            time.sleep(delay)

    def turn(self, seconds: float | None, done: Callable[[], bool] = _never) -> None:
        """Do the next thing, waiting for it at most so long. Trouble ends in `failure`, never in an exception.

        Sending may be all that somebody waits for: then it is `done`, and nothing is waited for.
        """
        wire = self._wire
        if wire is None:
            if self.failure is None:
                self._attempt(seconds)
            return
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

    def close(self) -> None:
        """Say goodbye, and wait a moment for the broker to have read it."""
        wire, self._wire = self._wire, None
        if wire is None:
            return
        deadline = self._clock() + CLOSE_SECONDS_MAX
        try:
            wire.send(Goodbye(0, ""))
            while self._clock() < deadline:
                wire.turn(deadline - self._clock())
        except (OSError, HeadgateError):
            return  # the end of the stream, which was waited for
        finally:
            wire.close()

    def _handle(self, wire: Wire, seconds: float | None) -> None:
        for message in wire.turn(seconds):
            self._conversation.handle(message)

    def _dial(self) -> None:
        deadline = self._clock() + HANDSHAKE_SECONDS_MAX
        wire = Wire(self._host, self._port, HANDSHAKE_SECONDS_MAX, self._clock)
        try:
            wire.send(self._conversation.hello())
            while wire.session.state is State.OPENING:
                left = deadline - self._clock()
                if left <= 0:
                    raise ConnectionLost(f"no answer within {HANDSHAKE_SECONDS_MAX:g} seconds")
                self._handle(wire, left)
            if wire.session.closed:
                raise wire.session.failure or ConnectionLost("the broker said goodbye")
        except BaseException:
            wire.close()
            raise
        self._wire = wire
        self._retry.connected(self._clock())

    def _attempt(self, seconds: float | None) -> None:
        wait = self._next_attempt - self._clock()
        if wait > 0:
            time.sleep(wait if seconds is None else max(0.0, min(wait, seconds)))
            if seconds is not None and seconds < wait:
                return
        try:
            self._dial()
            self.reconnects += 1
        except (OSError, HeadgateError) as error:
            self._schedule(reason_of(error))

    def _lost(self, wire: Wire, reason: str) -> None:
        wire.close()
        self._wire = None
        self._conversation.interrupted(reason)
        self._retry.lost(self._clock())
        self._schedule(reason)

    def _schedule(self, reason: str) -> None:
        delay = None if self._conversation.fatal else self._retry.next_delay(self._clock())
        if delay is None:
            self.failure = self._conversation.fatal or ConnectionLost(reason)
            self._conversation.abandon(reason)
        else:
            self._next_attempt = self._clock() + delay
