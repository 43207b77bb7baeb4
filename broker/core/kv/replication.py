"""Replicates keys: which siblings acknowledged each in-flight write, their copies of ours, and ours of others'.

At the owner there are `WritesInFlight` and `Siblings`, at a sibling `Replicas`.

A replica is *whole* once all pages of a stream from its owner came; from then on
the owner's writes keep it so, as long as the link lasts. While it is whole the broker asks, four times a lease, whether
it may answer from it, and the owner's yes counts from the moment of asking: a broker that stood still wakes up with all
its grants over, whatever answers still lie in its sockets.

When the owner dies, the copy stays whole for a while after its grant, long enough to take its keys over. But not
when the owner lives, and goes on without us: it says so when it is asked and we are no sibling of it any more; and a
broker that stood still past the end of a grant may have been given up, and asked none.

A replica can be *closed* against its owner: another broker has taken the keys over and copied them from here, so a
write of the former owner must not be acknowledged any more, or it might confirm what the new one never sees.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..keyspace import RING_SIZE, Arc
from ..safeguards import SAFEGUARDS, Safeguard
from ..timers import Timers
from .items import Items, Merged
from .limits import (
    DEFAULT_LIMITS,
    NUMBERS_REMEMBERED_MAX,
    PROMOTE_SECONDS,
    REFUSED_SECONDS,
    KvLimits,
)
from .messages import Check, Copied, Copy, CopyVerdict, Item, KvEffect, Lease, Name, Offer, Stream, Tell, pages

__all__ = [
    "Claimants",
    "Pending",
    "WritesInFlight",
    "Replica",
    "Replicas",
    "Siblings",
    "is_covered",
    "remember",
]

# Writes that an owner has stored and not confirmed yet: who is still to acknowledge them.


@dataclass(slots=True)
class Pending:
    """One put, as far as it concerns one owner."""

    number: int
    origin: int
    ticket: int
    part: int
    stretch: Arc
    items: Sequence[Item]
    waiting: dict[int, None] = field(default_factory=dict)
    """Siblings that have not acknowledged it."""


class WritesInFlight:
    """Tracks which siblings have acknowledged each in-flight write."""

    def __init__(self, limits: KvLimits = DEFAULT_LIMITS) -> None:
        self._writes_max = limits.writes_pending
        self._by_number: dict[int, Pending] = {}
        self._by_put: dict[tuple[int, int, int, int], int] = {}
        self._siblings: tuple[int, ...] = ()
        self._number = 0
        self.dropped = 0

    def __len__(self) -> int:
        """How many."""
        return len(self._by_number)

    def begin(self, origin: int, ticket: int, part: int, stretch: Arc, items: Sequence[Item]) -> Pending | None:
        """A new one; None when it is here already, or when there are too many."""
        key = (origin, ticket, part, stretch.after)
        former = self._by_put.get(key)
        if former is not None:
            if self._by_number[former].stretch == stretch:
                return None
            self.end(self._by_number[former])
        if len(self._by_number) >= self._writes_max:
            self.dropped += 1
            return None
        self._number += 1
        pending = Pending(self._number, origin, ticket, part, stretch, items)
        self._by_number[self._number] = pending
        self._by_put[key] = self._number
        return pending

    def end(self, pending: Pending) -> None:
        """Confirmed, or of no concern any more."""
        if self._by_number.pop(pending.number, None) is not None:
            del self._by_put[(pending.origin, pending.ticket, pending.part, pending.stretch.after)]

    def acknowledge(self, number: int, sibling: int) -> Pending | None:
        """A sibling has it."""
        pending = self._by_number.get(number)
        if pending is not None:
            pending.waiting.pop(sibling, None)
        return pending

    def acknowledged(self) -> list[Pending]:
        """Those that all siblings have."""
        return [pending for pending in self._by_number.values() if not pending.waiting]

    def waiting_for(self, sibling: int) -> list[tuple[Sequence[Item], int]]:
        """What this sibling has not acknowledged: items and number."""
        return [(one.items, one.number) for one in self._by_number.values() if sibling in one.waiting]

    def set_siblings(self, siblings: tuple[int, ...]) -> None:
        """Those gone are waited for no longer, new ones are."""
        new = [one for one in siblings if one not in self._siblings]
        self._siblings = siblings
        for pending in self._by_number.values():
            kept = [one for one in pending.waiting if one in siblings]
            pending.waiting = dict.fromkeys([*kept, *new])

    def validate(self) -> None:
        """Asserts that each put has one number, and that there are no more of them than may be."""
        assert len(self._by_number) <= self._writes_max
        assert sorted(self._by_put.values()) == sorted(self._by_number)


# Copies of keys that a new owner comes for, ours until a moment ago or a dead broker's: for which broker they are whole
# still.
#
# Until a new owner comes, no broker has written there, and what is here is whole for any. Once it has come, it will
# confirm things, and perhaps without us, for others may stand between it and us by now. Any other broker that is given
# our copy then would answer by it. So it is whole for the new owner alone, which may ask again when the answer was
# lost, and has its own writes; and for ourselves as long as it confirms nothing, should it die at once and the keys be
# ours.


@dataclass(slots=True)
class Claimants:
    """Who came for some keys."""

    askers: dict[int, None] = field(default_factory=dict)
    untouched_until: float = float("inf")
    """The first of them confirms nothing before."""

    def came(self, asker: int, untouched_until: float) -> None:
        """Another broker gains these keys, and has been given what is here."""
        self.untouched_until = min(self.untouched_until, untouched_until)
        self.askers[asker] = None

    def leave_whole_for(self, asker: int | None, now: float) -> bool:
        """Whether the copy is whole for this broker; None: for ourselves."""
        if asker is None:
            return now < self.untouched_until
        return not self.askers or list(self.askers) == [asker]


# Siblings, at the owner: keeping the next brokers' copies of our keys complete, and letting them answer for them.
#
# Each sibling gets, over one link, in one sequence of numbers that begins anew with the link:
#
#     STREAM pages   everything in a stretch, when the sibling, the link or the stretch is new; a few in flight
#     COPY           every write, at once, between the pages: copies merge in any order
#     CHECK          now and then count and digest of the whole; twice different means a stream from the beginning
#
# and says with COPIED up to where it has them. After the last page it is *synced*, and may ask for a grant. Grants are
# remembered until they end, even if the sibling is one no longer: a write waits for a broker that may still answer
# without it.

OUR_TALLY = -1
"""Where Items keeps the tally of our own keys."""


@dataclass(slots=True)
class _Stream:
    piece: Arc
    names: deque[Name]
    first: bool = True
    last_sequence: int | None = None
    in_flight: deque[int] = field(default_factory=deque)


@dataclass(slots=True)
class _Sibling:
    identifier: int
    sequence: int = 0
    copied: int = 0
    stream: _Stream | None = None
    synced: Arc | None = None
    refused: bool = False
    again_at: float = 0.0
    """Once refused, not before."""
    check_at: float = 0.0
    check_sequence: int = 0
    differences: int = 0
    awaited: deque[tuple[int, int]] = field(default_factory=deque)
    """(sequence, what the caller waits for), in order."""


class Siblings:
    """Keeps the siblings' copies of our keys complete, and lets them answer from those."""

    def __init__(
        self,
        me: int,
        items: Items,
        linked: dict[int, None],
        writes_in_flight: WritesInFlight,
        effects: list[KvEffect],
        timers: Timers,
        limits: KvLimits = DEFAULT_LIMITS,
        safeguards: frozenset[Safeguard] = SAFEGUARDS,
    ) -> None:
        self._safeguards = safeguards
        self._me = me
        self._writes_in_flight = writes_in_flight
        self._items = items
        self._linked = linked
        self._effects = effects
        self._timers = timers
        self._limits = limits
        self._present: dict[int, _Sibling] = {}
        self._ours: Arc | None = None
        self.grants: dict[int, float] = {}
        """Broker -> until when it may answer for keys of ours."""
        self.streams = 0
        self.differences = 0

    # --- What the caller tells ---------------------------------------------------------------------------------------

    def set_siblings(self, identifiers: tuple[int, ...]) -> None:
        """These are the next ones; links of the new ones may be up already."""
        self._present = {one: self._present.get(one) or _Sibling(one) for one in identifiers}
        self._set_timer()

    def set_ours(self, ours: Arc | None, now: float) -> None:
        """The keys that are ours and complete here."""
        if ours == self._ours:
            return
        shrunk = ours is not None and self._ours is not None and self._ours.contains(ours)
        self._ours = ours
        self._items.watch(OUR_TALLY, ours)
        for sibling in self._present.values():
            if ours is None:
                sibling.synced = sibling.stream = None
            elif shrunk and sibling.synced is not None and sibling.synced.contains(ours):
                sibling.synced = ours
                self._check(sibling, now)
        self.go_on(now)

    def link_new(self, identifier: int) -> None:
        """Whatever was under way is lost; the numbers begin anew. Also when the link is gone."""
        if identifier in self._present:
            self._present[identifier] = _Sibling(identifier)
            self._set_timer()

    # --- Writes ------------------------------------------------------------------------------------------------------

    def copy(self, items: Sequence[Item]) -> None:
        """Send a write to all that can hear it; one that cannot gets everything later."""
        for sibling in self._present.values():
            if self._hears(sibling):
                self._copy(sibling, items)

    def wait_for(self, items: Sequence[Item], sent: bool, waiting: int) -> list[int]:
        """Who is still to acknowledge these items? `sent`: all of them went out with `copy` just now.

        Each of those returned will be named, with `waiting`, by `copied`.
        """
        outstanding = []
        for identifier, sibling in self._present.items():
            if not self._hears(sibling):
                outstanding.append(identifier)
                continue
            if not sent and (sibling.synced is None or sibling.stream is not None):
                self._copy(sibling, items)
            if sibling.copied < sibling.sequence:
                sibling.awaited.append((sibling.sequence, waiting))
                outstanding.append(identifier)
        return outstanding if Safeguard.COPIES_BEFORE_CONFIRM in self._safeguards else []

    def copied(self, sender: int, sequence: int, verdict: int, now: float) -> list[int]:
        """The sibling has everything up to this. Returns what waited for it."""
        sibling = self._present.get(sender)
        if sibling is None or not sibling.copied <= sequence <= sibling.sequence:
            return []
        if verdict == CopyVerdict.REFUSED:
            self._refused(sibling, now)
            return []
        sibling.copied = sequence
        arrived = []
        while sibling.awaited and sibling.awaited[0][0] <= sequence:
            arrived.append(sibling.awaited.popleft()[1])
        stream = sibling.stream
        if stream is not None:
            while stream.in_flight and stream.in_flight[0] <= sequence:
                stream.in_flight.popleft()
            if stream.last_sequence is not None and sequence >= stream.last_sequence:
                self._synced(sibling, Arc(stream.piece.after, self._me), now)
        if sibling.check_sequence == sequence:
            self._compared(sibling, verdict == CopyVerdict.DIFFERENT, now)
        self._go_on(sibling, now)
        return arrived

    # --- Grants ------------------------------------------------------------------------------------------------------

    def granted(self, sender: int, now: float, until: float) -> Arc | None:
        """The sibling asks whether it may go on: the keys it may answer for until then, or None."""
        sibling = self._present.get(sender)
        if sibling is None or sibling.synced is None or self._ours is None or until <= now:
            return None
        self.grants[sender] = max(until, self.grants.get(sender, 0.0))
        return min(sibling.synced, self._ours, key=lambda stretch: stretch.size)

    def counts(self, identifier: int) -> bool:
        """Whether we write nothing without this broker; another that asks for a grant hears that it is left out."""
        return identifier in self._present or Safeguard.LEFT_OUT_IS_TOLD not in self._safeguards

    def others_until(self, now: float) -> float:
        """When the last grant ends of those that are siblings no longer; `now` when there is none."""
        for identifier in [one for one, until in self.grants.items() if until <= now]:
            del self.grants[identifier]
        if Safeguard.GRANTS_AWAITED not in self._safeguards:
            return now
        return max((until for one, until in self.grants.items() if one not in self._present), default=now)

    # --- Time --------------------------------------------------------------------------------------------------------

    def go_on(self, now: float) -> None:
        """Begin streams that are due, and compare."""
        for sibling in self._present.values():
            self._go_on(sibling, now)
            if sibling.synced is not None and sibling.stream is None and now >= sibling.check_at:
                self._check(sibling, now)
        self._set_timer()

    def _set_timer(self) -> None:
        deadline = float("inf")
        for identifier, sibling in self._present.items():
            if identifier in self._linked and self._ours is not None:
                if sibling.synced is not None and sibling.stream is None:
                    deadline = min(deadline, sibling.check_at)
                elif sibling.synced is None and sibling.stream is None:
                    deadline = min(deadline, sibling.again_at)
        self._timers.at("siblings", deadline)

    @property
    def present(self) -> dict[int, bool]:
        """Sibling -> synced."""
        return {one: it.synced is not None and it.synced == self._ours for one, it in self._present.items()}

    @property
    def awaited(self) -> int:
        """Acknowledgements that a write waits for."""
        return sum(len(sibling.awaited) for sibling in self._present.values())

    def validate(self) -> None:
        """Asserts that no sibling has acknowledged more than it was sent, and that what is awaited is in order."""
        for sibling in self._present.values():
            assert sibling.copied <= sibling.sequence
            assert list(sibling.awaited) == sorted(sibling.awaited, key=lambda pair: pair[0])
            assert sibling.stream is None or len(sibling.stream.in_flight) <= self._limits.pages_in_flight

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _hears(self, sibling: _Sibling) -> bool:
        return sibling.identifier in self._linked and not sibling.refused

    def _copy(self, sibling: _Sibling, items: Sequence[Item]) -> None:
        sibling.sequence += 1
        self._effects.append(Tell(sibling.identifier, Copy(sibling.sequence, items)))

    def _go_on(self, sibling: _Sibling, now: float) -> None:
        """Begin a stream, or send its next pages."""
        if sibling.identifier not in self._linked or self._ours is None or now < sibling.again_at:
            return
        if sibling.stream is None:
            if sibling.synced is None:
                sibling.refused = False
                for items, waiting in self._writes_in_flight.waiting_for(sibling.identifier):
                    self._copy(sibling, items)
                    sibling.awaited.append((sibling.sequence, waiting))
                self._begin(sibling, self._ours)
            elif not sibling.synced.contains(self._ours):
                self._begin(sibling, Arc(self._ours.after, sibling.synced.after))
            else:
                return
        stream = sibling.stream
        assert stream is not None
        while stream.last_sequence is None and len(stream.in_flight) < self._limits.pages_in_flight:
            page = self._next_page(stream)
            sibling.sequence += 1
            stream.in_flight.append(sibling.sequence)
            last = not stream.names
            piece = stream.piece
            said = Stream(sibling.sequence, stream.first, last, piece.after, piece.last, page)
            self._effects.append(Tell(sibling.identifier, said))
            stream.first = False
            if last:
                stream.last_sequence = sibling.sequence

    def _synced(self, sibling: _Sibling, arc: Arc, now: float) -> None:
        sibling.stream = None
        sibling.synced = arc
        sibling.check_at = now + self._limits.check_seconds
        if self._ours is not None and arc != self._ours and arc.contains(self._ours):  # ours shrank meanwhile
            sibling.synced = self._ours
            self._check(sibling, now)
        self._set_timer()

    def _begin(self, sibling: _Sibling, piece: Arc) -> None:
        self.streams += 1
        sibling.differences = 0
        names = self._items.touching(piece) if Safeguard.TOP_UP in self._safeguards else ()
        sibling.stream = _Stream(piece, deque(item.name for item in names))
        self._set_timer()

    def _next_page(self, stream: _Stream) -> list[Item]:
        table = self._items.table
        present = (item for item in map(table.get, stream.names) if item is not None)
        page = next(pages(present, self._limits.page_items), [])
        if not page:
            stream.names.clear()
            return page
        while stream.names.popleft() != page[-1].name:
            pass
        return page

    def _check(self, sibling: _Sibling, now: float) -> None:
        sibling.check_at = now + self._limits.check_seconds
        tally = self._items.watched(OUR_TALLY)
        if sibling.identifier in self._linked and sibling.stream is None and tally is not None:
            sibling.sequence += 1
            sibling.check_sequence = sibling.sequence
            check = Check(sibling.sequence, tally.stretch.after, tally.count, tally.digest)
            self._effects.append(Tell(sibling.identifier, check))

    def _compared(self, sibling: _Sibling, different: bool, now: float) -> None:
        """Once may be a write that reached the sibling by another way; twice is a difference."""
        sibling.differences = sibling.differences + 1 if different else 0
        if sibling.differences == 1:
            sibling.check_at = now + self._limits.check_seconds / 4
            self._set_timer()
        elif sibling.differences > 1 and sibling.stream is None and self._ours is not None:
            self.differences += 1
            self._begin(sibling, self._ours)

    def _refused(self, sibling: _Sibling, now: float) -> None:
        sequence = sibling.sequence
        self._present[sibling.identifier] = _Sibling(
            sibling.identifier, sequence=sequence, copied=sequence, refused=True, again_at=now + REFUSED_SECONDS
        )
        self._set_timer()


