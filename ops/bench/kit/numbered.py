"""A publisher of numbered events for runs in which brokers are killed: it remembers which were acknowledged."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from random import Random

from headgate.protocol.aio import Client, Tasks
from headgate.protocol.errors import HeadgateError, Refused, UnknownOutcome

from ..limits import KILLS_BATCH_EVENTS_MAX, KILLS_BATCHES_UNDER_WAY, KILLS_SILENCE_SECONDS_MAX
from .harness import MeasurementFailed

__all__ = ["NumberedPublisher", "number_of", "say_refused"]

_NUMBER_BYTES = 8
_TICK_SECONDS = 0.02

Columns = dict[str, list[int]] | None


def number_of(body: bytes) -> int:
    """The number of an event, by its body."""
    return int.from_bytes(body, "big")


def say_refused(refused: Counter[str]) -> None:
    """Print why batches were refused, and how often."""
    for text, count in refused.items():
        print(f"refused, {count} times: {text}"[:500], file=sys.stderr)


class NumberedPublisher:
    """Publishes events to a stored stream, some batches at a time: all at once, or up to a number that is raised."""

    def __init__(
        self,
        client: Client,
        stream: str,
        seed: int,
        last: int = sys.maxsize,
        allowed: int = sys.maxsize,
        columns: Callable[[range], Columns] = lambda numbers: None,
    ) -> None:
        """Publish up to `last`, but not yet beyond what is `allowed`. `columns` are the attributes of these numbers."""
        self._client = client
        self._stream = stream
        self._random = Random(seed)
        self._last = last
        self._allowed = allowed
        self._columns = columns
        self._tasks = Tasks()
        self._going = True
        self._working = KILLS_BATCHES_UNDER_WAY
        self.published = 0
        self.acknowledged: list[range] = []
        self.refused: Counter[str] = Counter()
        self.gave_up = ""
        for number in range(KILLS_BATCHES_UNDER_WAY):
            self._tasks.start(self._work(), f"publishing {number}")

    @property
    def broker(self) -> str:
        """Which one it publishes to, or did last."""
        return self._client.broker

    def stored(self) -> Iterator[int]:
        """The events that were acknowledged by now."""
        return chain.from_iterable(self.acknowledged)

    def allow(self, number: int) -> None:
        """Publish up to there, and let nobody wait for it."""
        self._allowed = max(self._allowed, min(number, self._last))

    async def go_to(self, number: int) -> None:
        """Publish up to there. Raises MeasurementFailed when nothing is acknowledged for too long."""
        self.allow(number)
        await self._until(
            lambda: self.published >= self._allowed and not (self._allowed == self._last and self._working)
        )

    async def progress(self, batches: int = 1) -> None:
        """Wait until so many more batches are acknowledged. Raises MeasurementFailed when that takes too long."""
        wanted = len(self.acknowledged) + batches
        await self._until(lambda: len(self.acknowledged) >= wanted)

    async def finish(self) -> None:
        """Wait for what is under way. Raises MeasurementFailed when it gets no answer."""
        self._going = False
        await self._until(lambda: not self._working)
        if self.gave_up:
            raise MeasurementFailed("the publisher", self.gave_up)

    async def end(self) -> None:
        """Stop publishing, whatever happened."""
        self._going = False
        await self._tasks.stop()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        before, deadline = len(self.acknowledged), time.monotonic() + KILLS_SILENCE_SECONDS_MAX
        while not is_so():
            if len(self.acknowledged) > before:
                before, deadline = len(self.acknowledged), time.monotonic() + KILLS_SILENCE_SECONDS_MAX
            if self.gave_up or time.monotonic() > deadline:
                reason = self.gave_up or f"no acknowledgement for {KILLS_SILENCE_SECONDS_MAX:g} s"
                raise MeasurementFailed("the publisher", f"{reason} ({dict(self.refused)})")
            await asyncio.sleep(_TICK_SECONDS)

    async def _work(self) -> None:
        while self._going and self.published < self._last and not self.gave_up:
            if self.published >= self._allowed:
                await asyncio.sleep(_TICK_SECONDS)
                continue
            count = min(self._random.randint(1, KILLS_BATCH_EVENTS_MAX), self._last - self.published)
            numbers = range(self.published, self.published + count)
            self.published += count
            bodies = [number.to_bytes(_NUMBER_BYTES, "big") for number in numbers]
            try:
                await self._client.publish_batch(self._stream, self._columns(numbers), bodies, mode="stored")
            except (Refused, UnknownOutcome) as error:
                self.refused[str(error)] += 1
            except HeadgateError as error:
                self.gave_up = str(error)
            else:
                self.acknowledged.append(numbers)
        self._working -= 1
