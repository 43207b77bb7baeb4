"""Spark writes into a real broker: every row is in the log once, whatever dies on the way. Counted by Spark itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.ops.jobs.functions import register_functions
from headgate.protocol.blocking import connect_blocking
from tests.support.served_broker import ServedBroker, served_broker
from tests.support.spark_run import dying_tasks, options_of, shuffled_retries, spark_session
from tests.system.processes import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 20_000


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session() as session:
        yield session


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    with served_broker(tmp_path_factory.mktemp("broker")) as served:
        yield served


@pytest.fixture
def stream(broker: ServedBroker, request: pytest.FixtureRequest) -> str:
    """A stored stream of the test's own."""
    name = "".join(character for character in request.node.name if character.isalnum())[:60]
    broker.store(name)
    return name


def rows(spark: Any, partitions: int = 2) -> Any:
    """ROWS rows, `n` from 0, and a text that makes them a little heavy."""
    return spark.range(0, ROWS, 1, partitions).selectExpr("id AS n", "repeat('x', 80) AS padding")


def write(frame: Any, broker: ServedBroker, stream: str, **more: str) -> None:
    frame.write.format("headgate").mode("append").options(**options_of(broker.address, stream, **more)).save()


def read(spark: Any, broker: ServedBroker, stream: str, **more: str) -> Any:
    return spark.read.format("headgate").options(**options_of(broker.address, stream, **more)).load()


def counted(spark: Any, broker: ServedBroker, stream: str) -> tuple[int, int, int]:
    """(events, distinct values of n, of these within 0..ROWS), as Spark reads the log."""
    frame = read(spark, broker, stream, attributesSchema="n BIGINT")
    found = frame.selectExpr(
        "count(*) AS events", "count(DISTINCT attributes.n) AS numbers", f"count_if(attributes.n < {ROWS}) AS mine"
    ).first()
    return found.events, found.numbers, found.mine


EXACT = (ROWS, ROWS, ROWS)


def test_types_come_back_as_they_went(spark: Any, broker: ServedBroker, stream: str) -> None:
    moment, day = datetime(2026, 5, 1, 12, 0, 0, 5, tzinfo=UTC), date(2026, 5, 1)
    columns = "topic STRING, value BINARY, headers MAP<STRING, STRING>, event_id STRING, key STRING, "
    columns += "event_time TIMESTAMP, tiny TINYINT, big BIGINT, single FLOAT, price DOUBLE, live BOOLEAN, "
    columns += "symbol STRING, day DATE, nothing STRING"
    full = (f"{stream}/a", b"\x00\xff", {"h": "v"}, "e1", "k", moment, -5, 2**63 - 1, 0.5, 0.1, True, "Ωτε", day, None)
    empty = (f"{stream}/b/c", None, None, *[None] * 11)
    write(spark.createDataFrame([full, empty], columns), broker, "")
    schema = "event_id STRING, key STRING, event_time TIMESTAMP, tiny BIGINT, big BIGINT, single DOUBLE, price DOUBLE, "
    schema += "live BOOLEAN, symbol STRING, day DATE, nothing STRING, big2 STRUCT<l BIGINT, d DOUBLE>"
    first, second = read(spark, broker, stream, attributesSchema=schema).orderBy("topic").collect()
    assert (first.topic, bytes(first.value), first.headers) == (full[0], full[1], full[2])
    found = first.attributes.asDict()
    assert found.pop("big2") == (None, None)
    assert found.pop("event_time") == moment.replace(tzinfo=None)
    assert list(found.values()) == ["e1", "k", *full[6:13], None]
    assert (second.topic, bytes(second.value), second.headers) == (empty[0], b"", {})
    assert set(second.attributes.asDict().values()) == {None, (None, None)}
    assert (first.partition, second.partition) == (0, 0)
    assert first.timestamp is not None
    assert first.event_id != second.event_id
    assert {first.sequence, second.sequence} <= {0, 1}


def test_every_row_once(spark: Any, broker: ServedBroker, stream: str) -> None:
    write(rows(spark), broker, stream)
    assert counted(spark, broker, stream) == EXACT


