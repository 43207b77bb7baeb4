"""Counted subscriptions at one broker: as their home, which checks candidates, and as a place where lists rest.

`registry.py` sees to it that they are placed, announced, refreshed and withdrawn, as all subscriptions are. This is
what is different about them: the items that they are put away as, the lists that come of items which the keyed store
holds here, and what our own ones ask for as a whole.
"""

from __future__ import annotations

from headgate.matching import Pattern, Tree

from ..keyspace import Dimension, parse_dimension
from ..kv import Item
from .counting import SubscriptionId
from .counting_check import Check
from .counting_lists import CountingLists
from .counting_plan import Counted

__all__ = ["COUNTED", "CountingHome", "counted_items", "read_counted"]

COUNTED = "count"
"""First part of the name of an item."""


def counted_items(counted: Counted, home: int, life: int, number: int, edition: int) -> tuple[Item, ...]:
    """What a counted subscription is put away as: an item for each stretch of keys on each of its dimensions."""
    attributes = len(counted.parts)
    parts = [(part.dimension, segment) for part in counted.parts for segment in part.segments]
    return tuple(
        Item(
            (COUNTED, home, life, number, place),
            segment.low,
            segment.high,
            edition,
            [counted.stream, dimension.wire(), attributes],
        )
        for place, (dimension, segment) in enumerate(parts)
    )


def read_counted(item: Item) -> tuple[str, Dimension, SubscriptionId]:
    """Stream, dimension and subID of such an item. Raises ProtocolViolation, ValueError or TypeError when it is
    none."""
    _, home, life, number, _ = item.name
    stream, dimension, attributes = item.value if item.value is not None else (None, None, None)
    match home, life, number, attributes, stream:
        case int(), int(), int(), int(), str() if attributes > 0:
            return stream, parse_dimension(dimension), SubscriptionId(home, number, attributes, life)
    raise TypeError("a counted subscription is three numbers, a stream, a dimension and how many attributes it has")


class CountingHome:
    """Stores the counted subscriptions of this broker's clients on their lists, and takes them off."""

    def __init__(self, home: int, life: int) -> None:
        self._me, self._life = home, life
        self.lists = CountingLists()
        self.checks: dict[int, Check] = {}
        """Our clients' subscriptions that are counted."""

    def enter(self, number: int, pattern: Pattern, condition: Tree, is_checked: bool = True) -> None:
        """One of our clients' subscriptions; a candidate for it is checked, or taken for a match."""
        self.checks[number] = Check.of(pattern, condition, is_checked)

    def leave(self, number: int) -> None:
        """It is no more, if it ever was counted."""
        self.checks.pop(number, None)

    def add(self, item: Item) -> None:
        """An item came to rest here; one of ours that is of a former life, or withdrawn meanwhile, goes on no list."""
        stream, dimension, identity = read_counted(item)
        if identity.broker != self._me or (identity.life == self._life and identity.number in self.checks):
            self.lists.add(stream, dimension, item.low, item.high, identity)

    def remove(self, item: Item) -> None:
        """It rests here no more."""
        stream, dimension, identity = read_counted(item)
        self.lists.remove(stream, dimension, item.low, item.high, identity)
