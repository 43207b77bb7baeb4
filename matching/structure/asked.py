"""What a twig asks of an event: the filters that those of its document must contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .filters import DEFAULT_SHAPE, Shape, unpack
from .twigs import parse_twig

__all__ = ["Asked"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters of items and of values that one or more twigs have together, of one shape."""

    shape: Shape
    items: int
    values: int

    @staticmethod
    def of(*twigs: str, shape: Shape = DEFAULT_SHAPE) -> Asked:
        """What some twigs ask, all of which must be there."""
        items = values = 0
        for text in twigs:
            twig = parse_twig(text)
            items |= twig.filter(shape.length, shape.hashes)
            values |= twig.values_filter(shape.length, shape.hashes)
        return Asked(shape, items, values)

    def passes(self, row: Mapping[str, object]) -> bool:
        """Whether an event may have it. A filter that is not there, or none of this shape, says nothing."""
        for name, asked in ((self.shape.column, self.items), (self.shape.values_column, self.values)):
            packed = row.get(name)
            made = unpack(packed, self.shape.length) if isinstance(packed, bytes) else None
            if made is not None and asked & ~made:
                return False
        return True
