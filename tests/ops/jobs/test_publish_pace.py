"""The rate limit: the same rows, in small portions, never faster than told, and no rush after a delay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from headgate.ops.jobs.publish_pace import pace  # noqa: E402


class Clock:
    """Time that passes when somebody waits, or is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def batches(*sizes: int) -> Iterator[Any]:
    place = 0
    for size in sizes:
        yield pa.RecordBatch.from_pydict({"n": list(range(place, place + size))})
        place += size


def paced(clock: Clock, rate: float, *sizes: int) -> list[tuple[float, list[int]]]:
    found = pace(batches(*sizes), rate, lambda: clock.now, clock.wait)
    return [(clock.now, batch.column("n").to_pylist()) for batch in found]


@given(st.lists(st.integers(1, 50), max_size=6), st.floats(0.5, 1000))
def test_the_same_rows_no_faster(sizes: list[int], rate: float) -> None:
    clock = Clock()
    portions = paced(clock, rate, *sizes)
    assert [n for _, some in portions for n in some] == list(range(sum(sizes)))
    sent = 0
    for now, some in portions:
        assert now - 100.0 >= sent / rate - 1e-6
        sent += len(some)
        assert len(some) <= max(1, rate / 10)


def test_a_late_start_is_not_made_up_for() -> None:
    clock = Clock()
    source = pace(batches(10, 10), 10.0, lambda: clock.now, clock.wait)
    next(source)
    clock.now += 60
    for _ in range(10):
        next(source)
    assert clock.now == pytest.approx(160.9)
