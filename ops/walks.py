"""The walk of an event on the cubes of its stream, put together from what each broker says of its own vertices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.matching.cube import bits_below
from headgate.protocol.structure import filters_of_body

from .everywhere import Everywhere, ask_everywhere
from .jsonlines import Line

__all__ = ["Visit", "Walk", "walks_of"]


@dataclass(slots=True)
class Visit:
    """A vertex that the event comes to; `broker` owns it, and `rest` subscriptions rest there."""

    vertex: int
    cleared: int | None
    broker: str
    rest: int
    onward: list[Visit] = field(default_factory=list)
    pruned: list[tuple[int, int]] = field(default_factory=list)
    """Bits that are not cleared, and how many filters were asked."""

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Visit]]:
        """This vertex and all that the event comes to from here, with how far below."""
        yield depth, self
        for one in self.onward:
            yield from one.walk(depth + 1)


@dataclass(slots=True)
class Walk:
    """What happens on one cube; without a root the event has no document."""

    cube: str
    bits: int
    root: Visit | None

    def name(self, vertex: int) -> str:
        """A vertex as its bits."""
        return f"{vertex:0{self.bits}b}"

    def way(self, vertex: int) -> list[Visit]:
        """From the root towards a vertex: to it, or to where the event is not let on."""
        way = [] if self.root is None or vertex & ~self.root.vertex else [self.root]
        while way and way[-1].vertex != vertex:
            bit = (way[-1].vertex & ~vertex).bit_length() - 1
            following = [one for one in way[-1].onward if one.cleared == bit]
            if not following:
                break
            way += following
        return way

    def edges(self) -> tuple[int, int]:
        """How many edges the event goes over: inside brokers, and between two of them."""
        visits = [] if self.root is None else [visit for _, visit in self.root.walk()]
        pairs = [(visit.broker, one.broker) for visit in visits for one in visit.onward]
        return sum(one == other for one, other in pairs), sum(one != other for one, other in pairs)


async def walks_of(client: Any, stream: str, line: Line) -> tuple[list[Walk], Everywhere]:
    """Ask every broker of the cluster how the event would go on from its vertices."""
    cubes: Sequence[dict[str, Any]] = await client.ask("cubes", stream=stream)
    columns = filters_of_body(line.body, line.content_type, [cube["column"] for cube in cubes])
    told = await ask_everywhere(client, lambda at: client.ask("cubes", **at, stream=stream, columns=columns))
    walks = []
    for cube in cubes:
        known: dict[int, tuple[str, dict[str, Any]]] = {}
        begins = None
        for broker, answers in told.answers.items():
            for answer in answers:
                if answer["cube"] == cube["cube"]:
                    begins = answer["begins"]
                    known |= {row["vertex"]: (broker, row) for row in answer["vertices"]}
        root = None if begins is None else _visit(begins, None, cube, known)
        walks.append(Walk(cube["cube"], cube["bits"], root))
    return walks, told


def _visit(
    vertex: int, cleared: int | None, cube: dict[str, Any], known: dict[int, tuple[str, dict[str, Any]]]
) -> Visit:
    broker, row = known.get(vertex, ("?", {"rest": 0, "edges": []}))
    visit = Visit(vertex, cleared, broker, row["rest"])
    edges = {bit: (filters, through) for bit, filters, through in row["edges"]}
    for bit in bits_below(vertex, cube["bits"] if cleared is None else cleared):
        filters, through = edges.get(bit, (0, False))
        if through or cube["routing"] != "kbsp":
            visit.onward.append(_visit(vertex ^ 1 << bit, bit, cube, known))
        elif filters:
            visit.pruned.append((bit, filters))
    return visit
