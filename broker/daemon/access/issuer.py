"""The issuer: its keys are fetched from an address, and for some time they are good though it does not answer.

    fetched again   after `refresh_seconds`; after `retry_seconds` when that failed; when a token names a key that is
                    not among them, `unknown_seconds` after the last try at the soonest; and when an operator asks
    good            for `kept_seconds` from the last answer that could be used

`Issuer` says when, by the clock of whoever asks it; `fetch` does it. The address is a setting. Nothing that an answer
says leads elsewhere: no redirect is followed, and nothing in it is unpacked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections import Counter
from urllib.parse import urlsplit

import aiohttp

from .limits import WEB_ADDRESS_LENGTH_MAX, WEB_KEYS_BYTES_MAX, IssuerLimits

__all__ = ["FETCHES", "Issuer", "Unfetched", "fetch", "keys_address"]

FETCHES = ("good", "unreachable", "slow", "redirect", "status", "too_large", "garbage")
"""What may come of a fetch."""


class Unfetched(Exception):
    """The keys could not be had: `kind` for the metrics, one of FETCHES; the text for people who run brokers."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Issuer:
    """When to fetch the keys of an address, and until when those that were fetched last are good."""

    def __init__(self, address: str, now: float, limits: IssuerLimits | None = None) -> None:
        self.address = address
        self.limits = limits or IssuerLimits()
        self.outcomes: Counter[str] = Counter()
        self.fetching = False
        self.failing = False
        """Whether the last fetch failed."""
        self._asked = True
        self._tried = float("-inf")
        self._since = now  # the last good fetch, or the beginning
        self._has_keys = False

    def is_due(self, now: float) -> bool:
        """Whether to fetch the keys now."""
        pause = self.limits.retry_seconds if self.failing else self.limits.refresh_seconds
        return not self.fetching and (self._asked or now - self._tried >= pause)

    def ask(self) -> None:
        """Fetch them soon: an operator says that they are others."""
        self._asked = True

    def ask_for_unknown(self, now: float) -> bool:
        """A token names a key that is not known; True when it is worth trying again, as the keys are being fetched."""
        if now - self._tried >= self.limits.unknown_seconds:
            self._asked = True
        return self.fetching or self.is_due(now)

    def begin(self, now: float) -> None:
        """They are being fetched."""
        self.fetching, self._asked, self._tried = True, False, now

    def succeed(self, now: float) -> None:
        """They were fetched, and can be used."""
        self.outcomes["good"] += 1
        self.fetching, self.failing = False, False
        self._has_keys, self._since = True, now

    def fail(self, kind: str) -> bool:
        """They were not; True for the first time in a row, which is worth a line of the log."""
        self.outcomes[kind] += 1
        is_first = not self.failing
        self.fetching, self.failing = False, True
        return is_first

    def is_over(self, now: float) -> bool:
        """Whether the keys that were fetched last are not good any more; that is said once."""
        if not self._has_keys or now - self._since < self.limits.kept_seconds:
            return False
        self._has_keys = False
        return True

    def age(self, now: float) -> float:
        """How long ago the keys were fetched, or, when they never were, this began."""
        return now - self._since


async def fetch(address: str, limits: IssuerLimits) -> bytes:
    """What is at that address now. Raises Unfetched."""
    timeout = aiohttp.ClientTimeout(total=limits.fetch_seconds)
    headers = {"Accept": "application/jwk-set+json, application/json", "Accept-Encoding": "identity"}
    # Anew each time: the system's authorities may be others than at the start. They take a while to read.
    is_secure = urlsplit(address).scheme == "https"
    trusted = await asyncio.to_thread(ssl.create_default_context) if is_secure else False
    try:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=trusted, force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=timeout,
                auto_decompress=False,
            ) as session,
            session.get(address, headers=headers, allow_redirects=False) as answer,
        ):
            return await _body(answer)
    except TimeoutError as error:
        raise Unfetched("slow", f"no whole answer within {limits.fetch_seconds:g} s") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unfetched("unreachable", str(error) or type(error).__name__) from error


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """Raises Unfetched unless that is the one answer that is expected, of a size that sets of keys have."""
    if 300 <= answer.status < 400:
        raise Unfetched(
            "redirect", f"it answers {answer.status}, go elsewhere: give the address that has the keys itself"
        )
    if answer.status != 200:
        raise Unfetched("status", f"it answers {answer.status}")
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise Unfetched("garbage", "its answer is compressed, which was not asked for")
    data = bytearray()
    async for piece in answer.content.iter_any():
        data += piece
        if len(data) > WEB_KEYS_BYTES_MAX:
            raise Unfetched("too_large", f"its answer has more than {WEB_KEYS_BYTES_MAX} bytes: that is no set of keys")
    return bytes(data)


def keys_address(text: str) -> str:
    """The address of keys, as a setting has it. Raises ValueError that says what is wrong with it."""
    if len(text) > WEB_ADDRESS_LENGTH_MAX or not text.isascii() or any(sign <= " " for sign in text):
        raise ValueError(f"an address of keys has at most {WEB_ADDRESS_LENGTH_MAX} characters, and no blanks")
    parts = urlsplit(text)
    if not parts.hostname or parts.port == 0 or parts.fragment:
        raise ValueError(f"{text!r} is no address of keys: write it like https://id.example/jwks")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address of keys has no name and no password in it: keys are public")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError(f"{text!r}: keys come over https://, since whoever changes them on the way lets himself in")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{text!r}: keys are in a file, or at an address like https://id.example/jwks")
    return text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
