"""Checkers of the ring world, one class a promise (reliability 6.4, R1 to R4): the first that fails ends the run.

`step` sees each step of a broker and what it asks for, `settled` the world after every change of anybody's pointers.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.effects import Note
from headgate.broker.core.keyspace import between
from headgate.broker.core.membership import (
    ChordEffect,
    ChordInput,
    Member,
    Notify,
    Owning,
    Post,
    State,
    consequences,
    invariant,
)

from .checkers import Violation
from .ring_world import RingHost, RingWorld

__all__ = [
    "RING_CHECKERS",
    "STORM_CHECKERS",
    "Consequences",
    "InvariantHolds",
    "NobodyStartsOver",
    "OneQuery",
    "RingChecker",
    "ServesWhenAdopted",
]


class RingChecker:
    """Hooks that do nothing."""

    def __init__(self, world: RingWorld) -> None:
        self.world = world

    def fail(self, text: str) -> None:
        """Raises Violation."""
        raise Violation(type(self).__name__, text)

    def step(self, host: RingHost, happened: ChordInput, effects: Sequence[ChordEffect]) -> None:
        """One broker did something."""

    def settled(self) -> None:
        """Somebody's pointers changed, or somebody died or began."""


class InvariantHolds(RingChecker):
    """R1: the inductive invariant, over members and answers under way."""

    sees_answers = True
    """Without, the members' own lists only: for faults that do not spare answers either."""

    def settled(self) -> None:
        """Ask the oracle."""
        snapshot = self.world.snapshot()
        if not self.sees_answers:
            snapshot.answers = ()
        broken = invariant(snapshot, self.world.config.list_length)
        if broken:
            self.fail(broken)


class Consequences(RingChecker):
    """R2: what the invariant implies is so."""

    def settled(self) -> None:
        """Walk."""
        broken = consequences(self.world.snapshot())
        if broken:
            self.fail(broken)


class OneQuery(RingChecker):
    """R3: no pointers are told in the middle of a step, and the machine is sound."""

    def step(self, host: RingHost, happened: ChordInput, effects: Sequence[ChordEffect]) -> None:
        """Look at what it says."""
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
        """A Notify is sent by whoever has made the other its head."""
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
    """Whether a member serves nothing that it did not serve just before."""
    if former is None or not former.serving or former.member != told.member:
        return False
    return told.after == former.after or between(former.after, told.after, told.member)


class NobodyStartsOver(RingChecker):
    """Within the assumptions no member ever loses its ring or leaves it."""

    def step(self, host: RingHost, happened: ChordInput, effects: Sequence[ChordEffect]) -> None:
        """Leaving is noted."""
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
"""While the nemesis respects the assumptions."""

STORM_CHECKERS: tuple[type[RingChecker], ...] = (OneQuery, ServesWhenAdopted)
"""What holds whatever happens."""
