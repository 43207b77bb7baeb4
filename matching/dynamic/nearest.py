"""Nearest: a queue of ends of which the least comes first, for a million of them.

A binary heap of a million entries looks at some forty of them for a push or a pop, each in another place of memory.
Here the entries stand in blocks, every entry of a block before every entry of the next one. Only the first block is a
heap; the others are in no order, and become one when they are first. So a push looks at the borders, and appends; a
pop looks at a few hundred entries that stay in the processor's cache. A block that grows too large is cut in two.

    borders     4         9
    blocks   [1 3 2]   [7 4 8]   [12 9 30 11]         the first is a heap, 4 and 9 begin theirs

Borders are doubles in one piece of memory, for they are what every push looks at. An integer beyond 2^53 is rounded for
that, which keeps the order of what is not rounded to the same; and no block is cut between two of those.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from headgate.matching.limits import NEAREST_BLOCK_MAX

__all__ = ["Nearest"]


_NONE: tuple[Any, ...] = ()


class Nearest:
    """Tuples that begin with a number. What is popped is never greater than what stays."""

    __slots__ = ("_block_max", "_blocks", "_borders", "first")

    def __init__(self, entries: Iterable[Any] = (), block_max: int = NEAREST_BLOCK_MAX) -> None:
        self._block_max = block_max
        self.first: list[Any] = sorted(entries)
        """The block that begins with the least entry, as a heap; empty when there is none at all. Not to be changed."""
        # Most queues are short, and there may be a million of them: those have no lists for what they lack.
        self._blocks: Any = _NONE
        """Those behind the first."""
        self._borders: Any = _NONE
        """Of each of them the first number as a double: greater than any before it."""
        if len(self.first) > block_max:
            self._cut_all()

    def __len__(self) -> int:
        return len(self.first) + sum(map(len, self._blocks))

    def __iter__(self) -> Iterator[Any]:
        yield from self.first
        for block in self._blocks:
            yield from block

    def push(self, entry: Any) -> None:
        """One more."""
        at = bisect_right(self._borders, float(entry[0]))
        if at:
            block = self._blocks[at - 1]
            block.append(entry)
        else:
            block = self.first
            heappush(block, entry)
        size = len(block)
        if size > self._block_max and not size & (size - 1):  # at powers of two: equal numbers cannot be cut apart
            self._cut(at)

    def pop(self) -> Any:
        """The least one. IndexError when there is none."""
        entry = heappop(self.first)
        if not self.first and self._blocks:
            self.first = self._blocks.pop(0)
            del self._borders[0]
            heapify(self.first)
        return entry

    def replace(self, entry: Any) -> None:
        """Another one in place of the least."""
        if self._borders and float(entry[0]) >= self._borders[0]:
            self.pop()
            self.push(entry)
        else:
            heapreplace(self.first, entry)

    def _cut(self, at: int) -> None:
        """A block in two, each a heap as it is in order."""
        block = sorted(self._blocks[at - 1] if at else self.first)
        middle = _between(block, len(block) // 2)
        if not middle:
            return
        if not self._blocks:
            self._blocks, self._borders = [], array("d")
        self._blocks.insert(at, block[middle:])
        self._borders.insert(at, block[middle][0])
        if at:
            self._blocks[at - 1] = block[:middle]
        else:
            self.first = block[:middle]

    def _cut_all(self) -> None:
        """The first block, which has everything in order, in blocks of half the size that they may have."""
        ordered, cuts, half = self.first, [0], max(1, self._block_max // 2)
        while cuts[-1] + half < len(ordered):
            cut = _between(ordered, cuts[-1] + half)
            if cut <= cuts[-1]:
                break
            cuts.append(cut)
        blocks = [ordered[start:end] for start, end in zip(cuts, [*cuts[1:], len(ordered)], strict=True)]
        if len(blocks) > 1:
            self.first, *self._blocks = blocks
            self._borders = array("d", [block[0][0] for block in self._blocks])

    def validate(self) -> None:
        """Asserts that entries stand in their blocks, and the first is a heap."""
        assert len(self._borders) == len(self._blocks) and all(self._blocks) and (self.first or not self._blocks)
        for border, before, behind in zip(self._borders, [self.first, *self._blocks], self._blocks, strict=False):
            assert float(max(before)[0]) < border <= float(min(behind)[0])
        first = self.first
        assert all(not first[at] < first[(at - 1) // 2] for at in range(1, len(first)))


def _between(ordered: list[Any], at: int) -> int:
    """The nearest place at which this may be cut: before it every number is less as a double; 0 when there is none."""
    for step in range(len(ordered)):
        for place in (at + step, at - step):
            if 0 < place < len(ordered) and float(ordered[place - 1][0]) < float(ordered[place][0]):
                return place
    return 0
