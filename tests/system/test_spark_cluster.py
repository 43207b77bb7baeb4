"""Spark against three brokers: the one it writes to dies, and every row is in the logs of the others once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.ops.bench.kit import Fleet, fleet
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.errors import HeadgateError
from tests.support.spark_run import options_of, spark_session
from tests.support.threaded import in_thread
from tests.system.processes import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 20_000


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session() as session:
        yield session


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Fleet]:
    with in_thread(lambda: fleet(3, tmp_path)) as threaded:
        yield threaded.thing


def stored(addresses: str, stream: str) -> int:
    """Events in the logs that can be reached."""
    try:
        with connect_blocking(addresses, shuffle=False) as client:
            return sum(log.next for log in client.logs(stream))
    except HeadgateError:
        return 0  # just now the one that died was asked


@pytest.mark.parametrize("mode", ["guarded", "id"])
def test_the_broker_that_is_written_to_dies(spark: Any, cluster: Fleet, mode: str) -> None:
    first, *others = cluster.members
    left = ",".join(one.address for one in others)
    with connect_blocking(left) as client:
        client.ask("schema.put", stream="quotes", schema={"durability": "stored"})
    killed = threading.Event()

    def killer() -> None:
        wait_until(lambda: stored(left, "quotes") > ROWS // 4)
        first.kill()
        killed.set()

    helper = threading.Thread(target=killer)
    helper.start()
    options = options_of(f"{first.address},{left}", "quotes/a", maxFrameBytes="32k", inflight="2")
    frame = spark.range(0, ROWS, 1, 2).selectExpr("id AS n", "repeat('x', 80) AS padding")
    more = {"eventIdColumn": "n"} if mode == "id" else {}
    frame.write.format("headgate").mode("append").options(**options, **more).save()
    helper.join(60)
    assert killed.is_set()
    read = spark.read.format("headgate").options(**options_of(left, "quotes", attributesSchema="n BIGINT")).load()
    found = read.selectExpr("count(*) AS events", "count(DISTINCT attributes.n) AS numbers").first()
    assert (found.events, found.numbers) == (ROWS, ROWS)
