"""Puts, at the broker that wants something stored: which keys are covered so far, and what is sent again.

A put is cut into parts, each of items on one segment. A part sets out to the owner of the segment's first key and is
passed on from owner to owner; each reports the stretch it has confirmed. What stays uncovered sets out again from where
the gap begins. Storing twice does no harm, so whether a message or its answer was lost makes no difference.

Owners tell puts apart by origin, ticket and part, for longer than their origin may live. So a ticket is a number that
no other life of this broker uses: else an owner who still waits with a put of the former life takes the new one for
it, and confirms the new one when the siblings have acknowledged the old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .identifiers import RING_SIZE, distance
from .keyed_limits import PUT_GAPS_MAX, PUT_ITEMS_WAITING_MAX, PUT_RESEND_SECONDS, PUT_SECONDS_MAX, TICKETS_MAX
from .keyed_messages import Item, pages

__all__ = ["Part", "Puts", "SendPart"]

SendPart = Callable[[int, int, int, int, list[Item], float], None]
"""(ticket, part, start, until, items, now): bring these items to the owners of the keys from start to until."""


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
    """See the head of this file."""

    def __init__(self, answer: Callable[[int, bool], None], send: SendPart, life: int = 0) -> None:
        self._answer = answer
        self._send = send
        self._tickets: dict[int, _Ticket] = {}
        self._last_ticket = life * TICKETS_MAX
        self._look_at = float("inf")
        self.items_waiting = 0
        self.resent = 0

    def __len__(self) -> int:
        """Tickets not yet answered."""
        return len(self._tickets)

    def begin(self, items: Iterable[Item], now: float) -> int:
        """Place these; the number returned is answered with whether they are placed."""
        self._last_ticket += 1
        ticket = self._last_ticket
        segments: dict[tuple[int, int], list[Item]] = {}
        for item in items:
            segments.setdefault((item.low, item.high), []).append(item)
        parts: dict[int, Part] = {}
        for (low, high), together in segments.items():
            for page in pages(together):
                parts[len(parts)] = Part(page, low, distance(low, high) + 1, again_at=now + PUT_RESEND_SECONDS)
        count = sum(len(part.items) for part in parts.values())
        if not parts or self.items_waiting + count > PUT_ITEMS_WAITING_MAX:
            self._answer(ticket, not parts)
            return ticket
        self.items_waiting += count
        self._tickets[ticket] = _Ticket(parts, now + PUT_SECONDS_MAX)
        self._look_at = min(self._look_at, now + PUT_RESEND_SECONDS)
        for number, part in list(parts.items()):
            self._send(ticket, number, part.low, (part.low + part.length - 1) % RING_SIZE, part.items, now)
        return ticket

    def stored(self, number: int, part_number: int, start: int, last: int) -> None:
        """An owner confirmed the keys from start to last; what nobody asked about is ignored."""
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
                self._answer(number, True)

    def tick(self, now: float) -> None:
        """Send again what made no progress, and give up what is too old."""
        if now < self._look_at:
            return
        self._look_at = float("inf")
        for number, ticket in list(self._tickets.items()):
            if now >= ticket.given_up_at:
                del self._tickets[number]
                self.items_waiting -= sum(len(part.items) for part in ticket.parts.values())
                self._answer(number, False)
                continue
            for part_number, part in list(ticket.parts.items()):
                if now >= part.again_at:
                    self._again(number, part_number, part, now)
            self._look_at = min(self._look_at, ticket.given_up_at, now + PUT_RESEND_SECONDS / 4)

    def next_deadline(self) -> float:
        """When to tick."""
        return self._look_at if self._tickets else float("inf")

    def validate(self) -> None:
        """Asserts what must always hold."""
        waiting = [part for ticket in self._tickets.values() for part in ticket.parts.values()]
        assert self.items_waiting == sum(len(part.items) for part in waiting) <= PUT_ITEMS_WAITING_MAX
        assert all(ticket.parts for ticket in self._tickets.values())
        assert not any(part.done for part in waiting)

    def _again(self, number: int, part_number: int, part: Part, now: float) -> None:
        part.again_at = now + PUT_RESEND_SECONDS
        if part.progress:
            part.progress = False
            return
        for start, until in part.gaps()[:PUT_GAPS_MAX]:
            self.resent += 1
            self._send(number, part_number, start, until, part.items, now)
