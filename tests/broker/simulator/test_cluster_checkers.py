"""Each checker of a cluster accepts what is right and names what is not."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.simulator.checkers import (
    AcceptedOnce,
    Answered,
    Checker,
    DeliveredOrAnnounced,
    OnlyAsked,
    OrderOfOneAnchor,
)
from headgate.broker.simulator.engine import Violation
from headgate.broker.simulator.workloads import ClusterHistory, Delivery, Event, SubscriptionLog, Words
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Gap, Goodbye, Scope, Subscribe


class FakeClient:
    """As much of a client as checkers look at."""

    name = "c"
    open = True
    session_gap = 0
    acknowledged, sequence = 2, 5

    def __init__(self, *logs: SubscriptionLog) -> None:
        self.subscriptions = {log.number: log for log in logs}
        self.pending: dict[int, object] = {}
        self.unacknowledged: list[object] = []


class Case:
    """Two events of one publisher, one subscription."""

    def __init__(self) -> None:
        self.history = ClusterHistory()
        for ordinal, name in enumerate(("p:1", "p:2")):
            self.history.events[name] = Event(name, "p", ordinal, "quotes/x", b"", {}, accepted_at=float(ordinal))
        self.log = SubscriptionLog("c", 1, 1, Words.of("quotes", "", False))
        self.client: Any = FakeClient(self.log)

    def deliver(self, checker: Checker, name: str, event_id: tuple[str, int] = ("o", 1)) -> None:
        checker.delivered(self.client, self.log, Delivery(1, name, "quotes/x", b"", event_id))


@pytest.fixture
def case() -> Case:
    return Case()


def test_what_is_missing_must_be_announced_or_excused(case: Case) -> None:
    checker = DeliveredOrAnnounced(case.history)
    case.log.expected = ["p:1", "p:2"]
    case.log.delivered = {"p:1": 1}
    with pytest.raises(Violation, match="misses 1 of 2"):
        checker.finish([case.client])
    checker.gap(case.client, case.log, Gap(1, 1, "slow"))
    checker.finish([case.client])
    case.log.gap = 0
    case.history.incidents.crashed(0.5, 1.5)
    checker.finish([case.client])


def test_nothing_may_come_for_who_did_not_ask(case: Case) -> None:
    checker = OnlyAsked(case.history)
    case.deliver(checker, "p:1")
    checker.gap(case.client, None, Gap(0, 3, "slow"))
    with pytest.raises(Violation):
        checker.gap(case.client, None, Gap(1, 3, "slow"))
    with pytest.raises(Violation):
        checker.delivered(case.client, None, Delivery(4, "p:1", "quotes/x", b"", ("o", 1)))


def test_order_counts_only_for_one_key_and_while_nothing_happens(case: Case) -> None:
    checker = OrderOfOneAnchor(case.history)
    case.deliver(checker, "p:2")
    with pytest.raises(Violation, match="after number 1"):
        case.deliver(checker, "p:1")
    case.log.words = Words.of("quotes", "price > 3 OR price < 1", False)
    spread = OrderOfOneAnchor(case.history)
    case.history.incidents.any = True
    case.deliver(spread, "p:2")
    case.deliver(spread, "p:1")


def test_an_event_has_one_id(case: Case) -> None:
    checker = AcceptedOnce(case.history)
    case.deliver(checker, "p:1")
    with pytest.raises(Violation, match="accepted twice"):
        case.deliver(checker, "p:1", ("o", 2))


def test_refusals_are_deserved(case: Case) -> None:
    checker = Answered(case.history)
    request = Subscribe(1, 1, "quotes", "", {})
    checker.refused(case.client, request, Error(ErrorCode.BAD_CONDITION, Scope.REQUEST, 1, ""))
    unavailable = Error(ErrorCode.UNAVAILABLE, Scope.REQUEST, 1, "")
    with pytest.raises(Violation):
        checker.refused(case.client, request, unavailable)
    case.history.incidents.any = True
    checker.refused(case.client, request, unavailable)


def test_in_the_end_nothing_is_open(case: Case) -> None:
    checker = Answered(case.history)
    checker.finish([case.client])
    checker.acknowledged(case.client, 4)
    with pytest.raises(Violation):
        checker.acknowledged(case.client, 6)
    checker.turned_away(case.client, Goodbye(ErrorCode.SHUTTING_DOWN, ""))
    with pytest.raises(Violation):
        checker.turned_away(case.client, Goodbye(ErrorCode.PROTOCOL, ""))
    case.client.pending = {1: "asked"}
    with pytest.raises(Violation, match="waits for answers"):
        checker.finish([case.client])
