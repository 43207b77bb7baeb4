"""Ablations of the cluster: without each safeguard some seed fails, and names the promise that is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.broker.simulator.scenarios import CLUSTER_ABLATIONS, ClusterOptions, ablate_cluster, play
from tests.broker.simulator.test_cluster_world import new_world

FIND = {
    "allowing": ClusterOptions(1, 5, 5.0, ablation="allowing"),
    "checking": ClusterOptions(1, 5, 5.0, ablation="checking", placement="counting"),
    "summary": ClusterOptions(3, 5, 5.0, ablation="summary"),
    "ring-repeat-last": ClusterOptions(6, 8, 15.0, faults=("crash",), ablation="ring-repeat-last"),
    "withdrawal": ClusterOptions(1, 5, 8.0, ablation="withdrawal"),
}
"""Quick ones; the rest in the campaign below."""


FIRST = {"lapse": 318, "lists": 28, "waiting": 307}
"""Where to begin to look for those that are long in coming."""


@pytest.mark.parametrize("name", sorted(FIND))
def test_a_run_without_it_fails_soon(name: str) -> None:
    """One of three seeds is enough: which one it is changes with every word that brokers say."""
    options, promise = FIND[name], "RingKept" if name.startswith("ring-") else ""
    seeds = range(options.seed, options.seed + 3)
    failures = (play(replace(options, seed=seed)).failure for seed in seeds)
    assert any(failure and failure.startswith(promise) for failure in failures)


def test_an_empty_name_changes_nothing_and_an_unknown_one_is_refused() -> None:
    node = new_world(1).nodes()[0]
    ablate_cluster(node, "")
    with pytest.raises(KeyError):
        ablate_cluster(node, "nothing")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(CLUSTER_ABLATIONS))
def test_some_seed_fails_without_each(name: str) -> None:
    kinds: tuple[str, ...] = ("join", "leave") if name == "patience" else ("crash", "pause", "link", "join")
    nodes, seconds = 5, 12.0
    if name == "lapse":  # what stands still, and nothing else
        kinds, nodes, seconds = ("pause",), 5, 8.0
    if name == "waiting":  # brokers that answer for nothing for a while
        kinds = ("link", "crash")
    if name == "lists":  # keys that change hands while lists are asked for
        kinds, nodes, seconds = ("join", "leave"), 7, 20.0
    placement = "counting" if name in ("checking", "lists") else "anchored"
    if name.startswith("ring-"):  # a ring that bears a death
        kinds, nodes, seconds = ("join", "leave", "crash"), 8, 15.0
    failures = (
        play(ClusterOptions(seed, nodes, seconds, 6, kinds, name, placement)).failure
        for seed in range(FIRST.get(name, 1), FIRST.get(name, 1) + 240)  # the rarest is found in one of 250
    )
    assert any(failures)
