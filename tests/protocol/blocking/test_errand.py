"""Errands: work that is seen through in parts, however little time a call has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.protocol.blocking.errand import Errand, Work, settled
from headgate.protocol.client import Outcome
from headgate.protocol.errors import ConnectionLost


class Client:
    """Sees what comes when it is let."""

    def __init__(self) -> None:
        self.looks: list[float | None] = []
        self.comes: Callable[[], None] = lambda: None

    def wait(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        self.looks.append(seconds)
        self.comes()
        return done()


def both(client: Client, one: Outcome, other: Outcome) -> Work[list[object]]:
    first = yield from settled(client, one)
    return [first, (yield from settled(client, other))]


def test_it_goes_on_where_it_was() -> None:
    client, one, other = Client(), Outcome(1), Outcome(1)
    errand = Errand(both(client, one, other))
    assert not errand.advance(0.0) and not errand.advance(0.0)
    one.settle(1)
    assert not errand.advance(0.0)
    other.settle(2)
    assert errand.advance(0.0) and errand.result == [1, 2]
    assert client.looks == [0.0] * 5, "each call looks once, whatever the time"


def test_it_may_take_any_time() -> None:
    client, one, other = Client(), Outcome(1), Outcome(1)
    client.comes = lambda: other.settle(2) if one.settled else one.settle(1)
    assert Errand(both(client, one, other)).run() == [1, 2]
    assert client.looks == [None, None]


def test_what_goes_wrong_is_raised_where_it_is_waited_for() -> None:
    client, one = Client(), Outcome(1)
    errand = Errand(both(client, one, Outcome(1)))
    assert not errand.advance(0.0)
    one.settle(error=ConnectionLost("reset"))
    with pytest.raises(ConnectionLost, match="reset"):
        errand.advance(0.0)
