"""Writes at an owner: stored at once, passed on to the next owner, copied to the siblings, confirmed when it is safe.

A write is confirmed to its origin when

    every sibling acknowledged it, and whoever was one and may still answer for the keys may do so no longer;
    the keys were gained long enough ago that nobody answers for them by the word of their former owner;
    the keys are ours at this moment, by a lease, or because we are alone.

Storing a write that is not confirmed does no harm: it is sent again until somebody confirms it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .identifiers import RING_SIZE, distance
from .keyed_arcs import Stretch
from .keyed_items import Items
from .keyed_leases import Leases
from .keyed_limits import PUT_HOPS_MAX
from .keyed_messages import Item, Kind, pages, written
from .keyed_ownership import Ownership
from .keyed_pending import Pending, Pendings
from .keyed_siblings import Siblings

__all__ = ["Writes"]

SendTo = Callable[[int, int, list[Any]], None]
"""(broker or key, kind, body)"""


class Writes:
    """See the head of this file."""

    def __init__(
        self,
        me: int,
        items: Items,
        ownership: Ownership,
        leases: Leases,
        siblings: Siblings,
        pendings: Pendings,
        tell: SendTo,
        route: SendTo,
    ) -> None:
        self._me = me
        self._items = items
        self._ownership = ownership
        self._leases = leases
        self._siblings = siblings
        self._pendings = pendings
        self._tell = tell
        self._route = route

    def put(
        self, origin: int, ticket: int, part: int, start: int, until: int, hops: int, items: list[Item], now: float
    ) -> None:
        """Store what is ours of the keys from start to until, and pass the rest on."""
        own = self._ownership.own
        if own is None or not own.covers(start):
            self._pass_on(start, hops, [origin, ticket, part, start, until, hops + 1, written(items)])
            return
        steps = min(distance(start, self._me), distance(start, until))
        last = (start + steps) % RING_SIZE
        sent, room = self._store(items, now)
        pending = None
        if room:
            stretch = Stretch((start - 1) % RING_SIZE, last)
            pending = self._pendings.begin(origin, ticket, part, stretch, items)
        if pending is not None:
            pending.waiting = dict.fromkeys(self._siblings.wait_for(items, sent, pending.number))
            self._confirm_one(pending, now)
        if last == until:
            return
        following = (last + 1) % RING_SIZE
        if own.covers(following):  # the ring is all ours, and the segment goes past ourselves
            self.put(origin, ticket, part, following, until, 0, items, now)
        else:
            self._pass_on(following, 0, [origin, ticket, part, following, until, 1, written(items)])

    def spread(self) -> None:
        """What is new here, however it came, and lies in our keys goes to the siblings."""
        news, own = self._items.news, self._ownership.own
        if news and own is not None:
            for page in pages([item for item in news if own.touches(item.low, item.high)]):
                self._siblings.copy(page)
        news.clear()

    def copied(self, sender: int, sequence: int, verdict: int, now: float) -> None:
        """A sibling acknowledges."""
        for number in self._siblings.copied(sender, sequence, verdict, now):
            pending = self._pendings.acknowledge(number, sender)
            if pending is not None:
                self._confirm_one(pending, now)

    def confirm(self, now: float) -> None:
        """Look at all again that siblings have acknowledged."""
        self._pendings.look_at = float("inf")
        for pending in self._pendings.acknowledged():
            self._confirm_one(pending, now)

    def _store(self, items: list[Item], now: float) -> tuple[bool, bool]:
        """Whether they are all news, which the siblings have been sent; and whether there was room."""
        full = self._items.full
        for item in items:
            self._items.merge(item, now)
        sent = self._items.news == items
        self.spread()
        return sent, self._items.full == full

    def _pass_on(self, start: int, hops: int, body: list[Any]) -> None:
        if hops >= PUT_HOPS_MAX:
            return  # the origin sends it again, when the ring may have settled
        handed, after = self._ownership.handed, self._ownership.view.after
        if handed is not None and Stretch(after, handed[0]).covers(start):
            self._tell(handed[0], Kind.PUT, body)
        else:
            self._route(start, Kind.PUT, body)

    def _confirm_one(self, pending: Pending, now: float) -> None:
        """Answer it, when all of the rules say so."""
        own = self._ownership.own
        if own is None or not own.contains(pending.stretch):
            self._pendings.end(pending)
            return
        if pending.waiting:
            return
        earliest = max(self._ownership.confirm_from(pending.stretch), self._siblings.others_until(now))
        if now < earliest:
            self._pendings.look_at = min(self._pendings.look_at, earliest)
        elif self._leases.holds(pending.stretch, now):
            self._pendings.end(pending)
            stretch = pending.stretch
            body = [pending.origin, pending.ticket, pending.part, stretch.first, stretch.last]
            self._tell(pending.origin, Kind.STORED, body)
