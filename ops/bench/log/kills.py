"""SIGKILL at random moments while stored events are published: what was acknowledged is in the log, once.

    make log-kills N=50        or python -m headgate.ops.bench.log.kills --kills 50 --seed 1

A publisher with a producer's name publishes numbered events without pause. First one broker is killed and started again
so many times, sometimes before it has even recovered. Then the same is done to three, each event on two disks before it
is acknowledged; now and then the data folder of the one that was killed is deleted before it comes back. Never is a
disk deleted that has the only copy of anything: what a broker wrote before it lost its disk is nobody's to copy any
more, so the disk which has that copy is spared from then on.

At the end the logs are read from their beginnings to their ends. Each has every position once, every acknowledged
event is there, none is there twice (`ledger.py` says what that means with three logs), whoever subscribes from the
start gets each once, and a new epoch has a reason: a deleted disk, or rows that were taken back because they had been
sent again to another broker. Prints one line for each of the two, and the exit code is 1 when something is not so.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from headgate.protocol.aio import Client, connect
from headgate.protocol.client import catalogue
from headgate.protocol.data import LogName, Row

from ..kit import Fleet, MeasurementFailed, Member, NumberedPublisher, fleet, number_of, say_refused
from ..limits import (
    KILLS_BATCH_EVENTS_MAX,
    KILLS_BETWEEN_SECONDS_MAX,
    KILLS_REPLAY_SECONDS_MAX,
    KILLS_RETRY_SECONDS,
    KILLS_SILENCE_SECONDS_MAX,
)
from .ledger import Findings, Plan, Report, judge, look, spared

__all__ = ["add_arguments", "kill_and_read", "main", "run"]

STREAM = "quotes"
_TAKEN_BACK = "log rows taken back"
_TICK_SECONDS = 0.02
_EARLY_SHARE = 0.25
_HOME_SHARE = 0.5
_FAULTS_MAX = 5


class _Run:
    """Kills brokers, deletes disks, and starts brokers again."""

    def __init__(self, plan: Plan, folder: Path, cluster: Fleet, publisher: NumberedPublisher) -> None:
        self.report = Report(plan)
        self._folder = folder
        self._cluster = cluster
        self._publisher = publisher
        self._random = Random(plan.seed)

    async def rage(self) -> None:
        """Kill as often as planned. Raises MeasurementFailed when a broker or the publisher does not come back."""
        plan, random = self.report.plan, self._random
        while self.report.kills < plan.kills:
            await self._publisher.progress()
            await asyncio.sleep(random.uniform(0.0, KILLS_BETWEEN_SECONDS_MAX))
            victim, deletes = await self._victim()
            self._kill(victim)
            if deletes:
                shutil.rmtree(self._folder / victim.name)
                self.report.deleted[victim.name] += 1
            victim.start()
            while self.report.kills < plan.kills and random.random() < _EARLY_SHARE:
                # While it starts, or recovers, or has just begun to listen.
                await asyncio.sleep(random.uniform(0.0, 2 * KILLS_BETWEEN_SECONDS_MAX))
                self._kill(victim)
                victim.start()
            await victim.listening()
        await self._publisher.progress()

    def _kill(self, victim: Member) -> None:
        victim.kill()
        self.report.kills += 1

    async def _victim(self) -> tuple[Member, bool]:
        """Choose the next broker, and whether its disk is deleted too."""
        members, random = self._cluster.members, self._random
        if len(members) > 1 and random.random() < self.report.plan.deleted_share:
            spare = await self._spare_disks()
            if spare:
                return self._cluster.named(random.choice(spare)), True
        if random.random() < _HOME_SHARE:
            return self._cluster.named(self._publisher.broker), False
        return random.choice(members), False

    async def _spare_disks(self) -> list[str]:
        """Brokers whose disks are not needed: all that they have now is on another one too. Waits a while for some."""
        held = await _held(self._cluster.members)
        wanted = {name: max(ends.get(name, 0) for ends in held.values()) for ends in held.values() for name in ends}
        deadline = time.monotonic() + KILLS_SILENCE_SECONDS_MAX
        while len(sole := spared(held, wanted)) == len(held) and time.monotonic() < deadline:
            await asyncio.sleep(10 * _TICK_SECONDS)
            held = await _held(self._cluster.members)
        return sorted(set(held) - sole)


async def _held(members: Sequence[Member]) -> dict[str, dict[LogName, int]]:
    """What each broker has of the logs of events, from their beginnings on, and up to where."""
    held = {}
    for member in members:
        async with await connect(member.address, wait_seconds=KILLS_SILENCE_SECONDS_MAX) as client:
            rows = await client.ask("logs", kind="events", stream=STREAM)
        infos = catalogue({member.name: rows})
        held[member.name] = {info.name: info.next for info in infos if info.first == 0}
    return held


async def _read(client: Client, published: int) -> Findings:
    """All logs, from their beginnings to their ends."""
    findings = Findings(published)
    for info in await client.logs(STREAM):
        rows: list[Row] = []
        position = info.first
        while position < info.next:
            chunk = await client.read_log(info.name, position)
            if chunk.next <= position:
                raise MeasurementFailed(info.partition, f"cannot be read from {position} on")
            rows += chunk.rows
            position = chunk.next
        look(findings, info, rows)
    return findings


async def _replayed(client: Client, findings: Findings, acknowledged: Sequence[range]) -> list[str]:
    """The faults in a replay from the start, which must show each event once."""
    seen, there = bytearray(len(findings.places)), findings.distinct
    count = 0
    try:
        async with asyncio.timeout(KILLS_SILENCE_SECONDS_MAX) as patience:
            subscription = await client.subscribe(STREAM, start="start")
            while count < there:
                number = number_of((await anext(subscription)).body)
                if seen[number]:
                    return [f"replay: event {number} came twice"]
                seen[number] = True
                count += 1
                if count % 1000 == 0:
                    patience.reschedule(asyncio.get_running_loop().time() + KILLS_REPLAY_SECONDS_MAX)
    except TimeoutError:
        lost = sum(not seen[number] for numbers in acknowledged for number in numbers)
        return [f"replay: {there - count} events of the logs did not come, {lost} of them acknowledged ones"]
    return []


async def kill_and_read(plan: Plan, folder: Path) -> Report:
    """The whole run, its data in that folder. Raises MeasurementFailed when it could not be done to its end."""
    async with fleet(plan.brokers, folder) as cluster:
        addresses = ",".join(cluster.addresses)
        client = await connect(
            addresses,
            name="log-kills",
            producer="log-kills",
            retry_seconds=KILLS_RETRY_SECONDS,
            batch_events=KILLS_BATCH_EVENTS_MAX,
        )
        await client.ask("schema.put", stream=STREAM, schema={"durability": "stored"})
        publisher = NumberedPublisher(client, STREAM, plan.seed)
        try:
            running = _Run(plan, folder, cluster, publisher)
            await running.rage()
            await publisher.finish()
            await client.close()
        finally:
            await publisher.end()
        await cluster.settled()
        report = running.report
        report.published = publisher.published
        report.acknowledged = sum(map(len, publisher.acknowledged))
        report.refused = publisher.refused
        async with await connect(addresses) as reader:
            findings = await _read(reader, publisher.published)
            for member in cluster.members:
                report.taken_back[member.name] = sum(line.get("event") == _TAKEN_BACK for line in member.lines())
            judge(report, publisher.acknowledged, findings)
            report.wrong += await _replayed(reader, findings, publisher.acknowledged)
        report.wrong += [line for member in cluster.members for line in member.faults()][:_FAULTS_MAX]
    return report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of log kills."""
    parser.add_argument("--kills", type=int, default=50, help="in each of the runs (default 50)")
    parser.add_argument("--seed", type=int, default=1, help="of moments and victims (default 1)")
    parser.add_argument("--brokers", default="1,3", help="sizes of clusters, with commas (default 1,3)")
    parser.add_argument("--folder", type=Path, help="keep data and logs of the brokers there")


