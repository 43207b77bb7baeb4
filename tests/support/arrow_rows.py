"""Rows for tests of the Spark source: Hypothesis strategies of Arrow batches, and what their events must hold."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from headgate.protocol.spark.layout import HEADERS_PREFIX, Layout

__all__ = ["LAYOUT", "batches", "expected_attributes", "schema"]

LAYOUT = Layout(
    topic="quotes/a",
    value="binary",
    maps=("headers",),
    attributes=(
        *(("tiny", "int"), ("long", "int"), ("single", "double"), ("price", "double"), ("live", "bool")),
        *(("name", "string"), ("at", "int"), ("day", "int")),
    ),
    id_column="",
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def schema() -> Any:
    """The Arrow schema of LAYOUT's columns, as Spark would give it."""
    import pyarrow as pa

    return pa.schema(
        {
            "value": pa.binary(),
            "headers": pa.map_(pa.string(), pa.string()),
            "tiny": pa.int8(),
            "long": pa.int64(),
            "single": pa.float32(),
            "price": pa.float64(),
            "live": pa.bool_(),
            "name": pa.string(),
            "at": pa.timestamp("us", tz="UTC"),
            "day": pa.date32(),
        }
    )


def _rows() -> st.SearchStrategy[dict[str, Any]]:
    long_texts = st.sampled_from([40, 300, 70_000]).map("é".__mul__)
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | long_texts
    times = st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
    values: dict[str, st.SearchStrategy[Any]] = {
        "value": st.binary(max_size=60) | st.sampled_from([300, 70_000]).map(b"z".__mul__),
        "headers": st.dictionaries(st.sampled_from(["a", "b", "é"]), st.none() | st.text(max_size=5)).map(
            lambda members: [(name.encode("utf-8", "ignore").decode(), _clean(text)) for name, text in members.items()]
        ),
        "tiny": st.integers(-128, 127),
        "long": st.integers(-(2**63), 2**63 - 1),
        "single": st.floats(width=32, allow_nan=False),
        "price": st.floats(allow_nan=False),
        "live": st.booleans(),
        "name": texts,
        "at": times,
        "day": st.dates(date(1800, 1, 1), date(2200, 1, 1)),
    }
    return st.fixed_dictionaries({name: st.none() | strategy for name, strategy in values.items()})


def _clean(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "ignore").decode()


def batches(max_size: int = 12) -> st.SearchStrategy[tuple[Any, list[dict[str, Any]]]]:
    """An Arrow batch, often a slice of a larger one, and its rows."""
    import pyarrow as pa

    def made(rows: list[dict[str, Any]], start: int) -> tuple[Any, list[dict[str, Any]]]:
        start = min(start, len(rows) - 1)
        return pa.RecordBatch.from_pylist(rows, schema=schema()).slice(start), rows[start:]

    return st.builds(made, st.lists(_rows(), min_size=1, max_size=max_size), st.integers(0, 3))


def expected_attributes(row: dict[str, Any]) -> dict[str, Any]:
    """A row's attributes, one by one: the dumb twin of the encoder."""
    attributes: dict[str, Any] = {}
    for name, form in LAYOUT.attributes:
        value = row[name]
        if isinstance(value, datetime):
            value = (value - _EPOCH) // timedelta(microseconds=1)
        elif isinstance(value, date):
            value = (value - _EPOCH.date()).days
        if value is not None:
            attributes[name] = float(value) if form == "double" else value
    for name, value in row["headers"] or ():
        if value is not None:
            attributes[HEADERS_PREFIX + name] = value
    return attributes
