"""Links beside trees: what a tree costs, and what of it is the sender's own."""

from __future__ import annotations

from random import Random

import pytest

from headgate.ops.bench.papers import __main__ as papers
from headgate.ops.bench.papers import delivery, routing
from headgate.ops.bench.papers.models import BOTH_WAYS_BASE_4


def cost(brokers: int, wanted: int) -> delivery.DeliveryCost:
    members = routing.members_of(brokers, 3)
    tables = routing.ring(brokers, BOTH_WAYS_BASE_4, 4, 3)
    return delivery.delivery_cost(members, tables, wanted, Random(1), 50)


def test_five_brokers_are_all_neighbours() -> None:
    assert cost(5, 4) == delivery.DeliveryCost(4.0, 4.0, 1.0, 1)


@pytest.mark.parametrize("brokers", [20, 64])
def test_a_tree_saves_its_sender_messages_and_nobody_else(brokers: int) -> None:
    for wanted in (1, brokers // 4, brokers - 1):
        tree = cost(brokers, wanted)
        assert tree.messages >= wanted and tree.hops > 1 and tree.hops_max >= 3
        assert tree.own <= wanted
    assert cost(brokers, brokers - 1).own < brokers / 2


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main(["delivery"], delivery_sizes=(5, 10)) == 0
    printed = capsys.readouterr().out
    assert "links: messages" in printed and "Seed 4" in printed
