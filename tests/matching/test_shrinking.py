"""matching/shrinking.py: memory comes back, entries and their order stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.limits import SHRINK_SIZE_MIN
from headgate.matching.shrinking import ShrinkingDict


def test_memory_comes_back_as_entries_go() -> None:
    table: ShrinkingDict[int, int] = ShrinkingDict()
    for key in range(10_000):
        table[key] = key
    full = table.__sizeof__()
    for key in range(9_990):
        table.drop(key)
    assert table.__sizeof__() < full / 50 and list(table) == list(range(9_990, 10_000))


@given(st.lists(st.integers(0, 300), max_size=400))
def test_it_is_a_dictionary(keys: list[int]) -> None:
    table, twin = ShrinkingDict[int, int](), dict[int, int]()
    for key in range(SHRINK_SIZE_MIN * 4):
        table[key] = twin[key] = -key
    for turn, key in enumerate([*keys, *range(0, 300, 2)]):
        if key in twin:
            assert table.drop(key) == twin.pop(key)
        elif turn % 2:
            table[key] = twin[key] = turn
    assert list(table.items()) == list(twin.items())


def test_what_is_not_there_cannot_go() -> None:
    with pytest.raises(KeyError):
        ShrinkingDict[str, int]().drop("a")
