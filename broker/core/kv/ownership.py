"""Our own keys: what the view says, what was handed on, and whether we have everything of them.

Our arc always ends at ourselves; only its beginning moves. When it moves back we *gain* a piece, which is not ready
until it is complete here: one sibling is asked for it (FETCH), nearest first, which is the former owner when we have
just joined, and holds a replica of what the former owner had when it died.

    its answer          then
    a whole copy        ready: all of it is here now, or it was here already, equal to the sibling's
    parts               the next one is asked; ready when we have a whole replica ourselves
    busy                it owns the keys, or did, and is not ready itself: asked again
    no answer           asked again: it may be the one that has them, and without it there is no lease either

When for a while no broker that we can ask has a whole copy or hopes for one, then what is here is all there is. To be
without an answer is to hope, and a broker that is told of hope hopes as well, a little less each time, so that two that
only wait for each other come to an end.

Asking even with a whole replica of our own costs one short message and an answer, for equal digests carry no items but
those removed. It catches what a broker cannot know of itself: that it stood still, was dropped, and missed the last
writes.

A broker that is fetched from hands the keys on at that moment (`hand_over`), before the view says so, and takes them
back when neither view nor link shows the newcomer for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..keyspace import Arc, in_arc
from ..safeguards import SAFEGUARDS, Safeguard
from ..timers import Timers
from .items import Items
from .limits import (
    FETCH_AGAIN_SECONDS,
    FETCH_ANSWER_SECONDS,
    FORMER_SECONDS,
    HANDOVER_SECONDS,
    PROMOTE_WAIT_SECONDS,
    SETTLE_SECONDS,
    SETTLE_SECONDS_MAX,
    SILENT_SECONDS,
)
from .messages import Fetch, KvEffect, Tell, Verdict, View
from .replication import Claimants, Replicas, is_covered

__all__ = [
    "Former",
    "Ownership",
    "Piece",
]


@dataclass(slots=True)
class _Lost:
    stretch: Arc
    until: float
    claimants: Claimants = field(default_factory=Claimants)


class Former:
    """What was ours and complete a moment ago."""

    def __init__(self, lease_seconds: float, safeguards: frozenset[Safeguard] = SAFEGUARDS) -> None:
        self._lease_seconds = lease_seconds
        self._safeguards = safeguards
        self._lost: list[_Lost] = []

    def add(self, stretch: Arc, now: float) -> None:
        """These were ours until now, or would be."""
        self._lost.append(_Lost(stretch, now + FORMER_SECONDS))

    def clear(self) -> None:
        """We are in no ring: whatever was ours may have been another broker's."""
        self._lost.clear()

    def came(self, asker: int, stretch: Arc, now: float) -> None:
        """Another broker gains these keys."""
        if Safeguard.HANDED_OFF_ONCE not in self._safeguards:
            return
        for lost in self._lost:
            if lost.stretch.overlaps(stretch):
                lost.claimants.came(asker, now + self._lease_seconds)

    def whole(self, asker: int | None, now: float) -> list[Arc]:
        """What of it is whole for this broker; None: for ourselves."""
        asker = asker if Safeguard.HANDED_OFF_FOR_CLAIMANT in self._safeguards else None
        self._lost = [lost for lost in self._lost if lost.until > now]
        return [lost.stretch for lost in self._lost if lost.claimants.leave_whole_for(asker, now)]


@dataclass(slots=True)
class Piece:
    """A part of our arc, gained at one time."""

    stretch: Arc
    """What of it is still ours."""
    gained: Arc
    """What it was at first, and is fetched: a broker that got a part of it since may come to us for it."""
    gained_at: float
    settle_at: float
    has_copy: bool = False
    alone: bool = False
    """Gained when there was no other broker: then none comes to us for what turns out to be its own."""
    ready: bool = False
    confirm_from: float = float("inf")
    number: int = 0
    asked: int | None = None
    again_at: float = 0.0
    parts_of: dict[int, float] = field(default_factory=dict)
    """Who gave us parts only, and when."""
    asked_at: float = 0.0
    waits_for: int | None = None
    """Whose answer is wanted, linked or not."""
    heard: dict[int, float] = field(default_factory=dict)
    """Who answered, and when last."""
    hope: int = Verdict.BUSY
    hoped_at: float = float("-inf")

    def hopes(self, now: float) -> int:
        """A verdict from BUSY to HOPING."""
        unheard = self.waits_for is not None and now - self.heard.get(self.waits_for, float("-inf")) > SILENT_SECONDS
        # A broker that was asked just now is there, and answers before the patience of any other ends; that alone is no
        # hope.
        if unheard and (self.asked is None or now - self.asked_at > FETCH_ANSWER_SECONDS):
            return Verdict.HOPING
        return self.hope if now - self.hoped_at <= FETCH_ANSWER_SECONDS else Verdict.BUSY


