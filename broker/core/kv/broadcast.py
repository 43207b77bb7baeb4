"""Broadcasts: items of the whole ring are told to every broker at once, and confirmed when all have answered for it.

What a broker says of itself (the interest of a stream, a schema) is an item at every key, so every broker stores it. As
a put it would walk round the ring from owner to owner, each of which waits for its siblings. Told to all at once it
takes two link times and 2 (N - 1) messages, whatever N is.

It is confirmed by the same rule as a put: each key's owner holds it, with a lease, and so does every broker that may
answer for the key. Each broker answers (`Told`) that it has stored the items; whether its arc is ready (complete,
leased, with no other broker's grant or former lease on it), and which siblings copy it; and of which owners it has a
whole copy that is not closed. The origin puts the answers together: an arc counts when its owner is ready and each of
its siblings said that it copies that owner; when these arcs cover the ring, the items are placed.

Why that is enough. A broker that takes keys over later copies them from one that had answered, so it gets the items.
One that took them over before, unknown to the origin, closed the copies from which it took them, or was handed them by
their owner: then an arc is missing. What is missing after all have answered, or after `broadcast_seconds`, sets out
along the ring as a put does (`Walk`): so a wrong idea of who is there costs time and nothing else. Above
`mesh_brokers` not all brokers are linked, and nothing is broadcast.

An owner does not copy such items to its siblings, which have been told. It remembers their names (`uncopied`), and
copies them if they come as a put after all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..keyspace import RING_SIZE, Arc
from ..safeguards import SAFEGUARDS, Safeguard
from ..timers import Timers
from .items import Items
from .limits import KvLimits
from .messages import Item, KvEffect, Name, Placed, Tell, TellAll, Told, Walk, pages
from .replication import is_covered

__all__ = ["Broadcasts"]


@dataclass(slots=True)
class _Broadcast:
    items: list[Item]
    answers: dict[int, Told | None]
    walks_at: float


class Broadcasts:
    """Tells every broker what is of the whole ring, and puts their answers together."""

    def __init__(
        self,
        me: int,
        items: Items,
        linked: dict[int, None],
        effects: list[KvEffect],
        timers: Timers,
        limits: KvLimits,
        mesh_brokers: int,
        safeguards: frozenset[Safeguard] = SAFEGUARDS,
    ) -> None:
        self._safeguards = safeguards
        self._mesh_brokers = mesh_brokers
        self._limits = limits
        self._me = me
        self._items = items
        self._linked = linked
        self._effects = effects
        self._timers = timers
        self._under_way: dict[int, _Broadcast] = {}
        self.uncopied: dict[Name, None] = {}

    def fits(self, items: list[Item]) -> bool:
        """Whether these may be broadcast: each of the whole ring, in one message, to brokers that are all linked."""
        return (
            bool(items)
            and len(self._linked) < self._mesh_brokers
            and len(self._under_way) < self._limits.broadcasts
            and all(item.low == 0 and item.high == RING_SIZE - 1 for item in items)
            and next(pages(items, self._limits.page_items)) == items
        )

    def begin(self, ticket: int, items: list[Item], own: Told, now: float) -> None:
        """Tell them all; `own` is what this broker would answer itself, which has stored them."""
        answers: dict[int, Told | None] = {self._me: own, **dict.fromkeys(self._linked)}
        self._under_way[ticket] = _Broadcast(items, answers, now + self._limits.broadcast_seconds)
        message = TellAll(ticket, items)
        for broker in self._linked:
            self._effects.append(Tell(broker, message))
        self._look(ticket)
        self._set_timer()

    def told(self, sender: int, answer: Told) -> None:
        """An answer came."""
        broadcast = self._under_way.get(answer.ticket)
        if broadcast is not None and sender in broadcast.answers:
            broadcast.answers[sender] = answer
            self._look(answer.ticket)

    def store(self, items: Iterable[Item], now: float) -> bool:
        """Another broker told these, or we are about to. Whether there was room."""
        before, full = len(self._items.news), self._items.full
        for item in items:
            self._items.merge(item, now)
        for item in self._items.news[before:]:
            if item.value is not None:
                self.uncopied[item.name] = None
        del self._items.news[before:]
        while len(self.uncopied) > self._limits.broadcast_names:  # the oldest are copied after all
            name = next(iter(self.uncopied))
            del self.uncopied[name]
            if name in self._items.table:
                self._items.news.append(self._items.table[name])
        return self._items.full == full

    def take_uncopied(self, items: Iterable[Item]) -> list[Item]:
        """Those of the items that the siblings were not sent by us; and what is too much to remember."""
        names = [item.name for item in items if item.name in self.uncopied]
        names += list(self.uncopied)[: max(0, len(self.uncopied) - self._limits.broadcast_names)]
        for name in names:
            self.uncopied.pop(name, None)
        return [self._items.table[name] for name in dict.fromkeys(names) if name in self._items.table]

    def go_on(self, now: float) -> None:
        """Who has not answered by now is not waited for."""
        for ticket, broadcast in list(self._under_way.items()):
            if now >= broadcast.walks_at:
                self._walk(ticket)
        self._set_timer()

    def _look(self, ticket: int) -> None:
        answers = self._under_way[ticket].answers
        if any(answer is None for answer in answers.values()):
            return
        unready = Safeguard.BROADCAST_READY not in self._safeguards
        arcs = [Arc(one.after, broker) for broker, one in answers.items() if one and (one.ready or unready)]
        kept = [arc for arc in arcs if all(self._copies(answers, arc.last, one) for one in _siblings(answers, arc))]
        if is_covered(Arc(self._me, self._me), kept):
            self._confirm(ticket)
            self._set_timer()
        else:
            self._walk(ticket)

    def _copies(self, answers: dict[int, Told | None], owner: int, sibling: int) -> bool:
        answer = answers.get(sibling)
        return answer is not None and owner in answer.owners

    def _confirm(self, ticket: int) -> None:
        del self._under_way[ticket]
        self._effects.append(Placed(ticket))

    def _walk(self, ticket: int) -> None:
        if Safeguard.BROADCAST_COVERED not in self._safeguards:
            self._confirm(ticket)
            return
        self._effects.append(Walk(ticket, self._under_way.pop(ticket).items))

    def _set_timer(self) -> None:
        when = min((one.walks_at for one in self._under_way.values()), default=float("inf"))
        self._timers.at("broadcasts", when)

    def validate(self) -> None:
        """Asserts that every broadcast waits for a broker, and that there are no more than may be."""
        assert len(self._under_way) <= self._limits.broadcasts
        assert all(None in one.answers.values() for one in self._under_way.values())


def _siblings(answers: dict[int, Told | None], arc: Arc) -> list[int]:
    answer: Any = answers[arc.last]
    return list(answer.siblings)
