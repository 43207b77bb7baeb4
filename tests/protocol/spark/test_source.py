"""The source: what is wrong is told on the driver, before any task, and each plan gets the class it needs."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow")
types = pytest.importorskip("pyspark.sql.types")

from headgate.protocol.spark import source  # noqa: E402
from headgate.protocol.spark.batch_reader import BatchReader  # noqa: E402
from headgate.protocol.spark.errors import BadOption, MissingOption, UnsupportedMode, UnsupportedType  # noqa: E402
from headgate.protocol.spark.source import (  # noqa: E402
    make_reader,
    make_stream_reader,
    make_stream_writer,
    make_writer,
    schema_of,
)
from headgate.protocol.spark.stream_reader import StreamReader  # noqa: E402
from headgate.protocol.spark.stream_writer import StreamWriter  # noqa: E402
from headgate.protocol.spark.writing import Attempt, Run  # noqa: E402
from tests.support.fake_log import FakeClient, FakeLog  # noqa: E402

GIVEN = {"headgate.bootstrap.servers": "one:7400", "topic": "q"}


def schema(**columns: Any) -> Any:
    return types.StructType([types.StructField(name, kind) for name, kind in columns.items()])


OFFSETS = schema(offset=types.LongType())
NUMBERS = schema(n=types.IntegerType())


def test_the_schema_is_that_of_the_log() -> None:
    assert schema_of(GIVEN).startswith("topic STRING, partition INT, offset BIGINT")
    assert "subscription_id" in schema_of(GIVEN | {"subscribe": "deliveries"})
    with pytest.raises(MissingOption, match="'topic'"):
        schema_of({"headgate.bootstrap.servers": "one:7400"})


def test_readers() -> None:
    assert type(make_reader(GIVEN, OFFSETS)) is BatchReader
    assert type(make_stream_reader(GIVEN, OFFSETS)) is StreamReader


@pytest.mark.parametrize("make", [make_reader, make_stream_reader])
def test_options_are_checked_even_when_the_user_gave_the_schema(make: Any) -> None:
    with pytest.raises(BadOption, match="attributesSchema"):
        make(GIVEN | {"attributesSchema": "a ARRAY<INT>"}, OFFSETS)


@pytest.mark.parametrize("more", [{"endingOffsets": '{"ann@7": 3}'}, {"endingTimestamp": "2026-01-01"}])
def test_a_streaming_read_has_no_end(more: dict[str, str]) -> None:
    with pytest.raises(UnsupportedMode, match="endingOffsets"):
        make_stream_reader(GIVEN | more, OFFSETS)


def test_every_batch_write_is_a_job_of_its_own_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "connected", FakeClient(FakeLog()).connected)
    jobs = [make_writer(GIVEN | more, NUMBERS, False) for more in ({}, {}, {"producerId": "mine"})]
    names = [(writer._run.job, writer._run.rerun) for writer in jobs]
    assert names[0][0] != names[1][0]
    assert [rerun for _, rerun in names] == [False, False, True]
    assert names[2][0] == "mine"


@pytest.mark.parametrize("clock", [1_763_492_000_400_000, 1_763_492_000_900_000, 1_763_492_002_000_000])
def test_a_run_is_newer_than_all_attempts_before_it_whatever_the_clock_says(
    monkeypatch: pytest.MonkeyPatch, clock: int
) -> None:
    """The second run may follow within the second, and the clock of its driver may be behind."""
    client = FakeClient(FakeLog())
    monkeypatch.setattr(source, "connected", client.connected)
    monkeypatch.setattr(source.time, "time_ns", lambda: clock * 1000)
    newest = 0
    for partition in range(2 * FakeClient.PAGE):
        last = Attempt(Run("mine", 1_763_492_001_500_000, True), partition, 1000 - partition)
        client.log.open(last.producer("guarded", "q"), last.epoch + 1)
        newest = max(newest, last.epoch + 1)
    run = make_writer(GIVEN | {"producerId": "mine"}, NUMBERS, False)._run
    assert run.epoch > newest
    assert run.planned_us >= clock


@pytest.mark.parametrize("make", [make_writer, make_stream_writer])
def test_a_log_is_never_overwritten_and_columns_are_checked(make: Any) -> None:
    with pytest.raises(UnsupportedMode, match="append"):
        make(GIVEN, NUMBERS, True)
    with pytest.raises(UnsupportedType, match=r"decimal\(9,2\)"):
        make(GIVEN, schema(price=types.DecimalType(9, 2)), False)


def test_a_stream_writer() -> None:
    assert type(make_stream_writer(GIVEN, NUMBERS, False)) is StreamWriter
