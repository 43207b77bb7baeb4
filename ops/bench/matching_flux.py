"""Subscriptions that come and go between matches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from matching import Index

from .matching_measure import Batch, Subscriptions, built, frozen, single_rows
from .matching_workloads import batches_of, selective
from .report import short

__all__ = ["Flux", "flux", "flux_row"]

_CHANGES_PER_MATCH = 2


@dataclass(frozen=True, slots=True)
class Flux:
    """Seconds of matches in order of size, without and with changes between them, and changes a second."""

    calm: list[float]
    changing: list[float]
    changes_per_second: float


def flux(count: int, symbols: int, events: int, batch: int, rng: Random) -> Flux:
    """Between two matches one subscription goes and one comes; the time of that is not in the time of the matches.

    Calm is the same with the changes in another index, so that both find the processor's caches equally disturbed.
    """
    wanted = selective(count, symbols, 10, rng)
    others = selective(count, symbols, 10, rng)
    index, beside = built(wanted)[0], built(wanted)[0]
    batches = batches_of(events, 100, symbols, rng) if batch == 1 else batches_of(events * 10, batch, symbols, rng)
    rows = single_rows(batches) if batch == 1 else batches
    with frozen():
        for row in rows:
            index.match(("q",), batch, row)
        calm, _ = _timed(index, beside, others, rows, batch, rng)
        changing, seconds = _timed(index, index, others, rows, batch, rng)
    return Flux(sorted(calm), sorted(changing), _CHANGES_PER_MATCH * len(rows) / seconds)


def _timed(
    index: Index, changed: Index, others: Subscriptions, rows: Sequence[Batch], batch: int, rng: Random
) -> tuple[list[float], float]:
    """Seconds of each match in one index, and of all the changes made in that or another one between them."""
    count = len(others)
    present = list(range(count))
    clock = time.perf_counter
    times, changes = [], 0.0
    for turn, row in enumerate(rows):
        place = rng.randrange(count)
        pattern, tree = others[turn % count]
        started = clock()
        changed.remove(present[place])
        changed.add(count + turn, pattern, tree)
        between = clock()
        index.match(("q",), batch, row)
        times.append(clock() - between)
        changes += between - started
        present[place] = count + turn
    return times, changes


def flux_row(count: int, batch: int, found: Flux) -> list[str]:
    """The line of the table."""

    def at(times: list[float], share: float) -> float:
        return times[min(len(times) - 1, int(len(times) * share))] * 1e6

    calm, changing = at(found.calm, 0.99), at(found.changing, 0.99)
    return [
        f"{count:,}",
        str(batch),
        short(found.changes_per_second),
        f"{at(found.calm, 0.5):.1f}",
        f"{calm:.1f}",
        f"{at(found.changing, 0.5):.1f}",
        f"{changing:.1f}",
        f"{changing / calm:.2f}",
    ]
