"""Latency: how long one event takes from its write to its arrival, at a steady thousand events a second.

Both ends live in one process, so one clock (`perf_counter_ns`) reads both. Sending is paced by the clock and does not
wait for arrivals: an event that is late does not hold back the next one, so a stall shows in every event it delayed.
Each event is one write, unbatched; the first half second is not counted.

`headgate bench latency` runs it alone, `headgate bench compare` as workload d.
"""

from __future__ import annotations

import argparse
import select
import sys
import time
from array import array
from collections import deque
from dataclasses import dataclass

from .. import limits
from ..kit import Child, Cores, MeasurementFailed, Server, build, cpu_seconds, raise_open_files, running
from ..peers import PEERS, Headgate, Peer

__all__ = ["Latency", "add_arguments", "measure", "percentile", "run"]

_NOT_COUNTED_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in microseconds, and the server's CPU share while it was measured."""

    p50: float
    p99: float
    count: int
    lost: int
    server_share: float


def percentile(ordered: list[int], fraction: float) -> float:
    """The value below which that fraction of an ordered list lies, by nearest rank."""
    if not ordered:
        return float("nan")
    return ordered[min(len(ordered) - 1, max(0, round(fraction * len(ordered)) - 1))]


def measure(peer: Peer, seconds: float, cores: Cores) -> Latency:
    """Start the server and measure it for so long. Raises MeasurementFailed."""
    with running(peer.label, peer.command, cores.server) as server:
        child = Child("latency", cores.generator, _measure, peer, server, seconds)
        try:
            return child.result()
        finally:
            child.end()


def _measure(peer: Peer, server: Server, seconds: float) -> Latency:
    workload = build("a")
    subscriber = peer.subscriber(server.port, workload.wants[0])
    publisher = peer.publisher(server.port)
    chunk = peer.single(workload)
    buffer = bytearray(limits.READ_LENGTH)
    view, now = memoryview(buffer), time.perf_counter_ns
    incoming, waiting = subscriber.connection, deque[int]()
    taken = array("q")
    interval = 1_000_000_000 // limits.LATENCY_EVENTS_PER_SECOND
    total = round((seconds + _NOT_COUNTED_SECONDS) * limits.LATENCY_EVENTS_PER_SECOND)
    sent, due, used, began = 0, now(), cpu_seconds(server.pid), now()
    give_up = due + total * interval + round(limits.SILENCE_SECONDS_MAX * 1e9)
    while len(taken) < total and now() < give_up:
        pause = (due - now()) / 1e9 if sent < total else 0.1
        if pause <= 0:
            publisher.prepare(chunk)
            waiting.append(now())
            publisher.send(chunk)
            sent += 1
            due += interval
            continue
        if select.select((incoming,), (), (), pause)[0]:
            length = incoming.recv_into(buffer)
            if not length:
                raise MeasurementFailed(peer.label, "closed the subscriber's connection")
            arrived = subscriber.feed(view[:length])
            stamp = now()
            for _ in range(arrived):
                taken.append(stamp - waiting.popleft())
            publisher.settle()
    share = (cpu_seconds(server.pid) - used) / ((now() - began) / 1e9)
    counted = sorted(taken[round(_NOT_COUNTED_SECONDS * limits.LATENCY_EVENTS_PER_SECOND) :])
    p50, p99 = percentile(counted, 0.50) / 1e3, percentile(counted, 0.99) / 1e3
    return Latency(p50, p99, len(counted), total - len(taken), share)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench latency`."""
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each server is measured (default 5)")
    parser.add_argument("--peers", default=",".join(PEERS), help="peers beside headgate, with commas (default all)")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when Headgate was measured."""
    from . import report
    from .compare import chosen_peers

    raise_open_files()
    cores = Cores.chosen()
    results: dict[str, list[Latency]] = {}
    contenders: list[Peer] = [Headgate(1), *chosen_peers(arguments.peers)]
    for peer in contenders:
        if peer.version() is None:
            print(f"{peer.name}: not measured, it is not installed", file=sys.stderr)
            continue
        try:
            results[peer.name] = [measure(peer, arguments.seconds, cores)]
        except MeasurementFailed as failure:
            print(f"{peer.name}: not measured, {failure}", file=sys.stderr)
    report.print_latencies(results)
    return 0 if "headgate" in results else 1


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench latency", description=__doc__.splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
