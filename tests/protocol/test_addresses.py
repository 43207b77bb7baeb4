"""Addresses as people write them."""

from __future__ import annotations

import doctest
from itertools import cycle

import pytest

from headgate.protocol import addresses
from headgate.protocol.addresses import Addresses, split_address, split_addresses
from headgate.protocol.errors import LocalError
from headgate.protocol.limits import ADDRESSES_MAX


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
        *("a..b", "a..b:7400", "x" * 64, "\ud800:1", "a,b"),
    ),
)
def test_what_is_no_address_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(LocalError, match="7400"):
        split_address(address)


def test_several_addresses_each_broker_once() -> None:
    assert split_addresses(" a , b:7401,a:7400,[::1]") == ("a", "b:7401", "[::1]")
    assert split_addresses("a") == ("a",)


@pytest.mark.parametrize("text", ["", ",", "a,", ",a", "a,,b", "a,b:x", ",".join(f"h{n}" for n in range(99))], ids=repr)
def test_what_is_no_list_of_addresses_is_refused(text: str) -> None:
    with pytest.raises(LocalError):
        split_addresses(text)
    assert len(split_addresses(",".join(f"h{n}" for n in range(ADDRESSES_MAX)))) == ADDRESSES_MAX


def test_the_first_time_any_order_or_the_given_one() -> None:
    assert Addresses("a,b,c,d", lambda: 0.0, shuffle=False).in_turn() == ["a", "b", "c", "d"]
    assert Addresses("a,b,c,d", lambda: 0.0).in_turn() == ["b", "c", "d", "a"]
    draws = cycle([0.9, 0.1, 0.5, 0.3, 0.7])
    several = Addresses("a,b,c,d", lambda: next(draws))
    orders = {tuple(several.in_turn()) for _ in range(50)}
    assert all(sorted(order) == ["a", "b", "c", "d"] for order in orders)
    assert len({order[0] for order in orders}) > 1, "not all clients begin with the same broker"


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_last_one_comes_first_and_the_others_in_any_order(shuffle: bool) -> None:
    several = Addresses("a,b,c,d", lambda: 0.0, shuffle)
    several.last = "c"
    assert several.in_turn() == ["c", "b", "d", "a"]


def test_a_single_address_is_kept_as_it_was_written() -> None:
    assert Addresses("host", lambda: 0.0).text == "host"
    assert Addresses(" b , a", lambda: 0.0).text == "b,a"


def test_the_example_holds() -> None:
    assert doctest.testmod(addresses).failed == 0
