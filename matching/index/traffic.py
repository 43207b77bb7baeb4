"""How selective is a predicate? A guess from what the index holds, corrected by a small sample of the traffic.

The last values of each attribute that somebody asks for are remembered, one row in a thousand or so. The share of the
sample that a term holds for is what it may be expected to let through; while there is no sample, an equality is
expected to choose one of the keys that others ask for, and a range a quarter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any

from headgate.matching.index.anchors import Anchor, Bits, Keys, Prefixes, Term, key_of
from headgate.matching.index.columns import Columns
from headgate.matching.limits import SAMPLED_ATTRIBUTES_MAX, SAMPLED_ROWS_INTERVAL, SAMPLED_VALUES_MAX
from headgate.matching.values import Value

__all__ = ["Traffic", "holds"]

# How many sampled values the guess is worth: a sample of four says as much as the guess.
_GUESS_WEIGHT = 4
_KEYS_MIN = 10
_RANGE_SHARE, _RAY_SHARE, _PREFIX_SHARE, _FLAG_SHARE = 0.25, 0.5, 0.1, 0.5


class Traffic:
    """A sample of the rows that passed by; `seen` counts them all."""

    def __init__(self) -> None:
        self._values: dict[str, list[Value]] = {}
        self.seen = 0
        self._next = 0

    def due(self, rows: int) -> bool:
        """Count rows; is it time to look at one?"""
        self.seen += rows
        if self.seen < self._next:
            return False
        self._next = self.seen + SAMPLED_ROWS_INTERVAL
        return True

    def hurry(self) -> None:
        """Look again soon: something was found that was worth changing."""
        self._next = self.seen + SAMPLED_ROWS_INTERVAL // 8

    def note(self, rows: Sequence[int], columns: Columns) -> None:
        """Remember one row, of the columns that were read."""
        row = rows[self.seen % len(rows)]
        for name, column in columns.items():
            values = self._values.get(name)
            if values is None:
                values = self._values[name] = []
                if len(self._values) > SAMPLED_ATTRIBUTES_MAX:
                    del self._values[next(iter(self._values))]
            values.append(column[row])
            if len(values) > SAMPLED_VALUES_MAX:
                del values[0]

    def share(self, anchor: Anchor, keys_in_use: int) -> float:
        """The part of the rows that an anchor lets through."""
        return min(1.0, sum(self._share(term, keys_in_use) for term in anchor.terms))

    def _share(self, term: Term, keys_in_use: int) -> float:
        sample = self._values.get(term.attribute, ())
        passed = sum(map(_test_of(term), sample))
        return (passed + _guess(term, keys_in_use) * _GUESS_WEIGHT) / (len(sample) + _GUESS_WEIGHT)


def holds(term: Term, value: Any) -> bool:
    """Whether a term lets a value through: the plain meaning of what `ranges.py` and `steps.py` look up."""
    if isinstance(term, Keys):
        return key_of(value) in term.keys
    if isinstance(term, Prefixes):
        return isinstance(value, str) and value.startswith(term.prefixes)
    if isinstance(term, Bits):
        return not term.bits & ~value
    if type(value) not in (int, float):
        return False
    return any(not value < low and (value < high or high == inf) for low, high in term.ranges)


def _test_of(term: Term) -> Callable[[Any], bool]:
    """`holds` of one term, for many values: a long list is hashed once."""
    if isinstance(term, Keys):
        keys = frozenset(term.keys)
        return lambda value: key_of(value) in keys
    return partial(holds, term)


def _guess(term: Term, keys_in_use: int) -> float:
    if isinstance(term, Keys):
        flag = any(key is None or isinstance(key, tuple) for key in term.keys)
        return _FLAG_SHARE if flag else len(term.keys) / max(_KEYS_MIN, keys_in_use)
    if isinstance(term, Prefixes):
        return sum(_PREFIX_SHARE / len(prefix) for prefix in term.prefixes)
    if isinstance(term, Bits):
        return _PREFIX_SHARE
    bounded = all(low > -inf and high < inf for low, high in term.ranges)
    return len(term.ranges) * (_RANGE_SHARE if bounded else _RAY_SHARE)
