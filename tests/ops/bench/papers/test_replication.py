"""BLOOM Figure 5.5 in small: what is reached when brokers fail, at once and with repair in between."""

from __future__ import annotations

import argparse

import pytest

from headgate.ops.bench.papers import replication
from headgate.ops.bench.papers.replication import StillRing, share_repaired, share_static


def test_every_subscription_rests_with_its_owner_and_the_next_r() -> None:
    ring = StillRing(20, 2, seed=1)
    ring.subscribe(50, seed=1)
    assert ring.reached() == 1.0
    for number in ring.keys:
        assert sum(store.get(("sub", number)) is not None for store in ring.stores.values()) == 3


@pytest.mark.parametrize(("replicas", "failing"), [(1, 0.25), (1, 0.5), (2, 0.5)])
def test_at_once_what_not_all_of_r_and_one_brokers_had_is_reached(replicas: int, failing: float) -> None:
    shares = [share_static(120, replicas, failing, 300, seed) for seed in range(4)]
    assert sum(shares) / 4 == pytest.approx(1 - failing ** (replicas + 1), abs=0.06)


def test_repair_between_failures_keeps_what_they_would_lose_at_once() -> None:
    assert share_repaired(120, 2, 0.5, 300, seed=1, batches=60) == 1.0
    assert share_static(120, 2, 0.5, 300, seed=1) < 1.0


def test_as_many_as_r_fail_and_nothing_is_lost() -> None:
    ring = StillRing(30, 3, seed=2)
    ring.subscribe(100, seed=2)
    while len(ring.members) > 6:
        ring.fail(ring.members[3:6])
        ring.repair()
        assert ring.reached() == 1.0


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    replication.add_arguments(parser)
    sizes = ["--replication-nodes", "400", "--replication-subscriptions", "400"]
    arguments = parser.parse_args(sizes, argparse.Namespace(seed=1, replication_replicas=(1,)))
    replication.run(arguments)
    printed = capsys.readouterr().out
    assert "Figure 5.5" in printed
    assert "93.75%" in printed  # 1 - p^(r+1)
