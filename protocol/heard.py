"""Heard: which live events a subscription has handed out, so that reading its logs again shows none of them twice.

Event ids are `BROKER-LIFE.NUMBER`, all in hexadecimal but the number. In every log of a broker lives ascend, and within
a life numbers do. So a pair (life, number) says how far a broker's events were handed out, and that is all that is kept
of what is old; of the last REPLAY_LATE_SECONDS every number is kept, because events that came by way of different
brokers may have overtaken one another.

    forgotten, all of it handed out or told of            each number is known
    ------------------------------------------|------------------------------------> newest
                                           settled

The clock is that of the broker that accepted the events, and runs forward within a life. While logs of some broker
cannot be read nothing is forgotten for its age, and what is lost of them can be found when it is back.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from .limits import HEARD_EVENTS_MAX, REPLAY_LATE_SECONDS

__all__ = ["Heard", "source_of"]

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
    """What came of one broker."""

    settled: Place | None = None
    runs: deque[_Run] = field(default_factory=deque)
    count: int = 0
    known: set[Place] | None = None


class Heard:
    """See the head of this file."""

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
        while source.count > HEARD_EVENTS_MAX or (not self.keeps_old and source.runs[0].time < time - self._late):
            self._forget(source)

    def settle(self, origin: str, number: int) -> None:
        """All of this broker up to here counts as handed out."""
        broker, life = source_of(origin)
        source = self._sources.setdefault(broker, _Source())
        source.settled = max(source.settled or (life, number), (life, number))
        self.is_complete = False

    def settled(self, origin: str, number: int) -> bool:
        """Whether all of this broker up to here was handed out, or told of, and need not be looked at."""
        broker, life = source_of(origin)
        source = self._sources.get(broker)
        return source is not None and source.settled is not None and (life, number) <= source.settled

    def has_all(self, origin: str, start: int, stop: int) -> bool:
        """Whether all of these numbers were handed out. There may be any number of them."""
        broker, life = source_of(origin)
        source = self._sources.get(broker)
        if source is not None and source.settled is not None and source.settled[0] == life:
            start = max(start, source.settled[1] + 1)
        count = source.count if source is not None else 0
        return stop - start <= count and not self.unheard(origin, range(start, stop))

    def unheard(self, origin: str, numbers: Sequence[int]) -> list[int]:
        """The indices of those of these numbers that were not handed out. They ascend."""
        broker, life = source_of(origin)
        source = self._sources.get(broker)
        if source is None:
            return list(range(len(numbers)))
        if source.known is None:
            source.known = {(run.life, number) for run in source.runs for number in run.numbers}
        known, settled = source.known, source.settled or (-1, 0)
        return [at for at, one in enumerate(numbers) if (life, one) > settled and (life, one) not in known]

    def _forget(self, source: _Source) -> None:
        run = source.runs.popleft()
        source.count -= len(run.numbers)
        last = (run.life, max(run.numbers, default=0))
        source.settled = max(source.settled or last, last)
        self.is_complete = False
