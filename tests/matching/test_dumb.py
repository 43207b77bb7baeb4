"""matching/dumb.py: the dumb twin of the index."""

from __future__ import annotations

import pytest

from headgate.matching.dumb import DumbIndex
from headgate.matching.language import parse_condition
from headgate.matching.topics import parse_pattern


def test_it_evaluates_everything() -> None:
    index = DumbIndex()
    index.add(2, parse_pattern("q/*"), parse_condition("a = 1"))
    index.add(1, parse_pattern("q"))
    assert index.match(["q", "q/x", "q/y"], 3, {"a": [1, 1, None]}) == [((1,), [0, 2]), ((1, 2), [1])]
    assert index.match(("q/x",), 2, {"a": [1, 2]}) == [((1, 2), [0]), ((1,), [1])]
    assert index.attributes() == ("a",)
    assert len(index) == 2 and 1 in index
    index.remove(1)
    assert index.match(("q",), 2, {}) == []
    index.validate()


def test_it_guards_its_numbers_as_the_index_does() -> None:
    index = DumbIndex()
    index.add(1, parse_pattern("q"))
    with pytest.raises(KeyError):
        index.add(1, parse_pattern("q"))
    with pytest.raises(KeyError):
        index.remove(2)
