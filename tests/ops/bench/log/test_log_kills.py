"""`make log-kills` from outside: what it runs, prints and returns. The killing is in tests/system/test_log_kills.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headgate.ops.bench.kit import MeasurementFailed
from headgate.ops.bench.log import kills
from headgate.ops.bench.log.kills import main
from headgate.ops.bench.log.ledger import Plan, Report


def test_the_exit_code_is_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = []

    async def killed(plan: Plan, folder: Path) -> Report:
        assert folder == tmp_path / str(plan.brokers)
        plans.append(plan)
        broken = plan.seed == 2 and plan.brokers == 3
        refused = Counter({"not stored": 2})
        return Report(plan, plan.kills, acknowledged=9, refused=refused, wrong=["a hole"] if broken else [])

    monkeypatch.setattr(kills, "kill_and_read", killed)
    assert main(["--kills", "7", "--folder", str(tmp_path)]) == 0
    assert plans == [Plan(7, 1, 1), Plan(7, 1, 3)]
    captured = capsys.readouterr()
    assert captured.out.count("every promise was kept") == 2 and "refused, 2 times: not stored" in captured.err
    assert main(["--seed", "2", "--folder", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "1 other faults: a promise was BROKEN" in captured.out and "a hole" in captured.err


def test_a_run_without_an_end_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def stuck(plan: Plan, folder: Path) -> Report:
        raise MeasurementFailed("the publisher", "no acknowledgement for 60 s")

    monkeypatch.setattr(kills, "kill_and_read", stuck)
    assert main(["--brokers", "1"]) == 1
    assert "no acknowledgement" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--kills", "0"], ["--brokers", "2"]])
def test_what_proves_nothing_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "or more" in capsys.readouterr().err
