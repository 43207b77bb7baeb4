"""Vertices: where on the ring the vertices of a cube live, and which vertex a document or a twig has.

Vertex v of the cube of a stream lives at `start + (v << (64 - n))`: the cube lies once around the ring, in the order of
its numbers. The n - j high bits are alike in 2^j vertices in a row, which are one broker's, or few brokers'. So a
publication that clears high bits first leaves a broker once, and goes on inside the next.

A document's vertex is the key of its filter, which stands in a match column. A row of which nothing is known, because
the column is not there or cannot be read, has all bits: it meets every subscription, and none is missed. A filter
without a bit says that the event has no document, and such a row has no vertex.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from headgate.matching.cube import KeyMap, named
from headgate.matching.structure import Shape, unpack

from .identifiers import BITS, RING_SIZE
from .keys import structure_start

__all__ = ["Vertices", "is_cube"]

_MAPS_MAX = 64
"""Key maps that are remembered: one for each kind of filter and number of bits in use, which are few."""

_map = lru_cache(_MAPS_MAX)(named)


def is_cube(column: str, bits: int, phi: str) -> bool:
    """Whether there is such a cube."""
    shape = Shape.of_column(column)
    try:
        return shape is not None and shape.column == column and bool(_map(phi, shape.length, bits))
    except ValueError:
        return False


class Vertices:
    """The cube of one stream and one kind of filter."""

    __slots__ = ("_keys", "_known", "bits", "column", "length", "shape", "start", "top")

    def __init__(self, stream: str, column: str, bits: int, phi: str) -> None:
        shape = Shape.of_column(column)
        if shape is None:
            raise ValueError(f"{column!r} is no column of filters")
        self.column, self.bits, self.shape = column, bits, shape
        self.length = shape.length
        self._keys: KeyMap = _map(phi, self.length, bits)
        self.start = structure_start(stream)
        self.top = (1 << bits) - 1
        self._known = (1 << self.length) - 1

    def key(self, vertex: int) -> int:
        """Where on the ring a vertex lives."""
        return (self.start + (vertex << (BITS - self.bits))) % RING_SIZE

    def vertex_at(self, key: int) -> int:
        """The vertex that lives there."""
        return (key - self.start) % RING_SIZE >> (BITS - self.bits)

    def vertex_of(self, one: int) -> int:
        """The vertex of a filter."""
        return self._keys.key(one)

    def filter_of(self, cell: Any) -> int:
        """The filter in a cell of the match column: all bits where it is unknown, none where there is no document."""
        read = unpack(cell, self.length) if type(cell) is bytes else None
        return self._known if read is None else read

    def filters(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[int]:
        """The filter of each row."""
        cells = columns.get(self.column)
        return [self._known] * count if cells is None else list(map(self.filter_of, cells))
