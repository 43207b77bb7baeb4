"""Chaos: a cluster of real processes whose brokers are killed and paused while clients publish and subscribe.

    make chaos ARGS="--seconds 180 --seed 1"        or python -m headgate.ops.bench.chaos.chaos

Five brokers, 200 subscriptions on all of them, steady publishing at all of them. Every ten seconds a broker is killed
with SIGKILL and started again; once, one of them is stopped for 20 seconds, while the killing goes on. Then the storm
ends, the cluster settles, and some more is published: of that nothing may be missing. Of what was published before,
nothing may come twice or to whoever did not ask, and whatever is missing must be accounted for (`chaos_ledger`).

Prints a table and one line of JSON; the exit code is 1 when a promise was broken. In this order: `chaos_content` (what
is published and asked for), `chaos_crowd` (the clients), `chaos_ledger` (the verdict); this file is the storm itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from rich.table import Table

from headgate.protocol.aio import Tasks, connect

from ..kit import Fleet, MeasurementFailed, Member, fleet
from ..limits import CHAOS_QUIET_SECONDS
from ..wire import console
from .audit import Ruling, disagreements, rule
from .content import schemas, wanted, wishes
from .crowd import Books, Publisher, Reader
from .ledger import Account, Death, Watch, judge

__all__ = ["Plan", "Report", "Spread", "add_arguments", "run", "storm"]

_TICK_SECONDS = 0.02
_HEARTBEATS_SECONDS = (1.0, 5.0, 15.0)
"""Heartbeats of clients, in turn: some leave a paused broker at once, some do not notice."""
_SUBSCRIPTIONS_PER_READER = 10
_CAUSES = ("kill", "stop", "nothing")


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a run."""

    seconds: float
    seed: int
    brokers: int = 5
    subscriptions: int = 200
    rate: int = 300
    kill_every_seconds: float = 10.0
    dead_seconds: float = 3.0
    stop_seconds: float = 20.0
    calm_seconds: float = 10.0
    audit: bool = False
    """Streams are stored and audited, and at the end Spark tells the story from the logs alone."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Durations of one kind of event."""

    count: int
    median_seconds: float
    worst_seconds: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Of these."""
        return cls(len(seconds), median(seconds), max(seconds)) if seconds else cls(0, 0.0, 0.0)

    def __str__(self) -> str:
        return f"{self.count:,}: median {self.median_seconds:.2f} s, worst {self.worst_seconds:.2f} s"


@dataclass(slots=True)
class Report:
    """The results of a run."""

    plan: Plan
    account: Account = field(default_factory=Account)
    fates: dict[str, int] = field(default_factory=dict)
    deaths: list[Death] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    settle_seconds: float = 0.0
    refused_subscriptions: int = 0
    gave_up: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    moves: dict[str, Spread] = field(default_factory=dict)
    """Cause -> how long subscriptions took to move; the cause is `nothing` when no fault hit their broker."""
    ruling: Ruling | None = None

    @property
    def kept(self) -> bool:
        """Whether everything that was promised was kept, and no broker had a fault of its own."""
        return self.account.kept and not self.gave_up and not self.faults and not self.disagreements

    @property
    def disagreements(self) -> list[str]:
        """Where the audit, if there was one, differs from the ledger."""
        return [] if self.ruling is None else disagreements(self.ruling, self.account)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON."""
        return {"bench": "chaos", "kept": self.kept, **asdict(self)}


