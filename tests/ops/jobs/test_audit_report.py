"""What an audit says: lines from sums, tables, JSON, and the exit code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.matching import parse_condition, parse_pattern
from headgate.ops.jobs.audit_history import Disturbance, Gap, Wanted
from headgate.ops.jobs.audit_report import (
    Accepted,
    Finding,
    Line,
    Report,
    StreamReport,
    json_line,
    line_of,
    print_report,
)
from headgate.ops.jobs.audit_verdict import Window

WINDOW = Window(1_000_000, 61_000_000)


def sums(**counts: Any) -> dict[str, Any]:
    names = ("expected", "delivered", "lost", "named", "in_gap", "duplicate", "wrong", "boundary", "late")
    names = (*names, "unacked", "unsettled", "waiting", "left_out")
    return {**dict.fromkeys(names, 0), "percentiles": [1000, 2000, 3000], "latency_max": 4000, **counts}


def wanted(where: str = "price > 1", gaps: tuple[int, ...] = ()) -> Wanted:
    one = Wanted("aa-1-7", "ann", parse_pattern("quotes"), where, parse_condition(where))
    one.gaps = [Gap(0, 1, count) for count in gaps]
    return one


def report(*lines: Line, **details: Any) -> Report:
    return Report([StreamReport("quotes", WINDOW, 100, list(lines), **details)])


def test_a_line_has_seconds() -> None:
    line = line_of(wanted(), sums(expected=5, delivered=5))
    assert (line.expected, line.delivered, line.p50_seconds, line.max_seconds) == (5, 5, 0.001, 0.004)
    assert (line.subscriber, line.pattern, line.condition, line.clean) == ("ann", "quotes", "price > 1", True)


def test_who_has_no_pair_at_all_has_a_line_of_zeros() -> None:
    line = line_of(wanted())
    assert line.clean and line.expected == 0 and line.p50_seconds is None


def test_nothing_came_so_there_is_no_latency() -> None:
    line = line_of(wanted(), sums(expected=1, lost=1, percentiles=None, latency_max=None))
    assert line.p99_seconds is None and line.max_seconds is None and not line.clean


@pytest.mark.parametrize(
    ("gaps", "announced"),
    [((), 3), ((2,), 5), ((2, 4), 9), ((100,), 13), ((2, 0), 13)],
    ids=["named only", "one gap", "two gaps", "more than are missing", "one of unknown size"],
)
def test_gaps_announce_as_many_as_they_count(gaps: tuple[int, ...], announced: int) -> None:
    assert line_of(wanted(gaps=gaps), sums(lost=20, named=3, in_gap=10)).announced == announced


@pytest.mark.parametrize(
    ("held", "disturbed", "expected"),
    [(None, False, (5, 0, 0)), (5, False, (5, 0, 0)), (3, False, (3, 2, 0)), (3, True, (3, 0, 2))],
)
def test_more_waits_for_a_durable_subscription_than_its_coordinator_has(
    held: int | None, disturbed: bool, expected: tuple[int, int, int]
) -> None:
    line = line_of(wanted(), sums(expected=5, waiting=5), held, disturbed)
    assert (line.waiting, line.lost, line.boundary) == expected
    report = Report([StreamReport("quotes", Window(0, 1), lines=[line])])
    assert f"{expected[0]} wait for durable subscriptions" in report.verdict()
    assert report.exit_code() == (1 if expected[1] else 0)


def test_what_subscribers_were_not_shown_is_said_and_fails_nothing() -> None:
    line = line_of(wanted("XPATH '/a'"), sums(expected=5, delivered=5, left_out=2))
    found = report(line)
    assert (line.left_out, line.note, found.exit_code()) == (2, "", 0)
    assert found.verdict().endswith(
        "; 2 more were sent whose documents XPATH does not match, which subscribers are not shown"
    )


def test_of_a_dynamic_filter_it_is_said_what_is_checked() -> None:
    assert "DELTA" in line_of(wanted("DELTA(price) > 2"), sums(delivered=9)).note


@pytest.mark.parametrize(
    ("line", "code", "accepting"),
    [
        (Line("a", expected=3, delivered=3, boundary=1, late=1), 0, 0),
        (Line("a", expected=3, delivered=2, lost=1), 1, 1),
        (Line("a", expected=3, delivered=2, lost=1, announced=1), 1, 0),
        (Line("a", expected=3, delivered=3, duplicate=1), 1, 1),
        (Line("a", expected=3, delivered=4, wrong=1), 1, 1),
    ],
    ids=["clean", "lost", "announced", "twice", "wrong"],
)
def test_the_exit_code(line: Line, code: int, accepting: int) -> None:
    assert report(line).exit_code() == code
    assert report(line).exit_code(Accepted(announced=True)) == accepting


def test_what_was_never_acknowledged_fails_unless_it_is_accepted() -> None:
    found = report(Line("a", expected=3, delivered=3, unacked=2))
    assert (found.exit_code(), found.exit_code(Accepted(announced=True))) == (1, 1)
    assert found.verdict() == "NOT EXACT: 2 sent and never acknowledged"
    accepted = Accepted(unacknowledged=True)
    assert found.exit_code(accepted) == 0
    assert found.verdict(accepted) == "exact but for what was accepted: 2 sent and never acknowledged"


def test_text_and_exit_code_agree_on_what_was_announced() -> None:
    found = report(Line("a", expected=3, delivered=2, lost=1, announced=1))
    accepted = Accepted(announced=True)
    assert found.verdict().startswith("NOT EXACT: 1 lost") and found.exit_code() == 1
    assert found.verdict(accepted).startswith("exact but for what was accepted: 1 lost") and not found.exit_code(
        accepted
    )
    said = json.loads(json_line(found, accepted))
    assert (said["exit_code"], said["verdict"]) == (0, found.verdict(accepted))


def test_what_could_not_be_judged_is_said() -> None:
    found = report(
        Line("a", expected=3, delivered=3, boundary=4, unsettled=1), unjudged=["positions 1 to 2 are damaged"]
    )
    assert found.exit_code() == 0
    text = found.verdict()
    assert text.startswith("of what could be judged, every subscriber got exactly what it asked for")
    assert "not judged: positions 1 to 2 are damaged; 5 deliveries near" in text
    assert (
        report(Line("a", lost=1, boundary=4)).verdict().startswith("NOT EXACT: 1 lost; not judged: 4 deliveries near")
    )


def test_what_could_not_be_audited_is_no_success() -> None:
    assert report(Line("a"), troubles=["aa-1-7: its condition cannot be read"]).exit_code() == 1


def test_the_json_line_has_sums_and_the_lines_that_say_something() -> None:
    found = json.loads(json_line(report(Line("a", expected=3, delivered=3), Line("idle"))))
    (stream,) = found["streams"]
    assert found["clean"] and stream["clean"] and stream["expected"] == 3 and stream["subscriptions"] == 2
    assert [line["subscription"] for line in stream["lines"]] == ["a"]
    assert (stream["since"], stream["until"]) == (1.0, 61.0)


def test_a_clean_audit_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(report(*(Line(f"s{number}", f"client{number}", "quotes", "", 1, 1) for number in range(30))))
    out = capsys.readouterr().out
    assert "every subscriber got exactly what it asked for" in out and "18 more subscriptions" in out
    print_report(report(*(Line(f"s{number}", f"client{number}", "quotes", "", 1, 1) for number in range(30))), True)
    assert "more subscriptions" not in capsys.readouterr().out


def test_faults_come_first_and_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    good = [Line(f"s{number}", f"client{number}", "quotes", "", 100, 100) for number in range(30)]
    bad = Line("s99", "the unlucky", "quotes", "price > 1", 3, 2, lost=1, announced=1)
    found = report(
        *good,
        bad,
        findings=[Finding("s99", "aa-1.5", "lost", "never sent", 5, True)],
        disturbances=[Disturbance("bb-1", 0, 22_000_000)],
        troubles=["aa-1-9: its pattern cannot be read"],
        notes=["two logs are copies"],
    )
    print_report(found)
    out = capsys.readouterr().out
    assert out.index("the unlucky") < out.index("client0")
    for text in (
        "lost: event aa-1.5 for s99 (never sent, announced)",
        "broker bb-1 ended",
        "within 22 s",
        "cannot be audited: aa-1-9",
        "note: two logs",
        "NOT EXACT: 1 lost, 1 of the lost were announced, 1 that could not be audited",
    ):
        assert text in out
