"""A run of the log: the same from the same seed, a verdict whatever happens, and everything counted."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.scenarios import LogRun, LogRunOptions, run_log


def test_a_seed_is_the_same_run_every_time_and_another_seed_another_one() -> None:
    options = LogRunOptions(3, seconds=5.0, producers=2)
    one, again, other = run_log(options), run_log(options), run_log(LogRunOptions(4, seconds=5.0, producers=2))
    assert one.digest == again.digest != other.digest
    assert one.failure == "" == other.failure
    assert one.counts["acknowledged"] == one.counts["published"] > 0


def test_a_node_that_fails_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def fall_over(run: LogRun) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(LogRun, "play", fall_over)
    verdict = run_log(LogRunOptions(1))
    assert verdict.failure == "Crash: ZeroDivisionError: a bug"
    assert "Traceback" in verdict.details


def test_a_run_can_be_written_down() -> None:
    lines: list[str] = []
    run_log(LogRunOptions(1, seconds=1.0, producers=1, faults=()), lines.append)
    assert any("Append" in line for line in lines)
