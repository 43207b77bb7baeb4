"""ops/bench/matching/topics.py: four algorithms, one line each, ratios to the tree."""

from __future__ import annotations

from random import Random

import pytest

from headgate.ops.bench.matching.topics import ALGORITHMS, measure_topics, topic_rows
from headgate.ops.bench.matching.workloads import topic_patterns


@pytest.mark.slow
def test_each_algorithm_has_a_line_and_the_tree_is_the_measure() -> None:
    rows = list(topic_rows([50], seed=1, rounds=1))
    assert [row[0] for row in rows] == list(ALGORITHMS) and all(len(row) == 10 for row in rows)
    assert [rows[0][place] for place in (3, 5, 7, 9)] == ["1.00"] * 4


def test_a_table_is_left_as_it_was_found() -> None:
    patterns = topic_patterns(40, Random(1))
    table = ALGORITHMS["masks (ours)"]()
    cost = measure_topics(lambda: table, patterns, rounds=2)
    assert all(table.get(pattern) is not None for pattern in patterns)
    assert min(cost.resolve_us, cost.add_us, cost.remove_us) > 0
