"""`headgate bench cluster`: what it costs to be several brokers, on the selective workload.

1,000 content subscribers, one connection each (workload e1k of `compare`), spread over 1, 3 and 5 brokers; each batch
is published at the next broker in turn, encoded beforehand. All brokers share one core, generator and sink another, so
rates say little here: what counts is useful deliveries for a CPU second of all brokers together. That is what the same
machines would carry if each broker had a core.

What a cluster does more: events whose keys others own are *forwarded* to them, and what matches is *relayed* by the
brokers of the subscribers. How much of the time that is, and what the rest went to, says a second run
under a profile, whose shares are applied to the CPU time of the first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from random import Random
from statistics import median
from typing import cast

from rich.table import Table

from headgate.protocol.aio import connect

from .. import limits
from ..kit import (
    Child,
    Cores,
    Fleet,
    MeasurementFailed,
    Member,
    Server,
    Want,
    Workload,
    build,
    cpu_seconds,
    raise_open_files,
)
from ..peers import Chunk, Headgate, HeadgateSubscriber
from ..wire import ARRIVED, LAST_NS, STOP, Cells, Totals, collect, console, short, wait_until_ready
from .profile import read

__all__ = ["Cost", "add_arguments", "measure", "run"]

_WORKLOAD = "e1k"
_SEED = 7400
_PROFILER = "headgate.ops.bench.cluster.profile"
_PROFILE_SECONDS_MAX = 10.0
_BETWEEN = ("events_forwarded", "events_relayed")


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: what was done, and what each broker used for it."""

    brokers: int
    events: int
    useful: int
    lost: int
    seconds: float
    cpu_seconds: tuple[float, ...]
    forwarded: float
    """For each event, how often it was sent on to a broker that answers for one of its keys."""
    relayed: float
    """For each event, how often it came to another broker as a match, for subscribers that are connected there."""

    @property
    def rate(self) -> float:
        """Useful deliveries a second, on the core that all brokers shared."""
        return self.useful / self.seconds

    @property
    def useful_of_core(self) -> float:
        """Useful deliveries for a CPU second of all brokers together."""
        return self.useful / sum(self.cpu_seconds)

    @property
    def events_of_core(self) -> float:
        """Events published for a CPU second of all brokers together."""
        return self.events / sum(self.cpu_seconds)

    @property
    def microseconds(self) -> float:
        """CPU time of all brokers for one event."""
        return sum(self.cpu_seconds) / self.events * 1e6


class _Spread(Headgate):
    """Headgate with its subscribers spread over brokers at random, the same number on each."""

    def __init__(self, ports: Sequence[int], count: int) -> None:
        super().__init__()
        places = [ports[number % len(ports)] for number in range(count)]
        Random(_SEED).shuffle(places)
        self._places = iter(places)

    def subscriber(self, port: int, wants: Sequence[Want]) -> HeadgateSubscriber:
        return super().subscriber(next(self._places), wants)


def measure(brokers: int, seconds: float, cores: Cores, profile_in: Path | None = None) -> Cost:
    """Start so many brokers and run the workload through them. Raises MeasurementFailed.

    With a folder each broker leaves its profile there.
    """
    with tempfile.TemporaryDirectory(prefix="headgate-cluster-") as place:
        cluster = Fleet(brokers, Path(place))
        try:
            for member in cluster.members:
                member.start(*(() if profile_in is None else ("-m", _PROFILER, str(_profile(profile_in, member)))))
                if cores.server is not None:
                    os.sched_setaffinity(member.pid, {cores.server})
            asyncio.run(cluster.together())
            return _measure(cluster, build(_WORKLOAD), seconds, cores, profile_in)
        finally:
            cluster.end()


def _profile(folder: Path, member: Member) -> Path:
    return folder / f"{member.name}.profile"


def _measure(cluster: Fleet, workload: Workload, seconds: float, cores: Cores, profile_in: Path | None) -> Cost:
    ports = [int(address.rpartition(":")[2]) for address in cluster.addresses]
    pids = [member.pid for member in cluster.members]
    peer = _Spread(ports, len(workload.wants))
    chunks = peer.chunks(workload)
    cells = cast(Cells, RawArray("q", 4))
    sink = Child("sink", cores.sink, collect, peer, Server("cluster", pids[0], ports[0]), workload, cells, 0)
    try:
        wait_until_ready(sink, cells)
        before = asyncio.run(_counts(cluster))
        told = [] if profile_in is None else pids
        generator = Child("generator", cores.generator, _generate, ports, pids, chunks, cells, seconds, told)
        try:
            events, useful, lost, elapsed, used = generator.result()
        finally:
            cells[STOP] = 1
            generator.end()
        sink.result()
    finally:
        cells[STOP] = 1
        sink.end()
    counts = asyncio.run(_counts(cluster))
    counts.subtract(before)
    if profile_in is not None:
        _wait_for_files([_profile(profile_in, member) for member in cluster.members])
    forwarded, relayed = (counts[name] / max(1, counts["events_received"]) for name in _BETWEEN)
    return Cost(len(pids), events, useful, lost, elapsed, tuple(used), forwarded, relayed)


def _wait_for_files(files: Sequence[Path]) -> None:
    give_up = time.monotonic() + _PROFILE_SECONDS_MAX
    while not all(file.exists() for file in files):
        if time.monotonic() > give_up:
            raise MeasurementFailed("the brokers", "left no profile")
        time.sleep(0.05)


