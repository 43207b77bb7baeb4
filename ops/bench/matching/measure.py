"""How the matching benches measure: processor time, the best of some rounds, bytes by tracemalloc on a part."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from headgate.broker.daemon import GC_THRESHOLDS
from headgate.matching import Index, Pattern, Tree, Value

__all__ = [
    "MEASURED_BYTES_MAX",
    "Batch",
    "Rates",
    "Subscriptions",
    "built",
    "bytes_each",
    "frozen",
    "rates",
    "seconds",
    "single_rows",
]

MEASURED_BYTES_MAX = 20_000
"""Subscriptions of which memory is traced: tracing makes everything several times slower."""

Batch = Mapping[str, Sequence[Value]]
Subscriptions = Sequence[tuple[Pattern, Tree | None]]


@contextmanager
def frozen() -> Iterator[None]:
    """Freeze what was built, so that the garbage collector skips it while the clock runs, as in the daemon."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def seconds(act: Callable[[], object], rounds: int = 3) -> float:
    """Processor seconds of the fastest of some rounds: the others were disturbed."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        act()
        best = min(best, time.process_time() - started)
    return best


def built(subscriptions: Subscriptions) -> tuple[Index, float]:
    """An index of the subscriptions, and the seconds that adding one took."""
    index = Index()
    started = time.process_time()
    for number, (pattern, tree) in enumerate(subscriptions):
        index.add(number, pattern, tree)
    return index, (time.process_time() - started) / max(1, len(subscriptions))


def bytes_each(subscriptions: Subscriptions, batches: Sequence[Batch] = (), topic: str = "q") -> float:
    """Bytes of memory that a subscription takes in an index that has matched; the condition itself is the caller's."""
    few = subscriptions[:MEASURED_BYTES_MAX]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        index = built(few)[0]
        for batch in batches:
            index.match((topic,), len(next(iter(batch.values()))), batch)
        gc.collect()  # what only waits to be used again is not the index's
        return (tracemalloc.get_traced_memory()[0] - before) / max(1, len(few))
    finally:
        tracemalloc.stop()


@dataclass(frozen=True, slots=True)
class Rates:
    """Microseconds an event, and how many subscriptions matched one."""

    first_us: float  # when nothing has been met before
    batch_us: float
    single_us: float
    single_p50_us: float
    single_p99_us: float
    matches: float


def single_rows(batches: Sequence[Batch]) -> list[Batch]:
    """The same events one by one."""
    rows: list[Batch] = []
    for batch in batches:
        for row in range(len(next(iter(batch.values())))):
            rows.append({name: (column[row],) for name, column in batch.items()})
    return rows


def rates(index: Index, batches: Sequence[Batch], topic: str = "q", rounds: int = 3) -> Rates:
    """What matching costs, in batches and one by one."""
    topics = (topic,)
    sizes = [len(next(iter(batch.values()))) for batch in batches]
    events = sum(sizes)
    found = 0

    def sweep() -> None:
        for batch, size in zip(batches, sizes, strict=True):
            index.match(topics, size, batch)

    singles = single_rows(batches)

    def one_by_one() -> None:
        for row in singles:
            index.match(topics, 1, row)

    with frozen():
        first = seconds(sweep, 1)
        batched = seconds(sweep, rounds)
        single = seconds(one_by_one, rounds)
        each = _each(index, topics, singles)
        for batch, size in zip(batches, sizes, strict=True):
            found += sum(len(ids) * len(rows) for ids, rows in index.match(topics, size, batch))
    return Rates(
        first_us=first / events * 1e6,
        batch_us=batched / events * 1e6,
        single_us=single / events * 1e6,
        single_p50_us=each[len(each) // 2] * 1e6,
        single_p99_us=each[len(each) * 99 // 100] * 1e6,
        matches=found / events,
    )


def _each(index: Index, topics: tuple[str, ...], singles: Sequence[Batch]) -> list[float]:
    """Seconds of each single event by the wall clock, in order of size; another process's turn is in the largest."""
    clock = time.perf_counter
    each = []
    for row in singles:
        started = clock()
        index.match(topics, 1, row)
        each.append(clock() - started)
    return sorted(each)
