"""Dissemination: one batch on its way from its publisher to the connections that want some of it.

A **plan** says which sessions get an event, and under which of their subscription numbers. Every row of a batch gets
its plan, by one of two ways:

    topics alone decide    a lane remembers the plan of a topic: one look-up an event, nothing matched twice
    conditions decide      the index answers with groups of rows, and each group has one plan

Then rows are gathered by session, in order, and each session gets one portion of the batch. Sessions that get the same
rows share the portion, encoded bytes included; when all rows have one plan, the portion is the batch itself and no
event costs anything.

Identities of subscriptions are never used twice, so a remembered plan of a set of them cannot become wrong, only
useless. Lanes belong to a stream and are forgotten when its subscriptions change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matching import Value
from protocol.batch import Batch, Portion

from .limits import PLANS_MAX, ROUTE_NUMBERS_MAX
from .streams import Plan, Stream
from .subscribers import ClientSession, Subscribers

__all__ = ["Dissemination"]


class Dissemination:
    """Carries batches to sessions; positions are handed out here."""

    def __init__(self, subscribers: Subscribers, origin: str) -> None:
        self._subscribers = subscribers
        self._origin = origin
        self._plans: dict[tuple[int, ...], Plan] = {}
        self.sequence = 0

    def carry(self, stream: Stream, batch: Batch, time_us: int) -> None:
        """Match a batch and deliver it. Raises TopicError or ProtocolViolation before anything went out."""
        topics = batch.topic_list()
        plans = list(map(stream.lanes.get, topics))
        if None in plans:
            stream.check_topics(topics)
            plans = self._plans_of(stream, batch, topics)
        base = self.sequence
        self.sequence = base + batch.count
        stream.events += batch.count
        first = plans[0]
        if len(plans) == 1 or plans.count(first) == batch.count:
            if first:
                portion = batch.portion(range(batch.count), self._origin, base, time_us)
                for session, numbers in first:
                    self._subscribers.deliver(session, [numbers, batch.count], portion)
                stream.deliveries += batch.count * len(first)
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
        columns: dict[str, Sequence[Value]] = {}
        for name in stream.index.attributes():
            column = batch.column(name)
            if column is not None:
                columns[name] = column
        plans: list[Plan | None] = [None] * batch.count
        for subscriptions, rows in stream.index.match(topics, batch.count, columns):
            plan = self._plan(subscriptions)
            for row in rows:
                plans[row] = plan
        return plans

    def _spread(self, stream: Stream, batch: Batch, plans: Sequence[Plan | None], base: int, time: int) -> None:
        """Rows with different plans: gather them by session, then one portion each."""
        shares: dict[ClientSession, list[Any]] = {}
        for row, plan in enumerate(plans):
            if plan:
                for session, numbers in plan:
                    share = shares.get(session)
                    if share is None:
                        shares[session] = [row, numbers]
                    else:
                        share += (row, numbers)
        portions: dict[Any, Portion] = {}
        deliver, origin = self._subscribers.deliver, self._origin
        for session, share in shares.items():
            if len(share) == 2:
                key, numbers = share
                portion = portions.get(key)
                if portion is None:
                    portion = portions[key] = batch.portion((key,), origin, base, time)
                deliver(session, [numbers, 1], portion)
                stream.deliveries += 1
                continue
            step = _rows_at_once(session, len(share) // 2)
            for start in range(0, len(share), 2 * step):
                rows = tuple(share[start : start + 2 * step : 2])
                portion = portions.get(rows)
                if portion is None:
                    portion = portions[rows] = batch.portion(rows, origin, base, time)
                stream.deliveries += portion.count
                deliver(session, _routes(share[start + 1 : start + 2 * step : 2]), portion)

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
            plan = self._plans[subscriptions] = tuple(numbers_of.items())
        return plan


def _rows_at_once(session: ClientSession, count: int) -> int:
    """How many of `count` rows one DELIVER may have, if each were for all subscriptions of the session."""
    numbers = len(session.subscriptions)
    return count if count * numbers <= ROUTE_NUMBERS_MAX else max(1, ROUTE_NUMBERS_MAX // numbers)


def _routes(numbers: list[list[int]]) -> list[Any]:
    """Routes of events in order: one run when they are all for the same subscriptions, else a run for each."""
    if numbers.count(numbers[0]) == len(numbers):
        return [numbers[0], len(numbers)]
    routes: list[Any] = [1] * (2 * len(numbers))
    routes[::2] = numbers
    return routes
