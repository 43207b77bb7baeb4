"""The door: finds out which user a client is, beside the loop, within bounds that strangers cannot widen.

    credentials   "password NAME:PASSWORD"   "token TOKEN"   ""

With none, a certificate that was shown decides. A password is hashed whether its user exists or not. A client that was
right lately is known by a digest under a key that this process alone has, so that thousands that come back at once need
no argon2; the key and the digests are never written down.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .gatekeeper import Gatekeeper
from .limits import PASSWORD_LENGTH_MAX, DoorLimits
from .passwords import NOBODYS, is_password

__all__ = ["KINDS", "Door", "Guest", "NotLetIn"]

KINDS = ("nothing", "password", "token", "certificate", "malformed", "busy")
"""Why a client is not let in."""

_WRONG = "this broker does not know that user, or the password is wrong"


@dataclass(frozen=True, slots=True)
class Guest:
    """Who was let in, and by what."""

    user: str
    credential: str


@dataclass(frozen=True, slots=True)
class NotLetIn:
    """Why not: `kind` for the metrics, `text` for the client; `busy`: it was not looked at, and may try again."""

    kind: str
    text: str
    busy: bool = False


class Door:
    """Says which user a client is. `close` when no more is asked."""

    def __init__(
        self, keeper: Gatekeeper, limits: DoorLimits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.keeper = keeper
        self.limits = limits or DoorLimits()
        self.failures: Counter[str] = Counter()
        self._clock = clock
        self._pool = ThreadPoolExecutor(self.limits.threads, "headgate-door")
        self._waiting: Counter[str] = Counter()
        self._strangers: Counter[str] = Counter()
        self._key = os.urandom(32)
        self._right: dict[bytes, str] = {}  # digest of name and password -> what is kept of the password that it was

    def close(self) -> None:
        """No more threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- strangers ---------------------------------------------------------------------------------------------------

    def knock(self, address: str) -> bool:
        """A connection came of which nobody knows who it is; False when there are too many of its address."""
        host = _host(address)
        self._strangers[host] += 1
        return self._strangers[host] <= self.limits.strangers_per_address

    def forget(self, address: str) -> None:
        """It is no stranger any more, or gone."""
        host = _host(address)
        self._strangers[host] -= 1
        if self._strangers[host] <= 0:
            del self._strangers[host]

    # --- who it is ---------------------------------------------------------------------------------------------------

    def verify(
        self, credentials: str, proved: tuple[str, ...], address: str, told: Callable[[Guest | NotLetIn], None]
    ) -> None:
        """Find out, and tell in the loop: at once, or when a thread knows. A no is told after its delay."""
        found = self._at_once(credentials, proved)
        if found is not None:
            self._tell(found, told)
            return
        host = _host(address)
        limits = self.limits
        if self._waiting.total() >= limits.waiting or self._waiting[host] >= limits.waiting_per_address:
            self._tell(NotLetIn("busy", "too many passwords are being checked: try again in a moment", True), told)
            return
        self._waiting[host] += 1
        name, _, password = credentials.removeprefix("password ").partition(":")
        user = self.keeper.users.get(name)
        kept = user.password if user is not None and user.password else NOBODYS
        loop = asyncio.get_running_loop()
        future = self._pool.submit(is_password, password, kept)

        def done(future: object) -> None:
            try:
                loop.call_soon_threadsafe(checked)
            except RuntimeError:
                return  # the loop is gone: nobody waits for an answer any more

        def checked() -> None:
            self._waiting[host] -= 1
            if self._waiting[host] <= 0:
                del self._waiting[host]
            now = self.keeper.users.get(name)
            is_right = not future.cancelled() and future.result() and now is not None and now.password == kept
            if is_right and now is not None:
                self._remember(name, password, kept)
                self._tell(Guest(name, now.password_name), told)
            else:
                self._tell(NotLetIn("password", _WRONG), told)

        future.add_done_callback(done)

    def _at_once(self, credentials: str, proved: tuple[str, ...]) -> Guest | NotLetIn | None:
        """What needs no thread; None: a password has to be hashed."""
        if not credentials:
            found = self.keeper.certificate_of(proved)
            if found is not None:
                return Guest(*found)
            if proved:
                return NotLetIn("certificate", "the certificate that was shown is of no user here")
            text = "this broker wants to know who you are: say --user and --password-file, or HEADGATE_TOKEN"
            return NotLetIn("nothing", text)
        kind, _, said = credentials.partition(" ")
        if kind == "token":
            found = self.keeper.token_of(said, self._clock())
            return Guest(*found) if found else NotLetIn("token", "this token is unknown, revoked or expired")
        name, colon, password = said.partition(":")
        if kind != "password" or not colon or len(password.encode()) > PASSWORD_LENGTH_MAX:
            return NotLetIn("malformed", "credentials are `password NAME:PASSWORD` or `token TOKEN`")
        user = self.keeper.users.get(name)
        if user is not None and user.password and self._right.get(self._digest(name, password)) == user.password:
            return Guest(name, user.password_name)
        return None

    def _tell(self, found: Guest | NotLetIn, told: Callable[[Guest | NotLetIn], None]) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(found, Guest):
            loop.call_soon(told, found)
        else:
            self.failures[found.kind] += 1
            loop.call_later(self.limits.failure_seconds, told, found)

    def _remember(self, name: str, password: str, kept: str) -> None:
        if len(self._right) >= self.limits.remembered:
            del self._right[next(iter(self._right))]
        self._right[self._digest(name, password)] = kept

    def _digest(self, name: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{name}:{password}".encode(), hashlib.sha256)


def _host(address: str) -> str:
    """The address of a connection without its port."""
    return address.rpartition(":")[0] or address
