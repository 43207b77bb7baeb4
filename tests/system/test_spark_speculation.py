"""A standalone Spark cluster: two copies of one task publish at the same time, and every row is in the log once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.served_broker import ServedBroker, served_broker
from tests.support.spark_run import options_of, spark_session
from tests.support.spark_standalone import standalone_cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 20_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    with served_broker(tmp_path_factory.mktemp("broker")) as served:
        served.store("guarded", "id", *(f"none-{number}" for number in range(8)))
        yield served


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    settings = {
        "spark.executor.memory": "500m",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.2",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "500ms",
        "spark.task.maxFailures": "4",
    }
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    with (
        standalone_cluster(tmp_path_factory.mktemp("cluster")) as master,
        spark_session(settings, master) as session,
    ):
        yield session


def dawdling(seconds: float) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For mapInArrow: the first attempt of partition 0 hands on a third at once, and then takes so long a batch."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if context.partitionId() == 0 and context.attemptNumber() == 0 and number > 3:
                time.sleep(seconds)
            yield batch

    return run


def written(spark: Any, broker: ServedBroker, stream: str, **more: str) -> tuple[int, int]:
    """(events, distinct numbers) in the log, after a write with a slow task."""
    # Wide rows, or the first batches would sit in the pipes between Spark's processes until the end.
    frame = spark.range(0, ROWS, 1, 2).selectExpr("id AS n", "repeat('x', 500) AS padding")
    slow = frame.mapInArrow(dawdling(1.0), frame.schema)
    slow.write.format("headgate").mode("append").options(**options_of(broker.address, stream, **more)).save()
    read = spark.read.format("headgate").options(**options_of(broker.address, stream, attributesSchema="n BIGINT"))
    found = read.load().selectExpr("count(*) AS events", "count(DISTINCT attributes.n) AS numbers").first()
    return found.events, found.numbers


@pytest.mark.parametrize("mode", ["guarded", "id"])
def test_a_speculative_copy_repeats_nothing(spark: Any, broker: ServedBroker, mode: str) -> None:
    more = {"eventIdColumn": "n"} if mode == "id" else {}
    assert written(spark, broker, mode, **more) == (ROWS, ROWS)


def test_without_idempotence_it_does(spark: Any, broker: ServedBroker) -> None:
    """That copies run at the same time is what the tests above rest on."""
    for number in range(8):  # Spark decides whether a copy is worth it
        events, numbers = written(spark, broker, f"none-{number}", idempotence="none")
        assert numbers == ROWS
        if events > ROWS:
            return
    pytest.fail("no copy ran beside the first attempt of its task")
