"""Ablations of the log: each makes a seed fail that is well without it; the product knows no such switch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.broker.simulator.scenarios import DISK_ABLATIONS, LOG_ABLATIONS, LogOptions, play

SEEDS: dict[str, tuple[int, str]] = {
    "copies": (1, "OnEnoughDisks"),
    "dedupe": (5, "OnlyOnce"),
    "epoch": (3, "PositionsStand"),
    "heard": (1, "Crash: AssertionError"),
    "promises": (7098, "OnlyOnce"),
    "rollback": (2, ""),
    "room": (1, "StoredElsewhere"),
    "safe": (5, "OnEnoughDisks"),
    "sync": (1, "OnEnoughDisks"),
    "tails": (18, "OnlyOnce"),
}
"""Ablation -> where to begin to look for a seed that fails with it, and the promise that is broken."""

TRIES = 4
"""Seeds that are looked at: which of them fails changes with every word that brokers say."""

RARE = {"promises": 400}
"""Seen by one seed in hundreds: these take minutes."""


def test_there_is_a_seed_for_each() -> None:
    assert SEEDS.keys() == LOG_ABLATIONS.keys() | DISK_ABLATIONS.keys()


def options_of(name: str) -> LogOptions:
    seed, _ = SEEDS[name]
    if name == "tails":
        return LogOptions(seed, nodes=2)
    if name == "promises":
        return LogOptions(seed, nodes=5, faults=("apart", "link", "slow", "cut", "pause"))
    if name == "room":
        return LogOptions(seed, faults=("follower",))
    if name == "heard":
        return LogOptions(seed, faults=("brim",))
    return LogOptions(seed, faults=("harm",) if name == "epoch" else LogOptions(seed).faults)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in RARE)) for one in SEEDS])
def test_without_this_safeguard_a_promise_is_broken(name: str) -> None:
    first, promise = SEEDS[name]
    tries = range(first, first + RARE.get(name, TRIES))
    failures = (play(replace(options_of(name), seed=seed, ablation=name)).failure for seed in tries)
    assert any(failure and failure.startswith(promise) for failure in failures)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDS)
def test_with_it_the_same_seed_is_well(name: str) -> None:
    assert play(options_of(name)).failure == ""
