"""`simulate`: the simulator reads its own arguments."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from headgate.ops.cli import main


def test_everything_after_the_verb_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[list[str]] = []

    def simulate(words: list[str], prog: str) -> int:
        passed.append([prog, *words])
        return 1

    module = ModuleType("headgate.broker.simulator")
    module.main = simulate  # type: ignore[attr-defined]  # a stand-in for the real one
    monkeypatch.setitem(sys.modules, "headgate.broker.simulator", module)
    assert main(["simulate", "--seed", "7", "--help", "more"]) == 1
    assert passed == [["headgate simulate", "--seed", "7", "--help", "more"]]


@pytest.mark.parametrize("kind", ["", "--nodes 3", "--log", "ring"])
def test_help_of_each_kind_is_named_as_it_was_called(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["simulate", *kind.split(), "--help"])
    text = capsys.readouterr().out
    assert caught.value.code == 0
    assert text.startswith(f"usage: headgate simulate {kind.replace('3', 'N')}".rstrip())
    assert kind or all(f"headgate simulate {other}" in text for other in ("--nodes 3", "--log", "ring"))


def test_the_ring_is_simulated_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "ring", "--seeds", "1", "--steps", "20", "--nodes", "3"]) == 0
    assert "1 " in capsys.readouterr().out
