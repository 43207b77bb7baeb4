"""The streaming reader: every event once over batches, restarts, new logs and brokers that are away."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows  # noqa: E402

from headgate.protocol.spark import batch_reader, stream_reader  # noqa: E402
from headgate.protocol.spark.options import read_options  # noqa: E402
from headgate.protocol.spark.stream_reader import StreamReader  # noqa: E402
from tests.support.fake_logs import FakeLogs  # noqa: E402

SCHEMA = pa.schema({"partition": pa.int32(), "offset": pa.int64()})


@contextmanager
def serving(logs: FakeLogs) -> Iterator[FakeLogs]:
    """Readers find these logs."""

    @contextmanager
    def connected(servers: str, seconds: float, name: str, *access: object) -> Iterator[FakeLogs]:
        yield logs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_reader, "connected", connected)
        patch.setattr(stream_reader, "connected", connected)
        yield logs


@pytest.fixture
def logs() -> Iterator[FakeLogs]:
    with serving(FakeLogs()) as fake:
        yield fake


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time in microseconds, in the test's hand."""
    clock = [0]
    monkeypatch.setattr(
        stream_reader, "time", SimpleNamespace(time_ns=lambda: clock[0] * 1000, monotonic=lambda: clock[0] / 1e6)
    )
    return clock


def reader(**more: str) -> StreamReader:
    options = read_options({"headgate.bootstrap.servers": "one:7400", "topic": "q"} | more, streaming=True)
    made = StreamReader(options, SCHEMA)
    return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]


def step(one: StreamReader, start: dict[str, int]) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """A micro-batch: where it ends, by way of the checkpoint, and its (partition, offset)s."""
    end = json.loads(json.dumps(one.latestOffset(start, one.getDefaultReadLimit())))
    batches = [batch for part in one.partitions(start, end) for batch in one.read(part)]
    return end, [(row["partition"], row["offset"]) for batch in batches for row in batch.to_pylist()]


def test_a_query_starts_at_the_end_or_where_it_is_told(logs: FakeLogs) -> None:
    logs.append("ann", 7, 4)
    assert reader().initialOffset() == {"ann@7": 4}
    assert reader(startingOffsets="earliest").initialOffset() == {"ann@7": 0}
    assert reader(startingOffsets='{"ann@7": 2}').initialOffset() == {"ann@7": 2}


def test_limits_are_spark_s_own(logs: FakeLogs) -> None:
    assert isinstance(reader().getDefaultReadLimit(), ReadAllAvailable)
    limit = reader(maxOffsetsPerTrigger="5").getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    assert limit.max_rows == 5


def test_available_now_stops_where_the_logs_ended(logs: FakeLogs) -> None:
    logs.append("ann", 7, 5)
    one = reader(maxOffsetsPerTrigger="3")
    one.prepareForTriggerAvailableNow()
    logs.append("ann", 7, 5)
    offset: dict[str, int] = {"ann@7": 0}
    seen = []
    for _ in range(4):
        offset, rows = step(one, offset)
        seen.append(len(rows))
    assert seen == [3, 2, 0, 0]
    assert one.reportLatestOffset() == {"ann@7": 10}


def test_a_log_that_began_later_is_read_from_its_beginning(logs: FakeLogs) -> None:
    logs.append("ann", 7, 2)
    one = reader()
    offset = one.initialOffset()
    logs.append("bob", 8, 3)
    offset, rows = step(one, offset)
    assert rows == [(1, 0), (1, 1), (1, 2)]
    assert step(one, offset)[1] == []


def test_a_log_whose_broker_is_away_stays_where_it_is(logs: FakeLogs) -> None:
    name = logs.append("ann", 7, 2)
    logs.append("bob", 8, 3)
    one = reader(startingOffsets="earliest")
    away = logs.rows.pop(name)
    offset, rows = step(one, {"ann@7": 1, "bob@8": 0})
    assert (offset, rows) == ({"ann@7": 1, "bob@8": 3}, [(1, 0), (1, 1), (1, 2)])
    logs.rows[name] = away
    assert step(one, offset)[1] == [(0, 1)]


def test_a_broker_that_was_away_at_the_beginning_is_not_read_again(logs: FakeLogs, now: list[int]) -> None:
    logs.append("ann", 7, 4, 100)
    logs.append("bob", 8, 3, 100)
    logs.away, now[0] = ("bob",), 150
    one = reader()
    offset = one.initialOffset()
    assert offset == {"ann@7": 4, "@since": 150}
    logs.append("bob", 8, 2, 200)
    assert step(one, offset) == (offset, [])
    logs.away = ()
    end, rows = step(reader(), offset)
    assert rows == [(1, 3), (1, 4)]
    again = [batch for part in one.partitions(offset, end) for batch in one.read(part)]
    assert sum(batch.num_rows for batch in again) == 2
    logs.append("eve", 9, 1, 300)
    assert step(one, end) == (end | {"eve@9": 1}, [(2, 0)])


def test_a_batch_waits_for_enough_events_but_not_for_ever(logs: FakeLogs, now: list[int]) -> None:
    one = reader(startingOffsets="earliest", minOffsetsPerTrigger="5", maxTriggerDelay="2s")
    offset = {"ann@7": 0}
    logs.append("ann", 7, 3)
    assert step(one, offset) == (offset, [])
    now[0] = 1_900_000
    assert step(one, offset) == (offset, [])
    now[0] = 2_000_000
    offset, rows = step(one, offset)
    assert len(rows) == 3
    logs.append("ann", 7, 6)
    assert len(step(one, offset)[1]) == 6


@given(st.data())
def test_every_event_once_over_any_number_of_restarts(data: st.DataObject) -> None:
    with serving(FakeLogs()) as logs:
        logs.append("ann", 7, 1)
        limit = data.draw(st.integers(1, 6))
        one = reader(startingOffsets="earliest", maxOffsetsPerTrigger=str(limit))
        offset = one.initialOffset()
        seen: list[tuple[int, int]] = []
        for _ in range(data.draw(st.integers(0, 8))):
            logs.append(data.draw(st.sampled_from(["ann", "bob"])), 7, data.draw(st.integers(1, 5)))
            if data.draw(st.booleans()):
                one = reader(maxOffsetsPerTrigger=str(limit))
            end, rows = step(one, offset)
            assert len(rows) <= limit
            if data.draw(st.booleans()):  # the batch fails and is run again
                again = [batch for part in one.partitions(offset, end) for batch in one.read(part)]
                assert [row["offset"] for batch in again for row in batch.to_pylist()] == [place for _, place in rows]
            seen += rows
            offset = end
        seen += step(reader(), offset)[1]
        ranks = {name: 0 if name.broker == "ann" else 1 for name in logs.rows}
        everything = [(rank, position) for name, rank in ranks.items() for position in range(logs.next(name))]
        assert sorted(seen) == sorted(everything)


def test_nothing_is_held_between_calls(logs: FakeLogs) -> None:
    one = reader()
    one.commit({})
    one.stop()
    assert one.initialOffset() == {}
