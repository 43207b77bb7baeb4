"""Subscriptions that come and go between matches.

A match in flux is compared with two others. **Idle** matches follow each other at once, as if nothing else were to do.
**Disturbed** ones have the same changes between them, but made in another index: what they are slower than idle ones
by is what the processor's caches have lost meanwhile, and no structure of ours could win it back. The three take turns,
and of each the best of some rounds counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from headgate.matching import Index

from ..wire import short
from .measure import Batch, Subscriptions, built, frozen, single_rows
from .workloads import batches_of, selective

__all__ = ["Flux", "disturbed_row", "flux", "flux_row", "fluxes"]

_CHANGES_PER_TURN = 2


@dataclass(frozen=True, slots=True)
class Flux:
    """Seconds of matches in order of size, idle and with changes between them, and changes a second."""

    calm: list[float]
    changing: list[float]
    changes_per_second: float
    disturbed: list[float] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Changed:
    """An index, its subscriptions, and those that will be added."""

    index: Index
    present: list[int]
    coming: Subscriptions
    added: int = 0
    seconds: float = 0.0

    def change(self, rng: Random) -> None:
        """Remove one subscription and add another."""
        place = rng.randrange(len(self.present))
        number = len(self.present) + self.added
        pattern, tree = self.coming[self.added % len(self.coming)]
        started = time.perf_counter()
        self.index.remove(self.present[place])
        self.index.add(number, pattern, tree)
        self.seconds += time.perf_counter() - started
        self.present[place] = number
        self.added += 1


def flux(count: int, symbols: int, events: int, batch: int, rng: Random) -> Flux:
    """Changes before each match, in one round."""
    return next(fluxes(count, symbols, events, [(batch, 1)], rng, 1))


def fluxes(
    count: int, symbols: int, events: int, shapes: Sequence[tuple[int, int]], rng: Random, rounds: int
) -> Iterator[Flux]:
    """For each shape (events a match, matches for each two changes) what the matches take."""
    wanted, others = selective(count, symbols, 10, rng), selective(count, symbols, 10, rng)
    here, beside = (_Changed(built(wanted)[0], list(range(count)), others) for _ in range(2))
    for batch, every in shapes:
        batches = batches_of(events, 100, symbols, rng) if batch == 1 else batches_of(events * 10, batch, symbols, rng)
        rows = single_rows(batches) if batch == 1 else batches
        kinds: list[list[list[float]]] = [[], [], []]
        here.seconds, before = 0.0, here.added
        with frozen():
            for row in rows:
                here.index.match(("q",), batch, row)
            for _ in range(rounds):
                for kind, changed in zip(kinds, (None, beside, here), strict=True):
                    kind.append(sorted(_timed(here.index, changed, rows, batch, every, rng)))
        calm, disturbed, changing = (min(kind, key=lambda times: _at(times, 0.99)) for kind in kinds)
        yield Flux(calm, changing, _CHANGES_PER_TURN * (here.added - before) / here.seconds, disturbed)


def _timed(
    index: Index, changed: _Changed | None, rows: Sequence[Batch], batch: int, every: int, rng: Random
) -> list[float]:
    """Seconds of each match in one index, with changes in that or another one between them."""
    # Processor time leaves out the turns of other processes, which the slowest of long matches would all be; for short
    # matches to ask for it takes too long.
    clock = time.perf_counter if batch == 1 else time.thread_time
    times = []
    for turn, row in enumerate(rows):
        if changed is not None and not turn % every:
            changed.change(rng)
        started = clock()
        index.match(("q",), batch, row)
        times.append(clock() - started)
    return times


def _at(times: list[float], share: float) -> float:
    return times[min(len(times) - 1, int(len(times) * share))] * 1e6


def flux_row(count: int, batch: int, found: Flux) -> list[str]:
    """The line of the table, against idle matches."""
    calm, changing = _at(found.calm, 0.99), _at(found.changing, 0.99)
    return [
        f"{count:,}",
        str(batch),
        short(found.changes_per_second),
        f"{_at(found.calm, 0.5):.1f}",
        f"{calm:.1f}",
        f"{_at(found.changing, 0.5):.1f}",
        f"{changing:.1f}",
        f"{changing / calm:.2f}",
    ]


def disturbed_row(found: Flux) -> list[str]:
    """The rest of the line, against matches that find the caches equally disturbed."""
    disturbed = _at(found.disturbed, 0.99)
    return [f"{_at(found.disturbed, 0.5):.1f}", f"{disturbed:.1f}", f"{_at(found.changing, 0.99) / disturbed:.2f}"]
