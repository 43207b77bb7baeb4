"""Files -> the columns of events: read by Spark, structs flattened, the expressions of the command line applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..exits import UsageError

__all__ = ["Mapping", "flat_columns", "format_of", "mapped", "read_files"]

_FORMATS = {"parquet": "parquet", "csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
_COMPRESSED = {"gz", "bz2", "zst", "snappy"}


@dataclass(frozen=True, slots=True)
class Mapping:
    """Expressions in Spark's SQL; empty where nothing was said. No attributes means every column."""

    topic: str
    attributes: tuple[tuple[str, str], ...]
    body: str
    event_id: str
    where: str


def format_of(path: str) -> str:
    """The format of a file by its ending, Parquet for a folder. Raises UsageError for an unknown ending."""
    endings = [word.lower() for word in PurePosixPath(path).name.split(".")[1:]]
    while endings and endings[-1] in _COMPRESSED:
        endings.pop()
    if not endings:
        return "parquet"
    found = _FORMATS.get(endings[-1])
    if found is None:
        raise UsageError(f"{path}: say --format parquet, csv or json; its ending does not tell")
    return found


def read_files(session: Any, paths: Sequence[str], kind: str | None, schema: str | None) -> Any:
    """A DataFrame of the files. CSV has its names in the first line."""
    kind = kind or format_of(paths[0])
    reader = session.read
    if schema:
        reader = reader.schema(schema)
    elif kind == "csv":
        reader = reader.option("inferSchema", "true")
    if kind == "csv":
        separator = "\t" if ".tsv" in paths[0].lower() else ","
        reader = reader.option("header", "true").option("sep", separator)
    return reader.format(kind).load(list(paths))


def mapped(frame: Any, mapping: Mapping) -> Any:
    """The rows that are published, with the columns of an event."""
    from pyspark.sql import functions

    if mapping.where:
        frame = frame.where(functions.expr(mapping.where))
    said = {"topic": mapping.topic, "value": mapping.body}
    named = {name: functions.expr(text) for name, text in said.items() if text}
    if mapping.event_id:
        named["event_id"] = functions.expr(mapping.event_id).cast("string")
    if mapping.attributes:
        others = {name: functions.expr(text) for name, text in mapping.attributes}
        if "value" in frame.columns:
            others["value"] = functions.col("value")
    else:
        others = {name: functions.col(path) for name, path in flat_columns(frame.schema)}
    return frame.select(*[column.alias(name) for name, column in (others | named).items()])


def flat_columns(schema: Any, before: str = "", path: str = "") -> list[tuple[str, str]]:
    """(name, path) of every column that is no struct; those within structs have dotted names, as in every client."""
    found: list[tuple[str, str]] = []
    for field in schema.fields:
        quoted = path + "`" + field.name.replace("`", "``") + "`"
        if field.dataType.typeName() == "struct":
            found += flat_columns(field.dataType, f"{before}{field.name}.", f"{quoted}.")
        else:
            found.append((before + field.name, quoted))
    return found
