"""Ranges that cover much of what is asked for: one-sided ones, and those that many others end inside.

**Rays** (`x > 5`) stand in order of their one end, in chunks with a ready answer each; a value takes the chunks on its
side whole and cuts one of them. The work is that of the answer, whatever their number.

**Segments** (`low <= x < high`) are filed by size: a segment of width between 2^k and 2^(k+1) touches at most three
of the squares of the grid of width 2^k, and is filed in each of them. A value falls in one square of each grid that is
in use (there are as many as there are sizes, a handful), and finds there segments of which it is inside one in three
or better. Nothing is balanced or rebuilt, and a segment costs three entries whatever its width.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import floor, frexp, inf, ldexp
from typing import Generic, Protocol, TypeVar

from headgate.matching.limits import GRID_HALVINGS_MAX, RAYS_PER_CHUNK_MAX
from headgate.matching.values import EXACT_MAX

__all__ = ["WideRanges"]


class _Ranged(Protocol):
    low: float
    high: float


T = TypeVar("T")
S = TypeVar("S", bound=_Ranged)


@dataclass(slots=True, eq=False)
class _Chunk(Generic[S, T]):
    """Rays in order of their ends."""

    ends: list[float]
    spans: list[S]
    answer: tuple[T, ...] | None = None


class _Rays(Generic[S, T]):
    """Rays of one direction. An upward ray holds x when its end is at most x, a downward one when it is above x."""

    __slots__ = ("_chunks", "_merge", "_upward")

    def __init__(self, upward: bool, merge: Callable[[list[S]], tuple[T, ...]]) -> None:
        self._upward = upward
        self._merge = merge
        self._chunks: list[_Chunk[S, T]] = []

    def _end(self, span: S) -> float:
        return span.low if self._upward else span.high

    def _place(self, end: float) -> int:
        """The chunk where a ray of this end belongs: the first that reaches it, or the last."""
        place = bisect_left(self._chunks, end, key=lambda chunk: chunk.ends[-1])
        return min(place, len(self._chunks) - 1)

    def add(self, span: S) -> None:
        end = self._end(span)
        if not self._chunks:
            self._chunks.append(_Chunk([end], [span]))
            return
        place = self._place(end)
        chunk = self._chunks[place]
        at = bisect_right(chunk.ends, end)
        chunk.ends.insert(at, end)
        chunk.spans.insert(at, span)
        chunk.answer = None
        half = len(chunk.ends) // 2
        if len(chunk.ends) > RAYS_PER_CHUNK_MAX:
            self._chunks.insert(place + 1, _Chunk(chunk.ends[half:], chunk.spans[half:]))
            del chunk.ends[half:], chunk.spans[half:]

    def _where(self, span: S) -> tuple[int, int]:
        """Chunk and place of a ray that is here. Rays of the same end may fill several chunks."""
        end = self._end(span)
        for place in range(self._place(end), len(self._chunks)):
            chunk = self._chunks[place]
            at = bisect_left(chunk.ends, end)
            while at < len(chunk.ends) and chunk.ends[at] == end:
                if chunk.spans[at] is span:
                    return place, at
                at += 1
        raise KeyError(f"no ray at {end}")

    def remove(self, span: S) -> None:
        place, at = self._where(span)
        chunk = self._chunks[place]
        del chunk.ends[at], chunk.spans[at]
        chunk.answer = None
        if not chunk.ends:
            del self._chunks[place]
        elif place and len(chunk.ends) + len(self._chunks[place - 1].ends) < RAYS_PER_CHUNK_MAX // 2:
            before = self._chunks[place - 1]
            before.ends += chunk.ends
            before.spans += chunk.spans
            before.answer = None
            del self._chunks[place]

    def touch(self, span: S) -> None:
        self._chunks[self._where(span)[0]].answer = None

    def find(self, value: float, hits: list[tuple[T, ...]]) -> None:
        upward = self._upward
        for chunk in self._chunks if upward else reversed(self._chunks):
            ends = chunk.ends
            if (not value < ends[-1]) if upward else value < ends[0]:
                if chunk.answer is None:
                    chunk.answer = self._merge(chunk.spans)
                hits.append(chunk.answer)
                continue
            at = bisect_right(ends, value)
            inside = chunk.spans[:at] if upward else chunk.spans[at:]
            if inside:
                hits.append(self._merge(inside))
            return

    def spans(self) -> Iterator[S]:
        for chunk in self._chunks:
            yield from chunk.spans

    def validate(self) -> None:
        ends = [end for chunk in self._chunks for end in chunk.ends]
        assert ends == sorted(ends) == [self._end(span) for span in self.spans()], "rays out of order"
        assert all(0 < len(chunk.ends) <= RAYS_PER_CHUNK_MAX for chunk in self._chunks), "chunk of a wrong size"


class WideRanges(Generic[S, T]):
    """Wide spans, and for a value the answers that `merge` makes of those that hold it."""

    __slots__ = ("_down", "_grids", "_merge", "_up", "size")

    def __init__(self, merge: Callable[[list[S]], tuple[T, ...]]) -> None:
        self._merge = merge
        self._up: _Rays[S, T] = _Rays(True, merge)
        self._down: _Rays[S, T] = _Rays(False, merge)
        # Exponent of the width -> number of the square -> the segments that touch it.
        self._grids: dict[int, dict[int, dict[S, None]]] = {}
        self.size = 0

    def _rays(self, span: S) -> _Rays[S, T] | None:
        if span.high == inf:
            return self._up
        return self._down if span.low == -inf else None

    def add(self, span: S) -> None:
        """Put a span in that is not there."""
        self.size += 1
        rays = self._rays(span)
        if rays is not None:
            rays.add(span)
            return
        exponent, squares = _squares(span)
        grid = self._grids.setdefault(exponent, {})
        for square in squares:
            grid.setdefault(square, {})[span] = None

    def remove(self, span: S) -> None:
        """Take a span out that is there."""
        self.size -= 1
        rays = self._rays(span)
        if rays is not None:
            rays.remove(span)
            return
        exponent, squares = _squares(span)
        grid = self._grids[exponent]
        for square in squares:
            del grid[square][span]
            if not grid[square]:
                del grid[square]
        if not grid:
            del self._grids[exponent]

    def touch(self, span: S) -> None:
        """Forget the ready answers that a span is in."""
        rays = self._rays(span)
        if rays is not None:
            rays.touch(span)

    def find(self, value: float, hits: list[tuple[T, ...]]) -> None:
        """Append the answers for a number to `hits`."""
        self._up.find(value, hits)
        self._down.find(value, hits)
        # A segment ends below 2^53, so a number beyond it, infinity or NaN is in none.
        if self._grids and -EXACT_MAX <= value <= EXACT_MAX:
            inside = [
                span
                for exponent, grid in self._grids.items()
                for span in grid.get(floor(ldexp(value, -exponent)), ())
                if span.low <= value < span.high
            ]
            if inside:
                hits.append(self._merge(inside))

    def spans(self) -> Iterator[S]:
        """All spans, each once."""
        yield from self._up.spans()
        yield from self._down.spans()
        for grid in self._grids.values():
            yield from dict.fromkeys(span for square in grid.values() for span in square)

    def validate(self) -> None:
        """Assert what must hold between any two calls."""
        self._up.validate()
        self._down.validate()
        assert self.size == len(list(self.spans())), "wide spans are miscounted"
        for exponent, grid in self._grids.items():
            assert grid, "empty grid"
            for square, spans in grid.items():
                assert spans, "empty square"
                for span in spans:
                    own, squares = _squares(span)
                    assert own == exponent and square in squares, "segment in the wrong square"


def _squares(span: _Ranged) -> tuple[int, range]:
    """The exponent of a segment's width, and the squares of that grid which it touches."""
    exponent = max(frexp(span.high - span.low)[1] - 1, -GRID_HALVINGS_MAX)
    return exponent, range(floor(ldexp(span.low, -exponent)), floor(ldexp(span.high, -exponent)) + 1)
