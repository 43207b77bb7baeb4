"""The batch reader: ranges on the driver, record batches on executors, filters only where they are asked for."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pa = pytest.importorskip("pyarrow")
datasource = pytest.importorskip("pyspark.sql.datasource")

from headgate.protocol.spark import batch_reader  # noqa: E402
from headgate.protocol.spark.batch_reader import BatchReader, read_range  # noqa: E402
from headgate.protocol.spark.options import ReadOptions, read_options  # noqa: E402
from tests.support.fake_logs import FakeLogs  # noqa: E402

SCHEMA = pa.schema({"partition": pa.int32(), "offset": pa.int64()})


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> FakeLogs:
    fake = FakeLogs()

    @contextmanager
    def connected(servers: str, seconds: float, name: str, *access: object) -> Iterator[FakeLogs]:
        yield fake

    monkeypatch.setattr(batch_reader, "connected", connected)
    return fake


def options(**more: str) -> ReadOptions:
    return read_options({"headgate.bootstrap.servers": "one:7400", "topic": "q"} | more)


def read(reader: BatchReader) -> list[tuple[int, int]]:
    """(partition, offset) of everything, as executors would get it."""
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    copy = pickle.loads(pickle.dumps(reader))
    batches = [batch for one in partitions for batch in copy.read(one)]
    return [(row["partition"], row["offset"]) for batch in batches for row in batch.to_pylist()]


def test_every_log_is_read(logs: FakeLogs) -> None:
    logs.append("bob", 7, 3)
    logs.append("ann", 9, 2)
    logs.append("bob", 7, 1)
    assert read(BatchReader(options(), SCHEMA)) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]


def test_a_stream_without_events_has_one_empty_partition(logs: FakeLogs) -> None:
    reader = BatchReader(options(), SCHEMA)
    assert [one.value for one in reader.partitions()] == [None]
    assert read(reader) == []
    assert list(read_range(options(), SCHEMA, None)) == []


def test_no_filter_is_pushed_down() -> None:
    """Spark would keep what a filter left for the next action on the same DataFrame, whatever that one asks for."""
    assert BatchReader.pushFilters is datasource.DataSourceReader.pushFilters
