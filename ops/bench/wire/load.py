"""Generator and sink: one run of one workload through one server, and what came of it.

    generator  --chunks, encoded before-->  server  --deliveries-->  sink
        ^                                                             |
        +-------- a shared counter of what has arrived ---------------+

The generator writes as fast as the server takes it, but never lets more than a fixed number of events or deliveries be
under way; that bound is read from the sink's counter and replaces flow control where a protocol has none. It is the
same for every server but one that is so slow that draining it would take longer than the run. The clock runs from the
first write after the warm-up to the arrival of the last delivery, so draining is included, and a rate is never better
than what really arrived.
"""

from __future__ import annotations

import select
import time
from collections.abc import MutableSequence
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.sharedctypes import RawArray
from typing import cast

from .. import limits
from ..kit import Child, Cores, MeasurementFailed, Server, Workload, cpu_seconds, peak_bytes, queued_seconds, running
from ..peers import Chunk, Peer, Subscriber

__all__ = [
    "ARRIVED",
    "LAST_NS",
    "READY",
    "STOP",
    "Cells",
    "Outcome",
    "Shares",
    "Totals",
    "bottleneck",
    "collect",
    "measure",
    "wait_until_ready",
]

ARRIVED, LAST_NS, STOP, READY = range(4)
"""Cells that generator, sink and parent share."""
Cells = MutableSequence[int]


@dataclass(frozen=True, slots=True)
class Shares:
    """CPU time over wall time of each process; 1.0 is one whole core.

    `queued` is the time that the server was ready to run while somebody else had its core.
    """

    server: float
    generator: float
    sink: float
    queued: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. `arrivals` is what the sink counted, `expected` what was due, `useful` what somebody had asked for."""

    events: int
    expected: int
    arrivals: int
    useful: int
    seconds: float
    shares: Shares
    peak_bytes: int

    @property
    def rate(self) -> float:
        """Useful deliveries a second; lost ones are not counted."""
        return self.useful * (self.arrivals / self.expected if self.expected else 0.0) / self.seconds

    @property
    def rate_of_core(self) -> float:
        """Useful deliveries a second of the server's own CPU time: what a core to itself would give at best."""
        return self.rate / self.shares.server if self.shares.server > 0 else 0.0

    @property
    def lost(self) -> int:
        """Deliveries that never came."""
        return self.expected - self.arrivals


def bottleneck(shares: Shares, shared_core: bool) -> str:
    """Which process held the others up: the one whose core was full.

    `core shared` means that the server had work all the time, and somebody else's process took its core; the rate is
    then that of a part of a core.
    """
    load = shares.generator + shares.sink if shared_core else max(shares.generator, shares.sink)
    if shares.queued >= 0.1 and shares.server + shares.queued >= 0.8:
        return "core shared"
    if shares.server >= 0.9 or (shares.server >= 0.8 and shares.server > load):
        return "server" if load < 0.9 else "server and load"
    if load >= 0.8:
        return "generator" if shares.generator > shares.sink else "sink"
    return "waiting"


def measure(peer: Peer, workload: Workload, seconds: float, cores: Cores, stalled: int = 0) -> Outcome:
    """Start the server, run the workload through it for so long, end it.

    The last `stalled` subscriber connections subscribe and never read. Raises MeasurementFailed.
    """
    chunks = peer.chunks(workload)
    cells = cast(Cells, RawArray("q", 4))
    with running(peer.label, peer.command, cores.server) as server:
        sink = Child("sink", cores.sink, collect, peer, server, workload, cells, stalled)
        try:
            wait_until_ready(sink, cells)
            share = 1 - stalled / len(workload.wants)
            generator = Child(
                "generator",
                cores.generator,
                _generate,
                peer,
                server,
                chunks,
                workload.publishers,
                cells,
                seconds,
                sink.pid,
                share,
            )
            try:
                outcome = generator.result()
            except MeasurementFailed:
                if cells[STOP]:
                    sink.result()  # it stopped first, and knows why
                raise
            finally:
                cells[STOP] = 1
                generator.end()
            sink.result()
        finally:
            cells[STOP] = 1
            sink.end()
    return outcome


def wait_until_ready(sink: Child[int], cells: Cells) -> None:
    """Wait until every subscription is in force."""
    give_up = time.monotonic() + limits.CHILD_SECONDS_MAX
    while not cells[READY]:
        if cells[STOP]:
            sink.result()
        if time.monotonic() > give_up:
            raise MeasurementFailed("sink", "its subscriptions were not in force in time")
        time.sleep(0.005)


