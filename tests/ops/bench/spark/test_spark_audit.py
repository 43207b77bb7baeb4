"""The audit beside pandas: what pandas makes of a few lines; and a small run of all of it."""

from __future__ import annotations

import argparse

import pytest

pandas = pytest.importorskip("pandas")

from headgate.ops.bench.spark import audit as spark_audit  # noqa: E402
from headgate.ops.bench.spark.audit import COUNTS, WISHES, compute  # noqa: E402
from headgate.ops.jobs import missing_parts  # noqa: E402

NUMBERS = list(range(1, len(WISHES) + 1))


def test_pandas_judges_each_pair() -> None:
    """Of the first subscription, which wants a price above 0."""
    prices = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0]
    events = pandas.DataFrame({"sequence": range(7), "time": 0, "topic": "quotes/x/y", "price": prices, "symbol": ""})
    events["halted"] = True
    outcomes = [(0, 0), (0, 3), (1, 0), (2, 0), (2, 0), (2, 3), (3, 1), (4, 0), (4, 2), (5, 0), (5, 3)]
    lines = [(1, sequence, 0, 3_000_000 * (sequence == 0), outcome) for sequence, outcome in outcomes]
    names = ["subscription", "sequence", "published_at", "sent_at", "outcome"]
    counts, found = compute(events, pandas.DataFrame(lines, columns=names), NUMBERS)
    first = counts[counts.subscription == 1].iloc[0]
    assert {name: int(first[name]) for name in COUNTS} == {
        "expected": 6,
        "delivered": 4,
        "lost": 3,
        "announced": 2,
        "unacked": 1,
        "duplicate": 1,
        "wrong": 1,
        "late": 1,
    }
    kinds = found[found.subscription == 1]
    assert dict(zip(kinds.sequence, kinds.kind, strict=True)) == {
        1: "unacknowledged",
        2: "duplicate",
        3: "lost",
        4: "lost",
        5: "wrong",
        6: "lost",
    }


def test_without_java_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark_audit, "missing_parts", lambda: "Java 17")
    assert spark_audit.run(argparse.Namespace()) == 1
    assert "Java 17" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_small_run(capsys: pytest.CaptureFixture[str]) -> None:
    if missing_parts():
        pytest.skip(f"needs {missing_parts()}")
    code = spark_audit.run(argparse.Namespace(pairs=10_000, seed=2))
    captured = capsys.readouterr()
    assert code == 0, captured.out + captured.err
    assert "audit and pandas say the same of each" in captured.out
