"""Keeps when each part of a broker wants to be woken: one queue for the whole Node.

A part sets its timer when its state changes (`timers.at(key, when)`), and is asked nothing between. The Node hands the
host one deadline, `next`, and wakes with `due` the parts whose time has come. A timer that is set again moves; one
that is set to infinity is off.

A part that has parts of its own gives them a queue of its own, which is one timer in the queue above it (`below`).

The queue is a heap with lazy deletion: moving a timer leaves its former entry behind, which is dropped when it comes
to the top. There are only a few keys, so the heap is made anew when more than half of it is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from typing import Final

__all__ = ["AT_ONCE", "NEVER", "Timers"]

AT_ONCE: Final = float("-inf")
"""As soon as other inputs had their turn."""
NEVER: Final = float("inf")
_STALE_MIN: Final = 64  # below this many entries it costs less to keep what is stale


class Timers:
    """Orders the wake-up times of parts, one for each key."""

    def __init__(self, above: Timers | None = None, name: Hashable = None) -> None:
        self._above, self._name = above, name
        self._when: dict[Hashable, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Hashable]] = []
        self._count = 0

    def below(self, name: Hashable) -> Timers:
        """A queue for the parts of the part `name`: it is woken when the first of them is to be."""
        return Timers(self, name)

    def at(self, key: Hashable, when: float) -> None:
        """Wake the part `key` at `when`, and no longer at the time that it had asked for before."""
        entry = self._when.get(key)
        if when == (NEVER if entry is None else entry[0]):
            return
        if when == NEVER:
            del self._when[key]
        else:
            self._enter(key, when)
        if self._above is not None:
            self._above.at(self._name, self.next)

    def _enter(self, key: Hashable, when: float) -> None:
        self._count += 1
        self._when[key] = when, self._count
        if len(self._heap) > _STALE_MIN and len(self._heap) > 2 * len(self._when):
            self._heap = [(when, number, key) for key, (when, number) in self._when.items()]
            heapify(self._heap)
        else:
            heappush(self._heap, (when, self._count, key))

    def by(self, key: Hashable, when: float) -> None:
        """Wake the part `key` at `when`, or earlier when it has asked for that before."""
        if when < self.when(key):
            self.at(key, when)

    def when(self, key: Hashable) -> float:
        """When `key` is to be woken; infinity if never."""
        entry = self._when.get(key)
        return NEVER if entry is None else entry[0]

    @property
    def next(self) -> float:
        """When the first part is to be woken; infinity if none is."""
        heap = self._heap
        while heap and self._when.get(heap[0][2], (NEVER, -1))[1] != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else NEVER

    def due(self, now: float) -> list[Hashable]:
        """Take out the keys whose time has come, the earliest first.

        A part that is woken may find that another one, woken before it, has done its work: it looks at what is due.
        """
        ready = []
        while self.next <= now:
            key = heappop(self._heap)[2]
            del self._when[key]
            ready.append(key)
        if self._above is not None:
            self._above.at(self._name, self.next)
        return ready

    def hand_out(self, due: list[Hashable], wake_one: Callable[[Hashable], None], now: float) -> None:
        """Wake the parts that `due` took out. When one fails, it and those behind it are due again."""
        for place, key in enumerate(due):
            try:
                wake_one(key)
            except BaseException:
                for left in due[place:]:
                    self.by(left, now)
                raise

    def validate(self) -> None:
        """Every timer that is set is in the heap."""
        entries = set(self._heap)
        for key, (when, number) in self._when.items():
            assert (when, number, key) in entries, (key, when)
