"""Spark's streams against a real broker: every event once, over restarts from the checkpoint and batches that fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate.protocol.blocking import connect_blocking
from headgate.protocol.data import make_batch
from tests.support.served_broker import ServedBroker, served_broker
from tests.support.spark_run import dying_tasks, options_of, spark_session
from tests.system.processes import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RESTARTS = 10


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session() as session:
        yield session


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    with served_broker(tmp_path_factory.mktemp("broker")) as served:
        served.store("ticks", "source", "sink", "bounded", "chosen")
        yield served


def publish(broker: ServedBroker, stream: str, numbers: range) -> None:
    """Numbered events, stored when this returns."""
    with connect_blocking(broker.address) as client, client.producer(f"test {stream}", numbers.start + 1) as producer:
        for start in range(numbers.start, numbers.stop, 100):
            some = list(range(start, min(start + 100, numbers.stop)))
            producer.publish(make_batch([f"{stream}/a"], {"n": some}, [b""] * len(some)))


@contextmanager
def publishing(broker: ServedBroker, stream: str) -> Iterator[list[int]]:
    """Events all through the block, in small batches; the list has one number at last: how many there were."""
    stop, count = threading.Event(), [0]

    def work() -> None:
        with connect_blocking(broker.address) as client, client.producer(f"test {stream}", 1) as producer:
            while not stop.wait(0.01):
                some = list(range(count[0], count[0] + 20))
                producer.publish(make_batch([f"{stream}/a"], {"n": some}, [b""] * 20))
                count[0] += 20

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join(30)


def streamed(spark: Any, broker: ServedBroker, stream: str, **more: str) -> Any:
    options = options_of(broker.address, stream, attributesSchema="n BIGINT", startingOffsets="earliest", **more)
    return spark.readStream.format("headgate").options(**options).load()


def wait_for_a_checkpoint(checkpoint: Path) -> None:
    """Since 4.1 Spark refuses for ever a checkpoint whose very first write was cut short (SPARK-53103)."""
    wait_until((checkpoint / "offsets" / "0").exists)


def lag_by_log(progress: Any) -> dict[str, int]:
    """As the manual says."""
    source = progress["sources"][0]
    end, latest = (json.loads(source[name]) for name in ("endOffset", "latestOffset"))
    return {log: latest[log] - end.get(log, 0) for log in latest}


def numbers_in(spark: Any, broker: ServedBroker, stream: str) -> list[int]:
    options = options_of(broker.address, stream, attributesSchema="n BIGINT")
    frame = spark.read.format("headgate").options(**options).load()
    return sorted(row.n for row in frame.selectExpr("attributes.n AS n").collect())


def test_ten_restarts_during_continuous_publishing(spark: Any, broker: ServedBroker, tmp_path: Path) -> None:
    output = str(tmp_path / "output")

    def start(**trigger: Any) -> Any:
        frame = streamed(spark, broker, "ticks", maxOffsetsPerTrigger="500").selectExpr("attributes.n AS n")
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(**trigger).start(output)

    with publishing(broker, "ticks") as count:
        for restart in range(RESTARTS):
            query = start(processingTime="0 seconds")
            wait_for_a_checkpoint(tmp_path / "checkpoint")
            # Stopped at once, between batches and in the middle of them.
            query.awaitTermination(0.1 + restart * 0.3)
            query.stop()
    start(availableNow=True).awaitTermination()
    found = sorted(row.n for row in spark.read.parquet(output).collect())
    assert found == list(range(count[0]))
    assert count[0] > 500


def test_available_now_takes_what_is_there_in_bounded_batches(spark: Any, broker: ServedBroker, tmp_path: Path) -> None:
    publish(broker, "bounded", range(2500))
    batches: list[int] = []
    lags: list[int] = []
    output = str(tmp_path / "output")

    def run() -> None:
        frame = streamed(spark, broker, "bounded", maxOffsetsPerTrigger="1000").selectExpr("attributes.n AS n")
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(output)
        query.awaitTermination()
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                batches.append(progress["numInputRows"])
                lags.append(sum(lag_by_log(progress).values()))

    run()
    publish(broker, "bounded", range(2500, 2700))
    run()
    assert batches == [1000, 1000, 500, 200]
    assert lags == [1500, 500, 0, 0]
    assert sorted(row.n for row in spark.read.parquet(output).collect()) == list(range(2700))


def test_a_filter_is_evaluated_by_the_broker(spark: Any, broker: ServedBroker) -> None:
    publish(broker, "chosen", range(1000))
    options = options_of(
        broker.address, "chosen/a", filter="n BETWEEN 10 AND 12 OR n = 999", attributesSchema="n BIGINT"
    )
    frame = spark.read.format("headgate").options(**options).load()
    found = frame.selectExpr("attributes.n AS n", "offset").orderBy("n").collect()
    assert [row.n for row in found] == [10, 11, 12, 999]
    assert [row.offset for row in found] == [10, 11, 12, 999]
    nothing = spark.read.format("headgate").options(**(options | {"topic": "chosen/b"})).load()
    assert nothing.count() == 0


def test_a_stream_from_log_to_log_whose_tasks_die_and_which_is_stopped(
    spark: Any, broker: ServedBroker, tmp_path: Path
) -> None:
    """Every first attempt of every batch dies half way; the query is stopped and started again in between."""

    def start(**trigger: Any) -> Any:
        frame = streamed(spark, broker, "source", maxOffsetsPerTrigger="1000").selectExpr("attributes.n AS n")
        dying = frame.mapInArrow(dying_tasks(1, 300), frame.schema)
        writer = dying.writeStream.format("headgate").option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.options(**options_of(broker.address, "sink/b")).trigger(**trigger).start()

    publish(broker, "source", range(4000))
    query = start(processingTime="0 seconds")
    wait_for_a_checkpoint(tmp_path / "checkpoint")
    query.awaitTermination(4)
    query.stop()
    publish(broker, "source", range(4000, 6000))
    start(availableNow=True).awaitTermination()
    assert numbers_in(spark, broker, "sink") == list(range(6000))


def test_offsets_by_rank_and_offsets_that_are_not_there(spark: Any, broker: ServedBroker) -> None:
    options = options_of(broker.address, "source", startingOffsets='{"0": 1}', endingOffsets='{"0": 2}')
    assert spark.read.format("headgate").options(**options).load().count() == 1
    with pytest.raises(Exception, match="HEADGATE_BAD_OFFSETS"):
        spark.read.format("headgate").options(**(options | {"endingOffsets": '{"0": 999999}'})).load().count()


def test_two_queries_of_one_frame_do_not_narrow_each_other(spark: Any, broker: ServedBroker) -> None:
    """With Spark's filter push-down they would, so there is none."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("headgate").options(**options_of(broker.address, "source")).load()
        counts = [frame.count(), frame.where("offset < 20").count(), frame.count()]
        assert counts == [6000, 20, 6000]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
