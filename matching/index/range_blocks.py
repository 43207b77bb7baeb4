"""A block of a range table: the ranges that end in one piece of the line, and the answer for each cell of it.

The ends cut the block into cells, and the answer is the same for every value of a cell. A change **amends** the answers
that are ready, one by one, so that a match after it finds them as ready as before; where that would be dear they are
forgotten, and made again when a value falls into the cell. How much a block keeps ready is bounded.

The ends are looked at in an order that no processor foresees, and in a large index each look at an object waits for
memory. So the many ends of a block are packed: doubles side by side in one piece of memory, which `bisect` reads
through a memoryview. A change writes that piece anew, a few hundred bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from struct import pack
from typing import Any, Generic, TypeVar

from headgate.matching.limits import AMENDED_ITEMS_MAX, BLOCK_CELL_ITEMS_MAX

__all__ = ["Answers", "Block", "Span", "packed", "with_end", "without_end"]

T = TypeVar("T")
S = TypeVar("S", bound="Span")

# Fewer ends than these are quicker to search as a list, which the processor's caches hold anyway.
_PACKED_ENDS_MIN = 32
_DOUBLE_BYTES = 8
# Bounds that no range has any more, beyond three for each range that ends in the block, before they are taken out.
_STALE_BOUNDS_MAX = 16


class Span:
    """A range in a table. `blocks` counts those it touches; 0 is a wide one."""

    __slots__ = ("blocks", "high", "low")

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high
        self.blocks = 0


@dataclass(frozen=True, slots=True)
class Answers(Generic[S, T]):
    """How the spans that hold a value become an answer: all at once, with one span more, and with one less.

    `size` says how much of an answer a span makes.
    """

    merge: Callable[[list[S]], tuple[T, ...]]
    joined: Callable[[tuple[T, ...], S], tuple[T, ...]]
    parted: Callable[[tuple[T, ...], S], tuple[T, ...]]
    size: Callable[[S], int]


def packed(ends: list[float]) -> Sequence[float]:
    """Ends in order, in the form that is quickest to search."""
    if len(ends) < _PACKED_ENDS_MIN:
        return ends
    return memoryview(pack(f"{len(ends)}d", *ends)).cast("d")


def with_end(ends: Sequence[float], place: int, end: float) -> Sequence[float]:
    """Ends with one more at a place."""
    if isinstance(ends, memoryview):
        known: Any = ends.obj
        at = place * _DOUBLE_BYTES
        return memoryview(b"".join((known[:at], pack("d", end), known[at:]))).cast("d")
    return packed([*ends[:place], end, *ends[place:]])


def without_end(ends: Sequence[float], place: int) -> Sequence[float]:
    """Ends without the one at a place."""
    if isinstance(ends, memoryview) and len(ends) > _PACKED_ENDS_MIN:
        known: Any = ends.obj
        at = place * _DOUBLE_BYTES
        return memoryview(known[:at] + known[at + _DOUBLE_BYTES :]).cast("d")
    return packed([*ends[:place], *ends[place + 1 :]])


@dataclass(slots=True, eq=False)
class Block(Generic[S, T]):
    """The values from `low` until before `high`. `bounds` are the ends inside; a cell that is None has to be made.

    `inner` are the spans that end inside, and `covers` those that hold all of the block.
    """

    low: float
    high: float
    bounds: Sequence[float]
    cells: list[tuple[T, ...] | None]
    inner: list[S]
    covers: dict[S, None] | None = None
    kept: int = 0

    def put(self, span: S, joined: Callable[[tuple[T, ...], S], tuple[T, ...]] | None) -> None:
        """Put a span in that is not here, and into the answers; without a way to do so they are forgotten."""
        self.hold(span)
        if self.low < span.low:
            self._divide(span.low)
        if span.high < self.high:
            self._divide(span.high)
        self.change(span, joined)

    def take(self, span: S, parted: Callable[[tuple[T, ...], S], tuple[T, ...]] | None) -> None:
        """Take a span out that is here."""
        if self.covers is not None and span in self.covers:
            del self.covers[span]
            self.covers = self.covers or None
        else:
            self.inner.remove(span)
        self.change(span, parted)
        if len(self.bounds) > _STALE_BOUNDS_MAX + 3 * len(self.inner):
            self._tidy()

    def hold(self, span: S) -> None:
        """Put a span in and leave bounds and answers as they are."""
        if span.low <= self.low and span.high >= self.high:
            if self.covers is None:
                self.covers = {}
            self.covers[span] = None
        else:
            self.inner.append(span)

    def change(self, span: S, amended: Callable[[tuple[T, ...], S], tuple[T, ...]] | None = None) -> None:
        """Amend the answers of the cells that a span covers, or forget them."""
        bounds, cells = self.bounds, self.cells
        for place in range(bisect_right(bounds, span.low), bisect_left(bounds, span.high) + 1):
            answer = cells[place]
            if answer is None:
                continue
            if amended is None or len(answer) > AMENDED_ITEMS_MAX:
                cells[place] = None
                self.kept -= len(answer)
            else:
                made = cells[place] = amended(answer, span)
                self.kept += len(made) - len(answer)
        if self.kept > BLOCK_CELL_ITEMS_MAX:
            self._forget()

    def fill(self, cell: int, merge: Callable[[list[S]], tuple[T, ...]]) -> tuple[T, ...]:
        """Make the answer of a cell."""
        answer = merge(self._members(cell))
        if self.kept + len(answer) > BLOCK_CELL_ITEMS_MAX:
            self._forget()
        self.kept += len(answer)
        self.cells[cell] = answer
        return answer

    def spans(self) -> Iterator[S]:
        """All spans here, each once."""
        yield from self.inner
        if self.covers is not None:
            yield from self.covers

    def ends(self) -> list[float]:
        """The ends strictly inside, in order."""
        ends = {end for span in self.inner for end in (span.low, span.high) if self.low < end < self.high}
        return sorted(ends)

    def split(self) -> tuple[Block[S, T], Block[S, T]]:
        """Two blocks that meet at the median of the ends, with the answers that are ready."""
        ends = self.ends()
        cut = ends[len(ends) // 2]
        place = bisect_left(self.bounds, cut)
        bounds, cells = list(self.bounds), self.cells
        halves = (
            Block[S, T](self.low, cut, packed(bounds[:place]), cells[: place + 1], []),
            Block[S, T](cut, self.high, packed(bounds[place + 1 :]), cells[place + 1 :], []),
        )
        for half in halves:
            for span in self.spans():
                if half.touches(span):
                    half.hold(span)
            half.count()
        return halves

    def joined(self, after: Block[S, T]) -> Block[S, T]:
        """One block made of this and the next."""
        bounds = packed([*self.bounds, after.low, *after.bounds])
        both = Block[S, T](self.low, after.high, bounds, self.cells + after.cells, [])
        for span in {**dict.fromkeys(self.spans()), **dict.fromkeys(after.spans())}:
            both.hold(span)
        both.count()
        return both

    def touches(self, span: S) -> bool:
        """Whether a span holds anything of the block."""
        return span.low < self.high and span.high > self.low

    def count(self) -> None:
        """Count what is kept ready."""
        self.kept = sum(len(cell) for cell in self.cells if cell)
        if self.kept > BLOCK_CELL_ITEMS_MAX:
            self._forget()

    def validate(self) -> None:
        """Assert what must hold between any two calls."""
        bounds = list(self.bounds)
        assert bounds == sorted(set(bounds)) and set(self.ends()) <= set(bounds), "an end is not a bound"
        assert all(self.low < bound < self.high for bound in bounds), "a bound outside of the block"
        assert len(self.cells) == len(bounds) + 1, "cells and bounds differ"
        assert self.kept == sum(len(cell) for cell in self.cells if cell), "kept is miscounted"
        assert all(self.touches(span) for span in self.spans()), "span in a block it does not touch"
        assert all(span.low > self.low or span.high < self.high for span in self.inner), "cover among inner"
        assert all(s.low <= self.low and s.high >= self.high for s in self.covers or ()), "inner among covers"

    def ready(self) -> Iterator[tuple[tuple[T, ...], list[S]]]:
        """The answers that are ready, each with the spans that it stands for."""
        for cell, answer in enumerate(self.cells):
            if answer is not None:
                yield answer, self._members(cell)

    def _divide(self, end: float) -> None:
        """Make an end a bound of cells, unless it is one already."""
        place = bisect_left(self.bounds, end)
        if place == len(self.bounds) or self.bounds[place] != end:
            self.bounds = with_end(self.bounds, place, end)
            answer = self.cells[place]
            self.cells.insert(place, answer)
            self.kept += len(answer or ())

    def _tidy(self) -> None:
        """Take out the bounds that no span has any more; the cells on both sides of one have the same answer."""
        ends, old = self.ends(), self.bounds
        self.cells = [self.cells[bisect_right(old, low)] for low in (self.low, *ends)]
        self.bounds = packed(ends)
        self.count()

    def _forget(self) -> None:
        self.cells = [None] * len(self.cells)
        self.kept = 0

    def _members(self, cell: int) -> list[S]:
        """The spans that hold all values of a cell."""
        bounds = self.bounds
        low = bounds[cell - 1] if cell else self.low
        high = bounds[cell] if cell < len(bounds) else self.high
        found = [span for span in self.inner if span.low <= low and span.high >= high]
        if self.covers is not None:
            found += self.covers
        return found
