"""Rings for tests of routing: members anywhere, tables whose neighbours are right and whose fingers may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from headgate.broker.core.keyspace import RING_SIZE, RoutingTable, distance
from headgate.ops.bench.papers.models import BOTH_WAYS_BASE_4, FingerPlan, ideal_table

__all__ = ["HostileRing", "absolute_distance", "hostile_rings", "identifiers", "ideal_ring", "random_members"]


def absolute_distance(start: int, end: int) -> int:
    """Steps the shorter way round: 0 to 2^63."""
    clockwise = distance(start, end)
    return min(clockwise, RING_SIZE - clockwise)


SUCCESSORS = 3

_EDGE = 24
identifiers = st.one_of(
    st.integers(0, _EDGE),  # crowded, and around zero, where arithmetic goes wrong
    st.integers(RING_SIZE - _EDGE, RING_SIZE - 1),
    st.integers(RING_SIZE // 2 - 2, RING_SIZE // 2 + 2),
    st.integers(0, RING_SIZE - 1),
)
"""A key or an identifier."""


def random_members(count: int, seed: int) -> list[int]:
    """So many brokers anywhere, in order."""
    random = Random(seed)
    return sorted({random.randrange(RING_SIZE) for _ in range(count)})


def ideal_ring(members: Sequence[int], plan: FingerPlan = BOTH_WAYS_BASE_4) -> dict[int, RoutingTable]:
    """Everybody's table once the ring has settled."""
    return {broker: ideal_table(broker, members, plan) for broker in members}


class HostileRing:
    """Successor lists that are right but for the dead in them; all else of a table may be anything."""

    def __init__(self, living: list[int], tables: dict[int, RoutingTable]) -> None:
        self.living = living
        self.tables = tables

    def __repr__(self) -> str:
        rows = [
            f"{table.broker}: predecessor {table.predecessor}, successors {table.successors}, known {table.known}, "
            f"mesh {table.mesh}, both ways {table.both_ways}"
            for table in self.tables.values()
        ]
        return "\n".join(["", *rows])


def _living(members: list[int], dead: set[int]) -> list[int]:
    """Some of the members, such that nobody's successors are all dead."""
    living = [one for one in members if one not in dead]
    for place, one in enumerate(members):
        following = [members[(place + step) % len(members)] for step in range(1, SUCCESSORS + 1)]
        if not set(following) & set(living) - {one}:
            living = sorted({*living, following[0]})
    return living


@st.composite
def hostile_rings(draw: st.DrawFn, *, deaths: bool = True) -> HostileRing:
    """A ring whose fingers point anywhere, to the dead and to brokers that never were, with predecessors unknown."""
    members = sorted(draw(st.sets(identifiers, min_size=1, max_size=14)))
    dead = draw(st.sets(st.sampled_from(members), max_size=len(members) - 1)) if deaths else set()
    living = _living(members, dead)
    anybody = st.one_of(st.sampled_from(members), identifiers) if deaths else st.sampled_from(members)
    tables = {}
    for broker in living:
        place = members.index(broker)
        successors = [members[(place + step) % len(members)] for step in range(1, SUCCESSORS + 1)]
        tables[broker] = RoutingTable(
            broker,
            draw(st.sampled_from([members[place - 1], members[place - 1], None])),
            successors,
            draw(st.lists(anybody, max_size=6)),
            both_ways=draw(st.booleans()),
            mesh=draw(st.sampled_from([False, False, True])),
        )
    return HostileRing(living, tables)
