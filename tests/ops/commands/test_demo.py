"""`demo`: its arguments reach the play."""

from __future__ import annotations

import pytest

from ops.cli import main


def test_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[object, ...]] = []

    def play(*details: object) -> int:
        played.append(details)
        return 1

    monkeypatch.setattr("ops.demo.scene.play", play)
    assert main(["demo", "--seconds", "0.5", "--rate", "100", "--seed", "3", "--plain", "--json"]) == 1
    assert played == [(0.5, 100, 3, True, True)]


@pytest.mark.parametrize("words", [["--seconds", "0"], ["--seconds", "nan"], ["--rate", "0"]])
def test_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *words]) == 2
    assert "above 0" in capsys.readouterr().err