class _Storm:
    """Runs chaos: the cluster, its clients, and the faults."""

    def __init__(self, plan: Plan, cluster: Fleet) -> None:
        self.plan = plan
        self.cluster = cluster
        self.books = Books(plan.seed)
        self.deaths: list[Death] = []
        self.stops: list[str] = []
        self._fates = Random(plan.seed)
        self._random = Random(plan.seed + 1)
        self._tasks = Tasks()
        self._publishing = True
        self.calm_at = 0.0
        names = [member.name for member in cluster.members]
        readers = max(1, plan.subscriptions // _SUBSCRIPTIONS_PER_READER)
        self.readers = [self._client(Reader, f"reader-{one}", names, one) for one in range(readers)]
        self.publishers = [self._client(Publisher, f"publisher-{one}", names, one) for one in range(plan.brokers)]
        all_wishes = wishes(plan.seed, readers * _SUBSCRIPTIONS_PER_READER)
        self.wishes = [wish for place in range(readers) for wish in all_wishes[place::readers]]
        for place, reader in enumerate(self.readers):
            reader.wants(all_wishes[place::readers])

    def _client(self, kind: Any, name: str, names: list[str], place: int) -> Any:
        heartbeat_seconds = _HEARTBEATS_SECONDS[place // len(names) % len(_HEARTBEATS_SECONDS)]
        home = names[place % len(names)]
        return kind(name, home, self.cluster.addresses_from(place), heartbeat_seconds, self.books)

    @property
    def watches(self) -> list[Watch]:
        """Every subscription, in the order of the wishes."""
        return [watch for reader in self.readers for watch in reader.watches]

    async def begin(self) -> None:
        """Connect all clients, and begin to publish."""
        async with await connect(self.cluster.addresses_from(0)) as client:
            for stream, schema in schemas(self.plan.audit).items():
                await client.ask("schema.put", stream=stream, schema=schema)
        await asyncio.gather(*(one.begin() for one in [*self.readers, *self.publishers]))
        self._tasks.start(self._publish(), "publishing")

    async def rage(self) -> None:
        """Kill and start again, and once stop; returns when all brokers run again."""
        plan, clock = self.plan, self.books.clock
        began, round_number = clock(), 0
        stop_at = began + max(plan.kill_every_seconds / 2, plan.seconds / 3)
        stopping = self._tasks.start(self._stop_once(stop_at), "stopping")
        while (round_number + 1) * plan.kill_every_seconds <= plan.seconds:
            round_number += 1
            await asyncio.sleep(max(0.0, began + round_number * plan.kill_every_seconds - clock()))
            victim = self._fates.choice([one for one in self.cluster.members if one.alive and not one.stopped])
            self._say(f"killing {victim.name}")
            self.books.fault(victim.name, "kill")
            victim.kill()
            self.deaths.append(Death(victim.name, clock()))
            await asyncio.sleep(plan.dead_seconds)
            victim.start()
            await victim.listening()
            self._tasks.start(self._bring_home(victim), f"homecoming to {victim.name}")
        await stopping
        await asyncio.sleep(plan.dead_seconds)

    async def calm_down(self) -> tuple[int, float]:
        """Settle, publish some more, and wait until nothing comes any more: (first event of the calm, settle time)."""
        self._say("the storm is over")
        settle_seconds = await self.cluster.settled()
        began = self.books.clock()
        while not all(reader.in_force for reader in self.readers):
            if self.books.clock() > began + 60 or self.books.gave_up:
                break
            await asyncio.sleep(_TICK_SECONDS)
        settle_seconds += self.books.clock() - began
        calm_from, self.calm_at = len(self.books.events), time.time()
        self._say(f"calm: settled within {settle_seconds:.1f} s")
        await asyncio.sleep(self.plan.calm_seconds)
        self._publishing = False
        for publisher in self.publishers:
            await publisher.end()
        await self._quiet()
        for reader in self.readers:
            await reader.end()
        await self._tasks.stop()
        return calm_from, settle_seconds

    async def end(self) -> None:
        """Stop publishing and all tasks, whatever happened."""
        self._publishing = False
        await self._tasks.stop()

    async def _publish(self) -> None:
        began, published = self.books.clock(), 0
        while self._publishing:
            due = int((self.books.clock() - began) * self.plan.rate)
            for number in range(published, due):
                self.publishers[number % len(self.publishers)].publish()
            published = due
            await asyncio.sleep(_TICK_SECONDS)

    async def _stop_once(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - self.books.clock()))
        while not all(one.alive for one in self.cluster.members):
            await asyncio.sleep(_TICK_SECONDS)
        victim = self._fates.choice(self.cluster.members)
        self._say(f"stopping {victim.name}")
        self.books.fault(victim.name, "stop")
        self.stops.append(victim.name)
        victim.stop()
        await asyncio.sleep(self.plan.stop_seconds)
        self._say(f"waking {victim.name}")
        victim.wake()
        self._tasks.start(self._bring_home(victim), f"homecoming to {victim.name}")

    async def _bring_home(self, member: Member) -> None:
        """Bring half of the clients that lost this broker back to it, one by one."""
        for client in [*self.readers, *self.publishers]:
            if client.home == member.name and client.away and self._random.random() < 0.5:
                await client.come_home()

    async def _quiet(self) -> None:
        before, since = -1, self.books.clock()
        while self.books.clock() < since + CHAOS_QUIET_SECONDS:
            arrived = sum(watch.seen.total() for watch in self.watches)
            if arrived != before:
                before, since = arrived, self.books.clock()
            await asyncio.sleep(0.1)

    def _say(self, text: str) -> None:
        print(f"{self.books.clock():10.2f} s {len(self.books.events):>8,} events  {text}", file=sys.stderr, flush=True)


async def storm(plan: Plan, folder: Path | None = None) -> Report:
    """The whole run. Raises MeasurementFailed when the cluster does not come about, or does not settle."""
    async with fleet(plan.brokers, folder) as cluster:
        run = _Storm(plan, cluster)
        try:
            await run.begin()
            await run.rage()
            calm_from, settle_seconds = await run.calm_down()
            ruling = await rule(cluster.addresses_from(0), run.calm_at) if plan.audit else None
        finally:
            await run.end()
        faults = [line for member in cluster.members for line in member.faults()]
    books = run.books
    numbers = wanted(plan.seed, len(books.events), run.wishes)
    return Report(
        plan,
        judge(run.watches, numbers, books.events, run.deaths, calm_from),
        dict(Counter(event.fate.value for event in books.events)),
        run.deaths,
        run.stops,
        settle_seconds,
        books.refused_subscriptions,
        books.gave_up,
        faults,
        {
            kind: Spread.of([took for cause, took in books.moves if cause == kind])
            for kind in ("kill", "stop", "nothing")
        },
        ruling,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of chaos."""
    parser.add_argument("--seconds", type=float, default=180.0, help="how long the storm lasts (default 180)")
    parser.add_argument("--seed", type=int, default=1, help="of victims, events and conditions (default 1)")
    parser.add_argument("--brokers", type=int, default=5, help="brokers of the cluster (default 5)")
    parser.add_argument("--subscriptions", type=int, default=200, help="subscriptions, ten a client (default 200)")
    parser.add_argument("--rate", type=int, default=300, help="events a second (default 300)")
    parser.add_argument("--audit", action="store_true", help="store and audit the streams; Spark must agree at the end")
    parser.add_argument("--folder", type=Path, help="keep data and logs of the brokers there")


def run(arguments: argparse.Namespace) -> int:
    """Run, and print the report; 0 when every promise was kept."""
    if arguments.brokers < 3:
        print("--brokers is 3 or more: with fewer, nobody has a copy of what a killed broker held", file=sys.stderr)
        return 2
    plan = Plan(arguments.seconds, arguments.seed, arguments.brokers, arguments.subscriptions, arguments.rate)
    plan = replace(plan, audit=arguments.audit)
    if arguments.folder is not None:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    try:
        report = asyncio.run(storm(plan, arguments.folder))
    except MeasurementFailed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    _print(report)
    print(json.dumps(report.as_json()))
    return 0 if report.kept else 1


def _print(report: Report) -> None:
    plan, account = report.plan, report.account
    title = f"chaos: {plan.brokers} brokers, {plan.seconds:g} s, {len(report.deaths)} kills, {len(report.stops)} stops"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("", justify="right")
    rows = {f"events {fate}": count for fate, count in sorted(report.fates.items())}
    rows |= {
        "deliveries wanted": account.wanted,
        "delivered": account.delivered,
        "missing while a subscriber moved, or of unknown outcome": account.not_owed,
        "missing, and counted by a GAP": account.told,
        "missing, and told by a GAP of unknown size": account.told_unknown,
        "accepted and lost with its broker": account.doomed,
        "missing in silence (allowed: 0)": account.silent,
        "twice (allowed: 0)": account.repeated,
        "to whoever did not ask (allowed: 0)": account.unwanted,
        "wanted after the cluster settled": account.calm_wanted,
        "of these missing (allowed: 0)": account.calm_missing,
        "subscriptions refused for a moment, and asked again": report.refused_subscriptions,
        "clients that gave up (allowed: 0)": len(report.gave_up),
        "faults logged by brokers (allowed: 0)": len(report.faults),
    }
    if report.ruling is not None:
        rows |= {
            "the audit: expected": report.ruling.expected,
            "the audit: lost, and announced": report.ruling.announced,
            "the audit: lost in silence (allowed: 0)": report.ruling.lost - report.ruling.announced,
            "the audit: near a change or a death": report.ruling.boundary,
            "disagreements of audit and ledger (allowed: 0)": len(report.disagreements),
        }
    for text, count in rows.items():
        table.add_row(text, f"{count:,}")
    for kind, spread in report.moves.items():
        table.add_row(f"moves of subscriptions after {kind if kind == 'nothing' else 'a ' + kind}", str(spread))
    table.add_row("settled after the storm, seconds", f"{report.settle_seconds:.1f}")
    console().print(table)
    for kind, examples in account.examples.items():
        for example in examples:
            print(f"{kind}: {example}")
    for line in [*report.disagreements, *report.gave_up[:5], *report.faults[:5]]:
        print(line[:2000])
    print("every promise was kept" if report.kept else "a promise was BROKEN")


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
