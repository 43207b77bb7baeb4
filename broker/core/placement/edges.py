"""Edges: the ways up the cube that subscriptions leave behind, for events to follow down (BLOOM 4.5).

A subscription that rests on a cube rests at one vertex. For events to find it, its home *lays* edges: at every vertex
above, under the bit by which the subscription came there, stands a filter that lets an event through to the vertex
without that bit (`matching/cube/paths.py`). All subscriptions of a home on one cube are laid together: one item for
each vertex, with the filters under each bit,

    ("edge", home, life, stream, cube, vertex)    [stream, cube, vertex, [[bit, [filter, ...]], ...]]

so that each item has one writer, there are no more of them than vertices however many subscribe, and most
subscriptions change few, being covered by what stands there. The items are kept, copied and confirmed as any others. A
subscription is in force when all edges that it changed are placed, and all that were under way when it came: those may
be what it is covered by.

At the owner of a vertex the edges of all homes are joined: an event goes on where any home's filter lets it through.
What is laid is never too little. It may be too much for a while, and then an event visits a vertex for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from headgate.matching.cube import Antichain, ReversePaths, minimal
from headgate.matching.structure import pack

from ..cluster import Cluster
from ..keyspace import Dimension, Vertices, parse_dimension
from ..kv import Item
from ..safeguards import Safeguard

__all__ = ["Edges", "Laid"]

_Home: TypeAlias = tuple[int, int]
_Entries: TypeAlias = dict[int, Antichain]


class Laid(NamedTuple):
    """What one subscription of ours rests with: a cube of a stream, and the filter of its twigs."""

    stream: str
    dimension: Dimension
    filter: int


@dataclass(slots=True)
class _Ways:
    """What our own clients' subscriptions have laid on one cube."""

    vertices: Vertices
    paths: ReversePaths
    items: dict[int, Item] = field(default_factory=dict)
    """Vertex -> what was put there last."""
    open: dict[int, set[int]] = field(default_factory=dict)
    """Put under way -> its vertices."""
    failed: set[int] = field(default_factory=set)
    """Vertices of puts that were given up: some brokers may have them, and others not."""


@dataclass(slots=True)
class _Cube:
    """What all homes have laid on one cube, at the vertices that are kept here."""

    homes: dict[int, dict[_Home, _Entries]] = field(default_factory=dict)
    joined: dict[int, _Entries] = field(default_factory=dict)


