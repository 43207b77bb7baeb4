"""What a broker knows of the cubes of a stream: which vertices are its own, who rests there, what lets an event on.

With the filters of an event it says so of the vertices that the event could come to, and whether it would go on: the
answers of all brokers together are its walk (`headgate tree`, `headgate explain --event`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.matching.cube import is_below, passes
from headgate.protocol.errors import ErrorCode, Refused

from ..keyspace import FLOOD, KBSP, AtVertex, Dimension, Vertices

if TYPE_CHECKING:
    from ..node import Node

__all__ = ["cubes_of"]


def cubes_of(node: Node, arguments: dict[str, Any], now: float) -> Any:
    """The cubes in use of a stream. Raises Refused."""
    stream, columns = arguments.get("stream"), arguments.get("columns", {})
    if type(stream) is not str or type(columns) is not dict:
        raise Refused(ErrorCode.BAD_REQUEST, "cubes: `stream` is a name, and `columns` the filters of an event by name")
    summary = node.registry.usage.summaries.get(stream)
    cubes = {} if summary is None else summary.cubes
    return [_cube(node, stream, dimension, vertices, columns) for dimension, vertices in cubes.items()]


def _cube(node: Node, stream: str, dimension: Dimension, vertices: Vertices, columns: dict[str, Any]) -> dict[str, Any]:
    document = vertices.filter_of(columns.get(vertices.column))
    begins = vertices.top if dimension.routing == FLOOD else vertices.vertex_of(document)
    own = [
        vertex
        for vertex in range(vertices.top + 1)
        if is_below(vertex, begins) and node.cluster.owner_of(vertices.key(vertex)) == node.cluster.me
    ]
    return {
        "cube": str(dimension),
        "column": vertices.column,
        "bits": vertices.bits,
        "routing": dimension.routing,
        "begins": begins if document else None,
        "vertices": [_vertex(node, stream, dimension, vertex, document) for vertex in own] if document else [],
    }


def _vertex(node: Node, stream: str, dimension: Dimension, vertex: int, document: int) -> dict[str, Any]:
    """One of ours: how many rest there, and by bit how many filters there are and whether one lets the event on."""
    edges: dict[int, Any] = {}
    if dimension.routing == KBSP:
        laid = node.registry.edges.at(stream, dimension, vertex)
        edges = {bit: [len(filters), passes(filters, document)] for bit, filters in laid.items()}
    return {
        "vertex": vertex,
        "rest": node.registry.anchored.at[AtVertex(dimension, vertex)],
        "edges": [[bit, *edges[bit]] for bit in sorted(edges, reverse=True)],
    }
