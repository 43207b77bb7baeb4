"""Stretches of the ring that a broker owns or may answer for; no state.

A stretch is (after, last]: the keys of the broker `last` when `after` is the broker before it. It is never empty, and
all of the ring when both are one. Items lie on segments, which are [low, high].

    Arc(10, 20).covers(20)      True
    Arc(10, 20).touches(5, 11)  True: 11 is in both
    Arc(7, 7).size              2^64
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from .identifiers import RING_SIZE

__all__ = ["NOTHING", "Scope", "Arc"]


class Arc(NamedTuple):
    """The keys after `after`, up to and including `last`, clockwise."""

    after: int
    last: int

    @property
    def size(self) -> int:
        """How many keys: 1 to 2^64."""
        return (self.last - self.after) % RING_SIZE or RING_SIZE

    @property
    def first(self) -> int:
        """The first key of it."""
        return (self.after + 1) % RING_SIZE

    def covers(self, key: int) -> bool:
        """Whether the key lies in it."""
        return (key - self.after - 1) % RING_SIZE < self.size

    def contains(self, other: Arc) -> bool:
        """Whether all of another stretch lies in it."""
        return self.size == RING_SIZE or (other.after - self.after) % RING_SIZE + other.size <= self.size

    def touches(self, low: int, high: int) -> bool:
        """Whether a key of the segment [low, high] lies in it."""
        return self.covers(low) or (self.after + 1 - low) % RING_SIZE <= (high - low) % RING_SIZE

    def overlaps(self, other: Arc) -> bool:
        """Whether a key is in both."""
        return self.touches(other.first, other.last)


class Scope:
    """The keys that may be answered for at one moment; immutable."""

    __slots__ = ("_ends", "_starts", "epoch", "everything", "stretches", "until")

    def __init__(self, stretches: Iterable[Arc], until: float, epoch: int) -> None:
        self.stretches = tuple(stretches)
        self.until = until
        """When it ends by itself, or becomes smaller: ask again from then on."""
        self.epoch = epoch
        """Changes whenever the set of keys changes, and only then: what was derived from it may be kept as long."""
        intervals = _merged(self.stretches)
        self._starts = [start for start, _ in intervals]
        self._ends = [end for _, end in intervals]
        self.everything = intervals == [(0, RING_SIZE - 1)]

    def covers(self, key: int) -> bool:
        """Whether the key may be answered for."""
        if self.everything:
            return True
        place = bisect_right(self._starts, key) - 1
        return place >= 0 and key <= self._ends[place]

    def same_keys(self, other: Scope) -> bool:
        """Whether the two cover the same."""
        return self._starts == other._starts and self._ends == other._ends


def _merged(stretches: Iterable[Arc]) -> list[tuple[int, int]]:
    """Disjoint intervals, both ends included, that do not go past the top of the ring."""
    pieces: list[tuple[int, int]] = []
    for stretch in stretches:
        first, last = stretch.first, stretch.last
        pieces += [(first, last)] if first <= last else [(0, last), (first, RING_SIZE - 1)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(pieces):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


NOTHING = Scope((), 0.0, 0)
"""The scope of a broker that may answer for nothing."""
