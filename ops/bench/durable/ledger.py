"""The verdict over durable subscriptions after many kills, from what clients wrote down and what the logs hold.

A client writes an `Entry` for each event before it acts: that it was handed it, that it is about to acknowledge it,
and that the acknowledgement was confirmed. Journals survive SIGKILL, so an event that the cluster counts as settled
without any client having been about to acknowledge it is a lost one.

Delivery numbers ascend for each subscription over all its clients and coordinators, so they are the order in which
events were handed out, whatever clients and brokers did meanwhile.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "AUDITED",
    "BUCKETS",
    "KEYS",
    "Amendment",
    "Entry",
    "Kind",
    "Report",
    "Wish",
    "bucket_of",
    "entries_of",
    "judge",
    "key_of",
    "where",
]

AUDITED = ("expected", "delivered", "lost", "unacked", "duplicate", "wrong", "waiting", "boundary", "unsettled")
"""What is told of the audit's verdict."""
BUCKETS = 20
KEYS = 64
_EXAMPLES_MAX = 5
_ENTRY = struct.Struct("<BHIQI")


class Kind(IntEnum):
    """What a client wrote down."""

    HANDED = 0
    SAID = 1
    """It is about to acknowledge it."""
    CONFIRMED = 2
    GAP = 3


class Entry(NamedTuple):
    """A line of a journal: of a GAP `event` is how many, and `times` how often it was handed out by then."""

    kind: int
    subscription: int
    event: int
    delivery: int
    times: int

    def packed(self) -> bytes:
        """As bytes of a journal."""
        return _ENTRY.pack(*self)


def entries_of(journal: bytes) -> Iterable[Entry]:
    """The entries of a journal; the last one may have been cut by a kill."""
    whole = len(journal) // _ENTRY.size * _ENTRY.size
    return map(Entry._make, _ENTRY.iter_unpack(journal[:whole]))


@dataclass(frozen=True, slots=True)
class Wish:
    """One durable subscription: what it wants, and how its clients share and acknowledge it."""

    number: int
    sharing: str
    buckets: tuple[int, ...]
    clients: int
    how: str
    """of acknowledging: each, batch or cumulative."""
    ack_wait: float

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return f"durable-{self.number}"


@dataclass(slots=True)
class Amendment:
    """A change of what a subscription wants, while events were published."""

    buckets: tuple[int, ...]
    start: str
    """From where on: ack or now."""
    stored: frozenset[int] = frozenset()
    """Events that were stored when it was asked for."""
    answered: int | None = None
    """So many events had been published when it was confirmed."""


def bucket_of(number: int) -> int:
    """What an event is found by."""
    return (number * 2654435761 >> 7) % BUCKETS


def key_of(number: int) -> int:
    """What events are shared by."""
    return (number * 40503 >> 3) % KEYS


def where(buckets: Iterable[int]) -> str:
    """A condition for these."""
    return f"bucket IN ({', '.join(map(str, buckets))})"


@dataclass(slots=True)
class Report:
    """The results of a run. Lists of faults are empty when every promise was kept."""

    brokers: int = 0
    seed: int = 0
    subscriptions: int = 0
    broker_kills: int = 0
    client_kills: int = 0
    all_kills: int = 0
    published: int = 0
    acknowledged: int = 0
    in_logs: int = 0
    owed: int = 0
    """Deliveries that had to come: each event for each subscription that it matches."""
    handed: int = 0
    confirmed: int = 0
    again: int = 0
    """Deliveries beyond the first, all flagged if there is no fault."""
    audit: dict[str, int] | None = None
    """What the audit says, where it was run."""
    refused: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def fault(self, what: str, text: str) -> None:
        """Count a fault, and keep the first of its kind in words."""
        self.faults[what] += 1
        if self.faults[what] <= _EXAMPLES_MAX:
            self.examples.append(f"{what}: {text}")

    @property
    def kept(self) -> bool:
        """Whether everything that was promised was kept."""
        return not self.faults and self.confirmed > 0

    def __str__(self) -> str:
        kills = f"{self.broker_kills} kills of brokers, {self.client_kills} of clients, {self.all_kills} of all at once"
        counts = f"{self.acknowledged:,} events acknowledged, {self.owed:,} deliveries owed, {self.handed:,} made, "
        counts += f"{self.again:,} of them again, {self.confirmed:,} confirmed"
        if self.audit is not None:
            said = ", ".join(f"{count:,} {name}" for name, count in self.audit.items())
            counts += f"; by the audit {said}"
        faults = ", ".join(f"{count:,} {what}" for what, count in sorted(self.faults.items())) or "no fault"
        verdict = "every promise was kept" if self.kept else "a promise was BROKEN"
        head = f"{self.brokers} brokers, {self.subscriptions} durable subscriptions, seed {self.seed}, {kills}"
        return f"{head}: {counts}; {faults}: {verdict}"


