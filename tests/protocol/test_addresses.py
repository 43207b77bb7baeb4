"""Addresses as people write them."""

from __future__ import annotations

import doctest

import pytest

import protocol.addresses
from protocol.addresses import split_address
from protocol.errors import LocalError


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("localhost", ("localhost", 7400)),
        ("broker-1.example:1", ("broker-1.example", 1)),
        ("127.0.0.1:65535", ("127.0.0.1", 65535)),
        ("[::1]", ("::1", 7400)),
        ("[fe80::1]:99", ("fe80::1", 99)),
    ],
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address",
    (
        *("", ":7400", "host:", "host:0", "host:65536", "host:x", "host:-1", "host:²"),
        *("[::1", "[::1]x", "[::1]:", "[]:1", "::1", "a:b:c", "http://host:80", "host/path", "ho st:1"),
        *("a..b", "a..b:7400", "x" * 64, "\ud800:1"),
    ),
)
def test_what_is_no_address_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(LocalError, match="7400"):
        split_address(address)


def test_the_example_holds() -> None:
    assert doctest.testmod(protocol.addresses).failed == 0
