"""The command of chaos: what it refuses, prints and exits with. The storm itself is in tests/system/test_chaos.py."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from headgate.ops.bench.chaos import chaos
from headgate.ops.bench.chaos.chaos import Plan, Report, Spread
from headgate.ops.bench.chaos.ledger import Account, Death
from headgate.ops.bench.kit import MeasurementFailed


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    chaos.add_arguments(parser)
    return parser.parse_args(words)


def report(account: Account, gave_up: list[str] | None = None, faults: list[str] | None = None) -> Report:
    spread = Spread.of([1.0, 2.0, 6.0])
    fates = {"accepted": 90, "unknown": 10}
    deaths = [Death("b1", 3.0)]
    return Report(Plan(30.0, 1), account, fates, deaths, ["b2"], 2.5, 0, gave_up or [], faults or [], {"kill": spread})


def test_a_spread_has_a_middle_and_a_worst() -> None:
    assert str(Spread.of([1.0, 2.0, 6.0])) == "3: median 2.00 s, worst 6.00 s"
    assert Spread.of([]) == Spread(0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("found", "code", "words"),
    [
        (report(Account(wanted=9, delivered=9)), 0, "every promise was kept"),
        (report(Account(silent=1, examples={"silent": ["reader event 7"]})), 1, "silent: reader event 7"),
        (report(Account(repeated=1)), 1, "BROKEN"),
        (report(Account(calm_missing=1)), 1, "BROKEN"),
        (report(Account(), gave_up=["reader: it lost heart"]), 1, "it lost heart"),
        (report(Account(), faults=["a fault of b1"]), 1, "a fault of b1"),
    ],
)
def test_the_verdict_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: Report, code: int, words: str
) -> None:
    async def storm(plan: Plan, folder: Path | None) -> Report:
        assert (plan.seconds, plan.seed, plan.brokers, folder) == (30.0, 4, 5, None)
        return found

    monkeypatch.setattr(chaos, "storm", storm)
    assert chaos.run(arguments("--seconds", "30", "--seed", "4")) == code
    out = capsys.readouterr().out
    assert words in out
    line = json.loads(out.splitlines()[-1])
    assert (line["bench"], line["kept"], line["fates"]["unknown"]) == ("chaos", code == 0, 10)


def test_a_cluster_that_does_not_come_about_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def storm(plan: Plan, folder: Path | None) -> Report:
        assert folder is not None and folder.is_dir()
        raise MeasurementFailed("the cluster", "did not settle")

    monkeypatch.setattr(chaos, "storm", storm)
    assert chaos.run(arguments("--folder", str(tmp_path / "logs"))) == 1
    assert "did not settle" in capsys.readouterr().err


def test_two_brokers_are_too_few(capsys: pytest.CaptureFixture[str]) -> None:
    assert chaos.run(arguments("--brokers", "2")) == 2
    assert "3 or more" in capsys.readouterr().err
