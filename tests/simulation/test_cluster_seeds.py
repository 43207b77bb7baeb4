"""Clusters over many seeds: a small share at every run of the tests, the full number when time does not matter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.broker.core.keyspace import ROUTINGS
from headgate.broker.simulator.faults import CLUSTER_FAULTS
from headgate.broker.simulator.scenarios import CORES, ClusterOptions, campaign, play

ALL_BUT_APART = tuple(kind for kind in CLUSTER_FAULTS if kind != "partition")

PINNED = [
    (
        ClusterOptions(6, 5, 20.0, faults=("pause",)),
        "who stood still was given a lease for keys that another had owned meanwhile and given back",
    ),
    (
        ClusterOptions(16, 5, 20.0, faults=("pause",)),
        "who woke believed itself alone, because everybody had started over while it slept",
    ),
    (
        ClusterOptions(6, 3, 20.0, faults=("pause", "crash")),
        "who answered for no key took its own idea of what is in use for the truth, and events went nowhere",
    ),
    (
        ClusterOptions(117, 3, 20.0, faults=ALL_BUT_APART),
        "keys that were gained never became ready, and their broker asked for them for ever",
    ),
    (
        ClusterOptions(7, 5, 12.0, faults=("crash", "pause", "link", "join")),
        "a column that cannot be read was looked at when its batch had waited, and ended the Node",
    ),
    (
        ClusterOptions(1038, 3, 20.0, faults=("join", "link", "leave", "crash")),
        "a newcomer was given a former sibling's old copy as whole, while the owner of the keys lived and wrote",
    ),
    (
        ClusterOptions(1033, 3, 20.0, faults=("join", "link", "leave", "crash")),
        "the same, with one replica",
    ),
    pytest.param(
        ClusterOptions(3004, 5, 40.0, faults=("crash",)),
        "a batch that a starting broker kept for two seconds, and refused then, counted as published and lost",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("options", "story"), PINNED)
def test_a_seed_that_found_something_stays_mended(options: ClusterOptions, story: str) -> None:
    assert play(options).failure == "", story


@pytest.mark.parametrize(("nodes", "seconds"), [(3, 8.0), (5, 6.0)])
def test_a_few_seeds_without_faults_are_exact(nodes: int, seconds: float) -> None:
    assert campaign(ClusterOptions(0, nodes, seconds), range(1000, 1003)).failures == []


@pytest.mark.parametrize(("nodes", "seeds"), [(3, 6), (5, 4)])
def test_a_few_seeds_of_everything_keep_every_promise(nodes: int, seeds: int) -> None:
    options = ClusterOptions(0, nodes, 8.0, faults=CLUSTER_FAULTS)
    assert campaign(options, range(1100, 1100 + seeds)).failures == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("structure", ROUTINGS)
def test_a_few_seeds_of_everything_keep_every_promise_when_events_have_documents(structure: str) -> None:
    options = ClusterOptions(0, 5, 8.0, faults=CLUSTER_FAULTS, structure=structure)
    summary = campaign(options, range(1300, 1302), jobs=CORES)
    assert summary.failures == []
    assert summary.counts["edges walked"] > 100


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_handed_out_that_a_twig_amended_meanwhile_does_not_want() -> None:
    options = ClusterOptions(0, 5, 4.0, faults=CLUSTER_FAULTS, structure="kbsp", amend=True)
    summary = campaign(options, range(3011, 3014), jobs=CORES)
    assert summary.failures == []
    assert summary.counts["amendments"] and summary.counts["false positives"]


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "seeds"), [(3, 3), (5, 4)])
def test_a_few_seeds_of_everything_keep_every_promise_when_streams_are_counted(nodes: int, seeds: int) -> None:
    options = ClusterOptions(0, nodes, 8.0, faults=CLUSTER_FAULTS, placement="counting")
    summary = campaign(options, range(1200, 1200 + seeds), jobs=CORES)
    assert summary.failures == []
    assert nodes < 5 or summary.counts["lists asked for"] > 100


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("nodes", "seeds"), [(3, 1), (5, 2), (8, 1)])
def test_many_seeds_of_everything_keep_every_promise_when_streams_are_counted(nodes: int, seeds: int) -> None:
    options = ClusterOptions(0, nodes, 25.0, faults=CLUSTER_FAULTS, placement="counting")
    assert campaign(options, range(4000, 4000 + seeds), jobs=CORES).failures == []


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("nodes", "seeds"), [(3, 3), (4, 3), (5, 3), (6, 2), (9, 1)])
def test_many_seeds_of_everything_keep_every_promise(nodes: int, seeds: int) -> None:
    options = ClusterOptions(0, nodes, 25.0, faults=CLUSTER_FAULTS)
    assert campaign(options, range(2000, 2000 + seeds), jobs=CORES).failures == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", CLUSTER_FAULTS)
def test_each_fault_alone_keeps_every_promise(kind: str) -> None:
    options = ClusterOptions(0, 5, 30.0, faults=(kind,))
    summary = campaign(options, range(3000, 3003), jobs=CORES)
    assert summary.failures == []
    assert kind == "slow" or summary.counts[kind] > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_forty_brokers_settle_and_deliver() -> None:
    options = ClusterOptions(1, 40, 4.0, clients=8)
    assert play(replace(options, faults=("crash", "join"))).failure == ""
