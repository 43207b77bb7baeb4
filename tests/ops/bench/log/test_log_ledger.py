"""The verdict over logs: what is missing, twice, or not dense, and whose disk may be lost."""

from __future__ import annotations

from collections import Counter

from headgate.ops.bench.kit import number_of
from headgate.ops.bench.log.ledger import Findings, Plan, Report, judge, look, spared
from headgate.protocol.client import LogInfo
from headgate.protocol.data import LogName, Row, make_batch

ANN, BOB = (LogName(broker, 7, 0, "quotes") for broker in ("ann", "bob"))


def row(first: int, numbers: range, number: int | None = None) -> Row:
    batch = make_batch(["quotes"], {}, [number.to_bytes(8, "big") for number in numbers])
    fields = (batch.topics, batch.lengths, batch.columns, batch.complete, batch.records)
    number = numbers[0] if number is None else number
    return Row(first, len(numbers), 0, "1", 0, b"", *fields, "log-kills", 1, number)


def info(name: LogName, upcoming: int) -> LogInfo:
    return LogInfo(name, 0, upcoming, 0, 0, 0, (name.broker,))


def judged(acknowledged: list[range], rows: list[Row], deleted: int = 0, epochs: int = 1) -> Report:
    findings = Findings(100)
    end = rows[-1].first + rows[-1].count if rows else 0
    look(findings, info(ANN, end), rows)
    findings.epochs["ann"] = epochs
    report = Report(Plan(5, 1), 5, Counter(ann=deleted), 100, sum(map(len, acknowledged)))
    judge(report, acknowledged, findings)
    return report


def test_the_body_of_an_event_is_its_number() -> None:
    assert number_of((258).to_bytes(8, "big")) == 258


def test_a_whole_log_is_what_was_promised() -> None:
    report = judged([range(10), range(12, 20)], [row(0, range(10)), row(10, range(10, 20))])
    assert report.kept and (report.missing, report.twice, report.in_log) == (0, 0, 20)
    assert "0 missing, 0 twice" in str(report) and str(report).endswith("every promise was kept")


def test_an_acknowledged_event_that_is_not_there_is_missing() -> None:
    report = judged([range(10), range(12, 20)], [row(0, range(10)), row(10, range(12, 18))])
    assert not report.kept and report.missing == 2 and report.wrong == ["missing: 18 to 19, 2 events"]


def test_an_event_that_is_in_a_log_again_is_there_twice() -> None:
    report = judged([range(10)], [row(0, range(10)), row(10, range(9, 12))])
    assert not report.kept and (report.again, report.twice) == (0, 1)
    assert "1 twice" in str(report) and str(report).endswith("a promise was BROKEN")


def test_in_another_log_it_is_counted_apart_when_it_has_its_number() -> None:
    for number, again, twice in [(0, 10, 0), (1, 0, 10)]:
        findings = Findings(100)
        look(findings, info(ANN, 10), [row(0, range(10))])
        look(findings, info(BOB, 10), [row(0, range(10), number)])
        report = Report(Plan(5, 1, 3), acknowledged=10)
        judge(report, [range(10)], findings)
        assert (report.again, report.twice, report.in_log, findings.distinct) == (again, twice, 20, 10)
        assert not report.kept and f"({again} of them once more under their numbers; rows taken back 0" in str(report)


def test_positions_are_dense_from_nothing_to_the_end() -> None:
    report = judged([range(10)], [row(0, range(10)), row(11, range(10, 20))])
    assert report.wrong == ["ann@7: position 10 is followed by a row at 11"] and not report.kept
    assert judged([], [row(1, range(10))]).wrong == ["ann@7: position 0 is followed by a row at 1"]
    findings = Findings(100)
    look(findings, info(ANN, 20), [row(0, range(10))])
    assert findings.wrong == ["ann@7: ends at 10, and was said to end at 20"]


def test_what_nobody_published_is_no_event() -> None:
    assert judged([range(10)], [row(0, range(10)), row(10, range(100, 101))]).wrong == [
        "ann@7: event 100 was never published"
    ]


def test_a_new_epoch_needs_a_deleted_disk_or_rows_that_were_taken_back() -> None:
    assert judged([range(10)], [row(0, range(10))], deleted=1, epochs=2).kept
    report = judged([range(10)], [row(0, range(10))], epochs=2)
    assert report.wrong == ["ann: 2 epochs; its disk was deleted 0 times, and it took rows back 0 times"]
    findings = Findings(100)
    findings.epochs["ann"] = 2
    report = Report(Plan(5, 1), taken_back=Counter(ann=1))
    judge(report, [], findings)
    assert report.wrong == []


def test_nothing_acknowledged_proves_nothing() -> None:
    assert not judged([], [row(0, range(10))]).kept


def test_a_disk_is_spared_when_it_has_the_only_copy_of_anything() -> None:
    held = {"ann": {ANN: 10, BOB: 5}, "bob": {BOB: 7}, "eve": {ANN: 12}}
    assert spared(held, {ANN: 10, BOB: 5}) == set()
    assert spared(held, {ANN: 11, BOB: 5}) == {"eve"}
    assert spared(held, {ANN: 12, BOB: 6}) == {"eve", "bob"}
    assert spared(held, {ANN: 13}) == {"ann", "bob", "eve"}, "nobody has it yet: it is too early to say"
    assert spared({"ann": {}, "bob": {}}, {}) == set()
