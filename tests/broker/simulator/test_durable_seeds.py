"""Seeds of durable subscriptions that found something once, under the faults of that time."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.scenarios import DurableOptions, play

_FAULTS = ("crash", "pause", "link", "cut", "apart", "slow", "full", "brim", "pair")

SEEDS = {
    5052: "a condition from now on held for an event before it: the broker of its log was away when asked for its end",
    5048: "a client that takes three events at a time is through later than all others",
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_seed_found_once_is_well(seed: int) -> None:
    verdict = play(DurableOptions(seed, nodes=5, faults=_FAULTS))
    assert not verdict.failure, SEEDS[seed]