class Ownership:
    """Knows which keys are ours, fetches those that were gained, and hands on those that are lost."""

    def __init__(
        self,
        me: int,
        linked: dict[int, None],
        items: Items,
        replicas: Replicas,
        effects: list[KvEffect],
        timers: Timers,
        lease_seconds: float,
    ) -> None:
        self._me = me
        self._linked = linked
        self._items = items
        self._replicas = replicas
        self._effects = effects
        self._timers = timers
        self._lease_seconds = lease_seconds
        self.view = View(me, me, (), False)
        self.pieces: list[Piece] = []
        """Ours first, each next one before it on the ring."""
        self._lost: list[Piece] = []
        """Not ours any more, and never were ready: still fetched, for the broker that comes for them."""
        self.handed: tuple[int, float] | None = None
        """The broker that we handed keys to, and when."""
        self.former = Former(lease_seconds, replicas.safeguards)
        self._number = 0
        self.changed = False
        """Something here is not as it was; the caller takes it back."""
        self.settled = 0
        self.was_ready = False
        """We have answered for keys, or might have, in this life."""

    # --- What is ours ------------------------------------------------------------------------------------------------

    @property
    def own(self) -> Arc | None:
        """All of our keys, ready or not."""
        return Arc(self.pieces[-1].stretch.after, self._me) if self.pieces else None

    @property
    def ready(self) -> Arc | None:
        """Those that are complete here."""
        after = None
        for piece in self.pieces:
            if not piece.ready:
                break
            after = piece.stretch.after
        return None if after is None else Arc(after, self._me)

    def confirm_from(self, stretch: Arc) -> float:
        """From when on writes in it may be confirmed; infinity when that is not known yet."""
        own = self.own
        if own is None or not own.contains(stretch):
            return float("inf")
        return max(piece.confirm_from for piece in self.pieces if piece.stretch.overlaps(stretch))

    def unready(self, stretch: Arc, now: float) -> int | None:
        """How much hope there is for the part of it that we are still fetching; None: there is none to fetch."""
        fetching = [
            piece.hopes(now)
            for piece in (*self.pieces, *self._lost)
            if not piece.ready and piece.gained.overlaps(stretch)
        ]
        return max(fetching, default=None)

    def whole_for(self, asker: int | None, now: float) -> list[Arc]:
        """What there is a whole copy of here, or was a moment ago, though it is not ours; None: for ourselves."""
        return [*self._replicas.whole(asker, now), *self.former.whole(asker, now)]

    def fingerprint(self, stretch: Arc) -> tuple[int, int]:
        """Count and digest of what is here of a stretch."""
        tally = self._items.tally(stretch)
        return tally.count, tally.digest

    # --- What the caller tells ---------------------------------------------------------------------------------------

    def set_view(self, view: View, now: float) -> None:
        """The ring changed."""
        self.view = view
        if not view.serving:
            self.handed = None
        if self.handed is not None and not self._handed_stands(now):
            self.handed = None
        self._set_front(now)
        self.go_on(now)

    def hand_over(self, newcomer: int, now: float) -> None:
        """The newcomer has come for the keys up to its own; from now on they are its own."""
        self.handed = (newcomer, now)
        self._set_front(now)
        self._set_timer()

    def doubt(self, now: float) -> None:
        """The first sibling says that our keys are its own: they are to be gained anew."""
        own = self.own
        if own is not None and any(piece.ready for piece in self.pieces):
            self.pieces = [self._gained(own, now)]
            self.changed = True
            self.go_on(now)

    def all_new(self, now: float) -> None:
        """There is no copy to fetch, and nobody whose lease has to run out."""
        for piece in self.pieces:
            if not piece.ready:
                self._make_ready(piece, now, confirm_from=now)
        self._set_timer()

    def paged(self, sender: int, number: int, last: bool, verdict: int, now: float) -> bool:
        """A page came for the piece of this number. Whether it was expected."""
        piece = next((one for one in self._fetching if one.number == number and one.asked == sender), None)
        if piece is None:
            return False
        piece.heard[sender] = now
        piece.hope, piece.hoped_at = Verdict.HOPING, now
        piece.again_at = now + FETCH_ANSWER_SECONDS
        if verdict == Verdict.OWNED and self._give_up_lost(piece, now):
            self._set_timer()
            return True
        if verdict >= Verdict.BUSY:
            piece.asked, piece.again_at = None, now + FETCH_AGAIN_SECONDS
            piece.hope = max(verdict - 1, Verdict.BUSY)
        elif last:
            piece.asked = None
            if verdict == Verdict.WHOLE or piece.has_copy:
                self._make_ready(piece, now)
                self._set_timer()
                return True
            piece.parts_of[sender] = piece.asked_at
            piece.hope, piece.again_at = Verdict.BUSY, now
        if piece.hope > Verdict.BUSY:
            limit = piece.gained_at + SETTLE_SECONDS_MAX
            piece.settle_at = min(limit, max(piece.settle_at, now + SETTLE_SECONDS))
        self._go_on(piece, now)
        self._set_timer()
        return True

    def link_new(self, identifier: int, now: float) -> None:
        """A question that was asked over the old link will not be answered; one may be asked over the new."""
        for piece in self._fetching:
            if piece.waits_for == identifier:
                piece.asked, piece.again_at = None, now
        self.go_on(now)

    # --- Time --------------------------------------------------------------------------------------------------------

    def go_on(self, now: float) -> None:
        """Ask, settle, take back."""
        if self.handed is not None and not self._handed_stands(now):
            self.handed = None
            self._set_front(now)
        for piece in self._fetching:
            self._go_on(piece, now)
        self._set_timer()

    def _set_timer(self) -> None:
        alone = not self.view.siblings
        waits = [piece.settle_at if alone else piece.again_at for piece in self._fetching]
        if self.handed is not None and self.handed[0] not in self._linked:
            waits.append(self.handed[1] + HANDOVER_SECONDS)
        self._timers.at("ownership", min(waits, default=float("inf")))

    def validate(self) -> None:
        """Asserts that the pieces of the arc follow one another from this broker backwards."""
        last = self._me
        for piece in self.pieces:
            assert piece.stretch.last == last
            last = piece.stretch.after
            assert piece.ready == (piece.confirm_from < float("inf"))

    @property
    def _fetching(self) -> list[Piece]:
        return [piece for piece in (*self.pieces, *self._lost) if not piece.ready]

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _handed_stands(self, now: float) -> bool:
        assert self.handed is not None
        newcomer, since = self.handed
        if not in_arc(self.view.after, newcomer, self._me) or newcomer == self._me:
            return False  # the view knows it, or one nearer still
        return newcomer in self._linked or now < since + HANDOVER_SECONDS

    def _set_front(self, now: float) -> None:
        front = self.view.after if self.handed is None else self.handed[0]
        own = self.own
        if not self.view.serving:
            self.changed = self.changed or bool(self.pieces)
            self.pieces, self._lost = [], []
            self.former.clear()
        elif own is None:
            self._gain(Arc(front, self._me), now)
        elif Arc(front, self._me).size > own.size:
            self._gain(Arc(front, own.after), now)
        elif Arc(front, self._me).size < own.size:
            self._lose(Arc(front, self._me), now)

    def _gain(self, stretch: Arc, now: float) -> None:
        self.pieces.append(self._gained(stretch, now))
        self.changed = True

    def _gained(self, stretch: Arc, now: float) -> Piece:
        has_copy = self._has_copy(stretch, now)
        patience = PROMOTE_WAIT_SECONDS if has_copy else SETTLE_SECONDS
        piece = Piece(stretch, stretch, now, now + patience, has_copy, not self.view.siblings, again_at=now)
        if self.view.certain or (has_copy and not self.view.siblings):
            self._make_ready(piece, now)
        return piece

    def _has_copy(self, stretch: Arc, now: float) -> bool:
        return is_covered(stretch, self.whole_for(None, now))

    def _lose(self, kept: Arc, now: float) -> None:
        for piece in self.pieces:
            if piece.ready and not kept.contains(piece.stretch):
                last = kept.after if kept.overlaps(piece.stretch) else piece.stretch.last
                self.former.add(Arc(piece.stretch.after, last), now)
            elif not piece.ready and not piece.alone and not kept.overlaps(piece.stretch):
                self._lost.append(piece)
        self.pieces = [piece for piece in self.pieces if kept.overlaps(piece.stretch)]
        outermost = self.pieces[-1]
        outermost.stretch = Arc(kept.after, outermost.stretch.last)
        if outermost.alone:
            outermost.gained = outermost.stretch
        self.changed = True

    def _make_ready(self, piece: Piece, now: float, confirm_from: float | None = None) -> None:
        piece.ready = self.was_ready = True
        piece.asked = None
        if piece in self._lost:
            self._lost.remove(piece)
        if piece.gained != piece.stretch or piece not in self.pieces:
            self.former.add(piece.gained, now)
        if confirm_from is None:
            confirm_from = now if self.view.certain else self._confirm_from(now)
        piece.confirm_from = confirm_from
        self.changed = True

    def _confirm_from(self, now: float) -> float:
        """All grants by the former owner are over then."""
        return now + self._lease_seconds * (Safeguard.WAIT_AFTER_GAINING in self._replicas.safeguards)

    def _go_on(self, piece: Piece, now: float) -> None:
        view = self.view
        at_once = view.certain or Safeguard.PROMOTION_WITH_COPY not in self._replicas.safeguards
        if at_once or (not view.siblings and (piece.has_copy or now >= piece.settle_at)):
            self._make_ready(piece, now)
        if piece.ready or not view.siblings or now < piece.again_at:
            return
        chosen = piece.waits_for = self._next_to_ask(piece)
        piece.asked = None
        piece.again_at = now + FETCH_AGAIN_SECONDS
        if chosen is None:
            self._all_gave_parts(piece, now)
        elif chosen in self._linked:  # never past one who may be the owner, and is only not linked yet
            self._ask(piece, chosen, now)

    def _all_gave_parts(self, piece: Piece, now: float) -> None:
        """When that is fresh, and there was time for others to do better, their parts and ours are all there is."""
        oldest = min(piece.parts_of[one] for one in (*self.view.siblings, *self.view.further))
        if oldest >= max(piece.settle_at, now - SILENT_SECONDS):
            self.settled += 1
            self._make_ready(piece, now)
        else:
            piece.again_at = max(piece.settle_at, piece.again_at)
            if now >= piece.settle_at:
                piece.parts_of.clear()

    def _give_up_lost(self, piece: Piece, now: float) -> bool:
        """Those of the keys gained that are ours no longer have an owner who is ready. Whether there were any."""
        if piece in self._lost:
            self._lost.remove(piece)
        elif piece.gained != piece.stretch:
            piece.gained, piece.asked, piece.again_at = piece.stretch, None, now
            self._go_on(piece, now)
        else:
            return False
        return True

    def _next_to_ask(self, piece: Piece) -> int | None:
        around = (*self.view.siblings, *self.view.further)
        return next((one for one in around if one not in piece.parts_of), None)

    def _ask(self, piece: Piece, chosen: int, now: float) -> None:
        self._number += 1
        piece.number, piece.asked, piece.asked_at = self._number, chosen, now
        piece.again_at = now + FETCH_ANSWER_SECONDS
        count, digest = self.fingerprint(piece.gained) if piece.has_copy else (0, 0)
        anyway = now >= piece.settle_at
        gained = piece.gained
        fetch = Fetch(piece.number, gained.after, gained.last, anyway, piece.has_copy, count, digest)
        self._effects.append(Tell(chosen, fetch))
