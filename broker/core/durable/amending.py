"""Amending: what a new condition adds of the positions that a durable subscription has passed already.

A cursor says which positions are settled, and not why: they were acknowledged, or matched no condition. So for a change
`from ack` the logs are looked through several times at once, from the first owed position to where the mailbox is: for
what matches the new condition, and for what may have been handed out by the old one, and by those before it that the
state remembers. What the new one finds beside that is owed from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.protocol.data import split_u32

from ..deferred import Deferred
from .limits import FORMERS_BYTES, FORMERS_MAX
from .messages import Fed, Place
from .runs import Run, intersect, subtract, union
from .state import Cursor, DurableState, Former, Section, size_of_former

__all__ = ["Amendment", "Look", "formers_of"]


def formers_of(state: DurableState) -> tuple[Former, ...]:
    """What may have handed out positions that are settled and lie behind one that is owed, when its condition changes.

    Before the first owed position nothing is looked for any more; a dead letter may be owed again.
    """
    begins = {place: cursor.owed[0][0] for place, cursor in state.cursors.items() if cursor.owed}
    for letter in state.dead:
        begins[letter.place] = min(letter.position, begins.get(letter.place, letter.position))
    upto = {place: state.cursors[place].upto for place in begins if place in state.cursors}
    found: list[Former] = []
    size = 0
    for one in (Former(state.condition, state.sections, upto), *reversed(state.former)):
        ends = _behind(one.ends, begins)
        sections = (Section(held.condition, _behind(held.ends, begins)) for held in one.sections)
        former = Former(one.condition, tuple(held for held in sections if held.ends), ends)
        if ends:
            size += size_of_former(former)
            if len(found) == FORMERS_MAX or size > FORMERS_BYTES:
                break
            found.append(former)
    return tuple(reversed(found))


def _behind(ends: Mapping[Place, int], begins: Mapping[Place, int]) -> dict[Place, int]:
    return {place: end for place, end in ends.items() if end > begins.get(place, end)}


@dataclass(slots=True, eq=False)
class Look:
    """Which positions of some logs match, for an amendment: facts are gathered until each log is covered."""

    number: int
    ends: dict[Place, int]
    covered: dict[Place, int]
    found: dict[Place, list[Run]] = field(default_factory=dict)
    keys: dict[Place, dict[int, int]] = field(default_factory=dict)
    """Hashes by position, where events of one key stay together."""

    @property
    def is_done(self) -> bool:
        """Whether every log was looked at up to its end."""
        return all(self.covered[place] >= end for place, end in self.ends.items())

    def hear(self, message: Fed, runs: list[Run]) -> None:
        """A broker says which positions of a log match."""
        place = message.place
        if place not in self.ends or not message.start <= self.covered[place] < message.upto:
            return
        if message.keys:
            positions = (position for run in runs for position in range(*run))
            self.keys.setdefault(place, {}).update(zip(positions, split_u32(message.keys), strict=False))
        wanted = [(self.covered[place], min(message.upto, self.ends[place]))]
        self.found.setdefault(place, []).extend(intersect(runs, wanted))
        self.covered[place] = message.upto


@dataclass(slots=True, eq=False)
class Amendment:
    """A change of the condition that waits for what the new one and former ones match of what was passed already."""

    state: DurableState
    owed: dict[Place, list[Run]]
    """What was owed when it began: it is owed still, or was settled since."""
    new: Look
    former: list[Look]
    until: float
    deferred: Deferred

    @property
    def looks(self) -> list[Look]:
        """All of them."""
        return [self.new, *self.former]

    def added(self, cursors: Mapping[Place, Cursor]) -> tuple[dict[Place, list[Run]], dict[Place, list[int]]]:
        """What is owed from now on beside what these cursors owe, and the hashes of its keys."""
        added: dict[Place, list[Run]] = {}
        keys: dict[Place, list[int]] = {}
        for place, found in self.new.found.items():
            handed = [run for look in self.former for run in look.found.get(place, [])]
            known = union([*handed, *self.owed[place], *cursors[place].owed])
            fresh = subtract(found, known)
            if fresh:
                added[place] = fresh
                hashes = self.new.keys.get(place)
                if hashes is not None:
                    keys[place] = [hashes[position] for run in fresh for position in range(*run)]
        return added, keys
