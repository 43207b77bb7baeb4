"""`headgate bench durable`: what durable subscriptions cost, beside plain ones of the same stored stream.

    deliveries    a publisher stores batches as fast as one client takes them: through a plain subscription, and
                  through durable ones that are acknowledged one by one, in batches, and cumulatively. A delivery
                  counts when it is acknowledged and that was confirmed (`CASES`). The processor time of the broker a
                  delivery is beside it: it says what a durable subscription costs on a machine where client and broker
                  share a core. The same of a durable pull consumer of NATS JetStream (file storage, explicit
                  acknowledgements), if it is installed
    catching up   a client attaches with many events waiting: as many times the live rate
    waiting       the time that the question `durable` takes with as many events waiting
    idle          many durable subscriptions that nothing comes for: how fast they are made, the broker's memory for
                  each, and the time from the restart of the broker until it coordinates all of them again

One broker, the shipped asyncio client, bodies of 128 bytes; no process is bound to a core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import mmap
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.table import Table

from headgate.protocol.aio import Client, Event, Subscription, Tasks, connect
from headgate.protocol.errors import HeadgateError

from ..kit import Child, Fleet, MeasurementFailed, Member, cpu_seconds, fleet, resident_bytes, running
from ..limits import (
    CHUNK_EVENTS,
    DURABLE_AHEAD_EVENTS,
    DURABLE_BATCHES_UNDER_WAY,
    DURABLE_MAKERS,
    DURABLE_QUESTIONS,
    DURABLE_TAKEN_SECONDS_MAX,
)
from ..peers import BODY
from ..wire import console, short
from .jetstream import JetStream, consume, publish

__all__ = ["CASES", "Idle", "Rate", "add_arguments", "catching_up", "idle", "live", "run", "waiting_seconds"]

CASES = ("plain", "each", "awaited", "batch", "cumulative")
"""How events are acknowledged; those of a plain subscription are not.

    each          one by one, each in a turn of the loop of its own: `await event.ack()`; that it was confirmed is
                  heard of behind it, with `await subscription.acked()`
    awaited       the same by tasks that wait for the confirmation of their event: `await event.ack(wait=True)`
    batch         all of a batch in one turn, and the confirmation is waited for
    cumulative    the last one of a batch, and all before it: `ack_all`
"""

JETSTREAM_CASES = ("each", "batch", "cumulative")
"""Those of a client over bare sockets, which says the same in the same turns of the loop, and counts confirmations."""

_POLL_SECONDS = 0.05
_UNDER_WAY = 256


@dataclass(frozen=True, slots=True)
class Rate:
    """Deliveries of one case."""

    title: str
    events: int
    per_second: float
    broker_seconds: float
    """Of the processor, for all of them."""


@dataclass(frozen=True, slots=True)
class Idle:
    """What many idle durable subscriptions cost."""

    count: int
    made_per_second: float
    bytes_each: float
    restart_seconds: float


class _Taken:
    """How many events were taken by the client, for the publisher in another process."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8)

    @property
    def count(self) -> int:
        number: int = struct.unpack("<q", self._memory[:8])[0]
        return number

    @count.setter
    def count(self, count: int) -> None:
        self._memory[:8] = struct.pack("<q", count)


async def _publish(address: str, stream: str, events: int, taken: _Taken | None = None) -> None:
    """Store so many events; not too far ahead of the client if there is one."""
    tasks, left = Tasks(), events
    async with await connect(address, batch_events=CHUNK_EVENTS, linger_seconds=0.0) as client:

        async def work() -> None:
            nonlocal left
            while left > 0:
                if taken is not None and events - left > taken.count + DURABLE_AHEAD_EVENTS:
                    await asyncio.sleep(0.001)
                    continue
                count = min(left, CHUNK_EVENTS)
                left -= count
                columns = {"number": list(range(count))}
                await client.publish_batch(stream, columns, [BODY] * count, mode="stored")

        await asyncio.gather(*(tasks.start(work(), f"publishing {one}") for one in range(DURABLE_BATCHES_UNDER_WAY)))


async def _subscribe(client: Client, stream: str, case: str) -> Subscription:
    if case == "plain":
        return await client.subscribe(stream)
    return await client.subscribe(stream, durable=stream, max_unacked=65_536, window=65_536)


