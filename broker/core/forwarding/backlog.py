"""Waiting: batches on their way for whose keys no broker can answer at this moment, in the order in which they came.

There are two lines, and none waits for the other: what our own publishers sent, which may also wait for another broker
to be done with what went before; and what other brokers asked of us. In one line two brokers could wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from headgate.protocol.data import Batch, LogShift

from ..delivery import Stream
from ..keyspace import Dimension, Step
from ..limits import DEFAULT_LIMITS, Limits
from ..links import PeerInfo

__all__ = ["Task", "Waiting"]


@dataclass(slots=True)
class Task:
    """A batch on its way: where its events stand, and for which rows of which dimensions we answer; None is for all."""

    stream: Stream
    batch: Batch
    origin: str
    base: int
    places: Sequence[int]  # of each row, after base
    time: int
    wanted: dict[Dimension | Step, Sequence[int]] | None
    hops: int
    since: float
    source: PeerInfo | None = None
    cause: str = ""  # why it came, while it waits
    log: LogShift | None = None


class Waiting:
    """Both lines, and what they hold together."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self.own: deque[Task] = deque()
        self.others: deque[Task] = deque()
        self.events = self.bytes = 0

    def __len__(self) -> int:
        return len(self.own) + len(self.others)

    def __iter__(self) -> Iterator[Task]:
        return chain(self.others, self.own)

    @property
    def lines(self) -> tuple[deque[Task], deque[Task]]:
        """What others asked first: it is older than what of our own would have to wait for it."""
        return self.others, self.own

    def line_of(self, task: Task) -> deque[Task]:
        """Where such a task waits."""
        return self.own if task.wanted is None else self.others

    def add(self, task: Task) -> None:
        """At the end of its line."""
        self.line_of(task).append(task)
        self._count(task, 1)

    def put_first(self, tasks: Sequence[Task]) -> None:
        """Before everything that others asked: these are older, and came back."""
        self.others.extendleft(reversed(tasks))
        for task in tasks:
            self._count(task, 1)

    def take(self, line: deque[Task]) -> Task:
        """The first of a line."""
        task = line.popleft()
        self._count(task, -1)
        return task

    def untake(self, line: deque[Task], task: Task) -> None:
        """It has to wait on."""
        line.appendleft(task)
        self._count(task, 1)

    def drop_last(self, task: Task) -> None:
        """There was no room for it."""
        last = self.line_of(task).pop()
        assert last is task
        self._count(task, -1)

    def over(self, batch: Batch | None = None) -> bool:
        """Whether this is more than may wait, or would be with that batch."""
        events, size = (0, 0) if batch is None else (batch.count, len(batch.records))
        return self.events + events > self._limits.waiting_events or self.bytes + size > self._limits.waiting_bytes

    def came_back(self, stream: str) -> bool:
        """Whether events of our own publishers to this stream wait among what others asked."""
        return any(task.source is None and task.stream.name == stream for task in self.others)

    def validate(self) -> None:
        """Both lines add up."""
        assert self.events == sum(task.batch.count for task in self)
        assert self.bytes == sum(len(task.batch.records) for task in self)
        assert all(task.wanted is None for task in self.own)

    def _count(self, task: Task, sign: int) -> None:
        self.events += sign * task.batch.count
        self.bytes += sign * len(task.batch.records)
