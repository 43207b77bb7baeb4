"""Ranges of one attribute: which of them hold a value?

**Theory.** The ends of all ranges cut the line into elementary cells, and the answer is the same for every value of a
cell, so it can be ready when a value comes: two bisections and no test at all. Kept naively such a table costs a
rebuild for each change and, when ranges are wide, memory in the square of their number. Three rules prevent that.

* The line is cut into **blocks** (`range_blocks.py`; like the leaves of a B-tree) of at most `BLOCK_SPANS_MAX` ranges
  that end inside. A range is an `inner` span of the blocks where it ends, at most two, and a `cover` of the blocks
  between. A change concerns these blocks only. A block that grows too full is cut at the median of its ends; two thin
  ones become one.
* The answers of the cells are ready, and a range that comes or goes amends those it covers; where they are many, or
  long, they are forgotten instead and made when a value first falls into the cell.
* A range that covers more than `COVERED_BLOCKS_MAX` blocks is **wide** and moves to `WideRanges`, where it costs
  the same whatever its width.

Half-open ranges `low <= x < high` of doubles are enough (see `anchors.py`). `bisect_right` puts NaN last, which is just
where the language wants it: above all numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from math import inf
from typing import Generic, TypeVar

from headgate.matching.index.range_blocks import Answers, Block, Span, with_end, without_end
from headgate.matching.index.wide_ranges import WideRanges
from headgate.matching.limits import AMENDED_BLOCKS_MAX, AMENDED_ITEMS_MAX, BLOCK_SPANS_MAX, COVERED_BLOCKS_MAX

__all__ = ["Answers", "RangeTable", "Span"]

T = TypeVar("T")
S = TypeVar("S", bound="Span")


class RangeTable(Generic[S, T]):
    """Spans, and for a value the answer that `merge` makes of the spans that hold it."""

    __slots__ = ("_answers", "_blocks", "_starts", "_wide", "size")

    def __init__(self, answers: Answers[S, T]) -> None:
        self._answers = answers
        self._starts: Sequence[float] = [-inf]
        self._blocks: list[Block[S, T]] = [Block(-inf, inf, [], [()], [])]
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
        joined = self._answers.joined if self._is_amended(span, first, last) else None
        for block in self._blocks[first : last + 1]:
            block.put(span, joined)
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

    def touch(self, span: S, present: bool) -> None:
        """Take a span out of the ready answers, before they would make something else of it; or put it back, after."""
        if not span.blocks:
            assert self._wide is not None
            self._wide.touch(span)
            return
        first, last = self._touched(span)
        amended = self._answers.joined if present else self._answers.parted
        for block in self._blocks[first : last + 1]:
            block.change(span, amended if self._is_amended(span, first, last) else None)

    def _is_amended(self, span: S, first: int, last: int) -> bool:
        """Whether to amend the answers that a span is in is cheaper than to make them anew."""
        return last - first < AMENDED_BLOCKS_MAX and self._answers.size(span) <= AMENDED_ITEMS_MAX

    def find(self, value: float, hits: list[tuple[T, ...]]) -> None:
        """Append the answers for a number to `hits`; together they are the spans that hold it, each once."""
        block = self._blocks[bisect_right(self._starts, value) - 1]
        cell = bisect_right(block.bounds, value)
        answer = block.cells[cell]
        if answer is None:
            answer = block.fill(cell, self._answers.merge)
        if answer:
            hits.append(answer)
        if self._wide is not None:
            self._wide.find(value, hits)

    def _touched(self, span: S) -> tuple[int, int]:
        """The first and the last block of a span."""
        return bisect_right(self._starts, span.low) - 1, bisect_left(self._starts, span.high) - 1

    def _leave(self, span: S) -> tuple[int, int]:
        first, last = self._touched(span)
        parted = self._answers.parted if self._is_amended(span, first, last) else None
        for block in self._blocks[first : last + 1]:
            block.take(span, parted)
        return first, last

    def _widen(self, span: S) -> None:
        span.blocks = 0
        if self._wide is None:
            self._wide = WideRanges(self._answers.merge)
        self._wide.add(span)

    def _split(self, place: int) -> None:
        """Cut a block at the median of its ends. Spans that now touch too many blocks become wide."""
        halves = self._blocks[place].split()
        too_wide = []
        for span in self._blocks[place].spans():
            span.blocks += sum([half.touches(span) for half in halves]) - 1
            if span.blocks - 1 > COVERED_BLOCKS_MAX:
                too_wide.append(span)
        self._blocks[place : place + 1] = halves
        self._starts = with_end(self._starts, place + 1, halves[1].low)
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
        joined = left.joined(right)
        if len(joined.inner) > few:
            return
        for span in left.spans():
            span.blocks -= 1 if span.high > right.low else 0
        self._blocks[place - 1 : place + 1] = [joined]
        self._starts = without_end(self._starts, place)

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
        assert list(self._starts) == [block.low for block in self._blocks] and self._starts[0] == -inf
        assert [block.high for block in self._blocks] == [*self._starts[1:], inf]
        touched: dict[S, int] = {}
        for block in self._blocks:
            block.validate()
            for span in block.spans():
                touched[span] = touched.get(span, 0) + 1
            for answer, spans in block.ready():
                assert sorted(answer, key=hash) == sorted(self._answers.merge(spans), key=hash), "a wrong answer"
        for span, blocks in touched.items():
            first, last = self._touched(span)
            assert span.blocks == blocks == last - first + 1 <= COVERED_BLOCKS_MAX + 1, "blocks are miscounted"
        assert self.size == len(touched) + self.wide == len(set(self.spans())), "spans are miscounted"
        if self._wide is not None:
            self._wide.validate()
