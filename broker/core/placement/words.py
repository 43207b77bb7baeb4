"""Values and ranges of cells in words, as `headgate explain` shows them."""

from __future__ import annotations

import math

from headgate.matching import Value, to_text
from headgate.matching.tree import Literal

from ..keyspace import Domain

__all__ = ["stretches", "stretches_text", "value_text"]


def value_text(value: Value) -> str:
    """A value as a condition has it."""
    return repr(value) if isinstance(value, float) else to_text(Literal(value))


def stretches(about: tuple[Value, ...]) -> list[tuple[int, int]]:
    """The first and last cells of ranges."""
    ends = [int(cell or 0) for cell in about]
    return list(zip(ends[::2], ends[1::2], strict=True))


def stretches_text(name: str, domain: Domain, about: tuple[Value, ...]) -> str:
    """What some ranges ask of an attribute."""
    return " or ".join(f"{name} {_stretch_text(domain, first, last)}" for first, last in stretches(about))


def _stretch_text(domain: Domain, first: int, last: int) -> str:
    """The numbers of some cells, as round as the precision is."""
    digits = max(0, 1 - math.floor(math.log10(domain.precision)))
    low, high = (f"{round(domain.minimum + cell * domain.precision, digits):.12g}" for cell in (first, last))
    if first == last:
        return f"about {low}"
    if first == 0:
        return f"up to {high}"
    return f"from {low} up" if last == domain.cells - 1 else f"from {low} to {high}"
