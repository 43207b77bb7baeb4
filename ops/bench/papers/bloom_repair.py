"""A broker is killed while documents are published, and live subscribers count what reaches them (BLOOM 5).

The paper keeps a vertex at r brokers, so that the trees that lead over it go on when its broker fails. Here it is shown
on five real brokers. The one at which most of the subscriptions rest is killed (SIGKILL), with one copy of each vertex
beside its owner's and with two (`HEADGATE_REPLICAS`), while documents are published through the four others and
subscribers with XPATH live there. The repair is over when the four know it no more, and each answers for
all keys that are its own or its neighbours' then.

    library   a stream in memory: what was on its way over the killed broker may be lost, and is counted
    archive   a stored stream, by subscriptions that read what they missed from the logs: nothing may be lost

What is due are the verdicts of lxml on the documents that were acknowledged: before the kill, between it and the end of
the repair, and after that.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rich.table import Table

from headgate.protocol.aio import Client, Subscription, connect
from headgate.protocol.errors import HeadgateError

from ..kit import Fleet, MeasurementFailed, fleet, ring_of
from ..limits import SETTLE_SECONDS_MAX
from ..wire import console
from .bloom_brokers import condition_of, drawn_twigs, verdicts
from .bloom_sample import documents_of, dtds

__all__ = ["PHASES", "Repaired", "add_arguments", "repair", "run"]

PHASES = ("before the kill", "until the repair was over", "after the repair")
_BROKERS = 5
_STREAMS = {"library": "accepted", "archive": "stored"}
_PAUSE_SECONDS = 0.02
_AT_A_TIME, _BETWEEN_SECONDS = 3, 0.24
"""Documents that a client publishes at a time to a stream, and how long it waits after each of these."""

_WAIT_SECONDS = 20.0
_QUIET_SECONDS = 0.5
_ROUNDED = 1e-6
_FIRST = -1
"""The place of a document that is published so that INTEREST comes."""


@dataclass(slots=True)
class _Ear:
    """A subscription of a live client, and what came for it."""

    stream: str
    twig: str
    subscription: Subscription
    heard: Counter[int] = field(default_factory=Counter)

    async def listen(self) -> None:
        """Note the places of documents, until the subscription ends."""
        async for event in self.subscription:
            place = event.attributes["place"]
            if isinstance(place, int) and place != _FIRST:
                self.heard[place] += 1


@dataclass(slots=True)
class Repaired:
    """What was found of both streams; by stream and phase."""

    killed: str = ""
    resting: int = 0
    """Twigs of which subscriptions rest at the killed broker."""
    seconds: float = 0.0
    """From the kill until the repair was over."""
    acknowledged: Counter[tuple[str, str]] = field(default_factory=Counter)
    due: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    """By stream, how many subscribers were told of a gap."""
    refused: int = 0
    surplus: int = 0
    """Deliveries that lxml says are not due."""

    @property
    def good(self) -> bool:
        """Whether all that is due after the repair came, and of the stored stream all that ever was."""
        is_shown = self.resting and all(self.due[stream, PHASES[2]] for stream in _STREAMS)
        lost = [count for (stream, phase), count in self.missed.items() if stream == "archive" or phase == PHASES[2]]
        return bool(is_shown) and not any(lost) and not self.surplus


class _Run:
    """One run: who publishes, what was acknowledged when, and who listens."""

    def __init__(self, documents: Sequence[bytes], cluster: Fleet, found: Repaired) -> None:
        self._documents = documents
        self._cluster = cluster
        self._found = found
        self._sent: dict[str, int] = dict.fromkeys(_STREAMS, 0)
        self.acknowledged: dict[str, dict[int, float]] = {stream: {} for stream in _STREAMS}
        """Stream -> the place of a document, and when it was acknowledged."""
        self.is_over = False

    async def publish(self, clients: Sequence[Client]) -> None:
        """Publish documents to both streams, through one broker after the other, until it is over."""
        pairs = [(client, stream) for stream in _STREAMS for client in clients]
        await asyncio.gather(*(self._one_by_one(*pair) for pair in pairs for _ in range(_AT_A_TIME)))

    async def _one_by_one(self, client: Client, stream: str) -> None:
        while not self.is_over:
            place = self._sent[stream]
            self._sent[stream] += 1
            document = self._documents[place % len(self._documents)]
            try:
                await client.publish(stream, {"place": place}, document=document, mode=_STREAMS[stream])
            except HeadgateError:
                self._found.refused += 1
            else:
                self.acknowledged[stream][place] = time.monotonic()
            await asyncio.sleep(_BETWEEN_SECONDS)

    async def kill(self, seconds: float) -> tuple[float, float]:
        """After so many seconds kill the broker, and go on as long when all is repaired; the moments of both."""
        await asyncio.sleep(seconds)
        self._cluster.named(self._found.killed).kill()
        killed = time.monotonic()
        while not await self._is_repaired():
            if time.monotonic() > killed + SETTLE_SECONDS_MAX:
                raise MeasurementFailed(
                    "the cluster", f"was not whole {SETTLE_SECONDS_MAX:g} s after {self._found.killed}"
                )
            await asyncio.sleep(_PAUSE_SECONDS)
        repaired = time.monotonic()
        self._found.seconds = repaired - killed
        await asyncio.sleep(seconds)
        self.is_over = True
        return killed, repaired

    async def _is_repaired(self) -> bool:
        rings = await asyncio.gather(*(ring_of(one.address) for one in self._cluster.members if one.alive))
        return all(ring is not None and _is_whole(ring, self._found.killed) for ring in rings)

    def judge(self, ears: Sequence[_Ear], wanted: dict[str, list[int]], moments: tuple[float, float]) -> None:
        """Compare what came with what is due."""
        found = self._found
        rights = {twig: frozenset(places) for twig, places in wanted.items()}
        for stream, places in self.acknowledged.items():
            for at in places.values():
                found.acknowledged[stream, PHASES[bisect_right(moments, at)]] += 1
        for ear in ears:
            right = rights[ear.twig]
            for place, at in self.acknowledged[ear.stream].items():
                if place % len(self._documents) in right:
                    phase = PHASES[bisect_right(moments, at)]
                    found.due[ear.stream, phase] += 1
                    found.missed[ear.stream, phase] += not ear.heard[place]
            found.surplus += sum(place % len(self._documents) not in right for place in ear.heard)
            found.told[ear.stream] += bool(ear.subscription.gaps)

    def has_all(self, ears: Sequence[_Ear], wanted: dict[str, list[int]]) -> bool:
        """Whether all that is due of the stored stream came."""
        return all(
            ear.heard[place]
            for ear in ears
            if ear.stream == "archive"
            for place in self.acknowledged[ear.stream]
            if place % len(self._documents) in wanted[ear.twig]
        )


def _is_whole(ring: dict[str, Any], killed: str) -> bool:
    """Whether a broker knows that another is gone, and answers for all keys that it owns or has copies of."""
    own = [row["share"] for row in ring["brokers"] if ring["broker"] in (row["name"], *row["replicas"])]
    return all(row["name"] != killed for row in ring["brokers"]) and ring["scope"] > min(1.0, sum(own)) - _ROUNDED


async def repair(replicas: int, twigs: int, seconds: float, seed: int) -> Repaired:
    """Kill the broker at which most of so many twigs rest, and publish so long before and after."""
    random = Random(f"{seed} repair")
    sets = {f"kind {at}": list(documents_of(tree, 5, random)) for at, tree in enumerate(dtds(seed))}
    asked = drawn_twigs(sets, twigs, random)
    documents = [text for texts in sets.values() for text in texts]
    wanted = verdicts(asked, documents)
    found = Repaired()
    async with fleet(_BROKERS, options=("--replicas", str(replicas))) as cluster:
        async with await connect(cluster.addresses[0]) as client:
            await client.ask("schema.put", stream="archive", schema={"durability": "stored"})
            explained = [await client.ask("explain", pattern="library", condition=condition_of(twig)) for twig in asked]
        resting = Counter(name for one in explained for name in one["lives_on"])
        found.killed, found.resting = resting.most_common(1)[0]
        clients = [await connect(member.address) for member in cluster.members if member.name != found.killed]
        ears = [
            _Ear(
                stream,
                twig,
                await clients[place % len(clients)].subscribe(
                    stream, where=condition_of(twig), start="now" if stream == "archive" else None
                ),
            )
            for place, twig in enumerate(asked)
            for stream in _STREAMS
        ]
        for client in clients:  # the answer says what filters are asked for: what goes before it has none
            for stream, mode in _STREAMS.items():
                await client.publish(stream, {"place": _FIRST}, document="<first/>", mode=mode)
        one = _Run(documents, cluster, found)
        whole = _whole_run(one, clients, ears, wanted, seconds)
        await asyncio.gather(whole, *(ear.listen() for ear in ears))
    return found


async def _whole_run(
    one: _Run, clients: Sequence[Client], ears: Sequence[_Ear], wanted: dict[str, list[int]], seconds: float
) -> None:
    """Publish, kill, wait for what is due, and judge; then all subscriptions end."""
    moments, _ = await asyncio.gather(one.kill(seconds), one.publish(clients))
    until = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < until and not one.has_all(ears, wanted):
        await asyncio.sleep(_QUIET_SECONDS / 10)
    await asyncio.sleep(_QUIET_SECONDS)
    one.judge(ears, wanted, moments)
    for client in clients:
        await client.close()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How long, beside the seed, which is that of `routing`."""
    parser.add_argument("--repair-seconds", type=float, default=4.0, help="how long is published before and after")
    parser.set_defaults(repair_twigs=30)


