"""Copies of keys that somebody comes for, ours until a moment ago or a dead broker's: for whom they are whole still.

Until a new owner comes, nobody has written there, and what is here is whole for anybody. Once he has come, he will
confirm things, and perhaps without us, for others may stand between him and us by now. Who else would be given our copy
then would answer by it. So it is whole for him alone, who may ask again when the answer was lost, and has his own
writes; and for ourselves as long as he confirms nothing, should he die at once and the keys be ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .keyed_arcs import Stretch
from .keyed_limits import FORMER_SECONDS

__all__ = ["Comers", "Former"]


@dataclass(slots=True)
class Comers:
    """Who came for some keys."""

    askers: dict[int, None] = field(default_factory=dict)
    untouched_until: float = float("inf")
    """The first of them confirms nothing before."""

    def came(self, asker: int, untouched_until: float) -> None:
        """Somebody gains these keys, and has been given what is here."""
        self.untouched_until = min(self.untouched_until, untouched_until)
        self.askers[asker] = None

    def leave_whole_for(self, asker: int | None, now: float) -> bool:
        """Whether the copy is whole for this broker; None: for ourselves."""
        if asker is None:
            return now < self.untouched_until
        return not self.askers or list(self.askers) == [asker]


@dataclass(slots=True)
class _Lost:
    stretch: Stretch
    until: float
    comers: Comers = field(default_factory=Comers)


class Former:
    """What was ours and complete a moment ago."""

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._lost: list[_Lost] = []

    def add(self, stretch: Stretch, now: float) -> None:
        """These were ours until now, or would be."""
        self._lost.append(_Lost(stretch, now + FORMER_SECONDS))

    def clear(self) -> None:
        """We are in no ring: whatever was ours may have been anybody's."""
        self._lost.clear()

    def came(self, asker: int, stretch: Stretch, now: float) -> None:
        """Somebody gains these keys."""
        for lost in self._lost:
            if lost.stretch.overlaps(stretch):
                lost.comers.came(asker, now + self._lease_seconds)

    def whole(self, asker: int | None, now: float) -> list[Stretch]:
        """What of it is whole for this broker; None: for ourselves."""
        self._lost = [lost for lost in self._lost if lost.until > now]
        return [lost.stretch for lost in self._lost if lost.comers.leave_whole_for(asker, now)]
