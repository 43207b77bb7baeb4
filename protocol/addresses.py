"""A broker's address as people write it: `host`, `host:port`, `[::1]:7400`."""

from __future__ import annotations

from .errors import LocalError

__all__ = ["PORT_DEFAULT", "split_address"]

PORT_DEFAULT = 7400


def split_address(address: str) -> tuple[str, int]:
    """(host, port) of an address; raises LocalError when it is not one.

    >>> split_address("127.0.0.1"), split_address("[::1]:7500")
    (('127.0.0.1', 7400), ('::1', 7500))
    """
    host, port = _parts(address)
    if not host or any(sign in host for sign in "[]/ ") or not _is_name(host):
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
