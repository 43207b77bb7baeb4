"""`headgate bench durability`: what it costs to have events on disks before they are acknowledged.

The shipped client publishes batches of 1, 100 and 1,000 events into real brokers: to a stream in memory, to a stored
one without waiting for the disk (mode `accepted`), and to a stored one waiting for one disk and for two. Two disks
need more than one broker, and three brokers share the cores that one had to itself; so the stream in memory is
measured with three as well, and whoever wants the price of the second disk alone compares with that.

Events a second are with many batches under way, and nobody subscribes; the acknowledgement's p50 and p99 are of one
batch at a time, and so is the delivery's p50: from publishing until a subscriber of the same broker has all of the
batch. No process is bound to a core. At the end of each case the log must have every event. The first line
printed is what one synchronisation takes on a bare file of that disk, which is most of what a lone batch waits for;
virtual disks, and those that others use, vary by ten times from second to second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from headgate.protocol.aio import Client, Subscription, connect
from headgate.protocol.errors import ErrorCode, HeadgateError, Refused

from ..kit import MeasurementFailed, fleet
from ..limits import (
    DURABILITY_BATCHES_UNDER_WAY,
    DURABILITY_DRAIN_SECONDS_MAX,
    DURABILITY_EVENTS_UNDER_WAY,
    LOG_SYNCHRONISATIONS,
    WARM_UP_SECONDS,
)
from ..peers import BODY
from ..wire import console, short
from .store import percentile, synchronisation_seconds

__all__ = ["CASES", "Case", "Cost", "add_arguments", "batches_under_way", "measure", "ratio", "run"]

_SIZES = (1, 100, 1_000)
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Case:
    """One way to publish: to how many brokers, to a stream of which durability, in which mode."""

    title: str
    brokers: int
    durability: str
    mode: str

    def stream(self, size: int) -> str:
        """A stream for itself and this size of batches."""
        return f"{self.durability}-{self.mode}-{size}"


CASES = (
    Case("memory, accepted", 1, "memory", "accepted"),
    Case("stored, accepted", 1, "stored", "accepted"),
    Case("stored, stored, k = 1", 1, "stored", "stored"),
    Case("memory, accepted, three brokers", 3, "memory", "accepted"),
    Case("stored, accepted, three brokers", 3, "stored", "accepted"),
    Case("stored, stored, k = 2, three brokers", 3, "stored", "stored"),
)
"""The first is what all ratios are to."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The result of one case with one size of batches."""

    title: str
    batch_events: int
    events_per_second: float
    p50_seconds: float
    p99_seconds: float
    acknowledgements: int
    """What the percentiles are of."""
    delivered_p50_seconds: float


