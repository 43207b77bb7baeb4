"""A dictionary that gives its memory back: Python's own keeps the room for as many entries as it ever had."""

from __future__ import annotations

from typing import TypeVar

from headgate.matching.limits import SHRINK_RATIO, SHRINK_SIZE_MIN

__all__ = ["ShrinkingDict"]

K = TypeVar("K")
V = TypeVar("V")


class ShrinkingDict(dict[K, V]):
    """A dictionary from which entries are taken by `drop` alone. It is written anew when few of many are left."""

    __slots__ = ("_size_max",)

    def __init__(self) -> None:
        super().__init__()
        self._size_max = 0

    def drop(self, key: K) -> V:
        """Take an entry out; KeyError when it is not there."""
        value = self.pop(key)
        size = len(self)
        if size >= self._size_max:
            self._size_max = size + 1
        elif size * SHRINK_RATIO < self._size_max and self._size_max > SHRINK_SIZE_MIN:
            entries = list(self.items())
            self.clear()
            self.update(entries)
            self._size_max = size
        return value
