"""Topics to patterns, our default: a hash table for each *mask* in use, where HIER has one for each combination.

**Theory.** The mask of a pattern is its depth and which of its levels are wildcards. People use few masks: a stream
of quotes has `quotes/*/SYMBOL` and `quotes/EXCHANGE`, and nobody ever asks for the other combinations. So the patterns
of a stream are grouped by mask, and a group is a hash table from the *named* levels to the value. A topic is looked up
once in each group: as many lookups as there are masks, however many patterns there are, and 2^m only if somebody really
uses 2^m masks. That is HIER's third algorithm (III-C) with the counts per level replaced by counts per mask, which say
exactly which lookups can succeed. A pattern costs one table entry and the tuple of its names: no nodes, no edges.

Masks are bounded (`TOPIC_MASKS_MAX` for a stream); patterns of further masks go to HIER's tree, which cannot be made
slow by them either: it visits only nodes that exist.

Measured (`headgate bench matching topics`, 10^5 patterns of 7 levels with one wildcard): half of the tree's time to
resolve and a seventh of its memory; less than a tenth of the time of the paper's hash scheme, in somewhat less memory.
That is time like the tree's and memory like the hash table's at once, which is why it is the default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Generic, TypeVar

from headgate.matching.limits import TOPIC_MASKS_MAX
from headgate.matching.shrinking import ShrinkingDict
from headgate.matching.topics.patterns import WILDCARD, Pattern
from headgate.matching.topics.table import TopicTree

__all__ = ["TopicMasks"]

T = TypeVar("T")

# What a pattern of seven levels holds besides its place in the table: the tuple of its names.
_ENTRY_BYTES = 104
_GROUP_BYTES = 400

# Depth, the places of the named levels, and whether the depth must be met exactly.
_Mask = tuple[int, tuple[int, ...], bool]


@dataclass(slots=True, eq=False)
class _Group(Generic[T]):
    """The patterns of one mask. `names` takes their named levels out of a topic's levels: the key."""

    depth: int
    exact: bool
    names: Callable[[Any], Any]
    table: ShrinkingDict[Any, T] = field(default_factory=ShrinkingDict)


class TopicMasks(Generic[T]):
    """`TopicTable` says what the methods do."""

    def __init__(self) -> None:
        self._streams: dict[str, dict[_Mask, _Group[T]]] = {}
        self._rest: TopicTree[T] = TopicTree()

    def get(self, pattern: Pattern) -> T | None:
        group = self._streams.get(pattern.stream, {}).get(_mask(pattern))
        value = None if group is None else group.table.get(group.names(pattern.levels))
        return self._rest.get(pattern) if value is None else value

    def put(self, pattern: Pattern, value: T) -> None:
        groups = self._streams.setdefault(pattern.stream, {})
        mask = _mask(pattern)
        group = groups.get(mask)
        if group is None:
            if len(groups) >= TOPIC_MASKS_MAX:
                self._rest.put(pattern, value)
                return
            group = groups[mask] = _Group(mask[0], mask[2], itemgetter(*mask[1]))
        group.table[group.names(pattern.levels)] = value

    def remove(self, pattern: Pattern) -> None:
        groups = self._streams.get(pattern.stream, {})
        mask = _mask(pattern)
        group = groups.get(mask)
        key = None if group is None else group.names(pattern.levels)
        if group is None or key not in group.table:
            self._rest.remove(pattern)
            return
        group.table.drop(key)
        if not group.table:
            del groups[mask]
            if not groups:
                del self._streams[pattern.stream]

    def resolve(self, topic: str) -> list[T]:
        levels = topic.split("/")
        depth = len(levels)
        found = []
        for group in self._streams.get(levels[0], {}).values():
            if group.depth == depth or (group.depth < depth and not group.exact):
                value = group.table.get(group.names(levels))
                if value is not None:
                    found.append(value)
        if self._rest:
            found += self._rest.resolve(topic)
        return found

    def memory_bytes(self) -> int:
        total = self._streams.__sizeof__() + self._rest.memory_bytes()
        for groups in self._streams.values():
            total += groups.__sizeof__()
            for group in groups.values():
                total += _GROUP_BYTES + group.table.__sizeof__() + _ENTRY_BYTES * len(group.table)
        return total


def _mask(pattern: Pattern) -> _Mask:
    levels = pattern.levels
    return len(levels), tuple([i for i, level in enumerate(levels) if level != WILDCARD]), pattern.exact
