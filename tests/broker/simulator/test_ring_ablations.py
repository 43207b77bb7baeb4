"""Teeth of the ring's oracle: without one safeguard seeds fail as the table below says."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.scenarios import CORES, RING_ABLATIONS, RingOptions, campaign

EXPECTED = {
    "busy": ("OneQuery",),
    "notify": ("BecomesIdeal",),
    "one-successor": ("InvariantHolds",),
    "repeat-last": ("InvariantHolds",),
    "round": ("InvariantHolds",),
    "unchecked": ("BecomesIdeal", "InvariantHolds"),
}
"""Ablation -> the checkers that catch it within a few seeds."""

HARMLESS = ("padding",)


def test_every_ablation_is_accounted_for() -> None:
    assert sorted((*EXPECTED, *HARMLESS)) == list(RING_ABLATIONS)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_without_a_safeguard_a_few_seeds_are_enough(name: str) -> None:
    nodes = 2 if name == "round" else 8
    for seed in range(6):
        summary = campaign(RingOptions(0, nodes=nodes, ablation=name), [seed])
        if summary.failures:
            break
    (verdict,) = summary.failures
    assert verdict.failure.partition(":")[0] in EXPECTED[name], verdict.failure


def test_short_lists_instead_of_padded_ones_are_safe() -> None:
    assert campaign(RingOptions(0, ablation="padding"), range(6)).failures == []


@pytest.mark.slow
def test_short_lists_are_safe_in_many_seeds() -> None:
    assert campaign(RingOptions(0, ablation="padding"), range(200), jobs=CORES).failures == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_answers_in_the_middle_of_a_step_break_the_invariant_in_a_few_seeds_of_many() -> None:
    """With faults that spare no answer under way; measured: 38 of 1,200 seeds, and 19 with the busy rule."""
    options = RingOptions(0, nodes=4, steps=600, ablation="busy", answers_not_spared=True, only_invariant=True)
    assert campaign(options, range(840, 1000), jobs=CORES).broken["InvariantHolds"] > 0


def test_failures_without_limit_break_the_invariant() -> None:
    assert campaign(RingOptions(0, unlimited=True, only_invariant=True), range(2)).broken["InvariantHolds"] == 2
