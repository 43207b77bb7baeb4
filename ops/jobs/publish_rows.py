"""Reads files with Spark into the columns of events: flattens structs, applies the command line's expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..exits import UsageError

__all__ = ["Columns", "check_names", "flat_columns", "format_of", "mapped", "read_files"]

_FORMATS = {"parquet": "parquet", "csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
_COMPRESSED = {"gz", "bz2", "zst", "snappy"}


_NUMBER = re.compile(r"[-+]?(\d+[.,:/-]?)+\d*([eE][-+]?\d+)?")
"""Numbers, dates and times."""


@dataclass(frozen=True, slots=True)
class Columns:
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


def read_files(
    session: Any, paths: Sequence[str], kind: str | None, schema: str | None, options: Mapping[str, str] | None = None
) -> Any:
    """A DataFrame of the files; `options` are for Spark's reader. Raises UsageError for what would lose rows.

    CSV has its names in the first line, of every file the same, unless option `header` says that it has none.
    """
    kind = kind or format_of(paths[0])
    said = {name.lower(): value for name, value in (options or {}).items()}
    reader = session.read
    if schema:
        reader = reader.schema(schema)
    if kind == "csv":
        separator = "\t" if ".tsv" in paths[0].lower() else ","
        usual = {"header": "true", "sep": separator, "enforceSchema": "false"}
        usual |= {} if schema else {"inferSchema": "true"}
        for name, value in usual.items():
            if name.lower() not in said:
                reader = reader.option(name, value)
    for name, value in (options or {}).items():
        reader = reader.option(name, value)
    frame = reader.format(kind).load(list(paths))
    if kind == "csv" and "header" not in said and not schema:
        check_names(paths[0], frame.columns)
    if not schema and "_corrupt_record" in frame.columns:
        text = (
            f"{paths[0]}: there are lines that are no {kind.upper()} of one object each: say --option multiLine=true "
        )
        raise UsageError(
            text + "for arrays and objects over several lines, --format, or --option mode=FAILFAST to see one"
        )
    return frame


def check_names(path: str, names: Sequence[str]) -> None:
    """Raises UsageError when the first line of a CSV file looks like data: it would be lost."""
    strange = [name for name in names if not name.strip() or _NUMBER.fullmatch(name.strip())]
    if strange:
        text = (
            f"{path}: its first line names a column {strange[0]!r}, which looks like data: say --option header=false "
        )
        raise UsageError(
            text + "(columns are _c0, _c1, ..., or as in --schema), or --option header=true if it is a name"
        )


def mapped(frame: Any, mapping: Columns) -> Any:
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
        if dict(frame.dtypes).get("value") in ("string", "binary"):  # else it is no body, and may be an attribute
            others.setdefault("value", functions.col("value"))
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
