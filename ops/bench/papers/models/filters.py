"""STATE 4.3 as a model: dynamic filters of one item on a segment of brokers, by themselves (SF) or in levels (MFD).

    SF     each subscription lies on the segment at a place of its own, and every value goes to the whole segment
    MFD    c, in units of precision, is written in base 4 and cut into its non-zero digits, smallest first: 21 is 1, 4
           and 16, so on level 3. A filter passes what has moved by more than its last part from what it passed last, of
           what the filter before it passed. Filters that only others need are *proxies*; a value that no filter of a
           level passes goes no further

No broker does either: with one broker a segment both are the trigger index of `matching/dynamic`, which is what the
product has. Three slips of the paper are mended: the place of the largest c is within the segment (4.3.1); of a fresh
subscription the reference is its own; and what is promised is the bound, not the same deliveries (Theorem 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, log2

__all__ = ["BASE", "Levels", "Passed", "mfd_messages", "parts_of_width", "place_of_width", "sf_messages"]

BASE = 4
_DIGITS = BASE - 1


def parts_of_width(width: int) -> tuple[int, ...]:
    """The non-zero digits of a width with their weights, smallest first: 34 is 2 + 32."""
    parts: list[int] = []
    weight = 1
    while width:
        width, digit = divmod(width, BASE)
        if digit:
            parts.append(digit * weight)
        weight *= BASE
    return tuple(parts)


def place_of_width(width: int) -> tuple[int, int, int]:
    """Level, leading digit, and the index of the node: (level - 1) * 3 + digit - 1."""
    parts = parts_of_width(width)
    digit = parts[-1]
    while digit >= BASE:
        digit //= BASE
    return len(parts), digit, (len(parts) - 1) * _DIGITS + digit - 1


@dataclass(frozen=True, slots=True)
class Passed:
    """What became of one value."""

    delivered: tuple[int, ...]
    """The widths of subscriptions that got it; one that joined later is known by its number, negated."""
    levels: int
    """So many levels saw it: the first always, another if a filter of the one before passed it."""


@dataclass(slots=True)
class Levels:
    """All filters of one item, those of subscriptions and their proxies, with what each passed last."""

    real: dict[int, None] = field(default_factory=dict)
    _last: dict[int, float] = field(default_factory=dict)
    _own: list[tuple[int, float | None]] = field(default_factory=list)

    def subscribe(self, width: int) -> None:
        """A filter that stands from the beginning, and the proxies that it needs."""
        self.real[width] = None

    def join(self, width: int) -> int:
        """A subscription that comes later: it has a reference of its own, and gets the next value past all levels."""
        self.real.setdefault(width)
        self._own.append((width, None))
        return -len(self._own)

    def filters(self) -> list[int]:
        """Every filter, proxies included, those of lower levels first."""
        needed: dict[int, None] = {}
        for width in self.real:
            total = 0
            for part in parts_of_width(width):
                total += part
                needed[total] = None
        return sorted(needed, key=lambda one: (len(parts_of_width(one)), one))

    def publish(self, value: float) -> Passed:
        """One value on its way through the levels."""
        passed: dict[int, None] = {}
        levels = 1
        for width in self.filters():
            *before, part = parts_of_width(width)
            if before and sum(before) not in passed:
                continue
            levels = max(levels, len(before) + 1)
            last = self._last.get(width)
            if last is None or abs(value - last) > part:
                self._last[width] = value
                passed[width] = None
        delivered = [width for width in passed if width in self.real]
        for place, (width, last) in enumerate(self._own):
            *before, part = parts_of_width(width)
            comes = not before or sum(before) in passed
            if last is None or (comes and abs(value - last) > part):
                self._own[place] = width, value
                delivered.append(-place - 1)
        return Passed(tuple(delivered), levels)


def sf_messages(brokers: int, segment: int) -> float:
    """Messages for one value: to the segment, and to each broker on it."""
    return _to_segment(brokers) + segment - 1


def mfd_messages(brokers: int, segment: int, levels: int, nodes: Iterable[int]) -> float:
    """Messages for one value that came so far: of each level its brokers hear of it, and tell its leader what passed,
    or that nothing did. `nodes` are the indexes in use; equal parts of the segment hold them."""
    total = _to_segment(brokers)
    used = sorted({min(segment - 1, node * segment // (3 * _DIGITS)) for node in nodes})
    of_level: dict[int, set[int]] = {}
    for node in nodes:
        of_level.setdefault(node // _DIGITS, set()).add(min(segment - 1, node * segment // (3 * _DIGITS)))
    for level in range(levels):
        there = of_level.get(level, set())
        if level and there and there != of_level.get(level - 1):
            total += 1  # from one leader to the next
        total += 2 * max(0, len(there) - 1)
    return total if used else 0.0


def _to_segment(brokers: int) -> float:
    return ceil(log2(brokers)) / 2 if brokers > 1 else 0.0
