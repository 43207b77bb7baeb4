"""The core of a client: it shows what its parts know, and waits in tasks."""

from __future__ import annotations

import pytest

from headgate.protocol.addresses import Addresses
from headgate.protocol.client import ClientCore, ClientOptions, Conversation, Outcome, Settled, Task
from headgate.protocol.client.producing import Producer
from headgate.protocol.errors import HeadgateError, LocalError
from headgate.protocol.messages import Gap, Welcome


class Link:
    """A link that goes nowhere."""

    def __init__(self) -> None:
        self.addresses = Addresses("a:7400,b:7400", lambda: 0.0, shuffle=False)
        self.failure: HeadgateError | None = None
        self.reconnects = 0
        self.connected = False

    def forsake(self, error: HeadgateError) -> None:
        self.failure = error


def test_it_shows_what_its_parts_know() -> None:
    conversation, link = Conversation(ClientOptions(), Outcome), Link()
    overview = ClientCore(ClientOptions(), conversation, link, lambda: 0.0)
    assert (overview.address, overview.addresses) == ("a:7400,b:7400", ("a:7400", "b:7400"))
    assert (overview.broker, overview.connected, overview.reconnects) == ("", False, 0)
    assert overview.hindrance is None
    assert (list(overview.failures), overview.failure_count, overview.lost, overview.malformed) == ([], 0, 0, 0)
    link.addresses.last, link.connected, link.reconnects = "b:7400", True, 2
    conversation.handle(Welcome(2, "bob", b"", False, 0, 256, 15.0))
    conversation.handle(Gap(0, 7, "slow"))
    conversation.publications.failures.append(LocalError("no"))
    conversation.publications.failure_count = 3
    conversation.deliveries.malformed = 4
    conversation.publications.producers += [Producer("a", 1), Producer("b", 1)]
    conversation.publications.producers[-1].hindrance = reason = LocalError("not yet")
    assert (overview.address, overview.broker, overview.connected, overview.reconnects) == ("b:7400", "bob", True, 2)
    assert overview.hindrance is reason
    assert (len(overview.failures), overview.failure_count, overview.lost, overview.malformed) == (1, 3, 7, 4)


def test_who_waits_for_a_confirmation_is_told_of_the_end() -> None:
    conversation = Conversation(ClientOptions(), Outcome)
    core = ClientCore(ClientOptions(), conversation, Link(), lambda: 0.0)  # type: ignore[arg-type]
    inbox = conversation.inbox("a", "", {})
    task = Task(core.confirming(inbox))
    wanted = task.begin()
    assert isinstance(wanted, Settled) and not wanted.outcome.settled
    inbox.end(discard=True)
    assert wanted.outcome.settled
    with pytest.raises(LocalError, match="closed"):
        task.give(None)


def test_who_waits_for_a_confirmation_waits_for_that_of_the_session_that_there_is() -> None:
    conversation = Conversation(ClientOptions(), Outcome)
    core = ClientCore(ClientOptions(), conversation, Link(), lambda: 0.0)  # type: ignore[arg-type]
    inbox = conversation.inbox("a", "", {})
    task = Task(core.confirming(inbox))
    first = task.begin()
    inbox.confirm()
    inbox.unconfirm(Outcome())
    second = task.give(None)
    assert isinstance(first, Settled) and isinstance(second, Settled)
    assert first.outcome.settled and not second.outcome.settled
    inbox.confirm()
    assert task.give(None) is None
