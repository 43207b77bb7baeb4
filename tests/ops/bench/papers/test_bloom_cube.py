"""The cube at the paper's sizes: what is printed is met, and flooding costs more."""

from __future__ import annotations

import pytest

from headgate.ops.bench.papers import __main__ as papers
from headgate.ops.bench.papers.bloom_cube import World, delivered_share


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


def test_the_command_prints_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main(["bloom-cube"], cube_sizes=(16,), cube_documents=5) == 0
    printed = capsys.readouterr().out
    assert "over ideal" in printed and "Figure 5.5" in printed
