"""The account of events by itself: what is under way, what credit allows, what a count makes of it.

Whole conversations, and the account over links that break at random, are in `test_peers.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.config import NodeConfig
from headgate.broker.core.delivery import ClientSession, Subscribers
from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.links import PeerHooks, PeerInfo
from headgate.broker.core.links.flow import PeerTraffic
from headgate.broker.core.links.limits import ACKNOWLEDGE_SECONDS
from headgate.broker.core.timers import Timers
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import CREDIT_MAX, PEER_CREDIT_DEFAULT
from headgate.protocol.messages import Credit, Forward
from tests.support.peer_events import forward

HALF = PEER_CREDIT_DEFAULT // 2


class Books:
    """One other broker, and what was said to it."""

    def __init__(self, **config: Any) -> None:
        settings = NodeConfig("ann", 1, **config)
        self.effects: list[Effect] = []
        self.lost: list[tuple[str, int]] = []
        self.returned: list[Forward] = []

        def nothing(*_: Any) -> None:
            return None

        hooks = PeerHooks(
            nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, self._lost, self._returned, nothing
        )
        self.subscribers = Subscribers(settings, self.effects, Timers())
        self.traffic = PeerTraffic(settings, self.effects, self.subscribers, hooks, Timers())
        self.info = PeerInfo("bob", 1, 1, "bob:1", "", ClientSession(b"key", "bob", None, 0, 0))

    def _lost(self, info: PeerInfo, stream: str, count: int, now: float) -> None:
        self.lost.append((stream, count))

    def _returned(self, info: PeerInfo, forwards: list[Forward], now: float) -> None:
        self.returned += forwards

    def link(self, number: int = 5, received: int = 0, allowed: int = 100) -> None:
        """A link, and the other side's first CREDIT on it."""
        self.info.link = number
        self.traffic.begin(self.info)
        self.traffic.credited(self.info, Credit(allowed, received), 0.0)

    def unlink(self) -> None:
        self.info.link = None
        self.traffic.end(self.info, 0.0)

    def said(self) -> list[Any]:
        """What was sent since it was last asked."""
        found = [effect.message for effect in self.effects if isinstance(effect, Send)]
        self.effects.clear()
        self.traffic.validate([self.info])
        return found


def test_credit_counts_events_and_the_last_batch_may_go_over() -> None:
    books = Books()
    books.link(allowed=10)
    messages = [forward(events=6, base=6 * number) for number in range(4)]
    for message in messages:
        books.traffic.send(books.info, message, 0.0)
    assert [one for one in books.said() if isinstance(one, Forward)] == messages[:2]
    books.traffic.credited(books.info, Credit(13, 6), 0.0)
    assert books.said() == messages[2:3]
    assert [entry.position for entry in books.info.ledger] == [12, 18]


def test_nothing_goes_out_before_the_first_count() -> None:
    books = Books()
    books.link()
    books.unlink()
    books.info.link = 6
    books.traffic.begin(books.info)
    books.traffic.send(books.info, forward(), 0.0)
    assert not any(isinstance(one, Forward) for one in books.said())
    books.traffic.credited(books.info, Credit(5, 0), 0.0)
    assert any(isinstance(one, Forward) for one in books.said())


@pytest.mark.parametrize("received", [4, 11])
def test_a_later_count_may_not_go_back_nor_ahead(received: int) -> None:
    books = Books()
    books.link()
    books.traffic.send(books.info, forward(events=10), 0.0)
    books.traffic.credited(books.info, Credit(100, 5), 0.0)
    with pytest.raises(ProtocolViolation, match="is not between 5 and 10"):
        books.traffic.credited(books.info, Credit(100, received), 0.0)


def test_a_first_count_may_not_be_ahead_unless_we_sent_nothing() -> None:
    books = Books()
    books.link(received=7)
    assert books.info.session.sent == 7, "we may have forgotten"
    books.unlink()
    books.info.link = 6
    books.traffic.begin(books.info)
    with pytest.raises(ProtocolViolation, match="more than the 7 that were ever sent"):
        books.traffic.credited(books.info, Credit(100, 8), 0.0)
    with pytest.raises(ProtocolViolation):
        Books().traffic.check_count(ClientSession(b"", "", None, 0, 0), Credit(0, CREDIT_MAX))


def test_credit_goes_back_at_half_a_window_and_what_is_done_a_little_later() -> None:
    books = Books()
    books.link()
    assert books.said() == [Credit(PEER_CREDIT_DEFAULT, 0)]
    books.traffic.came(books.info, HALF - 1)
    assert books.said() == []
    books.traffic.came(books.info, 1)
    assert books.said() == [Credit(PEER_CREDIT_DEFAULT + HALF, 0)]
    books.traffic.acknowledge(books.info, 10, 5.0)
    assert books.said() == [] and books.info.acknowledge_at == 5.0 + ACKNOWLEDGE_SECONDS
    books.traffic.acknowledge(books.info, 10, 5.01)
    assert books.info.acknowledge_at == 5.0 + ACKNOWLEDGE_SECONDS
    books.traffic.tell_handled(books.info)
    books.traffic.tell_handled(books.info)
    assert books.said() == [Credit(PEER_CREDIT_DEFAULT + HALF, 20)]
    assert books.info.acknowledge_at == float("inf")


def test_a_new_link_says_what_came_and_then_what_is_done() -> None:
    books = Books()
    books.link()
    books.traffic.came(books.info, 30)
    books.traffic.acknowledge(books.info, 10, 0.0)
    books.unlink()
    books.traffic.acknowledge(books.info, 5, 0.0)
    books.said()
    books.info.link = 6
    books.traffic.begin(books.info)
    assert books.said() == [Credit(PEER_CREDIT_DEFAULT + 30, 30), Credit(PEER_CREDIT_DEFAULT + 30, 15)]


def test_more_cannot_be_done_than_came() -> None:
    books = Books()
    books.traffic.came(books.info, 3)
    with pytest.raises(AssertionError, match="acknowledged"):
        books.traffic.acknowledge(books.info, 4, 0.0)


def test_what_is_lost_is_told_by_stream_in_the_order_in_which_it_was_sent() -> None:
    books = Books()
    books.link()
    for stream in ("a", "b", "a", "c"):
        books.traffic.send(books.info, forward(stream, 3), 0.0)
    books.unlink()
    books.link(6, received=3)
    assert books.lost == [("b", 3), ("a", 3), ("c", 3)]
    assert [entry.stream for entry in books.info.ledger] == ["a"]


def test_what_was_not_sent_is_handed_back_once() -> None:
    books = Books()
    for number in range(3):
        books.traffic.send(books.info, forward(base=number), 0.0)
    books.traffic.hand_back(books.info, 0.0)
    books.traffic.hand_back(books.info, 0.0)
    assert [message.base for message in books.returned] == [0, 1, 2]
    assert books.subscribers.outbox_bytes == books.traffic.forwards_bytes == 0
