"""DELTA in whole clusters: the bound is kept whatever fails, and its checker sees what is wrong."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.checkers import BoundKept
from headgate.broker.simulator.engine import Violation
from headgate.broker.simulator.scenarios import ClusterOptions, play
from headgate.broker.simulator.workloads import ClusterHistory, Event, SubscriptionLog, Words
from headgate.protocol.messages import Gap

PRICES = (10, 16, 21, 25, None, 30, 25, 19, 13, 8)


class Someone:
    """As much of a client as the checker looks at."""

    name = "client"
    session_gap = 0

    def __init__(self, log: SubscriptionLog) -> None:
        self.subscriptions = {1: log}


def judged(*came: int, gaps: int = 0, heard_at: float = 0.0, condition: str = "DELTA(price) > 5") -> BoundKept:
    """The verdict on a client to which these of the events came; it heard of gaps at that time."""
    history = ClusterHistory()
    log = SubscriptionLog("client", 1, 1, Words.of("quotes", condition, False))
    for at, price in enumerate(PRICES):
        event = Event(f"e{at}", "source", at, "quotes/x", b"", {"price": price})
        event.accepted_at, history.events[event.name] = float(at), event
        log.expected.append(event.name)
    log.delivered, log.gap = {f"e{at}": 1 for at in came}, gaps
    checker, client = BoundKept(history), Someone(log)
    history.now = heard_at
    if gaps:
        checker.gap(client, log, Gap(1, gaps, ""))  # type: ignore[arg-type]
    checker.finish([client])  # type: ignore[list-item]
    return checker


def test_the_vector_is_right_and_more_is_counted() -> None:
    assert (judged(0, 1, 3, 7, 8).extra, judged(0, 1, 3, 7, 8).suppressed) == (0, 4)
    assert judged(0, 1, 2, 3, 7, 8).extra == 2, "21 is 5 from 16, and 25 is 4 from 21"


@pytest.mark.parametrize("came", [(), (1, 3, 7, 8), (0, 3, 7, 8), (0, 1, 3, 7)])
def test_a_crossing_that_did_not_come_is_missed(came: tuple[int, ...]) -> None:
    with pytest.raises(Violation, match="misses"):
        judged(*came)


def test_a_gap_excuses_as_many_and_what_its_news_came_too_late_for() -> None:
    """16 was lost; until that was told, what is near it was kept back."""
    judged(0, 3, 7, 8, gaps=1, heard_at=3.0)
    with pytest.raises(Violation):
        judged(0, 7, 8, gaps=1, heard_at=1.5)


def test_silence_makes_an_event_due() -> None:
    with pytest.raises(Violation):
        judged(0, 1, 3, 7, 8, condition="DELTA(price) > 5 HEARTBEAT 1")
    judged(*(at for at in range(10) if at != 4), condition="DELTA(price) > 5 HEARTBEAT 1")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize(
    ("nodes", "faults"), [(3, ("cut", "slow", "pause", "link")), (5, ("crash", "join", "leave", "link", "cut"))]
)
def test_seeds_keep_the_bound(seed: int, nodes: int, faults: tuple[str, ...]) -> None:
    verdict = play(ClusterOptions(seed, nodes, 6.0, faults=faults, delta=True))
    assert not verdict.failure, verdict.details
    assert verdict.counts["suppressed"] and verdict.counts["delivered to DELTA"]
