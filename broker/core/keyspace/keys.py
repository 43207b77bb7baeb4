"""Keys: where on the ring a value, a range of values, a topic prefix or a stream's record lives.

    equality_key(stream, attribute, value)     values that `=` calls equal have one key: 1 and 1.0, 0.0 and -0.0
    prefix_key(prefix)                         the longest literal prefix of a pattern, `quotes/NYSE`
    Domain(...).segment(span)                  a range of a declared attribute, as a stretch of ring
    structure_start(stream)                    vertex 0 of the cube of Bloom keys (`vertices.py`)

All but the third are the first eight bytes of SHA-1 over tagged, length-prefixed parts, so that no two kinds and no two
splits of the same letters share a key. Two different values may, and nothing is wrong then: the whole condition is
evaluated where the subscription rests.

**Order-preserving** (RANGE 4.1). An attribute with declared minimum, maximum and precision is a row of *cells*, one a
multiple of the precision, laid once around the ring from `H(stream, attribute)` on:

    key = start + cell * 2^64 / cells  (mod 2^64)        cell = round((value - minimum) / precision)

A range is then an arc, and everything in it lies on the arc because every step from value to key keeps the order. That
alone makes it right, so it holds for any value, whatever was declared:

* Values outside [minimum, maximum] are in the first or last cell, and so are the bounds of ranges there.
* A value between two multiples shares the cell of the nearer. So the arc of `price > 8.30` begins with the cell of
  8.30 itself, where 8.302 is. The paper counts multiples only (`grid_cells`: 39 for 8.30 < price < 8.70).
* NaN is greater than every number (as in Spark), so it is in the last cell.
* The paper divides by maximum - minimum, which lays the maximum on the minimum's place. Here the maximum is the last
  cell *before* the start comes round again.

The planner asks for the one key, or the arc, of a subscription's anchor; the store of keys (`kv/store.py`) walks the
arc, and each broker that owns a key of it stores the subscription once: on N brokers about `share * N + 1` copies. An
event visits `equality_key` or `Domain.key` of each attribute class in use, and the `prefix_key` of each depth in use.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

from headgate.matching import Value
from headgate.matching.values import order

from .identifiers import RING_SIZE, distance, hash_identifier

__all__ = [
    "CELLS_DEFAULT",
    "CELLS_MAX",
    "Domain",
    "Segment",
    "Span",
    "attribute_start",
    "declared_domain",
    "default_precision",
    "equality_key",
    "order_preserving_key",
    "prefix_key",
    "structure_start",
]

CELLS_MAX = 2**48
"""Cells of an attribute. Below it a cell is wide enough, 65,536 identifiers, that rounding never joins two of them."""

CELLS_DEFAULT = 2**20
"""Steps from minimum to maximum of an attribute whose schema names no precision: a thousand for each broker of a
cluster of a thousand, so a finer grid would put hardly anything anywhere else."""

_NAN = float("nan")
_DOUBLE = struct.Struct(">d")
_LENGTH = struct.Struct(">I")


def _hash(kind: bytes, *parts: bytes) -> int:
    """The first eight bytes of SHA-1 over the parts, each behind its length."""
    return hash_identifier(b"".join(_LENGTH.pack(len(part)) + part for part in (kind, *parts)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # JSON may bring a lone surrogate, and it has a key like any other


def equality_key(stream: str, attribute: str, value: Value) -> int | None:
    """The key of `attribute = value`; None for NULL, which equals nothing.

    A number's key is its double's. Beyond 2^53 several integers share one, as they must: each equals that double.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        tagged = b"b1" if value else b"b0"
    elif isinstance(value, str):
        tagged = b"s" + _bytes(value)
    else:
        number = float(value)
        if number != number:
            number = _NAN  # of the many NaNs the one
        tagged = b"n" + _DOUBLE.pack(number + 0.0)  # adding 0.0 turns -0.0 into 0.0
    return _hash(b"equality", _bytes(stream), _bytes(attribute), tagged)


def prefix_key(prefix: str) -> int:
    """The key of a topic's leading levels, `quotes/NYSE`; the first is the stream."""
    return _hash(b"prefix", _bytes(prefix))


def attribute_start(stream: str, attribute: str) -> int:
    """Where an attribute's first cell lies: another place for each, so that minima do not all meet on one broker."""
    return _hash(b"attribute", _bytes(stream), _bytes(attribute))


def structure_start(stream: str) -> int:
    """Where vertex 0 of the stream's cube lies."""
    return _hash(b"structure", _bytes(stream))


# --- Ranges -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """What a condition lets an attribute be: between two numbers, each included or not; None is no bound."""

    low: int | float | None = None
    high: int | float | None = None
    with_low: bool = True
    with_high: bool = True

    def contains(self, value: Value) -> bool:
        """The plain meaning of the comparisons; no range contains what is not a number."""
        if isinstance(value, (bool, str)) or value is None:
            return False
        above = self.low is None or _is_over(order(value, self.low), self.with_low)
        return above and (self.high is None or _is_over(order(self.high, value), self.with_high))

    def is_empty(self) -> bool:
        """Whether no number can be in it."""
        if self.low is None or self.high is None:
            return False
        return not _is_over(order(self.high, self.low), self.with_low and self.with_high)