class _Book:
    """What all clients of one subscription wrote down."""

    def __init__(self) -> None:
        self.handed: dict[int, dict[int, int]] = {}
        """Event -> delivery number -> how often it was handed out by then, as it was told."""
        self.said: dict[int, set[int]] = {}
        self.confirmed: dict[int, int] = {}
        """Event -> the first delivery that was confirmed."""


def judge(
    report: Report,
    wishes: Iterable[Wish],
    amendments: Mapping[int, Amendment],
    entries: Iterable[Entry],
    acknowledged: Iterable[int],
    logs: Mapping[int, tuple[str, int]],
) -> None:
    """Put the verdict into the report.

    `acknowledged` are events whose publisher was told that they are stored, `logs` says of each event that can be read
    in which log and at which position. The cluster has said before that nothing waits any more.
    """
    books: dict[int, _Book] = {wish.number: _Book() for wish in wishes}
    for entry in entries:
        book = books[entry.subscription]
        if entry.kind == Kind.GAP:
            report.fault("announced as lost", f"subscription {entry.subscription}: {entry.event} events")
        elif entry.kind == Kind.HANDED:
            book.handed.setdefault(entry.event, {})[entry.delivery] = entry.times
        elif entry.kind == Kind.SAID:
            book.said.setdefault(entry.event, set()).add(entry.delivery)
        else:
            first = book.confirmed.get(entry.event)
            book.confirmed[entry.event] = entry.delivery if first is None else min(first, entry.delivery)
    told = set(acknowledged)
    for number in told - logs.keys():
        report.fault("not stored", f"event {number}")
    report.in_logs = len(logs)
    by_bucket: list[list[int]] = [[] for _ in range(BUCKETS)]
    for number in sorted(logs):
        by_bucket[bucket_of(number)].append(number)
    for wish in wishes:
        book = books[wish.number]
        must, may = _wanted(wish, amendments.get(wish.number), by_bucket)
        _look(report, wish, book, must, may)
        _look_at_order(report, wish, book, logs)


def _wanted(wish: Wish, amendment: Amendment | None, by_bucket: list[list[int]]) -> tuple[set[int], set[int]]:
    """The events that must come, and those that may."""
    old = {number for bucket in wish.buckets for number in by_bucket[bucket]}
    if amendment is None:
        return old, old
    new = {number for bucket in amendment.buckets for number in by_bucket[bucket]}
    answered = amendment.answered
    must = {number for number in new if number in old or (answered is not None and number >= answered)}
    may = {number for number in old if answered is None or number < answered}
    may |= {number for number in new if amendment.start == "ack" or number not in amendment.stored}
    return must, may | must


def _look(report: Report, wish: Wish, book: _Book, must: set[int], may: set[int]) -> None:
    name = wish.name
    report.owed += len(must)
    for number in must - book.handed.keys():
        report.fault("missing", f"{name}: event {number}")
    for number in book.handed.keys() - may:
        report.fault("not asked for", f"{name}: event {number}")
    for number, deliveries in book.handed.items():
        report.handed += len(deliveries)
        if number in book.confirmed:
            report.confirmed += 1
        if number in must and number not in book.said:
            report.fault("settled by nobody", f"{name}: event {number}, handed out as {sorted(deliveries)}")
        if len(deliveries) == 1:
            continue
        report.again += len(deliveries) - 1
        confirmed = book.confirmed.get(number)
        first = True
        for delivery, count in sorted(deliveries.items()):
            if not first and count <= 1:
                report.fault("again without a flag", f"{name}: event {number}, {_told(deliveries)}")
            if confirmed is not None and delivery > confirmed:
                text = f"{name}: event {number}, confirmed as {_number(confirmed)}, {_told(deliveries)}"
                report.fault("again though confirmed", text)
            first = False


def _look_at_order(report: Report, wish: Wish, book: _Book, logs: Mapping[int, tuple[str, int]]) -> None:
    """First deliveries are in the order of each log, or of each key in it; not where several clients share freely."""
    if wish.sharing == "shared":
        return
    by_key = wish.sharing.startswith("key:")
    latest: dict[tuple[str, int], tuple[int, int]] = {}
    firsts = sorted((min(deliveries), number) for number, deliveries in book.handed.items() if number in logs)
    for delivery, number in firsts:
        log, position = logs[number]
        key = log, key_of(number) if by_key else 0
        before = latest.get(key)
        if before is not None and before[0] > position:
            text = f"{wish.name}: event {number} at {log}:{position} as {_number(delivery)} behind position {before[0]}"
            report.fault("out of order", f"{text} as {_number(before[1])}")
        else:
            latest[key] = position, delivery


def _number(delivery: int) -> str:
    """A delivery number as its generation and the number within."""
    return f"{delivery >> 32}/{delivery & 0xFFFFFFFF}"


def _told(deliveries: Mapping[int, int]) -> str:
    return "handed out as " + ", ".join(f"{_number(one)} ({count}.)" for one, count in sorted(deliveries.items()))
