"""Items that are nobody's here: in no arc of ours, and in none that we hold for another.

They are left over when the ring changes. Nobody else may have them, so they are brought to their owners by an ordinary
put, and removed when that is done; but not when the ring, or what we hold for others, has changed meanwhile. For they
may have been of concern again, and be no longer, while what was granted of them then may still be answered from here.
"""

from __future__ import annotations

from collections.abc import Callable

from .keyed_arcs import Stretch
from .keyed_items import Items
from .keyed_limits import PUT_ITEMS_WAITING_MAX, RETAIN_ITEMS_PER_TURN
from .keyed_messages import Item
from .keyed_puts import Puts

__all__ = ["Homeward"]


class Homeward:
    """See the head of this file."""

    def __init__(self, items: Items, puts: Puts, concerns: Callable[[], list[Stretch]], retain_seconds: float) -> None:
        self._items = items
        self._puts = puts
        self._concerns = concerns
        self._retain_seconds = retain_seconds
        self._under_way: dict[int, list[Item]] = {}
        self.look_at = float("inf")

    def __len__(self) -> int:
        """Items on their way."""
        return sum(map(len, self._under_way.values()))

    def changed(self, now: float) -> None:
        """Some items may be nobody's from now on; nothing is looked at before the last change is long past."""
        self.look_at = now + self._retain_seconds
        self._under_way = {ticket: [] for ticket in self._under_way}

    def answered(self, ticket: int, placed: bool) -> bool:
        """A put was answered. Whether it was one of these."""
        items = self._under_way.pop(ticket, None)
        if items is None:
            return False
        concerns = self._concerns()
        for item in items:
            if placed and self._items.table.get(item.name) == item and not _touches(item, concerns):
                self._items.remove(item.name)
        return True

    def tick(self, serving: bool, now: float) -> None:
        """Look through the items when it is time."""
        if now < self.look_at:
            return
        self.look_at = float("inf")
        concerns = self._concerns()
        homeless = [item for item in self._items.table.values() if not _touches(item, concerns)]
        living = [item for item in homeless if item.value is not None]
        if serving:
            for item in homeless:
                if item.value is None:
                    self._items.remove(item.name)
        if not living:
            return
        self.look_at = now + self._retain_seconds
        turn = living[:RETAIN_ITEMS_PER_TURN]
        if serving and not self._under_way and self._puts.items_waiting + len(turn) < PUT_ITEMS_WAITING_MAX:
            self._under_way[self._puts.begin(turn, now)] = turn


def _touches(item: Item, stretches: list[Stretch]) -> bool:
    return any(stretch.touches(item.low, item.high) for stretch in stretches)