class Edges:
    """Lays the edges of our clients' subscriptions, and knows those at the vertices that are kept here."""

    kind = "edge"

    def __init__(self, home: int, life: int, cluster: Cluster) -> None:
        self._me, self._life = home, life
        self._cluster = cluster
        self._ways: dict[tuple[str, Dimension], _Ways] = {}
        self._waiting: dict[int, list[int]] = {}
        """Put under way -> the subscriptions that wait for it."""
        self._cubes: dict[tuple[str, Dimension], _Cube] = {}
        self._versions = 0

    # --- our clients' --------------------------------------------------------------------------------------------

    def lay(self, laid: Laid, number: int, now: float) -> int:
        """A subscription comes to rest there: for how many puts it has to wait, each of which `placed` names."""
        guarded = Safeguard.EDGES_BEFORE_SUBACK in self._cluster.safeguards
        cube = laid.stream, laid.dimension
        ways = self._ways.get(cube)
        if ways is None:
            vertices = laid.dimension.vertices(laid.stream)
            ways = self._ways[cube] = _Ways(vertices, ReversePaths(vertices.bits, vertices.vertex_of))
        changed = ways.paths.add(laid.filter) | ways.failed
        if changed:
            self._put(cube, ways, changed, now)
        for ticket in ways.open if guarded else ():
            self._waiting[ticket].append(number)
        return len(ways.open) if guarded else 0

    def take_up(self, gone: Iterable[Laid], now: float) -> None:
        """These subscriptions are no more: what they alone had laid is withdrawn."""
        filters: dict[tuple[str, Dimension], list[int]] = {}
        for laid in gone:
            filters.setdefault((laid.stream, laid.dimension), []).append(laid.filter)
        for cube, some in filters.items():
            ways = self._ways[cube]
            changed = ways.paths.remove(some)
            if changed:
                self._put(cube, ways, changed, now)
            self._let_go(cube)

    def placed(self, ticket: int, done: bool) -> list[int] | None:
        """A put came to its end: the subscriptions that waited for it; None when it was none of these."""
        waiting = self._waiting.pop(ticket, None)
        if waiting is not None:
            for cube, ways in list(self._ways.items()):
                vertices = ways.open.pop(ticket, None)
                if vertices is not None:
                    ways.failed |= set() if done else vertices
                    self._let_go(cube)
        return waiting

    def _put(self, cube: tuple[str, Dimension], ways: _Ways, changed: set[int], now: float) -> None:
        ways.failed -= changed
        items = [self._item(cube, ways, vertex) for vertex in sorted(changed)]
        for vertex, item in zip(sorted(changed), items, strict=True):
            if item.value is None:
                ways.items.pop(vertex, None)
            else:
                ways.items[vertex] = item
        ticket = self._cluster.kv.put(items, now)
        ways.open[ticket] = changed
        self._waiting[ticket] = []

    def _item(self, cube: tuple[str, Dimension], ways: _Ways, vertex: int) -> Item:
        stream, dimension = cube
        self._versions += 1
        entries, length = ways.paths.entries.get(vertex), ways.vertices.length
        value = entries and [
            stream,
            dimension.wire(),
            vertex,
            [[bit, [pack(one, length) for one in filters]] for bit, filters in sorted(entries.items())],
        ]
        key = ways.vertices.key(vertex)
        name = (self.kind, self._me, self._life, stream, _name(dimension), vertex)
        return Item(name, key, key, self._versions, value or None)

    def _let_go(self, cube: tuple[str, Dimension]) -> None:
        ways = self._ways[cube]
        if not len(ways.paths) and not ways.open and not ways.failed:
            assert not ways.items
            del self._ways[cube]

    def renew(self) -> None:
        """All of it is newer than what may have been dropped, when it is next put."""
        for ways in self._ways.values():
            for vertex, item in ways.items.items():
                self._versions += 1
                ways.items[vertex] = item._replace(version=self._versions)

    def names(self) -> list[tuple[str, Dimension, int]]:
        """What there is to refresh."""
        return [(*cube, vertex) for cube, ways in self._ways.items() for vertex in ways.items]

    def item(self, name: tuple[str, Dimension, int]) -> Item | None:
        """One of these, if it still is."""
        ways = self._ways.get(name[:2])
        return None if ways is None else ways.items.get(name[2])

    # --- all brokers' --------------------------------------------------------------------------------------------

    def add(self, item: Item) -> None:
        """A home has laid edges at a vertex that is kept here. Raises one of several errors when it is unclear."""
        _, home, life, *_ = item.name
        assert isinstance(home, int) and isinstance(life, int) and item.value is not None
        if home == self._me and life != self._life:
            return
        stream, wire, vertex, laid = item.value
        dimension = parse_dimension(wire)
        vertices = dimension.vertices(stream)
        entries = {int(bit): minimal(map(vertices.filter_of, filters)) for bit, filters in laid}
        if vertices.vertex_at(item.low) != vertex or not all(vertex >> bit & 1 for bit in entries):
            raise ValueError(f"no edges of vertex {vertex}")
        cube = self._cubes.setdefault((stream, dimension), _Cube())
        cube.homes.setdefault(vertex, {})[home, life] = entries
        cube.joined.pop(vertex, None)

    def remove(self, item: Item) -> None:
        """They are there no more, or others follow."""
        _, home, life, *_ = item.name
        assert isinstance(home, int) and isinstance(life, int) and item.value is not None
        stream, wire, vertex, _ = item.value
        key = stream, parse_dimension(wire)
        cube = self._cubes.get(key)
        if cube is None or vertex not in cube.homes:
            return
        cube.homes[vertex].pop((home, life), None)
        cube.joined.pop(vertex, None)
        if not cube.homes[vertex]:
            del cube.homes[vertex]
        if not cube.homes:
            del self._cubes[key]

    def at(self, stream: str, dimension: Dimension, vertex: int) -> Mapping[int, Antichain]:
        """At a vertex that we answer for: bit -> the filters of all that may be behind the vertex without it."""
        cube = self._cubes.get((stream, dimension))
        if cube is None or vertex not in cube.homes:
            return {}
        joined = cube.joined.get(vertex)
        if joined is None:
            homes = cube.homes[vertex]
            if len(homes) == 1:
                joined = next(iter(homes.values()))
            else:
                bits = sorted({bit for entries in homes.values() for bit in entries})
                joined = {
                    bit: minimal(one for entries in homes.values() for one in entries.get(bit, ())) for bit in bits
                }
            cube.joined[vertex] = joined
        return joined

    def kept(self, stream: str) -> list[tuple[Dimension, int]]:
        """The vertices of the stream's cubes where edges are kept here."""
        return [
            (dimension, vertex)
            for (name, dimension), cube in self._cubes.items()
            if name == stream
            for vertex in sorted(cube.homes)
        ]

    def validate(self) -> None:
        """Asserts that what is put away is what the subscriptions lay, and that nobody waits in vain."""
        under_way = [ticket for ways in self._ways.values() for ticket in ways.open]
        assert sorted(under_way) == sorted(self._waiting)
        for ways in self._ways.values():
            assert ways.items.keys() == ways.paths.entries.keys()
        for cube in self._cubes.values():
            assert cube.homes and all(cube.homes.values())
            assert cube.joined.keys() <= cube.homes.keys()


def _name(dimension: Dimension) -> str:
    return "/".join(map(str, dimension.wire()[1:]))
