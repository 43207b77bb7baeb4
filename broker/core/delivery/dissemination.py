"""Dissemination: one batch on its way from its publisher to the connections that want some of it.

A **plan** says which sessions get an event, and under which of their subscription numbers. Every row of a batch gets
its plan, by one of two ways:

    topics alone decide    a lane remembers the plan of a topic: one look-up an event, nothing matched twice
    conditions decide      the index answers with groups of rows, and each group has one plan

Batches of one stream that one turn brought are gathered and go out together: the cost of a DELIVER is paid once for
all of them. Then rows are sorted by session, in order, and each session gets one portion of the batch. Sessions that
get the same rows share the portion, encoded bytes included; when all rows have one plan, the portion is the batch
itself and no event costs anything.

Identities of subscriptions are never used twice, so a remembered plan of a set of them cannot become wrong, only
useless. Lanes belong to a stream and are forgotten when its subscriptions change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from operator import itemgetter
from typing import Any, TypeAlias

from headgate.protocol.data import LEVEL_COLUMNS, Batch, Columns, JointBatch, LogShift, Portion, join_batches, join_u32
from headgate.protocol.errors import ProtocolViolation

from ..limits import (
    DEFAULT_LIMITS,
    GATHERED_BYTES_MAX,
    GATHERED_EVENTS_MAX,
    SMALL_BATCH_EVENTS_MAX,
    WHOLE_BYTES_MAX,
    Limits,
)
from .amending import Amendment, judged
from .dynamic import Carrier, Suppression, Undecided
from .streams import Plan, Stream
from .subscribers import ClientSession, Subscribers

__all__ = ["Dissemination", "Serving"]

Serving: TypeAlias = tuple[str, int, Sequence[int], int]
"""Where the events of a batch stand: whose sequence, from where on, the place of each after that, and their time."""


@dataclass(slots=True)
class _Gathered:
    """Batches of one stream that were matched and wait to go out together; their events follow one another."""

    stream: Stream | None
    base: int
    time_us: int
    count: int
    size: int
    batches: list[Batch]
    plans: list[list[Plan]]  # of each batch: one for each of its rows, or one for all; none while it is not matched
    unmatched: int = 0


Group: TypeAlias = tuple[tuple[int, ...], Sequence[int]]
"""What the index answers: these subscriptions, these rows."""

Filter: TypeAlias = Callable[[Iterable[Group]], Iterable[Group]]

_NOTHING = _Gathered(None, 0, 0, 0, 0, [], [])


class Dissemination:
    """Carries batches to sessions; positions are handed out here."""

    def __init__(self, subscribers: Subscribers, origin: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._subscribers = subscribers
        self._origin = origin
        self._plans: dict[tuple[int, ...], Plan] = {}
        self.gathered = _NOTHING
        self.suppression = Suppression(subscribers.carriers, subscribers.references, limits)
        self._widest = 1  # the most subscriptions of one session in any plan so far
        self.sequence = 0

    def carry(self, stream: Stream, batch: Batch, time_us: int) -> None:
        """Match a batch; the next `settle` delivers it. Raises TopicError or ProtocolViolation, having done nothing."""
        topics = batch.topic_list()
        suppression, amendments = self.suppression, self._subscribers.amendments
        unmatched = 0
        try:
            plans = list(map(stream.lanes.__getitem__, topics))
        except KeyError:
            stream.check_topics(topics)
            if suppression.carriers or amendments or not _may_wait(batch, stream):
                plans = self._plans_of(stream, batch, topics)
            else:
                plans, unmatched = [], 1
        if amendments:
            plans = judged(batch, plans, self._origin, self.sequence, range(batch.count), self._merged)
        if suppression.carriers:
            plans = suppression.decide(batch, plans, time_us, self._merged)
        gathered = self.gathered
        # Joined with others, a topic that all share stands before each.
        size = len(batch.records) + len(batch.topics) * (batch.count if len(topics) == 1 else 1)
        if (
            gathered.stream is not stream
            or gathered.count + batch.count > GATHERED_EVENTS_MAX
            or gathered.size + size > GATHERED_BYTES_MAX
        ):
            if gathered.count:
                self.settle()
            self.gathered = _Gathered(stream, self.sequence, time_us, batch.count, size, [batch], [plans], unmatched)
        else:
            gathered.batches.append(batch)
            gathered.plans.append(plans)
            gathered.count += batch.count
            gathered.size += size
            gathered.unmatched += unmatched
        self.sequence += batch.count
        stream.events += batch.count

    def settle(self) -> None:
        """Deliver what was carried since the last time: batches of one read go out together."""
        gathered = self.gathered
        if not gathered.count:
            return
        self.gathered = _NOTHING
        stream = gathered.stream
        assert stream is not None
        plans = gathered.plans
        if gathered.unmatched:
            self._match_gathered(stream, gathered)
        first = plans[0][0]
        if (len(plans) == 1 and len(plans[0]) == 1) or _all_same(plans, first):
            stream.deliveries += gathered.count * len(first) // 2
            if first:
                self._send_whole(gathered, first)
        else:
            self._spread(stream, gathered)

    def _match_gathered(self, stream: Stream, gathered: _Gathered) -> None:
        """Match the small batches of a turn as one: what a match costs is then shared by all of them."""
        plans = gathered.plans
        places = [place for place, own in enumerate(plans) if not own]
        batches = [gathered.batches[place] for place in places]
        whole = batches[0] if len(batches) == 1 else JointBatch(batches)
        each = self._plans_of(stream, whole, whole.topic_list())
        if len(each) < whole.count:
            each *= whole.count
        start = 0
        for place, batch in zip(places, batches, strict=True):
            plans[place] = each[start : start + batch.count]
            start += batch.count

    def take_sequence(self, count: int) -> int:
        """So many places in this broker's sequence, for events that go out later or elsewhere: the first of them."""
        self.settle()
        self.sequence += count
        return self.sequence - count

    def plans_of(self, stream: Stream, batch: Batch, allowed: Filter | None) -> list[Plan]:
        """The plan of each row, or one for all; `allowed` leaves out what is matched elsewhere.

        Raises ProtocolViolation.
        """
        topics = batch.topic_list()
        if allowed is None:
            return self._plans_of(stream, batch, topics)
        return self._plans_by_condition(stream, batch, topics, allowed)

    def plan_of_clients(self, numbers: tuple[int, ...]) -> Plan:
        """The plan for some of our own clients' subscriptions and their carriers, those of them that still are."""
        by_identity, by_key = self._subscribers.by_identity, self._subscribers.by_key
        carriers = self.suppression.carriers
        theirs = tuple(
            one for one in numbers if one in carriers or (one in by_identity and by_identity[one].session.key in by_key)
        )
        return self._plan(theirs) if theirs else ()

    def plan_of_sessions(self, numbers_of: Mapping[ClientSession, list[int]]) -> Plan:
        """The plan for these sessions, each with the numbers of its subscriptions."""
        flat: list[Any] = []
        for session, numbers in numbers_of.items():
            flat += (session, numbers[0] if len(numbers) == 1 else numbers)
            self._widest = max(self._widest, len(numbers))
        return tuple(flat)

    def relay(
        self, stream: Stream, batch: Batch, plans: list[Plan], serving: Serving, log: LogShift | None = None
    ) -> None:
        """Deliver a batch whose plans are known (one a row, or one for all) and whose events stand where this says;
        after all that was carried."""
        self.settle()
        origin, base, places, time_us = serving
        if self.suppression.carriers or self._subscribers.amendments:
            try:
                plans = judged(batch, plans, origin, base, places, self._merged)
                plans = self.suppression.decide(batch, plans, time_us, self._merged)
            except ProtocolViolation:  # a record that nobody opened before: what it says is not known
                plans = self.suppression.unreadable(batch, plans)
        each = plans if len(plans) > 1 else plans * batch.count
        gathered = _Gathered(stream, 0, time_us, batch.count, 0, [batch], [each])
        self._spread(stream, gathered, lambda portion: _stand(portion, origin, base, places, log))

    def forget_plans(self) -> None:
        """Let go of sessions that ended."""
        self._plans.clear()

    def _plans_of(self, stream: Stream, batch: Batch | JointBatch, topics: Sequence[str]) -> list[Plan]:
        """The plan of each row, or one for all; topics that alone decide get their lane."""
        index = stream.index
        plans: list[Plan] = []
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

    def _plans_by_condition(
        self, stream: Stream, batch: Batch | JointBatch, topics: Sequence[str], allowed: Filter | None = None
    ) -> list[Plan]:
        plans: list[Plan] = [()] * batch.count
        groups: Iterable[Group] = stream.index.match(topics, batch.count, Columns(batch))
        for subscriptions, rows in groups if allowed is None else allowed(groups):
            plan = self._plan(subscriptions)
            for row in rows:
                plans[row] = plan
        return plans

    def _send_whole(self, gathered: _Gathered, plan: Plan) -> None:
        """All rows have one plan: no event costs anything."""
        base = gathered.base
        batches = gathered.batches
        for batch in _in_bulk(batches, self._limits.whole_events) if len(batches) > 1 else batches:
            portion = batch.portion(range(batch.count), self._origin, base, gathered.time_us)
            base += batch.count
            for session, numbers in zip(plan[::2], plan[1::2], strict=True):
                self._subscribers.deliver(session, [numbers, batch.count], portion)

    def _spread(self, stream: Stream, gathered: _Gathered, move: Callable[[Portion], None] | None = None) -> None:
        """Rows with different plans: sort them by session, then one portion each."""
        pairs = zip(gathered.batches, gathered.plans, strict=True)
        sessions, shares, rows, numbers, alone = _by_session(
            _joined([own if len(own) == part.count else own * part.count for part, own in pairs])
        )
        if not rows:
            return
        batch = gathered.batches[0] if len(gathered.batches) == 1 else join_batches(gathered.batches)
        stream.deliveries += len(rows)
        ends = list(accumulate(shares))
        longest = max(shares)
        limits = self._limits
        if longest > limits.batch_events or longest * self._widest > limits.route_numbers:
            sessions, ends = _cut_to_bound(sessions, shares, numbers, limits)
        portions = batch.portions(rows, ends, self._origin, gathered.base, gathered.time_us, not alone)
        if move is not None:
            for portion in {id(portion): portion for portion in portions}.values():
                move(portion)
        for session, routes, portion in zip(sessions, _all_routes(numbers, ends), portions, strict=True):
            self._subscribers.deliver(session, routes, portion)

    def _plan(self, subscriptions: tuple[int, ...]) -> Plan:
        plan = self._plans.get(subscriptions)
        if plan is None:
            by_identity = self._subscribers.by_identity
            numbers_of: dict[ClientSession, list[int]] = {}
            carriers: list[Carrier] = []
            amended: dict[Amendment, list[int]] = {}
            amendments = self._subscribers.amendments
            for identity in subscriptions:
                subscription = by_identity[identity]
                if type(subscription) is Carrier:
                    carriers.append(subscription)
                elif amendments and identity in amendments:
                    amended.setdefault(amendments[identity], []).append(identity)
                else:
                    numbers_of.setdefault(subscription.session, []).append(subscription.number)
            if len(self._plans) >= self._limits.plans:
                self._plans.clear()
            plan = self.plan_of_sessions(numbers_of)
            if carriers or amended:
                plan = Undecided.of(plan, carriers, ((one, tuple(brought)) for one, brought in amended.items()))
            self._plans[subscriptions] = plan
        return plan

    def _merged(self, plan: Plan, members: Iterable[int]) -> Plan:
        """The plan with these members of carriers as well; not remembered, for it hardly ever comes again."""
        numbers_of: dict[ClientSession, list[int]] = {}
        for session, numbers in zip(plan[::2], plan[1::2], strict=True):
            numbers_of[session] = [numbers] if type(numbers) is int else [*numbers]
        by_identity = self._subscribers.by_identity
        for identity in members:
            member = by_identity[identity]
            numbers_of.setdefault(member.session, []).append(member.number)
        return self.plan_of_sessions(numbers_of)


