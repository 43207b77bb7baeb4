"""The state of a cluster as a DataFrame: `spark.read.format("headgate").option("subscribe", "state").load()`.

A row is a broker, a stream at a broker, a subscription, or a log at a broker, as `headgate ring`, `streams`, `subs`
and `logs` show them: `what` says which, `fields` has everything else, every value as text. All of it is asked of the
cluster when the rows are read, by one task, over one connection: each action on the DataFrame asks again. A broker that
does not answer has a row with `state` `down` and the reason.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pyspark.sql.datasource import DataSourceReader, InputPartition

from headgate.protocol.errors import ErrorCode, Refused

from .connecting import connected
from .options import ReadOptions

__all__ = ["Asking", "StateReader", "state_rows"]

_NO_ANSWER = (ErrorCode.UNAVAILABLE, ErrorCode.NOT_FOUND, ErrorCode.LIMIT)
_PAGED = {"streams": ("stream", "stream"), "subs": ("subscription", "id")}
"""Question -> what a row of its answer is, and the member that the next page begins after."""


class Asking(Protocol):
    """What is asked of a client; `protocol.blocking` has it."""

    def ask(self, verb: str, **details: Any) -> Any:
        """The answer to a question."""


def state_rows(client: Asking, stream: str, now: int) -> Iterator[dict[str, Any]]:
    """Rows of the columns, of all streams or of one; `now` in microseconds."""
    details = {"stream": stream} if stream else {}
    ring = client.ask("ring")
    for broker in ring["brokers"]:
        name = str(broker["name"])
        yield _row("broker", name, name, "", broker, now)
        if broker.get("state") == "down":
            continue
        try:
            for verb, (what, key) in _PAGED.items():
                for row in _pages(client, verb, key, {"at": name, **details}):
                    yield _row(what, name, str(row.get(key)), _stream_of(row), row, now)
            for row in _logs(client, {"at": name, **details}):
                yield _row("log", name, f"{row['broker']}@{row['epoch']}", str(row["stream"]), row, now)
        except Refused as error:
            if error.code not in _NO_ANSWER:
                raise
            yield _row("broker", name, name, "", {"state": "down", "reason": error.text}, now)


def _stream_of(row: Mapping[str, Any]) -> str:
    return str(row.get("stream") or row.get("pattern", "")).split("/", 1)[0]


def _pages(client: Asking, verb: str, key: str, details: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    after: dict[str, Any] = {}
    while page := client.ask(verb, **details, **after):
        yield from page
        after = {"after": page[-1][key]}


def _logs(client: Asking, details: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    seen = 0
    while page := client.ask("logs", **details, after=seen):
        yield from page
        seen += len(page)


def _row(what: str, broker: str, name: str, stream: str, fields: Mapping[str, Any], now: int) -> dict[str, Any]:
    texts = {key: value if type(value) is str else json.dumps(value) for key, value in fields.items()}
    return {"what": what, "broker": broker, "name": name, "stream": stream, "fields": list(texts.items()), "at": now}


class StateReader(DataSourceReader):
    """Reads what the brokers say of themselves. `schema` is Arrow's, some or all of the columns."""

    def __init__(self, options: ReadOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """One task: it is one conversation."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """On an executor: ask, and hand over."""
        import pyarrow as pa

        options = self._options
        with connected(options.servers, options.request_seconds, "spark state", options.access) as client:
            rows = list(state_rows(client, options.topic, time.time_ns() // 1000))
        columns = []
        for field in self._schema:
            values = [row[field.name] for row in rows]
            is_time = pa.types.is_timestamp(field.type)
            columns.append(pa.array(values, pa.int64()).cast(field.type) if is_time else pa.array(values, field.type))
        if columns:
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)
        else:
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
