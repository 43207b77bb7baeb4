"""Dialling: which broker to try next, after what pause, and how long to wait for it. Without I/O; both clients use it.

One **round** goes through all addresses without a pause, so that a client whose broker died is with another one at
once. Between rounds it waits as `Retry` says, and with its budget the attempts end. A broker that does not answer is
given less time while there is another one to turn to.
"""

from __future__ import annotations

from dataclasses import dataclass

from .addresses import Addresses, split_address
from .errors import HeadgateError
from .limits import DIAL_SECONDS_MAX, HANDSHAKE_SECONDS_MAX
from .retry import Retry, reason_of

__all__ = ["Attempt", "Dialling"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Wait for `pause` seconds, dial the address, and give up when it is not a connection after `seconds`."""

    address: str
    pause: float
    seconds: float

    @property
    def target(self) -> tuple[str, int]:
        """Host and port."""
        return split_address(self.address)


class Dialling:
    """One search for a broker, until `reached` or until `next` has nothing more. `at_once` spares the first pause."""

    def __init__(self, addresses: Addresses, retry: Retry, at_once: bool = False) -> None:
        self._addresses = addresses
        self._retry = retry
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
        return Attempt(address, pause, DIAL_SECONDS_MAX if self._round else HANDSHAKE_SECONDS_MAX)

    def reached(self, address: str) -> None:
        """There is a connection: it will be tried first when it is lost."""
        self._addresses.last = address

    def failed(self, address: str, error: OSError | HeadgateError) -> None:
        """This attempt came to nothing."""
        self._reasons[address] = reason_of(error)

    @property
    def reason(self) -> str:
        """Why nobody could be reached; each broker's own reason where they differ."""
        reasons = dict.fromkeys(self._reasons.values())
        if len(reasons) <= 1:
            return next(iter(reasons), "")
        return "; ".join(f"{address}: {reason}" for address, reason in self._reasons.items())