@pytest.mark.parametrize("failing", [1, 3])
@pytest.mark.parametrize("mode", ["guarded", "id"])
def test_attempts_that_die_half_way(spark: Any, broker: ServedBroker, stream: str, failing: int, mode: str) -> None:
    frame = rows(spark)
    dying = frame.mapInArrow(dying_tasks(failing, ROWS // 4), frame.schema)
    write(dying, broker, stream, **({"eventIdColumn": "n"} if mode == "id" else {}))
    assert counted(spark, broker, stream) == EXACT


def test_without_idempotence_a_retry_repeats(spark: Any, broker: ServedBroker, stream: str) -> None:
    """That tasks die after they have published something is what the tests above rest on."""
    frame = rows(spark)
    write(frame.mapInArrow(dying_tasks(1, ROWS // 4), frame.schema), broker, stream, idempotence="none")
    events, numbers, _ = counted(spark, broker, stream)
    assert numbers == ROWS
    assert events > ROWS


@pytest.mark.parametrize("mode", ["guarded", "id"])
def test_a_retry_with_its_rows_in_another_order(spark: Any, broker: ServedBroker, stream: str, mode: str) -> None:
    """Guarded meets the old order on its third attempt; ids do not care."""
    frame = rows(spark)
    dying = frame.mapInArrow(shuffled_retries(1, ROWS // 4), frame.schema)
    write(dying, broker, stream, **({"eventIdColumn": "n"} if mode == "id" else {}))
    assert counted(spark, broker, stream) == EXACT


def test_a_job_that_fails_and_is_submitted_again(spark: Any, broker: ServedBroker, stream: str) -> None:
    frame = rows(spark)
    with pytest.raises(Exception, match="died on purpose"):
        write(frame.mapInArrow(dying_tasks(9, ROWS // 4), frame.schema), broker, stream, producerId=stream)
    before = broker.events(stream)
    assert 0 < before < ROWS
    write(frame, broker, stream, producerId=stream)
    assert counted(spark, broker, stream) == EXACT
    write(frame, broker, stream, producerId=stream)
    assert counted(spark, broker, stream) == EXACT


def test_a_rerun_with_other_partitions_needs_ids(spark: Any, broker: ServedBroker, stream: str) -> None:
    frame = rows(spark, 3)
    with pytest.raises(Exception, match="died on purpose"):
        write(
            frame.mapInArrow(dying_tasks(9, ROWS // 6), frame.schema),
            broker,
            stream,
            producerId=stream,
            eventIdColumn="n",
        )
    write(rows(spark, 2).orderBy("padding"), broker, stream, producerId=stream, eventIdColumn="n")
    assert counted(spark, broker, stream) == EXACT


def test_a_rerun_with_other_rows_is_refused(spark: Any, broker: ServedBroker, stream: str) -> None:
    write(rows(spark), broker, stream, producerId=stream)
    with pytest.raises(Exception, match="HEADGATE_NONDETERMINISTIC_INPUT"):
        write(rows(spark).selectExpr("-n AS n", "padding"), broker, stream, producerId=stream)
    assert counted(spark, broker, stream) == EXACT


def test_documents_are_published_with_their_structure(spark: Any, broker: ServedBroker, stream: str) -> None:
    """A task hears what to send filters for with the answer to its first frame; what goes out behind it has them."""
    frame = spark.range(0, 1000, 1, 2).selectExpr(
        "id AS n", "concat('<bib><', if(id % 50 = 0, 'book', 'paper'), '/></bib>') AS page"
    )
    small = {"documentColumn": "page", "inflight": "1", "maxFrameBytes": "4096"}
    with connect_blocking(broker.address) as reader:
        subscription = reader.subscribe(stream, "XPATH '/bib/book'")
        write(frame, broker, stream, **small)
        events = [event for events in subscription.batches(5.0) for event in events]
        assert sorted(event.attributes["n"] for event in events) == list(range(0, 1000, 50))
        assert {event.content_type for event in events} == {"application/xml"}
        assert sum(subscription.false_positives.values()) < 2 * 4096 / len("<bib><paper/></bib>"), "of 980"
        register_functions(spark)
        log = spark.read.format("headgate").options(**options_of(broker.address, stream)).load()
        words = f"'{stream}', 'XPATH ''/bib/book''', topic, attributes, value, content_type"
        assert log.where(f"headgate_match({words})").count() == len(events)
        with pytest.raises(Exception, match=r"column 'page': holds '<bib><' in a row: this is no XML"):
            write(frame.selectExpr("n", "if(n = 7, '<bib><', page) AS page"), broker, stream, **small)


def test_mistakes_are_told_by_name(spark: Any, broker: ServedBroker, stream: str) -> None:
    frame = rows(spark)
    for more, word in (
        ({"idempotense": "id"}, "did you mean 'idempotence'"),
        ({"eventIdColumn": "number"}, "eventIdColumn"),
        ({"headgate.bootstrap.servers": "127.0.0.1:1", "ackTimeout": "1ms"}, "HEADGATE_CANNOT_CONNECT"),
        ({"topic": "notstored/a"}, "notstored"),
    ):
        with pytest.raises(Exception, match=word):
            frame.write.format("headgate").mode("append").options(**(options_of(broker.address, stream) | more)).save()
    with pytest.raises(Exception, match="HEADGATE_UNSUPPORTED_MODE"):
        frame.write.format("headgate").mode("overwrite").options(**options_of(broker.address, stream)).save()
    with pytest.raises(Exception, match="HEADGATE_UNSUPPORTED_TYPE"):
        write(frame.selectExpr("array(n) AS list"), broker, stream)


def test_sql_inserts_and_selects(spark: Any, broker: ServedBroker, stream: str) -> None:
    options = ", ".join(f"`{name}` '{value}'" for name, value in options_of(broker.address, stream).items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW log USING headgate OPTIONS ({options})")
    rows(spark).write.format("headgate").mode("append").options(**options_of(broker.address, stream)).save()
    assert spark.sql("SELECT count(*) AS events FROM log").first().events == ROWS


def test_a_broker_killed_and_restarted_in_the_middle(spark: Any, tmp_path: Path) -> None:
    with served_broker(tmp_path) as own:
        own.store("quotes")
        done = threading.Event()
        kills = 0

        def unruly() -> None:
            nonlocal kills
            while kills < 3:
                target = ROWS * (kills + 1) // 5
                wait_until(lambda: done.is_set() or own.events("quotes") > target)  # noqa: B023
                if done.is_set():
                    return
                own.kill()
                kills += 1
                own.start()

        helper = threading.Thread(target=unruly)
        helper.start()
        try:
            write(rows(spark), own, "quotes", maxFrameBytes="16k", inflight="2")
        finally:
            done.set()
            helper.join(60)
        assert kills > 0, "the write was over before the first kill"
        assert counted(spark, own, "quotes") == EXACT
