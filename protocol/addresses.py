"""Brokers' addresses as people write them: `host`, `host:port`, `[::1]:7400`; several with commas between them.

`tls://` before an address, or before a list, says that these brokers are spoken to over TLS.
"""

from __future__ import annotations

from collections.abc import Callable

from .errors import LocalError
from .limits import ADDRESSES_MAX
from .security import PLAIN, SCHEME, Tls

__all__ = ["PORT_DEFAULT", "Addresses", "split_address", "split_addresses"]

PORT_DEFAULT = 7400


class Addresses:
    """The brokers that one client may turn to, and the order in which it does.

    `draw` gives numbers from 0 up to 1. Who comes back starts with the broker that it had, because its session may
    still be there; the others follow in any order, so that the clients of a dead broker spread over those that live.
    """

    def __init__(self, text: str, draw: Callable[[], float], shuffle: bool = True, tls: Tls = PLAIN) -> None:
        self.every = split_addresses(text)
        self.text = text if len(self.every) == 1 else ",".join(self.every)
        self.tls = tls if tls or SCHEME in text else None
        """What to dial with, where that is over TLS."""
        if self.tls is not None:
            self.tls.context()  # what cannot be used is told at once
        self.last: str | None = None
        self._draw = draw
        self._shuffle = shuffle

    def in_turn(self) -> list[str]:
        """All of them, in the order in which to try them now."""
        others = [address for address in self.every if address != self.last]
        if self.last is None:
            return self._shuffled(others) if self._shuffle else others
        return [self.last, *self._shuffled(others)]

    def _shuffled(self, addresses: list[str]) -> list[str]:
        for place in range(len(addresses) - 1, 0, -1):
            other = int(self._draw() * (place + 1))
            addresses[place], addresses[other] = addresses[other], addresses[place]
        return addresses


def split_addresses(text: str) -> tuple[str, ...]:
    """Every address of a list with commas, without `tls://`, each broker once; raises LocalError when one is none.

    >>> split_addresses("a:7400, b:7400,a")
    ('a:7400', 'b:7400')
    """
    if not isinstance(text, str):
        raise LocalError(f"an address is a string, host:port or several with commas between them, not {text!r}")
    found: dict[tuple[str, int], str] = {}
    for part in text.split(","):
        address = part.strip().removeprefix(SCHEME)
        if not address and "," in text:
            raise LocalError(f"{text!r} names a broker too few: write addresses with one comma between, as in a,b:7401")
        found.setdefault(split_address(address), address)
    if len(found) > ADDRESSES_MAX:
        raise LocalError(f"a client knows at most {ADDRESSES_MAX} brokers, not {len(found)}: name some of them")
    return tuple(found.values())


def split_address(address: str) -> tuple[str, int]:
    """(host, port) of an address; raises LocalError when it is not one.

    >>> split_address("127.0.0.1"), split_address("[::1]:7500")
    (('127.0.0.1', 7400), ('::1', 7500))
    """
    host, port = _parts(address.removeprefix(SCHEME))
    if not host or any(sign in host for sign in "[]/, ") or not _is_name(host):
        raise _refusal(address)
    if not port:
        return host, PORT_DEFAULT
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65_536):
        raise _refusal(address)
    return host, int(port)


def _parts(address: str) -> tuple[str, str]:
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")) or rest == ":":
            raise _refusal(address)
        return host, rest[1:]
    if address.count(":") > 1:
        raise LocalError(f"{address!r}: write an IPv6 address in brackets, as in [::1]:{PORT_DEFAULT}")
    host, colon, port = address.partition(":")
    if colon and not port:
        raise _refusal(address)
    return host, port


def _is_name(host: str) -> bool:
    """Whether a resolver would take it: no empty label, none of more than 63 characters."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _refusal(address: str) -> LocalError:
    return LocalError(f"{address!r} is not an address: write host:port, as in 127.0.0.1:{PORT_DEFAULT} or [::1]:7400")
