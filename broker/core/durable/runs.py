"""Sets of positions as runs: pairs of start and stop, ascending and apart, as the events of a log that match follow.

`Waiting` is such a set as a queue: appended to at its end, taken from at its front.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import ge

from headgate.protocol.errors import ProtocolViolation

from ..limits import POSITIONS_MAX

__all__ = [
    "Run",
    "Waiting",
    "count_of",
    "intersect",
    "join_runs",
    "runs_of",
    "split_runs",
    "subtract",
    "union",
]

Run = tuple[int, int]
"""The positions from the first number up to, and without, the second."""

_SWAP = array("Q", [1]).tobytes()[0] != 1
_COMPACT = 1024
"""Runs taken from the front before the arrays are cut."""


def join_runs(runs: Iterable[Run]) -> bytes:
    """Runs as pairs of u64 little-endian."""
    words = array("Q", chain.from_iterable(runs))
    if _SWAP:
        words.byteswap()
    return words.tobytes()


def split_runs(data: bytes) -> list[Run]:
    """The runs of such bytes. Raises ProtocolViolation unless they ascend and none is empty; they may touch."""
    if len(data) % 16:
        raise ProtocolViolation(f"runs of positions are pairs of 64-bit integers, not {len(data)} bytes")
    words = array("Q")
    words.frombytes(data)
    if _SWAP:
        words.byteswap()
    flat = words.tolist()
    if not flat:
        return []
    starts, stops = flat[::2], flat[1::2]
    if sorted(flat) != flat or any(map(ge, starts, stops)):
        raise ProtocolViolation("runs of positions ascend, and none is empty")
    if flat[-1] > POSITIONS_MAX:
        raise ProtocolViolation(f"a position is at most {POSITIONS_MAX}, not {flat[-1]}")
    return list(zip(starts, stops, strict=True))


def runs_of(positions: Iterable[int]) -> list[Run]:
    """Ascending positions as runs."""
    runs: list[Run] = []
    start = stop = -1
    for position in positions:
        if position == stop:
            stop += 1
            continue
        if stop > start:
            runs.append((start, stop))
        start, stop = position, position + 1
    if stop > start:
        runs.append((start, stop))
    return runs


def count_of(runs: Iterable[Run]) -> int:
    """How many positions there are in runs."""
    return sum(stop - start for start, stop in runs)


def union(runs: Iterable[Run]) -> list[Run]:
    """Any runs, in any order, which may overlap, as ascending runs apart from each other."""
    joined: list[Run] = []
    for start, stop in sorted(runs):
        if joined and start <= joined[-1][1]:
            if stop > joined[-1][1]:
                joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined


def intersect(left: Sequence[Run], right: Sequence[Run]) -> list[Run]:
    """The positions that are in both."""
    both: list[Run] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, stop = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < stop:
            both.append((start, stop))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return both


def subtract(left: Sequence[Run], right: Sequence[Run]) -> list[Run]:
    """The positions that are in the first and not in the second."""
    rest: list[Run] = []
    j = 0
    for first, stop in left:
        start = first
        while j < len(right) and right[j][1] <= start:
            j += 1
        at = j
        while at < len(right) and right[at][0] < stop:
            if start < right[at][0]:
                rest.append((start, right[at][0]))
            start = max(start, right[at][1])
            at += 1
        if start < stop:
            rest.append((start, stop))
    return rest


class Waiting:
    """A queue of positions of one log, 16 bytes a run: they ascend, and how many there are is known at once."""

    __slots__ = ("_head", "_starts", "_stops", "count")

    def __init__(self) -> None:
        self._starts = array("Q")
        self._stops = array("Q")
        self._head = 0
        self.count = 0

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._starts) - self._head

    @property
    def first(self) -> int | None:
        """The position at the front."""
        return self._starts[self._head] if self.count else None

    def runs(self) -> list[Run]:
        """All of them."""
        return list(zip(self._starts[self._head :], self._stops[self._head :], strict=True))

    def append(self, runs: Sequence[Run]) -> None:
        """Add runs, which ascend, behind all that there are."""
        if not runs:
            return
        assert not self.count or runs[0][0] >= self._stops[-1], "positions come in ascending order"
        if self.count and runs[0][0] == self._stops[-1]:
            self._stops[-1] = runs[0][1]
            self.count += runs[0][1] - runs[0][0]
            runs = runs[1:]
        if len(runs) == 1:
            ((start, stop),) = runs
            self._starts.append(start)
            self._stops.append(stop)
            self.count += stop - start
        else:
            self._starts.extend([start for start, _ in runs])
            self._stops.extend([stop for _, stop in runs])
            self.count += count_of(runs)

    def pop(self, count: int, before: int = POSITIONS_MAX) -> list[Run]:
        """Take so many positions from the front, or fewer, all of them before that one."""
        starts, stops, head = self._starts, self._stops, self._head
        end = len(starts)
        taken: list[Run] = []
        left = count
        while left > 0 and head < end:
            start = starts[head]
            stop = min(stops[head], start + left, before)
            if stop <= start:
                break
            taken.append((start, stop))
            left -= stop - start
            if stop < stops[head]:
                starts[head] = stop
                break
            head += 1
        self.count -= count - left
        self._advance(head)
        return taken

    def nth(self, number: int) -> int | None:
        """The position behind so many others; None when there are no more than that."""
        if number >= self.count:
            return None
        for at in range(self._head, len(self._starts)):
            length = self._stops[at] - self._starts[at]
            if number < length:
                return self._starts[at] + number
            number -= length
        return None

    @property
    def last(self) -> int | None:
        """The position at the end."""
        return self._stops[-1] - 1 if self.count else None

    def drop(self, before: int) -> int:
        """Forget all positions before that one; returns how many there were."""
        starts, stops, head = self._starts, self._stops, self._head
        dropped = 0
        while head < len(starts) and stops[head] <= before:
            dropped += stops[head] - starts[head]
            head += 1
        if head < len(starts) and starts[head] < before:
            dropped += before - starts[head]
            starts[head] = before
        self.count -= dropped
        self._advance(head)
        return dropped

    def clear(self) -> None:
        """Forget all."""
        self._starts, self._stops = array("Q"), array("Q")
        self._head = self.count = 0

    def _advance(self, head: int) -> None:
        self._head = head
        if not self.count:
            self.clear()
        elif head >= _COMPACT and 2 * head > len(self._starts):
            del self._starts[:head]
            del self._stops[:head]
            self._head = 0

    def validate(self) -> None:
        """Runs ascend and are apart, and are counted."""
        runs = self.runs()
        assert runs == union(runs), "runs ascend and are apart"
        assert self.count == count_of(runs), f"{self.count} are counted, {count_of(runs)} wait"
