"""The door: finds out which user a client is, beside the loop, within bounds that strangers cannot widen.

    credentials   "password NAME:PASSWORD"   "token TOKEN"   ""

With none, a certificate that was shown decides. A token is one of the file of users, or a web token. A password is
hashed whether its user exists or not. A client that was right lately is known by a digest under a key that this process
alone has, so that thousands that come back at once need no argon2; the key and the digests are never written down.
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
from functools import partial

from .gatekeeper import Gatekeeper
from .limits import PASSWORD_LENGTH_MAX, DoorLimits
from .passwords import NOBODYS, is_password
from .web_tokens import Unproved, WebTokens, is_web_token

__all__ = ["KINDS", "Door", "Guest", "NotLetIn"]

KINDS = (
    *("nothing", "password", "token", "certificate", "malformed", "busy"),
    *("jwt_malformed", "jwt_algorithm", "jwt_key", "jwt_signature", "jwt_issuer", "jwt_audience", "jwt_claims"),
    *("jwt_expired", "jwt_early", "jwt_no_keys"),
)
"""Why a client is not let in. It is not told in which way a token is wrong; logs and metrics are."""

_WRONG = "this broker does not know that user, or the password is wrong"
_WRONG_TOKEN = "this token is unknown, revoked or expired"
_NO_KEYS = "this broker has to fetch the keys of the issuer of web tokens first: try again in a moment"
_FOR_WANT_OF_KEYS = ("jwt_key", "jwt_no_keys")


@dataclass(frozen=True, slots=True)
class Guest:
    """Who was let in, and by what; what a web token says of its roles and its end (in seconds since 1970)."""

    user: str
    credential: str
    roles: tuple[str, ...] | None = None
    ends: float = float("inf")


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
        self._right: dict[bytes, Guest] = {}  # digest of credentials -> whose they were

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
        """Find out, and tell in the loop: at once, or when a thread knows. A no is told after its delay.

        Who would be told no for want of the issuer's key, while its keys are being fetched, is looked at once more.
        """

        def tell(found: Guest | NotLetIn, is_last: bool = False) -> None:
            if isinstance(found, NotLetIn) and found.kind in _FOR_WANT_OF_KEYS and self._keys_may_come():
                if not is_last:
                    again = partial(self._verify, credentials, proved, address, partial(tell, is_last=True))
                    asyncio.get_running_loop().call_later(self.limits.failure_seconds, again)
                    return
                found = NotLetIn(found.kind, _NO_KEYS, True)
            self._tell(found, told)

        self._verify(credentials, proved, address, tell)

    def _verify(
        self, credentials: str, proved: tuple[str, ...], address: str, tell: Callable[[Guest | NotLetIn], None]
    ) -> None:
        """The same, without delay."""
        found = self._at_once(credentials, proved)
        if isinstance(found, Guest | NotLetIn):
            tell(found)
            return
        host = _host(address)
        limits = self.limits
        if self._waiting.total() >= limits.waiting or self._waiting[host] >= limits.waiting_per_address:
            text = "too many passwords and tokens are being checked: try again in a moment"
            tell(NotLetIn("busy", text, True))
            return
        self._waiting[host] += 1
        loop = asyncio.get_running_loop()
        future = self._pool.submit(found)

        def done(future: object) -> None:
            try:
                loop.call_soon_threadsafe(checked)
            except RuntimeError:
                return  # the loop is gone: nobody waits for an answer any more

        def checked() -> None:
            self._waiting[host] -= 1
            if self._waiting[host] <= 0:
                del self._waiting[host]
            guest = NotLetIn("busy", "this broker is stopping", True) if future.cancelled() else future.result()
            if isinstance(guest, Guest):
                if self.keeper.policy.holds(guest.user, guest.credential):
                    self._remember(credentials, guest)
                else:  # the files have changed meanwhile
                    guest = _no_longer(guest)
            tell(guest)

        future.add_done_callback(done)

    def _at_once(self, credentials: str, proved: tuple[str, ...]) -> Guest | NotLetIn | Callable[[], Guest | NotLetIn]:
        """What needs no thread, or what a thread has to do."""
        if not credentials:
            found = self.keeper.certificate_of(proved)
            if found is not None:
                return Guest(*found)
            if proved:
                return NotLetIn("certificate", "the certificate that was shown is of no user here")
            text = "this broker wants to know who you are: say --user and --password-file, or HEADGATE_TOKEN"
            return NotLetIn("nothing", text)
        guest = self._right.get(self._digest(credentials))
        if guest and self.keeper.policy.holds(guest.user, guest.credential) and self._clock() < guest.ends:
            return guest
        kind, _, said = credentials.partition(" ")
        if kind == "token" and self.keeper.web_tokens is not None and is_web_token(said):
            if not self.keeper.web_tokens.credentials:
                return NotLetIn("jwt_no_keys", _NO_KEYS, True)
            return partial(_prove, self.keeper.web_tokens, said, self._clock())
        if kind == "token":
            found = self.keeper.token_of(said, self._clock())
            return Guest(*found) if found else NotLetIn("token", _WRONG_TOKEN)
        name, colon, password = said.partition(":")
        if kind != "password" or not colon or len(password.encode()) > PASSWORD_LENGTH_MAX:
            return NotLetIn("malformed", "credentials are `password NAME:PASSWORD` or `token TOKEN`")
        user = self.keeper.users.get(name)
        if user is None or not user.password:
            return partial(_compare, None, password, NOBODYS)
        return partial(_compare, Guest(name, user.password_name), password, user.password)

    def _keys_may_come(self) -> bool:
        """Whether the issuer is being asked for its keys, or is soon, because one of them is missed."""
        issuer = self.keeper.issuer
        return issuer is not None and issuer.ask_for_unknown(time.monotonic())

    def _tell(self, found: Guest | NotLetIn, told: Callable[[Guest | NotLetIn], None]) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(found, Guest):
            loop.call_soon(told, found)
        else:
            self.failures[found.kind] += 1
            loop.call_later(self.limits.failure_seconds, told, found)

    def _remember(self, credentials: str, guest: Guest) -> None:
        if len(self._right) >= self.limits.remembered:
            del self._right[next(iter(self._right))]
        self._right[self._digest(credentials)] = guest

    def _digest(self, credentials: str) -> bytes:
        return hmac.digest(self._key, credentials.encode(errors="surrogatepass"), hashlib.sha256)


def _compare(guest: Guest | None, password: str, kept: str) -> Guest | NotLetIn:
    """Hash a password, in a thread."""
    is_right = is_password(password, kept)
    return guest if is_right and guest is not None else NotLetIn("password", _WRONG)


def _prove(tokens: WebTokens, text: str, now: float) -> Guest | NotLetIn:
    """Check a web token, in a thread."""
    try:
        return Guest(*tokens.prove(text, now))
    except Unproved as reason:
        return NotLetIn(reason.kind, _WRONG_TOKEN)


def _no_longer(guest: Guest) -> NotLetIn:
    return NotLetIn("password", _WRONG) if guest.roles is None else NotLetIn("jwt_key", _WRONG_TOKEN)


def _host(address: str) -> str:
    """The address of a connection without its port."""
    return address.rpartition(":")[0] or address
