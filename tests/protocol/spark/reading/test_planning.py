"""Planning a read: offsets, times and words become the ranges of every log there is."""

from __future__ import annotations

import pytest

from headgate.protocol.client import Survey
from headgate.protocol.data import LogKind
from headgate.protocol.spark.errors import BadOffsets, LogsUnreachable, NotKept
from headgate.protocol.spark.options import ReadOptions, read_options
from headgate.protocol.spark.reading import end_of, plan_batch, ranges_of, start_of
from headgate.protocol.spark.reading.planning import kind_number
from tests.support.fake_logs import FakeLogs


def options(**more: str) -> ReadOptions:
    return read_options({"headgate.bootstrap.servers": "one:7400", "topic": "q/x"} | more)


@pytest.fixture
def logs() -> FakeLogs:
    fake = FakeLogs()
    for time in (10, 20, 30):
        fake.append("bob", 7, 5, time)
        fake.append("ann", 9, 2, time + 5)
    return fake


def planned(logs: FakeLogs, **more: str) -> list[tuple[str, int, int, int]]:
    ranges = plan_batch(logs, options(**more))
    return [(one.name.partition, one.rank, one.start, one.end) for one in ranges]


def test_everything_by_default(logs: FakeLogs) -> None:
    assert planned(logs) == [("bob@7", 0, 0, 15), ("ann@9", 1, 0, 6)]


def test_by_offsets(logs: FakeLogs) -> None:
    assert planned(logs, startingOffsets='{"bob@7": 3}', endingOffsets='{"1": 2}') == [
        ("bob@7", 0, 3, 15),
        ("ann@9", 1, 0, 2),
    ]
    assert planned(logs, startingOffsets="latest") == []
    with pytest.raises(BadOffsets, match="endingOffsets"):
        planned(logs, endingOffsets='{"bob@7": 99}')


def test_by_time_which_wins(logs: FakeLogs) -> None:
    ranges = planned(logs, startingTimestamp="1970-01-01T00:00:00.000020", startingOffsets="latest")
    assert ranges == [("bob@7", 0, 5, 15), ("ann@9", 1, 2, 6)]
    ranges = planned(logs, endingTimestamp="1970-01-01T00:00:00.000020")
    assert ranges == [("bob@7", 0, 0, 5), ("ann@9", 1, 0, 2)]


def test_what_retention_took_is_not_asked_for(logs: FakeLogs) -> None:
    logs.trim(next(iter(logs.rows)), 10)
    assert planned(logs)[0] == ("bob@7", 0, 10, 15)


def test_the_two_ends_of_a_stream(logs: FakeLogs) -> None:
    assert start_of(logs, options(), 0) == {"bob@7": 0, "ann@9": 0}
    assert end_of(logs, options()) == {"bob@7": 15, "ann@9": 6}


def test_ranges_name_their_log() -> None:
    (one,) = ranges_of(options(subscribe="deliveries", topic="q"), {}, {"ann@9": 4})
    assert one.name == ("ann", 9, LogKind.DELIVERIES, "q")


@pytest.mark.parametrize("kind", LogKind)
def test_kinds_have_the_numbers_of_the_wire(kind: LogKind) -> None:
    assert kind_number(options(subscribe=kind.name.lower(), topic="q")) == kind


def test_a_batch_read_does_not_leave_out_a_log_in_silence(logs: FakeLogs, caplog: pytest.LogCaptureFixture) -> None:
    logs.away = ("bob",)
    with pytest.raises(LogsUnreachable, match=r"bob cannot be reached.*failOnDataLoss"):
        planned(logs)
    assert planned(logs, failOnDataLoss="false") == [("ann@9", 0, 0, 6)]
    assert "bob" in caplog.text


def test_of_several_streams_none_may_lack_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that the others have forgotten is known from the logs that it wrote, and those are of one stream."""
    logs, survey = FakeLogs(), FakeLogs.survey_logs
    logs.away = ("bob",)

    def survey_logs(self: FakeLogs, stream: str, kind: str) -> Survey:
        return survey(self, "q", kind) if stream == "q" else Survey([], (), 1, True)

    monkeypatch.setattr(FakeLogs, "survey_logs", survey_logs)
    for topics in ("q,r", "r,q"):
        with pytest.raises(LogsUnreachable, match="bob cannot be reached"):
            planned(logs, topic=topics)
    assert planned(logs, topic="r") == []


def test_a_broker_may_be_away_while_others_have_its_copies(logs: FakeLogs) -> None:
    logs.away, logs.copies = ("bob",), 2
    assert planned(logs) == [("bob@7", 0, 0, 15), ("ann@9", 1, 0, 6)]


def test_a_stream_without_a_log_is_an_error_unless_it_keeps_one() -> None:
    logs = FakeLogs()
    assert planned(logs) == []
    logs.stored = False
    with pytest.raises(NotKept, match=r"'q' is unknown or in memory.*durability"):
        planned(logs)
    assert "audit" in str(NotKept("q", "deliveries"))
