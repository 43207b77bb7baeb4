"""`bench`: every measurement is reached by its name, and `bench` alone says which there are."""

from __future__ import annotations

import argparse

import pytest

from headgate.ops.cli import main
from headgate.ops.commands.bench import BENCHES


class Recorder:
    """A measurement that notes how it was called."""

    def __init__(self) -> None:
        self.runs: list[int] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=3)

    def run(self, arguments: argparse.Namespace) -> int:
        self.runs.append(arguments.rounds)
        return 0


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> dict[str, Recorder]:
    made = {bench: Recorder() for bench in BENCHES}
    monkeypatch.setattr("headgate.ops.commands.bench._module", made.__getitem__)
    return made


@pytest.mark.parametrize("bench", list(BENCHES))
def test_each_by_its_name(recorders: dict[str, Recorder], bench: str) -> None:
    assert main(["bench", bench, "--rounds", "2"]) == 0
    assert {name: one.runs for name, one in recorders.items() if one.runs} == {bench: [2]}


def test_alone_it_says_what_there_is_and_measures_nothing(
    recorders: dict[str, Recorder], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {bench} " in text and words in text for bench, (_, words) in BENCHES.items())
    assert not any(one.runs for one in recorders.values())
