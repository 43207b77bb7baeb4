"""Ablations of the log: each makes a seed fail that is well without it; the product knows no such switch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.broker.simulator.scenarios import LOG_ABLATIONS, LogOptions, play

SEEDS: dict[str, tuple[int, str]] = {
    "copies-before-ack": (1, "OnEnoughDisks"),
    "dedupe-stored": (33, "OnlyOnce"),
    "deliver-at-high-watermark": (1, "SeenWhenSafe"),
    "epoch-check": (1, "PositionsStand"),
    "heard-before-writing": (1, "Crash: AssertionError"),
    "fences": (32, "SeenWhenSafe"),
    "rollback": (1, "OnEnoughDisks"),
    "other-follower": (1, "StoredElsewhere"),
    "safe-before-open": (3, "OnEnoughDisks"),
    "sync-before-ack": (1, "OnEnoughDisks"),
    "reconcile": (72, "SeenWhenSafe"),
}
"""Ablation -> where to begin to look for a seed that fails with it, and the promise that is broken."""

TRIES = 8
"""Seeds that are looked at: which of them fails changes with every word that brokers say."""


def test_there_is_a_seed_for_each() -> None:
    assert SEEDS.keys() == set(LOG_ABLATIONS)


def options_of(name: str) -> LogOptions:
    seed, _ = SEEDS[name]
    if name == "reconcile":
        return LogOptions(seed, nodes=2, faults=("crash", "slow", "cut"))
    if name == "other-follower":
        return LogOptions(seed, faults=("follower",))
    if name == "heard-before-writing":
        return LogOptions(seed, faults=("brim",))
    return LogOptions(seed, faults=("harm",) if name == "epoch-check" else LogOptions(seed).faults)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SEEDS)
def test_without_this_safeguard_a_promise_is_broken_and_with_it_the_same_seed_is_well(name: str) -> None:
    first, promise = SEEDS[name]
    for seed in range(first, first + TRIES):
        options = replace(options_of(name), seed=seed)
        failure = play(replace(options, ablation=name)).failure
        if failure and failure.startswith(promise):
            assert play(options).failure == ""
            return
    raise AssertionError(f"no seed fails without {name}")