def remember(asked: dict[int, float], number: int, now: float) -> None:
    """Keep the time of a question, and not too many of them."""
    asked[number] = now
    if len(asked) > NUMBERS_REMEMBERED_MAX:
        del asked[next(iter(asked))]


def is_covered(stretch: Arc, pieces: Iterable[Arc]) -> bool:
    """Whether the pieces together cover all of a stretch."""
    held = list(pieces)
    if any(piece.size == RING_SIZE for piece in held):
        return True
    last, left = stretch.last, stretch.size
    while left > 0:
        fitting = next((piece for piece in held if piece.covers(last)), None)
        if fitting is None:
            return False
        left -= Arc(fitting.after, last).size
        last = fitting.after
    return True


@dataclass(slots=True)
class Replica:
    """What is held for one owner."""

    owner: int
    heard_at: float
    arc: Arc | None = None
    """Whole for these keys; None before the first stream has ended."""
    piece: Arc | None = None
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
    granted: Arc | None = None
    until: float = 0.0
    left_out: bool = False
    """The owner goes on without us as soon as the grant is over, or may have done so: the copy is whole no longer."""
    claimants: Claimants = field(default_factory=Claimants)
    closed_until: float = 0.0


class Replicas:
    """Holds copies of others' keys, and knows until when this broker may answer from each."""

    def __init__(
        self,
        items: Items,
        linked: dict[int, None],
        effects: list[KvEffect],
        timers: Timers,
        lease_seconds: float,
        limits: KvLimits = DEFAULT_LIMITS,
        safeguards: frozenset[Safeguard] = SAFEGUARDS,
    ) -> None:
        self.safeguards = safeguards
        self._items = items
        self._linked = linked
        self._effects = effects
        self._timers = timers
        self._lease_seconds = lease_seconds
        self._limits = limits
        self.held: dict[int, Replica] = {}
        self.shrunk = False
        """Something is held for no broker any more; the caller takes it back."""
        self.offered = 0
        self._awake_at = 0.0

    # --- From the owner ----------------------------------------------------------------------------------------------

    def stream(self, sender: int, page: Stream, now: float) -> bool:
        """A page of everything. Whether the replica is whole with it."""
        sequence, first, last, items = page.sequence, page.first, page.last, page.items
        replica = self._replica(sender, sequence, now)
        piece = Arc(page.after, page.upto)
        if replica is None or (not first and replica.piece != piece) or not self._fits(replica, piece):
            self._answer(sender, sequence, CopyVerdict.REFUSED)
            return False
        if first:
            replica.piece, replica.seen, replica.offers = piece, {}, []
        self._take(replica, items, now)
        if last:
            self._offer(replica, piece)
            replica.piece, replica.seen, replica.offers = None, {}, []
            former, replica.arc = replica.arc, Arc(piece.after, sender)
            self.shrunk = self.shrunk or (former is not None and not replica.arc.contains(former))
            replica.fresh = True
            self._items.watch(sender, replica.arc)
        self._answer(sender, sequence, CopyVerdict.STORED)
        if last:
            self._ask(replica, now)
        return last

    def copy(self, sender: int, sequence: int, items: Sequence[Item], now: float) -> None:
        """A write of the owner."""
        replica = self._replica(sender, sequence, now)
        if replica is None:
            self._answer(sender, sequence, CopyVerdict.REFUSED)
            return
        stored = self._take(replica, items, now)
        self._answer(sender, sequence, CopyVerdict.STORED if stored else CopyVerdict.REFUSED)

    def check(self, sender: int, sequence: int, after: int, count: int, digest: int, now: float) -> None:
        """The owner's keys, as it counts them."""
        replica = self.held.get(sender)
        verdict = CopyVerdict.DIFFERENT
        if replica is not None:
            replica.sequence = sequence
            self._end_stream(replica)  # it compares only when it is not sending
        if replica is not None and replica.arc is not None:
            replica.heard_at = now
            arc = Arc(after, sender)
            if replica.arc.contains(arc):
                self.shrunk = self.shrunk or replica.arc != arc
                replica.arc = arc
                self._items.watch(sender, arc)
                tally = self._items.watched(sender)
                assert tally is not None
                same = (tally.count, tally.digest) == (count, digest)
                verdict = CopyVerdict.STORED if same else CopyVerdict.DIFFERENT
        self._answer(sender, sequence, verdict)

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
        arc = Arc(after, sender)
        if replica.arc.contains(arc):
            replica.heard_at = now
            replica.granted = arc
            replica.until = max(replica.until, self._good_until(asked_at, now, min(seconds, self._lease_seconds)))
            if replica.until > now:
                replica.left_out, replica.claimants = False, Claimants()

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
            self._set_timer(replica)

    def close(self, stretch: Arc, but: int, now: float) -> None:
        """Another broker has copied these keys from here: no more writes of their former owners, for a while."""
        for replica in self.held.values():
            if replica.owner != but and replica.arc is not None and replica.arc.overlaps(stretch):
                replica.closed_until = now + 2 * self._lease_seconds
                replica.claimants.came(but, now + self._lease_seconds)
                self._stop(replica)
                if replica.owner in self._linked and replica.sequence:  # should it be alive, it begins anew later
                    self._answer(replica.owner, replica.sequence, CopyVerdict.REFUSED)

    def alive(self, stretch: Arc, but: int, now: float) -> bool:
        """Whether an owner of some of these keys is linked and let us answer for them a moment ago."""
        return any(
            replica.fresh and replica.until > now and replica.owner in self._linked
            for replica in self.held.values()
            if replica.owner != but and replica.arc is not None and replica.arc.overlaps(stretch)
        )

    def awake(self, now: float) -> None:
        """Called whenever anything happens, which is several times a lease, or we stood still."""
        if now > self._awake_at + self._lease_seconds / 2 and Safeguard.SLEEP_NOTICED in self.safeguards:
            self._stood_still(now)
        self._awake_at = now

    def distrust(self) -> None:
        """We were away without knowing: no replica is whole any more."""
        for replica in self.held.values():
            replica.arc = None
            self.shrunk = True
            self._items.watch(replica.owner, None)
            self.link_new(replica.owner)

    def whole(self, asker: int | None, now: float) -> list[Arc]:
        """What there is a whole copy of here, or was a moment ago, for this broker to take keys over with; None: us."""
        asker = asker if Safeguard.COPY_FOR_CLAIMANT in self.safeguards else None
        return [
            replica.arc
            for replica in self.held.values()
            if replica.arc is not None
            and replica.until > now - PROMOTE_SECONDS
            and not replica.left_out
            and replica.claimants.leave_whole_for(asker, now)
        ]

    def scope(self, now: float) -> list[tuple[Arc, float]]:
        """What may be answered for, and until when."""
        if Safeguard.LEASES not in self.safeguards:
            return [(one.granted, now + 0.01) for one in self.held.values() if one.granted is not None]
        return [
            (replica.granted, replica.until)
            for replica in self.held.values()
            if replica.granted is not None and replica.until > now
        ]

    def open_copies(self, now: float) -> list[int]:
        """Owners whose copies here are whole and kept so, and whose writes are taken in."""
        return [one for one, replica in self.held.items() if replica.fresh and now >= replica.closed_until]

    def arcs(self) -> list[Arc]:
        """Everything that is held for other brokers, whole or on its way."""
        found = [replica.arc for replica in self.held.values() if replica.arc is not None]
        return found + [replica.piece for replica in self.held.values() if replica.piece is not None]

    # --- Time --------------------------------------------------------------------------------------------------------

    def go_on(self, owner: int, now: float) -> None:
        """Ask this owner for a grant; let go of the copy when it was not kept up to date for long."""
        replica = self.held.get(owner)
        if replica is None:
            return
        if now >= replica.heard_at + self._limits.retain_seconds:
            del self.held[owner]
            self._items.watch(owner, None)
            self.shrunk = True
        elif now >= replica.ask_at:
            self._ask(replica, now)
        else:
            self._set_timer(replica)

    def _set_timer(self, replica: Replica) -> None:
        """That something was heard moves it to a later time: it is not set again for that."""
        self._timers.at(("replica", replica.owner), min(replica.ask_at, replica.heard_at + self._limits.retain_seconds))

    def validate(self) -> None:
        """Asserts that copies are within their bounds, and that a fresh one has an arc."""
        assert len(self.held) <= self._limits.replicas
        for replica in self.held.values():
            assert replica.piece is not None or not replica.seen
            assert len(replica.asked) <= NUMBERS_REMEMBERED_MAX
            assert not replica.fresh or replica.arc is not None

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _replica(self, owner: int, sequence: int, now: float) -> Replica | None:
        replica = self.held.get(owner)
        if replica is None and len(self.held) < self._limits.replicas:
            replica = self.held[owner] = Replica(owner, now)
            self._set_timer(replica)
        if replica is not None:
            replica.sequence = sequence
        if replica is None or now < replica.closed_until:
            return None
        replica.heard_at = now
        return replica

    def _fits(self, replica: Replica, piece: Arc) -> bool:
        if piece.last == replica.owner:
            return True
        return replica.fresh and replica.arc is not None and replica.arc.after == piece.last

    def _take(self, replica: Replica, items: Sequence[Item], now: float) -> bool:
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
            self._effects.append(Tell(replica.owner, Offer([self._items.table[name]])))

    def _offer(self, replica: Replica, piece: Arc) -> None:
        """What lies here and was not sent, or is newer here."""
        table = self._items.table
        newer = [table[name] for name in dict.fromkeys(replica.offers) if name in table]
        unsent = [item for item in self._items.touching(piece) if item.name not in replica.seen]
        for number, page in enumerate(pages([*newer, *unsent], self._limits.page_items)):
            if number >= self._limits.offer_pages:
                return
            self.offered += len(page)
            self._effects.append(Tell(replica.owner, Offer(page)))

    def _ask(self, replica: Replica, now: float) -> None:
        if replica.fresh and replica.owner in self._linked:
            replica.number += 1
            remember(replica.asked, replica.number, now)
            replica.ask_at = now + self._lease_seconds / 4
            self._effects.append(Tell(replica.owner, Lease(replica.number)))
        else:
            replica.ask_at = float("inf")
        self._set_timer(replica)

    def _end_stream(self, replica: Replica) -> None:
        self.shrunk = self.shrunk or replica.piece is not None
        replica.piece, replica.seen, replica.offers = None, {}, []

    def _stop(self, replica: Replica) -> None:
        """No more asking and no more answers; what was granted runs out."""
        replica.fresh = False
        replica.ask_at = float("inf")
        replica.asked.clear()
        self._set_timer(replica)

    def _answer(self, owner: int, sequence: int, verdict: CopyVerdict) -> None:
        self._effects.append(Tell(owner, Copied(sequence, int(verdict))))

    def _stood_still(self, now: float) -> None:
        for replica in self.held.values():
            replica.left_out = replica.left_out or replica.until <= now

    def _good_until(self, asked_at: float, now: float, seconds: float) -> float:
        return (asked_at if Safeguard.LEASE_FROM_ASKING in self.safeguards else now) + seconds


def _of_concern(replica: Replica, item: Item) -> bool:
    arcs = (replica.arc, replica.piece)
    return any(arc is not None and arc.touches(item.low, item.high) for arc in arcs)
