"""The batch writer: the task's place in the job becomes producer and epoch; the driver hears what was done."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from headgate.protocol.spark.batch_writer import BatchWriter, Published, summary  # noqa: E402
from headgate.protocol.spark.layout import plan_layout  # noqa: E402
from headgate.protocol.spark.options import write_options  # noqa: E402
from headgate.protocol.spark.writing import (  # noqa: E402
    Attempt,
    Run,
    Sent,
    attempts,
)
from tests.support.fake_log import FakeClient, FakeLog  # noqa: E402
from tests.support.fake_task import FakeTask, in_task  # noqa: E402

RUN = Run("job", 1_000_000_000, False)


def writer() -> BatchWriter:
    options = write_options({"headgate.bootstrap.servers": "one:7400", "topic": "q/a"})
    return BatchWriter(options, plan_layout([("n", "bigint")], options), RUN)


def test_a_task_publishes_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient(FakeLog())
    monkeypatch.setattr(attempts, "connected", client.connected)
    in_task(monkeypatch, FakeTask(3, 17))
    copy = pickle.loads(pickle.dumps(writer()))  # the way to the executor
    message = copy.write(iter([pa.RecordBatch.from_pydict({"n": [1, 2]})]))
    assert client.log.values("n") == [1, 2]
    assert client.opened == [("q/job/3", Attempt(RUN, 3, 17).epoch, 8)]
    again = pickle.loads(pickle.dumps(message))  # and back
    assert (again.job, again.partition, again.sent.published) == ("q/job", 3, 2)


def test_the_driver_hears_of_all_and_failed_tasks_say_nothing() -> None:
    messages = [Published("job", 0, Sent(5, 1)), None, Published("job", 2, Sent(7, 0))]
    assert summary(messages) == "job: 12 events published, 1 were in the log already, 2 partitions"
    assert summary([None]).startswith("nothing: 0 events")


@pytest.mark.parametrize(("end", "word"), [(BatchWriter.commit, "committed"), (BatchWriter.abort, "aborted")])
def test_the_end_of_a_job_is_logged(
    end: Callable[[BatchWriter, list[Any]], None], word: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "headgate.spark"):
        end(writer(), [Published("job", 0, Sent(5, 1))])
    assert f"{word} job: 5 events" in caplog.text
