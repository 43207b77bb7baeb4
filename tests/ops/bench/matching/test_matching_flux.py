"""ops/bench/matching/flux.py: matches with and without changes between them."""

from __future__ import annotations

from random import Random

import pytest

from headgate.ops.bench.matching.flux import Flux, flux, flux_row


@pytest.mark.parametrize(("batch", "matches"), [(1, 200), (100, 20)])
def test_as_many_matches_are_timed_with_changes_as_without(batch: int, matches: int) -> None:
    found = flux(50, 5, 200, batch, Random(1))
    assert len(found.calm) == len(found.changing) == matches and found.changes_per_second > 0
    assert found.calm == sorted(found.calm) and found.changing == sorted(found.changing)


def test_the_ratio_is_that_of_the_slowest_hundredth() -> None:
    row = flux_row(1_000, 1, Flux([1e-6] * 98 + [2e-6] * 2, [1e-6] * 98 + [5e-6] * 2, 12_345.0))
    assert row == ["1,000", "1", "12.3 k", "1.0", "2.0", "1.0", "5.0", "2.50"]
