"""A tally of durable subscriptions: how much waits for whom, without a look at each of them.

Of 100,000 subscriptions a few change between two looks. Whoever changes one says its name, and the next look counts
those alone; the sums of all others stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import NamedTuple

__all__ = ["Load", "Tally"]


class Load(NamedTuple):
    """What a durable subscription, or all of them, have to hand out and have handed out."""

    waiting: int = 0
    unacked: int = 0
    redelivered: int = 0
    clients: int = 0

    def plus(self, other: Load, sign: int = 1) -> Load:
        """Both together, or this one without the other."""
        return Load(*(mine + sign * its for mine, its in zip(self, other, strict=True)))


_NOTHING = Load()


class Tally:
    """Sums over durable subscriptions, and those for which most waits; `load_of` looks at one."""

    def __init__(self, load_of: Callable[[str], Load | None]) -> None:
        self._load_of = load_of
        self._changed: dict[str, None] = {}
        self._loads: dict[str, Load] = {}
        """Of those that have anything."""
        self._sum = _NOTHING

    def changed(self, name: str) -> None:
        """It is looked at before the next answer."""
        self._changed[name] = None

    def _look(self) -> None:
        changed, self._changed = self._changed, {}
        for name in changed:
            before = self._loads.pop(name, _NOTHING)
            load = self._load_of(name) or _NOTHING
            if load != _NOTHING:
                self._loads[name] = load
            self._sum = self._sum.plus(before, -1).plus(load)

    def all(self) -> Load:
        """The sums of all."""
        self._look()
        return self._sum

    def busiest(self, most: int) -> list[str]:
        """Names of those for which most waits, those with nothing left out."""
        self._look()
        return nsmallest(most, self._loads, key=lambda name: (-self._loads[name].waiting, name))

    def validate(self, names: Iterable[str]) -> None:
        """The sums are those of a look at each of these."""
        self._look()
        loads = {name: load for name in names if (load := self._load_of(name)) not in (None, _NOTHING)}
        assert self._loads == loads
        total = _NOTHING
        for load in loads.values():
            total = total.plus(load or _NOTHING)
        assert self._sum == total
