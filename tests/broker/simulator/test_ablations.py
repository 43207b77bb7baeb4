"""Teeth: with any one safeguard switched off, a small campaign finds a failing seed."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.scenarios import BROKER_ABLATIONS, BrokerOptions, play

FOUND_BY = {
    "bound": ("BoundedOutboxes", "SoundNode"),
    "credit": ("CreditKept",),
    "dedupe": ("PublishedOnce", "NoDuplicates"),
    "derive": ("OnlyMatching", "NothingLost"),
    "gap": ("NothingLost",),
    "grace": ("AllAnswered",),
    "in-flight": ("NothingLost",),
    "order": ("PublisherOrder", "NothingLost", "OnlyMatching"),
    "outbox": ("NothingLost",),
    "pause": ("NothingLost",),
    "second-answer": ("AllAnswered",),
    "second-gap": ("NothingLost",),
    "withdraw": ("OnlyInForce", "OnlyMatching", "NoDuplicates"),
}
"""Ablation -> the checkers whose promise it breaks."""

SEEDS = 120

RARE = ("second-answer", "second-gap")
"""Seen by one seed in some dozens: these take seconds."""


def first_failure(ablation: str) -> str:
    for seed in range(1, SEEDS + 1):
        verdict = play(BrokerOptions(seed, steps=1_500, ablation=ablation))
        if verdict.failure:
            return verdict.failure
    return ""


def test_each_ablation_has_its_checkers() -> None:
    assert set(FOUND_BY) == set(BROKER_ABLATIONS)


@pytest.mark.parametrize(
    "ablation", [pytest.param(name, marks=[pytest.mark.slow] * (name in RARE)) for name in sorted(BROKER_ABLATIONS)]
)
def test_without_a_safeguard_some_seed_fails_as_it_should(ablation: str) -> None:
    failure = first_failure(ablation)
    assert failure.partition(":")[0] in FOUND_BY[ablation], failure or f"{SEEDS} seeds did not miss {ablation}"


def test_the_unharmed_node_passes_the_first_of_the_same_seeds() -> None:
    for seed in range(1, 5):
        assert play(BrokerOptions(seed, steps=1_500)).failure == ""
