"""A Spark job that is run again, on three brokers: exact, or refused before it sends anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.ops.bench.kit import Fleet, fleet
from headgate.protocol.blocking import connect_blocking
from tests.support.spark_run import dying_tasks, options_of, spark_session
from tests.support.threaded import in_thread
from tests.system.processes import headgate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 4_000
EXACT = (ROWS, ROWS)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session(master="local[4,2]") as session:
        yield session


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with in_thread(lambda: fleet(3, tmp_path_factory.mktemp("cluster"))) as threaded:
        yield threaded.thing


def addresses(cluster: Fleet) -> str:
    return ",".join(one.address for one in cluster.members)


@pytest.fixture
def stream(cluster: Fleet, request: pytest.FixtureRequest) -> str:
    """A stored stream of the test's own."""
    name = "".join(character for character in request.node.name if character.isalnum())[:60]
    store(cluster, name)
    return name


def store(cluster: Fleet, stream: str) -> None:
    with connect_blocking(addresses(cluster)) as client:
        client.ask("schema.put", stream=stream, schema={"durability": "stored"})


def rows(spark: Any, partitions: int) -> Any:
    return spark.range(0, ROWS, 1, partitions).selectExpr("id AS n", "repeat('x', 80) AS padding")


def write(frame: Any, servers: str, stream: str, **more: str) -> None:
    options = options_of(servers, stream, producerId="nightly", ackTimeout="4s", **more)
    frame.write.format("headgate").mode("append").options(**options).save()


def counted(spark: Any, cluster: Fleet, stream: str) -> tuple[int, int]:
    """(events, distinct values of n), as Spark reads the log."""
    options = options_of(addresses(cluster), stream, attributesSchema="n BIGINT")
    frame = spark.read.format("headgate").options(**options).load()
    found = frame.selectExpr("count(*) AS events", "count(DISTINCT attributes.n) AS numbers").first()
    return found.events, found.numbers


def test_ids_are_had_from_whoever_has_them(spark: Any, cluster: Fleet, stream: str) -> None:
    for partitions, member in zip((3, 2, 5), cluster.members, strict=True):
        write(rows(spark, partitions), member.address, stream, eventIdColumn="n")
        assert counted(spark, cluster, stream) == EXACT


@pytest.mark.timeout(90)
def test_runs_in_quick_succession_are_told_apart(spark: Any, cluster: Fleet, stream: str) -> None:
    """The session is warm, so all of these begin within a second or two."""
    for _ in range(5):
        write(rows(spark, 4), addresses(cluster), stream)
    with pytest.raises(Exception, match=r"HEADGATE_(OTHER_WRITE|NONDETERMINISTIC_INPUT).*has published nothing"):
        write(rows(spark, 1), addresses(cluster), stream)
    assert counted(spark, cluster, stream) == EXACT


@pytest.mark.parametrize(("first", "second"), [(4, 1), (1, 4), (4, 3)])
def test_a_finished_guarded_job_with_other_partitions(
    spark: Any, cluster: Fleet, stream: str, first: int, second: int
) -> None:
    write(rows(spark, first), addresses(cluster), stream)
    with pytest.raises(Exception, match=r"HEADGATE_(OTHER_WRITE|NONDETERMINISTIC_INPUT).*has published nothing"):
        write(rows(spark, second), addresses(cluster), stream)
    assert counted(spark, cluster, stream) == EXACT
    write(rows(spark, first), addresses(cluster), stream)
    assert counted(spark, cluster, stream) == EXACT


def test_a_guarded_job_that_died_goes_on_with_the_same_partitions_alone(
    spark: Any, cluster: Fleet, stream: str
) -> None:
    frame = rows(spark, 2)
    with pytest.raises(Exception, match="died on purpose"):
        write(frame.mapInArrow(dying_tasks(9, ROWS // 4 + 1000), frame.schema), addresses(cluster), stream)
    before = counted(spark, cluster, stream)
    assert 0 < before[0] < ROWS
    with pytest.raises(Exception, match=r"HEADGATE_(OTHER_WRITE|NONDETERMINISTIC_INPUT).*has published nothing"):
        write(rows(spark, 4), addresses(cluster), stream)
    assert counted(spark, cluster, stream) == before
    write(frame, addresses(cluster), stream)
    assert counted(spark, cluster, stream) == EXACT


def test_many_small_rows_and_many_empty_partitions(spark: Any, cluster: Fleet, stream: str) -> None:
    small = spark.range(0, 40_000, 1, 1).selectExpr("id AS n").unionByName(rows(spark, 70).where("n < 0").select("n"))
    tail = spark.range(40_000, 40_010, 1, 1).selectExpr("id AS n")
    write(small.unionByName(tail), addresses(cluster), stream, eventIdColumn="n")
    write(spark.range(0, 40_010, 1, 1).selectExpr("id AS n"), addresses(cluster), stream, eventIdColumn="n")
    assert counted(spark, cluster, stream) == (40_010, 40_010)


def test_what_is_known_belongs_to_a_stream_and_goes_with_it(spark: Any, cluster: Fleet, stream: str) -> None:
    other, server = f"{stream}2", addresses(cluster)
    store(cluster, other)
    write(rows(spark, 2), server, stream)
    with pytest.raises(Exception, match=r"HEADGATE_OTHER_WRITE.*'guarded', and this one has 'id'"):
        write(rows(spark, 2), server, stream, eventIdColumn="n")
    write(rows(spark, 2), server, other, eventIdColumn="n")
    assert counted(spark, cluster, other) == EXACT
    told = headgate("producers", f"{stream}/nightly", "--json", "--server", server)
    assert '"partitions":2,"events":4000' in told.stdout
    assert headgate("schema", "rm", stream, "--purge", "--server", server).returncode == 0
    store(cluster, stream)
    assert headgate("producers", f"{stream}/nightly", "--json", "--server", server).stdout.count('"events":0') >= 1
    write(rows(spark, 2), server, stream)
    assert counted(spark, cluster, stream) == EXACT


@pytest.mark.parametrize(
    ("mode", "code"), [({}, "HEADGATE_OTHER_WRITE.*purged since"), ({"eventIdColumn": "n"}, "HEADGATE_IDS_UNKNOWN")]
)
def test_a_job_of_several_streams_is_refused_after_a_purge_of_one(
    spark: Any, cluster: Fleet, stream: str, mode: dict[str, str], code: str
) -> None:
    other, server = f"{stream}2", addresses(cluster)
    store(cluster, other)
    topics = f"IF(n % 2 = 0, '{stream}/a', '{other}/b') AS topic"
    options = {"headgate.bootstrap.servers": server, "producerId": stream, "ackTimeout": "4s"} | mode

    def job(frame: Any, **more: str) -> None:
        frame.write.format("headgate").mode("append").options(**options | more).save()

    def there() -> list[tuple[int, int]]:
        return [counted(spark, cluster, one) for one in (stream, other)]

    frame, half = rows(spark, 2).selectExpr("*", topics), (ROWS // 2, ROWS // 2)
    for _ in range(2):
        job(frame)
        assert there() == [half, half]
    assert headgate("schema", "rm", stream, "--purge", "--server", server).returncode == 0
    store(cluster, stream)
    with pytest.raises(Exception, match=code):
        job(frame)
    assert there() == [(0, 0), half]
    job(frame.where("n % 2 = 0"), producerId=f"{stream} again")
    assert there() == [half, half]
