"""The walk of a batch on a cube: from vertex to vertex, down the publication tree, as far as the edges let it.

Each row begins at its own vertex. At a vertex that this broker answers for it meets who rests there, and goes on to the
vertex without b for each set bit b below the one that it cleared last, highest first, where an edge lets its filter
through. That is a step inside this broker while it answers for the next vertex too; else the row goes there with the
FORWARD to that vertex's broker, which goes on in the same way. Each vertex is met once, so nothing is matched twice.

Rows walk together: those that come to a vertex over the same bit are one group. A child has a smaller number than its
parent, so vertices are taken in descending order, and all groups of a vertex are there when its turn comes.

A vertex for which no broker answers just now stops its rows: they wait, all of them, and begin again, for nothing was
done with any of them yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from headgate.matching.cube import Entries, bits_below, passes

from ..cluster import HERE, WAIT
from ..keyspace import AtVertex, Dimension, Step, Vertices

__all__ = ["Walk", "beginnings", "everywhere", "walk"]


@dataclass(slots=True)
class Walk:
    """Where the rows of a batch came to."""

    here: dict[AtVertex, list[int]] = field(default_factory=dict)
    """Vertex of ours -> the rows that meet who rests there."""
    elsewhere: dict[int, list[tuple[Dimension | Step, Sequence[int]]]] = field(default_factory=dict)
    """Broker -> the rows that go on there, and from which vertex."""
    waits: list[int] = field(default_factory=list)
    """Rows that came to a vertex for which no broker answers."""
    local: int = 0
    """Edges inside this broker; one row over one edge counts one."""
    remote: int = 0
    """Edges to other brokers."""
    pruned: int = 0
    """Edges that no filter let a row over."""


def beginnings(filters: Sequence[int], vertices: Vertices, flood: bool) -> dict[tuple[int, int], list[int]]:
    """The vertex of each row, and that it has cleared no bit; rows without a document have none."""
    groups: dict[int, list[int]] = {}
    for row, one in enumerate(filters):
        if one:
            groups.setdefault(vertices.top if flood else vertices.vertex_of(one), []).append(row)
    return {(vertex, vertices.bits): rows for vertex, rows in groups.items()}


def everywhere(vertex: int) -> None:
    """The edges of a cube on which none are laid: they let everything through."""


def walk(
    dimension: Dimension,
    vertices: Vertices,
    filters: Sequence[int],
    steps: Mapping[tuple[int, int], Iterable[int]],
    edges_at: Callable[[int], Entries | None],
    place_of: Callable[[int], int],
) -> Walk:
    """Walk on from these vertices (with the bit cleared last -> rows); no edges (None) let everything through."""
    done = Walk()
    groups: dict[int, dict[int, list[int]]] = {}
    for (vertex, cleared), rows in steps.items():
        groups.setdefault(vertex, {})[cleared] = list(rows)
    turns = [-vertex for vertex in groups]
    heapify(turns)
    while turns:
        vertex = -heappop(turns)
        reached = groups.pop(vertex)
        place = place_of(vertices.key(vertex))
        if place == WAIT:
            done.waits += [row for rows in reached.values() for row in rows]
            continue
        if place != HERE:
            there = done.elsewhere.setdefault(place, [])
            there += [(Step(dimension, vertex, cleared), sorted(rows)) for cleared, rows in reached.items()]
            continue
        done.here[AtVertex(dimension, vertex)] = [row for rows in reached.values() for row in rows]
        edges = edges_at(vertex)
        for cleared, rows in reached.items():
            for bit in bits_below(vertex, cleared):
                through = rows
                if edges is not None:
                    some = edges.get(bit, ())
                    through = [row for row in rows if passes(some, filters[row])] if some else []
                    done.pruned += len(rows) - len(through)
                if not through:
                    continue
                child = vertex ^ 1 << bit
                if place_of(vertices.key(child)) == HERE:
                    done.local += len(through)
                else:
                    done.remote += len(through)
                if child not in groups:
                    groups[child] = {}
                    heappush(turns, -child)
                groups[child].setdefault(bit, []).extend(through)
    return done
