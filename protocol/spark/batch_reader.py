"""The batch reader: `spark.read.format("headgate").load()`.

Spark asks for the partitions once for a DataFrame and keeps them, so two actions on it read the same positions. A new
DataFrame asks again; who has to read the same twice says `endingOffsets`.

No filter is pushed down, though Spark 4 has a switch for it: what a filter left of the partitions is kept with the
DataFrame, and its next action, with another filter or none, gets the rest of the former (seen with 4.3.0: a count after
a filtered count counts too few). Offsets, times and `filter` say before the DataFrame is made what is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from .connecting import connected
from .options import ReadOptions
from .reading import Decoder, fetch, plan_batch

__all__ = ["BatchReader", "read_range"]


def read_range(options: ReadOptions, schema: Any, wanted: Any) -> Iterator[Any]:
    """The record batches of a range of a log, on an executor; None is the range of a read that has nothing."""
    if wanted is None:
        return
    decoder = Decoder(options.kind, schema, options.fetch_records)
    with connected(options.servers, options.request_seconds, "spark reader", options.access) as client:
        yield from fetch(client, wanted, options, decoder)


class BatchReader(DataSourceReader):
    """Reads what is between two positions of every log. `schema` is Arrow's."""

    def __init__(self, options: ReadOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """On the driver: the ranges, one a task."""
        options = self._options
        with connected(options.servers, options.request_seconds, "spark planner", options.access) as client:
            ranges = plan_batch(client, options)
        return [InputPartition(one) for one in ranges] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """On an executor: one range."""
        return read_range(self._options, self._schema, partition.value)
