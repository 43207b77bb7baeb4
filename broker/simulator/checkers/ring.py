"""Checkers of the ring: the invariant at every change of any member's pointers, and what follows from it.

A bare ring has one class for each promise: `step` gets each step of a broker with its effects, `settled` is called
after every change of the world. The nemesis of a bare ring checks before each fault whether the assumptions allow it.

The nemesis of a cluster does not check, so RingKept looks at what it did, and is in one of two modes:

    strict    the invariant holds after every step that changes pointers or sends an answer, and no member starts over;
              what follows from the invariant is checked every LOOK_SECONDS
    lenient   the assumptions were exceeded. Nothing is checked until the ring was as it should be for CALM_SECONDS and
              nothing old is under way: no broker is paused, and no partition is recent

The assumptions are those of the proof (`membership/machine.py`). A2 is exceeded when a member holds a living one for
dead; A3 and A4 when the invariant fails for the snapshot before a death as soon as the dead broker is removed from it.
At the end the ring is ideal, or the brokers are a full mesh, whatever happened before.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.cluster import LIFE_SHIFT
from headgate.broker.core.effects import Effect, Note, Send
from headgate.broker.core.inputs import Input
from headgate.broker.core.keyspace import between
from headgate.broker.core.membership import (
    Chord,
    ChordEffect,
    ChordInput,
    Letter,
    Member,
    Notify,
    Owning,
    Post,
    Snapshot,
    State,
    consequences,
    from_wire,
    ideal_complaints,
    invariant,
)
from headgate.protocol.messages import Letter as WireLetter

from ..engine import ClusterWorld, Host, RingHost, RingWorld, outcome, pointers_of, snapshot_of
from ..limits import CALM_SECONDS
from ..workloads import Client, ClusterHistory
from .checker import Checker
from .state import StateChecker

__all__ = [
    "Consequences",
    "InvariantHolds",
    "NobodyStartsOver",
    "OneQuery",
    "RING_CHECKERS",
    "RingChecker",
    "RingKept",
    "STORM_CHECKERS",
    "ServesWhenAdopted",
]


class RingChecker(Checker):
    """A checker of the machines of a bare ring."""

    def __init__(self, world: RingWorld) -> None:
        self.world: RingWorld = world


class InvariantHolds(RingChecker):
    """R1: the inductive invariant, over members and answers under way."""

    sees_answers = True
    """Without it, only the members' own lists count: for faults that do not spare answers."""

    def settled(self) -> None:
        """Evaluate the invariant on the snapshot."""
        snapshot = self.world.snapshot()
        if not self.sees_answers:
            snapshot.answers = ()
        broken = invariant(snapshot, self.world.config.list_length)
        if broken:
            self.fail(broken)


class Consequences(RingChecker):
    """R2: what the invariant implies holds."""

    def settled(self) -> None:
        """Follow the first successors round the ring."""
        broken = consequences(self.world.snapshot())
        if broken:
            self.fail(broken)


class OneQuery(RingChecker):
    """R3: no member tells its pointers in the middle of a step, and every machine validates."""

    def step(self, host: RingHost, happened: ChordInput, effects: Sequence[ChordEffect]) -> None:
        """Look for State messages in the effects, and validate the machine."""
        if host.machine is None:
            return
        host.machine.validate()
        ring = host.machine.ring
        if ring is not None and ring.step is not None:
            for effect in effects:
                if isinstance(effect, Post) and isinstance(effect.letter.body, State):
                    self.fail(f"{host.address} told its pointers in the middle of a step")


class ServesWhenAdopted(RingChecker):
    """R4: no member serves keys before its predecessor took it as its successor, but those that it served in the mesh
    until the moment when that mesh opened the ring."""

    def __init__(self, world: RingWorld) -> None:
        super().__init__(world)
        self._notified: dict[tuple[Member, Member], None] = {}
        members = world.snapshot().members
        self._first = {(pointers.predecessor, member): None for member, pointers in members.items()}
        self._in_mesh: dict[str, Owning] = {}

    def step(self, host: RingHost, happened: ChordInput, effects: Sequence[ChordEffect]) -> None:
        """Note who sent a Notify to whom: a member sends it to the first of its successor list."""
        for effect in effects:
            if isinstance(effect, Post) and isinstance(effect.letter.body, Notify):
                if effect.letter.recipient is not None:
                    self._notified[effect.letter.sender, effect.letter.recipient] = None
            elif isinstance(effect, Owning) and self.world.now > 0.0:
                self._look(host, effect)

    def _look(self, host: RingHost, told: Owning) -> None:
        machine = host.machine
        if machine is None or machine.ring is None:
            self._in_mesh[host.address] = told
            return
        kept = _within(told, self._in_mesh.pop(host.address, None))
        if told.serving and not kept and self._is_new(told) and (told.after, told.member) not in self._notified:
            self.fail(f"{host.address} serves, and {told.after} has not adopted it")

    def _is_new(self, told: Owning) -> bool:
        """Members of the first ring serve from the start, each before anything changed its predecessor."""
        return (told.after, told.member) not in self._first


def _within(told: Owning, former: Owning | None) -> bool:
    """Whether a member serves only what it served just before."""
    if former is None or not former.serving or former.member != told.member:
        return False
    return told.after == former.after or between(former.after, told.after, told.member)


class NobodyStartsOver(RingChecker):
    """Within the assumptions no member ever loses its ring or leaves it."""

    def step(self, host: RingHost, happened: ChordInput, effects: Sequence[ChordEffect]) -> None:
        """Look for the note that a member left the ring."""
        for effect in effects:
            if isinstance(effect, Note) and effect.event == "left the ring":
                self.fail(f"{host.address}: {effect.facts}")


