"""The papers' tables of routing: small rings, the same figures from the same seed, and everything on one page."""

from __future__ import annotations

import argparse
from math import log2

import pytest

from headgate.ops.bench.papers import __main__ as papers
from headgate.ops.bench.papers import routing
from headgate.ops.bench.papers.models import BOTH_WAYS_BASE_2, BOTH_WAYS_BASE_4, ONE_WAY_BASE_2


def test_a_measurement_is_the_same_for_the_same_seed() -> None:
    first = routing.measure(40, BOTH_WAYS_BASE_4, 4, 200, seed=1)
    routing.ring.cache_clear()
    assert routing.measure(40, BOTH_WAYS_BASE_4, 4, 200, seed=1) == first
    assert routing.measure(40, BOTH_WAYS_BASE_4, 4, 200, seed=2) != first


def test_a_lookup_is_shorter_than_its_message_and_more_links_make_both_shorter() -> None:
    chord = routing.measure(128, ONE_WAY_BASE_2, 1, 600, seed=1)
    assert chord.lookup < chord.message <= chord.lookup + 1
    assert chord.longest >= chord.message
    double = routing.measure(128, BOTH_WAYS_BASE_2, 1, 600, seed=1)
    assert double.links > chord.links
    assert double.lookup < chord.lookup


def test_a_range_costs_least_by_segment_and_most_by_hashing() -> None:
    cost = routing.range_cost(64, 100, seed=1, tries=5)
    assert cost.storing <= cost.brokers <= cost.segment + 1
    assert cost.segment < cost.hashed / 10
    assert cost.walked < cost.hashed / 10
    assert cost.depth < cost.walked
    assert cost.hashed == pytest.approx(100 * (log2(64) / 2 + 1), rel=0.25)


def test_a_range_of_one_value_rests_on_one_broker() -> None:
    cost = routing.range_cost(64, 1, seed=1, tries=5)
    assert cost.brokers == cost.storing == 1


def test_the_command_prints_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main(["routing", "--messages", "50", "--brokers-max", "128"]) == 0
    printed = capsys.readouterr().out
    for heading in ("RANGE 3.3: hops", "STATE Figure 3", "to store a range", "STATE 4.2"):
        assert heading in printed
    assert "seed 4" in printed
    assert "reached at every size" in printed or "MISSED" in printed
    assert "4096" not in printed


def test_an_unknown_paper_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as exit_:
        papers.main(["nonsense"])
    assert exit_.value.code == 2


def test_arguments_have_defaults_at_the_papers_sizes() -> None:
    parser = argparse.ArgumentParser()
    routing.add_arguments(parser)
    assert parser.parse_args([]).brokers_max >= max(routing.RANGE_SIZES)
