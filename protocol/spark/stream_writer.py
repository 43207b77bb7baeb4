"""The streaming writer: `df.writeStream.format("headgate")`.

A micro-batch is published as a job of its own, named after the query and the batch. Spark runs a batch that was
aborted again under the same number, with the same rows, also after a restart from the checkpoint: its producers go on
where they were. The id of the query is in its checkpoint, and lives as long as that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from .attempts import Attempt, epoch_of, publish_attempt
from .batch_writer import Published, summary
from .layout import Layout
from .options import WriteOptions

__all__ = ["StreamWriter", "batch_job"]

_log = logging.getLogger("headgate.spark")


def batch_job(producer_id: str, query: str | None, batch: str | None) -> str:
    """The job of a micro-batch: `producerId` takes the place of the query's id."""
    return f"{producer_id or query}/{batch}"


class StreamWriter(DataSourceStreamArrowWriter):
    """Publishes every micro-batch once, however often it, or one of its tasks, is tried."""

    def __init__(self, options: WriteOptions, layout: Layout, planned_seconds: int) -> None:
        self._options = options
        self._layout = layout
        self._planned_seconds = planned_seconds

    def write(self, iterator: Iterator[Any]) -> Published:
        """On an executor: publish one partition of a micro-batch. Its number is told by the task's properties alone."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "Spark calls write() inside a task"
        query = context.getLocalProperty("sql.streaming.queryId")
        job = batch_job(self._options.producer_id, query, context.getLocalProperty("streaming.sql.batchId"))
        # A batch that failed may have been planned by a driver with other partitions: its ids are all asked for.
        epoch = epoch_of(self._planned_seconds, context.taskAttemptId())
        attempt = Attempt(job, context.partitionId(), epoch, rerun=True)
        sent = publish_attempt(self._options, self._layout, attempt, iterator)
        return Published(job, attempt.partition, sent)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """On the driver: the micro-batch is done."""
        _log.info("committed %s", summary(messages))

    def abort(self, messages: list[Any], batchId: int) -> None:
        """On the driver: the micro-batch will be run again under its number, so its producers stay."""
        _log.warning("aborted %s", summary(messages))
