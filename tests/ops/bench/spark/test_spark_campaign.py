"""The campaign of Spark jobs under kills: what counts as broken; and a small share of all of it."""

from __future__ import annotations

import argparse
import json

import pytest

from headgate.ops.bench.spark import campaign as spark_campaign
from headgate.ops.bench.spark.campaign import Run, Submission, broken, main
from headgate.ops.bench.spark.driver import DIED, answer_of
from headgate.ops.jobs import missing_parts

ROWS = 100


def story(
    mode: str, *submissions: Submission, counted: tuple[int, int, int] = (ROWS, ROWS, ROWS - 1), rows: int = ROWS
) -> list[str]:
    return broken(Run("one", mode, list(submissions), counted), rows)


def said(answer: str, before: int, after: int, fault: str = "", is_other: bool = False) -> Submission:
    return Submission(2, fault, bool(fault), answer, before, after, is_other)


def test_what_is_exact_or_refused_is_as_it_has_to_be() -> None:
    killed = said("driver killed", 40, 60, "driver")
    others = said("driver killed", 60, 60, "driver", is_other=True)
    assert not story("guarded", said("ok", 0, 60, "task"), others, counted=(60, 60, 59), rows=60)
    assert not story("id", said(DIED, 0, 40, "task"), said("ok", 40, ROWS, is_other=True))
    assert not story("guarded", said(DIED, 0, 40, "task"), killed, said("OTHER_WRITE", 60, 60), said("ok", 60, ROWS))
    assert not story("id", said("CANNOT_CONNECT", 0, 40, "broker"), said("ok", 40, ROWS), said("ok", ROWS, ROWS))


@pytest.mark.parametrize(
    ("mode", "one", "text"),
    [
        ("guarded", said("ok", 0, 99), "all 100 are there"),
        ("guarded", said("OTHER_WRITE", 10, 11), "refused, and 1 events more"),
        ("guarded", said("driver killed", 10, 101, "driver"), "10 events before it"),
        ("guarded", said("driver killed", 10, 11, "driver", is_other=True), "the log has rows of other partitions"),
        ("guarded", said("ok", ROWS, ROWS, is_other=True), "the log has rows of other partitions"),
        ("guarded", said("Py4JJavaError: what?", 10, 10), "nobody expects"),
        ("id", said("OTHER_WRITE", 10, 10), "ids go with any partitions"),
    ],
)
def test_what_is_broken_is_said(mode: str, one: Submission, text: str) -> None:
    wrong = story(mode, one, said("ok", ROWS, ROWS))
    assert wrong and text in wrong[0]


@pytest.mark.parametrize("counted", [(ROWS, ROWS - 1, ROWS - 1), (ROWS - 1, ROWS - 1, ROWS - 1), (ROWS, ROWS, ROWS)])
def test_every_row_is_there_once_at_the_end(counted: tuple[int, int, int]) -> None:
    assert "at the end" in story("id", said("ok", 0, ROWS), counted=counted)[0]


def test_what_is_printed_says_how_much_was_added() -> None:
    assert str(said("driver killed", 40, 60, "driver")) == "2p +driver: driver killed 40->60"
    assert str(said("ok", 60, 60)) == "2p: ok 60"


def test_answers_are_codes() -> None:
    assert answer_of(ValueError("Caused by ... [HEADGATE_OTHER_WRITE] q/nightly: ...")) == "OTHER_WRITE"
    assert answer_of(ValueError(f"RuntimeError: {DIED}")) == DIED
    assert answer_of(ValueError("what?")) == "ValueError: what?"


def test_without_java_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark_campaign, "missing_parts", lambda: "Java 17")
    assert spark_campaign.run(argparse.Namespace()) == 1
    assert "Java 17" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_small_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    if missing_parts():
        pytest.skip(f"needs {missing_parts()}")
    code = main(["--rows", "20000", "--runs", "1", "--again", "1", "--seed", "1"])
    captured = capsys.readouterr()
    assert code == 0, captured.out + captured.err
    *runs, figures = captured.out.splitlines()
    assert len(runs) == 2 and json.loads(figures)["broken"] == 0
