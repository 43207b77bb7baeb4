"""Ablations of durable subscriptions: without each safeguard a seed fails that is well with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.broker.core.safeguards import Safeguard
from headgate.broker.simulator.scenarios import DURABLE_ABLATIONS, DurableOptions, play

_FAULTS = ("crash", "pause", "link", "cut", "apart", "slow", "full", "brim", "pair")
"""Without those that make events come again anyway, which hide what a missing safeguard does."""

FIRST = {
    Safeguard.AMEND_AT_POINT: DurableOptions(1, faults=("slow",)),
    Safeguard.CURRENT_ACKS: DurableOptions(1, faults=()),
    Safeguard.CURSOR_ON_DISKS: DurableOptions(1, faults=_FAULTS),
    Safeguard.DURABLE_FENCE: DurableOptions(1, faults=_FAULTS),
}
"""Where to begin to look."""

TRIES = 8
"""Seeds that are looked at: which of them fails changes with every word that brokers say."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", DURABLE_ABLATIONS)
def test_without_this_safeguard_a_promise_is_broken_and_with_it_the_same_seed_is_well(name: Safeguard) -> None:
    for seed in range(1, 1 + TRIES):
        options = replace(FIRST[name], seed=seed)
        if play(replace(options, ablation=name)).failure and not play(options).failure:
            return
    raise AssertionError(f"no seed fails without {name}")
