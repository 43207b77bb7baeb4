"""Healing: after a partition there may be two rings, and a broker may be cut out of its own. Find out, and move.

A ring never notices that there is another one, so each member asks now and then a seed, or a broker that it knew once:
who is the member before me in your ring? If that one has us as its successor, all is well. If not, two walks go once
around to our own place, by successor lists alone: one from the list which that one showed, one from our own. In one
ring no list skips a principal, so both are shown the last principal before us; if they were shown no member in common,
there are two rings. These are compared by their *tops*, the highest member of each: every member of a ring finds the
same top, so all agree which ring stays. **The ring with the lower top yields**: its members leave it, one by one, each
as soon as it has found out twice, and join the other one in a new incarnation. If ours is the higher, we tell the
others (Meet), because perhaps no seed of theirs is here.

A member that was declared dead while it lived (paused, cut off) hears Fenced. It cannot stay what it is, as no other
will take it up again. It looks in the same way and moves at once, unless there are two rings and ours is the higher:
then they come to us.
"""

from __future__ import annotations

from collections.abc import Callable

from .identity import Identity
from .lookup import Lookup
from .members import RING_TOP, Member
from .messages import Letter, Meet, Seen
from .ring import Ring

__all__ = ["Healing"]

_FINDINGS_TO_MOVE = 2
"""Once may be a join or a failure under way; the probes are seconds apart."""


class Healing:
    """Probes, one at a time. `move_to` is the address to join through, once moving is decided."""

    def __init__(self, identity: Identity, ring: Ring, now: float) -> None:
        self._identity = identity
        self._ring = ring
        self._lookup: Lookup | None = None
        self._after: Callable[[Lookup, float], None] = self._found_own_place
        self._contact = ""
        self._neighbour: Member | None = None
        self._other_top: Member | None = None
        self._shown: dict[Member, None] = {}
        self._was_fenced = False
        self._findings = 0
        self._pending: dict[str, bool] = {}
        self._probe_at = now + identity.config.probe_seconds * identity.random.uniform(0.5, 1.5)
        self.move_to: str | None = None

    def next_deadline(self) -> float:
        """When `wake` has something to do."""
        return self._probe_at if self._lookup is None else self._lookup.deadline

    def wake(self, now: float) -> None:
        """Go on looking, or begin."""
        if self._lookup is not None:
            self._lookup.wake(now)
            self._advance(now)
        elif now >= self._probe_at:
            contacts = self._identity.contacts()
            if self._pending:
                self._contact = next(iter(self._pending))
                self._was_fenced = self._pending.pop(self._contact)
            elif contacts:
                if not self._findings:
                    self._contact = self._identity.random.choice(contacts)
                self._was_fenced = False
            else:
                self._rest(now)
                return
            self._look(self._identity.me, self._contact, self._found_own_place, now)

    def ask_soon(self, address: str, fenced: bool, now: float) -> None:
        """A broker told us of another ring, or that we are dead to it."""
        self._identity.remember(address)
        if len(self._pending) < 2 or fenced:
            self._pending[address] = fenced or self._pending.get(address, False)
        self._probe_at = min(self._probe_at, now + self._identity.random.uniform(0.0, 1.0))

    def saw(self, letter: Letter, body: Seen, now: float) -> None:
        """An answer to a look."""
        if self._lookup is not None:
            self._lookup.saw(letter, body, now)
            self._advance(now)

    def _look(self, place: Member, start: Member | str, after: Callable[[Lookup, float], None], now: float) -> None:
        self._after = after
        around = after in (self._went_round_there, self._went_round_here)
        self._lookup = Lookup(self._identity, place, start, self._ring.successors, now, takes_hints=not around)
        self._advance(now)

    def _advance(self, now: float) -> None:
        walk = self._lookup
        if walk is None or not walk.over:
            return
        self._lookup = None
        if walk.failed:
            self._findings = 0
            self._rest(now)
        else:
            self._after(walk, now)

    def _rest(self, now: float) -> None:
        pause = self._identity.config.probe_seconds * self._identity.random.uniform(0.5, 1.5)
        self._probe_at = now + (0.0 if self._pending else pause)

    def _found_own_place(self, walk: Lookup, now: float) -> None:
        assert walk.found is not None
        if walk.successors[0] == self._identity.me and not self._was_fenced:
            self._findings = 0
            self._rest(now)
            return
        self._neighbour = walk.found
        start = walk.successors[0] if walk.successors[0] != self._identity.me else walk.found
        self._look(self._identity.me, start, self._went_round_there, now)

    def _went_round_there(self, walk: Lookup, now: float) -> None:
        self._shown = walk.shown()
        self._look(self._identity.me, self._ring.successors[0], self._went_round_here, now)

    def _went_round_here(self, walk: Lookup, now: float) -> None:
        assert self._neighbour is not None
        if any(member in self._shown for member in walk.shown()):
            self._findings = 0
            self._conclude(move=self._was_fenced, now=now)
        else:
            self._look(RING_TOP, self._neighbour, self._found_other_top, now)

    def _found_other_top(self, walk: Lookup, now: float) -> None:
        self._other_top = walk.found
        self._look(RING_TOP, self._identity.me, self._found_own_top, now)

    def _found_own_top(self, walk: Lookup, now: float) -> None:
        assert walk.found is not None and self._other_top is not None and self._neighbour is not None
        if self._other_top > walk.found:
            self._findings += 1
            self._conclude(move=self._was_fenced or self._findings >= _FINDINGS_TO_MOVE, now=now)
        else:
            self._findings = 0
            self._identity.tell(self._neighbour, Meet())
            self._conclude(move=False, now=now)

    def _conclude(self, move: bool, now: float) -> None:
        if move:
            self.move_to = self._contact
        self._rest(now)
