"""The ring of a whole cluster under the oracle: the invariant, at every change of any broker's pointers.

The bare ring world asks before each fault whether the assumptions allow it. A cluster's nemesis does not ask, so this
checker looks at what it did, and is in one of two moods:

    strict    the invariant holds after every step of every broker that changes pointers or sends an answer, and no
              member starts over; what follows from the invariant is looked at every LOOK_SECONDS
    lenient   the assumptions were exceeded, and nothing is asked of the ring until it has mended itself, has been as it
              should for CALM_SECONDS, and nothing old is under way any more: nobody stands still, no partition is fresh

Exceeded is what reliability 1.3 assumes: A2, when somebody holds a member for dead that lives; A3 and A4, when the
invariant fails as soon as a dead broker is left out of what was there just before it died. At rest the ring is ideal,
or the brokers are a full mesh, whatever happened before.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.cluster import LIFE_SHIFT
from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.membership import (
    Chord,
    Letter,
    Member,
    Snapshot,
    State,
    consequences,
    from_wire,
    ideal_complaints,
    invariant,
)
from headgate.protocol.messages import Letter as WireLetter

from .cluster_history import ClusterHistory
from .cluster_state import StateChecker
from .cluster_world import ClusterWorld
from .limits import CALM_SECONDS
from .ring_snapshot import outcome, pointers_of, snapshot_of
from .world import Host

__all__ = ["RingKept"]


class RingKept(StateChecker):
    """See the head of this file."""

    def __init__(self, world: ClusterWorld, history: ClusterHistory) -> None:
        super().__init__(world, history)
        self.strict = False
        self.checked = 0
        """Changes that the oracle judged."""
        self.outlived = 0
        """Members that died, and the ring had to bear it."""
        self.excused = 0
        """Changes while the assumptions were exceeded, or no ring was open yet."""
        self._sound_since = float("inf")
        self._before = Snapshot({})
        self._answers: dict[Member, Letter] = {}
        """Asker -> the last answer on its way to it."""
        self._last: dict[str, object] = {}
        self._list_length = 0

    def step(self, host: Host, effects: Sequence[Effect]) -> None:
        """One broker did something: judge it if it changed anybody's pointers, or what is known of the dead."""
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
        """What follows from the invariant is so; or become strict, when the ring has been sound for a while."""
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

    def rest(self) -> None:
        """One ideal ring, or one full mesh."""
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
        """Whether somebody holds for dead who lives: A2."""
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
        """Of all brokers that run and did not say farewell."""
        machines = (node.cluster.chord for node in self.world.nodes())
        return [machine for machine in machines if machine is not None and not machine.has_left]
