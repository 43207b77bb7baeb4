"""Joining: how a broker becomes a member of a ring that it has heard of (reliability 1.3, *Join of j*).

First a walk to the member before our place, then the step itself: ask that one for its pointers, check that our place
is still between it and its successor, and take its whole list. The step happens when it answers. Anything that goes
wrong ends the attempt; the next invitation begins another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .chord_messages import Busy, Letter, Query, Seen, State
from .identifiers import between
from .identity import Identity
from .members import Member, SuccessorList
from .walk import Walk

__all__ = ["Joining"]


class Joining:
    """One attempt. `pointers` are the predecessor and the list to begin with; `failed` says that it came to nothing."""

    def __init__(self, identity: Identity, contact: str, now: float) -> None:
        self._identity = identity
        self._walk = Walk(identity, identity.me, contact, (), now)
        self._asked: Member | None = None
        self.number = 0
        self._deadline = 0.0
        self._sendings = 0
        self.pointers: tuple[Member, SuccessorList] | None = None
        self.failed = False
        self.table: dict[type, Callable[[Letter, Any, float], None]] = {
            Seen: self.saw,
            Busy: self.busy,
            State: self.state,
        }

    def next_deadline(self) -> float:
        """When `wake` has something to do."""
        return self._walk.deadline if self._asked is None else self._deadline

    def wake(self, now: float) -> None:
        """Look on, or ask again, or give up."""
        if self._asked is None:
            self._walk.wake(now)
            self._after_walk(now)
        elif now >= self._deadline:
            self._ask(now)

    def saw(self, letter: Letter, body: Seen, now: float) -> None:
        """An answer to a look."""
        if self._asked is None:
            self._walk.saw(letter, body, now)
            self._after_walk(now)

    def _after_walk(self, now: float) -> None:
        self.failed = self._walk.failed
        if self._walk.found is not None:
            self._asked = self._walk.found
            self.number = self._identity.number()
            self._ask(now)

    def _ask(self, now: float) -> None:
        assert self._asked is not None
        self._sendings += 1
        if self._sendings > self._identity.config.attempts:
            self.failed = True
            return
        self._deadline = now + self._identity.config.answer_seconds
        self._identity.tell(self._asked, Query(self.number))

    def busy(self, letter: Letter, body: Busy, now: float) -> None:
        """It lives: ask again after a while that differs every time, and as often as it takes."""
        if body.number == self.number:
            self._sendings = 0
            pause = self._identity.config.busy_seconds
            self._deadline = now + pause * self._identity.random.uniform(0.5, 1.5)

    def state(self, letter: Letter, body: State, now: float) -> None:
        """The step: we are a member from the moment when this was written."""
        if self._asked is None or body.number != self.number:
            return
        if self.fits(letter.sender, body.successors):
            self.pointers = (letter.sender, self._list(letter.sender, body.successors))
        else:
            self.failed = True

    def fits(self, member: Member, successors: SuccessorList) -> bool:
        """Whether our place is still between that member and its successor, so that we may take this list."""
        me = self._identity.me
        return between(member, me, successors[0]) and me not in successors and member not in successors

    def _list(self, member: Member, successors: SuccessorList) -> SuccessorList:
        return successors
