"""`headgate bench moved`: subscribers who want a price when it has moved, beside peers that send them everything.

Each of many symbols has the ticks of a real stock, a piece of them, and each subscriber wants one symbol when it has
moved by five cents. All symbols are published under one topic. A cluster of ours decides for every subscriber; a peer
knows topics, so each connection hears every event and its client throws away what it does not want. That client costs
nothing here: bytes are counted, not filtered, which flatters the peers. They get fewer events, for each costs them as
many deliveries as there are connections; of these the same share counts as useful.

Rates are useful deliveries a second, from the first write to the last arrival. Bytes are those that came to the
subscribers, for each event that was published. The same cluster with the rest of the conditions alone says what DELTA
spares the wire. All run one after the other on the same machine, our brokers and the load sharing its cores.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import select
import tarfile
import time
import zipfile
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

from rich.table import Table

from headgate.matching import Delta
from headgate.matching.dynamic import Triggers
from headgate.protocol.data import make_batch
from headgate.protocol.messages import Mode, Publish
from headgate.protocol.wire import encode

from ...exits import DONE, REFUSED
from .. import limits
from ..kit import SOURCES, Child, Cores, MeasurementFailed, fleet, raise_open_files, running
from ..peers import BODY, PEERS, Chunk, Headgate, Peer, Subscriber
from ..wire import console

__all__ = ["Asked", "Came", "Ticks", "add_arguments", "real_ticks", "run", "useful_of"]

_BAND = 0.05
_TOPIC = "ticks"
_ARRIVED, _BYTES, _LAST_NS, _READY, _STOP, _LOST = range(6)
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """One subscription, as `peers` want it: a topic and a condition."""

    topic: str
    condition: str


@dataclass(frozen=True, slots=True)
class Ticks:
    """Events in order: of which symbol, at what price."""

    symbols: tuple[str, ...]
    prices: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.symbols)


@dataclass(frozen=True, slots=True)
class Came:
    """What came of one run."""

    events: int
    deliveries: int
    useful: int
    bytes: int
    seconds: float

    @property
    def rate(self) -> float:
        """Useful deliveries a second."""
        return self.useful / self.seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--subscribers", type=int, default=1000, help="symbols and subscriptions (default 1000)")
    parser.add_argument("--connections", type=int, default=1000, help="that they come over (default 1000)")
    parser.add_argument("--brokers", type=int, default=5, help="of our cluster (default 5)")
    parser.add_argument("--events", type=int, default=40_000, help="for our cluster (default 40,000)")
    parser.add_argument("--flood-events", type=int, default=2_000, help="for each peer (default 2,000)")
    parser.add_argument("--without-peers", action="store_true", help="our cluster alone")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print a table."""
    series = real_ticks()
    if not series:
        console().print("No ticks: set HEADGATE_DATA.")
        return DONE
    raise_open_files()
    count = arguments.subscribers
    connections = min(arguments.connections, count)
    ours, floods = (_ticks(series, count, events) for events in (arguments.events, arguments.flood_events))
    try:
        results = _results(arguments, count, connections, ours, floods)
    except MeasurementFailed as failure:
        console().print(f"headgate bench moved: {failure}")
        return REFUSED
    _print(results, arguments)
    return DONE


def _results(
    arguments: argparse.Namespace, count: int, connections: int, ours: Ticks, floods: Ticks
) -> list[tuple[str, Came]]:
    """Ours with and without DELTA, then the peers. Raises MeasurementFailed."""
    wishes: list[tuple[list[list[Asked]], int]] = []
    for delta, expected in ((f" AND DELTA(price) > {_BAND}", useful_of(ours)), ("", len(ours))):
        asked = [Asked(_TOPIC, f"symbol = '{_symbol(one)}'{delta}") for one in range(count)]
        wishes.append(([asked[first::connections] for first in range(connections)], expected))
    came = asyncio.run(_cluster(arguments.brokers, wishes, ours))
    results = list(zip(("headgate", "headgate without DELTA"), came, strict=True))
    for name, kind in PEERS.items() if not arguments.without_peers else ():
        if name != "redis" and kind().version() is not None:
            results.append((name, _flooded(kind(), connections, floods, useful_of(ours) / len(ours))))
    return results


