"""Records from Arrow columns hold what records made row by row hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

pa = pytest.importorskip("pyarrow")

from headgate.protocol.data import decode_record  # noqa: E402
from headgate.protocol.spark.errors import BadRow  # noqa: E402
from headgate.protocol.spark.layout import Layout  # noqa: E402
from headgate.protocol.spark.writing.records import encode_records  # noqa: E402
from tests.support.arrow_rows import LAYOUT, batches, expected_attributes  # noqa: E402


def layout(*attributes: tuple[str, str], value: str = "", headers: bool = False) -> Layout:
    return Layout("quotes/a", value, ("headers",) if headers else (), attributes, "")


@settings(max_examples=150, deadline=None)
@given(batches())
def test_records_agree_with_rows(made: tuple[Any, list[dict[str, Any]]]) -> None:
    batch, rows = made
    records, columns = encode_records(batch, LAYOUT)
    assert len(records) == len(rows)
    for row, record in zip(rows, records.to_pylist(), strict=True):
        attributes, body, content_type = decode_record(record)
        wanted = expected_attributes(row)
        assert attributes == wanted
        assert {name: type(value) for name, value in attributes.items()} == {
            name: type(value) for name, value in wanted.items()
        }
        assert (body, content_type) == (row["value"] or b"", "")
    for name, column in columns.items():
        assert column.to_pylist() == [expected_attributes(row).get(name) for row in rows]


def test_nothing_but_a_body_and_nothing_at_all() -> None:
    batch = pa.RecordBatch.from_pylist([{"value": "é"}, {"value": None}], schema=pa.schema({"value": pa.string()}))
    records, _ = encode_records(batch, layout(value="string"))
    assert [decode_record(record) for record in records.to_pylist()] == [({}, "é".encode(), ""), ({}, b"", "")]
    records, _ = encode_records(batch, layout())
    assert [decode_record(record) for record in records.to_pylist()] == [({}, b"", "")] * 2


def test_sixteen_attributes_have_a_longer_header() -> None:
    names = [f"a{number}" for number in range(16)]
    batch = pa.RecordBatch.from_pylist([dict.fromkeys(names, 1), dict.fromkeys(names[:15], 2)])
    records, _ = encode_records(batch, layout(*((name, "int") for name in names)))
    assert [len(decode_record(record)[0]) for record in records.to_pylist()] == [16, 15]


def test_nan_and_infinities_are_kept() -> None:
    values = [float("nan"), float("inf"), float("-inf"), -0.0]
    records, _ = encode_records(pa.RecordBatch.from_pydict({"x": values}), layout(("x", "double")))
    assert [repr(decode_record(one)[0]["x"]) for one in records.to_pylist()] == ["nan", "inf", "-inf", "-0.0"]


def test_text_that_is_no_utf8_is_refused() -> None:
    column = pa.array([b"fine", b"\xff"]).view(pa.string())
    with pytest.raises(BadRow, match="base64"):
        encode_records(pa.RecordBatch.from_arrays([column], ["name"]), layout(("name", "string")))


def test_a_text_over_the_limit_is_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"name": ["x" * (1 << 20) + "x"]})
    with pytest.raises(BadRow, match="'name'"):
        encode_records(batch, layout(("name", "string")))


def test_names_of_headers_are_checked() -> None:
    column = pa.array([[("x" * 300, "v")]], pa.map_(pa.string(), pa.string()))
    with pytest.raises(BadRow, match="'headers'"):
        encode_records(pa.RecordBatch.from_arrays([column], ["headers"]), layout(headers=True))
    many = pa.array([[(f"h{number}", "v") for number in range(1024)]], pa.map_(pa.string(), pa.string()))
    batch = pa.RecordBatch.from_arrays([many, pa.array([1])], ["headers", "a"])
    with pytest.raises(BadRow, match="1024"):
        encode_records(batch, layout(("a", "int"), headers=True))
