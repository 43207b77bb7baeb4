"""The walk of a batch on a cube: alone it is the tree of each row, and with others it is the same, in groups."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from headgate.broker.core.cluster import HERE, WAIT
from headgate.broker.core.forwarding import beginnings, everywhere, walk
from headgate.broker.core.keyspace import KBSP, AtVertex, Step, cube_dimension
from headgate.matching.cube import ReversePaths, below
from headgate.matching.cube import walk as tree_of

CUBE = cube_dimension("#structure/24/1", 6, KBSP, "fold")
VERTICES = CUBE.vertices("library")


def drawn(random: Random, low: int, high: int) -> int:
    return sum(1 << bit for bit in random.sample(range(24), random.randint(low, high)))


def walked_alone(document: int, paths: ReversePaths) -> set[int]:
    key = VERTICES.vertex_of(document)
    edges = tree_of(document, key, 6, lambda vertex: paths.entries.get(vertex, {}))
    return {key, *(edge.reached for edge in edges)}


@pytest.mark.parametrize("seed", range(20))
def test_rows_walk_together_as_each_of_them_alone(seed: int) -> None:
    random = Random(seed)
    paths = ReversePaths(6, VERTICES.vertex_of)
    for _ in range(30):
        paths.add(drawn(random, 1, 4))
    filters = [drawn(random, 5, 12) for _ in range(25)]
    owners = [random.randrange(4) for _ in range(64)]  # four brokers, and who walks is the first
    met: Counter[tuple[int, int]] = Counter()
    waiting = [(owner, beginnings(filters, VERTICES, False)) for owner in (0,)]
    while waiting:
        me, steps = waiting.pop()

        def place_of(key: int, me: int = me) -> int:
            owner = owners[VERTICES.vertex_at(key)]
            return HERE if owner == me else owner

        done = walk(CUBE, VERTICES, filters, steps, lambda vertex: paths.entries.get(vertex, {}), place_of)
        assert not done.waits and me not in done.elsewhere
        met.update((row, place.vertex) for place, rows in done.here.items() for row in rows)
        for broker, some in done.elsewhere.items():
            on = {(one.vertex, one.cleared): list(rows) for one, rows in some if isinstance(one, Step)}
            assert len(on) == len(some)
            waiting.append((broker, on))
    assert set(met.values()) == {1}, "each vertex is met once"
    for row, document in enumerate(filters):
        assert {vertex for one, vertex in met if one == row} == walked_alone(document, paths)


def test_without_edges_all_vertices_below_are_met_and_all_there_are_when_it_is_a_flood() -> None:
    done = walk(CUBE, VERTICES, [0b1011], beginnings([0b1011], VERTICES, False), everywhere, lambda key: HERE)
    assert {place.vertex for place in done.here} == set(below(0b1011))
    assert (done.local, done.remote, done.pruned) == (7, 0, 0)
    done = walk(CUBE, VERTICES, [0b1011], beginnings([0b1011], VERTICES, True), everywhere, lambda key: HERE)
    assert {place.vertex for place in done.here} == set(range(64))


def test_a_vertex_that_nobody_answers_for_stops_its_rows() -> None:
    stuck = VERTICES.key(0b0011)
    done = walk(
        CUBE,
        VERTICES,
        [0b1011, 0b1000],
        beginnings([0b1011, 0b1000], VERTICES, False),
        everywhere,
        lambda key: WAIT if key == stuck else HERE,
    )
    assert done.waits == [0]
    assert done.here[AtVertex(CUBE, 0b1000)] == [1, 0]


def test_rows_without_a_document_go_nowhere() -> None:
    assert beginnings([0, 0b1], VERTICES, True) == {(63, 6): [1]}
