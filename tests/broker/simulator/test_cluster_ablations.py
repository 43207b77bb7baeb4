"""Ablations of the cluster: without each safeguard some seed fails, and names the promise that is broken."""

from __future__ import annotations

import pytest

from broker.simulator.cluster_ablations import CLUSTER_ABLATIONS, ablate_cluster
from broker.simulator.cluster_run import ClusterRunOptions, run_cluster
from tests.broker.simulator.test_cluster_world import new_world

FIND = {
    "allowing": ClusterRunOptions(1, 5, 5.0, ablation="allowing"),
    "summary": ClusterRunOptions(4, 5, 5.0, ablation="summary"),
    "withdrawal": ClusterRunOptions(1, 5, 8.0, ablation="withdrawal"),
}
"""Quick ones; the rest in the campaign below."""


@pytest.mark.parametrize("name", sorted(FIND))
def test_a_run_without_it_fails_soon(name: str) -> None:
    assert run_cluster(FIND[name]).failure


def test_an_empty_name_changes_nothing_and_an_unknown_one_is_refused() -> None:
    node = new_world(1).nodes()[0]
    ablate_cluster(node, "")
    with pytest.raises(KeyError):
        ablate_cluster(node, "nothing")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(CLUSTER_ABLATIONS))
def test_some_seed_fails_without_each(name: str) -> None:
    kinds = ("join", "leave") if name == "patience" else ("crash", "pause", "link", "join")
    nodes, seconds = 5, 12.0
    if name == "lapse":  # what stands still, and nothing else
        kinds, nodes, seconds = ("pause",), 3, 6.0
    failures = (
        run_cluster(ClusterRunOptions(seed, nodes, seconds, faults=kinds, ablation=name)).failure
        for seed in range(1, 41)
    )
    assert any(failures)
