"""The delivered set: which live events a subscription has handed out, so that reading its logs again shows none twice.

Event ids are `BROKER-LIFE.NUMBER`, all in hexadecimal but the number. In every log of a broker lives ascend, and within
a life numbers do. So a pair (life, number) says how far a broker's events were handed out, and that is all that is kept
of what is old; of the last REPLAY_LATE_SECONDS every number is kept, because events that came by way of different
brokers may have overtaken one another.

    forgotten, all of it handed out or told of            each number is known
    ------------------------------------------|------------------------------------> newest
                                           settled

The clock is that of the broker that accepted the events, and runs forward within a life. While logs of some broker
cannot be read nothing is forgotten for its age, and what is lost of them can be found when it is back. What is
forgotten because there is too much of it settles its own life only: of a former one a rest may have to be read yet.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..limits import DELIVERED_EVENTS_MAX, DELIVERED_LIVES_MAX, REPLAY_LATE_SECONDS

__all__ = ["DeliveredSet", "source_of"]

_RUN_EVENTS_MAX = 4096
"""What is forgotten at once."""

Place = tuple[int, int]


def source_of(origin: str) -> tuple[str, int]:
    """The broker's part of an origin, and its life. An origin of another form is one of a kind."""
    broker, dash, life = origin.rpartition("-")
    try:
        return (broker, int(life, 16)) if dash else (origin, 0)
    except ValueError:
        return origin, 0


@dataclass(slots=True)
class _Run:
    """Numbers of one life, in the order in which they came; from the first to the last it took a moment."""

    life: int
    began: int
    time: int
    numbers: array[int]


@dataclass(slots=True)
class _Source:
    """What came of one broker. All up to `floor` is settled; of a later life all up to its number in `ends`."""

    floor: Place = (-1, 0)
    ends: dict[int, int] = field(default_factory=dict)
    runs: deque[_Run] = field(default_factory=deque)
    count: int = 0
    known: set[Place] | None = None

    def end(self, life: int) -> int | None:
        """Up to which number that life is settled, -1 if nothing of it is; None when all of it is."""
        if life < self.floor[0]:
            return None
        return self.floor[1] if life == self.floor[0] else self.ends.get(life, -1)

    def raise_floor(self, place: Place) -> None:
        """All up to there is settled."""
        life, number = place
        self.floor = max(self.floor, (life, max(number, self.ends.get(life, -1))))
        self.ends = {life: number for life, number in self.ends.items() if life > self.floor[0]}

    def raise_end(self, life: int, number: int) -> None:
        """All of that life is settled up to there, and nothing is said of others."""
        if life <= self.floor[0]:
            self.raise_floor((life, number))
            return
        self.ends[life] = max(number, self.ends.get(life, -1))
        if len(self.ends) > DELIVERED_LIVES_MAX:
            first = min(self.ends)
            self.raise_floor((first, self.ends[first]))


class DeliveredSet:
    """Keeps which events were handed out: each of the recent ones, and one bound for what is old (as SACK does)."""

    def __init__(self) -> None:
        self.is_complete = True  # nothing was forgotten, nor said to be settled
        self.keeps_old = False
        self._sources: dict[str, _Source] = {}
        self._late = int(REPLAY_LATE_SECONDS * 1e6)

    def add(self, origin: str, time: int, numbers: Sequence[int]) -> None:
        """These were handed out, one after the other; they were accepted at this time, in microseconds."""
        if not numbers:
            return
        broker, life = source_of(origin)
        source = self._sources.setdefault(broker, _Source())
        source.known = None
        source.count += len(numbers)
        run = source.runs[-1] if source.runs else None
        if (
            run is not None
            and run.life == life
            and 0 <= time - run.began <= self._late // 16
            and len(run.numbers) < _RUN_EVENTS_MAX
        ):
            run.numbers.extend(numbers)
            run.time = max(run.time, time)
        else:
            source.runs.append(_Run(life, time, time, array("Q", numbers)))
        while not self.keeps_old and source.runs[0].time < time - self._late:
            source.raise_floor(self._forget(source))
        while source.count > DELIVERED_EVENTS_MAX:
            source.raise_end(*self._forget(source))

    def settle(self, origin: str, number: int) -> None:
        """All of this broker up to here counts as handed out."""
        broker, life = source_of(origin)
        self._sources.setdefault(broker, _Source()).raise_floor((life, number))
        self.is_complete = False

    def settled(self, origin: str, number: int) -> bool:
        """Whether all of this broker up to here was handed out, or told of, and need not be looked at."""
        broker, life = source_of(origin)
        source = self._sources.get(broker)
        if source is None:
            return False
        if (life, number) <= source.floor:
            return True
        is_first = source.floor[0] < 0 and life == min(source.ends, default=-1)
        return is_first and number <= source.ends[life] and all(run.life >= life for run in source.runs)

    def has_all(self, origin: str, start: int, stop: int) -> bool:
        """Whether all of these numbers were handed out. There may be any number of them."""
        broker, life = source_of(origin)
        source = self._sources.get(broker)
        end = -1 if source is None else source.end(life)
        count = 0 if source is None else source.count
        start = max(start, stop if end is None else end + 1)
        return stop - start <= count and not self.unheard(origin, range(start, stop))

    def unheard(self, origin: str, numbers: Sequence[int]) -> list[int]:
        """The indices of those of these numbers that were not handed out. They ascend."""
        broker, life = source_of(origin)
        source = self._sources.get(broker)
        if source is None:
            return list(range(len(numbers)))
        if source.known is None:
            source.known = {(run.life, number) for run in source.runs for number in run.numbers}
        known, end = source.known, source.end(life)
        return [at for at, one in enumerate(numbers) if end is not None and one > end and (life, one) not in known]

    def _forget(self, source: _Source) -> Place:
        """The oldest run; where it ended."""
        run = source.runs.popleft()
        source.count -= len(run.numbers)
        self.is_complete = False
        return run.life, max(run.numbers, default=0)
