"""A swarm of seeds: a short one at every run of the tests, a long one when time does not matter."""

from __future__ import annotations

import pytest

from headgate.broker.simulator import main
from headgate.broker.simulator.scenarios import BrokerOptions, play


def test_a_few_seeds_keep_every_promise() -> None:
    failures = [verdict.failure for verdict in (play(BrokerOptions(seed, steps=1_000)) for seed in range(100, 112))]
    assert failures == [""] * 12


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["", "--fast", "--faults cuts", "--faults none", "--faults slow,pauses"])
def test_many_seeds_keep_every_promise(arguments: str) -> None:
    lines: list[str] = []
    assert main(["--campaign", "15", "--first-seed", "10000", *arguments.split()], lines.append) == 0, "".join(lines)


@pytest.mark.slow
def test_every_kind_of_trouble_comes_up() -> None:
    lines: list[str] = []
    assert main(["--campaign", "40", "--first-seed", "30000"], lines.append) == 0, "".join(lines)
    assert "never happened" not in "".join(lines)


@pytest.mark.slow
def test_long_lives_with_many_clients_keep_every_promise() -> None:
    lines: list[str] = []
    command = ["--campaign", "2", "--first-seed", "20000", "--steps", "20000", "--clients", "16"]
    assert main(command, lines.append) == 0, "".join(lines)