def collect(peer: Peer, server: Server, workload: Workload, cells: Cells, stalled: int) -> int:
    """Subscribe, then count until told to stop; returns the deliveries that the server said it dropped."""
    try:
        subscribers = [peer.subscriber(server.port, wants) for wants in workload.wants]
        reading = subscribers[: len(subscribers) - stalled]
        cells[READY] = 1
        _count(reading, cells)
    finally:
        cells[STOP] = 1
    for subscriber in reading:
        subscriber.finish()
    return sum(subscriber.lost for subscriber in reading)


def _count(subscribers: list[Subscriber], cells: Cells) -> None:
    poll = select.epoll()
    by_descriptor = {subscriber.connection.fileno(): subscriber for subscriber in subscribers}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.EPOLLIN)
    readers = {
        descriptor: (subscriber.connection.recv_into, subscriber.feed)
        for descriptor, subscriber in by_descriptor.items()
    }
    buffer = bytearray(limits.READ_LENGTH)
    view, arrived, now = memoryview(buffer), 0, time.perf_counter_ns
    while not cells[STOP]:
        for descriptor, _ in poll.poll(0.05):
            receive, feed = readers[descriptor]
            length = receive(buffer)
            if not length:
                raise MeasurementFailed("sink", "the server closed a subscriber's connection")
            arrived += feed(view[:length])
        if arrived != cells[ARRIVED]:
            cells[LAST_NS] = now()
            cells[ARRIVED] = arrived
    poll.close()


class Totals:
    """Counts what the generator has sent, and limits what is under way."""

    def __init__(self, cells: Cells, chunks: list[Chunk], share: float, arrivals_max: int) -> None:
        self.events = self.arrivals = self.useful = 0
        self._cells = cells
        self._share = share
        per_event = max(sum(chunk.arrivals for chunk in chunks) / sum(chunk.events for chunk in chunks), 1e-6)
        bound = min(arrivals_max, limits.IN_FLIGHT_EVENTS_MAX * per_event)
        self._bound = max(bound, 2 * max(chunk.arrivals for chunk in chunks)) * share

    @property
    def expected(self) -> int:
        """Deliveries that the sink is to count for what was sent."""
        return round(self.arrivals * self._share)

    def add(self, chunk: Chunk) -> bool:
        """Count a chunk that was written, and wait while too much is under way; False when nothing arrives any more."""
        self.events += chunk.events
        self.arrivals += chunk.arrivals
        self.useful += chunk.useful
        return self._wait(self.expected - self._bound, 0.0002)

    def drain(self) -> bool:
        """Wait until everything has arrived; False when nothing has for too long."""
        return self._wait(self.expected, 0.0005)

    def _wait(self, wanted: float, pause_seconds: float) -> bool:
        if self._cells[ARRIVED] >= wanted:
            return True
        seen, since = -1, time.perf_counter()
        while self._cells[ARRIVED] < wanted and not self._cells[STOP]:
            if self._cells[ARRIVED] != seen:
                seen, since = self._cells[ARRIVED], time.perf_counter()
            elif time.perf_counter() - since > limits.SILENCE_SECONDS_MAX:
                return False
            time.sleep(pause_seconds)
        return True


def _generate(
    peer: Peer,
    server: Server,
    chunks: list[Chunk],
    count: int,
    cells: Cells,
    seconds: float,
    sink_pid: int,
    share: float,
) -> Outcome:
    publishers = [peer.publisher(server.port) for _ in range(count)]
    totals = Totals(cells, chunks, share, peer.in_flight_arrivals_max)
    ring = zip(cycle(chunks), cycle(publishers))  # both are endless

    def push(until: float) -> None:
        for chunk, publisher in ring:
            publisher.send(chunk)
            if not totals.add(chunk) or time.perf_counter() >= until or cells[STOP]:
                return

    def processor() -> list[float]:
        return [cpu_seconds(server.pid), time.process_time(), cpu_seconds(sink_pid), queued_seconds(server.pid)]

    push(time.perf_counter() + min(limits.WARM_UP_SECONDS, seconds))
    totals.drain()
    before = (totals.events, totals.expected, totals.useful, cells[ARRIVED])
    used, began_ns = processor(), time.perf_counter_ns()
    push(time.perf_counter() + seconds)
    totals.drain()
    elapsed = (cells[LAST_NS] - began_ns) / 1e9
    if cells[STOP] or elapsed <= 0:
        raise MeasurementFailed("sink", "stopped early")
    wall = (time.perf_counter_ns() - began_ns) / 1e9
    shares = Shares(*((after - start) / wall for after, start in zip(processor(), used, strict=True)))
    peak = peak_bytes(server.pid)
    if totals.expected == cells[ARRIVED]:
        for publisher in publishers:
            publisher.finish()
    useful = round((totals.useful - before[2]) * share)
    arrivals = cells[ARRIVED] - before[3]
    return Outcome(totals.events - before[0], totals.expected - before[1], arrivals, useful, elapsed, shares, peak)
