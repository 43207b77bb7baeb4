"""Schemas: every broker keeps the schema of every stream, in memory and on disk; the last one written stays.

They are items on the whole ring. Their version is the time of writing, so that of two brokers that were apart the later
word stands; who deletes writes as well, and the disk keeps that word too. A broker that was down meanwhile comes back
with a schema that is no more, and the store has forgotten the deletion after a while: a broker that has it on disk says
it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..delivery import Streams
from ..effects import Effect, Store
from ..keyspace import RING_SIZE
from ..kv import Item, KvStore
from ..limits import DEFAULT_LIMITS, Limits

__all__ = ["Schemas", "Then"]

Then = Callable[[bool, float], None]
"""Answers the client that wrote a schema: whether every broker has it."""


class Schemas:
    """Writes schemas on the whole ring, and keeps those that come to be known here."""

    def __init__(self, effects: list[Effect], streams: Streams, kv: KvStore, limits: Limits = DEFAULT_LIMITS) -> None:
        self._deleted_max = limits.schemas_deleted
        self._effects = effects
        self._streams = streams
        self._kv = kv
        self._answers: dict[int, Then] = {}
        """Put under way -> who is told of its end."""
        self.wall_offset = 0.0
        self.obstacle = ""
        """Why a schema would be gone after a restart of this broker; empty when it would not."""
        self._deleted: dict[str, int] = {}
        """Stream -> the version of its deletion."""
        self._on_disk: dict[str, tuple[int, Any]] = {}

    def write(self, stream: str, schema: Any, then: Then, now: float) -> None:
        """Every broker keeps every schema; the last one written stays."""
        name = ("schema", stream)
        held = self._kv.items.table.get(name)  # a deletion as well: its writer's clock may be ahead of ours
        last = max(0 if held is None else held.version, self._deleted.get(stream, 0))
        version = max(self._clock(now), last + 1)
        self._answers[self._kv.put([Item(name, 0, RING_SIZE - 1, version, schema)], now)] = then

    def placed(self, ticket: int, done: bool, now: float) -> None:
        """A put came to its end."""
        answer = self._answers.pop(ticket, None)
        if answer is not None:
            answer(done, now)

    def load(self, stream: str, record: Any, now: float) -> None:
        """What an earlier life of this broker had on disk."""
        if type(record) is dict:  # written before there were versions
            record = [1, record]
        version, schema = record
        self._on_disk[stream] = (version, schema)
        if schema is None:
            self._deleted[stream] = version
            return
        item = Item(("schema", stream), 0, RING_SIZE - 1, version, schema)
        self._kv.items.merge(item, now)  # held from now on, so that a deletion we have missed takes it away
        self._kv.put([item], now)

    def add(self, item: Item, now: float) -> None:
        """A schema came to be known here."""
        stream = str(item.name[1])
        deleted = self._deleted.get(stream, 0)
        if item.version <= deleted:  # of a broker that was away when it was deleted
            self._kv.put([item._replace(version=deleted, value=None)], now)
            return
        self._deleted.pop(stream, None)
        self._streams.declare(stream, item.value)
        self._store(stream, item.version, item.value)

    def remove(self, item: Item, now: float) -> None:
        """This word of it holds no more: it was deleted, or another one follows."""
        stream = str(item.name[1])
        held = self._kv.items.table.get(item.name)
        if stream not in self._streams.schemas or (held is not None and held.value is not None):
            return
        # Who is alone keeps no tombstone, and some day others may come that were there before.
        version = held.version if held is not None else max(self._clock(now), item.version + 1)
        self._streams.undeclare(stream)
        self._deleted[stream] = version
        self._store(stream, version, None)
        if len(self._deleted) > self._deleted_max:
            oldest = min(self._deleted, key=lambda name: self._deleted[name])
            del self._deleted[oldest], self._on_disk[oldest]
            self._effects.append(Store(f"schema/{oldest}", None))

    def _clock(self, now: float) -> int:
        return int((now + self.wall_offset) * 1e6)

    def _store(self, stream: str, version: int, schema: Any) -> None:
        if self._on_disk.get(stream) != (version, schema):
            self._on_disk[stream] = (version, schema)
            self._effects.append(Store(f"schema/{stream}", [version, schema]))