def _may_wait(batch: Batch, stream: Stream) -> bool:
    """Whether a small batch is matched with others of its turn: what conditions read of it is read here.

    Raises ProtocolViolation when it cannot be: so that it is refused now, and alone.
    """
    if batch.count > SMALL_BATCH_EVENTS_MAX:
        return False
    columns = batch.columns
    for name in stream.index.attributes():
        if name in columns:
            batch.column(name)
        elif not batch.complete and not name.startswith(LEVEL_COLUMNS):
            return False  # its records are opened, if its topic has conditions that read this
    return True


def _all_same(plans: Sequence[Sequence[Plan]], first: Plan) -> bool:
    for own in plans:
        if len(own) > 1 and (own[-1] is not first or own.count(first) < len(own)):
            return False
        if own[0] is not first:
            return False
    return True


def _stand(portion: Portion, origin: str, base: int, places: Sequence[int], log: LogShift | None) -> None:
    """Put the events of a portion, which count the rows of their batch, where they stand in their broker's sequence."""
    portion.origin, portion.log = origin, log
    if isinstance(places, range) and places.start == 0:
        portion.base += base
        return
    rows = portion.rows()
    first = places[portion.base + rows[0]]
    own = [places[portion.base + row] - first for row in rows]
    portion.offsets = b"" if own[-1] == portion.count - 1 else join_u32(own)
    portion.base = base + first


