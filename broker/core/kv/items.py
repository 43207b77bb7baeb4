"""The items a broker holds, by name: merging, tombstones, and a count and digest of what lies in each watched stretch.

Merging two copies of a name is taking the one of higher rank (version, and at equal version the tombstone), so copies
may come in any order, any number of times and from anywhere, and every broker ends with the same.

The digest of a stretch is the sum of a hash of each live item that touches it, so that it is kept up to date by adding
and subtracting. Tombstones do not count: two brokers forget the same one at different times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ..keyspace import RING_SIZE, Arc
from ..timers import Timers
from .limits import DEFAULT_LIMITS, KvLimits
from .messages import Added, Item, KvEffect, Name, Removed

__all__ = ["Items", "Merged", "Tally", "digest_of"]


class Merged(Enum):
    """What came of merging an item in."""

    NEWER = "newer"
    """It was news."""
    SAME = "same"
    OLDER = "older"
    """What is here is of higher rank."""
    FULL = "full"
    """It was not taken: there is no room."""


@dataclass(slots=True)
class Tally:
    """How many live items touch a stretch, and the sum of their hashes."""

    stretch: Arc
    count: int = 0
    digest: int = 0


def digest_of(item: Item) -> int:
    """The same number at every broker, for equal name and version."""
    text = repr((item.name, item.low, item.high, item.version))
    return int.from_bytes(hashlib.sha1(text.encode(), usedforsecurity=False).digest()[:8], "big")


class Items:
    """Holds items by name, merges versions of them, and finds those of an arc."""

    def __init__(self, effects: list[KvEffect], timers: Timers, limits: KvLimits = DEFAULT_LIMITS) -> None:
        self._effects = effects
        self._timers = timers
        self._items_max = limits.items
        self._tombstones_max = limits.tombstones
        self._tombstone_seconds = limits.tombstone_seconds
        self.table: dict[Name, Item] = {}
        self._tombstones: dict[Name, float] = {}
        self.alone = False
        """No other broker holds anything, or ever did: what is gone is gone, and needs no tombstone."""
        """Name -> when it is forgotten, in that order."""
        self._tallies: dict[int, Tally] = {}
        self.news: list[Item] = []
        """What merging changed since the caller last looked."""
        self.full = 0
        """Items that found no room."""

    def __len__(self) -> int:
        """Live items."""
        return len(self.table) - len(self._tombstones)

    @property
    def tombstones(self) -> int:
        """Removals still remembered."""
        return len(self._tombstones)

    def merge(self, item: Item, now: float) -> Merged:
        """Take a copy in."""
        held = self.table.get(item.name)
        if held is not None:
            if held.rank >= item.rank:
                return Merged.SAME if held.rank == item.rank else Merged.OLDER
            self._drop(held)
        elif len(self.table) >= self._items_max:
            self.full += 1
            return Merged.FULL
        self.news.append(item)
        if self.alone and item.value is None:
            self.table.pop(item.name, None)
            return Merged.NEWER
        self.table[item.name] = item
        if item.value is None:
            self._tombstones[item.name] = now + self._tombstone_seconds
            if len(self._tombstones) == 1:
                self._timers.at("tombstones", now + self._tombstone_seconds)
            if len(self._tombstones) > self._tombstones_max:
                self._forget(next(iter(self._tombstones)))
        else:
            self._count(item, 1)
            self._effects.append(Added(item))
        return Merged.NEWER

    def remove(self, name: Name) -> None:
        """Hold it no longer; that says nothing about other brokers."""
        held = self.table.pop(name, None)
        if held is not None:
            self._drop(held)

    def forget_tombstones(self, now: float) -> None:
        """Those that are old enough."""
        while self._tombstones:
            name, until = next(iter(self._tombstones.items()))
            if until > now:
                self._timers.at("tombstones", until)
                return
            self._forget(name)

    def touching(self, stretch: Arc) -> Iterator[Item]:
        """What has a key in the stretch, tombstones as well."""
        if stretch.size == RING_SIZE:
            return iter(list(self.table.values()))
        return iter([item for item in self.table.values() if stretch.touches(item.low, item.high)])

    def watch(self, key: int, stretch: Arc | None) -> None:
        """Keep a tally of this stretch, under a key of the caller's; None: no longer."""
        former = self._tallies.get(key)
        if stretch is None:
            self._tallies.pop(key, None)
        elif former is None or former.stretch != stretch:
            self._tallies[key] = self.tally(stretch)

    def watched(self, key: int) -> Tally | None:
        """The tally kept under a key."""
        return self._tallies.get(key)

    def tally(self, stretch: Arc) -> Tally:
        """Count once, the slow way."""
        tally = Tally(stretch)
        for item in self.touching(stretch):
            if item.value is not None:
                tally.count += 1
                tally.digest = (tally.digest + digest_of(item)) % RING_SIZE
        return tally

    def validate(self) -> None:
        """Asserts that tombstones and the tallies of arcs are those of the items, within their bounds."""
        assert len(self.table) <= self._items_max
        assert len(self._tombstones) <= self._tombstones_max
        assert set(self._tombstones) == {name for name, item in self.table.items() if item.value is None}
        for tally in self._tallies.values():
            assert tally == self.tally(tally.stretch)

    def _forget(self, name: Name) -> None:
        del self._tombstones[name]
        del self.table[name]

    def _drop(self, held: Item) -> None:
        if held.value is None:
            del self._tombstones[held.name]
        else:
            self._count(held, -1)
            self._effects.append(Removed(held))

    def _count(self, item: Item, sign: int) -> None:
        hashed: int | None = None
        for tally in self._tallies.values():
            if tally.stretch.touches(item.low, item.high):
                hashed = digest_of(item) if hashed is None else hashed
                tally.count += sign
                tally.digest = (tally.digest + sign * hashed) % RING_SIZE
