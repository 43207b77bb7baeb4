"""Replicas: the copies a broker holds of the keys of those before it, and until when it may answer from them.

The other half of `keyed_siblings.py`. A replica is *whole* once all pages of a stream from its owner came; from then on
the owner's writes keep it so, as long as the link lasts. While it is whole the broker asks, four times a lease, whether
it may answer from it, and the owner's yes counts from the moment of asking: a broker that stood still wakes up with all
its grants over, whatever answers still lie in its sockets.

When the owner dies, the copy stays whole for a while after its grant, long enough to take his keys over with it. But
not when he lives, and goes on without us: he says so when he is asked and we are no sibling of his any more; and who
stood still past the end of a grant may have been given up, and asked nobody.

A replica can be *closed* against its owner: somebody else has taken the keys over and copied them from here, so a write
of the former owner must not be acknowledged any more, or he might confirm what the new one never sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .identifiers import RING_SIZE
from .keyed_arcs import Stretch
from .keyed_former import Comers
from .keyed_items import Items, Merged
from .keyed_limits import NUMBERS_REMEMBERED_MAX, OFFER_PAGES_MAX, PROMOTE_SECONDS, REPLICAS_MAX
from .keyed_messages import Copied, Item, Kind, Name, pages, written

__all__ = ["Replica", "Replicas", "is_covered", "remember"]

SendTo = Callable[[int, int, list[Any]], None]


def remember(asked: dict[int, float], number: int, now: float) -> None:
    """Keep the time of a question, and not too many of them."""
    asked[number] = now
    if len(asked) > NUMBERS_REMEMBERED_MAX:
        del asked[next(iter(asked))]


def is_covered(stretch: Stretch, pieces: Iterable[Stretch]) -> bool:
    """Whether the pieces together cover all of a stretch."""
    held = list(pieces)
    if any(piece.size == RING_SIZE for piece in held):
        return True
    last, left = stretch.last, stretch.size
    while left > 0:
        fitting = next((piece for piece in held if piece.covers(last)), None)
        if fitting is None:
            return False
        left -= Stretch(fitting.after, last).size
        last = fitting.after
    return True


@dataclass(slots=True)
class Replica:
    """What is held for one owner."""

    owner: int
    heard_at: float
    arc: Stretch | None = None
    """Whole for these keys; None before the first stream has ended."""
    piece: Stretch | None = None
    """The stream under way."""
    seen: dict[Name, None] = field(default_factory=dict)
    offers: list[Name] = field(default_factory=list)
    fresh: bool = False
    """Whole, and the link has been up ever since."""
    sequence: int = 0
    """The last number of the owner's that was taken in."""
    number: int = 0
    asked: dict[int, float] = field(default_factory=dict)
    ask_at: float = float("inf")
    granted: Stretch | None = None
    until: float = 0.0
    left_out: bool = False
    """The owner goes on without us as soon as the grant is over, or may have done so: the copy is whole no longer."""
    comers: Comers = field(default_factory=Comers)
    closed_until: float = 0.0


