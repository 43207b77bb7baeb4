"""The streaming reader: `spark.readStream.format("headgate").load()`.

Offsets are JSON by log, in Spark's checkpoint word for word; positions never change their meaning, so a batch that is
run again reads the same events. A log that began while the query ran, or was away, is read from its beginning; one
whose broker is away stays where it is, or, when it was away as the query began at the end, is read from that time on.

With Trigger.AvailableNow the ends of all logs are taken once, at the beginning, and the query stops when it is there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from .batch_reader import read_range
from .connecting import connected
from .options import ReadOptions
from .reading import SINCE, capped, end_of, ranges_of, resolved, start_of

__all__ = ["StreamReader"]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on from the checkpoint. `schema` is Arrow's. One object serves a query for its life on the driver."""

    def __init__(self, options: ReadOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema
        self._target: dict[str, int] | None = None
        self._waits_since: float | None = None

    def initialOffset(self) -> dict[str, int]:
        """Where a query without a checkpoint starts."""
        with self._connected() as client:
            return start_of(client, self._options, time.time_ns() // 1000)

    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a micro-batch takes."""
        options = self._options
        return ReadAllAvailable() if options.trigger_events is None else ReadMaxRows(options.trigger_events)

    def prepareForTriggerAvailableNow(self) -> None:
        """Everything that is there now, and nothing that comes later."""
        self._target = self._ends()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Where the next micro-batch ends."""
        end = self._ends() if self._target is None else self._target
        if self._target is None and not self._is_due(start, end):
            return start
        return capped(self._resolved(start, end), end, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def _is_due(self, start: dict[str, int], end: dict[str, int]) -> bool:
        """Whether enough events wait for a micro-batch, or have waited long enough."""
        least = self._options.trigger_events_min
        if least is None:
            return True
        now = time.monotonic()
        waiting = sum(max(0, place - start.get(partition, 0)) for partition, place in end.items())
        if waiting == 0:
            self._waits_since = None
            return True
        if self._waits_since is None:
            self._waits_since = now
        if waiting < least and now - self._waits_since < self._options.trigger_seconds:
            return False
        self._waits_since = None
        return True

    def reportLatestOffset(self) -> dict[str, int]:
        """For the query's progress: how far behind it is."""
        return self._ends()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The ranges of a micro-batch, one a task."""
        return [InputPartition(one) for one in ranges_of(self._options, self._resolved(start, end), end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """On an executor: one range."""
        return read_range(self._options, self._schema, partition.value)

    def commit(self, end: dict[str, int]) -> None:
        """The checkpoint has it; the log keeps its events for as long as its stream says."""

    def stop(self) -> None:
        """Nothing is held between two calls."""

    def _resolved(self, start: dict[str, int], end: dict[str, int]) -> dict[str, int]:
        """`start` with the logs that came back since; asks nobody unless the query began while brokers were away."""
        if SINCE not in start or end.keys() <= start.keys():
            return start
        with self._connected() as client:
            return resolved(client, self._options, start, end)

    def _ends(self) -> dict[str, int]:
        with self._connected() as client:
            return end_of(client, self._options)

    def _connected(self) -> Any:
        return connected(self._options.servers, self._options.request_seconds, "spark planner", self._options.access)
