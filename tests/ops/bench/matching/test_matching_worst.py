"""ops/bench/matching/worst.py: each named case runs and has its bound beside it."""

from __future__ import annotations

from random import Random

import pytest

from headgate.ops.bench.matching.worst import CASES, worst_rows


@pytest.mark.slow
def test_every_case_has_a_cost_and_a_bound() -> None:
    rows = worst_rows(30, Random(1))
    assert [row[0] for row in rows] == list(CASES)
    assert all(float(cost) > 0 and bound for _, _, cost, bound in rows)
