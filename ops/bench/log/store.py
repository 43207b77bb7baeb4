"""`headgate bench log_store`: the disk under the log by itself, the broker's own store and its thread.

Rows of 1 to 4,096 events of 100 bytes are given to the thread as fast as it takes them, so that commits share
synchronisations as they do under load, and one at a time, so that each waits for its own. The first line is what a bare
file of that disk takes for one synchronisation: nothing below it can be faster.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from rich.table import Table

from headgate.broker.core.effects import Append
from headgate.broker.core.inputs import LogInput, Stored
from headgate.broker.daemon.log import LogWriter, SqliteLogStore
from headgate.protocol.data import LogKind, LogName

from ..kit import MeasurementFailed
from ..limits import LOG_CLOSE_SECONDS, LOG_EVENT_BYTES, LOG_IN_FLIGHT_BYTES, LOG_SYNCHRONISATIONS
from ..wire import console

__all__ = ["Rates", "add_arguments", "measure", "percentile", "run", "synchronisation_seconds"]

_SIZES = (1, 100, 1_000, 4_096)


@dataclass(frozen=True, slots=True)
class Rates:
    """What the store did in some seconds with rows of one size."""

    events_per_row: int
    in_flight: int
    rows: float
    events: float
    megabytes: float
    p50_seconds: float
    p99_seconds: float


def percentile(values: list[float], share: float) -> float:
    """The value that so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def synchronisation_seconds(directory: Path, times: int = LOG_SYNCHRONISATIONS) -> list[float]:
    """What one synchronisation of a page takes on that disk, so many times."""
    seconds = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(times):
            started = time.perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - started)
    return seconds


class _Publisher:
    """Keeps so many rows under way, and notes how long each took."""

    def __init__(self, directory: Path, events_per_row: int, in_flight: int) -> None:
        store = SqliteLogStore(directory, "bench")
        self._log = LogName("bench", store.open().epoch, int(LogKind.EVENTS), "bench")
        self._posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._writer = LogWriter(store, self._hear, self._posted.put)
        self._row = os.urandom(events_per_row * LOG_EVENT_BYTES)
        self._events = events_per_row
        self._in_flight = in_flight
        self._asked: list[float] = []
        self.taken: list[float] = []

    def run(self, seconds: float) -> float:
        """Seconds until everything that was asked for in that time is on the disk. Raises MeasurementFailed."""
        started = time.perf_counter()
        while time.perf_counter() < started + seconds:
            while len(self._asked) - len(self.taken) < self._in_flight:
                self._ask()
            self._posted.get()()
        while len(self.taken) < len(self._asked):
            self._posted.get()()
        spent = time.perf_counter() - started
        if not self._writer.close(LOG_CLOSE_SECONDS):
            raise MeasurementFailed("the store", "did not close")
        return spent

    def _ask(self) -> None:
        ticket = len(self._asked) + 1
        self._asked.append(time.perf_counter())
        first = (ticket - 1) * self._events
        self._writer.ask(Append(ticket, self._log, self._row, first, self._events, time.time_ns() // 1000))

    def _hear(self, happened: LogInput) -> None:
        if not isinstance(happened, Stored):
            raise MeasurementFailed("the store", f"said {happened}")
        now = time.perf_counter()
        self.taken += [now - asked for asked in self._asked[len(self.taken) : happened.upto]]


def measure(directory: Path, events_per_row: int, in_flight: int, seconds: float) -> Rates:
    """Write rows of that size for some seconds, so many of them under way. Raises MeasurementFailed."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        publisher = _Publisher(Path(folder), events_per_row, in_flight)
        spent = publisher.run(seconds)
    rows = len(publisher.taken) / spent
    events = rows * events_per_row
    p50, p99 = percentile(publisher.taken, 0.5), percentile(publisher.taken, 0.99)
    return Rates(events_per_row, in_flight, rows, events, events * LOG_EVENT_BYTES / 1e6, p50, p99)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench log_store`."""
    parser.add_argument("--seconds", type=float, default=2.0, help="for each line (default 2)")
    parser.add_argument("--directory", type=Path, default=Path(), help="on the disk to measure (default: here)")
    parser.set_defaults(synchronisations=LOG_SYNCHRONISATIONS)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    bare = synchronisation_seconds(arguments.directory, arguments.synchronisations)
    results = []
    try:
        for size in _SIZES:
            under_load = max(2, min(2_000, LOG_IN_FLIGHT_BYTES // (size * LOG_EVENT_BYTES)))
            for in_flight in (under_load, 1):
                results.append(measure(arguments.directory, size, in_flight, arguments.seconds))
    except MeasurementFailed as failure:
        console().print(f"failed: {failure}", style="red")
        return 1
    _print(bare, results)
    return 0


def _print(bare: list[float], results: list[Rates]) -> None:
    out = console()
    p50, p99 = 1000 * percentile(bare, 0.5), 1000 * percentile(bare, 0.99)
    out.print(f"one synchronisation of a bare file: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    table = Table(title=f"events of {LOG_EVENT_BYTES} bytes into log.db, every commit on the disk")
    for heading in ("events a row", "rows under way", "rows/s", "events/s", "MB/s", "p50 ms", "p99 ms"):
        table.add_column(heading, justify="right")
    for one in results:
        rates = (f"{one.rows:,.0f}", f"{one.events:,.0f}", f"{one.megabytes:,.1f}")
        waits = (f"{1000 * one.p50_seconds:.1f}", f"{1000 * one.p99_seconds:.1f}")
        table.add_row(f"{one.events_per_row:,}", f"{one.in_flight:,}", *rates, *waits)
    out.print(table)
