"""Filters of documents that say nothing, among what a client publishes. (protocol/SPEC.md, 6.4)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.matching.structure import Shape
from headgate.protocol.data import Batch, is_saturated, saturated_text

__all__ = ["saturated"]


def saturated(batch: Batch, name: str) -> dict[int, str]:
    """The rows of a batch whose filters of structure, in the column of this name, have nearly all of their bits; and
    what each is refused with. Raises ProtocolViolation when the column cannot be read.
    """
    found: dict[int, str] = {}
    shape = Shape.of_column(name)
    cells: Sequence[Any] | None = None if shape is None else batch.column(name)
    if shape is None or cells is None:
        return found
    for row, cell in enumerate(cells):
        if isinstance(cell, bytes) and len(cell) * 8 == shape.length:  # positions are few
            bits = int.from_bytes(cell, "little").bit_count()
            if is_saturated(bits, shape.length):
                found[row] = saturated_text(bits, shape.length)
    return found