def run(arguments: argparse.Namespace) -> int:
    """Print the table; 1 when something is not as it should be."""
    table = Table(title="BLOOM 5: a broker of five is killed while documents are published", title_justify="left")
    for heading in (
        "copies beside",
        "stream",
        "documents",
        "acknowledged",
        "due, as lxml says",
        "missed",
        "told of gaps",
    ):
        table.add_column(heading, justify="left" if heading in ("stream", "documents") else "right")
    good = True
    for replicas in (1, 2):
        found = asyncio.run(repair(replicas, arguments.repair_twigs, arguments.repair_seconds, arguments.seed))
        good = good and found.good
        for stream in _STREAMS:
            for phase in PHASES:
                key = stream, phase
                told = f"{found.told[stream]} of {arguments.repair_twigs}" if phase == PHASES[1] else ""
                counts = found.acknowledged[key], found.due[key], found.missed[key]
                table.add_row(str(replicas), stream, phase, *map(str, counts), told)
        console().print(
            f"{replicas} beside: {found.killed} was killed, where {found.resting} of {arguments.repair_twigs} twigs "
            f"rest; repaired after {found.seconds:.1f} s, {found.refused} refused, {found.surplus} not due"
        )
        table.add_section()
    console().print(table)
    return 0 if good else 1
