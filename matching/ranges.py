"""Ranges of one attribute: which of them hold a value?

**Theory.** The ends of all ranges cut the line into elementary cells, and the answer is the same for every value of a
cell, so it can be ready when a value comes: two bisections and no test at all. Kept naively such a table costs a
rebuild for each change and, when ranges are wide, memory in the square of their number. Three rules prevent that.

* The line is cut into **blocks** (like the leaves of a B-tree) of at most `BLOCK_SPANS_MAX` ranges that end inside. A
  range is an `inner` span of the blocks where it ends, at most two, and a `cover` of the blocks between. A change
  concerns these blocks only. A block that grows too full is cut at the median of its ends; two thin ones become one.
* The answer of a cell is made when a value first falls into it, and forgotten when a range that covers it comes or
  goes; how much a block may keep ready is bounded (`BLOCK_CELL_ITEMS_MAX`).
* A range that covers more than `COVERED_BLOCKS_MAX` blocks is **wide** and moves to `WideRanges`, where it costs
  the same whatever its width.

Half-open ranges `low <= x < high` of doubles are enough (see `anchors.py`). `bisect_right` puts NaN last, which is just
where the language wants it: above all numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from matching.limits import BLOCK_CELL_ITEMS_MAX, BLOCK_SPANS_MAX, COVERED_BLOCKS_MAX
from matching.wide_ranges import WideRanges

__all__ = ["RangeTable", "Span"]

T = TypeVar("T")
S = TypeVar("S", bound="Span")

# Bounds that no range has any more, beyond four for each range that ends in the block, before a block is settled anew.
_STALE_BOUNDS_MAX = 16


class Span:
    """A range in a table. `blocks` counts those it touches; 0 is a wide one."""

    __slots__ = ("blocks", "high", "low")

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high
        self.blocks = 0


@dataclass(slots=True, eq=False)
class _Block(Generic[S, T]):
    """The values from `low` until before `high`. `bounds` are the ends inside, None when they have to be found anew."""

    low: float
    high: float
    inner: list[S]
    covers: dict[S, None] | None = None
    bounds: list[float] | None = None
    cells: list[tuple[T, ...] | None] | None = None
    kept: int = 0

    def put(self, span: S) -> None:
        if span.low <= self.low and span.high >= self.high:
            if self.covers is None:
                self.covers = {}
            self.covers[span] = None
        else:
            self.inner.append(span)
            self.divide(span.low)
            self.divide(span.high)
        self.forget(span)

    def take(self, span: S) -> None:
        if self.covers is not None and span in self.covers:
            del self.covers[span]
            self.covers = self.covers or None
        else:
            self.inner.remove(span)
        self.forget(span)
        if self.bounds is not None and len(self.bounds) > _STALE_BOUNDS_MAX + 4 * len(self.inner):
            self.bounds = None

    def divide(self, end: float) -> None:
        """Make an end a bound of cells, unless it is one already or not inside."""
        bounds, cells = self.bounds, self.cells
        if bounds is None or cells is None or not self.low < end < self.high:
            return
        place = bisect_left(bounds, end)
        if place == len(bounds) or bounds[place] != end:
            bounds.insert(place, end)
            cells.insert(place, cells[place])
            self.kept += len(cells[place] or ())

    def forget(self, span: S) -> None:
        """Forget the answers of the cells that a span covers. An end that nobody has any more may stay a bound."""
        bounds, cells = self.bounds, self.cells
        if bounds is not None and cells is not None:
            for place in range(bisect_right(bounds, span.low), bisect_left(bounds, span.high) + 1):
                self.kept -= len(cells[place] or ())
                cells[place] = None

    def spans(self) -> Iterator[S]:
        yield from self.inner
        if self.covers is not None:
            yield from self.covers

    def ends(self) -> list[float]:
        """The ends strictly inside, in order."""
        ends = {end for span in self.inner for end in (span.low, span.high) if self.low < end < self.high}
        return sorted(ends)

    def settle(self) -> list[float]:
        """Make room for the answers, after a change."""
        bounds = self.bounds = self.ends()
        self.cells = [None] * (len(bounds) + 1)
        self.kept = 0
        return bounds

    def members(self, cell: int) -> list[S]:
        """The spans that hold all values of a cell."""
        assert self.bounds is not None
        low = self.bounds[cell - 1] if cell else self.low
        high = self.bounds[cell] if cell < len(self.bounds) else self.high
        found = [span for span in self.inner if span.low <= low and span.high >= high]
        if self.covers is not None:
            found += self.covers
        return found


class RangeTable(Generic[S, T]):
    """Spans, and for a value the answer that `merge` makes of the spans that hold it."""

    __slots__ = ("_blocks", "_merge", "_starts", "_wide", "size")

    def __init__(self, merge: Callable[[list[S]], tuple[T, ...]]) -> None:
        self._merge = merge
        self._starts: list[float] = [-inf]
        self._blocks: list[_Block[S, T]] = [_Block(-inf, inf, [])]
        self._wide: WideRanges[S, T] | None = None
        self.size = 0

    def add(self, span: S) -> None:
        """Put a span in that is not there."""
        assert span.low < span.high, "an empty range finds nothing"
        self.size += 1
        first, last = self._touched(span)
        if last - first > COVERED_BLOCKS_MAX:
            self._widen(span)
            return
        span.blocks = last - first + 1
        for block in self._blocks[first : last + 1]:
            block.put(span)
        for place in (last, first) if last > first else (first,):
            if len(self._blocks[place].inner) > BLOCK_SPANS_MAX:
                self._split(place)

    def remove(self, span: S) -> None:
        """Take a span out that is there."""
        self.size -= 1
        if not span.blocks:
            assert self._wide is not None
            self._wide.remove(span)
            if not self._wide.size:
                self._wide = None
            return
        first, last = self._leave(span)
        for place in range(last + 1, first - 1, -1):
            self._join(place)

    def touch(self, span: S) -> None:
        """Forget the ready answers that a span is in, because `merge` would now make something else of it."""
        if not span.blocks:
            assert self._wide is not None
            self._wide.touch(span)
            return
        first, last = self._touched(span)
        for block in self._blocks[first : last + 1]:
            block.forget(span)

    def find(self, value: float, hits: list[tuple[T, ...]]) -> None:
        """Append the answers for a number to `hits`; together they are the spans that hold it, each once."""
        block = self._blocks[bisect_right(self._starts, value) - 1]
        bounds = block.bounds
        if bounds is None:
            bounds = block.settle()
        cell = bisect_right(bounds, value)
        answer = block.cells[cell]  # type: ignore[index]
        if answer is None:
            answer = self._fill(block, cell)
        if answer:
            hits.append(answer)
        if self._wide is not None:
            self._wide.find(value, hits)

    def _fill(self, block: _Block[S, T], cell: int) -> tuple[T, ...]:
        answer = self._merge(block.members(cell))
        assert block.cells is not None
        if block.kept + len(answer) > BLOCK_CELL_ITEMS_MAX:
            block.cells = [None] * len(block.cells)
            block.kept = 0
        block.kept += len(answer)
        block.cells[cell] = answer
        return answer

    def _touched(self, span: S) -> tuple[int, int]:
        """The first and the last block of a span."""
        return bisect_right(self._starts, span.low) - 1, bisect_left(self._starts, span.high) - 1

    def _leave(self, span: S) -> tuple[int, int]:
        first, last = self._touched(span)
        for block in self._blocks[first : last + 1]:
            block.take(span)
        return first, last

    def _widen(self, span: S) -> None:
        span.blocks = 0
        if self._wide is None:
            self._wide = WideRanges(self._merge)
        self._wide.add(span)

    def _split(self, place: int) -> None:
        """Cut a block at the median of its ends. Spans that now touch too many blocks become wide."""
        block = self._blocks[place]
        ends = block.ends()
        cut = ends[len(ends) // 2]
        halves: tuple[_Block[S, T], _Block[S, T]] = (_Block(block.low, cut, []), _Block(cut, block.high, []))
        too_wide = []
        for span in block.spans():
            both = 0
            for half in halves:
                if span.low < half.high and span.high > half.low:
                    half.put(span)
                    both += 1
            span.blocks += both - 1
            if span.blocks - 1 > COVERED_BLOCKS_MAX:
                too_wide.append(span)
        self._blocks[place : place + 1] = halves
        self._starts.insert(place + 1, cut)
        for span in too_wide:
            self._leave(span)
            self._widen(span)

    def _join(self, place: int) -> None:
        """Make one block of a thin one and the one before it, unless the result would soon be cut again."""
        if not 0 < place < len(self._blocks):
            return
        left, right = self._blocks[place - 1 : place + 1]
        few = BLOCK_SPANS_MAX // 2
        left_covers, right_covers = left.covers or {}, right.covers or {}
        if len(left.inner) + len(right.inner) > few or abs(len(left_covers) - len(right_covers)) > few:
            return
        both = {**dict.fromkeys(left.spans()), **dict.fromkeys(right.spans())}
        joined: _Block[S, T] = _Block(left.low, right.high, [])
        for span in both:
            joined.put(span)
        if len(joined.inner) > few:
            return
        for span in left.spans():
            span.blocks -= 1 if span.high > right.low else 0
        self._blocks[place - 1 : place + 1] = [joined]
        del self._starts[place]

    def spans(self) -> Iterator[S]:
        """All spans, each once."""
        for block in self._blocks:
            yield from (span for span in block.spans() if span.low >= block.low or block.low == -inf)
        if self._wide is not None:
            yield from self._wide.spans()

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self._blocks)

    @property
    def wide(self) -> int:
        """How many of the spans are wide."""
        return 0 if self._wide is None else self._wide.size

    def validate(self) -> None:
        """Assert what must hold between any two calls."""
        assert self._starts == [block.low for block in self._blocks] and self._starts[0] == -inf
        assert [block.high for block in self._blocks] == [*self._starts[1:], inf]
        touched: dict[S, int] = {}
        for block in self._blocks:
            for span in block.spans():
                assert span.low < block.high and span.high > block.low, "span in a block it does not touch"
                touched[span] = touched.get(span, 0) + 1
            if block.bounds is not None and block.cells is not None:
                assert block.bounds == sorted(set(block.bounds)) and set(block.ends()) <= set(block.bounds)
                assert len(block.cells) == len(block.bounds) + 1, "cells and bounds differ"
                assert block.kept == sum(len(cell) for cell in block.cells if cell), "kept is miscounted"
            assert all(span.low > block.low or span.high < block.high for span in block.inner), "cover among inner"
            assert all(s.low <= block.low and s.high >= block.high for s in block.covers or ()), "inner among covers"
        for span, blocks in touched.items():
            first, last = self._touched(span)
            assert span.blocks == blocks == last - first + 1 <= COVERED_BLOCKS_MAX + 1, "blocks are miscounted"
        assert self.size == len(touched) + self.wide == len(set(self.spans())), "spans are miscounted"
        if self._wide is not None:
            self._wide.validate()
