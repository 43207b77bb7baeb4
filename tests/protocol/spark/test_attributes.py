"""Attributes as Arrow arrays: typed as declared, unlike types NULL, nothing guessed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from headgate.protocol.spark.attributes import attribute_array, header_array  # noqa: E402
from headgate.protocol.spark.errors import UnsupportedType  # noqa: E402

TEXTS = pa.map_(pa.string(), pa.string())
MEMBERS = pa.struct({"l": pa.int64(), "d": pa.float64(), "s": pa.string(), "b": pa.bool_()})
VALUES: list[Any] = [5, 2.5, "x", True, None]


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
