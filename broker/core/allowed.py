"""Allowed: which shelves may be matched for which rows of a batch; the rest is answered for elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .limits import ALLOWED_MAX
from .shelves import Shelf

__all__ = ["Allowed"]


class Allowed:
    """Which shelves may be matched for which rows; a filter over what the index answers."""

    def __init__(self, shelf_of: Mapping[int, Shelf], memory: dict[tuple[int, ...], tuple[Shelf, ...]]) -> None:
        self._shelf_of = shelf_of
        self._memory = memory
        self.whole: set[Shelf] = set()  # every row
        self.rows: dict[Shelf, set[int]] = {}  # these rows

    @property
    def nothing(self) -> bool:
        """No row is for this broker."""
        return not self.whole and not self.rows

    def __call__(
        self, groups: Iterable[tuple[tuple[int, ...], Sequence[int]]]
    ) -> Iterator[tuple[tuple[int, ...], Sequence[int]]]:
        """The groups without what is answered for elsewhere; a row is in one group, as before."""
        for subscriptions, rows in groups:
            shelves = self._memory.get(subscriptions)
            if shelves is None:
                if len(self._memory) >= ALLOWED_MAX:
                    self._memory.clear()
                shelves = tuple(dict.fromkeys(self._shelf_of[one] for one in subscriptions))
                self._memory[subscriptions] = shelves
            if self.whole.issuperset(shelves):
                yield subscriptions, rows
            elif len(shelves) == 1:
                allowed = self.rows.get(shelves[0])
                left = [row for row in rows if row in allowed] if allowed else []
                if left:
                    yield subscriptions, left
            else:
                yield from self._by_row(subscriptions, shelves, rows)

    def _by_row(
        self, subscriptions: tuple[int, ...], shelves: tuple[Shelf, ...], rows: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], Sequence[int]]]:
        by_shelves: dict[tuple[Shelf, ...], list[int]] = {}
        for row in rows:
            here = tuple(one for one in shelves if one in self.whole or row in self.rows.get(one, ()))
            if here:
                by_shelves.setdefault(here, []).append(row)
        for here, some in by_shelves.items():
            yield tuple(one for one in subscriptions if self._shelf_of[one] in here), some
