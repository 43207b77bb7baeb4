"""matching/index/columns.py: what comes out is an attribute value, whatever went in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.index.columns import Columns
from headgate.matching.values import known

CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=2), st.just([1])
)


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_a_column_is_what_its_cells_are_known_as(cells: list[object]) -> None:
    column = Columns({"a": cells}, len(cells))["a"]  # type: ignore[dict-item]
    assert list(map(repr, column)) == [repr(known(cell)) for cell in cells]


def test_a_clean_column_is_not_copied() -> None:
    for cells in (["x", None], [1, 2**63 - 1, -(2**63)], [1.5, float("nan"), True]):
        assert Columns({"a": cells}, len(cells))["a"] is cells


def test_a_missing_column_is_recognised() -> None:
    columns = Columns({"a": [1, 2]}, 2)
    assert columns["b"] is columns.nulls == (None, None)
    assert columns["a"] is not columns.nulls


def test_columns_with_bools_are_known_once_they_are_read() -> None:
    columns = Columns({"a": [True, 2], "b": [1, 2]}, 2)
    assert [columns[name] for name in "ab"] and list(columns.boolean) == ["a"]
