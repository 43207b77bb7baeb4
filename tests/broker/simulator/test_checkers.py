"""The checkers: each bites on its own kind of wrong, and on nothing that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from headgate.broker.core.inputs import Drain, Received, Wake
from headgate.broker.simulator.checkers import (
    CHECKERS,
    CLUSTER_CHECKERS,
    AllAnswered,
    BoundedOutboxes,
    Checker,
    CreditKept,
    DeservedEndings,
    NoDuplicates,
    NothingLost,
    NothingUnexpected,
    OnlyInForce,
    OnlyMatching,
    PublishedOnce,
    PublisherOrder,
    SoundNode,
)
from headgate.broker.simulator.engine import Violation
from headgate.broker.simulator.scenarios import BrokerOptions, BrokerScenario
from headgate.broker.simulator.workloads import Delivery, History, SubscriptionLog
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Ask, Error, Gap, Goodbye, Scope, Subscribe
from tests.support.builders import quote_batch


class Case:
    """A run that has not begun, with one subscription of client 0 and three published events: a, b, c."""

    def __init__(self) -> None:
        run = BrokerScenario(BrokerOptions(1, clients=1))
        self.host, self.client = run.host, run.clients[0]
        self.history = History()
        self.batch = quote_batch("quotes/x", ["a", "b", "c"], price=[1, 2, 3])
        self.history.published("p", self.batch, False)
        self.log = self.history.subscribing("client-0", Subscribe(1, 1, "quotes", "price > 1"))
        self.log.acknowledged = True
        self.client.subscriptions[1] = self.log
        self.client.open = True

    def delivery(self, event: str, **changes: Any) -> Delivery:
        row = "abc".index(event)
        return replace(Delivery(1, event, "quotes/x", self.batch.pieces()[row], ("o", row)), **changes)

    def deliver(self, checker: Checker, *names: str, log: SubscriptionLog | None = None) -> None:
        for name in names:
            checker.delivered(self.client, log or self.log, self.delivery(name))


@pytest.fixture
def case() -> Case:
    return Case()


def test_every_checker_is_in_a_list() -> None:
    every, found = [Checker], set()
    while every:
        kind = every.pop()
        every += kind.__subclasses__()
        if kind.__module__ == CreditKept.__module__ and kind.__name__ != "OfClients":
            found.add(kind)
    assert found == {*CHECKERS, *CLUSTER_CHECKERS}


def test_a_run_without_wrong_passes_them_all(case: Case) -> None:
    case.log.expected = ["b", "c"]
    for kind in CHECKERS:
        checker = kind(case.history)
        case.deliver(checker, "b", "c")
        checker.step(case.host, Wake(), [])
    NothingLost(case.history).finish([case.client])


@pytest.mark.parametrize("change", [{"name": "z"}, {"topic": "quotes/y"}, {"record": b"\x92\x80\xc4\x01b"}])
def test_what_nobody_published_is_unexpected(case: Case, change: dict[str, Any]) -> None:
    with pytest.raises(Violation, match="NothingUnexpected"):
        NothingUnexpected(case.history).delivered(case.client, case.log, case.delivery("b", **change))


def test_what_does_not_match_is_noticed(case: Case) -> None:
    with pytest.raises(Violation, match="OnlyMatching"):
        case.deliver(OnlyMatching(case.history), "a")


def test_what_was_not_asked_for_is_noticed(case: Case) -> None:
    checker = OnlyInForce(case.history)
    acts: list[Callable[[], None]] = [
        lambda: checker.delivered(case.client, None, case.delivery("b")),
        lambda: checker.gap(case.client, None, Gap(1, 1, "")),
    ]
    for act in acts:
        with pytest.raises(Violation, match="OnlyInForce"):
            act()
    checker.gap(case.client, None, Gap(0, 1, ""))
    case.log.acknowledged = False
    with pytest.raises(Violation, match="before its SUBACK"):
        case.deliver(checker, "b")
    case.client.losses = 1
    case.deliver(checker, "b")


def test_a_duplicate_is_noticed(case: Case) -> None:
    with pytest.raises(Violation, match="twice"):
        case.deliver(NoDuplicates(case.history), "b", "c", "b")


def test_a_wrong_order_is_noticed(case: Case) -> None:
    with pytest.raises(Violation, match="PublisherOrder"):
        case.deliver(PublisherOrder(case.history), "c", "b")


@pytest.mark.parametrize(
    ("delivered", "gap", "session_gap", "losses", "fine"),
    [
        ("bc", 0, 0, 0, True),
        ("b", 1, 0, 0, True),
        ("b", 0, 0, 0, False),
        ("bc", 1, 0, 0, False),
        ("cb", 0, 0, 0, False),
        ("b", 0, 1, 1, True),
        ("b", 0, 0, 1, False),
        ("b", 5, 0, 1, True),
        ("", 1, 1, 2, True),
        ("", 1, 0, 2, False),
    ],
)
def test_what_is_lost_must_be_announced(
    case: Case, delivered: str, gap: int, session_gap: int, losses: int, fine: bool
) -> None:
    checker = NothingLost(case.history)
    case.log.expected = ["b", "c"]
    case.log.delivered = dict.fromkeys(delivered, 1)
    checker.gap(case.client, case.log, Gap(1, gap, ""))
    case.client.session_gap, case.client.losses = session_gap, losses
    if fine:
        checker.finish([case.client])
    else:
        with pytest.raises(Violation, match="NothingLost"):
            checker.finish([case.client])


def test_an_event_with_two_ids_is_noticed(case: Case) -> None:
    checker = PublishedOnce(case.history)
    case.deliver(checker, "b", "b")
    with pytest.raises(Violation, match="accepted twice"):
        checker.delivered(case.client, case.log, case.delivery("b", event_id=("o", 9)))


def test_another_count_than_the_twins_is_noticed(case: Case) -> None:
    case.history.accepted_events = 1
    with pytest.raises(Violation, match="should have taken 1"):
        PublishedOnce(case.history).step(case.host, Received(1, []), [])


@pytest.mark.parametrize(("received", "fine"), [(0, True), (4, True), (5, False), (6, False)])
def test_credit_that_was_passed_is_noticed(case: Case, received: int, fine: bool) -> None:
    case.client.allowed, case.client.received = 5, received
    portion = case.batch.portion([0, 1, 2], "o", 0, 0)
    if fine:
        CreditKept(case.history).portion(case.client, portion)
    else:
        with pytest.raises(Violation, match="allowed 5"):
            CreditKept(case.history).portion(case.client, portion)


def test_an_outbox_over_its_bound_is_noticed(case: Case) -> None:
    ours = BrokerScenario(BrokerOptions(4, steps=400, faults=("slow",), ablation="bound"))
    with pytest.raises(Violation):
        ours.play()
    checker = BoundedOutboxes(case.history)
    outboxes = [one for one in ours.host.node.subscribers.by_key.values() if one.outbox]
    outboxes[0].outbox.extend(list(outboxes[0].outbox) * 500)
    with pytest.raises(Violation, match="bytes wait"):
        checker.step(ours.host, Wake(), [])


def test_an_open_question_is_noticed(case: Case) -> None:
    checker = AllAnswered(case.history)
    checker.finish([case.client])
    case.client.pending[5] = Ask(5, "status", {})
    with pytest.raises(Violation, match="waits for answers"):
        checker.finish([case.client])
    case.client.pending.clear()
    case.client.unacknowledged.append((1, case.batch))
    with pytest.raises(Violation, match="1 batches"):
        checker.finish([case.client])
    case.client.open = False
    with pytest.raises(Violation, match="no connection"):
        checker.finish([case.client])


def test_a_refusal_must_be_deserved(case: Case) -> None:
    checker = AllAnswered(case.history)
    request = Subscribe(1, 1, "quotes/#")
    checker.refused(case.client, request, Error(ErrorCode.BAD_PATTERN, Scope.REQUEST, 1, ""))
    for asked, code in (
        (request, ErrorCode.LIMIT),
        (None, ErrorCode.BAD_PATTERN),
        (Ask(1, "x", {}), ErrorCode.UNSUPPORTED),
    ):
        with pytest.raises(Violation, match="was refused"):
            checker.refused(case.client, asked, Error(code, Scope.REQUEST, 1, ""))
    case.history.refused.append("a: BAD_BATCH")
    with pytest.raises(Violation, match="good batch"):
        checker.step(case.host, Wake(), [])
    case.history.refused.clear()
    case.history.broken_resumes.append("a stranger")
    with pytest.raises(Violation, match="stranger"):
        checker.step(case.host, Wake(), [])


@pytest.mark.parametrize(("sequence", "fine"), [(3, True), (5, True), (2, False), (6, False)])
def test_an_acknowledgement_must_be_of_something_sent(case: Case, sequence: int, fine: bool) -> None:
    case.client.acknowledged, case.client.sequence = 3, 5
    if fine:
        AllAnswered(case.history).acknowledged(case.client, sequence)
    else:
        with pytest.raises(Violation, match=f"PUBACK {sequence}"):
            AllAnswered(case.history).acknowledged(case.client, sequence)


def test_the_end_of_a_connection_must_be_deserved(case: Case) -> None:
    checker = DeservedEndings(case.history)
    checker.turned_away(case.client, Error(ErrorCode.REPLACED, Scope.CONNECTION, 0, ""))
    with pytest.raises(Violation, match="turned away"):
        checker.turned_away(case.client, Error(ErrorCode.PROTOCOL, Scope.CONNECTION, 0, ""))
    with pytest.raises(Violation, match="turned away"):
        checker.turned_away(case.client, Goodbye(ErrorCode.SHUTTING_DOWN, ""))
    checker.step(case.host, Drain(), [])
    checker.turned_away(case.client, Goodbye(ErrorCode.SHUTTING_DOWN, ""))


def test_a_node_that_is_not_sound_is_noticed(case: Case) -> None:
    case.host.node.subscribers.outbox_bytes = 1
    with pytest.raises(Violation, match="SoundNode: after Wake"):
        SoundNode(case.history).step(case.host, Wake(), [])