RING_CHECKERS: tuple[type[RingChecker], ...] = (
    InvariantHolds,
    Consequences,
    OneQuery,
    ServesWhenAdopted,
    NobodyStartsOver,
)
"""The checkers while the nemesis respects the assumptions."""

STORM_CHECKERS: tuple[type[RingChecker], ...] = (OneQuery, ServesWhenAdopted)
"""The checkers whatever the nemesis does."""


class RingKept(StateChecker):
    """Judges the ring of a whole cluster: strict, or lenient while the assumptions are exceeded."""

    def __init__(self, world: ClusterWorld, history: ClusterHistory) -> None:
        super().__init__(world, history)
        self.strict = False
        self.checked = 0
        """Changes that the oracle judged."""
        self.outlived = 0
        """Deaths that the assumptions allow."""
        self.excused = 0
        """Changes while the assumptions were exceeded, or no ring was open yet."""
        self._sound_since = float("inf")
        self._before = Snapshot({})
        self._answers: dict[Member, Letter] = {}
        """Asker -> the last answer on its way to it."""
        self._last: dict[str, object] = {}
        self._list_length = 0

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Judge a step that changed pointers, or the members held for dead."""
        chord = host.node.cluster.chord
        if chord is None:
            return
        self._list_length = chord.config.list_length
        answered = self._note_answers(effects)
        now = (pointers_of(chord), len(chord.identity.fenced), chord.has_left)
        if answered or self._last.get(host.node.config.name) != now:
            self._last[host.node.config.name] = now
            self._judge()
            self.checked += self.strict
            self.excused += not self.strict

    def look(self) -> None:
        """Strict: check what follows from the invariant. Lenient: become strict once the ring was sound for a while."""
        if self.strict:
            self._judge()
            broken = consequences(self._before) if self.strict else ""
            if broken:
                self.fail(broken)
            return
        snapshot = self._snapshot()
        if not self._is_calm(snapshot):
            self._sound_since = float("inf")
            return
        self._sound_since = min(self._sound_since, self.world.now)
        if self.world.now - self._sound_since >= CALM_SECONDS:
            self.strict, self._before = True, snapshot

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """At the end there is one ideal ring, or one full mesh."""
        chords = self._chords()
        if not chords:
            return
        config = chords[0].config
        if len(chords) >= config.ring_size_min:
            complaints = [f"{chord.me} is in no ring" for chord in chords if chord.ring is None]
            complaints += ideal_complaints(self._snapshot(), config.list_length)
        else:
            everybody = sorted(chord.me for chord in chords)
            complaints = [f"{one.me} knows {one.members()}" for one in chords if sorted(one.members()) != everybody]
        if complaints:
            self.fail("; ".join(complaints[:3]))

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        if not self.strict:
            return
        snapshot, before = self._snapshot(), self._before
        died = [member for member in before.members if member not in snapshot.members and self._is_over(member)]
        if self._exceeds(before, died) or self._buried(snapshot) or self.history.incidents.is_apart(self.world.now):
            self.strict, self._sound_since = False, float("inf")
            return
        self.outlived += len(died)
        for member in before.members:
            if member not in snapshot.members and member not in died:
                self.fail(f"{member} started over, though nobody asked too much of the ring")
        broken = invariant(snapshot, self._list_length)
        if broken:
            self.fail(broken)
        self._before = snapshot

    def _exceeds(self, before: Snapshot, died: list[Member]) -> bool:
        """Whether A3 or A4 did not allow these to die."""
        if not died:
            return False
        others = {member: pointers for member, pointers in before.members.items() if member not in died}
        answers = [answer for answer in before.answers if answer[0] not in died]
        return bool(invariant(Snapshot(others, answers), self._list_length))

    def _buried(self, snapshot: Snapshot) -> bool:
        """Whether a member holds a living one for dead, against A2."""
        return any(one in snapshot.members for chord in self._chords() for one in chord.identity.fenced)

    def _is_calm(self, snapshot: Snapshot) -> bool:
        still = any(server.host is not None and server.host.paused for server in self.world.living())
        if still or not snapshot.members or self.history.incidents.is_apart(self.world.now) or self._buried(snapshot):
            return False
        return not (invariant(snapshot, self._list_length) or consequences(snapshot))

    def _is_over(self, member: Member) -> bool:
        """Whether the life of the broker that was this member has ended; if not, the member left the ring by itself."""
        life = member.incarnation >> LIFE_SHIFT
        return all(
            (one.me.address, one.me.incarnation >> LIFE_SHIFT) != (member.address, life) for one in self._chords()
        )

    def _note_answers(self, effects: Sequence[Effect]) -> bool:
        answered = False
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, WireLetter):
                letter = from_wire(effect.message)
                if isinstance(letter.body, State) and letter.recipient is not None:
                    self._answers[letter.recipient] = letter
                    answered = True
        return answered

    def _snapshot(self) -> Snapshot:
        machines = {chord.me: chord for chord in self._chords()}
        waited = {one: letter for one, letter in self._answers.items() if outcome(machines.get(one), letter)}
        self._answers = waited
        return snapshot_of(machines.values(), [(machines[one], letter) for one, letter in waited.items()])

    def _chords(self) -> list[Chord]:
        """The machines of all brokers that run and did not leave."""
        machines = (node.cluster.chord for node in self.world.nodes())
        return [machine for machine in machines if machine is not None and not machine.has_left]
