"""Behind the front door: options are checked, columns planned, and the reader or writer made that fits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from .batch_reader import BatchReader
from .batch_writer import BatchWriter
from .connecting import connected
from .errors import BadOption, UnsupportedMode
from .layout import Layout, plan_layout
from .options import STATE, ReadOptions, WriteOptions, read_options, write_options
from .schemas import schema_text
from .state_reader import StateReader
from .stream_reader import StreamReader
from .stream_writer import StreamWriter
from .writing import Patience, Run, job_name, planned_behind

__all__ = ["make_reader", "make_stream_reader", "make_stream_writer", "make_writer", "schema_of"]


def schema_of(options: Mapping[str, str]) -> str:
    """The columns of the log; a mistake in the options is told as soon as a DataFrame is made."""
    checked = read_options(options)
    return schema_text(checked, lambda: _declared(checked))


def _declared(options: ReadOptions) -> dict[str, Any]:
    """The attributes that the schemas of the streams declare. Raises BadOption when two of them do not agree."""
    found: dict[str, Any] = {}
    with connected(options.servers, options.request_seconds, "spark planner", options.access) as client:
        for stream in options.patterns:
            answer = client.ask("schema.get", stream=stream)
            for name, entry in answer.get("schema", {}).get("attributes", {}).items():
                if found.setdefault(name, entry)["type"] != entry["type"]:
                    cure = f"written out: the schemas of {options.topic} declare {name!r} with different types"
                    raise BadOption("attributesSchema", "declared", cure)
    return found


def make_reader(options: Mapping[str, str], schema: Any) -> BatchReader | StateReader:
    """For `spark.read`."""
    checked = _checked(read_options(options))
    reader = StateReader if checked.kind == STATE else BatchReader
    return reader(checked, _arrow_schema(schema))


def make_stream_reader(options: Mapping[str, str], schema: Any) -> StreamReader:
    """For `spark.readStream`."""
    checked = _checked(read_options(options, streaming=True))
    if checked.ending != "latest" or checked.ending_time is not None:
        raise UnsupportedMode("a streaming read with an end", "take 'endingOffsets' and 'endingTimestamp' away")
    return StreamReader(checked, _arrow_schema(schema))


def make_writer(options: Mapping[str, str], schema: Any, overwrite: bool) -> BatchWriter:
    """For `df.write`. The job's name and the time of planning are made here, so all tasks have the same."""
    checked, layout = _planned(options, schema, overwrite)
    job, planned_us = checked.producer_id or uuid.uuid4().hex, time.time_ns() // 1000
    if checked.producer_id and checked.idempotence != "none":
        with connected(checked.servers, checked.ack_seconds, "spark planner", checked.access) as client:
            name = job_name(checked.topic, job)
            planned_us = planned_behind(client, name, planned_us, Patience(checked.ack_seconds))
    return BatchWriter(checked, layout, Run(job, planned_us, bool(checked.producer_id)))


def make_stream_writer(options: Mapping[str, str], schema: Any, overwrite: bool) -> StreamWriter:
    """For `df.writeStream`."""
    checked, layout = _planned(options, schema, overwrite)
    return StreamWriter(checked, layout, time.time_ns() // 1000)


def _planned(options: Mapping[str, str], schema: Any, overwrite: bool) -> tuple[WriteOptions, Layout]:
    if overwrite:
        cure = 'a log only grows; write .mode("append"), or outputMode("append"), or take another stream'
        raise UnsupportedMode("mode 'overwrite'", cure)
    checked = write_options(options)
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    packed = next((field.dataType for field in schema.fields if field.name == "attributes"), None)
    fields = None
    if packed is not None and packed.typeName() == "struct":
        fields = [(field.name, field.dataType.simpleString()) for field in packed.fields]
    return checked, plan_layout(columns, checked, fields)


def _checked(options: ReadOptions) -> ReadOptions:
    """Spark does not ask for the schema when the user gave one; what it would have found wrong is found here."""
    schema_text(options)
    return options


def _arrow_schema(schema: Any) -> Any:
    """What Spark expects of our batches, to the letter."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
