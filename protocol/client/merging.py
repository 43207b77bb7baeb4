"""Merging logs: rows of several logs in the order in which they were accepted, a publisher's own order first.

Rows of one log are in order. A row may go when no log that is still being read can have an older one: reading a log up
to some time says that the rest is not older (a watermark). So at most one chunk of each log waits.

    ann   0-4 at 10:00   10-14 at 10:09            0-4, then 5-9, then 10-14, which waits until
    bob            5-9 at 10:04                    bob's log was read beyond 10:09, or to its end

Times are those of the brokers that accepted the rows, and clocks differ a little. What a producer numbered is not left
to them: of rows that wait, one of its lower numbers goes first, whatever its time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..data import LogName, Row

__all__ = ["Merge", "Piece"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one log."""

    name: LogName
    rows: list[Row]


@dataclass(slots=True)
class _Queue:
    """The rows of a log that wait, each with the newest time up to it."""

    rows: deque[tuple[Row, int]] = field(default_factory=deque)
    numbers: dict[str, deque[int]] = field(default_factory=dict)
    newest: int = 0


class Merge:
    """What was read of each log and has not gone yet."""

    def __init__(self) -> None:
        self._queues: dict[LogName, _Queue] = {}

    def add(self, piece: Piece) -> None:
        """Rows that were read, in the order of their log."""
        queue = self._queues.setdefault(piece.name, _Queue())
        for row in piece.rows:
            queue.newest = max(queue.newest, row.time)
            queue.rows.append((row, queue.newest))
            if row.producer:
                queue.numbers.setdefault(row.producer, deque()).append(row.number)

    def drain(self, unread: Mapping[LogName, int]) -> Iterator[Piece]:
        """What may go, in order; `unread` has the time up to which each log was read that is not read to its end."""
        while True:
            waiting = [name for name, queue in self._queues.items() if queue.rows]
            if not waiting:
                return
            name = min(waiting, key=lambda name: (self._queues[name].rows[0][1], name))
            time = self._queues[name].rows[0][1]
            if any(until < time for other, until in unread.items() if other != name):
                return
            yield self._next(name)

    def _next(self, name: LogName) -> Piece:
        """The first row of a log, or what has to go before it."""
        row = self._queues[name].rows[0][0]
        if row.producer:
            for other, queue in self._queues.items():
                if other != name and min(queue.numbers.get(row.producer, ()), default=row.number) < row.number:
                    return self._pop(other)
        return self._pop(name)

    def _pop(self, name: LogName) -> Piece:
        queue = self._queues[name]
        row, _ = queue.rows.popleft()
        if row.producer:
            numbers = queue.numbers[row.producer]
            numbers.popleft()
            if not numbers:
                del queue.numbers[row.producer]
        return Piece(name, [row])
