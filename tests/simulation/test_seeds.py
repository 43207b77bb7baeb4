"""Pinned seeds: each once found something wrong, and says what. A new bug found by a seed is pinned here."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.scenarios import CORES, BrokerOptions, ClusterOptions, campaign, play

PINNED = [
    (BrokerOptions(5), "an unsubscription left runs for nobody in waiting portions, and the client refused them"),
    (BrokerOptions(18), "a batch that was sent again was recognised in silence, and its publisher waited for ever"),
    (BrokerOptions(22), "a GAP was said on a connection that broke, and nobody said it again"),
    (
        BrokerOptions(10065, steps=2_000, faults=("slow", "pauses")),
        "a batch refused behind the message that sent its publisher away had PUBACK and no ERROR",
    ),
    (BrokerOptions(40197), "of batches behind such a message the history took those for refused that were not"),
]


@pytest.mark.parametrize(("options", "story"), PINNED, ids=lambda value: str(getattr(value, "seed", "")))
def test_a_seed_that_found_something_stays_mended(options: BrokerOptions, story: str) -> None:
    assert play(options).failure == "", story


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("nodes", "seeds"), [(1, 8), (3, 2)])
def test_seeds_with_long_turns_keep_every_promise(nodes: int, seeds: int) -> None:
    options = BrokerOptions(0, turns=True) if nodes == 1 else ClusterOptions(0, nodes, turns=True)
    assert campaign(options, range(5000, 5000 + seeds), jobs=CORES).failures == []
