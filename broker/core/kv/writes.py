"""Writes at an owner: stored at once, passed on to the next owner, copied to the siblings, confirmed when it is safe.

A write is confirmed to its origin when

    every sibling acknowledged it, and a former one that may still answer for the keys may do so no longer;
    the keys were gained long enough ago that no broker answers for them by the word of their former owner;
    the keys are ours at this moment, by a lease, or because we are alone.

Storing a write that is not confirmed does no harm: it is sent again until an owner confirms it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..keyspace import RING_SIZE, Arc, distance
from ..timers import Timers
from .broadcast import Broadcasts
from .items import Items
from .leases import Leases
from .limits import (
    DEFAULT_LIMITS,
    PUT_GAPS_MAX,
    PUT_HOPS_MAX,
    PUT_RESEND_SECONDS_MAX,
    PUT_RESEND_SECONDS_MIN,
    RETAIN_ITEMS_PER_TURN,
    TICKETS_MAX,
    KvLimits,
)
from .messages import Item, KvEffect, Placed, Put, Route, SetOut, Stored, Tell, Unplaced, pages
from .ownership import Ownership
from .replication import Pending, Siblings, WritesInFlight

__all__ = [
    "Orphans",
    "Part",
    "Puts",
    "Writes",
]

# Puts, at the broker that wants something stored: which keys are covered so far, and what is sent again.
#
# A put is cut into parts, each of items on one segment. A part sets out to the owner of the segment's first key and is
# passed on from owner to owner; each reports the stretch it has confirmed. What stays uncovered sets out again from
# where the gap begins. Storing twice does no harm, so whether a message or its answer was lost makes no difference.
#
# Owners tell puts apart by origin, ticket and part, for longer than their origin may live. So a ticket is a number
# that no other life of this broker uses: else an owner who still waits with a put of the former life takes the new one
# for it, and confirms the new one when the siblings have acknowledged the old.


@dataclass(slots=True)
class Part:
    """Items of one segment, and what of it is covered, counted from its first key."""

    items: list[Item]
    low: int
    length: int
    covered: list[tuple[int, int]] = field(default_factory=list)
    """Disjoint, in order, both ends included."""
    progress: bool = False
    again_at: float = 0.0
    pause: float = PUT_RESEND_SECONDS_MIN

    def cover(self, first: int, last: int) -> None:
        """The keys low + first to low + last are confirmed."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self.covered, (first, last)]):
            if merged and start <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        self.progress = self.progress or merged != self.covered
        self.covered = merged

    @property
    def done(self) -> bool:
        """Whether all of the segment is covered."""
        return self.covered == [(0, self.length - 1)]

    def gaps(self) -> list[tuple[int, int]]:
        """What is not covered, as keys."""
        found: list[tuple[int, int]] = []
        position = 0
        for start, end in [*self.covered, (self.length, self.length)]:
            if start > position:
                found.append(((self.low + position) % RING_SIZE, (self.low + start - 1) % RING_SIZE))
            position = end + 1
        return found


@dataclass(slots=True)
class _Ticket:
    parts: dict[int, Part]
    given_up_at: float


