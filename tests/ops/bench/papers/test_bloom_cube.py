"""The cube at the paper's sizes: what is printed is met, and flooding costs more."""

from __future__ import annotations

from random import Random

import pytest

from headgate.matching.cube import chosen, folded
from headgate.matching.structure import filter_of
from headgate.ops.bench.papers import __main__ as papers
from headgate.ops.bench.papers.bloom_cube import World, delivered_share, map_cost


def test_edges_are_near_the_ideal_and_fewer_than_by_any_other_way() -> None:
    world = World(64, 4, 10)
    kbsp, kbpp, flood, base = (world.cost(routing) for routing in ("kbsp", "kbpp", "flood", "l = 0"))
    assert world.ideal() <= kbsp.edges <= 1.1 * world.ideal()
    assert kbsp.edges < base.edges < kbpp.edges < flood.edges == 63
    assert kbsp.in_vain < base.in_vain < flood.in_vain


def test_copies_bring_deliveries_back() -> None:
    world = World(64, 4, 10)
    assert delivered_share(world, 1, 0.0, 1) == 1.0
    one, two, eight = (delivered_share(world, copies, 0.5, 1) for copies in (1, 2, 8))
    assert one < two < eight
    assert delivered_share(world, 2, 0.5, 1, repaired=True) == 1.0 > delivered_share(world, 1, 0.5, 1, repaired=True)


@pytest.mark.slow
def test_where_few_want_a_document_filters_save_all_that_is_not_needed() -> None:
    world = World(256, 4, 20, 4000)
    kbsp, base = world.cost("kbsp"), world.cost("l = 0")
    assert kbsp.in_vain <= 1 and kbsp.handled < 0.05 * base.handled


@pytest.mark.slow
def test_a_learned_map_tells_large_documents_apart_which_the_fold_does_not() -> None:
    random = Random(3)
    common = [f"n/c{number}" for number in range(60)]
    rare = [f"n/r{number}" for number in range(40)]
    documents = [filter_of([*common, *random.sample(rare, 12)], 1024, 1) for _ in range(80)]
    twigs = [filter_of([random.choice(common), random.choice(rare)], 1024, 1) for _ in range(100)]
    fold = map_cost(folded(1024, 8), documents[1::2], twigs)
    learned = map_cost(chosen(1024, 8, documents[::2], twigs), documents[1::2], twigs)
    assert fold.busiest_root == 1.0 and learned.busiest_root <= 0.25
    assert learned.met < 0.8 * fold.met and learned.edges < fold.edges


@pytest.mark.slow
def test_the_command_prints_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main(["bloom-cube"], cube_sizes=(16,), cube_documents=5, cube_twigs=20) == 0
    printed = capsys.readouterr().out
    assert "at most" in printed and "Figure 5.5" in printed and "key maps" in printed
    assert papers.main(["bloom-traffic"], traffic_sizes=(16, 64), traffic_documents=10) == 0
    assert "fp rel" in capsys.readouterr().out
