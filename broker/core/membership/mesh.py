"""The mesh: brokers that are in no ring greet each other, and open a ring when there are enough of them.

The theorem about the ring (Zave) holds from r + 1 members on: so fewer brokers are a full mesh, in which each broker
knows all others, and a key belongs to the next of them.

A broker greets all brokers that it knows, and the seeds; one that is silent for a while is forgotten. The lowest
broker, when it knows enough others and has known the same ones for a while, opens the ring:

    Propose(view)   to each of the view; one that knows no better promises to do nothing else for a while, and says
    Agree(view)     and when all of them have,
    Open(view)      each takes its ideal place.

An Open may be lost: a letter from a ring, written by one of the view to one who promised, proves that all agreed, and
counts as Open. A broker that hears of a ring joins it instead; so a mesh never grows beside a ring. Joining may come to
nothing, as the ring is busy: so a broker that was invited a moment ago neither proposes a ring, nor agrees, nor opens
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from .config import MESH_MAX
from .identity import Identity
from .members import Member
from .messages import Agree, Gone, Greet, Letter, Open, Propose

__all__ = ["Mesh"]

View = tuple[Member, ...]


class Mesh:
    """Finds the other brokers while there is no ring, and opens one with them.

    Exists only while the broker is in no ring.
    """

    def __init__(self, identity: Identity, now: float) -> None:
        self.identity = identity
        self.known: dict[Member, float] = {}
        self.promised: View = ()
        self.opened: View = ()
        self.heard_of_ring_at = float("-inf")
        self._promise_ends = 0.0
        self._agreed: dict[Member, None] = {}
        self._view: View = (identity.me,)
        self._view_since = now
        self._greet_at = now + identity.random.uniform(0.0, identity.config.greet_seconds)

    def members(self) -> View:
        """All brokers of the mesh, in order."""
        return tuple(sorted((*self.known, self.identity.me)))

    def next_deadline(self) -> float:
        """When `wake` has something to do."""
        return self._greet_at

    def wake(self, now: float, free: bool) -> None:
        """Forget the silent, greet, and open a ring if it is time; `free` when no ring was found to join."""
        if now < self._greet_at:
            return
        config = self.identity.config
        if now > self._greet_at + config.silence_seconds / 2:
            self.known = dict.fromkeys(self.known, now)  # we stood still: the silence was ours
        self._greet_at = now + config.greet_seconds * self.identity.random.uniform(0.8, 1.2)
        for member in [member for member, heard in self.known.items() if heard + config.silence_seconds < now]:
            del self.known[member]
            self.identity.remember(member.address)
        if self.promised and now >= self._promise_ends:
            self.promised = ()
        greeting = Greet(tuple(self.known))
        for member in self.known:
            self.identity.tell(member, greeting)
        addresses = {member.address: None for member in self.known}
        for address in self._asked_contacts():
            if address not in addresses:
                self.identity.tell_address(address, greeting)
        view = self.members()
        if view != self._view:
            self._view, self._view_since = view, now
        if free and self._may_propose(view, now):
            self._propose(view, now)

    def _knows_a_ring(self, now: float) -> bool:
        """Whether we were invited to one a moment ago: then we shall be again."""
        return now - self.heard_of_ring_at < self.identity.config.silence_seconds

    def _asked_contacts(self) -> list[str]:
        """All seeds, and one of those known once."""
        former = list(self.identity.once_known)
        return [*self.identity.seeds, *([self.identity.random.choice(former)] if former else [])]

    def _may_propose(self, view: View, now: float) -> bool:
        config = self.identity.config
        settled = now - self._view_since >= config.silence_seconds
        enough = len(view) >= config.ring_size_min
        first = view[0] == self.identity.me
        return settled and enough and first and not self.promised and not self._knows_a_ring(now)

    def _propose(self, view: View, now: float) -> None:
        self.promised = view
        self._promise_ends = now + self.identity.config.promise_seconds / 3
        self._agreed = {self.identity.me: None}
        for member in view[1:]:
            self.identity.tell(member, Propose(view))

    def greeted(self, letter: Letter, body: Greet, now: float) -> None:
        """A greeting: from a broker without a ring."""
        former = [member for member in self.known if member.address == letter.sender.address]
        for member in former:
            del self.known[member]
        if len(self.known) < MESH_MAX:
            self.known[letter.sender] = now
        if not former:
            self.identity.tell(letter.sender, Greet(tuple(self.known)))
        here = {member.address: None for member in (*self.known, self.identity.me)}
        for member in body.known[:MESH_MAX]:
            if member.address not in here:
                self.identity.tell_address(member.address, Greet(()))

    def expect(self, members: Sequence[Member], now: float) -> None:
        """Count these as heard: they were in the ring that is no more, and are about to greet."""
        for member in members:
            self.known[member] = now

    def left(self, letter: Letter, body: Gone) -> None:
        """It says itself that it goes."""
        if body.member == letter.sender:
            self.known.pop(body.member, None)

    def proposed(self, letter: Letter, body: Propose, now: float, free: bool) -> None:
        """Agree unless something else is going on, or a broker is missing from the view."""
        view = body.view
        first = len(view) >= self.identity.config.ring_size_min and view[0] == letter.sender
        fits = first and self.identity.me in view and all(member in view for member in self.known)
        fits = fits and not self._knows_a_ring(now)
        if free and fits and self.promised in ((), view):
            self.promised = view
            self._promise_ends = now + self.identity.config.promise_seconds
            self.identity.tell(letter.sender, Agree(view))

    def agreed(self, letter: Letter, body: Agree, now: float) -> None:
        """The last one opens the ring."""
        if body.view != self.promised or body.view[0] != self.identity.me or now >= self._promise_ends:
            return
        if self._knows_a_ring(now):
            self.promised = ()
            return
        self._agreed[letter.sender] = None
        if len(self._agreed) == len(body.view):
            self.opened = body.view
            for member in body.view[1:]:
                self.identity.tell(member, Open(body.view))

    def told_open(self, letter: Letter, body: Open, now: float) -> None:
        """What was promised has come."""
        if body.view == self.promised and letter.sender == body.view[0]:
            self.opened = body.view

    def heard_of_ring(self, letter: Letter) -> None:
        """A letter from a ring: if its writer is of the view that we promised, then that ring is open."""
        me = self.identity.me
        if letter.recipient == me and letter.sender in self.promised and self.promised[0] != me:
            self.opened = self.promised
