"""The audit as a job: its options, what it waits for, what it prints, its exit code. Spark is a stand-in here."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate.ops.exits import UsageError
from headgate.ops.jobs import add_arguments, audit, run_audit
from headgate.ops.jobs.audit import main, moment_of
from headgate.ops.jobs.audit_batch import Question
from headgate.ops.jobs.audit_report import Line, StreamReport
from headgate.ops.jobs.audit_source import Survey

NOW = 1_800_000_000.0


class Source:
    """Two streams, the second of which lost its beginning."""

    def __init__(self, *details: Any) -> None:
        self.asked: list[tuple[str, int]] = []

    def attach(self, spark: Any) -> None:
        assert spark == "spark"

    def check(self, stream: str) -> None:
        if stream not in self.streams():
            raise UsageError(f"stream {stream!r} is not known")

    def streams(self) -> list[str]:
        return ["orders", "quotes"]

    def survey(self, stream: str) -> Survey:
        newest = int((NOW - 4) * 1e6)
        if stream == "quotes":
            return Survey(int((NOW - 60) * 1e6), newest, ("aa",), ["b1@5 begins at position 7"])
        return Survey(0, newest)

    def held(self) -> dict[str, int]:
        return {}

    def frames(self, stream: str, since: int) -> str:
        return f"frames of {stream} since {since}"


class Stage:
    """What the job asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *lines: Line) -> None:
        self.questions: list[tuple[str, Question]] = []
        self.slept: list[float] = []
        self.lines = list(lines)
        self.events = 10
        monkeypatch.setattr(audit, "missing_parts", lambda: "")
        monkeypatch.setattr(audit, "start_session", lambda name, master, errors: "spark")
        monkeypatch.setattr(audit, "connect_blocking", connected)
        monkeypatch.setattr(audit, "LogSource", Source)
        monkeypatch.setattr(audit, "audit_stream", self.audit_stream)
        monkeypatch.setattr(time, "time", lambda: NOW)
        monkeypatch.setattr(time, "sleep", self.slept.append)

    def audit_stream(self, spark: Any, frames: str, question: Question) -> StreamReport:
        self.questions.append((frames, question))
        return StreamReport(question.stream, question.window, self.events, list(self.lines))


@contextmanager
def connected(servers: str, name: str, retry_seconds: float, **access: str) -> Iterator[str]:
    yield servers


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def test_every_audited_stream_is_judged_up_to_now(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(monkeypatch, Line("s", expected=3, delivered=3))
    assert run_audit(arguments("--late", "2", "--boundary", "3"), "b:1") == 0
    (frames, orders), (_, quotes) = stage.questions
    assert frames == "frames of orders since 0"
    assert (orders.window.since, orders.window.until) == (0, int(NOW * 1e6))
    assert quotes.window.since == int((NOW - 60) * 1e6), "before that, retention took rows"
    assert (orders.late_seconds, orders.bounds.boundary, quotes.gone) == (2.0, 3_000_000, ("aa",))
    out = capsys.readouterr()
    assert "every subscriber got exactly" in out.out and "note: b1@5 begins" in out.out


def test_it_waits_until_the_newest_deliveries_are_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    run_audit(arguments("--settle", "10"), "b:1")
    assert stage.slept == [pytest.approx(6.0)]


def test_what_is_old_enough_needs_no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    run_audit(arguments("--settle", "3"), "b:1")
    assert stage.slept == []


def test_one_stream_since_some_time_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stage = Stage(monkeypatch, Line("s", expected=3, delivered=2, lost=1))
    assert (
        run_audit(arguments("--stream", "quotes", "--since", "30s", "--json", "--parquet", str(tmp_path)), "b:1") == 1
    )
    ((_, question),) = stage.questions
    assert question.window.since == int((NOW - 30) * 1e6) and question.parquet == tmp_path
    found = json.loads(capsys.readouterr().out)
    assert not found["clean"] and found["streams"][0]["lost"] == 1


def test_announced_losses_may_be_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    Stage(monkeypatch, Line("s", expected=3, delivered=2, lost=1, announced=1))
    assert run_audit(arguments(), "b:1") == 1
    assert run_audit(arguments("--accept-announced"), "b:1") == 0


def test_where_no_stream_is_audited_nothing_is_proved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Stage(monkeypatch)
    monkeypatch.setattr(Source, "streams", lambda self: [])
    with pytest.raises(UsageError, match="audit = true"):
        run_audit(arguments(), "b:1")


@pytest.mark.parametrize("words", [("--stream", "typo"), ("--since", "1s"), ("--stream", "orders", "--since", "1s")])
def test_where_there_is_nothing_to_judge_java_is_not_started(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    Stage(monkeypatch)
    monkeypatch.setattr(audit, "start_session", lambda *details: pytest.fail("there is nothing to judge"))
    with pytest.raises(UsageError, match=r"'typo' is not known|nothing was published to orders"):
        run_audit(arguments(*words), "b:1")


def test_a_window_that_turns_out_to_be_empty_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    stage.events = 0
    with pytest.raises(UsageError, match="nothing was published to orders, quotes"):
        run_audit(arguments(), "b:1")


def test_a_stream_without_events_beside_others_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(monkeypatch, Line("s", expected=3, delivered=3))
    monkeypatch.setattr(
        Source, "survey", lambda self, stream: Survey(0, int((NOW - 4) * 1e6) if stream == "quotes" else 0)
    )
    assert run_audit(arguments(), "b:1") == 0
    assert [question.stream for _, question in stage.questions] == ["quotes"]
    assert "nothing was published to orders" in capsys.readouterr().err


def test_continuous_goes_on_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    Stage(monkeypatch)
    told: list[int] = []

    def audit_windows(spark: Any, source: Any, arguments: argparse.Namespace, since: int) -> int:
        told.append(since)
        return 1

    monkeypatch.setattr(audit, "audit_windows", audit_windows)
    assert run_audit(arguments("--continuous", "--since", "1700000000"), "b:1") == 1
    assert told == [1_700_000_000_000_000]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(audit, "missing_parts", lambda: "Java 17 or newer: apt install x")
    assert run_audit(arguments(), "b:1") == 1
    assert "cannot run here. It needs Java 17 or newer: apt install x." in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--late", "-1"), ("--settle", "nan"), ("--boundary", "-0.1"), ("--window", "0")])
def test_numbers_that_mean_nothing_are_refused(monkeypatch: pytest.MonkeyPatch, words: tuple[str, str]) -> None:
    Stage(monkeypatch)
    with pytest.raises(UsageError, match=words[0]):
        run_audit(arguments(*words), "b:1")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1700000000", 1_700_000_000),
        ("1700000000.5", 1_700_000_000.5),
        ("2026-05-01T12:00Z", 1_777_636_800),
        ("2026-05-01T12:00", 1_777_636_800),
        ("2026-05-01T14:00+02:00", 1_777_636_800),
        ("90s", NOW - 90),
        ("15m", NOW - 900),
        ("1.5h", NOW - 5400),
        ("2d", NOW - 172_800),
    ],
)
def test_a_time_may_be_written_in_several_ways(text: str, seconds: float) -> None:
    assert moment_of(text, NOW) == int(seconds * 1e6)


@pytest.mark.parametrize("text", ["yesterday", "15x", "m", "12:00", ""])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--since"):
        moment_of(text, NOW)


def test_for_spark_submit_errors_are_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "missing_parts", lambda: "")
    assert main(["--server", "127.0.0.1:1"]) == 3
    assert main(["--since", "yesterday"]) == 2
    assert "audit.py: cannot connect" in capsys.readouterr().err
