"""Effects: what a Node may ask of its host, all of it and nothing else."""

from __future__ import annotations

from typing import get_args

from headgate.broker.core import effects
from headgate.broker.core.effects import Effect, Send
from headgate.broker.simulator.engine import Host, World
from headgate.protocol.messages import Ping
from tests.support.node_world import NodeWorld


def test_every_effect_is_offered_and_part_of_the_union() -> None:
    kinds = {kind.__name__ for kind in get_args(Effect)}
    assert kinds | {"Effect", "LogEffect", "LogWrite"} == set(effects.__all__)


def test_a_host_carries_out_each() -> None:
    assert set(Host(World(1), NodeWorld().config, ())._carry_out) == set(get_args(Effect))


def test_effects_compare_by_what_they_say() -> None:
    assert Send(1, Ping(2)) == Send(1, Ping(2)) != Send(2, Ping(2))
