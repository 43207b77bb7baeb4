"""`demo`: its arguments reach the play."""

from __future__ import annotations

import pytest

from headgate.ops.cli import main
from headgate.ops.demo import BROKERS_DEFAULT, RATE_DEFAULT, SECONDS_DEFAULT, Plot


def test_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[object, ...]] = []

    def play(*details: object) -> int:
        played.append(details)
        return 1

    monkeypatch.setattr("headgate.ops.demo.play", play)
    assert main(["demo", "--seconds", "0.5", "--rate", "100", "--seed", "3", "--plain", "--json"]) == 1
    assert main(["demo", "--brokers", "5", "--no-kill", "--no-audit"]) == 1
    assert main(["demo", "--secure"]) == 1
    assert played == [
        (Plot(0.5, 100, 3, BROKERS_DEFAULT, True, True, durable=True), True, True),
        (Plot(SECONDS_DEFAULT, RATE_DEFAULT, 7, 5, False, False, durable=True), False, False),
        (Plot(SECONDS_DEFAULT, RATE_DEFAULT, 7, BROKERS_DEFAULT, True, False, True, durable=True), False, False),
    ]


@pytest.mark.parametrize("words", [["--seconds", "0"], ["--seconds", "nan"], ["--rate", "0"]])
def test_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *words]) == 2
    assert "above 0" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "17"])
def test_too_few_and_too_many_brokers(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--brokers", count]) == 2
    assert "--brokers is 1 to 16" in capsys.readouterr().err
