"""For tests of the parts of a keyed store: what a part sends, kept in a list, and short names for items."""

from __future__ import annotations

from typing import Any

from headgate.broker.core.kv import Item, Kind, Tell
from headgate.broker.core.timers import Timers

__all__ = ["Sent", "item"]


class Sent(list[Any]):
    """The list to which a part appends its effects, and its timers."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = Timers()

    @property
    def messages(self) -> list[tuple[int, Kind, list[Any]]]:
        """What it tells other brokers."""
        return [(one.identifier, Kind(one.kind), one.body) for one in self if isinstance(one, Tell)]

    def take(self) -> list[tuple[int, Kind, list[Any]]]:
        """What was sent since the last time."""
        taken = self.messages
        self.clear()
        return taken

    def kinds(self) -> list[tuple[int, str]]:
        """The same, receiver and name of the kind only."""
        return [(broker, kind.name) for broker, kind, _ in self.take()]


def item(number: int, key: int, version: int = 1, value: Any = "x", high: int | None = None) -> Item:
    """An item at one key, or on the segment up to `high`."""
    return Item(("sub", number), key, key if high is None else high, version, value)
