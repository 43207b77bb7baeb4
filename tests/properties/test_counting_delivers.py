"""Property: with the placement counting a cluster delivers what brute force says, as it does with anchors, each event
once, whatever can be counted and what cannot.

The worlds are those of `test_cluster_delivers.py`, in which the stream's schema now says counting, from the start or
from the second round on. Twenty workloads are run through the Nodes of two clusters, one with each placement.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from headgate.protocol.messages import Answer, Ask
from tests.properties.test_cluster_delivers import Run
from tests.support.node_cluster import events_of

ATTRIBUTES: dict[str, Any] = {
    "price": {"type": "float", "min": 0, "max": 100, "precision": 0.25},
    "symbol": {"type": "string"},
    "live": {"type": "bool"},
}
SEEDS = range(10)
WORKLOADS = range(300, 320)


class CountingRun(Run):
    """One cluster whose stream is counted from some round on."""

    def place(self, placement: str) -> None:
        client = self.clients[0]
        client.send(
            Ask(1, "schema.put", {"stream": "quotes", "schema": {"attributes": ATTRIBUTES, "placement": placement}})
        )
        self.cluster.until(lambda: bool(client.of(Answer)))

    @property
    def counted(self) -> int:
        """Subscriptions that rest on lists."""
        return sum(len(node.registry.counting.checks) for node in self.cluster.nodes)


@cache
def counted_world(seed: int) -> CountingRun:
    run = CountingRun(seed)
    for turn in range(3):
        if turn == seed % 2:
            run.place("counting")
        run.ask()
        for client in run.clients:
            client.take()
        run.check(run.publish())
    return run


@pytest.mark.parametrize("seed", SEEDS)
def test_everybody_gets_exactly_what_it_asked_for(seed: int) -> None:
    counted_world(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_everybody_gets_exactly_what_it_asked_for_in_many_worlds(seed: int) -> None:
    counted_world(seed)


def test_lists_really_travel() -> None:
    """Otherwise the property would prove nothing."""
    runs = [counted_world(seed) for seed in SEEDS]
    large = [run for run in runs if len(run.cluster.hosts) >= 5]
    assert len(large) > 3
    assert all(run.counted > 1 for run in large) and sum(run.counted for run in runs) > 40
    assert all(sum(node.forwarding.gathering.asked for node in run.cluster.nodes) > 20 for run in large)
    assert all(run.cluster.node("b0").forwarding.gathering.asked == 0 for run in runs if len(run.cluster.hosts) <= 3)


def delivered(seed: int, placement: str) -> tuple[Counter[tuple[int, int, str, int]], int]:
    """(client, subscription, origin, place) of everything that came, and how many subscriptions were counted."""
    run = CountingRun(seed)
    run.place(placement)
    got: Counter[tuple[int, int, str, int]] = Counter()
    for _ in range(2):
        run.ask()
        for client in run.clients:
            client.take()
        run.publish()
        for place, client in enumerate(run.clients):
            got.update((place, *event) for event in events_of(client.got))
    return got, run.counted


@pytest.mark.parametrize("seed", WORKLOADS)
def test_both_placements_deliver_the_same(seed: int) -> None:
    anchored, none = delivered(seed, "anchored")
    counted, some = delivered(seed, "counting")
    assert anchored == counted and max(anchored.values(), default=1) == 1
    assert none == 0 and (some > 0 or not anchored)