async def _take(client: Client, subscription: Subscription, case: str, events: int, taken: _Taken) -> None:
    """Take so many, and have the acknowledgement of each confirmed."""
    room, tasks, done, said_some = asyncio.Semaphore(_UNDER_WAY), Tasks(), asyncio.Event(), asyncio.Event()
    confirmed = said = 0

    def count(more: int) -> None:
        nonlocal confirmed
        confirmed += more
        taken.count = confirmed
        if confirmed >= events:
            done.set()

    async def settled(event: Event) -> None:
        counts = await event.ack(wait=True)
        room.release()
        count(int(counts))

    async def confirmations() -> None:
        while True:
            await said_some.wait()
            said_some.clear()
            before = said
            if not await subscription.acked():
                raise MeasurementFailed(case, "an acknowledgement did not count")
            count(before - confirmed)

    async def all_settled(batch: Sequence[Event]) -> None:
        for event in batch:
            await event.ack()
        if await batch[-1].ack(wait=True):
            count(len(batch))

    async def upto(batch: Sequence[Event]) -> None:
        if await subscription.ack_all(batch[-1], wait=True):
            count(len(batch))

    async def loop() -> None:
        nonlocal said
        async for batch in subscription.batches():
            if case == "plain":
                count(len(batch))
            elif case == "each":
                for event in batch:
                    await event.ack()
                    said += 1
                    said_some.set()
                    await asyncio.sleep(0)
            elif case == "awaited":
                for event in batch:
                    await room.acquire()
                    tasks.start(settled(event), "acknowledging")
                    await asyncio.sleep(0)
            else:
                tasks.start(all_settled(batch) if case == "batch" else upto(batch), "acknowledging")

    tasks.start(loop(), "taking")
    tasks.start(confirmations(), "hearing of confirmations")
    try:
        async with asyncio.timeout(DURABLE_TAKEN_SECONDS_MAX):
            await done.wait()
    except TimeoutError:
        raise MeasurementFailed(
            case, f"{confirmed} of {events} were taken in {DURABLE_TAKEN_SECONDS_MAX:g} s"
        ) from None
    finally:
        await tasks.stop()


def _publishing(address: str, stream: str, events: int, taken: _Taken | None) -> None:
    asyncio.run(_publish(address, stream, events, taken))


async def _stored(client: Client, stream: str) -> None:
    await client.ask("schema.put", stream=stream, schema={"durability": "stored"})


async def live(cluster: Fleet, case: str, events: int) -> Rate:
    """Publish and take at the same time. Raises MeasurementFailed."""
    (member,) = cluster.members
    stream, taken = f"live-{case}", _Taken()
    async with await connect(member.address) as client:
        await _stored(client, stream)
        subscription = await _subscribe(client, stream, case)
        used, began = cpu_seconds(member.pid), time.perf_counter()
        child = Child(f"publisher of {stream}", None, _publishing, member.address, stream, events, taken)
        try:
            await _take(client, subscription, case, events, taken)
            seconds = time.perf_counter() - began
            child.result()
        finally:
            child.end()
        return Rate(case, events, events / seconds, cpu_seconds(member.pid) - used)


async def _backlog(member: Member, stream: str, events: int) -> None:
    """A durable subscription that so many events wait for."""
    async with await connect(member.address) as client:
        await _stored(client, stream)
        subscription = await _subscribe(client, stream, "batch")
        await subscription.close()
        await _publish(member.address, stream, events)
        while (await client.ask("durable", name=stream))["waiting"] < events:
            await asyncio.sleep(_POLL_SECONDS)


async def waiting_seconds(cluster: Fleet, stream: str, events: int) -> list[float]:
    """The times of questions about a subscription that so many events wait for, which is made first."""
    (member,) = cluster.members
    await _backlog(member, stream, events)
    async with await connect(member.address) as client:
        times = []
        for _ in range(DURABLE_QUESTIONS):
            began = time.perf_counter()
            row = await client.ask("durable", name=stream)
            times.append(time.perf_counter() - began)
            if row["waiting"] != events:
                raise MeasurementFailed("the broker", f"says that {row['waiting']} events wait, not {events}")
        return times


async def catching_up(cluster: Fleet, stream: str, case: str, events: int) -> Rate:
    """A client attaches to it and takes all. Raises MeasurementFailed."""
    (member,) = cluster.members
    async with await connect(member.address) as client:
        used, began = cpu_seconds(member.pid), time.perf_counter()
        subscription = await client.subscribe("", durable=stream, window=65_536)
        await _take(client, subscription, case, events, _Taken())
        seconds = time.perf_counter() - began
        return Rate(f"catching up, {case}", events, events / seconds, cpu_seconds(member.pid) - used)


async def idle(cluster: Fleet, count: int) -> Idle:
    """Make many, look at the memory, and restart the broker. Raises MeasurementFailed."""
    (member,) = cluster.members
    before = resident_bytes(member.pid)
    left = iter(range(count))
    began = time.perf_counter()
    async with await connect(member.address) as client:
        await _stored(client, "idle")

        async def make() -> None:
            for number in left:
                name = f"idle-{number}"
                one = await client.subscribe(f"idle/{number % 1000}", f"number = {number}", durable=name)
                await one.close()

        await asyncio.gather(*(make() for _ in range(DURABLE_MAKERS)))
        made = time.perf_counter() - began
        bytes_each = (resident_bytes(member.pid) - before) / count
    member.kill()
    began = time.perf_counter()
    member.start()
    await member.listening()
    async with await connect(member.address) as client:
        while time.perf_counter() < began + DURABLE_TAKEN_SECONDS_MAX:
            try:
                status = await client.ask("status")
            except HeadgateError:
                continue
            if status["durable_takeovers"] >= count:
                return Idle(count, count / made, bytes_each, time.perf_counter() - began)
            await asyncio.sleep(_POLL_SECONDS)
    raise MeasurementFailed("the broker", f"does not coordinate its {count} subscriptions after a restart")


