"""matching/structure/index.py: the index of filters answers as the plain test of the paper does. (BLOOM 3.2.4.)"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headgate.matching.structure import FilterIndex, PlainFilters, index

ROOM = pytest.MonkeyPatch()
FILTERS = st.one_of(st.integers(0, 255), st.sets(st.integers(0, 63), max_size=4).map(lambda s: sum(1 << b for b in s)))


class IndexAgainstPlainTest(RuleBasedStateMachine):
    """Both through the same history."""

    @initialize()
    def begin(self) -> None:
        # Small enough that nodes divide, and divide again.
        ROOM.setattr(index, "FILTERS_TESTED_MAX", 2)
        ROOM.setattr(index, "SEARCHED_BITS_MAX", 2)
        self.index: FilterIndex[int] = FilterIndex()
        self.plain: PlainFilters[int] = PlainFilters()
        self.next = 0

    @rule(made=FILTERS, many=st.integers(1, 4))
    def add(self, made: int, many: int) -> None:
        for shift in range(many):
            self.index.add(self.next, made ^ shift)
            self.plain.add(self.next, made ^ shift)
            assert self.index.filter_of(self.next) == made ^ shift
            self.next += 1

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if len(self.index):
            key = data.draw(st.sampled_from(sorted(self.index)))
            self.index.remove(key)
            self.plain.remove(key)

    @rule(document=st.one_of(st.just(-1), st.integers(0, 2**64 - 1), FILTERS))
    def match(self, document: int) -> None:
        assert sorted(self.index.match(document)) == sorted(self.plain.match(document))

    @invariant()
    def hangs_together(self) -> None:
        if hasattr(self, "index"):
            self.index.validate()
            assert len(self.index) == len(self.plain)

    def teardown(self) -> None:
        ROOM.undo()


IndexAgainstPlainTest.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_the_index_answers_as_the_plain_test = IndexAgainstPlainTest.TestCase


def test_a_document_is_compared_with_few_of_many_filters() -> None:
    filters: FilterIndex[int] = FilterIndex()
    for key in range(4096):
        filters.add(key, 1 << key % 64 | 1 << 64 + key // 64)
    assert sorted(filters.match(1 | 1 << 64 | 1 << 65)) == [0, 64]
    statistics = filters.statistics()
    assert statistics.filters == statistics.keys == 4096
    assert statistics.tested <= 64 and statistics.passed == 2


def test_keys_of_the_same_filter_are_one_test() -> None:
    filters: FilterIndex[int] = FilterIndex()
    for key in range(1000):
        filters.add(key, 0b11)
    assert len(filters.match(0b111)) == 1000
    assert filters.statistics().tested == 1
    for key in range(1000):
        filters.remove(key)
    filters.validate()
    assert not filters and filters.match(-1) == []


def test_keys_are_taken_once() -> None:
    for filters in (FilterIndex[str](), PlainFilters[str]()):
        filters.add("a", 1)
        with pytest.raises(KeyError):
            filters.add("a", 2)
        filters.remove("a")
        with pytest.raises(KeyError):
            filters.remove("a")
