"""Both placements through Nodes: the same deliveries, the right ones, and what they cost."""

from __future__ import annotations

import pytest

from headgate.ops.bench.papers import __main__ as papers
from headgate.ops.bench.papers import node_placements


def test_both_placements_deliver_the_same_and_what_they_say_is_counted() -> None:
    sums = node_placements.compare_nodes(6, 2, seed=1)
    anchored, counting = (sums[placement] for placement in node_placements.PLACEMENTS)
    assert anchored.delivered == counting.delivered
    assert sum(len(numbers) for events in anchored.delivered for numbers in events) > 20
    assert anchored.words["ask"] == 0 < counting.words["ask"] and counting.words["lists"] <= counting.words["ask"]
    assert anchored.words["store"] < counting.words["store"]
    assert all(costs.words[name] for costs in sums.values() for name in ("store", "copy", "use", "deliver"))
    assert counting.subscribed == 120
    figures = [float(figure) for figure in counting.figures()]
    assert len(figures) == 6 and figures[3] == pytest.approx(figures[4] + figures[5], abs=0.02)


def test_a_placement_that_delivers_something_else_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_placements, "_bodies", lambda message: [(0, 1)])
    with pytest.raises(AssertionError, match="delivers something else"):
        node_placements.compare_nodes(3, 1, seed=1)


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main(["nodes", "--nodes-max", "5"], node_sizes={3: 1, 5: 1, 500: 9}) == 0
    printed = capsys.readouterr().out
    for word in ("5 (1)", "anchored", "counting", "delivered the same set", "seed 4"):
        assert word in printed
    assert "500" not in printed
