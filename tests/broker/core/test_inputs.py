"""Inputs: every kind that there is, the Node understands."""

from __future__ import annotations

from typing import get_args

from headgate.broker.core import inputs
from headgate.broker.core.inputs import Input, LinkDown, LinkPaused, LinkResumed, Loaded, Received
from tests.support.node_world import NodeWorld


def test_every_input_is_offered_and_part_of_the_union() -> None:
    kinds = {kind.__name__ for kind in get_args(Input)}
    assert kinds | {"Input", "LogInput", "Caused"} == set(inputs.__all__)


def test_the_node_has_a_method_for_each() -> None:
    assert set(NodeWorld().node._inputs) == set(get_args(Input))


def test_inputs_about_links_that_nobody_knows_change_nothing() -> None:
    world = NodeWorld()
    before = world.node.statistics(world.now)
    for happened in (LinkDown(9, "cut"), LinkPaused(9), LinkResumed(9), Received(9, [])):
        assert world.feed(happened) == []
    assert world.node.statistics(world.now) == before


def test_two_loads_do_not_share_their_records() -> None:
    assert Loaded().records is not Loaded().records
