"""The audit finds what is planted in the logs, and nothing where nothing is. Spark itself evaluates: all are slow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.ops.jobs.audit_report import Line, Report
from tests.ops.jobs.planted import HOME, OTHER, Logs
from tests.support.local_spark import local_spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with local_spark() as session:
        yield session


def ten_quotes(logs: Logs, at: float = 100.0) -> list[str]:
    """One a second; prices are 0 to 9."""
    return [logs.event(number, at + number, price=float(number)) for number in range(10)]


def wishing() -> tuple[Logs, list[str]]:
    """Somebody wants prices above 4, of which there are five, and gets them."""
    logs = Logs()
    logs.subscribe(1, 10.0, "price > 4")
    events = ten_quotes(logs)
    for number in range(5, 10):
        logs.delivery(events[number], 1, 100.0 + number)
    return logs, events


def counts(line: Line) -> tuple[int, int, int, int, int]:
    return line.expected, line.lost, line.duplicate, line.wrong, line.boundary


def test_nothing_is_found_where_nothing_is(spark: Any) -> None:
    line, findings = wishing()[0].line(spark)
    assert counts(line) == (5, 0, 0, 0, 0) and line.delivered == 5 and findings == []
    assert line.p50_seconds == line.max_seconds == 0.002 and line.late == 0 and line.clean


def test_a_lost_delivery_is_found(spark: Any) -> None:
    logs, events = wishing()
    del logs.deliveries[2]
    line, (finding,) = logs.line(spark)
    assert counts(line) == (5, 1, 0, 0, 0) and line.announced == 0
    assert (finding.kind, finding.event, finding.detail, finding.announced) == ("lost", events[7], "never sent", False)


def test_what_was_sent_and_never_acknowledged_is_found_and_said_apart(spark: Any) -> None:
    logs, events = wishing()
    del logs.acknowledgements[2]
    line, (finding,) = logs.line(spark)
    assert counts(line) == (5, 0, 0, 0, 0) and (line.unacked, line.delivered) == (1, 5) and not line.clean
    assert (finding.kind, finding.event, finding.detail) == ("unacknowledged", events[7], "sent")


def test_acknowledgements_that_a_dying_broker_could_not_log_are_not_missed(spark: Any) -> None:
    logs, _ = wishing()  # the last that its life says is of 109
    logs.acknowledgements.clear()
    logs.unsubscribe(1, 150.0, "broker restarted")
    line, _ = logs.line(spark)
    assert (line.unacked, line.unsettled) == (0, 5), "published within five seconds before"
    logs.delivery(logs.event(50, 120.0, price=9.0), 1, 120.0)
    line, findings = logs.line(spark)
    assert (line.unacked, line.unsettled, len(findings)) == (5, 0, 5)


def test_what_a_damaged_log_lacks_is_not_judged_and_said(spark: Any) -> None:
    logs, _ = wishing()
    del logs.deliveries[2], logs.acknowledgements[1]
    line, _ = logs.line(spark)
    assert (line.lost, line.unacked) == (1, 1)
    logs.damaged(200.0, home=HOME.replace("-1", "-2"))  # the next life found it
    report = logs.audit(spark)
    (line,) = report.lines
    assert (line.lost, line.unacked, line.boundary, line.unsettled) == (0, 0, 1, 1)
    assert report.clean and report.unjudged == ["positions 1 to 2 are damaged"]


def test_a_duplicate_is_found(spark: Any) -> None:
    logs, events = wishing()
    logs.delivery(events[7], 1, 107.0, 0.5)
    line, (finding,) = logs.line(spark)
    assert counts(line) == (5, 0, 1, 0, 0) and line.delivered == 5
    assert (finding.kind, finding.event, finding.detail) == ("duplicate", events[7], "2 times")


def test_what_does_not_match_is_found(spark: Any) -> None:
    logs, events = wishing()
    logs.delivery(events[3], 1, 103.0)
    line, (finding,) = logs.line(spark)
    assert counts(line) == (5, 0, 0, 1, 0)
    assert (finding.kind, finding.event, finding.detail) == ("wrong", events[3], "not asked for")


def test_an_event_that_never_was_is_found(spark: Any) -> None:
    logs, _ = wishing()
    logs.delivery(f"{OTHER}.99", 1, 105.0)
    line, (finding,) = logs.line(spark)
    assert counts(line) == (5, 0, 0, 1, 0) and finding.detail == "no such event"


def test_a_late_one_is_counted_and_is_no_fault(spark: Any) -> None:
    logs, events = wishing()
    logs.deliveries.pop()
    logs.delivery(events[9], 1, 109.0, 1.5)
    line, findings = logs.line(spark)
    assert line.late == 1 and line.max_seconds == 1.5 and line.clean and findings == []


def test_a_dropped_one_is_lost_and_announced(spark: Any) -> None:
    logs, events = wishing()
    logs.deliveries.pop()
    logs.delivery(events[9], 1, 109.0, outcome=1)
    line, (finding,) = logs.line(spark)
    assert counts(line) == (5, 1, 0, 0, 0) and line.announced == 1 and finding.detail == "announced"


def test_one_that_was_sent_and_lost_on_the_way_is_lost_and_announced(spark: Any) -> None:
    logs, events = wishing()
    logs.delivery(events[9], 1, 109.0, 3.0, outcome=2)
    line, _ = logs.line(spark)
    assert counts(line) == (5, 1, 0, 0, 0) and (line.announced, line.delivered) == (1, 4)


def test_one_that_was_lost_on_the_way_and_sent_again_came(spark: Any) -> None:
    logs, events = wishing()
    logs.delivery(events[9], 1, 109.0, 3.0, outcome=2)
    logs.delivery(events[9], 1, 109.0, 4.0)
    line, _ = logs.line(spark)
    assert counts(line) == (5, 0, 0, 0, 0) and line.delivered == 5


def test_a_gap_announces_as_many_as_it_counts(spark: Any) -> None:
    logs, _ = wishing()
    del logs.deliveries[1:4]
    logs.gap(1, 110.0, 2)
    line, findings = logs.line(spark)
    assert counts(line) == (5, 3, 0, 0, 0) and line.announced == 2
    assert [one.announced for one in findings] == [True, True, True]


def test_around_a_change_either_is_right(spark: Any) -> None:
    logs = Logs()
    logs.subscribe(1, 104.5)
    logs.unsubscribe(1, 107.5)
    ten_quotes(logs)
    line, _ = logs.line(spark)
    # Certainly owed is what came from 106.5 to 105.5: nothing. Near is what came from 102.5 to 109.5.
    assert counts(line) == (0, 0, 0, 0, 7)
    logs.delivery(f"{OTHER}.5", 1, 105.0)
    logs.delivery(f"{OTHER}.0", 1, 100.0, 5.0)  # it had to wait for something
    line, findings = logs.line(spark)
    assert counts(line) == (0, 0, 0, 0, 6) and line.delivered == 2 and findings == []


def test_long_before_and_long_after_a_delivery_is_wrong(spark: Any) -> None:
    logs = Logs()
    early, late = logs.event(1, 20.0), logs.event(2, 300.0)
    logs.subscribe(1, 100.0)
    logs.unsubscribe(1, 200.0)
    logs.delivery(early, 1, 20.0)
    logs.delivery(late, 1, 300.0)
    line, findings = logs.line(spark)
    assert counts(line) == (0, 0, 0, 2, 0) and {one.event for one in findings} == {early, late}


def test_a_broker_that_died_owes_nothing_that_came_after(spark: Any) -> None:
    logs, _ = wishing()
    del logs.deliveries[3:], logs.acknowledgements[3:]  # it died between 107 and 108, and came back
    logs.unsubscribe(1, 200.0, "broker restarted")
    report = logs.audit(spark)
    (line,) = report.lines
    # Its last row is of 107; of what came in the two seconds before, nothing is owed for certain.
    assert counts(line) == (1, 0, 0, 0, 2) and line.delivered == 3
    assert [one.origin for one in report.disturbances] == [HOME]


def test_a_death_excuses_others_for_a_while_and_not_for_ever(spark: Any) -> None:
    logs = Logs()
    logs.subscribe(1, 10.0)
    logs.subscribe(2, 10.0, home=OTHER)
    logs.event(1, 100.0, origin=HOME)
    logs.delivery(f"{HOME}.1", 1, 100.0)
    logs.delivery(f"{HOME}.1", 2, 100.0, home=OTHER)
    logs.event(2, 105.0, origin=OTHER)  # lost with the broker that died at 100
    logs.event(3, 140.0, origin=OTHER)  # lost without excuse
    logs.unsubscribe(1, 130.0, "broker restarted")
    report = logs.audit(spark)
    assert [counts(line) for line in report.lines] == [(0, 0, 0, 0, 1), (2, 1, 0, 0, 1)]
    assert [one.event for one in report.findings] == [f"{OTHER}.3"]


def test_the_window_cuts_events_and_their_deliveries_alike(spark: Any) -> None:
    logs = Logs()
    logs.subscribe(1, -100.0)
    for number, at in enumerate((-5.0, 599.999, 600.0)):
        logs.delivery(logs.event(number, at), 1, at)
    line, findings = logs.line(spark)
    assert counts(line) == (1, 0, 0, 0, 0) and line.delivered == 1 and findings == []


def test_a_delivery_to_nobody_that_we_know_is_trouble(spark: Any) -> None:
    logs, events = wishing()
    logs.delivery(events[3], 77, 103.0)
    report = logs.audit(spark)
    assert [one.wrong for one in report.lines] == [0, 1] and not report.clean
    assert "knows no subscription" in report.troubles[0]


def test_a_condition_in_the_log_that_is_none_of_ours_is_not_evaluated(spark: Any) -> None:
    logs, _ = wishing()
    logs.subscribe(2, 10.0, "reflect('java.lang.System', 'exit', 3) IS NULL")
    report = logs.audit(spark)
    assert len(report.troubles) == 1 and "condition" in report.troubles[0]
    assert [one.expected for one in report.lines] == [5, 0]


def test_types_keep_apart_and_names_may_be_strange(spark: Any) -> None:
    logs = Logs()
    odd = {"body.order.price": 3, "weird `name`": "x", "Price": True}
    wishes = ["`body.order.price` = 3", "price > 1", "price = '2'", "`weird ``name``` = 'x' AND Price", "price IS NULL"]
    for number, where in enumerate(wishes):
        logs.subscribe(number, 10.0, where)
    for number, attributes in enumerate([odd, {"price": "2"}, {"price": 2}, {"price": 2.5}]):
        logs.event(number, 100.0 + number, **attributes)
    assert [line.expected for line in logs.audit(spark).lines] == [1, 2, 1, 1, 1]


def test_patterns_and_equal_wishes_of_several_subscribers(spark: Any) -> None:
    logs = Logs()
    for number, (pattern, exact) in enumerate(
        [("quotes", False), ("quotes/*/OTE", False), ("quotes/NYSE", True), ("quotes", False), ("quotes/N.SE", False)]
    ):
        logs.subscribe(number, 10.0, pattern=pattern, exact=exact)
    for number, topic in enumerate(
        ["quotes/NYSE", "quotes/NYSE/OTE", "quotes/NYSE/OTE/x", "quotesX/NYSE", "quotes/N.SE"]
    ):
        logs.event(number, 100.0 + number, topic)
    assert [line.expected for line in logs.audit(spark).lines] == [4, 2, 1, 4, 1]


def test_a_dynamic_filter_is_checked_for_what_is_wrong(spark: Any) -> None:
    logs = Logs()
    logs.subscribe(1, 10.0, "price > 4 AND DELTA(price) > 2")
    events = ten_quotes(logs)
    logs.delivery(events[5], 1, 105.0)
    logs.delivery(events[2], 1, 102.0)
    line, _ = logs.line(spark)
    assert counts(line) == (0, 0, 0, 1, 0) and line.delivered == 2 and line.note


DOCUMENTS = (
    "<bib><book id='1'><title/></book></bib>",  # 0: has it
    "<bib><book/><title/></bib>",  # 1: has the names in other places
    '{"bib": {"book": [{"title": "x"}]}}',  # 2: has it
    '<b:bib xmlns:b="u"><b:book><b:title>x</b:title></b:book></b:bib>',  # 3: has it
    "",
    "<bib><book><title/></book>",  # 5: is none
)


def asking(where: str) -> tuple[Logs, list[str]]:
    """Somebody asks for a twig, and six events have, or have not, a document."""
    logs = Logs()
    logs.subscribe(1, 10.0, where)
    found = [
        logs.event(number, 100.0 + number, document=text, price=float(number)) for number, text in enumerate(DOCUMENTS)
    ]
    return logs, found


def test_documents_with_the_twig_are_owed(spark: Any) -> None:
    logs, events = asking("XPATH 'book/title'")
    for number in (0, 2, 3):
        logs.delivery(events[number], 1, 100.0 + number)
    line, findings = logs.line(spark)
    assert counts(line) == (3, 0, 0, 0, 0) and (line.delivered, line.left_out) == (3, 0)
    assert line.clean and findings == [] and not line.note
    del logs.deliveries[1:]
    line, findings = logs.line(spark)
    assert counts(line) == (3, 2, 0, 0, 0)
    assert [(one.kind, one.event) for one in findings] == [("lost", events[2]), ("lost", events[3])]


def test_what_a_filter_let_through_is_told_apart_and_is_not_wrong(spark: Any) -> None:
    logs, events = asking("price < 4 AND XPATH 'book/title' AND XPATH '/bib'")
    for number in range(6):
        logs.delivery(events[number], 1, 100.0 + number)
    report = logs.audit(spark)
    (line,) = report.lines
    assert counts(line) == (3, 0, 0, 2, 0) and (line.delivered, line.left_out) == (5, 1)
    assert sorted((one.kind, one.event) for one in report.findings) == [("wrong", events[4]), ("wrong", events[5])]
    assert [one["left_out"] for one in Report([report]).as_json()["streams"]] == [1]


def test_a_durable_subscription_is_owed_what_has_its_twig(spark: Any) -> None:
    logs = asking("")[0]
    logs.subscriptions.clear()
    logs.subscribe(1, 10.0, "XPATH '/bib/book[title]'", home="durable")
    line, _ = logs.line(spark, held={"client of durable-1": 5})
    assert (line.waiting, line.lost, line.left_out) == (3, 0, 0)
    line, _ = logs.line(spark, held={"client of durable-1": 2})
    assert (line.waiting, line.lost, line.left_out) == (2, 1, 0)


def test_parquet_has_every_line_and_every_finding(spark: Any, tmp_path: Path) -> None:
    logs, _ = wishing()
    del logs.deliveries[0]
    for _ in range(2):  # the same window again replaces what was written of it
        logs.audit(spark, parquet=tmp_path)
    (line,) = spark.read.parquet(str(tmp_path / "subscriptions")).collect()
    assert (line["stream"], line["expected"], line["lost"], line["filter"]) == ("quotes", 5, 1, "price > 4")
    (finding,) = spark.read.parquet(str(tmp_path / "findings")).collect()
    assert (finding["kind"], finding["subscription_id"]) == ("lost", f"{HOME}-1")


def test_empty_logs_are_clean(spark: Any) -> None:
    report = Logs().audit(spark)
    assert report.clean and report.events == 0 and report.lines == [] and report.p50_seconds is None


def lasting(held: int | None = 0) -> tuple[Logs, list[str], dict[str, Any]]:
    """A durable subscription wants prices above 4, of which there are five, and has acknowledged them."""
    logs = Logs()
    logs.subscribe(1, 10.0, "price > 4", home="durable")
    events = ten_quotes(logs)
    for number in range(5, 10):
        logs.delivery(events[number], 1, 100.0 + number, home="durable")
    return logs, events, {} if held is None else {"held": {"client of durable-1": held}}


def test_a_durable_subscription_that_has_acknowledged_everything_is_exact(spark: Any) -> None:
    logs, events, details = lasting()
    logs.delivery(events[6], 1, 106.0, 1.0, outcome=4, home="durable")  # flagged
    logs.delivery(events[6], 1, 106.0, 2.0, outcome=4, home="durable")
    line, findings = logs.line(spark, **details)
    assert counts(line) == (5, 0, 0, 0, 0) and (line.waiting, line.unacked, line.late) == (0, 0, 0)
    assert line.clean and findings == []


def test_what_waits_for_a_durable_subscription_is_not_lost_unless_its_coordinator_has_fewer(spark: Any) -> None:
    logs = lasting()[0]
    del logs.acknowledgements[1:3]  # sent, and not acknowledged
    del logs.deliveries[4], logs.acknowledgements[2]  # never sent
    for held, expected in ((None, (3, 0)), (7, (3, 0)), (3, (3, 0)), (2, (2, 1)), (0, (0, 3))):
        details = {} if held is None else {"held": {"client of durable-1": held}}
        line, _ = logs.line(spark, **details)
        assert (line.waiting, line.lost, line.unacked) == (*expected, 0)
        assert line.clean == (expected[1] == 0)
    logs.gap(1, 300.0, 2, home="durable")
    line, _ = logs.line(spark, held={"client of durable-1": 0})
    assert (line.lost, line.announced) == (3, 2)


def test_after_the_death_of_a_broker_lines_may_be_missing(spark: Any) -> None:
    logs, _, details = lasting()
    del logs.acknowledgements[0]
    logs.event(99, 300.0, origin="00000000000000bb-2", price=0.0)  # another life of the publishers' broker
    (line,) = logs.audit(spark, **details).lines
    assert (line.waiting, line.lost, line.boundary) == (0, 0, 1)


@pytest.mark.parametrize(("at", "lost"), [(-100.0, 1), (300.0, 0), (700.0, 0)])
def test_the_death_of_a_home_that_accepted_no_event_is_known_from_its_next_life(
    spark: Any, at: float, lost: int
) -> None:
    logs, _, details = lasting()
    del logs.acknowledgements[0]
    logs.restarted(at, home="00000000000000cc-2")
    (line,) = logs.audit(spark, **details).lines
    assert (line.lost, line.boundary) == (lost, 1 - lost)


def test_a_durable_subscription_gets_what_nobody_wants_or_the_same_twice(spark: Any) -> None:
    logs, events, details = lasting()
    logs.delivery(events[2], 1, 102.0, home="durable")
    logs.delivery(events[7], 1, 107.0, 3.0, home="durable")  # and not flagged
    line, findings = logs.line(spark, **details)
    assert counts(line) == (5, 0, 1, 1, 0)
    assert sorted(finding.kind for finding in findings) == ["duplicate", "wrong"]


def test_a_new_condition_of_a_durable_subscription_holds_from_then_on(spark: Any) -> None:
    logs, events, details = lasting()
    logs.subscribe(1, 10.5, "price > 4", home="durable")  # taken over
    logs.subscribe(1, 105.5, "price < 2", home="durable")
    logs.delivery(events[0], 1, 100.0, 50.0, home="durable")  # from what is acknowledged on
    logs.event(50, 200.0, price=1.0)
    logs.event(51, 201.0, price=9.0)
    line, findings = logs.line(spark, **details)
    assert (line.expected, line.waiting, line.lost, line.wrong) == (1, 0, 1, 0), "the one of 200"
    assert findings == [] and line.condition == "price < 2"
    logs.unsubscribe(1, 300.0, home="durable")
    line, _ = logs.line(spark)
    assert (line.expected, line.waiting, line.lost, line.wrong) == (0, 0, 0, 0)
