"""Keys that were ours and complete a moment ago: for whom what is here of them is still whole.

Until their new owner comes for them, nobody has written there, and it is whole for anybody. Once he has come, he will
confirm things, and perhaps without us, for others may stand between him and us by now. Who else would be given our copy
then would answer by it. So it is whole for him alone, who may ask again when the answer was lost, and has his own
writes; and for ourselves as long as he confirms nothing, should he die at once and the keys be ours again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .keyed_arcs import Stretch
from .keyed_limits import FORMER_SECONDS

__all__ = ["Former"]


@dataclass(slots=True)
class _Lost:
    stretch: Stretch
    until: float
    askers: dict[int, None] = field(default_factory=dict)
    """Who came for it."""
    untouched_until: float = float("inf")
    """The first of them confirms nothing before."""

    def is_whole_for(self, asker: int) -> bool:
        return not self.askers or list(self.askers) == [asker]


class Former:
    """See the head of this file."""

    def __init__(self, me: int, lease_seconds: float) -> None:
        self._me = me
        self._lease_seconds = lease_seconds
        self._lost: list[_Lost] = []

    def add(self, stretch: Stretch, now: float) -> None:
        """These were ours until now, or would be."""
        self._lost.append(_Lost(stretch, now + FORMER_SECONDS))

    def clear(self) -> None:
        """We are in no ring: whatever was ours may have been anybody's."""
        self._lost.clear()

    def came(self, asker: int, stretch: Stretch, now: float) -> None:
        """Somebody gains these keys, and has been given what is here."""
        for lost in self._lost:
            if lost.stretch.overlaps(stretch):
                lost.untouched_until = min(lost.untouched_until, now + self._lease_seconds)
                lost.askers[asker] = None

    def whole(self, asker: int, now: float) -> list[Stretch]:
        """What of it is whole for this broker, ourselves perhaps."""
        self._lost = [lost for lost in self._lost if lost.until > now]
        return [
            lost.stretch
            for lost in self._lost
            if lost.is_whole_for(asker) or (asker == self._me and now < lost.untouched_until)
        ]
