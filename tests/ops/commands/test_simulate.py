"""`simulate`: the simulator reads its own arguments."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from headgate.ops.cli import main


def test_everything_after_the_verb_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[list[str]] = []

    def simulate(words: list[str]) -> int:
        passed.append(words)
        return 1

    module = ModuleType("headgate.broker.simulator")
    module.main = simulate  # type: ignore[attr-defined]  # a stand-in for the real one
    monkeypatch.setitem(sys.modules, "headgate.broker.simulator", module)
    assert main(["simulate", "--seed", "7", "--help", "more"]) == 1
    assert passed == [["--seed", "7", "--help", "more"]]
