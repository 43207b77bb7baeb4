"""The second algorithm of the paper (HIER III-B): every pattern is a compiled regular expression, and each is tried.

Nothing is cheaper to change, and nothing but the patterns takes memory; the time grows with their number. It is here to
be measured beside the others and to be compared with them, not to be used.
"""

from __future__ import annotations

import re
from typing import Generic, TypeVar

from headgate.matching.topics.patterns import WILDCARD, Pattern

__all__ = ["TopicRegex"]

T = TypeVar("T")

# What an entry holds besides its value: a compiled expression of seven levels (measured) and a tuple.
_ENTRY_BYTES = 900


class TopicRegex(Generic[T]):
    """`TopicTable` says what the methods do."""

    def __init__(self) -> None:
        self._patterns: dict[Pattern, tuple[re.Pattern[str], T]] = {}

    def get(self, pattern: Pattern) -> T | None:
        found = self._patterns.get(pattern)
        return None if found is None else found[1]

    def put(self, pattern: Pattern, value: T) -> None:
        self._patterns[pattern] = re.compile(expression(pattern)), value

    def remove(self, pattern: Pattern) -> None:
        del self._patterns[pattern]

    def resolve(self, topic: str) -> list[T]:
        return [value for compiled, value in self._patterns.values() if compiled.fullmatch(topic)]

    def memory_bytes(self) -> int:
        return self._patterns.__sizeof__() + _ENTRY_BYTES * len(self._patterns)


def expression(pattern: Pattern) -> str:
    """The regular expression of a pattern. The paper's `.*` is held between two `/`, which is what it means there."""
    levels = ["[^/]*" if level == WILDCARD else re.escape(level) for level in pattern.levels]
    return "/".join(levels) + ("" if pattern.exact else "(?:/.*)?")
