"""The bench of reading: its verdict, what it says when a part is missing; and a small run of all of it."""

from __future__ import annotations

import argparse

import pytest

from headgate.ops.bench.limits import SPARK_READ_WRITE_RATIO_MAX
from headgate.ops.bench.spark import read
from headgate.ops.bench.spark.publish import Rate
from headgate.ops.bench.spark.read import JUDGED, READS, verdict
from headgate.ops.jobs import missing_parts


def arguments(*words: str, **bounds: float) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    read.add_arguments(parser)
    return parser.parse_args(words, argparse.Namespace(**bounds))


def test_reading_is_judged_by_writing() -> None:
    assert JUDGED in READS
    for factor, kept in ((0.9, True), (1.1, False)):
        measured = {"writing": Rate(10, 1.0, 0.0), JUDGED: Rate(10, SPARK_READ_WRITE_RATIO_MAX * factor, 0.0)}
        assert verdict(measured)[0] is kept
        assert ("BROKEN" in verdict(measured)[1]) is not kept


def test_without_java_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(read, "missing_parts", lambda: "Java 17")
    assert read.run(arguments()) == 1
    assert "Java 17" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_small_run(capsys: pytest.CaptureFixture[str]) -> None:
    if missing_parts():
        pytest.skip(f"needs {missing_parts()}")
    assert read.run(arguments("--rows", "3000", "--rounds", "1", ratio_max=1000)) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in READS)
    assert "the promise was kept" in said
