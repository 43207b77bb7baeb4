"""Dissemination: one batch on its way from its publisher to the connections that want some of it.

A **plan** says which sessions get an event, and under which of their subscription numbers. Every row of a batch gets
its plan, by one of two ways:

    topics alone decide    a lane remembers the plan of a topic: one look-up an event, nothing matched twice
    conditions decide      the index answers with groups of rows, and each group has one plan

Batches of one stream that one read brought are gathered and go out together: the cost of a DELIVER is paid once for
all of them. Then rows are sorted by session, in order, and each session gets one portion of the batch. Sessions that
get the same rows share the portion, encoded bytes included; when all rows have one plan, the portion is the batch
itself and no event costs anything.

Identities of subscriptions are never used twice, so a remembered plan of a set of them cannot become wrong, only
useless. Lanes belong to a stream and are forgotten when its subscriptions change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from matching import Value
from protocol.batch import Batch, Portion, join_batches, join_u32

from .limits import GATHERED_BYTES_MAX, GATHERED_EVENTS_MAX, PLANS_MAX, ROUTE_NUMBERS_MAX
from .streams import Plan, Stream
from .subscribers import ClientSession, Subscribers

__all__ = ["Dissemination"]


@dataclass(slots=True)
class _Gathered:
    """Batches of one stream that were matched and wait to go out together; their events follow one another."""

    stream: Stream | None
    base: int
    time_us: int
    count: int = 0
    size: int = 0
    batches: list[Batch] = field(default_factory=list)
    plans: list[list[Plan | None]] = field(default_factory=list)


class _Columns(Mapping[str, Sequence[Value]]):
    """The match columns of a batch, each decoded when the index first asks for it."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __getitem__(self, name: str) -> Sequence[Value]:
        column = self._batch.column(name)
        if column is None:
            raise KeyError(name)
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.columns)

    def __len__(self) -> int:
        return len(self._batch.columns)


_NOTHING = _Gathered(None, 0, 0)


