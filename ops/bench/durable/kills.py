"""SIGKILL of brokers and clients while durable subscriptions are used: each event is acknowledged, and none is missed.

    make durable-kills        or python -m headgate.ops.bench.durable.kills --events 200000 --kills 20 --seed 1

A publisher stores numbered events in a cluster. Durable subscriptions of all four sharings want a part of them each;
their clients live in processes of their own, acknowledge one by one, in batches or cumulatively, and refuse some. One
after another brokers and processes of clients are killed and started again, once all brokers at the same moment, and
two subscriptions are given another condition meanwhile.

At the end nothing waits any more, the logs are read, and `ledger.py` compares: each event of the logs that a
subscription wants was handed out and acknowledged; what came again is flagged, and its acknowledgement had not been
confirmed; first deliveries are in order. Where Spark is installed, `headgate audit` computes the same from the brokers'
logs alone, and has to come to the same verdict. Prints one line, and the exit code is 1 when something is not so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from headgate.protocol.aio import Client, Tasks, connect
from headgate.protocol.data import decode_record, row_batch
from headgate.protocol.errors import HeadgateError

from ...jobs import missing_parts
from ..kit import Fleet, MeasurementFailed, NumberedPublisher, fleet, number_of, say_refused
from ..limits import (
    KILLS_AUDIT_SECONDS_MAX,
    KILLS_BATCH_EVENTS_MAX,
    KILLS_BETWEEN_SECONDS_MAX,
    KILLS_DRAIN_SECONDS_MAX,
    KILLS_RETRY_SECONDS,
    KILLS_SILENCE_SECONDS_MAX,
)
from .crowd import Crowd
from .ledger import AUDITED, BUCKETS, Amendment, Entry, Report, Wish, bucket_of, entries_of, judge, key_of, where

__all__ = ["Plan", "add_arguments", "campaign", "main", "run", "wishes_of"]

STREAM = "orders"
_POLL_SECONDS = 0.5
_CROWDS = 4
_CLIENTS_SHARE = 0.35
_SHARINGS = ("exclusive", "failover", "shared", "key:key")
_FAULTS_MAX = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a run."""

    events: int
    kills: int
    seed: int
    brokers: int = 5
    subscriptions: int = 50
    audited: bool = True
    """Whether `headgate audit` gives a verdict of its own at the end."""