async def _counts(cluster: Fleet) -> Counter[str]:
    """The counters of all brokers now."""
    names = ("events_received", *_BETWEEN)
    total: Counter[str] = Counter()
    for member in cluster.members:
        async with await connect(member.address) as client:
            status = await client.ask("status")
            total.update({name: status[name] for name in names})
    return total


def _generate(
    ports: Sequence[int], pids: Sequence[int], chunks: list[Chunk], cells: Cells, seconds: float, told: Sequence[int]
) -> tuple[int, int, int, float, list[float]]:
    """(events, useful deliveries, lost ones, seconds, CPU seconds of each broker)."""
    peer = Headgate()
    publishers = cycle([peer.publisher(port) for port in ports])
    totals = Totals(cells, chunks, 1.0, peer.in_flight_arrivals_max)
    ring = cycle(chunks)

    def push(until: float) -> None:
        for chunk in ring:
            next(publishers).send(chunk)
            if not totals.add(chunk) or time.perf_counter() >= until or cells[STOP]:
                return

    def tell() -> None:
        for pid in told:
            os.kill(pid, signal.SIGUSR1)

    push(time.perf_counter() + min(limits.WARM_UP_SECONDS * len(ports), seconds))
    totals.drain()
    tell()
    events, expected, arrived = totals.events, totals.expected, cells[ARRIVED]
    used, began_ns = [cpu_seconds(pid) for pid in pids], time.perf_counter_ns()
    push(time.perf_counter() + seconds)
    totals.drain()
    tell()
    used = [cpu_seconds(pid) - before for pid, before in zip(pids, used, strict=True)]
    elapsed = (cells[LAST_NS] - began_ns) / 1e9
    if cells[STOP] or elapsed <= 0:
        raise MeasurementFailed("sink", "stopped early")
    useful = cells[ARRIVED] - arrived
    return totals.events - events, useful, totals.expected - expected - useful, elapsed, used


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench cluster`."""
    parser.add_argument("--brokers", default="1,3,5", help="sizes of clusters, with commas (default 1,3,5)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (default 3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each measurement lasts (default 3)")
    parser.add_argument("--no-profile", action="store_true", help="leave out the run that says where the time goes")
    parser.add_argument("--json", metavar="FILE", help="write every number to this file")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when everything was measured and nothing was lost."""
    raise_open_files()
    cores = Cores.chosen()
    sizes = [int(word) for word in arguments.brokers.split(",")]
    costs: dict[int, list[Cost]] = {size: [] for size in sizes}
    shares: dict[int, Counter[str]] = {}
    try:
        for _ in range(arguments.rounds):
            for size in sizes:
                costs[size].append(measure(size, arguments.seconds, cores))
        for size in [] if arguments.no_profile else sizes:
            with tempfile.TemporaryDirectory(prefix="headgate-profile-") as folder:
                measure(size, arguments.seconds, cores, Path(folder))
                shares[size] = read(sorted(Path(folder).glob("*.profile")))
    except MeasurementFailed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    _print_costs(costs)
    if shares:
        _print_layers(costs, shares)
    if arguments.json:
        rounds = {size: [asdict(one) for one in several] for size, several in costs.items()}
        Path(arguments.json).write_text(json.dumps({"costs": rounds, "layers": shares}, indent=2) + "\n", "utf-8")
    return 0 if not any(one.lost for several in costs.values() for one in several) else 1


def _print_costs(costs: dict[int, list[Cost]]) -> None:
    workload = build(_WORKLOAD)
    table = Table(title=f"the cost of clustering: {workload.title}", title_justify="left")
    table.add_column("brokers", justify="right")
    for heading in ("useful/CPU s", "lowest", "highest", "x first", "us CPU/event"):
        table.add_column(heading, justify="right")
    for heading in ("CPU s, most of one", "forwards", "relays", "lost"):
        table.add_column(heading, justify="right")
    reference = median(one.useful_of_core for one in next(iter(costs.values())))
    for size, several in costs.items():
        rates = [one.useful_of_core for one in several]
        last = several[-1]
        table.add_row(
            str(size),
            short(median(rates)),
            short(min(rates)),
            short(max(rates)),
            f"{median(rates) / reference:.2f}",
            f"{median(one.microseconds for one in several):.2f}",
            f"{sum(last.cpu_seconds):.1f}, {max(last.cpu_seconds):.1f}",
            f"{median(one.forwarded for one in several):.2f}",
            f"{median(one.relayed for one in several):.2f}",
            str(sum(one.lost for one in several)),
        )
    console().print(table)


def _print_layers(costs: dict[int, list[Cost]], shares: dict[int, Counter[str]]) -> None:
    """CPU microseconds an event by layer: shares of the profiled run, of the time of those that were not profiled."""
    table = Table(title="where it goes, us of CPU an event (by samples)", title_justify="left")
    table.add_column("layer")
    spent: dict[int, dict[str, float]] = {}
    for size, samples in shares.items():
        table.add_column(f"{size} broker{'s' if size > 1 else ''}", justify="right")
        whole = median(one.microseconds for one in costs[size])
        spent[size] = {layer: whole * value / samples.total() for layer, value in samples.items()}
    names = dict.fromkeys(layer for by_layer in spent.values() for layer in by_layer)
    for layer in sorted(names, key=lambda name: -sum(by_layer.get(name, 0.0) for by_layer in spent.values())):
        table.add_row(layer, *(f"{by_layer.get(layer, 0.0):.2f}" for by_layer in spent.values()))
    console().print(table)


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench cluster", description=(__doc__ or "").splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
