"""The third algorithm of the paper (HIER III-C): patterns are keys of a hash table, and a topic makes those it fits.

For each stream (the first level) an array counts at which levels its patterns have wildcards. A topic walks down its
levels, making the key so far with the level's name and, where the count says that somebody has a wildcard there, with
`*`; each key is looked up. The figure in the paper that gives this (Figure 3) has two slips: the branch for wildcards
appends `/` where `/*` is meant, and the recursion reads a level beyond the last. Both are mended here.

With wildcards at every level the keys are 2^(m-1) in a topic of m levels. When they would be more than the patterns
of the stream, or than `HASH_LOOKUPS_MAX`, the patterns are tried one by one instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headgate.matching.limits import HASH_LOOKUPS_MAX, TOPIC_LEVELS_MAX
from headgate.matching.topics.patterns import WILDCARD, Pattern

__all__ = ["TopicHash"]

T = TypeVar("T")

# What a pattern holds besides its place in the table: its key, and a slotted pair (measured).
_ENTRY_BYTES = 140


@dataclass(slots=True)
class _Values(Generic[T]):
    """What is known of one key: the value of the pattern, and of its exact twin."""

    below: T | None = None
    exact: T | None = None


@dataclass(slots=True)
class _Stream(Generic[T]):
    """The patterns of one stream. `counts[0]` is their number, `counts[i]` how many have a wildcard at level i."""

    counts: list[int] = field(default_factory=lambda: [0] * TOPIC_LEVELS_MAX)
    table: dict[str, _Values[T]] = field(default_factory=dict)

    def count(self, pattern: Pattern, change: int) -> None:
        self.counts[0] += change
        for place, level in enumerate(pattern.levels):
            if level == WILDCARD:
                self.counts[place] += change


class TopicHash(Generic[T]):
    """`TopicTable` says what the methods do."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream[T]] = {}

    def get(self, pattern: Pattern) -> T | None:
        stream = self._streams.get(pattern.stream)
        values = stream.table.get(str(pattern)) if stream is not None else None
        if values is None:
            return None
        return values.exact if pattern.exact else values.below

    def put(self, pattern: Pattern, value: T) -> None:
        stream = self._streams.setdefault(pattern.stream, _Stream())
        stream.count(pattern, 1)
        values = stream.table.setdefault(str(pattern), _Values())
        if pattern.exact:
            values.exact = value
        else:
            values.below = value

    def remove(self, pattern: Pattern) -> None:
        if self.get(pattern) is None:
            raise KeyError(str(pattern))
        stream = self._streams[pattern.stream]
        stream.count(pattern, -1)
        values = stream.table[str(pattern)]
        if pattern.exact:
            values.exact = None
        else:
            values.below = None
        if values.exact is None and values.below is None:
            del stream.table[str(pattern)]
        if not stream.counts[0]:
            del self._streams[pattern.stream]

    def resolve(self, topic: str) -> list[T]:
        levels = topic.split("/")
        stream = self._streams.get(levels[0])
        if stream is None:
            return []
        if self.lookups(topic) > min(HASH_LOOKUPS_MAX, len(stream.table)):
            return _tried(stream, levels)
        found: list[T] = []
        self._finer(stream, levels, levels[0], 1, found)
        return found

    def lookups(self, topic: str) -> int:
        """How many keys the topic makes."""
        levels = topic.split("/")
        stream = self._streams.get(levels[0])
        if stream is None:
            return 0
        keys, total = 1, 1
        for count in stream.counts[1 : len(levels)]:
            keys *= 2 if count else 1
            total += keys
        return total

    def _finer(self, stream: _Stream[T], levels: Sequence[str], coarser: str, level: int, found: list[T]) -> None:
        """The patterns of one key, and of those that go on from it; `level` levels are in the key."""
        values = stream.table.get(coarser)
        last = level == len(levels)
        if values is not None:
            if values.below is not None:
                found.append(values.below)
            if last and values.exact is not None:
                found.append(values.exact)
        if last:
            return
        self._finer(stream, levels, f"{coarser}/{levels[level]}", level + 1, found)
        if stream.counts[level]:
            self._finer(stream, levels, f"{coarser}/{WILDCARD}", level + 1, found)

    def memory_bytes(self) -> int:
        total = self._streams.__sizeof__()
        for stream in self._streams.values():
            total += stream.counts.__sizeof__() + stream.table.__sizeof__() + _ENTRY_BYTES * len(stream.table)
        return total


def _tried(stream: _Stream[T], levels: Sequence[str]) -> list[T]:
    """All patterns of a stream, one by one."""
    found: list[T] = []
    for key, values in stream.table.items():
        wanted = tuple(key.split("/"))
        if values.below is not None and Pattern(wanted).covers(levels):
            found.append(values.below)
        if values.exact is not None and Pattern(wanted, True).covers(levels):
            found.append(values.exact)
    return found
