"""Spark reads what it wrote from a real broker: several streams, declared attributes, and a frame written back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.protocol.blocking import connect_blocking
from tests.support.served_broker import ServedBroker, served_broker
from tests.support.spark_run import options_of, spark_session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 3_000


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session() as session:
        yield session


@pytest.fixture(scope="module")
def broker(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    """Streams `trades`, with a schema and ROWS events, and `copies`, with none."""
    with served_broker(tmp_path_factory.mktemp("broker")) as served:
        schema = {"durability": "stored", "attributes": {"n": {"type": "int"}, "price": {"type": "float"}}}
        with connect_blocking(served.address) as client:
            client.ask("schema.put", stream="trades", schema=schema)
        served.store("copies", "empty")
        frame = spark.range(0, ROWS, 1, 2).selectExpr(
            "id AS n",
            "id / 7 AS price",
            "CAST(id AS STRING) AS name",
            "id % 2 = 0 AS even",
            "CAST('x' AS BINARY) AS value",
        )
        frame.write.format("headgate").mode("append").options(**options_of(served.address, "trades/all")).save()
        yield served


def read(spark: Any, broker: ServedBroker, topic: str, **more: str) -> Any:
    return spark.read.format("headgate").options(**options_of(broker.address, topic, **more)).load()


def test_what_the_schema_declares_are_the_columns(spark: Any, broker: ServedBroker) -> None:
    frame = read(spark, broker, "trades", attributesSchema="declared")
    assert frame.schema["attributes"].dataType.simpleString() == "struct<n:bigint,price:double>"
    assert frame.selectExpr("sum(attributes.n) AS n", "max(attributes.price) AS price").first().asDict() == {
        "n": ROWS * (ROWS - 1) // 2,
        "price": (ROWS - 1) / 7,
    }


def test_a_frame_is_copied_once_with_its_types_and_streams_are_read_together(spark: Any, broker: ServedBroker) -> None:
    frame = read(spark, broker, "trades", attributesSchema="typed")
    copy = options_of(broker.address, "copies/all", producerId="copy", eventIdColumn="event_id")
    for _ in range(2):
        frame.write.format("headgate").mode("append").options(**copy).save()
    both = read(spark, broker, "trades,copies", attributesSchema="typed")
    columns = "attributes['n'].l AS n", "attributes['price'].d AS price", "attributes['name'].s AS name"
    rows = both.selectExpr("topic", *columns, "attributes['even'].b AS even", "value", "size(attributes) AS size")
    again = {row.topic: row["count"] for row in rows.groupBy("topic").count().collect()}
    assert again == {"trades/all": ROWS, "copies/all": ROWS}
    pairs = rows.drop("topic").groupBy("n", "price", "name", "even", "value", "size").count()
    assert (pairs.count(), pairs.where("count <> 2 OR size <> 4 OR n IS NULL OR even IS NULL").count()) == (ROWS, 0)


def test_a_stream_that_keeps_nothing_is_an_error_and_an_empty_one_is_not(spark: Any, broker: ServedBroker) -> None:
    assert read(spark, broker, "empty").count() == 0
    with pytest.raises(Exception, match="HEADGATE_NOT_KEPT"):
        read(spark, broker, "tradez").count()


def test_the_state_of_the_cluster_is_a_frame(spark: Any, broker: ServedBroker) -> None:
    state = read(spark, broker, "", subscribe="state")
    assert {row.what for row in state.select("what").distinct().collect()} >= {"broker", "stream", "log"}
    (log,) = read(spark, broker, "trades", subscribe="state").where("what = 'log'").collect()
    assert (log.stream, int(log.fields["next"])) == ("trades", ROWS)
