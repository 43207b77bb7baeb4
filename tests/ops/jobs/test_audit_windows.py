"""Window after window: copies, verdicts, what comes too late, and a death between any two steps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.ops.jobs import add_arguments
from headgate.ops.jobs import audit_windows as windows
from headgate.ops.jobs.audit_history import Bounds
from headgate.ops.jobs.audit_report import Line, StreamReport
from headgate.ops.jobs.audit_source import Survey
from headgate.ops.jobs.audit_verdict import Window
from headgate.ops.jobs.audit_windows import Plan, Windows, audit_windows
from tests.ops.jobs.planted import OTHER, START, Logs
from tests.support.local_spark import local_spark

FIRST = int(START.timestamp()) // 60
"""The number of the window that begins with the planted logs."""


class Shelf:
    """A source whose logs are folders of Parquet files that grow."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.put(Logs())

    def put(self, logs: Logs) -> None:
        frames = logs.frames(self._spark)
        for kind in ("events", "deliveries", "subscriptions"):
            getattr(frames, kind).coalesce(1).write.mode("append").parquet(str(self._folder / kind))

    def read(self, kind: str, stream: str, **options: str) -> Any:
        return self._spark.read.parquet(str(self._folder / kind))

    def read_stream(self, kind: str, stream: str, **options: str) -> Any:
        schema = self.read(kind, stream).schema
        return self._spark.readStream.schema(schema).parquet(str(self._folder / kind))

    def survey(self, stream: str) -> Survey:
        return Survey(0, 0)

    def streams(self) -> list[str]:
        return ["quotes"]


def plan(folder: Path, since: int = 0) -> Plan:
    return Plan(folder / "work", 60.0, 10.0, 1.0, Bounds(), None, since)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with local_spark() as session:
        yield session


def minutes(count: int, first: int = 0) -> Logs:
    """An event in each minute, delivered to somebody who wants all."""
    logs = Logs()
    if not first:
        logs.subscribe(1, -300.0)
    for number in range(first, first + count):
        logs.delivery(logs.event(number, 60.0 * number + 30.0), 1, 60.0 * number + 30.0)
    return logs


def at(minute: float) -> float:
    """The clock, so many minutes after the start."""
    return START.timestamp() + 60.0 * minute


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_window_is_judged_once_when_it_is_over(spark: Any, tmp_path: Path) -> None:
    shelf = Shelf(spark, tmp_path / "logs")
    shelf.put(minutes(3))
    stream = Windows(spark, shelf, "quotes", plan(tmp_path))  # type: ignore[arg-type]  # what is used of a source
    first = list(stream.round(at(2.2)))
    assert [report.window for report in first] == [
        Window(60_000_000 * number, 60_000_000 * (number + 1)) for number in (FIRST, FIRST + 1)
    ]
    assert all(report.clean and report.total("expected") == 1 for report in first)
    assert list(stream.round(at(2.2))) == [], "the third minute needs ten seconds more"
    (third,) = stream.round(at(3.2))
    assert third.total("expected") == 1 and list(stream.round(at(3.3))) == []
    work = tmp_path / "work"
    assert not list(work.glob("copies/quotes/events/batch=*/window=*")), "what was judged is not kept"
    verdict = json.loads((work / "verdicts" / "quotes" / f"{FIRST}.json").read_text())
    assert verdict["clean"] and verdict["streams"][0]["delivered"] == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_finds_what_is_lost_and_what_comes_too_late(spark: Any, tmp_path: Path) -> None:
    shelf = Shelf(spark, tmp_path / "logs")
    logs = minutes(2)
    del logs.deliveries[1]
    shelf.put(logs)
    stream = Windows(spark, shelf, "quotes", plan(tmp_path))  # type: ignore[arg-type]  # what is used of a source
    assert [report.total("lost") for report in stream.round(at(3))] == [0, 1]
    late = Logs()
    late.delivery(f"{OTHER}.1", 1, 90.0)
    shelf.put(late)
    (again,) = stream.round(at(4))
    assert "raise --settle" in again.troubles[0] and not again.clean
    assert list(stream.round(at(5))) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_after_a_verdict_it_does_not_judge_again(spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    shelf = Shelf(spark, tmp_path / "logs")
    shelf.put(minutes(1))
    stream = Windows(spark, shelf, "quotes", plan(tmp_path))  # type: ignore[arg-type]  # what is used of a source
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda folder: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            list(stream.round(at(2)))
    assert list(stream.round(at(2))) == []
    assert not list((tmp_path / "work").glob("copies/quotes/events/batch=*/window=*"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_windows_before_the_beginning_are_left_out_and_lives_are_remembered(spark: Any, tmp_path: Path) -> None:
    shelf = Shelf(spark, tmp_path / "logs")
    shelf.put(minutes(2))
    since = int(at(1.2) * 1e6)
    stream = Windows(spark, shelf, "quotes", plan(tmp_path, since))  # type: ignore[arg-type]  # what is used of it
    (report,) = stream.round(at(3))
    assert report.window.since == since and report.events == 1
    seen = json.loads((tmp_path / "work" / "verdicts" / "quotes" / "evidence.json").read_text())
    assert seen[OTHER] == int(at(1.5) * 1e6)


class Rounds:
    """Stands for `Windows`: two reports a round."""

    lines: list[Line] = []

    def __init__(self, spark: Any, source: Any, stream: str, plan: Plan) -> None:
        self.stream = stream
        self.plan = plan

    def round(self, began: float) -> Iterator[StreamReport]:
        yield StreamReport(self.stream, Window(0, 1), 1, [Line("s", expected=1, delivered=1)])
        yield StreamReport(self.stream, Window(1, 2), 1, self.lines)


@pytest.mark.parametrize(("lines", "code"), [([], 0), ([Line("s", expected=1, lost=1)], 1)])
def test_one_round_prints_each_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: list[Line], code: int
) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    monkeypatch.setattr(windows, "Windows", Rounds)
    monkeypatch.setattr(windows.signal, "signal", lambda *details: None)
    monkeypatch.setattr(Rounds, "lines", lines)
    arguments = parser.parse_args(["--continuous", "--every", "0", "--json", "--stream", "quotes"])
    assert audit_windows("spark", "source", arguments, 0) == code  # type: ignore[arg-type]  # nobody looks
    assert [json.loads(line)["clean"] for line in capsys.readouterr().out.splitlines()] == [True, not code]
