"""For tests of the parts of a keyed store: what a part sends, kept in a list, and short names for items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headgate.broker.core.kv import Item, Kind

__all__ = ["Sent", "item"]


@dataclass
class Sent:
    """Hands itself to a part as its way to others."""

    messages: list[tuple[int, Kind, list[Any]]] = field(default_factory=list)

    def __call__(self, broker: int, kind: int, body: list[Any]) -> None:
        self.messages.append((broker, Kind(kind), body))

    def take(self) -> list[tuple[int, Kind, list[Any]]]:
        """What was sent since the last time."""
        taken, self.messages = self.messages, []
        return taken

    def kinds(self) -> list[tuple[int, str]]:
        """The same, receiver and name of the kind only."""
        return [(broker, kind.name) for broker, kind, _ in self.take()]


def item(number: int, key: int, version: int = 1, value: Any = "x", high: int | None = None) -> Item:
    """An item at one key, or on the segment up to `high`."""
    return Item(("sub", number), key, key if high is None else high, version, value)
