"""The delivered set: how far each log of a stream was read, and which of its events came live, by their positions.

Of one log, in ascending order:

    seen       all before it was read, or is not wanted: what comes live from there was handed out, or is not wanted
    cursor     all before it was handed out: reading goes on from there
    runs       what came live at the cursor or behind it: reading leaves it out

The cursor follows what comes live, as far as there is no hole. Behind a hole it waits: what is missing did not match,
or was lost, or is late, because events come by way of different brokers. An event that others have overtaken by
REPLAY_LATE_SECONDS did not match; so at most the runs of that time are kept, and after a loss no more is read again.
Times are those of the broker that wrote the log. While logs of some broker cannot be read (`keeps_old`) cursors wait
for as long, because what was lost of them can be found when it is back. Of more than DELIVERED_RUNS_MAX runs the older
ones count as old, whatever their time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence

from ..limits import DELIVERED_RUNS_MAX, REPLAY_LATE_SECONDS

__all__ = ["DeliveredSet", "DeliveredOfLog"]

_LATE_US = int(REPLAY_LATE_SECONDS * 1e6)
_MOMENT_US = _LATE_US // 16
"""Events within so much time grow old together."""

_MOMENTS_MAX = 1024
"""What a moment that is forgotten would say, a later one says later."""


class DeliveredOfLog:
    """What was read, and what came live, of one log."""

    def __init__(self) -> None:
        self.seen = self.cursor = 0
        self._starts, self._stops = array("Q"), array("Q")
        self._moments: deque[tuple[int, int]] = deque(maxlen=_MOMENTS_MAX)  # the time of its first event, and its end

    @property
    def runs(self) -> list[tuple[int, int]]:
        """What came live at the cursor or behind it, as starts and stops."""
        return list(zip(self._starts, self._stops, strict=True))

    def read_to(self, position: int) -> None:
        """All before it was read, or is not wanted."""
        self.seen = max(self.seen, position)
        self.advance(position)

    def came(self, positions: Sequence[int], time: int, keeps_old: bool) -> None:
        """These came live, ascending; they were accepted at this time, in microseconds."""
        last = positions[-1]
        if last - positions[0] == len(positions) - 1:
            self._add(positions[0], last + 1)
        else:
            for position in positions:
                self._add(position, position + 1)
        moments = self._moments
        if moments and time - moments[-1][0] <= _MOMENT_US:
            moments[-1] = (moments[-1][0], max(moments[-1][1], last + 1))
        else:
            moments.append((time, last + 1))
        upto = self.cursor
        while not keeps_old and moments[0][0] < time - _LATE_US - _MOMENT_US:
            upto = moments.popleft()[1]
        if len(self._starts) > DELIVERED_RUNS_MAX:
            upto = max(upto, self._stops[len(self._starts) // 2])
        self.advance(upto)

    def advance(self, position: int) -> None:
        """All before it counts as handed out, and what follows it without a hole was."""
        self.cursor = max(self.cursor, position)
        passed = bisect_right(self._starts, self.cursor)
        if passed:
            self.cursor = max(self.cursor, self._stops[passed - 1])
            del self._starts[:passed], self._stops[:passed]
        while self._moments and self._moments[0][1] <= self.cursor:
            self._moments.popleft()

    def missing(self, positions: Sequence[int]) -> list[int]:
        """The indices of those of these positions, ascending, that are to be handed out."""
        starts, stops, cursor = self._starts, self._stops, self.cursor
        if positions[0] >= cursor and bisect_right(stops, positions[0]) == bisect_right(starts, positions[-1]):
            return list(range(len(positions)))  # as most often: none of them came live
        return [
            at
            for at, position in enumerate(positions)
            if position >= cursor and bisect_right(starts, position) == bisect_right(stops, position)
        ]

    def holes(self, end: int) -> int:
        """How many positions from the cursor up to this one did not come live."""
        known = sum(max(0, min(stop, end) - start) for start, stop in self.runs)
        return max(0, end - self.cursor) - known

    def _add(self, start: int, stop: int) -> None:
        starts, stops = self._starts, self._stops
        if not starts or start > stops[-1]:
            starts.append(start)
            stops.append(stop)
        elif start >= starts[-1]:
            stops[-1] = max(stop, stops[-1])
        else:  # it was overtaken
            first, last = bisect_left(stops, start), bisect_right(starts, stop)
            if first < last:
                start, stop = min(start, starts[first]), max(stop, stops[last - 1])
            starts[first:last], stops[first:last] = array("Q", [start]), array("Q", [stop])


class DeliveredSet:
    """The same of every log, by what people call it."""

    def __init__(self) -> None:
        self.keeps_old = False
        self._logs: dict[str, DeliveredOfLog] = {}

    def of(self, partition: str) -> DeliveredOfLog:
        """That of one log."""
        log = self._logs.get(partition)
        if log is None:
            log = self._logs[partition] = DeliveredOfLog()
        return log

    def fresh(self, partition: str, time: int, positions: Sequence[int]) -> Sequence[int]:
        """Which of these, ascending, that come live now were not seen before; from now on they were handed out."""
        log = self.of(partition)
        fresh = positions if positions[0] >= log.seen else [one for one in positions if one >= log.seen]
        if fresh:
            log.came(fresh, time, self.keeps_old)
        return fresh
