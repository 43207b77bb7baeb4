"""The ring over many seeds: a small share at every run of the tests, the full number when time does not matter."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.scenarios import CORES, RingOptions, campaign, play

PINNED = [
    (RingOptions(46), "an appendage beyond the last principal took its own ring for another one, and moved"),
    (RingOptions(88), "the same, in another run"),
    (RingOptions(100, list_length=3, kind="storm"), "a new life shunned whom the old one had declared dead, for ever"),
    (RingOptions(14, list_length=3, kind="storm"), "the same, in another run"),
    (
        RingOptions(50, list_length=3, kind="storm"),
        "who opened a ring took back keys that it had just given to a newcomer",
    ),
    (RingOptions(181, ablation="padding"), "newcomers that a busy ring had invited opened another one beside it"),
    (
        RingOptions(131, list_length=3, kind="storm"),
        "a ring buried who had promised to open it, and never let it in again",
    ),
]


@pytest.mark.parametrize(("options", "story"), PINNED)
def test_a_seed_that_found_something_stays_mended(options: RingOptions, story: str) -> None:
    assert play(options).failure == "", story


def test_a_few_seeds_of_churn_keep_the_invariant() -> None:
    assert campaign(RingOptions(0), range(1000, 1006)).failures == []


def test_a_few_partitions_heal() -> None:
    assert campaign(RingOptions(0, nodes=10, list_length=3, kind="partition"), range(1000, 1003)).failures == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("list_length", "seeds"), [(2, 100), (3, 60), (4, 30)])
def test_many_seeds_of_churn_keep_the_invariant_and_become_ideal(list_length: int, seeds: int) -> None:
    summary = campaign(RingOptions(0, list_length=list_length), range(seeds), jobs=CORES)
    assert summary.failures == []
    assert summary.counts["refused"] and summary.counts["restarts"]


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "list_length"), [(5, 4), (12, 3), (20, 2)])
def test_every_partition_heals_to_one_ring(nodes: int, list_length: int) -> None:
    options = RingOptions(0, nodes=nodes, list_length=list_length, kind="partition")
    assert campaign(options, range(15), jobs=CORES).failures == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_one_ring_comes_of_every_storm() -> None:
    assert campaign(RingOptions(0, list_length=3, kind="storm"), range(15), jobs=CORES).failures == []


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "list_length"), [(3, 4), (5, 4), (9, 4), (16, 2)])
def test_brokers_that_start_one_after_the_other_find_together(nodes: int, list_length: int) -> None:
    options = RingOptions(0, nodes=nodes, list_length=list_length, kind="start")
    assert campaign(options, range(10), jobs=CORES).failures == []
