"""The batch writer: `df.write.format("headgate").mode("append").save()`.

Spark makes one on the driver, pickles it once, and sends the same bytes to every task and to commit or abort. So what
is decided when it is made, the job's name and the second of planning, is the same for all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from .layout import Layout
from .options import WriteOptions
from .writing import Attempt, Run, Sent, job_name, publish_attempt

__all__ = ["BatchWriter", "Published", "summary", "tell"]

_log = logging.getLogger("headgate.spark")


@dataclass
class Published(WriterCommitMessage):
    """What one task did, for the driver."""

    job: str
    partition: int
    sent: Sent


def tell(word: str, messages: list[Any]) -> None:
    """Say what a job did, on the driver's standard error unless logging was set up in another way."""
    if not _log.hasHandlers():  # this is a process of its own, which Spark starts for the one call
        _log.addHandler(logging.StreamHandler())
        _log.setLevel(logging.INFO)
    _log.info("headgate: %s %s", word, summary(messages))


def summary(messages: list[Any]) -> str:
    """What a job did, in a line; the messages of failed tasks are None."""
    done = [message for message in messages if message is not None]
    published = sum(message.sent.published for message in done)
    skipped = sum(message.sent.skipped for message in done)
    job = done[0].job if done else "nothing"
    return f"{job}: {published} events published, {skipped} were in the log already, {len(done)} partitions"


class BatchWriter(DataSourceArrowWriter):
    """Publishes every partition once, however often its task is tried."""

    def __init__(self, options: WriteOptions, layout: Layout, run: Run) -> None:
        self._options = options
        self._layout = layout
        self._run = run

    def write(self, iterator: Iterator[Any]) -> Published:
        """On an executor: publish one partition."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "Spark calls write() inside a task"
        attempt = Attempt(self._run, context.partitionId(), context.taskAttemptId(), context.attemptNumber())
        sent = publish_attempt(self._options, self._layout, attempt, iterator)
        return Published(job_name(self._options.topic, self._run.job), attempt.partition, sent)

    def commit(self, messages: list[Any]) -> None:
        """On the driver: every task is done. Its events have been in the log since their task was."""
        tell("committed", messages)

    def abort(self, messages: list[Any]) -> None:
        """On the driver: the job failed. What its tasks had published stays; the same `producerId` goes on there."""
        tell("aborted", messages)
