"""The verdict over logs after many kills: what was acknowledged is there, each log is whole, nothing is there twice.

A batch that was never acknowledged may be on the disk of the broker that was killed, and is sent to another one. When
the first comes back it takes its row back, before anybody can read it, and goes on in a new epoch. An event that can be
read in two logs all the same is counted apart, by whether both rows have the same producer and number (`again`) or not
(`twice`); neither may be.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.protocol.client import LogInfo
from headgate.protocol.data import LogName, Row, decode_record, row_batch

from ..kit import number_of

__all__ = ["Findings", "Plan", "Report", "judge", "look", "spared"]

_EXAMPLES_MAX = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a run."""

    kills: int
    seed: int
    brokers: int = 1
    deleted_share: float = 0.25
    """Of the kills in a cluster: how often the disk goes as well."""


class Findings:
    """What the logs hold of events 0 up to `published`, and what is wrong with them by themselves."""

    def __init__(self, published: int) -> None:
        self.events = 0
        self.again = 0
        self.twice = 0
        self.wrong: list[str] = []
        self.epochs: Counter[str] = Counter()
        self.logs_seen = 0
        self.places = array("q", bytes(8 * published))
        """Of each event: 0 when it is nowhere, else 1 + its number among the producer's events."""
        self.logs = array("H", bytes(2 * published))
        """Of each event: in which log, counted from 1."""

    @property
    def distinct(self) -> int:
        """How many different events there are."""
        return len(self.places) - self.places.count(0)


@dataclass(slots=True)
class Report:
    """The results of a run. `missing` and so on are counts; `wrong` says in words what is not only a count."""

    plan: Plan
    kills: int = 0
    deleted: Counter[str] = field(default_factory=Counter)
    published: int = 0
    acknowledged: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    in_log: int = 0
    missing: int = 0
    again: int = 0
    """A second time in another broker's log, under the same producer and number: somebody should have taken it back."""
    twice: int = 0
    wrong: list[str] = field(default_factory=list)
    taken_back: Counter[str] = field(default_factory=Counter)
    """How often each broker took back rows that had been sent again to another one."""

    @property
    def kept(self) -> bool:
        """Whether everything that was promised was kept."""
        return not (self.missing or self.again or self.twice or self.wrong) and self.acknowledged > 0

    def __str__(self) -> str:
        plan = self.plan
        who = "1 broker" if plan.brokers == 1 else f"{plan.brokers} brokers"
        deleted = f" and {self.deleted.total()} deleted disks" if plan.brokers > 1 else ""
        counts = f"{self.acknowledged:,} events acknowledged, {self.in_log:,} in the log"
        if plan.brokers > 1:
            counts += f" ({self.again:,} of them once more under their numbers; rows taken back "
            counts += f"{self.taken_back.total()} times)"
        wrong = f"{self.missing:,} missing, {self.twice:,} twice, {len(self.wrong)} other faults"
        verdict = "every promise was kept" if self.kept else "a promise was BROKEN"
        return f"{who}, {self.kills} kills{deleted}, seed {plan.seed}: {counts}; {wrong}: {verdict}"


def spared(held: Mapping[str, Mapping[LogName, int]], wanted: Mapping[LogName, int]) -> set[str]:
    """Brokers whose disk must not be lost: of some log no other one has all up to what is wanted.

    `held` is each broker's logs and where they end there.
    """
    sole = set()
    for name, end in wanted.items():
        whole = [broker for broker, ends in held.items() if ends.get(name, 0) >= end]
        if len(whole) == 0:
            return set(held)
        if len(whole) == 1:
            sole.add(whole[0])
    return sole


def look(findings: Findings, info: LogInfo, rows: Iterable[Row]) -> None:
    """Add all rows of a log."""
    findings.epochs[info.name.broker] += 1
    findings.logs_seen += 1
    position = 0
    for row in rows:
        if row.first != position:
            findings.wrong.append(f"{info.partition}: position {position} is followed by a row at {row.first}")
        position = row.first + row.count
        for place, record in enumerate(row_batch(row).pieces()):
            number = number_of(decode_record(record)[1])
            if number < len(findings.places):
                _take(findings, number, row.number + place + 1)
            else:
                findings.wrong.append(f"{info.partition}: event {number} was never published")
    if position != info.next:
        findings.wrong.append(f"{info.partition}: ends at {position}, and was said to end at {info.next}")


def _take(findings: Findings, number: int, place: int) -> None:
    findings.events += 1
    if not findings.places[number]:
        findings.places[number], findings.logs[number] = place, findings.logs_seen
    elif findings.places[number] == place and findings.logs[number] != findings.logs_seen:
        findings.again += 1
    else:
        findings.twice += 1


def judge(report: Report, acknowledged: Iterable[range], findings: Findings) -> None:
    """Put the verdict into the report."""
    report.in_log = findings.events
    report.wrong += findings.wrong[:_EXAMPLES_MAX]
    missing = [number for numbers in acknowledged for number in numbers if not findings.places[number]]
    report.missing = len(missing)
    report.again, report.twice = findings.again, findings.twice
    if missing:
        report.wrong.append(f"missing: {missing[0]} to {missing[-1]}, {len(missing)} events")
    for broker, epochs in findings.epochs.items():
        deleted, taken_back = report.deleted[broker], report.taken_back[broker]
        if epochs > 1 + deleted + taken_back:
            reasons = f"its disk was deleted {deleted} times, and it took rows back {taken_back} times"
            report.wrong.append(f"{broker}: {epochs} epochs; {reasons}")
