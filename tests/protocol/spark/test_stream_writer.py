"""The streaming writer: a query has one producer for each partition, and frames say which micro-batch they are of."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from headgate.protocol.spark.batch_writer import Published  # noqa: E402
from headgate.protocol.spark.errors import OtherWrite  # noqa: E402
from headgate.protocol.spark.layout import plan_layout  # noqa: E402
from headgate.protocol.spark.options import write_options  # noqa: E402
from headgate.protocol.spark.stream_writer import StreamWriter  # noqa: E402
from headgate.protocol.spark.writing import Sent, attempts  # noqa: E402
from tests.support.fake_log import FakeClient, FakeLog  # noqa: E402
from tests.support.fake_task import FakeTask, in_task  # noqa: E402

PROPERTIES = {"sql.streaming.queryId": "c0ffee", "streaming.sql.batchId": "4"}


def writer(seconds: int = 1000, **more: str) -> StreamWriter:
    options = write_options({"headgate.bootstrap.servers": "one:7400", "topic": "q/a"} | more)
    return StreamWriter(options, plan_layout([("n", "bigint")], options), seconds * 1_000_000)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    fake = FakeClient(FakeLog())
    monkeypatch.setattr(attempts, "connected", fake.connected)
    return fake


def batch() -> Any:
    return iter([pa.RecordBatch.from_pydict({"n": [1, 2]})])


def test_a_batch_that_is_run_again_is_in_the_log_once(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    in_task(monkeypatch, FakeTask(1, 9, properties=PROPERTIES))
    first = pickle.loads(pickle.dumps(writer())).write(batch())
    in_task(monkeypatch, FakeTask(1, 2, properties=PROPERTIES))  # after a restart attempts are counted from 0 again
    second = writer(1001).write(batch())
    assert (first.sent.published, second.sent.published) == (2, 0)
    assert client.log.values("n") == [1, 2]
    assert {name for name, _, _ in client.opened} == {"q/c0ffee/1"}


def test_all_batches_of_a_query_are_of_one_producer(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is told by its number: a broker does not remember a producer for each."""
    for number in "45556":
        in_task(monkeypatch, FakeTask(0, 9, properties=PROPERTIES | {"streaming.sql.batchId": number}))
        writer().write(batch())
    assert client.log.values("n") == [1, 2, 1, 2, 1, 2]
    assert list(client.log.producers) == ["q/c0ffee/0"]


def test_a_checkpoint_that_is_older_than_the_log_is_refused(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in "45":
        in_task(monkeypatch, FakeTask(0, 9, properties=PROPERTIES | {"streaming.sql.batchId": number}))
        writer().write(batch())
    in_task(monkeypatch, FakeTask(0, 9, properties=PROPERTIES))
    with pytest.raises(OtherWrite, match="micro-batch 4 of its query, and the log has events of micro-batch 5"):
        writer().write(batch())
    assert client.log.values("n") == [1, 2, 1, 2]


def test_a_named_query_goes_by_its_name(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    in_task(monkeypatch, FakeTask(0, 9, properties=PROPERTIES))
    assert writer(producerId="mine").write(batch()).job == "q/mine batch 4"
    assert list(client.log.producers) == ["q/mine/0"]


@pytest.mark.parametrize(("end", "word"), [(StreamWriter.commit, "committed"), (StreamWriter.abort, "aborted")])
def test_the_end_of_a_batch_is_logged(
    end: Callable[[StreamWriter, list[Any], int], None], word: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "headgate.spark"):
        end(writer(), [Published("c0ffee/4", 0, Sent(5, 1))], 4)
    assert f"{word} c0ffee/4: 5 events" in caplog.text
