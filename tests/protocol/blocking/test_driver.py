"""The blocking driver: work that is seen through in parts, however little time a call has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from headgate.protocol.blocking.driver import drive, run
from headgate.protocol.client import Close, Dial, Outcome, Settled, Task, Work
from headgate.protocol.errors import CannotConnect, ConnectionLost


class Client:
    """Sees what comes when it is let."""

    def __init__(self) -> None:
        self.dialling = threading.Lock()
        self.looks: list[float | None] = []
        self.comes: Callable[[], None] = lambda: None
        self.is_closed = False

    def wait(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        self.looks.append(seconds)
        self.comes()
        return done()

    def clock(self) -> float:
        return 0.0

    def another(self, address: str) -> Client:
        if address == "nobody":
            raise CannotConnect(address, "refused")
        return Client()

    def close(self) -> None:
        self.is_closed = True


def both(client: Any, one: Outcome, other: Outcome) -> Work[list[object]]:
    yield Settled(client, one)
    first = one.result()
    yield Settled(client, other)
    return [first, other.result()]


def test_it_goes_on_where_it_was() -> None:
    client, one, other = Client(), Outcome(1), Outcome(1)
    task = Task(both(client, one, other))
    assert not drive(task, 0.0) and not drive(task, 0.0)
    one.settle(1)
    assert not drive(task, 0.0)
    other.settle(2)
    assert drive(task, 0.0) and task.result == [1, 2]
    assert client.looks == [0.0] * 5, "each call looks once, whatever the time"


def test_it_may_take_any_time() -> None:
    client, one, other = Client(), Outcome(1), Outcome(1)
    client.comes = lambda: other.settle(2) if one.settled else one.settle(1)
    assert run(both(client, one, other)) == [1, 2]
    assert client.looks == [None, None]


def test_what_goes_wrong_is_raised_where_it_is_waited_for() -> None:
    client, one = Client(), Outcome(1)
    task = Task(both(client, one, Outcome(1)))
    assert not drive(task, 0.0)
    one.settle(error=ConnectionLost("reset"))
    with pytest.raises(ConnectionLost, match="reset"):
        drive(task, 0.0)


def test_others_are_dialled_and_closed_and_their_absence_is_told() -> None:
    client: Any = Client()
    others: dict[str, Any] = {}

    def work() -> Work[Any]:
        other = yield Dial(client, others, "bob", "there")
        try:
            yield Dial(client, others, "nobody", "nobody")
        except CannotConnect:
            yield Close(other)
        return other

    assert run(work()).is_closed and not client.is_closed