class Replicas:
    """See the head of this file."""

    def __init__(self, items: Items, linked: dict[int, None], send: SendTo, lease_seconds: float) -> None:
        self._items = items
        self._linked = linked
        self._send = send
        self._lease_seconds = lease_seconds
        self.held: dict[int, Replica] = {}
        self.shrunk = False
        """Something is held for nobody any more; the caller takes it back."""
        self.offered = 0
        self._awake_at = 0.0

    # --- From the owner ----------------------------------------------------------------------------------------------

    def stream(self, sender: int, body: list[Any], now: float) -> bool:
        """A page of everything. Whether the replica is whole with it."""
        sequence, first, after, upto, items = body[0], body[1], body[3], body[4], body[5]
        last: bool = body[2]
        replica = self._replica(sender, sequence, now)
        piece = Stretch(after, upto)
        if replica is None or (not first and replica.piece != piece) or not self._fits(replica, piece):
            self._send(sender, Kind.COPIED, [sequence, int(Copied.REFUSED)])
            return False
        if first:
            replica.piece, replica.seen, replica.offers = piece, {}, []
        self._take(replica, items, now)
        if last:
            self._offer(replica, piece)
            replica.piece, replica.seen, replica.offers = None, {}, []
            former, replica.arc = replica.arc, Stretch(piece.after, sender)
            self.shrunk = self.shrunk or (former is not None and not replica.arc.contains(former))
            replica.fresh = True
            self._items.watch(sender, replica.arc)
        self._send(sender, Kind.COPIED, [sequence, int(Copied.STORED)])
        if last:
            self._ask(replica, now)
        return last

    def copy(self, sender: int, sequence: int, items: list[Item], now: float) -> None:
        """A write of the owner."""
        replica = self._replica(sender, sequence, now)
        if replica is None:
            self._send(sender, Kind.COPIED, [sequence, int(Copied.REFUSED)])
            return
        stored = self._take(replica, items, now)
        self._send(sender, Kind.COPIED, [sequence, int(Copied.STORED if stored else Copied.REFUSED)])

    def check(self, sender: int, sequence: int, after: int, count: int, digest: int, now: float) -> None:
        """The owner's keys, as he counts them."""
        replica = self.held.get(sender)
        verdict = Copied.DIFFERENT
        if replica is not None:
            replica.sequence = sequence
            self._end_stream(replica)  # he compares only when he is not sending
        if replica is not None and replica.arc is not None:
            replica.heard_at = now
            arc = Stretch(after, sender)
            if replica.arc.contains(arc):
                self.shrunk = self.shrunk or replica.arc != arc
                replica.arc = arc
                self._items.watch(sender, arc)
                tally = self._items.watched(sender)
                assert tally is not None
                verdict = Copied.STORED if (tally.count, tally.digest) == (count, digest) else Copied.DIFFERENT
        self._send(sender, Kind.COPIED, [sequence, int(verdict)])

    def granted(self, sender: int, number: int, after: int, seconds: float, now: float) -> None:
        """The owner says yes: from when it was asked."""
        replica = self.held.get(sender)
        asked_at = replica.asked.pop(number, None) if replica is not None else None
        if replica is None or asked_at is None or replica.arc is None:
            return
        if not seconds:
            replica.left_out = True
            self._stop(replica)
            return
        arc = Stretch(after, sender)
        if replica.arc.contains(arc):
            replica.heard_at = now
            replica.granted = arc
            replica.until = max(replica.until, self._good_until(asked_at, now, min(seconds, self._lease_seconds)))
            if replica.until > now:
                replica.left_out, replica.comers = False, Comers()

    # --- From the caller ---------------------------------------------------------------------------------------------

    def link_new(self, identifier: int) -> None:
        """Writes may have been missed: asks for no more grants until all was sent again."""
        replica = self.held.get(identifier)
        if replica is not None:
            replica.fresh = False
            replica.sequence = 0
            self._end_stream(replica)
            replica.ask_at = float("inf")
            replica.asked.clear()

    def close(self, stretch: Stretch, but: int, now: float) -> None:
        """Somebody else has copied these keys from here: no more writes of their former owners, for a while."""
        for replica in self.held.values():
            if replica.owner != but and replica.arc is not None and replica.arc.overlaps(stretch):
                replica.closed_until = now + 2 * self._lease_seconds
                replica.comers.came(but, now + self._lease_seconds)
                self._stop(replica)
                if replica.owner in self._linked and replica.sequence:  # should he be alive, he begins anew later
                    self._send(replica.owner, Kind.COPIED, [replica.sequence, int(Copied.REFUSED)])

    def alive(self, stretch: Stretch, but: int, now: float) -> bool:
        """Whether an owner of some of these keys is linked and let us answer for them a moment ago."""
        return any(
            replica.fresh and replica.until > now and replica.owner in self._linked
            for replica in self.held.values()
            if replica.owner != but and replica.arc is not None and replica.arc.overlaps(stretch)
        )

    def awake(self, now: float) -> None:
        """Called whenever anything happens, which is several times a lease, or we stood still."""
        if now > self._awake_at + self._lease_seconds / 2:
            self._stood_still(now)
        self._awake_at = now

    def distrust(self) -> None:
        """We were away without knowing: no replica is whole any more."""
        for replica in self.held.values():
            replica.arc = None
            self.shrunk = True
            self._items.watch(replica.owner, None)
            self.link_new(replica.owner)

    def whole(self, asker: int | None, now: float) -> list[Stretch]:
        """What there is a whole copy of here, or was a moment ago, for this broker to take keys over with; None: us."""
        return [
            replica.arc
            for replica in self.held.values()
            if replica.arc is not None
            and replica.until > now - PROMOTE_SECONDS
            and not replica.left_out
            and replica.comers.leave_whole_for(asker, now)
        ]

    def scope(self, now: float) -> list[tuple[Stretch, float]]:
        """What may be answered for, and until when."""
        return [
            (replica.granted, replica.until)
            for replica in self.held.values()
            if replica.granted is not None and replica.until > now
        ]

    def arcs(self) -> list[Stretch]:
        """Everything that is held for somebody, whole or on its way."""
        found = [replica.arc for replica in self.held.values() if replica.arc is not None]
        return found + [replica.piece for replica in self.held.values() if replica.piece is not None]

    # --- Time --------------------------------------------------------------------------------------------------------

    def tick(self, now: float, retain_seconds: float) -> None:
        """Ask for grants; let go of what nobody keeps up to date."""
        stale = [one for one, replica in self.held.items() if now >= replica.heard_at + retain_seconds]
        for owner in stale:
            del self.held[owner]
            self._items.watch(owner, None)
            self.shrunk = True
        for replica in self.held.values():
            if now >= replica.ask_at:
                self._ask(replica, now)

    def next_deadline(self, retain_seconds: float) -> float:
        """When to tick."""
        ends = [min(replica.ask_at, replica.heard_at + retain_seconds) for replica in self.held.values()]
        return min(ends, default=float("inf"))

    def validate(self) -> None:
        """Asserts what must always hold."""
        assert len(self.held) <= REPLICAS_MAX
        for replica in self.held.values():
            assert replica.piece is not None or not replica.seen
            assert len(replica.asked) <= NUMBERS_REMEMBERED_MAX
            assert not replica.fresh or replica.arc is not None

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _replica(self, owner: int, sequence: int, now: float) -> Replica | None:
        replica = self.held.get(owner)
        if replica is None and len(self.held) < REPLICAS_MAX:
            replica = self.held[owner] = Replica(owner, now)
        if replica is not None:
            replica.sequence = sequence
        if replica is None or now < replica.closed_until:
            return None
        replica.heard_at = now
        return replica

    def _fits(self, replica: Replica, piece: Stretch) -> bool:
        if piece.last == replica.owner:
            return True
        return replica.fresh and replica.arc is not None and replica.arc.after == piece.last

    def _take(self, replica: Replica, items: list[Item], now: float) -> bool:
        stored = True
        for item in items:
            merged = self._items.merge(item, now)
            if merged is Merged.NEWER and not _of_concern(replica, item):
                self.shrunk = True
            stored = stored and merged is not Merged.FULL
            if replica.piece is not None:
                replica.seen[item.name] = None
            if merged is Merged.OLDER:
                self._offer_one(replica, item.name)
        return stored

    def _offer_one(self, replica: Replica, name: Name) -> None:
        if replica.piece is not None:
            replica.offers.append(name)
        else:
            self._send(replica.owner, Kind.OFFER, [written([self._items.table[name]])])

    def _offer(self, replica: Replica, piece: Stretch) -> None:
        """What lies here and was not sent, or is newer here."""
        table = self._items.table
        newer = [table[name] for name in dict.fromkeys(replica.offers) if name in table]
        unsent = [item for item in self._items.touching(piece) if item.name not in replica.seen]
        for number, page in enumerate(pages([*newer, *unsent])):
            if number >= OFFER_PAGES_MAX:
                return
            self.offered += len(page)
            self._send(replica.owner, Kind.OFFER, [written(page)])

    def _ask(self, replica: Replica, now: float) -> None:
        if replica.fresh and replica.owner in self._linked:
            replica.number += 1
            remember(replica.asked, replica.number, now)
            replica.ask_at = now + self._lease_seconds / 4
            self._send(replica.owner, Kind.LEASE, [replica.number])
        else:
            replica.ask_at = float("inf")

    def _end_stream(self, replica: Replica) -> None:
        self.shrunk = self.shrunk or replica.piece is not None
        replica.piece, replica.seen, replica.offers = None, {}, []

    def _stop(self, replica: Replica) -> None:
        """No more asking and no more answers; what was granted runs out."""
        replica.fresh = False
        replica.ask_at = float("inf")
        replica.asked.clear()

    def _stood_still(self, now: float) -> None:
        for replica in self.held.values():
            replica.left_out = replica.left_out or replica.until <= now

    def _good_until(self, asked_at: float, now: float, seconds: float) -> float:
        return asked_at + seconds


def _of_concern(replica: Replica, item: Item) -> bool:
    arcs = (replica.arc, replica.piece)
    return any(arc is not None and arc.touches(item.low, item.high) for arc in arcs)
