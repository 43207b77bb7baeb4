"""Dialling: which broker to try next, after what pause, and how long to wait for it; and the link that goes by it.

One **round** goes through all addresses without a pause, so that a client whose broker died is with another one at
once. Between rounds it waits as `Retry` says, and with its budget the attempts end. A broker that does not answer is
given less time while there is another one to turn to.

`LinkCore` is the part of a client's link that is the same in every world: it looks for the first broker, and for
another connection when one is lost, as work for a task (`task.py`). A world's link has the connections.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..addresses import Addresses, split_address
from ..errors import (
    CannotConnect,
    ConnectionLost,
    ErrorCode,
    HeadgateError,
    LocalError,
    ProtocolViolation,
    Unauthorised,
)
from ..limits import RETRY_DELAY_SECONDS_MAX, RETRY_DELAY_SECONDS_MIN
from ..security import SCHEME, SSLContext, Tls, reason_of_tls
from ..wire import WORDLESS
from .limits import DEFAULT_LIMITS, ClientLimits
from .task import Connect, Pause, Work
from .telling import Telling

if TYPE_CHECKING:
    from .conversation import Conversation

__all__ = [
    "Attempt",
    "Dialling",
    "LinkCore",
    "Retry",
    "check_seconds",
    "reason_of",
]

# When to dial again after a connection was lost: exponential backoff with jitter, for ever or within a budget.
#
# A budget runs from the first loss. It starts anew only when a connection then lasted for a while: a broker that
# takes us in and throws us out at once uses up the budget like one that does not answer.


def check_seconds(name: str, value: object, *, none_means: str = "") -> None:
    """Raises LocalError unless it is a number of seconds, or None where that has a meaning."""
    if value is None and none_means:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not value >= 0:  # type: ignore[operator]  # a number, and perhaps NaN
        or_none = f", or None ({none_means})" if none_means else ""
        raise LocalError(f"{name} is a number of seconds, 0 or more{or_none}, not {value!r}")


class Retry:
    """The patience of one client. `jitter` gives numbers from 0 up to 1; `budget_seconds` bounds a spell of trouble,
    and None does not.
    """

    def __init__(self, budget_seconds: float | None, jitter: Callable[[], float]) -> None:
        check_seconds("retry_seconds", budget_seconds, none_means="for ever")
        self.budget_seconds = math.inf if budget_seconds is None else budget_seconds
        self.jitter = jitter
        self._ceiling = RETRY_DELAY_SECONDS_MIN
        self._since: float | None = None
        self._connected: float | None = None

    def bound(self, seconds: float) -> None:
        """Try no longer than that from now on."""
        self.budget_seconds = min(self.budget_seconds, seconds)

    def connected(self, now: float) -> None:
        """The handshake is done."""
        self._connected = now

    def lost(self, now: float) -> None:
        """The connection is gone."""
        steady = self._connected is not None and now - self._connected >= RETRY_DELAY_SECONDS_MAX
        if self._since is None or steady:
            self._since = now
            self._ceiling = RETRY_DELAY_SECONDS_MIN
        self._connected = None

    def next_delay(self, now: float) -> float | None:
        """Seconds to wait before the next attempt; None when the budget is used up."""
        since = now if self._since is None else self._since
        left = since + self.budget_seconds - now
        if left <= 0:
            return None
        # Half of the delay is random, so that the clients of a restarted broker do not come back as one.
        delay = self._ceiling * (0.5 + 0.5 * self.jitter())
        self._ceiling = min(self._ceiling * 2, RETRY_DELAY_SECONDS_MAX)
        return min(delay, left)


def reason_of(error: Exception) -> str:
    """Why a connection failed, in words for whoever reads the error that comes of it."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused (is a broker running there?)"
    if (reason := reason_of_tls(error)) is not None:
        return reason
    if isinstance(error, ProtocolViolation):
        return error.text
    if isinstance(error, ConnectionLost):
        return error.reason
    return str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class Attempt:
    """Wait for `pause` seconds, dial the address, and give up when it is not a connection after `seconds`."""

    address: str
    pause: float
    seconds: float
    tls: Tls | None = None

    def security(self) -> SSLContext | None:
        """What to dial with, as the files are now. Raises LocalError."""
        return None if self.tls is None else self.tls.context()

    @property
    def target(self) -> tuple[str, int]:
        """Host and port."""
        return split_address(self.address)