def _print(results: Sequence[tuple[str, Came]], arguments: argparse.Namespace) -> None:
    table = Table(
        title=f"{arguments.subscribers:,} subscribers to symbols of their own, {arguments.brokers} brokers of ours",
        title_justify="left",
    )
    headings = (
        "",
        "events",
        "deliveries",
        "useful",
        "seconds",
        "useful/s",
        "beside ours",
        "bytes an event",
        "beside ours",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    first = results[0][1]
    for label, came in results:
        each = came.bytes / came.events
        table.add_row(
            label, f"{came.events:,}", f"{came.deliveries:,}", f"{came.useful:,}", f"{came.seconds:.2f}",
            f"{came.rate:,.0f}", f"1/{first.rate / came.rate:.0f}", f"{each:,.0f}",
            f"{each / (first.bytes / first.events):,.1f} times",
        )  # fmt: skip
    console().print(table)
    (_, delta), (_, static) = results[:2]
    console().print(
        f"Suppressed: {1 - delta.deliveries / static.deliveries:.1%} of the deliveries, and "
        f"{1 - delta.bytes / static.bytes:.1%} of the bytes to subscribers."
    )


async def _cluster(brokers: int, wishes: Sequence[tuple[Sequence[Sequence[Asked]], int]], ticks: Ticks) -> list[Came]:
    """One cluster for all, one after the other; a number says how many deliveries are due."""
    peer, chunks, count = Headgate(), _our_chunks(ticks), len(ticks)
    async with fleet(brokers) as cluster:
        ports = [int(address.rpartition(":")[2]) for address in cluster.addresses]
        return [
            await asyncio.to_thread(_measured, peer, ports, wants, chunks, count, expected, expected)
            for wants, expected in wishes
        ]


def _flooded(peer: Peer, connections: int, ticks: Ticks, share: float) -> Came:
    wants = [[Asked(_TOPIC, "")] for _ in range(connections)]
    event: Any = type("Event", (), {"topic": _TOPIC})
    workload: Any = type("Flood", (), {"events": [event] * _BATCH})
    chunks = [
        Chunk(peer.encode(workload, 0, part), part, 0, 0) for part in _parts(len(ticks), max(1, 20_000 // connections))
    ]
    with running(peer.label, peer.command, None) as server:
        arrivals = connections * len(ticks)
        return _measured(peer, [server.port], wants, chunks, len(ticks), arrivals, round(share * len(ticks)))


def _measured(
    peer: Peer,
    ports: Sequence[int],
    wants: Sequence[Sequence[Any]],
    chunks: Sequence[Chunk],
    events: int,
    arrivals: int,
    useful: int,
) -> Came:
    """Publish all and wait for what is due."""
    cells = RawArray("q", 6)
    cores = Cores.chosen()
    sink = Child("sink", None if len(ports) > 1 else cores.sink, _collect, peer, ports, wants, cells)
    try:
        while not cells[_READY]:
            if cells[_STOP]:
                sink.result()
            time.sleep(0.01)
        publisher = peer.publisher(ports[0])
        before, began = cells[_BYTES], time.perf_counter_ns()
        sent = 0
        for chunk in chunks:
            publisher.send(chunk)
            sent += chunk.events
            _until(cells, arrivals * sent // events - max(limits.IN_FLIGHT_ARRIVALS_SLOW_MAX, arrivals // 20))
        _until(cells, arrivals)
        came = Came(events, cells[_ARRIVED], useful, cells[_BYTES] - before, (cells[_LAST_NS] - began) / 1e9)
        publisher.finish()
        cells[_STOP] = 1
        sink.result()
    finally:
        cells[_STOP] = 1
        sink.end()
    return came


def _until(cells: Any, wanted: int) -> None:
    """So much has arrived. Raises MeasurementFailed when nothing does any more."""
    seen, since = -1, time.monotonic()
    while cells[_ARRIVED] < wanted:
        if cells[_ARRIVED] != seen:
            seen, since = cells[_ARRIVED], time.monotonic()
        elif cells[_STOP] or time.monotonic() - since > limits.SILENCE_SECONDS_MAX:
            told = f"{cells[_ARRIVED]:,} of {wanted:,} deliveries came, and {cells[_LOST]:,} were announced as lost"
            raise MeasurementFailed("sink", told)
        time.sleep(0.0005)


def _collect(peer: Peer, ports: Sequence[int], wants: Sequence[Sequence[Any]], cells: Any) -> None:
    """Subscribe over a connection each, spread over the ports, and count until told to stop."""
    try:
        subscribers = [peer.subscriber(ports[at % len(ports)], own) for at, own in enumerate(wants)]
        cells[_READY] = 1
        with _polled(subscribers) as poll:
            _count(poll, {one.connection.fileno(): one for one in subscribers}, cells)
        for one in subscribers:
            one.finish()
    finally:
        cells[_STOP] = 1


def _count(poll: Any, subscribers: dict[int, Subscriber], cells: Any) -> None:
    buffer = bytearray(limits.READ_LENGTH)
    view, arrived, size = memoryview(buffer), 0, 0
    while not cells[_STOP]:
        for descriptor, _ in poll.poll(0.05):
            one = subscribers[descriptor]
            length = one.connection.recv_into(buffer)
            if not length:
                raise MeasurementFailed("sink", "the server closed a subscriber's connection")
            size += length
            arrived += one.feed(view[:length])
        if arrived != cells[_ARRIVED]:
            cells[_LAST_NS] = time.perf_counter_ns()
            cells[_BYTES], cells[_LOST] = size, sum(one.lost for one in subscribers.values())
            cells[_ARRIVED] = arrived


@contextmanager
def _polled(subscribers: Sequence[Subscriber]) -> Any:
    poll = select.epoll()
    try:
        for one in subscribers:
            poll.register(one.connection.fileno(), select.EPOLLIN)
        yield poll
    finally:
        poll.close()


def _our_chunks(ticks: Ticks) -> list[Chunk]:
    """A frame for each batch, encoded before the clock starts."""
    chunks: list[Chunk] = []
    first = 0
    for part in _parts(len(ticks), _BATCH):
        rows = slice(first, first + part)
        columns: Any = {"symbol": ticks.symbols[rows], "price": ticks.prices[rows]}
        payload = encode(Publish(1 << 40, Mode.ACCEPTED, make_batch([_TOPIC], columns, [BODY] * part)))
        chunks.append(Chunk(bytearray(len(payload).to_bytes(4, "big") + payload), part, 0, 0))
        first += part
    return chunks


def _parts(count: int, most: int) -> list[int]:
    return [most] * (count // most) + ([count % most] if count % most else [])


def _symbol(number: int) -> str:
    return f"S{number:04d}"


def _ticks(series: Sequence[Sequence[float]], symbols: int, events: int) -> Ticks:
    """Each symbol its own piece of a series, one tick after the other of all symbols in turn."""
    each = -(-events // symbols)
    long = [one for one in series if len(one) > each]
    prices: list[float] = []
    for at in range(each):
        for number in range(symbols):
            own = long[number % len(long)]
            step = (len(own) - each) // (symbols // len(long) + 1)
            prices.append(own[number // len(long) * step + at])
    names = [_symbol(number) for number in range(symbols)] * each
    return Ticks(tuple(names[:events]), tuple(prices[:events]))


def useful_of(ticks: Ticks) -> int:
    """How many of these a subscriber wants: by the plain index, for each symbol by itself."""
    index = Triggers(["price"])
    index.add(1, [Delta("price", _BAND, False)])
    return sum(len(index.fire(symbol, [price], 0.0)) for symbol, price in zip(ticks.symbols, ticks.prices, strict=True))


def real_ticks() -> list[list[float]]:
    """Trades of a day, a list a stock."""
    folder = Path(os.environ.get("HEADGATE_DATA", SOURCES.parent / "shared" / "data")) / "stock"
    path = folder / "lean-equity-tick-20131007.tar.gz"
    found: list[list[float]] = []
    if not path.exists():
        return found
    with tarfile.open(path) as archive:
        for name in sorted(one for one in archive.getnames() if one.endswith("_trade.zip")):
            packed = archive.extractfile(name)
            assert packed is not None, "it is a file"
            with zipfile.ZipFile(io.BytesIO(packed.read())) as inner:
                lines = inner.read(inner.namelist()[0]).decode().splitlines()
            found.append([int(line.split(",")[1]) / 10_000 for line in lines if line])
    return found