class Puts:
    """Tracks the puts of this broker: each part sets out (`SetOut`), and again, until it is covered or given up."""

    def __init__(
        self, effects: list[KvEffect], timers: Timers, life: int = 0, limits: KvLimits = DEFAULT_LIMITS
    ) -> None:
        self._effects = effects
        self._timers = timers
        self._tickets: dict[int, _Ticket] = {}
        self._limits = limits
        self._last_ticket = life * TICKETS_MAX
        self.items_waiting = 0
        self.resent = 0

    def __len__(self) -> int:
        """Tickets not yet answered."""
        return len(self._tickets)

    def next_ticket(self) -> int:
        """A number that no put of this broker had."""
        self._last_ticket += 1
        return self._last_ticket

    def begin(self, items: Iterable[Item], now: float, ticket: int = 0) -> int:
        """Place these; the number returned, or given, is answered with whether they are placed."""
        ticket = ticket or self.next_ticket()
        segments: dict[tuple[int, int], list[Item]] = {}
        for item in items:
            segments.setdefault((item.low, item.high), []).append(item)
        parts: dict[int, Part] = {}
        for (low, high), together in segments.items():
            for page in pages(together, self._limits.page_items):
                parts[len(parts)] = Part(page, low, distance(low, high) + 1, again_at=now + PUT_RESEND_SECONDS_MIN)
        count = sum(len(part.items) for part in parts.values())
        if not parts or self.items_waiting + count > self._limits.put_items_waiting:
            self._effects.append(Unplaced(ticket) if parts else Placed(ticket))
            return ticket
        self.items_waiting += count
        self._tickets[ticket] = _Ticket(parts, now + self._limits.put_seconds)
        self._timers.at("puts", min(self._timers.when("puts"), now + PUT_RESEND_SECONDS_MIN))
        for number, part in parts.items():
            last = (part.low + part.length - 1) % RING_SIZE
            self._effects.append(SetOut(ticket, number, part.low, last, part.items))
        return ticket

    def stored(self, number: int, part_number: int, start: int, last: int) -> None:
        """An owner confirmed the keys from start to last; what was not asked about is ignored."""
        ticket = self._tickets.get(number)
        part = ticket.parts.get(part_number) if ticket else None
        if ticket is None or part is None:
            return
        first, end = distance(part.low, start), distance(part.low, last)
        if first > end or end >= part.length:
            return
        part.cover(first, end)
        if part.done:
            del ticket.parts[part_number]
            self.items_waiting -= len(part.items)
            if not ticket.parts:
                del self._tickets[number]
                self._effects.append(Placed(number))
                if not self._tickets:
                    self._timers.at("puts", float("inf"))

    def go_on(self, now: float) -> None:
        """Send again what made no progress, and give up what is too old."""
        look_at = float("inf")
        for number, ticket in list(self._tickets.items()):
            if now >= ticket.given_up_at:
                del self._tickets[number]
                self.items_waiting -= sum(len(part.items) for part in ticket.parts.values())
                self._effects.append(Unplaced(number))
                continue
            for part_number, part in list(ticket.parts.items()):
                if now >= part.again_at:
                    self._again(number, part_number, part, now)
            look_at = min(look_at, ticket.given_up_at, *(part.again_at for part in ticket.parts.values()))
        self._timers.at("puts", look_at)

    def validate(self) -> None:
        """Asserts that items that wait are counted right, and that no part that is done is kept."""
        waiting = [part for ticket in self._tickets.values() for part in ticket.parts.values()]
        assert self.items_waiting == sum(len(part.items) for part in waiting) <= self._limits.put_items_waiting
        assert all(ticket.parts for ticket in self._tickets.values())
        assert not any(part.done for part in waiting)

    def _again(self, number: int, part_number: int, part: Part, now: float) -> None:
        part.pause = min(2 * part.pause, PUT_RESEND_SECONDS_MAX)
        part.again_at = now + part.pause
        if part.progress:
            part.progress = False
            return
        for start, until in part.gaps()[:PUT_GAPS_MAX]:
            self.resent += 1
            self._effects.append(SetOut(number, part_number, start, until, part.items))


# Orphaned items: in no arc of ours, and in none that we hold for another.
#
# They are left over when the ring changes. Perhaps no other broker has them, so they are brought to their owners by an
# ordinary put, and removed when that is done; but not when the ring, or what we hold for others, has changed
# meanwhile. For they may have been of concern again, and be no longer, while what was granted of them then may still
# be answered from here.


class Orphans:
    """Brings orphaned items to their owners. `concerns` are the arcs that we own, or hold for others."""

    def __init__(self, items: Items, puts: Puts, timers: Timers, limits: KvLimits = DEFAULT_LIMITS) -> None:
        self._items = items
        self._puts = puts
        self._timers = timers
        self._limits = limits
        self._under_way: dict[int, list[Item]] = {}

    def __len__(self) -> int:
        """Items on their way."""
        return sum(map(len, self._under_way.values()))

    def changed(self, now: float) -> None:
        """Some items may be orphaned from now on; nothing is looked at before the last change is long past."""
        self._timers.at("orphans", now + self._limits.retain_seconds)
        self._under_way = {ticket: [] for ticket in self._under_way}

    def owns(self, ticket: int) -> bool:
        """Whether a put is one of these."""
        return ticket in self._under_way

    def answered(self, ticket: int, placed: bool, concerns: list[Arc]) -> None:
        """One of these puts was answered."""
        items = self._under_way.pop(ticket)
        for item in items:
            if placed and self._items.table.get(item.name) == item and not _touches(item, concerns):
                self._items.remove(item.name)

    def look_through(self, concerns: list[Arc], serving: bool, now: float) -> None:
        """It is time to look through the items."""
        homeless = [item for item in self._items.table.values() if not _touches(item, concerns)]
        living = [item for item in homeless if item.value is not None]
        if serving:
            for item in homeless:
                if item.value is None:
                    self._items.remove(item.name)
        if not living:
            return
        self._timers.at("orphans", now + self._limits.retain_seconds)
        turn = living[:RETAIN_ITEMS_PER_TURN]
        if serving and not self._under_way and self._puts.items_waiting + len(turn) < self._limits.put_items_waiting:
            self._under_way[self._puts.begin(turn, now)] = turn


