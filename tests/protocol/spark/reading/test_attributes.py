"""Attributes as Arrow arrays: typed as declared, unlike types NULL, nothing guessed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from headgate.protocol.data.records import encode_record  # noqa: E402
from headgate.protocol.spark.errors import UnsupportedType  # noqa: E402
from headgate.protocol.spark.reading import attributes  # noqa: E402
from headgate.protocol.spark.reading.opening import Opened, open_one_by_one  # noqa: E402

TEXTS = pa.map_(pa.string(), pa.string())
MEMBERS = pa.struct({"l": pa.int64(), "d": pa.float64(), "s": pa.string(), "b": pa.bool_()})
VALUES: list[Any] = [5, 2.5, "x", True, None]
DOUBLES = [0.0, -0.0, 1.0, 8.5, 1e-4, 9.999e-5, 1e10, 1e15, 1e16, 1.5e300, 5e-324, float("inf"), float("nan")]


def opened(rows: list[dict[str, Any]]) -> Opened:
    return open_one_by_one([encode_record(row, b"") for row in rows])


def attribute_array(rows: list[dict[str, Any]], kind: Any) -> Any:
    return attributes.attribute_array(opened(rows), kind)


def header_array(rows: list[dict[str, Any]], kind: Any) -> Any:
    return attributes.header_array(opened(rows), kind)


def typed(kind: Any) -> list[Any]:
    """Each of VALUES as this type."""
    rows = [{"a": value} for value in VALUES]
    array = attribute_array(rows, pa.struct({"a": kind}))
    array.validate(full=True)
    return [row["a"] for row in array.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (pa.int64(), [5, None, None, None, None]),
        (pa.int32(), [5, None, None, None, None]),
        (pa.float64(), [5.0, 2.5, None, None, None]),
        (pa.string(), [None, None, "x", None, None]),
        (pa.bool_(), [None, None, None, True, None]),
        (pa.date32(), [date(1970, 1, 6), None, None, None, None]),
        (pa.timestamp("us", tz="UTC"), [datetime(1970, 1, 1, 0, 0, 0, 5, UTC), None, None, None, None]),
    ],
)
def test_a_value_of_another_type_is_null(kind: Any, wanted: list[Any]) -> None:
    assert typed(kind) == wanted


def test_a_split_attribute_has_its_value_in_the_member_of_its_type() -> None:
    assert [[row["l"], row["d"], row["s"], row["b"]] for row in typed(MEMBERS)] == [
        [5, None, None, None],
        [None, 2.5, None, None],
        [None, None, "x", None],
        [None, None, None, True],
        [None, None, None, None],
    ]


def test_an_absent_attribute_is_null_and_an_integer_too_wide_as_well() -> None:
    kind = pa.struct({"a": pa.int32(), "b": pa.string()})
    assert attribute_array([{"a": 2**31}, {}], kind).to_pylist() == [{"a": None, "b": None}] * 2


def test_a_map_of_texts() -> None:
    rows: list[dict[str, Any]] = [{"a": 5, "b": 2.5, "c": "x", "d": False, "e": None, "headers.h": "v"}, {}]
    assert attribute_array(rows, TEXTS).to_pylist() == [[("a", "5"), ("b", "2.5"), ("c", "x"), ("d", "false")], []]
    assert header_array(rows, TEXTS).to_pylist() == [[("h", "v")], []]


def test_a_map_of_typed_values() -> None:
    rows: list[dict[str, Any]] = [{"a": 5, "b": None, "headers.h": "v"}, {}, {"c": True, "d": "x", "e": 1.5}]
    array = attribute_array(rows, pa.map_(pa.string(), MEMBERS))
    array.validate(full=True)
    none = dict.fromkeys("ldsb")
    assert array.to_pylist() == [
        [("a", none | {"l": 5}), ("headers.h", none | {"s": "v"})],
        [],
        [("c", none | {"b": True}), ("d", none | {"s": "x"}), ("e", none | {"d": 1.5})],
    ]


def test_other_types_are_refused() -> None:
    with pytest.raises(UnsupportedType, match="attributesSchema"):
        attribute_array([{}], pa.struct({"a": pa.list_(pa.int64())}))
    with pytest.raises(UnsupportedType, match="MAP"):
        attribute_array([{}], pa.string())


@given(st.lists(st.floats() | st.floats(-1e12, 1e12) | st.integers(-(10**6), 10**6).map(float), min_size=1))
def test_doubles_are_written_as_python_writes_them(values: list[float]) -> None:
    values += DOUBLES
    found = [dict(row)["a"] for row in attribute_array([{"a": value} for value in values], TEXTS).to_pylist()]
    assert found == [repr(value) for value in values]


def test_an_attribute_of_several_types_as_texts() -> None:
    rows = attribute_array([{"a": value, "b": 1} for value in VALUES], TEXTS).to_pylist()
    assert [dict(row).get("a") for row in rows] == ["5", "2.5", "x", "true", None]


def test_the_attributes_that_a_column_shows() -> None:
    assert attributes.wanted_names(TEXTS) is None
    assert attributes.wanted_names(pa.struct({"a": pa.int64(), "b.c": MEMBERS})) == {"a", "b.c"}
