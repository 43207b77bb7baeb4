"""Covering: which of some filters say it all, and what a few of them say for many.

A filter f *covers* g when every document that passes g passes f, and that is when f is a subset of g: a filter asks for
bits, and who asks for fewer is content with more. Of "any of these filters" only the minimal ones count; a set of
filters of which none covers another is an **antichain**.

An antichain that is to stay small has its two nearest filters *merged* by AND: what both ask for. That passes all that
either passes, and a little more. (BLOOM 4.5 merges by OR, which asks for both at once: f = 0011, g = 1100 and the
document 0111 passes f, and not 1111. Events would be lost.)
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Final, TypeAlias

__all__ = ["ANTICHAIN_MAX", "Antichain", "bounded", "covers", "merge", "minimal", "passes", "with_filter"]

ANTICHAIN_MAX: Final = 16
"""Filters of one edge. On real feeds 8 of them let 2 % more through than all minimal ones do (5.41 edges a publication
against 5.31), and 16 have 2 KiB at a length of 1,024 bits."""

Antichain: TypeAlias = tuple[int, ...]
"""Filters in ascending order, none of which covers another."""


def covers(one: int, other: int) -> bool:
    """Whether all that passes the other filter passes this one."""
    return one & other == one


def passes(filters: Iterable[int], document: int) -> bool:
    """Whether a document passes any of the filters."""
    return any(one & document == one for one in filters)


def minimal(filters: Iterable[int]) -> Antichain:
    """The filters that no other one covers: they pass what all of them pass."""
    kept: list[int] = []
    for one in sorted(set(filters), key=int.bit_count):
        if not passes(kept, one):
            kept.append(one)
    return tuple(sorted(kept))


def merge(one: int, other: int) -> int:
    """One filter for two, which passes whatever either passes."""
    return one & other


def bounded(filters: Iterable[int], count_max: int = ANTICHAIN_MAX) -> Antichain:
    """An antichain of so many filters at most, which passes whatever one of these passes."""
    kept = minimal(filters)
    while len(kept) > count_max:
        one, other = min(combinations(kept, 2), key=lambda pair: (pair[0] ^ pair[1]).bit_count())
        kept = minimal((*(left for left in kept if left not in (one, other)), merge(one, other)))
    return kept


def with_filter(antichain: Antichain, one: int, count_max: int = ANTICHAIN_MAX) -> Antichain:
    """The antichain with a filter more; itself, the same object, when that is covered already."""
    return antichain if passes(antichain, one) else bounded((*antichain, one), count_max)
