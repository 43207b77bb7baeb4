"""Amending: what a new condition adds of the positions that a durable subscription has passed already.

A cursor says which positions are settled, and not why: they were acknowledged, or matched no condition. So for a change
`from ack` the logs are looked through twice at once, from the first owed position to where the mailbox is: for what
matches the new condition, and for what matched the old one. What the new one finds beside that is owed from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.protocol.data import split_u32

from ..deferred import Deferred
from .messages import Fed, Place
from .runs import Run, intersect, subtract, union
from .state import Cursor, DurableState

__all__ = ["Amendment", "Look"]


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
    """A change of the condition that waits for what the new and the old one match of what was passed already."""

    state: DurableState
    owed: dict[Place, list[Run]]
    """What was owed when it began: it is owed still, or was settled since."""
    new: Look
    old: Look
    until: float
    deferred: Deferred

    def added(self, cursors: Mapping[Place, Cursor]) -> tuple[dict[Place, list[Run]], dict[Place, list[int]]]:
        """What is owed from now on beside what these cursors owe, and the hashes of its keys."""
        added: dict[Place, list[Run]] = {}
        keys: dict[Place, list[int]] = {}
        for place, found in self.new.found.items():
            known = union([*self.old.found.get(place, []), *self.owed[place], *cursors[place].owed])
            fresh = subtract(found, known)
            if fresh:
                added[place] = fresh
                hashes = self.new.keys.get(place)
                if hashes is not None:
                    keys[place] = [hashes[position] for run in fresh for position in range(*run)]
        return added, keys
