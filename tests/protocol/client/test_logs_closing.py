"""Logs ask other brokers by clients of their own: none stays open when theirs is closed while one is dialled."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.protocol.client import Close, Dial
from headgate.protocol.client.logs import Logs
from headgate.protocol.data import LogName
from headgate.protocol.errors import ConnectionLost


class Owner:
    """A client that may be closed, at one broker of two."""

    broker, address = "ann", "ann:1"

    def __init__(self) -> None:
        self.is_closed = False

    def check_usable(self) -> None:
        """Raises when it is closed."""
        if self.is_closed:
            raise ConnectionLost("closed")

    def asking(self, verb: str, arguments: dict[str, Any]) -> Any:
        """It answers at once."""
        if verb == "log.at":
            return {"position": 3}
        row = {"broker": "bob", "epoch": 1, "kind": "events", "stream": "quotes", "own": True, "holder": "bob"}
        row |= dict.fromkeys(("first", "next", "bytes", "first_time", "last_time"), 0)
        facts = {"stored": True, "copies": 1, "away": [], "brokers": {"ann": "ann:1", "bob": "bob:1"}}
        return {**facts, "total": 1, "logs": [row]}
        yield


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_broker_that_answers_after_the_client_was_closed_is_left_again(is_closed: bool) -> None:
    owner: Any = Owner()
    other: Any = Owner()
    logs = Logs(owner)
    work = logs.position_at(LogName("bob", 1, 0, "quotes"), 0)
    wanted = next(work)
    assert isinstance(wanted, Dial) and (wanted.name, wanted.address) == ("bob", "bob:1")
    owner.is_closed = is_closed
    assert list(logs.close()) == [], "nobody is there yet whom it could leave"
    wanted.others["bob"] = other
    following: list[Any] = []
    try:
        following.append(work.send(other))
        following.extend(work)
    except (StopIteration, ConnectionLost):
        pass
    assert [(type(one), one.client) for one in following] == [(Close, other)] * is_closed
    assert ("bob" in wanted.others) is not is_closed