def _touches(item: Item, stretches: list[Arc]) -> bool:
    return any(stretch.touches(item.low, item.high) for stretch in stretches)


class Writes:
    """Stores writes at an owner, passes on what is not its own, copies, and confirms."""

    def __init__(
        self,
        me: int,
        items: Items,
        ownership: Ownership,
        leases: Leases,
        siblings: Siblings,
        writes_in_flight: WritesInFlight,
        broadcasts: Broadcasts,
        effects: list[KvEffect],
        timers: Timers,
        limits: KvLimits = DEFAULT_LIMITS,
    ) -> None:
        self._me = me
        self._items = items
        self._ownership = ownership
        self._leases = leases
        self._limits = limits
        self._siblings = siblings
        self._writes_in_flight = writes_in_flight
        self._broadcasts = broadcasts
        self._effects = effects
        self._timers = timers

    def put(
        self, origin: int, ticket: int, part: int, start: int, until: int, hops: int, items: Sequence[Item], now: float
    ) -> None:
        """Store what is ours of the keys from start to until, and pass the rest on."""
        own = self._ownership.own
        if own is None or not own.covers(start):
            self._pass_on(start, hops, Put(origin, ticket, part, start, until, hops + 1, items))
            return
        steps = min(distance(start, self._me), distance(start, until))
        last = (start + steps) % RING_SIZE
        sent, room = self._store(items, now)
        pending = None
        if room:
            stretch = Arc((start - 1) % RING_SIZE, last)
            pending = self._writes_in_flight.begin(origin, ticket, part, stretch, items)
        if pending is not None:
            pending.waiting = dict.fromkeys(self._siblings.wait_for(items, sent, pending.number))
            self._confirm_one(pending, now)
        if last == until:
            return
        following = (last + 1) % RING_SIZE
        if own.covers(following):  # the ring is all ours, and the segment goes past ourselves
            self.put(origin, ticket, part, following, until, 0, items, now)
        else:
            self._pass_on(following, 0, Put(origin, ticket, part, following, until, 1, items))

    def spread(self) -> None:
        """What is new here, however it came, and lies in our keys goes to the siblings."""
        news, own = self._items.news, self._ownership.own
        if news and own is not None:
            for page in pages([item for item in news if own.touches(item.low, item.high)], self._limits.page_items):
                self._siblings.copy(page)
        news.clear()

    def copied(self, sender: int, sequence: int, verdict: int, now: float) -> None:
        """A sibling acknowledges."""
        for number in self._siblings.copied(sender, sequence, verdict, now):
            pending = self._writes_in_flight.acknowledge(number, sender)
            if pending is not None:
                self._confirm_one(pending, now)

    def confirm(self, now: float) -> None:
        """Look at all again that siblings have acknowledged."""
        self._timers.at("confirm", float("inf"))
        for pending in self._writes_in_flight.acknowledged():
            self._confirm_one(pending, now)

    def _store(self, items: Sequence[Item], now: float) -> tuple[bool, bool]:
        """Whether they are all news, which the siblings have been sent; and whether there was room."""
        full = self._items.full
        for item in items:
            self._items.merge(item, now)
        sent = self._items.news == list(items)
        self.spread()
        uncopied = self._broadcasts.take_uncopied(items) if self._broadcasts.uncopied else []
        for page in pages(uncopied, self._limits.page_items):
            self._siblings.copy(page)
        return sent, self._items.full == full

    def _pass_on(self, start: int, hops: int, put: Put) -> None:
        if hops >= PUT_HOPS_MAX:
            return  # the origin sends it again, when the ring may have settled
        handed, after = self._ownership.handed, self._ownership.view.after
        if handed is not None and Arc(after, handed[0]).covers(start):
            self._effects.append(Tell(handed[0], put))
        else:
            self._effects.append(Route(start, put))

    def _confirm_one(self, pending: Pending, now: float) -> None:
        """Answer it, when all of the rules say so."""
        own = self._ownership.own
        if own is None or not own.contains(pending.stretch):
            self._writes_in_flight.end(pending)
            return
        if pending.waiting:
            return
        earliest = max(self._ownership.confirm_from(pending.stretch), self._siblings.others_until(now))
        if now < earliest:
            self._timers.at("confirm", min(self._timers.when("confirm"), earliest))
        elif self._leases.holds(pending.stretch, now):
            self._writes_in_flight.end(pending)
            stretch = pending.stretch
            stored = Stored(pending.origin, pending.ticket, pending.part, stretch.first, stretch.last)
            self._effects.append(Tell(pending.origin, stored))
