"""A Spark session for slow tests, and functions that run in its tasks and go wrong there on purpose."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pytest

from tests.system.processes import ROOT

__all__ = ["dying_tasks", "options_of", "shuffled_retries", "spark_session"]


@contextmanager
def spark_session(more: Mapping[str, str] = MappingProxyType({}), master: str = "local[2,4]") -> Iterator[Any]:
    """Two cores, four attempts a task. Skips where Java or PySpark are missing."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    }
    builder = sql.SparkSession.builder.appName("headgate-tests").master(master)
    for name, value in {**settings, **more}.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))  # where the planner and the workers find the source
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # tasks die here on purpose
    try:
        yield session
    finally:
        session.stop()


def options_of(address: str, topic: str, **more: str) -> dict[str, str]:
    """The options of a read or a write."""
    return {"headgate.bootstrap.servers": address, "topic": topic} | more


def dying_tasks(attempts: int, rows: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For mapInArrow: the first so many attempts of every task die after so many rows."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        passed = 0
        for batch in batches:
            yield batch
            passed += batch.num_rows
            if context.attemptNumber() < attempts and passed >= rows:
                raise RuntimeError("died on purpose")

    return run


def shuffled_retries(dying: int, rows: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """As dying_tasks; but every second attempt gets its rows in another order, as after a shuffle."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        table = pa.Table.from_batches(list(batches))
        if context.attemptNumber() % 2:
            table = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
        passed = 0
        for batch in table.combine_chunks().to_batches(max_chunksize=1000):
            yield batch
            passed += batch.num_rows
            if context.attemptNumber() < dying and passed >= rows:
                raise RuntimeError("died on purpose")

    return run
