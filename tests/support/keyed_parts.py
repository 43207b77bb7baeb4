"""For tests of the parts of a keyed store: what a part sends, kept in a list, and short names for items."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from headgate.broker.core.kv import Item, Tell
from headgate.broker.core.messages import STORE
from headgate.broker.core.timers import Timers

__all__ = ["Kind", "Said", "Sent", "item", "read", "said", "written"]


Kind = IntEnum("Kind", {one.message.__name__.upper(): one.kind for one in STORE})
"""The kinds of messages of a store, by the names of their classes."""


class Said(NamedTuple):
    """A message to a broker, as it travels."""

    identifier: int
    kind: Kind
    body: list[Any]


def said(effect: Tell) -> Said:
    """What a store tells another broker."""
    kind, body = STORE.write(effect.message)
    return Said(effect.identifier, Kind(kind), body)


def read(kind: int, body: list[Any]) -> Any:
    """The message that travelled so."""
    return STORE.read(int(kind), [int(part) if isinstance(part, IntEnum) else part for part in body or ()])


def written(items: Iterable[Item]) -> list[Any]:
    """Items as they travel."""
    return [[list(item.name), *item[1:]] for item in items]


class Sent(list[Any]):
    """The list to which a part appends its effects, and its timers."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = Timers()

    @property
    def messages(self) -> list[Said]:
        """What it tells other brokers."""
        return [said(one) for one in self if isinstance(one, Tell)]

    def take(self) -> list[Said]:
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
