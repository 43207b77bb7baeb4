"""When audit and ledger agree, and when not; the audit of a chaos as a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.ops.bench.chaos import audit
from headgate.ops.bench.chaos.audit import Ruling, disagreements, main, rule
from headgate.ops.bench.chaos.ledger import Account
from headgate.ops.bench.kit import MeasurementFailed
from headgate.ops.exits import UsageError
from headgate.ops.jobs.audit_history import Disturbance
from headgate.ops.jobs.audit_report import Finding, Line, Report, StreamReport
from headgate.ops.jobs.audit_verdict import Window

ACCOUNT = Account(delivered=90, calm_wanted=20)


def ruling(**counts: Any) -> Ruling:
    clean: dict[str, Any] = {"events": 100, "expected": 80, "delivered": 92, "lost": 0, "announced": 0, "duplicate": 0}
    clean |= {"wrong": 0, "boundary": 5, "troubles": [], "findings": [], "calm_delivered": 21, "calm_lost": 0}
    return Ruling(**{**clean, "disturbances": 1, "seconds": 40.0, **counts})


def test_the_same_story() -> None:
    assert disagreements(ruling(lost=7, announced=7), ACCOUNT) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (ruling(lost=7, announced=5), "2 lost in silence"),
        (ruling(wrong=1), "1 wrong"),
        (ruling(duplicate=3), "3 delivered twice"),
        (ruling(calm_delivered=19), "20 came, and the audit knows of 19"),
        (ruling(calm_lost=1), "misses 1, the ledger 0"),
        (ruling(delivered=84), "clients saw 90, and brokers say they sent 84"),
        (ruling(troubles=["a strange condition"]), "could not see all: a strange condition"),
    ],
)
def test_another_story(found: Ruling, words: str) -> None:
    (text,) = disagreements(found, ACCOUNT)
    assert words in text


def report(*lines: Line) -> Report:
    one = StreamReport("quotes", Window(0, 1), 50, list(lines), [Finding("s", "e", "lost", "never sent", 0, False)])
    one.disturbances = [Disturbance("aa-1", 0, 1)]
    return Report([one, StreamReport("orders", Window(0, 1), 50)], 3.0)


def test_all_streams_and_both_audits_make_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def connected(servers: str, name: str, *access: object) -> Iterator[str]:
        yield servers

    audits = {0: report(Line("s", expected=9, delivered=8, lost=1)), 7_500_000: report(Line("s", delivered=4))}
    monkeypatch.setattr(audit, "missing_parts", lambda: "")
    monkeypatch.setattr(audit, "connect_blocking", connected)
    monkeypatch.setattr(audit, "start_session", lambda name, master: "spark")
    monkeypatch.setattr(audit, "LogSource", lambda *details: SimpleNamespace(attach=lambda spark: None))
    monkeypatch.setattr(audit, "surveys_of", lambda source, streams, since: {})
    monkeypatch.setattr(audit, "audit_cluster", lambda spark, source, surveys, arguments, since: audits[since])
    assert main("b:1", 7.5) == 0
    told = Ruling(**json.loads(capsys.readouterr().out))
    assert (told.events, told.expected, told.lost, told.calm_delivered, told.disturbances) == (100, 9, 1, 4, 1)
    assert told.findings == [["lost", "e", "s", "never sent"]] and told.seconds == 6.0


def test_without_spark_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "missing_parts", lambda: "Java")
    with pytest.raises(UsageError, match="the audit needs Java"):
        main("b:1", 0.0)


async def test_an_audit_that_ends_badly_is_a_failed_measurement(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MeasurementFailed, match="exit code"):
        await rule("no address at all", 0.0)
    assert capfd.readouterr().err