def wishes_of(plan: Plan) -> list[Wish]:
    """What each subscription wants, and how."""
    random = Random(plan.seed)
    wishes = []
    for number in range(plan.subscriptions):
        sharing = _SHARINGS[number % len(_SHARINGS)]
        alone = sharing in ("exclusive", "failover")
        how = ("each", "batch", "cumulative" if alone else "each")[number // len(_SHARINGS) % 3]
        buckets = tuple(sorted(random.sample(range(BUCKETS), 1 if number % 3 else 2)))
        clients = 1 if sharing == "exclusive" else random.randint(2, _CROWDS)
        # A cumulative acknowledgement does not say which of its events had been handed out again meanwhile.
        ack_wait = 120.0 if how == "cumulative" else 8.0
        wishes.append(Wish(number, sharing, buckets, clients, how, ack_wait))
    return wishes


def _columns(numbers: range) -> dict[str, list[int]]:
    return {"bucket": [bucket_of(one) for one in numbers], "key": [key_of(one) for one in numbers]}


class _Run:
    """Kills brokers and clients while events are published, and changes two subscriptions."""

    def __init__(self, plan: Plan, cluster: Fleet, crowds: Sequence[Crowd], publisher: NumberedPublisher) -> None:
        self.report = Report(plan.brokers, plan.seed, plan.subscriptions)
        self.amendments: dict[int, Amendment] = {}
        self._plan = plan
        self._cluster = cluster
        self._crowds = crowds
        self._publisher = publisher
        self._random = Random(plan.seed)
        self._tasks = Tasks()

    async def rage(self, wishes: Sequence[Wish]) -> None:
        """All kills, and the two changes. Raises MeasurementFailed when something does not come back."""
        plan, random, step = self._plan, self._random, self._plan.events // (self._plan.kills + 3)
        changes = {plan.kills // 3: (wishes[0], "now"), 2 * plan.kills // 3: (wishes[2], "ack")}
        for number in range(plan.kills):
            await self._publisher.go_to((number + 1) * step)
            change = None
            if number in changes:
                # Events go on being published, and somebody dies, while it is changed.
                self._publisher.allow((number + 2) * step)
                change = self._tasks.start(self._change(*changes[number]), "changing")
            if number == plan.kills // 2:
                await self._kill_all()
            if random.random() < _CLIENTS_SHARE:
                crowd = random.choice(self._crowds)
                crowd.kill()
                self.report.client_kills += 1
                await asyncio.sleep(random.uniform(0.0, 2 * KILLS_BETWEEN_SECONDS_MAX))
                crowd.start()
            else:
                victim = random.choice(self._cluster.members)
                victim.kill()
                self.report.broker_kills += 1
                await asyncio.sleep(random.choice([0.0, KILLS_BETWEEN_SECONDS_MAX, 8 * KILLS_BETWEEN_SECONDS_MAX]))
                victim.start()
                await victim.listening()
            if change is not None:
                await change
        await self._kill_crowd_if_none()
        await self._publisher.go_to(plan.events)

    async def _kill_all(self) -> None:
        for member in self._cluster.members:
            member.kill()
        self.report.all_kills += 1
        for member in self._cluster.members:
            member.start()
        await asyncio.gather(*(member.listening() for member in self._cluster.members))

    async def _kill_crowd_if_none(self) -> None:
        if not self.report.client_kills:
            self._crowds[0].kill()
            self.report.client_kills += 1
            self._crowds[0].start()

    async def _change(self, wish: Wish, start: str) -> None:
        """Give it one bucket of its own and one more."""
        kept = wish.buckets[0]
        buckets = tuple(sorted((kept, (wish.buckets[-1] + 1) % BUCKETS)))
        amendment = Amendment(buckets, start, frozenset(self._publisher.stored()))
        self.amendments[wish.number] = amendment
        deadline = time.monotonic() + KILLS_SILENCE_SECONDS_MAX
        words = {"name": wish.name, "where": where(buckets), "from": start}
        while True:
            try:
                async with await connect(",".join(self._cluster.addresses), retry_seconds=0.0) as client:
                    await client.ask("durable_set", **words)
                break
            except HeadgateError as error:
                self.report.refused[f"durable_set: {error}"] += 1
                if time.monotonic() > deadline:
                    raise MeasurementFailed(wish.name, f"cannot be changed: {error}") from error
                await asyncio.sleep(_POLL_SECONDS)
        amendment.answered = self._publisher.published


async def _begin(client: Client, wishes: Sequence[Wish]) -> None:
    """Make all subscriptions; their clients come later."""
    for wish in wishes:
        subscription = await client.subscribe(
            STREAM,
            where(wish.buckets),
            durable=wish.name,
            sharing=wish.sharing,
            ack_wait=wish.ack_wait,
        )
        await subscription.close()


async def _drained(cluster: Fleet, wishes: Sequence[Wish]) -> None:
    """Wait until nothing waits for anybody. Raises MeasurementFailed when nothing moves any more."""
    left = {wish.name: -1 for wish in wishes}
    moved = time.monotonic()
    async with await connect(",".join(cluster.addresses), wait_seconds=KILLS_SILENCE_SECONDS_MAX) as client:
        while left:
            for name, before in list(left.items()):
                try:
                    row = await client.ask("durable", name=name)
                except HeadgateError:
                    continue
                now = row["waiting"] + row["unacked"]
                if now != before:
                    left[name], moved = now, time.monotonic()
                if not now:
                    del left[name]
            if time.monotonic() > moved + KILLS_DRAIN_SECONDS_MAX:
                rows = []
                for name in list(left)[:3]:
                    try:
                        rows.append(str(await client.ask("durable", name=name)))
                    except HeadgateError as error:
                        rows.append(f"{name}: {error}")
                raise MeasurementFailed("the cluster", f"{len(left)} subscriptions do not drain: {'; '.join(rows)}")
            await asyncio.sleep(_POLL_SECONDS)


async def _read_logs(cluster: Fleet, report: Report) -> dict[int, tuple[str, int]]:
    """Where each event is."""
    places: dict[int, tuple[str, int]] = {}
    async with await connect(",".join(cluster.addresses), wait_seconds=KILLS_SILENCE_SECONDS_MAX) as client:
        for info in await client.logs(STREAM):
            position = info.first
            while position < info.next:
                chunk = await client.read_log(info.name, position)
                if chunk.next <= position:
                    raise MeasurementFailed(info.partition, f"cannot be read from {position} on")
                for row in chunk.rows:
                    for place, record in enumerate(row_batch(row).pieces()):
                        number = number_of(decode_record(record)[1])
                        if number in places:
                            report.fault("twice in the logs", f"event {number}")
                        places[number] = info.partition, row.first + place
                position = chunk.next
    return places


async def _audit(cluster: Fleet, report: Report) -> None:
    """What `headgate audit` says, which knows nothing of the journals: it has to be the same."""
    command = [sys.executable, "-m", "headgate.ops.cli", "audit", "--server", ",".join(cluster.addresses)]
    command += ["--stream", STREAM, "--json"]
    seconds = KILLS_AUDIT_SECONDS_MAX
    try:
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise MeasurementFailed("the audit", f"has no verdict after {seconds:g} s") from None
    try:
        (stream,) = json.loads(done.stdout.splitlines()[-1])["streams"]
    except (ValueError, KeyError, IndexError):
        raise MeasurementFailed("the audit", (done.stderr or done.stdout).strip()[-500:]) from None
    report.audit = {name: int(stream[name]) for name in AUDITED}
    if bool(done.returncode) != bool(report.faults):
        report.fault("the audit disagrees", f"exit code {done.returncode}: {done.stdout.splitlines()[-1][:1500]}")


def _entries(crowds: Sequence[Crowd]) -> Iterator[Entry]:
    for crowd in crowds:
        for journal in crowd.journals:
            if journal.exists():
                yield from entries_of(journal.read_bytes())


async def campaign(plan: Plan, folder: Path) -> Report:
    """The whole run, its data in that folder. Raises MeasurementFailed when it could not be done to its end."""
    wishes = wishes_of(plan)
    async with fleet(plan.brokers, folder) as cluster:
        crowds = [
            Crowd(
                number,
                [wish for wish in wishes if (number - wish.number) % _CROWDS < wish.clients],
                cluster.addresses,
                folder,
                plan.seed,
            )
            for number in range(_CROWDS)
        ]
        client = await connect(
            ",".join(cluster.addresses),
            name="durable-kills",
            producer="durable-kills",
            retry_seconds=KILLS_RETRY_SECONDS,
            batch_events=KILLS_BATCH_EVENTS_MAX,
        )
        await client.ask("schema.put", stream=STREAM, schema={"durability": "stored", "audit": plan.audited})
        await _begin(client, wishes)
        publisher = NumberedPublisher(client, STREAM, plan.seed, plan.events, 0, _columns)
        try:
            for crowd in crowds:
                crowd.start()
            running = _Run(plan, cluster, crowds, publisher)
            await running.rage(wishes)
            await client.close()
            await cluster.settled()
            await _drained(cluster, wishes)
            for crowd in crowds:
                crowd.end()
        finally:
            await publisher.end()
            for crowd in crowds:
                crowd.kill()
        report = running.report
        report.published = publisher.published
        report.acknowledged = sum(map(len, publisher.acknowledged))
        report.refused += publisher.refused
        logs = await _read_logs(cluster, report)
        judge(report, wishes, running.amendments, _entries(crowds), publisher.stored(), logs)
        if plan.audited:
            await _audit(cluster, report)
        for member in cluster.members:
            for line in member.faults()[:_FAULTS_MAX]:
                report.fault("said by a broker", line[:500])
    return report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of durable kills."""
    parser.add_argument("--events", type=int, default=200_000, help="stored events (default 200,000)")
    parser.add_argument("--kills", type=int, default=20, help="of brokers and clients (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of moments and victims (default 1)")
    parser.add_argument("--brokers", type=int, default=5, help="in the cluster (default 5)")
    parser.add_argument("--subscriptions", type=int, default=50, help="of all four sharings (default 50)")
    parser.add_argument("--no-audit", action="store_true", help="do not run `headgate audit` (Spark) at the end")
    parser.add_argument("--folder", type=Path, help="keep data and logs of the brokers and journals there")


def run(arguments: argparse.Namespace) -> int:
    """Kill, compare, and print a line; 0 when every promise was kept."""
    missing = "" if arguments.no_audit else missing_parts()
    if missing:
        print(f"without `headgate audit`, which needs {missing}", file=sys.stderr)
    audited = not (missing or arguments.no_audit)
    plan = Plan(arguments.events, arguments.kills, arguments.seed, arguments.brokers, arguments.subscriptions, audited)
    if plan.events < 100 or plan.kills < 1 or plan.brokers < 3 or plan.subscriptions < len(_SHARINGS):
        text = "--events is 100 or more, --kills 1, --brokers 3 (of two, one alone stores nothing), --subscriptions 4"
        print(text, file=sys.stderr)
        return 2
    with TemporaryDirectory(prefix="headgate-durable-kills-") as own:
        folder = arguments.folder or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            report = asyncio.run(campaign(plan, folder))
        except MeasurementFailed as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
    for line in report.examples:
        print(line[:2000], file=sys.stderr)
    say_refused(report.refused)
    print(report, flush=True)
    return 0 if report.kept else 1


def main(words: Sequence[str] | None = None) -> int:
    """`python -m headgate.ops.bench.durable.kills`."""
    parser = argparse.ArgumentParser(prog="make durable-kills", description=(__doc__ or "").splitlines()[0])
    add_arguments(parser)
    return run(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