def _publishing_jetstream(port: int, events: int, taken: _Taken) -> None:
    asyncio.run(publish(port, events, lambda: taken.count))


def live_jetstream(peer: JetStream, case: str, events: int) -> Rate:
    """The same with NATS JetStream, in a server of its own. Raises MeasurementFailed."""
    taken = _Taken()
    began = 0.0
    children: list[Child[None]] = []

    with running(peer.name, peer.command, None) as server:

        def ready() -> None:
            nonlocal began
            began = time.perf_counter()
            children.append(Child("publisher", None, _publishing_jetstream, server.port, events, taken))

        def count(confirmed: int) -> None:
            taken.count = confirmed

        used = cpu_seconds(server.pid)
        try:
            asyncio.run(consume(server.port, case, events, ready, count))
            seconds = time.perf_counter() - began
            for child in children:
                child.result()
        finally:
            for child in children:
                child.end()
        return Rate(f"{peer.name}, {case}", events, events / seconds, cpu_seconds(server.pid) - used)


async def _measure(arguments: argparse.Namespace, folder: Path) -> tuple[list[Rate], list[float], Idle | None]:
    async with fleet(1, folder / "live") as cluster:
        rates = [await live(cluster, case, arguments.events) for case in CASES]
        times = await waiting_seconds(cluster, "backlog", arguments.backlog)
        rates.append(await catching_up(cluster, "backlog", "batch", arguments.backlog))
    found = None
    if arguments.idle:
        async with fleet(1, folder / "idle") as cluster:
            found = await idle(cluster, arguments.idle)
    return rates, times, found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench durable`."""
    parser.add_argument("--events", type=int, default=200_000, help="of each way to acknowledge (default 200,000)")
    parser.add_argument("--backlog", type=int, default=1_000_000, help="events that wait (default 1,000,000)")
    parser.add_argument("--idle", type=int, default=100_000, help="idle subscriptions (default 100,000; 0: none)")
    parser.add_argument("--directory", type=Path, default=Path(), help="on the disk to measure (default: here)")
    parser.add_argument("--json", metavar="FILE", help="write every number to this file")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    out = console()
    try:
        with TemporaryDirectory(prefix="headgate-durable-", dir=arguments.directory.resolve()) as folder:
            for room in ("live", "idle"):
                (Path(folder) / room).mkdir()
            rates, times, found = asyncio.run(_measure(arguments, Path(folder)))
        version = JetStream().version()
        if version is not None:
            rates[len(CASES) : len(CASES)] = _rates_of_jetstream(arguments.events)
    except (MeasurementFailed, HeadgateError) as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    _print(rates)
    out.print(_about_jetstream(version))
    asked = 1000 * median(times)
    out.print(f"`durable` with {arguments.backlog:,} events waiting: {asked:.2f} ms (median of {len(times)})")
    if found is not None:
        text = f"{found.count:,} idle: {found.made_per_second:,.0f} made a second, {found.bytes_each:,.0f} bytes each, "
        out.print(f"{text}all coordinated {found.restart_seconds:.1f} s after the broker was started again")
    if arguments.json:
        told = {
            "rates": [asdict(rate) for rate in rates],
            "question_seconds": times,
            "idle": None if found is None else asdict(found),
            "nats": version,
        }
        Path(arguments.json).write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    return 0


def _rates_of_jetstream(events: int) -> list[Rate]:
    peers = [JetStream(), JetStream(synchronised=True)] if JetStream().can_synchronise else [JetStream()]
    return [live_jetstream(peer, case, events) for peer in peers for case in JETSTREAM_CASES]


def _about_jetstream(version: str | None) -> str:
    if version is None:
        return "nats-server is not installed: nothing is compared with NATS JetStream"
    text = f"nats-server {version}, file storage, explicit acknowledgements: it brings its files to the disk every two "
    text += "minutes, a Headgate broker before it confirms"
    return text if JetStream().can_synchronise else f"{text}; this version can not (sync_interval came with 2.10)"


def _print(rates: Sequence[Rate]) -> None:
    table = Table(title=f"deliveries of events of {len(BODY)} bytes, each confirmed", title_justify="left")
    table.add_column("subscription")
    for heading in ("events", "a second", "x plain", "broker us each", "x plain"):
        table.add_column(heading, justify="right")
    plain = rates[0]
    for rate in rates:
        table.add_row(
            rate.title,
            f"{rate.events:,}",
            short(rate.per_second),
            f"{rate.per_second / plain.per_second:.2f}",
            f"{1e6 * rate.broker_seconds / rate.events:.1f}",
            f"{rate.broker_seconds / rate.events / (plain.broker_seconds / plain.events):.2f}",
        )
    console().print(table)


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench durable", description=(__doc__ or "").splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