def _joined(lists: Iterable[list[Any]]) -> list[Any]:
    """Lists as one: where they are long this takes a third of what walking over them does."""
    joined: list[Any] = []
    for one in lists:
        joined += one
    return joined


def _in_bulk(batches: Sequence[Batch], events_max: int) -> Iterator[Batch]:
    """The batches in order, several as one as long as they stay small enough to be copied."""
    parts: list[Batch] = []
    count = size = 0
    for batch in batches:
        count += batch.count
        size += len(batch.records)
        if parts and (count > events_max or size > WHOLE_BYTES_MAX):
            yield join_batches(parts) if len(parts) > 1 else parts[0]
            parts, count, size = [], batch.count, len(batch.records)
        parts.append(batch)
    yield join_batches(parts) if len(parts) > 1 else parts[0]


def _by_session(
    plans: Sequence[Plan],
) -> tuple[list[ClientSession], list[int], list[int], Sequence[Any], bool]:
    """The sessions that get some of these rows, and how many each gets; the rows, ascending, of one session after the
    other; the numbers that each row is for; and whether each row is for one session alone, which is common and cheaper.
    """
    try:
        rows, shares, sessions, numbers = _of_one_each(plans)
    except ValueError:  # a row for no session, or for several
        pass
    else:
        return sessions, shares, rows, itemgetter(*rows)(numbers) if len(rows) > 1 else numbers, True
    row_of = list(chain.from_iterable(map(repeat, range(len(plans)), [len(plan) // 2 for plan in plans])))
    flat = list(chain.from_iterable(plans))
    places, shares, sessions, numbers = _of_one_each(zip(flat[::2], flat[1::2], strict=True))
    return sessions, shares, [row_of[place] for place in places], [numbers[place] for place in places], False


def _of_one_each(pairs: Iterable[tuple[Any, ...]]) -> tuple[list[int], list[int], list[ClientSession], list[Any]]:
    """The places in `pairs`, ascending, of one session after the other; how many each session has; the sessions in the
    order in which they come; and the numbers of all. Raises ValueError on a plan that is no pair.

    A session holds its own places meanwhile: looking it up in a dictionary was measured to take a tenth longer.
    """
    sessions: list[ClientSession] = []
    numbers: list[Any] = []
    try:
        for place, (session, some) in enumerate(pairs):
            own = session.rows
            if not own:
                sessions.append(session)
            own.append(place)
            numbers.append(some)
        places = [session.rows for session in sessions]
        return _joined(places), list(map(len, places)), sessions, numbers
    finally:
        for session in sessions:
            session.rows = []


def _cut_to_bound(
    whose: Sequence[ClientSession], shares: Sequence[int], numbers: Sequence[Any], limits: Limits
) -> tuple[list[ClientSession], list[int]]:
    """Sessions and the ends of their rows, with as many cuts as it takes that routes stay within their bound."""
    sessions: list[ClientSession] = []
    ends: list[int] = []
    start = 0
    for session, share in zip(whose, shares, strict=True):
        end = start + share
        widest = max(1 if type(some) is int else len(some) for some in numbers[start:end])
        step = min(limits.batch_events, max(1, limits.route_numbers // widest))
        cuts = [*range(start + step, end, step), end]
        sessions += [session] * len(cuts)
        ends += cuts
        start = end
    return sessions, ends


def _all_routes(numbers: Sequence[Any], ends: Sequence[int]) -> Iterator[list[Any] | bytes]:
    """The routes of each share: one run when all its events are for the same subscriptions, else each for its own."""
    try:
        joined = join_u32(numbers)
    except (TypeError, OverflowError):  # several subscriptions of one event, or a number of more than 32 bits
        joined = b""
    start = 0
    for end in ends:
        count = end - start
        if count == 1:
            yield [numbers[start], 1]
        elif joined:
            own = joined[4 * start : 4 * end]
            yield [numbers[start], count] if own == own[:4] * count else own
        else:
            yield _routes(numbers[start:end])
        start = end


def _routes(numbers: Sequence[Any]) -> list[Any] | bytes:
    """The same for one share, whatever its numbers are."""
    first = numbers[0]
    if first == numbers[-1] and numbers.count(first) == len(numbers):
        return [first, len(numbers)]
    try:
        return join_u32(numbers)
    except (TypeError, OverflowError):
        pass
    routes: list[Any] = [1] * (2 * len(numbers))
    routes[::2] = numbers
    return routes
