"""Amendments in whole clusters: one point in a subscription's deliveries, and checkers that see when it is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.broker.core.effects import Send
from headgate.broker.core.inputs import Received
from headgate.broker.core.limits import AMEND_SECONDS, AMEND_VERSIONS_MAX
from headgate.broker.simulator.checkers import Answered, OnlyMatching, OrderOfOneAnchor
from headgate.broker.simulator.engine import Host, Violation
from headgate.broker.simulator.scenarios import ClusterOptions, play
from headgate.broker.simulator.workloads import Amendment, ClusterHistory, Delivery, SubscriptionLog, Words
from headgate.protocol import make_batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Ask, Error, Hello, Mode, Publish, Scope, Suback, Subscribe, Welcome
from tests.broker.simulator.test_cluster_world import new_world

LOW, HIGH, ALL = "n < 5", "n > 5", "n <> 5"


class Case:
    """One broker, and one client on link 1 with a subscription in force; a second passes with every step."""

    def __init__(self, condition: str) -> None:
        self.world = new_world(1)
        self.history = ClusterHistory()
        host = self.world.servers["broker-1"].host
        assert host is not None
        self.host: Host = host
        self.published = 0
        welcome = Welcome(2, "broker-1", b"k" * 16, False, 0, 256, 4.0)
        self.step([Hello(name="c")], welcome)
        subscribe = Subscribe(1, 1, "quotes", condition, {})
        self.log = self.history.subscribing("c", subscribe)
        self.step([subscribe], Suback(1, 1))

    def step(self, heard: list[Any], *said: Any) -> None:
        self.world.now += 1.0
        self.history(self.host, Received(1, heard), [Send(1, one) for one in said])

    def ask(self, condition: str) -> Amendment:
        amendment = Amendment(self.log, Words.of("quotes", condition, False))
        self.history.amending("c", 9, amendment)
        self.step([Ask(9, "amend", {"subscription": 1})])
        return amendment

    def publish(self, *numbers: int) -> None:
        for n in numbers:
            self.published += 1
            batch = make_batch(["quotes/a"], {"n": [n]}, [f"{n}".encode()])
            self.history.published("c", batch, False)
            self.step([Publish(self.published, Mode.ACCEPTED, batch)])


@pytest.mark.parametrize(
    ("faults", "old", "new", "owed"),
    [
        (False, LOW, HIGH, ["0", "10"]),
        (False, LOW, ALL, ["0", "1", "2", "10", "4"]),
        (False, ALL, HIGH, ["0", "6", "7", "8", "10"]),
        (True, ALL, HIGH, ["6", "7", "8", "10"]),
    ],
)
def test_who_amends_is_owed_what_both_want_all_along_and_the_rest_before_or_behind(
    faults: bool, old: str, new: str, owed: list[str]
) -> None:
    """What only the old words want may be undecided when the broker hears of the new ones: then it is not owed."""
    case = Case(old)
    case.history.incidents.any = faults
    case.publish(0, 6)
    case.ask(new)
    case.publish(1, 7)
    case.publish(2, 8)
    assert case.log.words == case.log.owed == Words.of("quotes", old, False)
    case.step([], Answer(9, {"puts": 1}))
    assert case.log.owed == Words.of("quotes", new, False) != case.log.words, "its client has not read it yet"
    case.publish(10, 4)
    assert case.log.expected == owed
    case.step([], Answer(9, {"puts": 1}))
    assert case.log.expected == owed, "said twice is said once"


def test_what_comes_is_by_the_words_before_or_behind_the_answer() -> None:
    case = Case(LOW)
    case.publish(1, 8)
    amendment = case.ask(HIGH)
    checker, client = OnlyMatching(case.history), named()
    checker.delivered(client, case.log, delivery("1"))
    with pytest.raises(Violation, match="does not want"):
        checker.delivered(client, case.log, delivery("8"))
    amendment.resent = True
    checker.delivered(client, case.log, delivery("8"))
    case.log.words, case.log.amendment = amendment.words, None
    with pytest.raises(Violation, match="does not want"):
        checker.delivered(client, case.log, delivery("1"))


def test_order_is_judged_again_when_events_come_by_one_way_again() -> None:
    case = Case("")
    case.publish(1, 2)
    case.ask("n <> 7")
    assert case.log.two_ways_until == float("inf")
    case.step([], Answer(9, {"puts": 1}))
    checker, client = OrderOfOneAnchor(case.history), named()
    checker.delivered(client, case.log, delivery("2"))
    checker.delivered(client, case.log, delivery("1"))
    case.world.now += AMEND_SECONDS
    case.publish(3, 4)
    checker.delivered(client, case.log, delivery("4"))
    with pytest.raises(Violation, match="after number"):
        checker.delivered(client, case.log, delivery("3"))


def test_amendments_are_refused_for_their_words_their_end_or_their_number() -> None:
    case = Case(LOW)
    checker, client = Answered(case.history), named()
    request = Ask(9, "amend", {"subscription": 1})
    checker.refused(client, request, refusal(ErrorCode.BAD_CONDITION))
    checker.refused(client, request, refusal(ErrorCode.NOT_FOUND))
    client.subscriptions[1] = case.log
    for code in (ErrorCode.NOT_FOUND, ErrorCode.UNAVAILABLE, ErrorCode.DUPLICATE):
        with pytest.raises(Violation, match="was refused"):
            checker.refused(client, request, refusal(code))
    for at in range(AMEND_VERSIONS_MAX - 1):
        case.history.amending("c", at, Amendment(case.log, Words.of("quotes", "", False), answered_at=case.world.now))
    checker.refused(client, request, refusal(ErrorCode.UNAVAILABLE))


def named() -> Any:
    """As much of a client as checkers look at."""
    subscriptions: dict[int, SubscriptionLog] = {}
    return SimpleNamespace(name="c", subscriptions=subscriptions)


def delivery(name: str) -> Delivery:
    return Delivery(1, name, "quotes/a", b"", ("o", 1))


def refusal(code: ErrorCode) -> Error:
    return Error(code, Scope.REQUEST, 9, "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize(
    ("nodes", "placement", "faults"),
    [
        (3, "anchored", ("cut", "slow", "pause", "link")),
        (5, "anchored", ("crash", "join", "leave", "link", "cut")),
        (3, "counting", ("crash", "cut", "slow", "link")),
    ],
)
def test_seeds_amend_at_one_point(seed: int, nodes: int, placement: str, faults: tuple[str, ...]) -> None:
    verdict = play(ClusterOptions(seed, nodes, 6.0, faults=faults, placement=placement, amend=True))
    assert not verdict.failure, verdict.details
    assert verdict.counts["amendments"]
