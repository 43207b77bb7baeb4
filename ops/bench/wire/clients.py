"""`headgate bench clients`: what the shipped clients themselves reach, verb by verb, asyncio and blocking.

The broker has one core and the client the other; unlike in `compare`, nothing is encoded in advance, so here the
client is the bottleneck. Bodies are 128 bytes, with the two attributes of a quote, settings as shipped.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from statistics import median

from rich.table import Table

from headgate.protocol.aio import Client, connect
from headgate.protocol.blocking import BlockingClient, connect_blocking
from headgate.protocol.data import Scalar

from ..kit import Child, Cores, MeasurementFailed, Server, cpu_seconds, running
from ..limits import CHUNK_EVENTS
from ..peers import BODY, Headgate
from .report import console, short

__all__ = ["ClientRates", "add_arguments", "measure", "run"]

ClientRates = dict[str, tuple[float, float]]
"""Verb -> events a second, and the broker's CPU share meanwhile."""

_TOPIC = "bench/clients"
_ATTRIBUTES: dict[str, Scalar] = {"symbol": "OTE", "price": 8.5}
_COLUMNS: dict[str, list[Scalar]] = {"symbol": ["OTE"] * CHUNK_EVENTS, "price": [8.5] * CHUNK_EVENTS}
_BODIES = [BODY] * CHUNK_EVENTS
_WORLDS = ("asyncio", "blocking")


class _Meter:
    """Events a second between `start` and `rate`."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self._used = cpu_seconds(pid)
        self._began = time.perf_counter()
        self._until = self._began + seconds

    @property
    def running(self) -> bool:
        return time.perf_counter() < self._until

    def result(self, events: int) -> tuple[float, float]:
        elapsed = time.perf_counter() - self._began
        return events / elapsed, (cpu_seconds(self._pid) - self._used) / elapsed


def measure(world: str, seconds: float, cores: Cores) -> ClientRates:
    """The rates of one client against a broker of its own. Raises MeasurementFailed."""
    peer = Headgate()
    with running(peer.label, peer.command, cores.server) as server:
        child = Child(f"{world} client", cores.generator, _WORK[world], server, seconds)
        try:
            return child.result()
        finally:
            child.end()


def _asyncio(server: Server, seconds: float) -> ClientRates:
    return asyncio.run(_asyncio_verbs(server, seconds))


async def _asyncio_verbs(server: Server, seconds: float) -> ClientRates:
    async with await connect(f"127.0.0.1:{server.port}") as client:
        return {
            "publish, each awaited": await _publish(client, _Meter(server.pid, seconds)),
            "publish_soon, then flush": await _publish_soon(client, _Meter(server.pid, seconds)),
            "publish_batch of 500": await _publish_batch(client, _Meter(server.pid, seconds)),
            "publish_batch, received by a subscription": await _receive(client, _Meter(server.pid, seconds)),
        }


async def _publish(client: Client, meter: _Meter) -> tuple[float, float]:
    events = 0
    while meter.running:
        await client.publish(_TOPIC, _ATTRIBUTES, BODY)
        events += 1
    return meter.result(events)


async def _publish_soon(client: Client, meter: _Meter) -> tuple[float, float]:
    events = 0
    while meter.running:
        await client.ready()
        for _ in range(CHUNK_EVENTS):
            client.publish_soon(_TOPIC, _ATTRIBUTES, BODY)
        events += CHUNK_EVENTS
    await client.flush()
    return meter.result(events)


async def _publish_batch(client: Client, meter: _Meter) -> tuple[float, float]:
    """Eight batches at a time: a publisher that waits for each alone would measure the way there and back."""
    events = 0
    while meter.running:
        await asyncio.gather(*(client.publish_batch(_TOPIC, _COLUMNS, _BODIES) for _ in range(8)))
        events += 8 * CHUNK_EVENTS
    return meter.result(events)


async def _receive(client: Client, meter: _Meter) -> tuple[float, float]:
    events = received = 0
    async with await client.subscribe(_TOPIC) as subscription:
        batches = subscription.batches()
        while meter.running:
            await asyncio.gather(*(client.publish_batch(_TOPIC, _COLUMNS, _BODIES) for _ in range(8)))
            events += 8 * CHUNK_EVENTS
            while received < events:
                received += len(await anext(batches))
    return meter.result(received)


def _blocking(server: Server, seconds: float) -> ClientRates:
    with connect_blocking(f"127.0.0.1:{server.port}") as client:
        return {
            "publish, each awaited": _publish_blocking(client, _Meter(server.pid, seconds)),
            "publish_soon, then flush": _publish_soon_blocking(client, _Meter(server.pid, seconds)),
            "publish_batch of 500": _publish_batch_blocking(client, _Meter(server.pid, seconds)),
            "publish_batch, received by a subscription": _receive_blocking(client, _Meter(server.pid, seconds)),
        }


def _publish_blocking(client: BlockingClient, meter: _Meter) -> tuple[float, float]:
    events = 0
    while meter.running:
        client.publish(_TOPIC, _ATTRIBUTES, BODY)
        events += 1
    return meter.result(events)


def _publish_soon_blocking(client: BlockingClient, meter: _Meter) -> tuple[float, float]:
    events = 0
    while meter.running:
        client.ready()
        for _ in range(CHUNK_EVENTS):
            client.publish_soon(_TOPIC, _ATTRIBUTES, BODY)
        events += CHUNK_EVENTS
    client.flush()
    return meter.result(events)


def _publish_batch_blocking(client: BlockingClient, meter: _Meter) -> tuple[float, float]:
    """Eight batches a call, as long columns: the library cuts them."""
    columns = {name: values * 8 for name, values in _COLUMNS.items()}
    events = 0
    while meter.running:
        client.publish_batch(_TOPIC, columns, _BODIES * 8)
        events += 8 * CHUNK_EVENTS
    return meter.result(events)


def _receive_blocking(client: BlockingClient, meter: _Meter) -> tuple[float, float]:
    events = received = 0
    columns = {name: values * 8 for name, values in _COLUMNS.items()}
    with client.subscribe(_TOPIC) as subscription:
        while meter.running:
            client.publish_batch(_TOPIC, columns, _BODIES * 8)
            events += 8 * CHUNK_EVENTS
            while received < events:
                received += len(subscription.take(5.0))
    return meter.result(received)


_WORK: dict[str, Callable[[Server, float], ClientRates]] = {"asyncio": _asyncio, "blocking": _blocking}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench clients`."""
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default 3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each verb is measured (default 1)")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when both clients were measured."""
    cores = Cores.chosen()
    failed = False
    table = Table(title="the shipped clients, events a second (broker CPU)", title_justify="left")
    for heading in ("verb", *_WORLDS):
        table.add_column(heading, justify="left" if heading == "verb" else "right")
    rates: dict[str, list[ClientRates]] = {world: [] for world in _WORLDS}
    for _ in range(arguments.rounds):
        for world in _WORLDS:
            try:
                rates[world].append(measure(world, arguments.seconds, cores))
            except MeasurementFailed as failure:
                print(f"failed: {failure}", file=sys.stderr)
                failed = True
    for verb in dict.fromkeys(verb for rounds in rates.values() for one in rounds for verb in one):
        table.add_row(verb, *(_cell([one[verb] for one in rates[world]]) for world in _WORLDS))
    console().print(table)
    return 1 if failed else 0


def _cell(rounds: list[tuple[float, float]]) -> str:
    if not rounds:
        return "not measured"
    return f"{short(median(rate for rate, _ in rounds))} ({median(share for _, share in rounds):.0%})"


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench clients", description=__doc__.splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
