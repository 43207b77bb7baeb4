"""BLOOM 4.2 to 4.5: the ordered hypercube, its induced trees, and reverse paths, on the paper's own examples."""

from __future__ import annotations

import operator
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.cube import (
    Edge,
    ReversePaths,
    below,
    covering,
    covers,
    is_below,
    paths,
    publication_tree,
    subscription_tree,
    trees,
    walk,
)

ROOTS = st.integers(1, 10).flatmap(lambda bits: st.tuples(st.integers(0, (1 << bits) - 1), st.just(bits)))


def reached(edges: list[Edge], vertex: int) -> list[int]:
    return [edge.reached for edge in edges if edge.vertex == vertex]


def test_figure_4_4_the_publication_tree_from_1011() -> None:
    edges = list(publication_tree(0b1011, 4))
    assert reached(edges, 0b1011) == [0b0011, 0b1001, 0b1010]
    assert reached(edges, 0b1001) == [0b1000]
    assert reached(edges, 0b0011) == [0b0001, 0b0010]
    assert reached(edges, 0b0001) == [0b0000]
    assert len(edges) == 7  # 8 vertices


def test_algorithm_1_the_subscription_tree_from_0001() -> None:
    edges = list(subscription_tree(0b0001, 4))
    assert reached(edges, 0b0001) == [0b0011, 0b0101, 0b1001]
    assert reached(edges, 0b0011) == [0b0111, 0b1011]
    assert reached(edges, 0b0101) == [0b1101]
    assert reached(edges, 0b0111) == [0b1111]
    assert len(edges) == 7


@given(ROOTS)
def test_definition_4_3_the_tree_reaches_the_sub_hypercube_each_vertex_once(root: tuple[int, int]) -> None:
    vertex, bits = root
    down = [edge.reached for edge in publication_tree(vertex, bits)]
    assert sorted([vertex, *down]) == sorted(below(vertex))
    up = [edge.reached for edge in subscription_tree(vertex, bits)]
    assert sorted([vertex, *up]) == [one for one in range(1 << bits) if is_below(vertex, one)]


@given(ROOTS)
def test_theorem_1_the_depth_is_the_weight_of_the_root(root: tuple[int, int]) -> None:
    depth = {root[0]: 0}
    for edge in publication_tree(*root):
        depth[edge.reached] = depth[edge.vertex] + 1
    assert max(depth.values()) == root[0].bit_count()


@given(ROOTS)
def test_theorem_2_no_vertex_has_more_children_than_the_weight_of_the_root(root: tuple[int, int]) -> None:
    children = Counter(edge.vertex for edge in publication_tree(*root))
    assert max(children.values(), default=0) <= root[0].bit_count()


@pytest.mark.parametrize("top", range(64))
def test_4_5_a_subscription_comes_up_the_way_that_a_publication_goes_down(top: int) -> None:
    """Also with the sender taken for the root (below), this is what fails."""
    down = {edge.reached: edge.vertex for edge in publication_tree(top, 6)}
    for rest in below(top):
        up = {edge.reached: edge.vertex for edge in subscription_tree(rest, 6)}
        vertex, way_up = top, []
        while vertex != rest:
            way_up.append(vertex)
            vertex = up[vertex]
        vertex, way_down = rest, []
        while vertex != top:
            vertex = down[vertex]
            way_down.append(vertex)
        assert way_up == way_down[::-1]


# --- Who is found -----------------------------------------------------------------------------------------------------

BITS = 6


def world(seed: int, twigs: int = 60, documents: int = 60) -> tuple[list[int], list[int]]:
    """Filters of 24 bits, so that keys of 6 say less than they do; of twigs few bits, of documents many."""
    random = Random(seed)

    def drawn(low: int, high: int) -> int:
        return sum(1 << bit for bit in random.sample(range(24), random.randint(low, high)))

    return [drawn(1, 4) for _ in range(twigs)], [drawn(6, 14) for _ in range(documents)]


def fold(one: int) -> int:
    return (one | one >> 6 | one >> 12 | one >> 18) & 63


def met(twigs: list[int], documents: list[int], antichain_max: int = 16) -> tuple[int, int, int]:
    """Over all documents: twigs that were missed, that were met more than once, and the edges walked."""
    paths_up = ReversePaths(BITS, fold, antichain_max)
    for one in twigs:
        paths_up.add(one)
    missed = twice = edges = 0
    for document in documents:
        walked = [edge.reached for edge in walk(document, fold(document), BITS, lambda v: paths_up.entries.get(v, {}))]
        edges += len(walked)
        visits = Counter([fold(document), *walked])
        for one in twigs:
            times = visits[fold(one)]
            missed += covers(one, document) and times == 0
            twice += max(0, times - 1)
    return missed, twice, edges


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("antichain_max", [1, 3, 16, 10_000])
def test_kbsp_meets_every_twig_that_a_document_has_and_none_twice(seed: int, antichain_max: int) -> None:
    assert met(*world(seed), antichain_max)[:2] == (0, 0)


def test_kbsp_with_unbounded_antichains_walks_no_edge_for_nothing() -> None:
    """The ideal: the union of the ways to the vertices where a twig that passes rests."""
    twigs, documents = world(9)
    ideal = 0
    for document in documents:
        parent = {edge.reached: edge.vertex for edge in publication_tree(fold(document), BITS)}
        needed: set[int] = set()
        for one in twigs:
            vertex = fold(one)
            while covers(one, document) and vertex != fold(document) and vertex not in needed:
                needed.add(vertex)
                vertex = parent[vertex]
        ideal += len(needed)
    edges = {bound: met(twigs, documents, bound)[2] for bound in (1, 16, 10_000)}
    assert edges[10_000] == ideal
    assert ideal <= edges[16] <= 1.1 * ideal
    assert edges[1] > edges[16]


# --- Without its rules it is wrong: each must be seen to fail ---------------------------------------------------------


def test_ablation_merged_by_or_events_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covering, "merge", operator.or_)
    assert met(*world(0), antichain_max=1)[0] > 0


def test_ablation_without_the_tree_rule_twigs_are_met_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "bits_below", lambda vertex, cleared: trees.bits_below(vertex, BITS))
    assert met(*world(0))[1] > 0


def test_ablation_with_the_sender_taken_for_the_root_vertices_are_reached_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from_root = trees.bits_above
    monkeypatch.setattr(trees, "bits_above", lambda vertex, last, bits: from_root(vertex, -1, bits))
    up = [edge.reached for edge in subscription_tree(0b0001, 4)]
    assert max(Counter(up).values()) > 1


@pytest.mark.parametrize("seed", range(3))
def test_a_subscription_that_goes_takes_its_entries_with_it(seed: int) -> None:
    twigs, _ = world(seed, twigs=30)
    twigs += twigs[:5]  # some are asked for twice
    kept, gone = twigs[::2], twigs[1::2]
    paths_up = ReversePaths(BITS, fold)
    for one in twigs:
        paths_up.add(one)
    for one in gone:
        before = {vertex: dict(entry) for vertex, entry in paths_up.entries.items()}
        changed = paths_up.remove([one])
        after = paths_up.entries
        assert {vertex for vertex in before.keys() | after.keys() if before.get(vertex) != after.get(vertex)} == changed
    for document in range(0, 1 << 24, 65537):
        visits = {edge.reached for edge in walk(document, fold(document), BITS, lambda v: paths_up.entries.get(v, {}))}
        for one in kept:
            assert not covers(one, document) or fold(one) in visits | {fold(document)}
    for one in kept:
        paths_up.remove([one])
    assert not paths_up.entries and not len(paths_up)