def batches_under_way(size: int) -> int:
    """How many batches of that size wait for their acknowledgement when events a second are measured."""
    return min(DURABILITY_BATCHES_UNDER_WAY, DURABILITY_EVENTS_UNDER_WAY // size)


class _Publisher:
    """Publishes batches of one size to one stream."""

    def __init__(self, client: Client, case: Case, size: int) -> None:
        self._client = client
        self._stream = case.stream(size)
        self._mode = case.mode
        self._bodies = [BODY] * size
        self.events = 0

    async def once(self) -> float:
        """Seconds until one batch is acknowledged."""
        began = time.perf_counter()
        while True:
            try:
                await self._client.publish_batch(self._stream, None, self._bodies, mode=self._mode)
                break
            except Refused as refused:  # as much as may waits for disks
                if refused.code != ErrorCode.NOT_STORED:
                    raise
                await asyncio.sleep(_POLL_SECONDS)
        self.events += len(self._bodies)
        return time.perf_counter() - began

    async def alone(self, seconds: float) -> list[float]:
        """Publish one batch at a time; returns the seconds of each."""
        until = time.perf_counter() + seconds
        taken = [await self.once()]
        while time.perf_counter() < until:
            taken.append(await self.once())
        return taken

    async def delivered(self, listener: Client, seconds: float) -> list[float]:
        """One at a time: how long each took until a subscriber had all of it."""
        taken: list[float] = []
        async with await listener.subscribe(self._stream) as subscription:
            until = time.perf_counter() + seconds
            while not taken or time.perf_counter() < until:
                began = time.perf_counter()
                _, ended = await asyncio.gather(self.once(), self._all_came(subscription))
                taken.append(ended - began)
        return taken

    async def _all_came(self, subscription: Subscription) -> float:
        for _ in self._bodies:
            await anext(subscription)
        return time.perf_counter()

    async def together(self, seconds: float) -> float:
        """Publish with so many batches under way; returns events a second."""
        before, began = self.events, time.perf_counter()
        await asyncio.gather(*(self.alone(seconds) for _ in range(batches_under_way(len(self._bodies)))))
        return (self.events - before) / (time.perf_counter() - began)

    async def settled(self) -> None:
        """Wait until the log has all of them. Raises MeasurementFailed when that takes too long."""
        deadline = time.monotonic() + DURABILITY_DRAIN_SECONDS_MAX
        while (logged := sum(log.next for log in await self._client.logs(self._stream))) != self.events:
            if time.monotonic() > deadline:
                raise MeasurementFailed(
                    self._stream, f"{self.events} events were acknowledged, {logged} are in the log"
                )
            await asyncio.sleep(_POLL_SECONDS)


async def _measure(address: str, case: Case, size: int, seconds: float) -> Cost:
    async with await connect(address, batch_events=size, linger_seconds=0.0) as client:
        await client.ask("schema.put", stream=case.stream(size), schema={"durability": case.durability})
        publisher = _Publisher(client, case, size)
        await publisher.together(min(WARM_UP_SECONDS, seconds))
        taken = await publisher.alone(seconds)
        if case.durability == "stored":
            await publisher.settled()
        async with await connect(address) as listener:
            delivered = await publisher.delivered(listener, seconds)
        rate = await publisher.together(seconds)
        if case.durability == "stored":
            await publisher.settled()
    p50, p99 = percentile(taken, 0.5), percentile(taken, 0.99)
    return Cost(case.title, size, rate, p50, p99, len(taken), percentile(delivered, 0.5))


async def measure(cases: Sequence[Case], sizes: Sequence[int], seconds: float, directory: Path) -> list[Cost]:
    """Every case with every size, in order; cases of one size of cluster share it. Raises MeasurementFailed."""
    costs = []
    for brokers in dict.fromkeys(case.brokers for case in cases):
        with TemporaryDirectory(prefix="headgate-durability-", dir=directory) as folder:
            async with fleet(brokers, Path(folder)) as cluster:
                for case in [one for one in cases if one.brokers == brokers]:
                    for size in sizes:
                        try:
                            costs.append(await _measure(cluster.addresses[0], case, size, seconds))
                        except HeadgateError as error:
                            raise MeasurementFailed(f"{case.title}, batches of {size}", str(error)) from error
    return costs


def ratio(cost: Cost, costs: Sequence[Cost]) -> tuple[float, float]:
    """(events a second, p50 of the acknowledgement), as many times those of the first case with such batches."""
    first = next(one for one in costs if one.batch_events == cost.batch_events)
    return cost.events_per_second / first.events_per_second, cost.p50_seconds / first.p50_seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench durability`."""
    parser.add_argument("--seconds", type=float, default=2.0, help="for rate and for latency of each line (default 2)")
    parser.add_argument("--directory", type=Path, default=Path(), help="on the disk to measure (default: here)")
    parser.add_argument("--json", metavar="FILE", help="write every number to this file")
    parser.set_defaults(synchronisations=LOG_SYNCHRONISATIONS)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    directory = arguments.directory.resolve()
    bare = synchronisation_seconds(directory, arguments.synchronisations)
    try:
        costs = asyncio.run(measure(CASES, _SIZES, arguments.seconds, directory))
    except MeasurementFailed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    p50, p99 = 1000 * percentile(bare, 0.5), 1000 * percentile(bare, 0.99)
    console().print(f"one synchronisation of a bare file: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    _print(costs)
    if arguments.json:
        told: Mapping[str, object] = {"synchronisation_ms": [p50, p99], "costs": [asdict(one) for one in costs]}
        Path(arguments.json).write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    return 0


def _print(costs: Sequence[Cost]) -> None:
    table = Table(title=f"events of {len(BODY)} bytes; ratios are to the first case", title_justify="left")
    table.add_column("stream, mode")
    for heading in ("batch", "events/s", "x memory", "p50 ms", "p99 ms", "p50 x memory", "delivered ms"):
        table.add_column(heading, justify="right")
    for cost in costs:
        rates, waits = ratio(cost, costs)
        table.add_row(
            cost.title,
            f"{cost.batch_events:,}",
            short(cost.events_per_second),
            f"{rates:.2f}",
            f"{1000 * cost.p50_seconds:.2f}",
            f"{1000 * cost.p99_seconds:.2f}",
            f"{waits:.1f}",
            f"{1000 * cost.delivered_p50_seconds:.2f}",
            end_section=cost.batch_events == max(_SIZES),
        )
    console().print(table)


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench durability", description=(__doc__ or "").splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
