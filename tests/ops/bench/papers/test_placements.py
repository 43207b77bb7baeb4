"""The table of placements: random workloads that all placements must agree on, from one seed."""

from __future__ import annotations

from random import Random

import pytest

from headgate.matching.tree import Literal
from headgate.ops.bench.papers import __main__ as papers
from headgate.ops.bench.papers import placements, routing
from headgate.ops.bench.papers.models import BOTH_WAYS_BASE_4, Placement

SEED = 7
MEMBERS = routing.members_of(12, SEED)
TABLES = routing.ring(12, BOTH_WAYS_BASE_4, 4, SEED)


def test_a_workload_is_the_same_for_the_same_seed_and_asks_something() -> None:
    first, again, other = (placements.make_workload(MEMBERS, Random(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert all(one.constraints and one.identity.attributes == len(one.constraints) for one in first.subscriptions)
    somebody = [placements.make_workload(MEMBERS, Random(seed)) for seed in range(8)]
    assert sum(len(some.wanted(event)) for some in somebody for _, event in some.events) > 500


def test_costs_are_counted() -> None:
    workload = placements.make_workload(MEMBERS, Random(3))
    ours = placements.anchored(MEMBERS, TABLES, workload)
    ordered, hashed = (
        placements.counting(MEMBERS, TABLES, workload, one) for one in (Placement.ORDERED, Placement.HASHED)
    )
    assert ours.delivered == ordered.delivered == hashed.delivered
    assert ours.stored <= ordered.stored == hashed.stored
    assert ours.subscribing <= ordered.subscribing < hashed.subscribing
    assert ours.carried == 0 < ordered.carried == hashed.carried
    assert 0 < ours.dimensions <= 5
    assert 11 * ours.dimensions <= ours.telling <= 11 * 60
    assert hashed.telling == 0


def test_a_placement_that_delivers_something_else_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placements, "evaluate", lambda condition, event: Literal(True) != condition)
    with pytest.raises(AssertionError, match="delivers something else"):
        placements.compare(12, 2, SEED)


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main(["placements", "--workloads", "1", "--brokers-max", "30"]) == 0
    printed = capsys.readouterr().out
    for word in ("anchored", "counting hashed", "counting ordered", "delivered the same set", "seed 4"):
        assert word in printed
    assert " 100 " not in printed
