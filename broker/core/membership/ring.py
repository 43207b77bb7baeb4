"""The ring machine: the pointers of one member, and the steps that keep them right.

This is Chord as Zave corrected it, not the text of 2001. A member has a predecessor and a list of r
successors, always r entries, some of which may be dead or artificial. Three steps change them:

    join        copy the whole list of the member before one's own place; that member is the first predecessor
    stabilize   ask the head of the list; adopt (head + its list) when it answers, drop it and pad when it is dead, and
                try the next. If the head knows a predecessor between us, ask that one and adopt it only if it answers;
                then notify the new head, or the old one when the candidate was dead
    rectify     another member notified us: take it as predecessor if it is nearer or if the present one does not answer

*One open query.* A step counts as happening at the moment when the asked member answers. Until it is finished our own
pointers are undefined, so we answer a Query with Busy, which also says that we live. Busy ends the asker's step, which
begins again after a random while, so two that ask each other never wait for ever. Pings are always answered.

*A timeout means dead.* A member that does not answer is declared dead and stays so; see `identity.py`.

*Not yet ours.* A new member owns its keys only after its predecessor has adopted it, that is, has notified it.

Something may happen that the proof excludes: the whole list is dead (`orphaned`), or the list reaches round to
ourselves, because fewer than r + 1 members are left (`shrunk`). Then `lost` says so, and `machine.py` starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..keyspace import between
from ..safeguards import Safeguard
from .identity import Identity
from .lookup import Lookup
from .members import Member, SuccessorList, adopted, after, without_head
from .messages import Busy, Fenced, Letter, Notify, Ping, Pong, Query, Seen, State

__all__ = [
    "Joining",
    "Ring",
    "Step",
]

# Joining: how a broker becomes a member of a ring that it has heard of (the step *join*).
#
# First a walk to the member before our place, then the step itself: ask that one for its pointers, check that our
# place is still between it and its successor, and take its whole list. The step happens when it answers. Anything that
# goes wrong ends the attempt; the next invitation begins another.


class Joining:
    """One attempt. `pointers` are the predecessor and the list to begin with; `failed` says that it came to nothing."""

    def __init__(self, identity: Identity, contact: str, now: float) -> None:
        self._identity = identity
        self._lookup = Lookup(identity, identity.me, contact, (), now)
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
        return self._lookup.deadline if self._asked is None else self._deadline

    def wake(self, now: float) -> None:
        """Look on, or ask again, or give up."""
        if self._asked is None:
            self._lookup.wake(now)
            self._after_walk(now)
        elif now >= self._deadline:
            self._ask(now)

    def saw(self, letter: Letter, body: Seen, now: float) -> None:
        """An answer to a look."""
        if self._asked is None:
            self._lookup.saw(letter, body, now)
            self._after_walk(now)

    def _after_walk(self, now: float) -> None:
        self.failed = self._lookup.failed
        if self._lookup.found is not None:
            self._asked = self._lookup.found
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
            self.pointers = (letter.sender, self._list(body.successors))
        else:
            self.failed = True

    def fits(self, member: Member, successors: SuccessorList) -> bool:
        """Whether our place is still between that member and its successor, so that we may take this list."""
        me = self._identity.me
        return between(member, me, successors[0]) and me not in successors and member not in successors

    def _list(self, successors: SuccessorList) -> SuccessorList:
        if Safeguard.RING_ONE_SUCCESSOR in self._identity.config.safeguards:
            return successors
        made_up = [successors[0]]
        while len(made_up) < len(successors):
            made_up.append(after(made_up[-1]))
        return tuple(made_up)


@dataclass(slots=True)
class Step:
    """A step with its open query: `kind` is head, candidate or rectify."""

    kind: str
    asked: Member
    number: int
    deadline: float
    sendings: int = 1


class Ring:
    """Keeps predecessor and successors of one member right while others come and die.

    Exists only while the broker is a member of a ring.
    """

    def __init__(self, identity: Identity, predecessor: Member, successors: SuccessorList, now: float) -> None:
        self.identity = identity
        self._safeguards = identity.config.safeguards
        self._is_padded = Safeguard.RING_PADDING in self._safeguards
        self.predecessor = predecessor
        self.successors = successors
        self.step: Step | None = None
        self.notified_by: Member | None = None
        self.serving = False
        self.lost = ""
        self.left: tuple[Member, ...] = ()  # who is there beside us, when it was lost because so few are
        self.steps_done = 0
        self.stabilized_at = now
        self.answered_at = now  # when a member last answered in time: one that slept finds answers that are too old
        self.stabilize_at = now + identity.random.uniform(0.0, identity.config.stabilize_seconds)
        self.table: dict[type, Callable[[Letter, Any, float], None]] = {
            Query: self._query,
            State: self._state,
            Busy: self._busy,
            Ping: self._ping,
            Pong: self._pong,
            Notify: self._notify,
        }

    def next_deadline(self) -> float:
        """When `wake` has something to do."""
        if self.step is not None:
            return self.step.deadline
        return self.stabilize_at

    def wake(self, now: float) -> None:
        """Ask again, give up on who does not answer, or stabilize."""
        step = self.step
        if step is None:
            if now >= self.stabilize_at and not self.lost:
                self.stabilize(now)
        elif now >= step.deadline:
            if step.sendings < self.identity.config.attempts:
                step.sendings += 1
                step.deadline = now + self.identity.config.answer_seconds
                self._ask(step)
            else:
                self.dead(step.asked, now)

    def dead(self, member: Member, now: float) -> None:
        """A member is dead: it did not answer, or its broker said so. Finishes the step that asked it."""
        self.identity.declare_dead(member)
        step = self.step
        if step is None or step.asked != member:
            if member == self.successors[0]:
                self.stabilize_at = now
            return
        self.step = None
        self.steps_done += 1
        if step.kind == "head":
            self._drop_head(now)
        elif step.kind == "candidate":
            self._candidate_is_dead(now)
        else:
            self._rectified(now)

    def stabilize(self, now: float) -> None:
        """Begin with the head of the list."""
        assert self.step is None
        config = self.identity.config
        self.stabilize_at = now + config.stabilize_seconds * self.identity.random.uniform(0.8, 1.2)
        if self._is_dead(self.successors[0]):
            self._drop_head(now)
        else:
            self._begin("head", self.successors[0], now)

    def validate(self) -> None:
        """Asserts what must hold within one member."""
        assert len(self.successors) == self.identity.config.list_length or not self._is_padded
        assert self.successors[0] != self.identity.me or self.lost
        assert self.step is None or self.step.asked != self.identity.me

    # --- questions of others -------------------------------------------------------------------------------------

    def _query(self, letter: Letter, body: Query, now: float) -> None:
        if self.busy():
            self.identity.tell(letter.sender, Busy(body.number))
        else:
            self.identity.tell(letter.sender, State(body.number, self.predecessor, self.successors))

    def busy(self) -> bool:
        """Whether our pointers are undefined now."""
        return self.step is not None and Safeguard.RING_BUSY in self._safeguards

    def _ping(self, letter: Letter, body: Ping, now: float) -> None:
        self.identity.tell(letter.sender, Pong(body.number))

    def _notify(self, letter: Letter, body: Notify, now: float) -> None:
        sender, waiting = letter.sender, self.notified_by
        if waiting is None or between(waiting, sender, self.identity.me):
            self.notified_by = sender
        self._settle(now)

    # --- rectify -------------------------------------------------------------------------------------------------

    def _settle(self, now: float) -> None:
        """Between two steps: look at who notified us."""
        sender = self.notified_by
        if sender is None or self.step is not None or self.lost:
            return
        if sender == self.predecessor:
            self.notified_by = None
            self.serving = True
        elif between(self.predecessor, sender, self.identity.me) or self._is_dead(self.predecessor):
            self._rectified(now)
        else:
            self._begin("rectify", self.predecessor, now)

    def _rectified(self, now: float) -> None:
        """The member that notified us is our predecessor."""
        assert self.notified_by is not None
        self.predecessor, self.notified_by = self.notified_by, None
        self.serving = True
        self.steps_done += 1

    def _pong(self, letter: Letter, body: Pong, now: float) -> None:
        step = self.step
        if step is not None and step.kind == "rectify" and step.number == body.number:
            self.step = None
            self.steps_done += 1
            # Of those that notified us meanwhile the nearest waits in `notified_by`; it may be nearer than this one.
            nearer = self.notified_by
            if nearer is not None and not between(self.predecessor, nearer, self.identity.me):
                self.notified_by = None
            self._settle(now)

    # --- stabilize -----------------------------------------------------------------------------------------------

    def _state(self, letter: Letter, body: State, now: float) -> None:
        step = self.step
        if step is None or step.number != body.number or step.kind == "rectify":
            return
        self._answered(step, now)
        self.step = None
        self.steps_done += 1
        if not self._adopt(step.asked, body.successors):
            return
        self.stabilized_at = now
        candidate = body.predecessor
        if step.kind == "head" and candidate is not None and between(self.identity.me, candidate, step.asked):
            self._consider(candidate, now)
        else:
            self._notify_head(now)

    def _consider(self, candidate: Member, now: float) -> None:
        """Our head has a predecessor between us: it must answer before it is adopted."""
        if Safeguard.RING_UNCHECKED not in self._safeguards:
            self.successors = adopted(candidate, self.successors)
            self.steps_done += 1
            if not candidate.artificial:
                self._notify_head(now)
        elif self._is_dead(candidate):
            if not candidate.artificial:
                self.identity.tell(candidate, Fenced())
            self._candidate_is_dead(now)
        else:
            self._begin("candidate", candidate, now)

    def _candidate_is_dead(self, now: float) -> None:
        """The old head must hear of us, or it keeps its dead predecessor for ever."""
        if Safeguard.RING_NOTIFY in self._safeguards:
            self._notify_head(now)
        else:
            self._settle(now)

    def _adopt(self, head: Member, successors: SuccessorList) -> bool:
        """Take the list of a member that answered; False when the ring turns out to be too small to be one."""
        if self._reaches_round(head, successors):
            around = adopted(head, successors)
            self.shrink([one for one in around[: around.index(self.identity.me)] if not self._is_dead(one)])
            return False
        self.successors = (head, *successors)[: self.identity.config.list_length]
        return True

    def shrink(self, left: Sequence[Member]) -> None:
        """So few are left that there is no ring any more."""
        self.lost, self.left = "shrunk", tuple(left)

    def _reaches_round(self, head: Member, successors: SuccessorList) -> bool:
        return self.identity.me in adopted(head, successors) and Safeguard.RING_ROUND in self._safeguards

    def _drop_head(self, now: float) -> None:
        for _ in self.successors:
            self.successors = self._without_head()
            if all(entry.artificial for entry in self.successors):
                break
            if not self._is_dead(self.successors[0]):
                self._begin("head", self.successors[0], now)
                return
        self.lost = "orphaned"

    def _without_head(self) -> SuccessorList:
        if not self._is_padded:
            return self.successors[1:] or self.successors
        if Safeguard.RING_REPEAT_LAST not in self._safeguards:
            return (*self.successors[1:], self.successors[-1])
        return without_head(self.successors)

    def _notify_head(self, now: float) -> None:
        self.identity.tell(self.successors[0], Notify())
        self._settle(now)

    def _busy(self, letter: Letter, body: Busy, now: float) -> None:
        """End the step, so that our own pointers are defined again, and try later: so no members wait in a circle."""
        step = self.step
        if step is None or step.number != body.number:
            return
        self._answered(step, now)
        self.step = None
        random, pause = self.identity.random, self.identity.config.busy_seconds
        self.stabilize_at = min(self.stabilize_at, now + pause * random.uniform(0.5, 1.5))
        self._settle(now)

    # --- the open query ------------------------------------------------------------------------------------------

    def _begin(self, kind: str, asked: Member, now: float) -> None:
        assert self.step is None, "one open query"
        deadline = now + self.identity.config.answer_seconds
        self.step = Step(kind, asked, self.identity.number(), deadline)
        self._ask(self.step)

    def _ask(self, step: Step) -> None:
        question = Ping(step.number) if step.kind == "rectify" else Query(step.number)
        self.identity.tell(step.asked, question)

    def _answered(self, step: Step, now: float) -> None:
        if now <= step.deadline:
            self.answered_at = now

    def _is_dead(self, member: Member) -> bool:
        return member.artificial or member in self.identity.fenced
