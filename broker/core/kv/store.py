"""Keeps the items of one broker: what it owns, what it copies, and what it may answer for; the face has the theory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from headgate.protocol.errors import LocalError

from ..keyspace import NOTHING, Arc, Scope
from ..safeguards import Safeguard
from ..timers import Timers
from .broadcast import Broadcasts
from .config import KvConfig, KvStatistics
from .handover import Fetches, Handover
from .items import Items
from .leases import Leases
from .limits import BROKERS_MAX, ITEM_BYTES_MAX, SIBLINGS_MAX
from .messages import (
    Check,
    Copied,
    Copy,
    CopyVerdict,
    Fetch,
    Granted,
    Item,
    KvEffect,
    Lease,
    Name,
    Offer,
    Page,
    Paged,
    Placed,
    Put,
    Renew,
    Renewed,
    SetOut,
    Stored,
    Stream,
    Tell,
    TellAll,
    Told,
    Unplaced,
    View,
    Walk,
    item_bytes,
)
from .ownership import Ownership
from .replication import Replicas, Siblings, WritesInFlight
from .writes import Orphans, Puts, Writes

__all__ = ["KvStore", "KvConfig", "KvStatistics"]


class KvStore:
    """One broker's store. Its parts append to one list what they have to say; `_carry_on` passes it on."""

    def __init__(self, me: int, config: KvConfig, now: float, timers: Timers | None = None) -> None:
        self.me = me
        self.config = config
        self.effects: list[KvEffect] = []
        self.timers = timers = Timers() if timers is None else timers
        self.linked: dict[int, None] = {}
        self._said: list[KvEffect] = []
        said, lease, limits, rules = self._said, config.lease_seconds, config.limits, config.safeguards
        self.items = Items(said, timers, limits)
        self.puts = Puts(said, timers, config.life if Safeguard.TICKETS_OF_A_LIFE in rules else 0, limits)
        self.orphans = Orphans(self.items, self.puts, timers, limits)
        self.replicas = Replicas(self.items, self.linked, said, timers, lease, limits, rules)
        self.leases = Leases(me, self.linked, said, timers, lease, rules)
        self.fetches = Fetches(self.items, said, limits)
        self.ownership = Ownership(me, self.linked, self.items, self.replicas, said, timers, lease)
        self.handover = Handover(me, self.replicas, self.ownership, self.fetches)
        self.writes_in_flight = WritesInFlight(limits)
        self.siblings = Siblings(me, self.items, self.linked, self.writes_in_flight, said, timers, limits, rules)
        self.broadcasts = Broadcasts(me, self.items, self.linked, said, timers, limits, config.mesh_brokers, rules)
        self.writes = Writes(
            me,
            self.items,
            self.ownership,
            self.leases,
            self.siblings,
            self.writes_in_flight,
            self.broadcasts,
            said,
            timers,
            limits,
        )
        self._scope: Scope | None = None
        self._last_scope = NOTHING
        self._table: dict[type[Any], Callable[[int, Any, float], None]] = {
            Put: self._put,
            Stored: lambda sender, stored, now: self._stored(stored),
            Stream: self._stream,
            Copy: self._copy,
            Copied: lambda sender, it, now: self.writes.copied(sender, it.sequence, it.verdict, now),
            Offer: lambda sender, offer, now: self._merge(offer.items, now),
            Lease: self._lease,
            Granted: self._granted,
            Renew: self._renew,
            Renewed: self._renewed,
            Fetch: self.handover.asked,
            Page: self._page,
            Paged: lambda sender, it, now: self.fetches.paged(sender, it.number),
            Check: self._check,
            TellAll: self._tell_all,
            Told: lambda sender, told, now: self.broadcasts.told(sender, told),
        }
        self._woken: dict[Hashable, Callable[[float], None]] = {
            "tombstones": self.items.forget_tombstones,
            "leases": self.leases.ask_again,
            "ownership": self.ownership.go_on,
            "siblings": self.siblings.go_on,
            "puts": self.puts.go_on,
            "orphans": lambda now: self.orphans.look_through(self._concerns(), self.ownership.view.serving, now),
            "confirm": self.writes.confirm,
            "broadcasts": self.broadcasts.go_on,
        }

    # --- What the caller does ----------------------------------------------------------------------------------------

    def put(self, items: Iterable[Item], now: float) -> int:
        """Place these; the effect Placed or Unplaced names the number returned."""
        listed = list(items)
        for item in listed:
            if item_bytes(item) > ITEM_BYTES_MAX:
                raise LocalError(f"the item {item.name} has more than {ITEM_BYTES_MAX} bytes: store less in it")
        if self.broadcasts.fits(listed) and self.broadcasts.store(listed, now):
            ticket = self.puts.next_ticket()
            self.broadcasts.begin(ticket, listed, self._told(ticket, now), now)
        else:
            ticket = self.puts.begin(listed, now)
        self._carry_on(now)
        return ticket

    def get(self, name: Name) -> Item | None:
        """The live item of this name, when it is held here."""
        item = self.items.table.get(name)
        return item if item is not None and item.value is not None else None

    def view(self, view: View, now: float) -> None:
        """The ring is like this from now on."""
        assert view.me == self.me
        self.replicas.awake(now)
        self.items.alone = view.certain and view.after == self.me
        siblings = tuple(one for one in dict.fromkeys(view.siblings) if one != self.me)[:SIBLINGS_MAX]
        view = view._replace(siblings=siblings, further=view.further[:SIBLINGS_MAX])
        if self.leases.lapsed(now):
            self.ownership.doubt(now)
        if self.ownership.view.serving and not view.serving:
            self.replicas.distrust()
            self.leases.forget()
        self.leases.set_siblings(siblings, now)
        self.siblings.set_siblings(siblings)
        self.writes_in_flight.set_siblings(siblings)
        self.ownership.set_view(view, now)
        self._refresh(now)
        self._carry_on(now)

    @property
    def new(self) -> bool:
        """Whether this broker has answered for no keys yet in this life."""
        return not self.ownership.was_ready

    def unasked(self) -> None:
        """Nobody could ask this broker for anything until now: what it had in the meantime does not count."""
        self.ownership.was_ready = self.ownership.ready is not None

    def all_new(self, since: float, now: float) -> None:
        """Nobody in this ring had answered for keys at the moment `since`, a moment ago; the view shows all of them."""
        if self.new and self.ownership.view.serving and self.ownership.view.siblings:
            self.replicas.awake(now)
            self.ownership.all_new(now)
            self._carry_on(now)
            self.leases.sure_since(since)

    def peer_up(self, identifier: int, now: float) -> None:
        """A new link: whatever was under way on an old one is lost."""
        self.linked[identifier] = None
        self._link_new(identifier, now)

    def peer_down(self, identifier: int, now: float) -> None:
        """The link is gone."""
        self.linked.pop(identifier, None)
        self._link_new(identifier, now)

    def handle(self, sender: int, message: Any, now: float) -> None:
        """A message of another broker's store, one of STORE."""
        self.replicas.awake(now)
        if type(message) not in (Put, Stored) and sender not in self.linked:
            return  # of a link that is gone
        self._table[type(message)](sender, message, now)
        self._carry_on(now)

    def drop_where(self, predicate: Callable[[Name], bool], now: float) -> int:
        """Remove the items with such names, everywhere: each becomes a tombstone of its own version.

        A newer version brings an item back. Returns how many there were.
        """
        found = [item for item in self.items.table.values() if item.value is not None and predicate(item.name)]
        for item in found:
            self.items.merge(item._replace(value=None), now)
        self._carry_on(now)
        return len(found)

    def tick(self, now: float) -> None:
        """Wake the parts whose time has come; at the latest at `timers.next`."""
        self.replicas.awake(now)
        if self.leases.lapsed(now):
            self.ownership.doubt(now)
        self.timers.hand_out(self.timers.due(now), lambda key: self._wake_part(key, now), now)
        self._carry_on(now)

    def _wake_part(self, key: Hashable, now: float) -> None:
        if isinstance(key, tuple):
            self.replicas.go_on(key[1], now)
        else:
            self._woken[key](now)

    def scope(self, now: float) -> Scope:
        """The keys that this broker may answer for at this moment, and not a moment longer."""
        scope = self._scope
        if scope is not None and now < scope.until:
            return scope
        parts = [*self.leases.scope(now), *self.replicas.scope(now)]
        until = min((end for _, end in parts), default=float("inf"))
        last = self._last_scope
        scope = Scope((stretch for stretch, _ in parts), until, last.epoch)
        if not scope.same_keys(last):
            scope.epoch = last.epoch + 1
        self._scope = self._last_scope = scope
        return scope

    def statistics(self) -> KvStatistics:
        """A snapshot."""
        return KvStatistics(
            items=len(self.items),
            tombstones=self.items.tombstones,
            own=self.ownership.own,
            ready=self.ownership.ready,
            siblings=self.siblings.present,
            replicas=tuple(self.replicas.held),
            puts_waiting=len(self.puts),
            puts_resent=self.puts.resent,
            puts_unconfirmed=len(self.writes_in_flight),
            puts_dropped=self.writes_in_flight.dropped,
            streams=self.siblings.streams,
            differences=self.siblings.differences,
            offered=self.replicas.offered,
            settled=self.ownership.settled,
            full=self.items.full,
        )

    def validate(self) -> None:
        """Asserts that every part is sound, and that nothing is left unsaid."""
        parts = (self.items, self.puts, self.broadcasts, self.replicas, self.leases, self.ownership)
        for part in (*parts, self.writes_in_flight, self.siblings):
            part.validate()
        assert not self.items.news and not self._said
        assert not self.ownership.changed

    # --- Copies of our keys, and ours of others' ---------------------------------------------------------------------

    def _put(self, sender: int, put: Put, now: float) -> None:
        self.writes.put(put.origin, put.ticket, put.part, put.start, put.until, put.hops, put.items, now)

    def _lease(self, sender: int, lease: Lease, now: float) -> None:
        ready = self.ownership.ready
        if ready is None:
            return
        until = min(self.leases.until(ready, now), now + self.config.lease_seconds)  # no longer than we may ourselves
        granted = self.siblings.granted(sender, now, until)
        left = 0 if granted is None else int((until - now) * 1000)
        if left or not self.siblings.counts(sender):
            self._said.append(Tell(sender, Granted(lease.number, (granted or ready).after, left)))

    def _stream(self, sender: int, page: Stream, now: float) -> None:
        if not self._refuses(sender, page.sequence) and self.replicas.stream(sender, page, now):
            self._scope = None

    def _copy(self, sender: int, copy: Copy, now: float) -> None:
        if not self._refuses(sender, copy.sequence):
            self.replicas.copy(sender, copy.sequence, copy.items, now)

    def _check(self, sender: int, check: Check, now: float) -> None:
        if not self._refuses(sender, check.sequence):
            self.replicas.check(sender, check.sequence, check.after, check.count, check.digest, now)

    def _refuses(self, sender: int, sequence: int) -> bool:
        """Whether the sender's keys are ours by now: then nothing of it is acknowledged."""
        own = self.ownership.own
        if own is None or not own.covers(sender):
            return False
        self._said.append(Tell(sender, Copied(sequence, int(CopyVerdict.REFUSED))))
        return True

    def _granted(self, sender: int, grant: Granted, now: float) -> None:
        self.replicas.granted(sender, grant.number, grant.after, grant.milliseconds / 1000, now)
        self._scope = None

    def _tell_all(self, sender: int, message: TellAll, now: float) -> None:
        if self.broadcasts.store(message.items, now):
            self._said.append(Tell(sender, self._told(message.ticket, now)))

    def _told(self, ticket: int, now: float) -> Told:
        """What this broker says of its arc, and of the copies that it holds, to a broker that told it something."""
        own, siblings = self.ownership.own, list(self.ownership.view.siblings)
        ready = own is not None and own == self.ownership.ready and self.siblings.others_until(now) <= now
        ready = ready and own is not None and self.ownership.confirm_from(own) <= now and self.leases.holds(own, now)
        return Told(
            ticket, ready, self.me if own is None else own.after, siblings, self.replicas.open_copies(now)[:BROKERS_MAX]
        )

    # --- Leases ------------------------------------------------------------------------------------------------------

    def _renew(self, sender: int, renew: Renew, now: float) -> None:
        self.leases.asked(sender, renew.number, Arc(renew.after, sender), self.ownership.own, now)

    def _renewed(self, sender: int, renewed: Renewed, now: float) -> None:
        if self.leases.renewed(sender, renewed.number, renewed.verdict, now):
            self.ownership.doubt(now)
        self._scope = None
        self.writes.confirm(now)

    # --- Handover ----------------------------------------------------------------------------------------------------

    def _page(self, sender: int, page: Page, now: float) -> None:
        self._merge(page.items, now)
        self._said.append(Tell(sender, Paged(page.number)))
        self.ownership.paged(sender, page.number, page.last, page.verdict, now)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _carry_on(self, now: float) -> None:
        """Pass on what the parts said, to other parts of this store or to the caller, until nothing is left."""
        said = self._said
        while True:
            while said:
                events = said[:]
                said.clear()
                for event in events:
                    if isinstance(event, SetOut):
                        part = event
                        self.writes.put(self.me, part.ticket, part.part, part.start, part.until, 0, part.items, now)
                    elif isinstance(event, Tell) and event.identifier == self.me:
                        self._stored(event.message)  # the one thing a broker says to itself
                    elif isinstance(event, Walk):
                        self.puts.begin(event.items, now, event.ticket)
                    elif isinstance(event, Placed | Unplaced) and self.orphans.owns(event.ticket):
                        self.orphans.answered(event.ticket, isinstance(event, Placed), self._concerns())
                    else:
                        self.effects.append(event)
            self.writes.spread()
            if self.replicas.shrunk:
                self.replicas.shrunk = False
                self.orphans.changed(now)
            if self.ownership.changed:
                self._refresh(now)
            if not said:
                return

    def _stored(self, stored: Stored) -> None:
        if stored.origin == self.me:  # and not who had these keys before us, and is gone
            self.puts.stored(stored.ticket, stored.part, stored.start, stored.last)

    def _link_new(self, identifier: int, now: float) -> None:
        self.fetches.forget(identifier)
        self.replicas.awake(now)
        self.replicas.link_new(identifier)
        self.siblings.link_new(identifier)
        self.ownership.link_new(identifier, now)
        if self.leases.lapsed(now):
            self.ownership.doubt(now)
        self.leases.link_new(identifier, now)
        self.siblings.go_on(now)
        self._carry_on(now)

    def _merge(self, items: Iterable[Item], now: float) -> None:
        for item in items:
            self.items.merge(item, now)

    def _refresh(self, now: float) -> None:
        """Our keys, or those next to us, are not the same as before."""
        self.ownership.changed = False
        ready = self.ownership.ready
        self.leases.set_ours(ready, now)
        self.siblings.set_ours(ready, now)
        self.orphans.changed(now)
        self._scope = None
        self.writes.confirm(now)

    def _concerns(self) -> list[Arc]:
        own = self.ownership.own
        return [*self.replicas.arcs(), *([] if own is None else [own])]