def run(arguments: argparse.Namespace) -> int:
    """Kill, read, and print a line for each size; 0 when every promise was kept."""
    sizes = [int(word) for word in arguments.brokers.split(",")]
    if arguments.kills < 1 or any(size != 1 and size < 3 for size in sizes):
        text = "--kills is 1 or more; --brokers is 1, or 3 or more: of two, the other one alone acknowledges nothing"
        print(text, file=sys.stderr)
        return 2
    broken = False
    for size in sizes:
        with TemporaryDirectory(prefix="headgate-kills-") as own:
            folder = Path(own) if arguments.folder is None else arguments.folder / f"{size}"
            folder.mkdir(parents=True, exist_ok=True)
            try:
                report = asyncio.run(kill_and_read(Plan(arguments.kills, arguments.seed, size), folder))
            except MeasurementFailed as failure:
                print(f"failed: {size} brokers: {failure}", file=sys.stderr)
                broken = True
                continue
        for line in report.wrong:
            print(line[:2000], file=sys.stderr)
        say_refused(report.refused)
        print(report, flush=True)
        broken = broken or not report.kept
    return 1 if broken else 0


def main(words: Sequence[str] | None = None) -> int:
    """`python -m headgate.ops.bench.log.kills`."""
    parser = argparse.ArgumentParser(prog="make log-kills", description=(__doc__ or "").splitlines()[0])
    add_arguments(parser)
    return run(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