def _is_over(place: int | None, or_equal: bool) -> bool:
    return place is not None and (place > 0 or (or_equal and place == 0))


def order_preserving_key(start: int, cell: int, cells: int, ring_size: int = RING_SIZE) -> int:
    """Where a cell lies when so many go once around the ring."""
    return (start + cell * ring_size // cells) % ring_size


def default_precision(whole: bool, minimum: int | float, maximum: int | float) -> int | float:
    """The precision of an attribute whose schema names none: 1 for whole numbers if that is not too fine, else a share
    of the range."""
    width = float(maximum) - float(minimum)
    return 1 if whole and width < CELLS_MAX - 1 else width / CELLS_DEFAULT


def declared_domain(
    stream: str, attribute: str, minimum: int | float, maximum: int | float, precision: int | float
) -> Domain | None:
    """The domain that a schema declares, or None when its numbers make none: then ranges of it are no anchor."""
    width = float(maximum) - float(minimum)
    if not (math.isfinite(width) and width > 0 and precision > 0):
        return None
    if not width / float(precision) < CELLS_MAX - 1:
        return None
    return Domain(stream, attribute, minimum, maximum, precision)


@dataclass(frozen=True, slots=True)
class Segment:
    """The keys from `low` to `high`, both included, clockwise."""

    low: int
    high: int

    def covers(self, key: int) -> bool:
        """Whether the key lies in it."""
        return distance(self.low, key) <= distance(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Domain:
    """An attribute as its stream's schema declares it, and its order-preserving hash. Made by `declared_domain`."""

    stream: str
    attribute: str
    minimum: int | float
    maximum: int | float
    precision: int | float
    cells: int = field(init=False)
    """How many multiples of the precision there are, both ends included."""
    start: int = field(init=False)
    """The key of the minimum."""

    def __post_init__(self) -> None:
        assert self.minimum < self.maximum and self.precision > 0
        object.__setattr__(self, "cells", self._nearest(float(self.maximum)) + 1)
        object.__setattr__(self, "start", attribute_start(self.stream, self.attribute))
        assert self.cells <= CELLS_MAX

    def _nearest(self, number: float) -> int:
        return round((number - float(self.minimum)) / float(self.precision))

    def cell(self, value: int | float) -> int:
        """The cell a number is in. Never falls when the number rises, whatever number it is."""
        number = float(value)
        if number != number or number >= self.maximum:
            return self.cells - 1
        return 0 if number <= self.minimum else self._nearest(number)

    def key_of_cell(self, cell: int) -> int:
        """Where a cell lies on the ring."""
        return order_preserving_key(self.start, cell, self.cells)

    def cell_at(self, key: int) -> int:
        """The cell that lies there, or the first one after the key."""
        return -(-distance(self.start, key) * self.cells // RING_SIZE)

    def key(self, value: Value) -> int | None:
        """Where an event with this value looks for ranges; None when it is no number, for no range contains it."""
        if isinstance(value, (bool, str)) or value is None:
            return None
        return self.key_of_cell(self.cell(value))

    def span_cells(self, span: Span) -> range:
        """Every cell that a value in the span may be in; none when no value is in the span."""
        if span.is_empty():
            return range(0)
        first = 0 if span.low is None else self.cell(span.low)
        last = self.cells - 1 if span.high is None else self.cell(span.high)
        return range(first, last + 1)

    def grid_cells(self, span: Span) -> range:
        """The paper's own count: the multiples of the precision in the span. Right only where all values are such."""
        first, last = 0, self.cells - 1
        if span.low is not None:
            below, above = self._neighbours(span.low)
            first = max(first, above if span.with_low or below != above else above + 1)
        if span.high is not None:
            below, above = self._neighbours(span.high)
            last = min(last, below if span.with_high or below != above else below - 1)
        return range(first, max(last + 1, first))

    def _neighbours(self, bound: int | float) -> tuple[int, int]:
        """The cells at or below and at or above a bound; a bound written as a multiple is one, as 8.3 is of 0.01."""
        if not self.minimum <= bound <= self.maximum:
            return (-1, 0) if bound < self.minimum else (self.cells - 1, self.cells)
        place = (float(bound) - float(self.minimum)) / float(self.precision)
        nearest = round(place)
        if math.isclose(place, nearest, rel_tol=1e-12, abs_tol=1e-6):
            return nearest, nearest
        return math.floor(place), math.ceil(place)

    def segment(self, span: Span) -> Segment | None:
        """The stretch of ring where every event with a value in the span looks; None when no value is in it."""
        cells = self.span_cells(span)
        return Segment(self.key_of_cell(cells[0]), self.key_of_cell(cells[-1])) if cells else None