class Dialling:
    """One search for a broker, until `reached` or until `next` has nothing more. `at_once` spares the first pause."""

    def __init__(
        self, addresses: Addresses, retry: Retry, limits: ClientLimits = DEFAULT_LIMITS, *, at_once: bool = False
    ) -> None:
        self._addresses = addresses
        self._retry = retry
        self._limits = limits
        self._round = addresses.in_turn() if at_once else []
        self._reasons: dict[str, str] = {}

    def next(self, now: float) -> Attempt | None:
        """What to do next; None when the budget is used up. A round that has begun is finished."""
        pause = 0.0
        if not self._round:
            delay = self._retry.next_delay(now)
            if delay is None:
                return None
            pause = delay
            self._round = self._addresses.in_turn()
        address = self._round.pop(0)
        seconds = self._limits.dial_seconds if self._round else self._limits.handshake_seconds
        return Attempt(address, pause, seconds, self._addresses.tls)

    def reached(self, address: str) -> None:
        """There is a connection: it will be tried first when it is lost."""
        self._addresses.last = address

    def failed(self, attempt: Attempt, error: OSError | HeadgateError) -> str:
        """This attempt came to nothing; why."""
        reason = reason_of(error)
        if attempt.tls is None and reason == WORDLESS:
            reason += f" (if it speaks TLS, write {SCHEME}{attempt.address})"
        elif attempt.tls is not None and reason == WORDLESS:
            reason += " (if it asks for certificates: give one that its --tls-ca signed and that is valid today)"
        self._reasons[attempt.address] = reason
        return reason

    @property
    def reason(self) -> str:
        """Why no broker could be reached; each broker's own reason where they differ."""
        reasons = dict.fromkeys(self._reasons.values())
        if len(reasons) <= 1:
            return next(iter(reasons), "")
        return "; ".join(f"{address}: {reason}" for address, reason in self._reasons.items())


class LinkCore:
    """Keeps a conversation connected, as long as the patience of `retry` lasts; `failure` is what ended it."""

    def __init__(
        self,
        addresses: Addresses,
        conversation: Conversation,
        retry: Retry,
        clock: Callable[[], float],
        telling: Telling | None = None,
    ) -> None:
        self.addresses = addresses
        self.failure: HeadgateError | None = None
        self.reconnects = 0
        self.clock = conversation.publications.clock = clock
        self._conversation = conversation
        self._retry = retry
        self._telling = telling or Telling()

    @property
    def connected(self) -> bool:
        """The handshake is done and nobody said goodbye, as far as is known."""
        raise NotImplementedError

    def patience(self) -> Retry:
        """For something else that this client tries again and again, with the same pauses and the same end."""
        budget = self._retry.budget_seconds
        return Retry(None if math.isinf(budget) else budget, self._retry.jitter)

    def bound(self, seconds: float) -> None:
        """Look for a broker no longer than that from now on."""
        self._retry.bound(seconds)

    def forsake(self, error: HeadgateError) -> None:
        """This connection is another process's: end without a word on it."""
        self.failure = error

    def opening(self, wait_seconds: float) -> Work[None]:
        """Connect for the first time; raises CannotConnect when that fails until `wait_seconds` are over."""
        patience = Retry(wait_seconds, self._retry.jitter)
        patience.lost(self.clock())
        dialling = Dialling(self.addresses, patience, self._conversation.limits, at_once=True)
        if (error := (yield from self._search(dialling))) is not None:
            fatal = self._conversation.fatal
            refused = isinstance(fatal, ProtocolViolation) and fatal.code == ErrorCode.UNAUTHORISED
            kind = Unauthorised if refused else CannotConnect
            raise kind(self.addresses.text, dialling.reason) from error

    def reconnecting(self, reason: str) -> Work[None]:
        """The connection was lost: look for another one, until there is one or patience ends."""
        self._conversation.interrupted(reason)
        self._retry.lost(self.clock())
        self._telling.disconnected(self.addresses.last or self.addresses.text, reason, self._retry.budget_seconds)
        dialling = Dialling(self.addresses, self._retry, self._conversation.limits)
        sessions = self._conversation.sessions
        if (yield from self._search(dialling)) is None:
            self.reconnects += 1
            resumed = self._conversation.sessions == sessions
            self._telling.reconnected(self.addresses.last or "", self._conversation.broker, resumed)
            return
        reason = dialling.reason or reason
        self.failure = self._conversation.fatal or ConnectionLost(reason)
        self._telling.ended(self.addresses.text, reason_of(self.failure))
        self._conversation.abandon(reason)

    def _search(self, dialling: Dialling) -> Work[Exception | None]:
        """Try until there is a connection, or nothing more to try: then the last error."""
        last: Exception = ConnectionLost("there was no time to try")
        while self._conversation.fatal is None:
            now = self.clock()
            attempt = dialling.next(now)
            if attempt is None:
                break
            if attempt.pause:
                yield Pause(self, now + attempt.pause)
            try:
                yield Connect(self, attempt)
            except (OSError, HeadgateError) as error:
                self._telling.failed(attempt.address, dialling.failed(attempt, error))
                last = error
            else:
                dialling.reached(attempt.address)
                return None
        return last
