"""The queue of ends: it pops what a sorted list has first, whatever the size of its blocks."""

from __future__ import annotations

import math
from bisect import insort
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.dynamic.nearest import Nearest

NUMBERS = st.integers(-9, 9) | st.integers(2**53, 2**53 + 4) | st.sampled_from([0.5, math.inf])
ENTRIES = st.tuples(NUMBERS, st.integers(0, 2))
STEPS = st.lists(st.tuples(st.sampled_from(["push", "push", "pop", "replace"]), ENTRIES), max_size=80)


@given(st.lists(ENTRIES, max_size=20), STEPS, st.integers(2, 6))
def test_it_pops_the_least_of_all_there_are(entries: list[Any], steps: list[tuple[str, Any]], block: int) -> None:
    queue, plain = Nearest(entries, block), sorted(entries)
    for what, value in steps:
        if what == "push":
            queue.push(value)
            insort(plain, value)
        elif plain and what == "pop":
            assert queue.pop() == plain.pop(0)
        elif plain:
            queue.replace(value)
            plain.pop(0)
            insort(plain, value)
        queue.validate()
        assert sorted(queue) == plain and len(queue) == len(plain)
        assert queue.first[:1] == plain[:1]


def test_equal_numbers_stay_in_one_block_and_are_not_sorted_again_and_again() -> None:
    queue = Nearest()
    for number in range(5000):
        queue.push((1.5, number))
    queue.push((0.5, 0))
    queue.push((2.5, 0))
    queue.validate()
    assert len(queue) == 5002 and queue.pop() == (0.5, 0) and queue.pop() == (1.5, 0)


@pytest.mark.slow
def test_many_stay_in_blocks() -> None:
    rng, queue = Random(1), Nearest()
    for _ in range(20_000):
        queue.push((rng.random(), 1))
    for _ in range(20_000):
        queue.replace((queue.first[0][0] + rng.random(), 2))
    queue.validate()
    assert len(queue.first) <= 2048 and len(queue) == 20_000
    popped = [queue.pop() for _ in range(20_000)]
    assert popped == sorted(popped) and not queue.first
