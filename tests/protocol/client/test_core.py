"""What a client shows of itself is what its parts know."""

from __future__ import annotations

from headgate.protocol.addresses import Addresses
from headgate.protocol.client import ClientCore, ClientOptions, Conversation, Outcome
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
    conversation.handle(Welcome(1, "bob", b"", False, 0, 256, 15.0))
    conversation.handle(Gap(0, 7, "slow"))
    conversation.publications.failures.append(LocalError("no"))
    conversation.publications.failure_count = 3
    conversation.deliveries.malformed = 4
    conversation.publications.producers += [Producer("a", 1), Producer("b", 1)]
    conversation.publications.producers[-1].hindrance = reason = LocalError("not yet")
    assert (overview.address, overview.broker, overview.connected, overview.reconnects) == ("b:7400", "bob", True, 2)
    assert overview.hindrance is reason
    assert (len(overview.failures), overview.failure_count, overview.lost, overview.malformed) == (1, 3, 7, 4)