class Dissemination:
    """Carries batches to sessions; positions are handed out here."""

    def __init__(self, subscribers: Subscribers, origin: str) -> None:
        self._subscribers = subscribers
        self._origin = origin
        self._plans: dict[tuple[int, ...], Plan] = {}
        self._gathered = _NOTHING
        self._widest = 1  # the most subscriptions of one session in any plan so far
        self.sequence = 0

    def carry(self, stream: Stream, batch: Batch, time_us: int) -> None:
        """Match a batch; the next `settle` delivers it. Raises TopicError or ProtocolViolation, having done nothing."""
        topics = batch.topic_list()
        plans = list(map(stream.lanes.get, topics))
        if None in plans:
            stream.check_topics(topics)
            plans = self._plans_of(stream, batch, topics)
        gathered = self._gathered
        size = len(batch.records)
        if (
            gathered.stream is not stream
            or gathered.count + batch.count > GATHERED_EVENTS_MAX
            or gathered.size + size > GATHERED_BYTES_MAX
        ):
            self.settle()
            gathered = self._gathered = _Gathered(stream, self.sequence, time_us)
        gathered.batches.append(batch)
        gathered.plans.append(plans)
        gathered.count += batch.count
        gathered.size += size
        self.sequence += batch.count
        stream.events += batch.count

    def settle(self) -> None:
        """Deliver what was carried since the last time: batches of one read go out together."""
        gathered = self._gathered
        if not gathered.count:
            return
        self._gathered = _NOTHING
        batch, plans = gathered.batches[0], gathered.plans[0]
        if len(gathered.batches) > 1:
            rows = zip(gathered.batches, gathered.plans, strict=True)
            plans = [plan for part, own in rows for plan in (own if len(own) > 1 else own * part.count)]
            batch = join_batches(gathered.batches)
        stream, base, time_us = gathered.stream, gathered.base, gathered.time_us
        assert stream is not None
        first = plans[0]
        if len(plans) == 1 or (first is plans[-1] and plans.count(first) == batch.count):
            if first:
                portion = batch.portion(range(batch.count), self._origin, base, time_us)
                for session, numbers in zip(first[::2], first[1::2], strict=True):
                    self._subscribers.deliver(session, [numbers, batch.count], portion)
                stream.deliveries += batch.count * len(first) // 2
            return
        self._spread(stream, batch, plans, base, time_us)

    def forget_plans(self) -> None:
        """Let go of sessions that ended."""
        self._plans.clear()

    def _plans_of(self, stream: Stream, batch: Batch, topics: Sequence[str]) -> list[Plan | None]:
        """The plan of each row, or one for all; topics that alone decide get their lane."""
        index = stream.index
        plans: list[Plan | None] = []
        for topic in topics:
            plan = stream.lanes.get(topic)
            if plan is None:
                plain = index.plain(topic)
                if plain is None:
                    return self._plans_by_condition(stream, batch, topics)
                plan = self._plan(plain) if plain else ()
                stream.keep_lane(topic, plan)
            plans.append(plan)
        return plans

    def _plans_by_condition(self, stream: Stream, batch: Batch, topics: Sequence[str]) -> list[Plan | None]:
        plans: list[Plan | None] = [None] * batch.count
        for subscriptions, rows in stream.index.match(topics, batch.count, _Columns(batch)):
            plan = self._plan(subscriptions)
            for row in rows:
                plans[row] = plan
        return plans

    def _spread(self, stream: Stream, batch: Batch, plans: Sequence[Plan | None], base: int, time: int) -> None:
        """Rows with different plans: sort them by session, then one portion each."""
        shares, may_share = _shares(plans)
        portions: dict[Any, Portion] = {}
        deliver, origin = self._subscribers.deliver, self._origin
        for session, (all_rows, all_numbers) in shares.items():
            stream.deliveries += len(all_rows)
            step = self._rows_at_once(all_numbers)
            for start in range(0, len(all_rows), step):
                rows = tuple(all_rows[start : start + step])
                portion = portions.get(rows) if may_share else None
                if portion is None:
                    portion = batch.portion(rows, origin, base, time)
                    if may_share:
                        portions[rows] = portion
                deliver(session, _routes(all_numbers[start : start + step]), portion)

    def _plan(self, subscriptions: tuple[int, ...]) -> Plan:
        plan = self._plans.get(subscriptions)
        if plan is None:
            by_identity = self._subscribers.by_identity
            numbers_of: dict[ClientSession, list[int]] = {}
            for identity in subscriptions:
                subscription = by_identity[identity]
                numbers_of.setdefault(subscription.session, []).append(subscription.number)
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            flat: list[Any] = []
            for session, numbers in numbers_of.items():
                flat += (session, numbers[0] if len(numbers) == 1 else numbers)
                self._widest = max(self._widest, len(numbers))
            plan = self._plans[subscriptions] = tuple(flat)
        return plan

    def _rows_at_once(self, numbers: Sequence[Any]) -> int:
        """How many rows one DELIVER may have, so that its routes stay within their bound."""
        if len(numbers) * self._widest <= ROUTE_NUMBERS_MAX:
            return len(numbers)
        widest = max(1 if type(some) is int else len(some) for some in numbers)
        return max(1, ROUTE_NUMBERS_MAX // widest)


_Shares: TypeAlias = dict[ClientSession, tuple[list[int], list[Any]]]
"""By session: the rows it gets, ascending, and for each of them its numbers."""


def _shares(plans: Sequence[Plan | None]) -> tuple[_Shares, bool]:
    """The share of each session, and whether two sessions may have the same rows."""
    try:
        return _shares_of_pairs(plans), False
    except (TypeError, ValueError):  # a row that nobody wants, or that several sessions want
        pass
    shares: _Shares = {}
    for row, plan in enumerate(plans):
        if plan:
            for session, numbers in zip(plan[::2], plan[1::2], strict=True):
                share = shares.get(session)
                if share is None:
                    share = shares[session] = [], []
                share[0].append(row)
                share[1].append(numbers)
    return shares, True


def _shares_of_pairs(plans: Sequence[Any]) -> _Shares:
    """The shares when each row is for one session, which is common and much cheaper. Raises when it is not so."""
    rows_of: defaultdict[ClientSession, list[int]] = defaultdict(list)
    for row, (session, _) in enumerate(plans):
        rows_of[session].append(row)
    numbers = [plan[1] for plan in plans]
    return {session: (rows, [numbers[row] for row in rows]) for session, rows in rows_of.items()}


def _routes(numbers: Sequence[Any]) -> list[Any] | bytes:
    """Routes of events in order: one run when all are for the same subscriptions, else each for its own."""
    first = numbers[0]
    if first == numbers[-1] and numbers.count(first) == len(numbers):
        return [first, len(numbers)]
    try:
        return join_u32(numbers)
    except (TypeError, OverflowError):  # several subscriptions of one event, or a number of more than 32 bits
        pass
    routes: list[Any] = [1] * (2 * len(numbers))
    routes[::2] = numbers
    return routes
