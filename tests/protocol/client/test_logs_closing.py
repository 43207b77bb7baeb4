"""Logs ask other brokers by clients of their own: none stays open when theirs is closed while one is dialled."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.protocol.client import Close, Dial
from headgate.protocol.client.logs import Logs
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
        rows = [{"name": name, "state": "up", "client_address": f"{name}:1"} for name in ("ann", "bob")]
        return {"brokers": rows} if verb == "ring" else []
        yield


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_broker_that_answers_after_the_client_was_closed_is_left_again(is_closed: bool) -> None:
    owner: Any = Owner()
    other: Any = Owner()
    logs = Logs(owner)
    work = logs.find("quotes", 1)
    wanted = next(work)
    assert isinstance(wanted, Dial) and (wanted.name, wanted.address) == ("bob", "bob:1")
    owner.is_closed = is_closed
    assert list(logs.close()) == [], "nobody is there yet whom it could leave"
    wanted.others["bob"] = other
    try:
        following = [work.send(other), *work]
    except StopIteration:
        following = []
    assert [(type(one), one.client) for one in following] == [(Close, other)] * is_closed
    assert ("bob" in wanted.others) is not is_closed
