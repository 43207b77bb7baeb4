"""Files to columns: formats by their endings, structs flat, expressions where they were said."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.ops.exits import UsageError
from headgate.ops.jobs.publish_rows import flat_columns, format_of, read_files


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("a/quotes.parquet", "parquet"),
        ("quotes.snappy.parquet", "parquet"),
        ("lake/quotes", "parquet"),
        ("q.csv", "csv"),
        ("q.csv.gz", "csv"),
        ("q.TSV", "csv"),
        ("q.2026-05.jsonl", "json"),
        ("q.json", "json"),
    ],
)
def test_a_format_by_the_ending(path: str, wanted: str) -> None:
    assert format_of(path) == wanted


def test_an_unknown_ending_is_asked_about() -> None:
    with pytest.raises(UsageError, match="--format"):
        format_of("quotes.xlsx")


def test_structs_have_dotted_names_and_quoted_paths() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    inner = types.StructType([types.StructField("a`b", types.LongType())])
    order = types.StructType([types.StructField("price", types.DoubleType()), types.StructField("deep", inner)])
    schema = types.StructType([types.StructField("id", types.LongType()), types.StructField("order", order)])
    assert flat_columns(schema) == [
        ("id", "`id`"),
        ("order.price", "`order`.`price`"),
        ("order.deep.a`b", "`order`.`deep`.`a``b`"),
    ]


class Reader:
    """Notes what Spark's reader is told."""

    def __init__(self, *columns: str) -> None:
        self.said: list[Any] = []
        self.columns = columns

    @property
    def read(self) -> Reader:
        return self

    def schema(self, text: str) -> Reader:
        self.said.append(("schema", text))
        return self

    def option(self, name: str, value: str) -> Reader:
        self.said.append((name, value))
        return self

    def format(self, kind: str) -> Reader:
        self.said.append(kind)
        return self

    def load(self, paths: list[str]) -> Reader:
        self.said.append(paths)
        return self


USUAL = [("header", "true"), ("sep", ","), ("enforceSchema", "false")]


@pytest.mark.parametrize(
    ("paths", "kind", "schema", "wanted"),
    [
        (["q.parquet"], None, None, ["parquet", ["q.parquet"]]),
        (["q.csv", "r.csv"], None, None, [*USUAL, ("inferSchema", "true"), "csv"]),
        (["q.tsv"], None, "a INT", [("schema", "a INT"), USUAL[0], ("sep", "\t"), USUAL[2], "csv"]),
        (["q.data"], "json", "a INT", [("schema", "a INT"), "json"]),
    ],
)
def test_what_spark_s_reader_is_told(paths: list[str], kind: str | None, schema: str | None, wanted: list[Any]) -> None:
    reader = Reader()
    read_files(reader, paths, kind, schema)
    assert reader.said[: len(wanted)] == wanted
    assert reader.said[-1] == paths


def test_options_for_the_reader_win() -> None:
    reader = Reader()
    read_files(reader, ["q.csv"], None, None, {"Header": "false", "sep": ";"})
    assert [word for word in reader.said if word[0] in ("header", "sep", "Header")] == [
        ("Header", "false"),
        ("sep", ";"),
    ]


@pytest.mark.parametrize("name", ["8.5", "-1", "1e5", "2026-05-01", "12:30:05", " "])
def test_a_first_line_that_looks_like_data_is_not_lost(name: str) -> None:
    with pytest.raises(UsageError, match="header=false"):
        read_files(Reader("symbol", name), ["q.csv"], None, None)
    read_files(Reader("symbol", name), ["q.csv"], None, None, {"header": "true"})
    read_files(Reader("symbol", name), ["q.csv"], None, "a STRING, b STRING")


def test_lines_that_are_no_json_are_not_published() -> None:
    with pytest.raises(UsageError, match="multiLine=true"):
        read_files(Reader("_corrupt_record"), ["q.json"], None, None)
