"""Chord: which brokers there are, as one broker sees it: a pure machine.

    effects  = chord.handle(Heard(letter), now)    a letter came; or Tick() when the deadline has come
    deadline = chord.next_deadline()
    chord.owning()                                 the keys that are ours
    chord.farewell()                               the last letters, before the broker stops in order
    chord.validate()

A broker is in one of two roles. In the **mesh** it is in no ring: it greets the others (`mesh.py`), opens a ring with
them when they are list length + 1, or joins a ring that it hears of (`Joining` in `ring.py`). In the **ring** it is a
member (`ring.py`) and asks now and then whether there is a second ring (`merge.py`, with `lookup.py`). Going from the
ring back to the mesh, for whatever reason, ends a life: the broker is *reborn* in the next incarnation, since to the
others the former member is dead, and the dead do not come back.

What the proof assumes (Zave): A1 brokers do not lie and have different names. A2 a broker that does not answer is dead;
one that was only slow is fenced, finds out, and comes back as another member. A3 a failure leaves every member a live
entry in its list. A4 a principal does not fail when only list length + 1 are left. When the world breaks A3 or A4 a
broker that has lost all others starts over from its seeds, and so the cluster recovers, but for a while keys may have
two owners.

`cluster/cluster.py` owns one Chord, hands it the letters that peers' links bring and its own Wake as Tick, and takes
its effects to the parts beside it: Post to the links, and after each step neighbours and `owning()` to the keyed store
and the routing table. Incarnations need no record: a broker's life, which is one, stands before its rebirths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from ..effects import Note
from ..keyspace import between
from .config import ChordConfig
from .identity import Identity
from .members import Member, SuccessorList, ideal
from .merge import Healing
from .mesh import Mesh
from .messages import (
    Agree,
    Busy,
    ChordEffect,
    ChordInput,
    Fenced,
    Gone,
    Greet,
    Heard,
    Letter,
    Look,
    Meet,
    Notify,
    Open,
    Owning,
    Ping,
    Pong,
    Propose,
    Query,
    Ringed,
    Seen,
    Shrunk,
    State,
)
from .ring import Joining, Ring

__all__ = ["Chord", "ChordStatus"]

_FOR_ONE_LIFE = (Query, Ping, Notify)
"""Letters that mean one life of a broker: another life of it answers Gone."""


@dataclass(frozen=True, slots=True)
class ChordStatus:
    """A snapshot, for metrics and `headgate ring`."""

    member: Member
    role: str
    members: tuple[Member, ...]
    dead_entries: int
    stabilized_seconds_ago: float
    serving: bool


class Chord:
    """Decides who the members of the ring are: the membership machine of one broker."""

    def __init__(self, me: Member, seeds: Sequence[str], config: ChordConfig, random: Random, now: float) -> None:
        self.identity = Identity(me, seeds, config, random)
        self.config = config
        self.ring: Ring | None = None
        self.mesh: Mesh | None = Mesh(self.identity, now)
        self.joining: Joining | None = None
        self.healing: Healing | None = None
        self.hints: tuple[Member, ...] = ()
        self._told: Owning | None = None
        self.has_left = False
        """Said farewell: to the others it is dead."""
        self._in_ring: dict[type, Callable[[Ring, Letter, Any, float], None]] = {
            Query: self._life_letter,
            Ping: self._life_letter,
            Notify: self._life_letter,
            State: self._life_letter,
            Busy: self._life_letter,
            Pong: self._life_letter,
            Gone: lambda ring, letter, body, now: ring.dead(body.member, now),
            Fenced: self._fenced,
            Meet: self._met,
            Look: self._look,
            Seen: self._seen,
            Greet: self._greeted_in_ring,
            Shrunk: self._told_shrunk,
        }
        self._in_mesh: dict[type, Callable[[Mesh, Letter, Any, float], None]] = {
            Greet: lambda mesh, letter, body, now: mesh.greeted(letter, body, now),
            Gone: lambda mesh, letter, body, now: mesh.left(letter, body),
            Agree: lambda mesh, letter, body, now: mesh.agreed(letter, body, now),
            Open: lambda mesh, letter, body, now: mesh.told_open(letter, body, now),
            Fenced: self._fenced_outside,
            Propose: lambda mesh, letter, body, now: mesh.proposed(letter, body, now, self.joining is None),
            Ringed: self._ringed,
            Look: lambda mesh, letter, body, now: self.identity.tell_address(letter.sender.address, Greet(())),
            Seen: self._for_joining,
            Busy: self._for_joining,
            State: self._for_joining,
        }

    @property
    def me(self) -> Member:
        """The member that this broker is at present."""
        return self.identity.me

    def found(self, members: Sequence[Member], now: float) -> None:
        """Begin in an open ring of these, at least list length + 1, each of which does the same: worlds start so."""
        predecessor, successors = ideal(members, self.config.list_length)[self.me]
        self._enter(predecessor, successors, now)
        assert self.ring is not None
        self.ring.serving = True

    def handle(self, happened: ChordInput, now: float) -> list[ChordEffect]:
        """The one mutator: what the host must do because of this input."""
        if self.has_left:
            return []
        if isinstance(happened, Heard):
            self._heard(happened.letter, now)
        else:
            self._tick(now)
        self._change_role(now)
        owning = self.owning()
        if owning != self._told:
            self._told = owning
            self.identity.effects.append(owning)
        return self._take_effects()

    def next_deadline(self) -> float:
        """When to hand in a Tick."""
        if self.has_left:
            return float("inf")
        parts = (self.ring, self.mesh, self.joining, self.healing)
        return min(part.next_deadline() for part in parts if part is not None)

    def owning(self) -> Owning:
        """The arc of keys that is ours."""
        if self.ring is not None:
            return Owning(self.ring.predecessor, self.me, self.ring.serving)
        assert self.mesh is not None
        members = self.mesh.members()
        return Owning(members[members.index(self.me) - 1], self.me, self.joining is None)

    def members(self) -> tuple[Member, ...]:
        """All members that this broker knows to be next to it, itself first: all of a mesh, a stretch of a ring."""
        if self.ring is not None:
            return tuple(dict.fromkeys((self.me, *(one for one in self.ring.successors if not self._is_dead(one)))))
        assert self.mesh is not None
        return (self.me, *self.mesh.known)

    def meet(self, address: str) -> list[ChordEffect]:
        """A link to a broker at this address is up: a broker that is in no ring greets it.

        Else two that are linked, as one remembers the other's address, would never be told of each other here.
        """
        if self.mesh is not None and not self.has_left:
            self.identity.tell_address(address, Greet(tuple(self.mesh.known)))
        return self._take_effects()

    def farewell(self) -> list[ChordEffect]:
        """The last words of a broker that stops in order; it says nothing more, and the others take it for dead.

        A ring that would be too small without us ends with us: the others go back to the mesh when they hear it, all at
        once, and none has to find out.
        """
        others = self._around()
        ring = self.ring
        if ring is not None and ring.predecessor in ring.successors and len(others) < self.config.ring_size_min:
            for member in others:
                self.identity.tell(member, Shrunk(tuple(others), (self.me,)))
        for member in others:
            self.identity.tell(member, Gone(self.me))
        self.has_left = True
        return self._take_effects()

    def status(self, now: float) -> ChordStatus:
        """A snapshot."""
        ring = self.ring
        dead = 0 if ring is None else sum(self._is_dead(one) for one in ring.successors)
        since = 0.0 if ring is None else now - ring.stabilized_at
        role = "mesh" if ring is None else "ring"
        return ChordStatus(self.me, role, self.members(), dead, since, self.owning().serving)

    def validate(self) -> None:
        """Asserts that the broker is in one role, mesh or ring, and that its ring is sound."""
        assert (self.ring is None) != (self.mesh is None)
        assert (self.ring is None) == (self.healing is None)
        assert self.joining is None or self.mesh is not None
        assert not self.identity.effects
        if self.ring is not None:
            self.ring.validate()

    def _around(self) -> list[Member]:
        """The living that are next to us, on both sides."""
        before = () if self.ring is None else (self.ring.predecessor,)
        around = dict.fromkeys((*before, *self.members()))
        return [one for one in around if one != self.me and not self._is_dead(one)]

    def _take_effects(self) -> list[ChordEffect]:
        effects = self.identity.effects[:]
        self.identity.effects.clear()
        return effects

    # --- letters -------------------------------------------------------------------------------------------------

    def _heard(self, letter: Letter, now: float) -> None:
        body, kind = letter.body, type(letter.body)
        if letter.sender.address == self.me.address:
            return  # a former life of ours, or a seed that is ourselves under another name
        if letter.recipient is None and kind in _FOR_ONE_LIFE:
            return  # no broker writes such a letter
        if letter.recipient is not None and letter.recipient != self.me:
            if kind in _FOR_ONE_LIFE:
                self._answer_gone(letter)
            return
        if self.mesh is not None and kind in _FOR_ONE_LIFE:
            self.mesh.heard_of_ring(letter)
            self._change_role(now)
            if self.ring is None:
                self._answer_gone(letter)
                self._be_reborn_outside(self.mesh)
                return
        if self.ring is not None:
            in_ring = self._in_ring.get(kind)
            if in_ring is not None:
                in_ring(self.ring, letter, body, now)
        elif self.mesh is not None:
            in_mesh = self._in_mesh.get(kind)
            if in_mesh is not None:
                in_mesh(self.mesh, letter, body, now)

    def _answer_gone(self, letter: Letter) -> None:
        assert letter.recipient is not None
        self.identity.tell(letter.sender, Gone(letter.recipient))

    def _life_letter(self, ring: Ring, letter: Letter, body: Any, now: float) -> None:
        if letter.sender in self.identity.fenced:
            if type(body) in _FOR_ONE_LIFE:
                self.identity.tell(letter.sender, Fenced())
        else:
            ring.table[type(body)](letter, body, now)

    def _fenced(self, ring: Ring, letter: Letter, body: Fenced, now: float) -> None:
        assert self.healing is not None
        self.healing.ask_soon(letter.sender.address, True, now)
        if ring.step is not None and ring.step.asked == letter.sender:
            ring.dead(letter.sender, now)

    def _fenced_outside(self, mesh: Mesh, letter: Letter, body: Fenced, now: float) -> None:
        """A ring counted on us and gave us up, though we never came to be in it; it takes up none that it buried."""
        if letter.recipient == self.me:
            self._be_reborn_outside(mesh)

    def _be_reborn_outside(self, mesh: Mesh) -> None:
        """To them we have died as what we were; and what that one promised is void."""
        self.identity.be_reborn()
        self.joining = None
        mesh.promised = ()

    def _met(self, ring: Ring, letter: Letter, body: Meet, now: float) -> None:
        assert self.healing is not None
        self.healing.ask_soon(letter.sender.address, False, now)

    def _look(self, ring: Ring, letter: Letter, body: Look, now: float) -> None:
        self.identity.tell_address(letter.sender.address, Seen(body.number, ring.successors, self.hints))

    def _seen(self, ring: Ring, letter: Letter, body: Seen, now: float) -> None:
        assert self.healing is not None
        self.healing.saw(letter, body, now)

    def _greeted_in_ring(self, ring: Ring, letter: Letter, body: Greet, now: float) -> None:
        """Invite, unless the ring is about to become a mesh, or we slept and do not know whether it still is one."""
        config = self.config
        awake = now - ring.answered_at <= 2 * config.stabilize_seconds + config.attempts * config.answer_seconds
        if awake and not any(entry.artificial for entry in ring.successors):
            self.identity.tell_address(letter.sender.address, Ringed())

    def _told_shrunk(self, ring: Ring, letter: Letter, body: Shrunk, now: float) -> None:
        """Believe it if no member that we know of is missing: then all leave the ring in one moment, not one by one."""
        around = self._around()
        if self.me in body.left and all(one in body.left or one in body.dead for one in around):
            for member in around:
                if member in body.dead:
                    self.identity.declare_dead(member)
            ring.shrink([one for one in body.left if one != self.me])

    def _ringed(self, mesh: Mesh, letter: Letter, body: Ringed, now: float) -> None:
        mesh.heard_of_ring_at = now
        if self.joining is None and not mesh.promised:
            self.joining = Joining(self.identity, letter.sender.address, now)

    def _for_joining(self, mesh: Mesh, letter: Letter, body: Any, now: float) -> None:
        if self.joining is not None:
            self.joining.table[type(body)](letter, body, now)

    # --- time and roles ------------------------------------------------------------------------------------------

    def _tick(self, now: float) -> None:
        for part in (self.ring, self.joining, self.healing):
            if part is not None and now >= part.next_deadline():
                part.wake(now)
        if self.mesh is not None:
            self.mesh.wake(now, self.joining is None)

    def _change_role(self, now: float) -> None:
        """What the parts found out, one at a time, decided here."""
        if self.ring is not None and self.ring.lost:
            self._start_over(self.ring, self.ring.lost, None, now)
        elif self.ring is not None and self.healing is not None and self.healing.move_to is not None:
            self._start_over(self.ring, "moving to another ring", self.healing.move_to, now)
        elif self.joining is not None and self.joining.pointers is not None:
            self._enter(*self.joining.pointers, now)
        elif self.mesh is not None and self.mesh.opened:
            self._open(self.mesh.opened, now)
        elif self.joining is not None and self.joining.failed:
            self.joining = None

    def _open(self, view: Sequence[Member], now: float) -> None:
        """Take the ideal place. Keys that were ours in the mesh are ours in the ring; others must be given to us first.

        They are more than before if a broker came between our predecessor in the view and us after all had agreed.
        """
        former = self.owning()
        predecessor, successors = ideal(view, self.config.list_length)[self.me]
        self._enter(predecessor, successors, now)
        assert self.ring is not None
        gains = predecessor != former.after and between(predecessor, former.after, self.me)
        self.ring.serving = former.serving and not gains

    def _enter(self, predecessor: Member, successors: SuccessorList, now: float) -> None:
        self.mesh = self.joining = None
        self.ring = Ring(self.identity, predecessor, successors, now)
        self.healing = Healing(self.identity, self.ring, now)
        self.identity.effects.append(Note("joined a ring", {"broker": self.me.address, "after": predecessor.address}))

    def _start_over(self, ring: Ring, reason: str, contact: str | None, now: float) -> None:
        around = dict.fromkeys((*ring.left, ring.predecessor, *ring.successors))
        former = [one for one in around if not self._is_dead(one) and one != self.me]
        news = Shrunk((self.me, *former), tuple(self.identity.fenced)[-self.config.list_length * 2 :])
        self.identity.be_reborn()
        self.ring = self.healing = None
        self.mesh = Mesh(self.identity, now)
        if contact is None:
            self.mesh.expect(former, now)  # who was around is around: keys do not become ours for a moment of silence
        self.identity.effects.append(Note("left the ring", {"broker": self.me.address, "reason": reason}))
        for member in former:
            self.identity.remember(member.address)
            if reason == "shrunk":
                self.identity.tell(member, news)
            if contact is None:
                self.identity.tell_address(member.address, Greet(()))
        if contact is not None:
            self.joining = Joining(self.identity, contact, now)

    def _is_dead(self, member: Member) -> bool:
        return member.artificial or member in self.identity.fenced
