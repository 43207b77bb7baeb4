"""Usage: which dimensions and attributes of each stream are in use, by whose clients; the interest summaries.

Each home says of each stream what its own clients use: an item on the whole ring, so every broker holds all of them and
adds them up. It is put again whenever something is used that was not used before, and the subscription that uses it
waits until all brokers know. What is no longer used is left out when the item is next refreshed: a summary may be too
large for a while, and is never too small.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from headgate.protocol.limits import INTEREST_ATTRIBUTES_MAX

from ..cluster import Cluster
from ..delivery import Stream, Streams
from ..keyspace import (
    COUNT,
    CUBE,
    RING_SIZE,
    Dimension,
    DimensionPlaces,
    KeyMemory,
    RowKeys,
    Vertices,
    parse_dimension,
)
from ..kv import Item

__all__ = ["Summary", "Usage"]

_ALL = (0, RING_SIZE - 1)


@dataclass(slots=True)
class Summary:
    """What is in use of one stream, anywhere in the cluster."""

    stream: str
    memory: KeyMemory
    uses: dict[tuple[int, int], tuple[tuple[Dimension, ...], tuple[str, ...]]] = field(default_factory=dict)
    dimensions: dict[Dimension, DimensionPlaces] = field(default_factory=dict)
    counted: dict[Dimension, RowKeys] = field(default_factory=dict)
    """Those of subscriptions that are counted; nothing is matched there."""
    cubes: dict[Dimension, Vertices] = field(default_factory=dict)
    """Those on which an event goes from vertex to vertex."""
    attributes: tuple[str, ...] = ()

    def add_up(self) -> None:
        """Make the union anew."""
        wanted = dict.fromkeys(dimension for dimensions, _ in self.uses.values() for dimension in dimensions)
        for dimension in self.dimensions.keys() - wanted:
            self.dimensions.pop(dimension).forget()
        for dimension in self.counted.keys() - wanted:
            self.counted.pop(dimension).forget()
        self.cubes = {one: self.cubes.get(one) or one.vertices(self.stream) for one in wanted if one.kind == CUBE}
        for dimension in wanted:
            if dimension.kind == COUNT and dimension not in self.counted:
                self.counted[dimension] = RowKeys(self.stream, dimension, self.memory)
            elif dimension.kind not in (COUNT, CUBE) and dimension not in self.dimensions:
                self.dimensions[dimension] = DimensionPlaces(self.stream, dimension, self.memory)
        self.attributes = tuple(sorted({name for _, names in self.uses.values() for name in names}))


@dataclass(slots=True)
class _Use:
    """What our own clients use of one stream."""

    version: int = 0
    dimensions: Counter[Dimension] = field(default_factory=Counter)
    attributes: Counter[str] = field(default_factory=Counter)
    told: tuple[frozenset[Dimension], frozenset[str]] = (frozenset(), frozenset())
    ticket: int = 0  # of the put under way; 0 when it came to its end
    failed: bool = False  # the last one; what was told may have reached some and not others
    waiting: list[int] = field(default_factory=list)  # subscriptions


class Usage:
    """Says what our own clients use, and adds up what all brokers' clients use."""

    def __init__(self, home: int, life: int, streams: Streams, cluster: Cluster) -> None:
        self._me, self._life = home, life
        self._streams = streams
        self._cluster = cluster
        self._tickets: dict[int, str] = {}
        """Put under way -> stream."""
        self.summaries: dict[str, Summary] = {}
        self.beside_index: dict[str, None] = {}
        """Streams of which an index of all keys does not find all who want an event: some are counted, anywhere."""
        self._memory = KeyMemory()
        self._uses: dict[str, _Use] = {}
        self._touched: dict[str, None] = {}
        self._shrunk: dict[str, None] = {}
        self._versions = 0

    def dimensions_used(self, stream: str) -> Counter[Dimension]:
        """By how many subscriptions of our clients each is used."""
        use = self._uses.get(stream)
        return Counter() if use is None else use.dimensions

    def use(
        self, stream: str, dimensions: tuple[Dimension, ...], names: tuple[str, ...], number: int, now: float
    ) -> bool:
        """Count one more subscription there. Whether all brokers know already; else `placed` names it once they do."""
        use = self._uses.setdefault(stream, _Use())
        use.dimensions.update(dimensions)
        use.attributes.update(names)
        if use.failed or not use.told[0].issuperset(dimensions) or not use.told[1].issuperset(names):
            use.waiting.append(number)
            self._tell_use(stream, use, now)
            return False
        if use.ticket:
            use.waiting.append(number)
        return not use.ticket

    def _tell_use(self, stream: str, use: _Use, now: float) -> None:
        use.version = self._version()
        use.dimensions, use.attributes = +use.dimensions, +use.attributes
        self._tickets.pop(use.ticket, None)  # a newer word holds all of it
        if not use.dimensions:  # the subscription that waited has let go
            del self._uses[stream]
            gone = Item(("use", self._me, self._life, stream), *_ALL, self._version(), None)
            self._cluster.kv.put([gone], now)
            return
        use.told = frozenset(use.dimensions), frozenset(use.attributes)
        use.ticket = self._cluster.kv.put([self._item(stream, use)], now)
        self._tickets[use.ticket] = stream

    def placed(self, ticket: int, done: bool) -> list[int] | None:
        """A put came to its end: which subscriptions waited for it; None when it was none of ours."""
        stream = self._tickets.pop(ticket, None)
        if stream is None:
            return None
        use = self._uses[stream]
        use.ticket = 0
        use.failed = not done  # then the next one tries again
        waiting, use.waiting = use.waiting, []
        return waiting

    def _version(self) -> int:
        self._versions += 1
        return self._versions

    def _item(self, stream: str, use: _Use) -> Item:
        names = sorted(use.told[1])[: INTEREST_ATTRIBUTES_MAX + 1]  # with so many, publishers send whatever they have
        value = [[dimension.wire() for dimension in sorted(use.told[0])], names, self._cluster.address]
        return Item(("use", self._me, self._life, stream), *_ALL, use.version, value)

    def release(self, stream: str, dimensions: tuple[Dimension, ...], names: tuple[str, ...]) -> None:
        """One subscription less; `shrink` tells."""
        use = self._uses[stream]
        use.dimensions.subtract(dimensions)
        use.attributes.subtract(names)
        if not all(use.dimensions[dimension] for dimension in dimensions) or not all(
            use.attributes[name] for name in names
        ):
            self._shrunk[stream] = None

    def shrink(self, now: float) -> None:
        """Tell what is used no more; nothing waits for that."""
        shrunk, self._shrunk = self._shrunk, {}
        for stream in shrunk:
            self._tell_use(stream, self._uses[stream], now)

    def refresh(self, now: float, anew: bool = False) -> None:
        """Tell it again, unchanged; `anew` makes it newer than what may have been dropped."""
        items: list[Item] = []
        for stream, use in self._uses.items():
            if not use.ticket:
                use.version = self._version() if anew else use.version
                items.append(self._item(stream, use))
        if items:
            self._cluster.kv.put(items, now)

    # --- all brokers' ---------------------------------------------------------------------------------------

    def add(self, item: Item, now: float) -> None:
        """A home says what its clients use."""
        _, home, life, name = item.name
        assert isinstance(home, int) and isinstance(life, int) and isinstance(name, str)
        assert item.value is not None
        dimensions, names, address = item.value
        self._cluster.home_at(home, life, str(address))
        said = tuple(parse_dimension(one) for one in dimensions), tuple(names)
        summary = self.summaries.setdefault(name, Summary(name, self._memory))
        summary.uses[home, life] = said
        self._touched[name] = None

    def remove(self, item: Item, now: float) -> None:
        """It says so no more, or is about to say something else."""
        name = str(item.name[3])
        summary = self.summaries.get(name)
        if summary is not None:
            summary.uses.pop((item.name[1], item.name[2]), None)  # type: ignore[arg-type]  # a `use` item's: home, life
            self._touched[name] = None

    def settle(self) -> list[Stream]:
        """Everything that came at once has come: add up. The streams of which other attributes are in use now."""
        changed = []
        touched, self._touched = self._touched, {}
        for name in touched:
            summary = self.summaries[name]
            summary.add_up()
            if not summary.uses:
                del self.summaries[name]
            if summary.counted:
                self.beside_index[name] = None
            else:
                self.beside_index.pop(name, None)
            stream = self._streams.find(name)
            if stream is not None and stream.show_interest(summary.attributes):
                changed.append(stream)
        return changed

    def validate(self) -> None:
        """Asserts that summaries, counted streams and announcements under way agree."""
        assert not self._touched
        for name, summary in self.summaries.items():
            assert summary.uses and summary.stream == name
            assert bool(summary.counted) == (name in self.beside_index)
        assert self.beside_index.keys() <= self.summaries.keys()
        assert self._tickets == {use.ticket: stream for stream, use in self._uses.items() if use.ticket}
        assert all(use.ticket or not use.waiting for use in self._uses.values())
