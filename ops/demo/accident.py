"""The accident: a broker is killed half way. It computes which quotes may be missing because of it.

Nothing is excused by the accident itself, only by what somebody was told of:

* a subscriber's gap covers the quotes from shortly before the kill (they may have been on their way) to the moment
  when its subscription was in force again, or, where it had never moved, to the moment of the gap itself;
* the publisher's *unknown outcome* covers the quotes of that batch.

A quote outside of these must have come to whoever wants it. One that came twice, or to somebody who does not want it,
is a fault wherever it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .audience import Listener, Told

__all__ = ["NOTHING_EXCUSED", "Accident", "Excuse"]


@dataclass(frozen=True, slots=True)
class Excuse:
    """Quotes that one subscriber may lack: those of its gaps, and those whose outcome the publisher does not know."""

    gaps: tuple[range, ...] = ()
    unknown: tuple[range, ...] = ()
    in_force: bool = True
    """Whether the subscriber, if it had to move, got a GAP and its subscription came back."""
    around: range = range(0)
    """Where order is not promised: the feed and the keys moved to other brokers while quotes were on their way."""

    def told(self, number: int) -> bool:
        """The subscriber was told that it may lack this one."""
        return any(number in gap for gap in self.gaps)

    def doubtful(self, number: int) -> bool:
        """The publisher was told that nobody knows of this one."""
        return any(number in numbers for numbers in self.unknown)


NOTHING_EXCUSED = Excuse()


@dataclass(slots=True)
class Accident:
    """The end of a broker by SIGKILL. Times are those of the play, numbers those of quotes."""

    broker: str
    at: float
    first: int
    """The first quote that may still have been on its way."""
    published: int
    """How many were published before."""
    unknown: list[range] = field(default_factory=list)
    feed_back_at: float | None = None

    @property
    def unknown_count(self) -> int:
        """Quotes that the publisher cannot be sure of."""
        return sum(map(len, self.unknown))

    def hit(self, listener: Listener) -> bool:
        """Whether this listener was connected to that broker, and had to move."""
        return listener.home == self.broker

    def disturbed(self, listeners: Sequence[Listener], published: int) -> range:
        """Quotes of the time in which the cluster was not at rest: until every subscription was in force again."""
        ends = [published if told.until is None else told.until for one in listeners for told in self._tellings(one)]
        return range(self.first, max([self.published, *ends, *(numbers.stop for numbers in self.unknown)]))

    def excuse(self, listener: Listener, disturbed: range, published: int) -> Excuse:
        """What this listener may lack, of so many quotes in all."""
        tellings = self._tellings(listener)
        gaps = [range(self.first, published if told.until is None else told.until) for told in tellings]
        # Who lost its broker must have been told so, even if nothing was lost.
        in_force = all(told.until is not None for told in tellings) and (bool(tellings) or not self.hit(listener))
        return Excuse(tuple(gaps), tuple(self.unknown), in_force, disturbed)

    def served_again_seconds(self, listener: Listener) -> float | None:
        """From the kill to the first quote that came after the subscription was in force again; None: not yet."""
        moments = [told.served_at for told in self._tellings(listener)]
        if not moments or None in moments:
            return None
        return max(moment for moment in moments if moment is not None) - self.at

    def in_force_seconds(self, listener: Listener) -> float | None:
        """From the kill to the moment when the subscription was in force again; None: not yet, or it never moved."""
        moments = [told.whole_at for told in self._tellings(listener)]
        if not moments or None in moments:
            return None
        return max(moment for moment in moments if moment is not None) - self.at

    def slowest_seconds(self, listeners: Sequence[Listener]) -> float | None:
        """Until the last of those who had to move was in force again; None when one is not."""
        moved = [self.in_force_seconds(listener) for listener in listeners if self.hit(listener)]
        if None in moved:
            return None
        return max((seconds for seconds in moved if seconds is not None), default=0.0)

    def _tellings(self, listener: Listener) -> list[Told]:
        """The gaps that it was told of since."""
        return [told for told in listener.told if told.at >= self.at]
