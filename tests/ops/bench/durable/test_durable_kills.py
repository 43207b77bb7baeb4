"""`make durable-kills` from outside: what it runs, prints and returns. The killing is in tests/system."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headgate.ops.bench.durable import kills
from headgate.ops.bench.durable.kills import Plan, main, wishes_of
from headgate.ops.bench.durable.ledger import Report
from headgate.ops.bench.kit import MeasurementFailed


def test_the_exit_code_is_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def killed(plan: Plan, folder: Path) -> Report:
        assert folder == tmp_path and plan.events == 1000 and plan.kills == 3
        report = Report(plan.brokers, plan.seed, confirmed=9, refused=Counter({"not stored": 2}))
        if plan.seed == 2:
            report.fault("missing", "orders-3: event 7")
        return report

    monkeypatch.setattr(kills, "campaign", killed)
    words = ["--events", "1000", "--kills", "3", "--folder", str(tmp_path)]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "every promise was kept" in captured.out and "refused, 2 times: not stored" in captured.err
    assert main([*words, "--seed", "2"]) == 1
    captured = capsys.readouterr()
    assert "1 missing: a promise was BROKEN" in captured.out and "event 7" in captured.err


def test_a_run_without_an_end_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def stuck(plan: Plan, folder: Path) -> Report:
        raise MeasurementFailed("the cluster", "3 subscriptions do not drain")

    monkeypatch.setattr(kills, "campaign", stuck)
    assert main([]) == 1
    assert "do not drain" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--kills", "0"], ["--brokers", "2"], ["--events", "9"], ["--subscriptions", "3"]])
def test_what_proves_nothing_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "or more" in capsys.readouterr().err


def test_all_sharings_and_all_ways_to_acknowledge_are_there() -> None:
    wishes = wishes_of(Plan(events=200_000, kills=20, seed=1))
    assert len(wishes) == len({wish.name for wish in wishes}) == 50
    assert {wish.sharing for wish in wishes} == {"exclusive", "failover", "shared", "key:key"}
    assert {wish.how for wish in wishes} == {"each", "batch", "cumulative"}
    assert all(wish.clients == 1 if wish.sharing == "exclusive" else wish.clients > 1 for wish in wishes)
