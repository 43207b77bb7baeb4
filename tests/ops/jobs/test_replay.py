"""The replay job: what it refuses; and, with Spark and a broker, that each event arrives once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.ops.jobs import replay
from headgate.ops.jobs.functions import register_functions
from headgate.protocol.blocking import connect_blocking
from tests.support.served_broker import ServedBroker, served_broker
from tests.support.spark_run import options_of, spark_session


@pytest.mark.parametrize(
    "words",
    [[], ["--to-stream", "a", "--to-topic", "b"], ["--to-stream", "a", "--overwrite"]],
)
def test_one_target_and_what_fits_it(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main(["trades", *words]) == 2
    assert "--to-" in capsys.readouterr().err


def test_without_java_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replay, "missing_parts", lambda: "Java 17")
    assert replay.main(["trades", "--to-stream", "a"]) == 1
    assert "Java 17" in capsys.readouterr().err


def test_a_table_is_merged_by_identity() -> None:
    statement = replay.merge_statement("lake.trades")
    assert statement.startswith("MERGE INTO lake.trades")
    assert "ON there.identity = new.identity WHEN NOT MATCHED THEN INSERT *" in statement


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session() as session:
        yield session


@pytest.fixture(scope="module")
def broker(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    with served_broker(tmp_path_factory.mktemp("broker")) as served:
        served.store("trades", "again")
        with connect_blocking(served.address) as client:
            for number in range(20):
                place = "NYSE" if number % 2 else "LSE"
                row, kind = {"n": number, "price": number / 2}, "text/csv" if number % 4 == 1 else ""
                client.publish(f"trades/{place}", row, b"x", mode="stored", content_type=kind)
        yield served


def numbers(spark: Any, broker: ServedBroker, topic: str) -> list[tuple[str, int]]:
    options = options_of(broker.address, topic, attributesSchema="n BIGINT")
    rows = spark.read.format("headgate").options(**options).load().selectExpr("topic", "attributes.n AS n").collect()
    return sorted((row.topic, row.n) for row in rows)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_window_goes_to_another_stream_once(spark: Any, broker: ServedBroker) -> None:
    words = ["--server", broker.address, "--to-stream", "again"]
    for condition in ("n < 10", "n < 15", "n < 15"):
        assert replay.main(["trades/NYSE", "--where", condition, *words]) == 0
    assert numbers(spark, broker, "again") == [("again/NYSE", number) for number in range(1, 15, 2)]
    options = options_of(broker.address, "again", attributesSchema="n BIGINT")
    rows = spark.read.format("headgate").options(**options).load().where("content_type = 'text/csv'")
    assert sorted(row.n for row in rows.selectExpr("attributes.n AS n").collect()) == [1, 5, 9, 13]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_window_goes_to_parquet_whole_and_only_once(
    spark: Any, broker: ServedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["trades", "--server", broker.address, "--attributes", "n BIGINT", "--to-parquet", str(tmp_path / "lake")]
    assert replay.main(words) == 0
    assert replay.main(words) == 1
    assert "already exists" in capsys.readouterr().err
    assert replay.main([*words, "--overwrite"]) == 0
    found = spark.read.parquet(str(tmp_path / "lake"))
    assert sorted(row.n for row in found.selectExpr("attributes.n AS n").collect()) == list(range(20))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_function_agrees_with_the_source_s_filter(spark: Any, broker: ServedBroker) -> None:
    register_functions(spark)
    frame = (
        spark.read.format("headgate").options(**options_of(broker.address, "trades", attributesSchema="typed")).load()
    )
    where = "headgate_match('trades/NYSE', 'price >= 4 AND n <> 11', topic, attributes)"
    assert sorted(row.n for row in frame.where(where).selectExpr("attributes['n'].l AS n").collect()) == [
        9,
        13,
        15,
        17,
        19,
    ]
