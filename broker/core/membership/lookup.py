"""A walk: look around the ring from member to member until the one before some place is found.

Each member looked at shows its successor list and hints (fingers). The walk goes on to whichever of them is nearest
before the place; a member that knows none between itself and the place is the *best predecessor*. Hints may be wrong in
any way: only a member strictly between counts, and one that does not answer is passed over and never asked again, so a
walk ends with any hints. What it finds is only a hint itself; the part that acts on it asks again (join step 2).
"""

from __future__ import annotations

from collections import deque

from ..keyspace import between
from .config import WALK_HOPS_MAX, WALK_MEMORY_HOPS
from .identity import Identity
from .members import Member, SuccessorList
from .messages import Letter, Look, Seen

__all__ = ["Lookup"]


class Lookup:
    """From a start towards a place; `own` is our own list, should the walk come by.

    `found` is the member before the place, `successors` the list that this one showed.
    """

    def __init__(
        self,
        identity: Identity,
        place: Member,
        start: Member | str,
        own: SuccessorList,
        now: float,
        takes_hints: bool = True,
    ) -> None:
        self._identity = identity
        self._place = place
        self._own = own
        self._takes_hints = takes_hints
        self._excluded: dict[Member, None] = {}
        self._path: list[Member | str] = []
        self._asked = start
        self.number = 0
        self.deadline = 0.0
        self.hops = 0
        self.found: Member | None = None
        self.successors: SuccessorList = ()
        self.failed = False
        self._shown: deque[SuccessorList] = deque(maxlen=WALK_MEMORY_HOPS)
        self._go(start, now)

    @property
    def over(self) -> bool:
        """Found, or not to be found."""
        return self.failed or self.found is not None

    def shown(self) -> dict[Member, None]:
        """Who was visited or shown on the last hops."""
        return {member: None for members in self._shown for member in members if not member.artificial}

    def saw(self, letter: Letter, body: Seen, now: float) -> None:
        """An answer came."""
        if body.number != self.number or self.over:
            return
        self._look(letter.sender, body.hints, body.successors, now)

    def _look(self, here: Member, hints: SuccessorList, successors: SuccessorList, now: float) -> None:
        self._shown.append((here, *successors))
        nearest = self._nearest(here, (*hints, *successors) if self._takes_hints else successors)
        if nearest is None:
            self.found, self.successors = here, successors
        else:
            self._path.append(here)
            self._go(nearest, now)

    def wake(self, now: float) -> None:
        """Pass over who does not answer, and ask the one before it again."""
        if self.over or now < self.deadline:
            return
        if isinstance(self._asked, Member):
            self._excluded[self._asked] = None
        if self._path:
            self._go(self._path.pop(), now)
        else:
            self.failed = True

    def _nearest(self, here: Member, offered: tuple[Member, ...]) -> Member | None:
        place = self._place
        nearest: Member | None = None
        for member in offered:
            usable = not member.artificial and member not in self._excluded
            if usable and between(nearest or here, member, place) and between(here, member, place):
                nearest = member
        return nearest

    def _go(self, asked: Member | str, now: float) -> None:
        self.hops += 1
        if self.hops > WALK_HOPS_MAX:
            self.failed = True
            return
        self._asked = asked
        if asked == self._identity.me:
            self._look(self._identity.me, (), self._own, now)
            return
        self.number = self._identity.number()
        self.deadline = now + self._identity.config.answer_seconds
        address = asked if isinstance(asked, str) else asked.address
        self._identity.tell_address(address, Look(self.number))
