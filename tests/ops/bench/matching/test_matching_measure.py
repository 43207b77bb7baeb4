"""ops/bench/matching/measure.py: what is measured is what is said."""

from __future__ import annotations

import gc

from headgate.matching import Pattern, parse_condition
from headgate.ops.bench.matching.measure import built, bytes_each, frozen, rates, seconds, single_rows

WANTED = [(Pattern(("q",)), parse_condition(f"a = {number}")) for number in range(50)]
BATCHES = [{"a": [1, 2, 99]}, {"a": [3, 3, 3]}]


def test_the_same_events_one_by_one() -> None:
    assert single_rows(BATCHES) == [{"a": (value,)} for value in (1, 2, 99, 3, 3, 3)]


def test_matches_are_counted_for_each_event() -> None:
    index, add_seconds = built(WANTED)
    found = rates(index, BATCHES, rounds=1)
    assert found.matches == 5 / 6 and add_seconds > 0
    assert min(found.first_us, found.batch_us, found.single_us, found.single_p50_us) > 0
    assert found.single_p50_us <= found.single_p99_us


def test_bytes_are_those_of_the_index_alone() -> None:
    assert 100 < bytes_each(WANTED * 1, BATCHES) < 5_000


def test_the_fastest_round_counts_and_the_collector_is_let_go() -> None:
    turns: list[int] = []
    assert seconds(lambda: turns.append(1), 4) < 1 and len(turns) == 4
    with frozen():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
