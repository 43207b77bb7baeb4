"""The rate limit of the publish job: each task holds its share, in small portions, by waiting between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["pace", "paced"]

_PORTIONS_PER_SECOND = 10
"""Portions a second: small enough for an even rate, large enough for batches."""


def pace(
    batches: Iterator[Any],
    rows_per_second: float,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Any]:
    """Yield the same rows, no faster than that. Lost time is not made up for: the rate is a promise to the broker."""
    portion = max(1, int(rows_per_second / _PORTIONS_PER_SECOND))
    due = clock()
    for batch in batches:
        for start in range(0, batch.num_rows, portion):
            some = batch.slice(start, portion)
            now = clock()
            if now < due:
                wait(due - now)
            due = max(due, now) + some.num_rows / rows_per_second
            yield some


def paced(frame: Any, rows_per_second: float) -> Any:
    """The frame, whose tasks together are no faster than that."""
    tasks = min(frame.rdd.getNumPartitions(), frame.sparkSession.sparkContext.defaultParallelism)
    share = rows_per_second / max(tasks, 1)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        return pace(batches, share)

    # Spark takes the dots in names of columns for fields here, so they are numbered on the way.
    plain = frame.toDF(*[f"c{number}" for number in range(len(frame.columns))])
    return plain.mapInArrow(run, plain.schema).toDF(*frame.columns)
