"""The streaming writer: `df.writeStream.format("headgate")`.

A query is a job, and each of its partitions a producer that lives as long as the checkpoint: the id of the query is in
there. A micro-batch is told by its number, which every frame carries. Spark runs a batch that was aborted again under
the same number, with the same rows, also after a restart from the checkpoint: its producers go on where they were.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from .batch_writer import Published, summary
from .layout import Layout
from .options import WriteOptions
from .writing import Attempt, Run, job_name, publish_attempt

__all__ = ["StreamWriter"]

_log = logging.getLogger("headgate.spark")


class StreamWriter(DataSourceStreamArrowWriter):
    """Publishes every micro-batch once, however often it, or one of its tasks, is tried."""

    def __init__(self, options: WriteOptions, layout: Layout, planned_us: int) -> None:
        self._options = options
        self._layout = layout
        self._planned_us = planned_us

    def write(self, iterator: Iterator[Any]) -> Published:
        """On an executor: publish one partition of a micro-batch. Its number is told by the task's properties alone."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "Spark calls write() inside a task"
        job = self._options.producer_id or str(context.getLocalProperty("sql.streaming.queryId"))
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        # A batch that failed may have been planned by an earlier driver.
        run = Run(job, self._planned_us, rerun=True, batch=batch, streaming=True)
        attempt = Attempt(run, context.partitionId(), context.taskAttemptId(), context.attemptNumber())
        sent = publish_attempt(self._options, self._layout, attempt, iterator)
        return Published(f"{job_name(self._options.topic, job)} batch {batch}", attempt.partition, sent)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """On the driver: the micro-batch is done."""
        _log.info("committed %s", summary(messages))

    def abort(self, messages: list[Any], batchId: int) -> None:
        """On the driver: the micro-batch will be run again under its number, so its producers stay."""
        _log.warning("aborted %s", summary(messages))
