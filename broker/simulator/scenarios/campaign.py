"""A campaign: many seeds of one kind of run, in one process or several, added up in a Summary."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from ..limits import JOBS_MAX, REPORTED_FAILURES_MAX
from .scenario import Options, Verdict, Write, command_of, listed, play

__all__ = ["CORES", "Summary", "campaign"]

CORES = min(os.cpu_count() or 1, JOBS_MAX)
"""Seeds that a campaign can play at a time on this machine."""


class Summary:
    """The results of a campaign, added up."""

    def __init__(self) -> None:
        self.runs = 0
        self.failures: list[Verdict] = []
        self.broken: Counter[str] = Counter()
        """Promise -> seeds that broke it."""
        self.counts: Counter[str] = Counter()

    def add(self, verdict: Verdict) -> None:
        """Add one run."""
        self.runs += 1
        self.counts.update(verdict.counts)
        if verdict.failure:
            self.failures.append(verdict)
            self.broken[verdict.failure.partition(":")[0]] += 1

    def lines(self) -> list[str]:
        """The sums for people, and what never happened."""
        happened = listed({name: count for name, count in self.counts.items() if count})
        lines = [f"{self.runs} seeds, {len(self.failures)} failed", f"happened: {happened}"]
        never = ", ".join(name for name, count in self.counts.items() if not count)
        lines += [f"never happened: {never}"] if never else []
        return lines + ([f"broken: {listed(self.broken)}"] if self.broken else [])


def campaign(options: Options, seeds: Sequence[int], write: Write = lambda text: None, jobs: int = 1) -> Summary:
    """Run many seeds, `jobs` of them at a time; each failure is told as soon as the seeds before it have ended."""
    summary = Summary()
    for verdict in _verdicts([replace(options, seed=seed) for seed in seeds], jobs):
        summary.add(verdict)
        if verdict.failure and len(summary.failures) <= REPORTED_FAILURES_MAX:
            write(f"{verdict.failure.splitlines()[0][:300]}\n    {command_of(verdict.options)}\n")
    return summary


def _verdicts(runs: Sequence[Options], jobs: int) -> Iterable[Verdict]:
    """The verdict of each run, in their order. A run follows from its options alone, so any process may play it."""
    if jobs <= 1 or len(runs) <= 1:
        yield from map(play, runs)
        return
    with ProcessPoolExecutor(min(jobs, len(runs)), mp_context=get_context("spawn")) as pool:
        yield from pool.map(play, runs)
