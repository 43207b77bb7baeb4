"""matching/index/ranges.py: it finds what a list of all ranges would find, and changes stay local."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headgate.matching.index import Answers, RangeTable, Span, range_blocks, ranges

NUMBERS = st.one_of(
    st.integers(-12, 12), st.floats(-12, 12), st.sampled_from([0.0, -0.0, inf, -inf, nan, 2**53, 1e300])
)
LOWS = st.one_of(st.just(-inf), st.integers(-10, 10).map(float), st.floats(-10, 10))
WIDTHS = st.one_of(st.just(inf), st.sampled_from([5e-324, 0.5, 1.0, 3.0, 20.0]), st.floats(0.001, 20))
ROOM = pytest.MonkeyPatch()


ANSWERS: Answers[Span, Span] = Answers(
    tuple,
    lambda spans, span: (*spans, span),
    lambda spans, span: tuple(one for one in spans if one is not span),
    lambda span: 1,
)


def holds(span: Span, value: float) -> bool:
    """The dumb twin: the meaning of a half-open range, which without an upper end holds infinity and NaN."""
    return not value < span.low and (span.high == inf or value < span.high)


class TableAgainstList(RuleBasedStateMachine):
    """A table with tiny blocks, and the list of what is in it."""

    def __init__(self) -> None:
        super().__init__()
        ROOM.setattr(ranges, "BLOCK_SPANS_MAX", 3)
        ROOM.setattr(ranges, "COVERED_BLOCKS_MAX", 1)
        self.table: RangeTable[Span, Span] = RangeTable(ANSWERS)
        self.present: list[Span] = []

    def teardown(self) -> None:
        ROOM.undo()

    @initialize(items=st.sampled_from([0, 2, 64]), blocks=st.sampled_from([1, 3]), kept=st.sampled_from([6, 60]))
    def choose_what_is_amended(self, items: int, blocks: int, kept: int) -> None:
        for module in (range_blocks, ranges):
            ROOM.setattr(module, "AMENDED_ITEMS_MAX", items)
        ROOM.setattr(ranges, "AMENDED_BLOCKS_MAX", blocks)
        ROOM.setattr(range_blocks, "BLOCK_CELL_ITEMS_MAX", kept)

    @rule(low=LOWS, width=WIDTHS)
    def add(self, low: float, width: float) -> None:
        high = inf if width == inf else (0.0 if low == -inf else low) + width
        if low < high:
            span = Span(low, high)
            self.table.add(span)
            self.present.append(span)

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        twin = data.draw(st.sampled_from(self.present))
        span = Span(twin.low, twin.high)
        self.table.add(span)
        self.present.append(span)

    @precondition(lambda self: self.present)
    @rule(data=st.data(), count=st.integers(1, 4))
    def remove(self, data: st.DataObject, count: int) -> None:
        for _ in range(min(count, len(self.present))):
            self.table.remove(self.present.pop(data.draw(st.integers(0, len(self.present) - 1))))

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        span = data.draw(st.sampled_from(self.present))
        self.table.touch(span, False)
        self.table.touch(span, True)

    @rule(values=st.lists(NUMBERS, min_size=1, max_size=6))
    def find(self, values: list[float]) -> None:
        for value in [*values, *(end for span in self.present[:5] for end in (span.low, span.high))]:
            hits: list[tuple[Span, ...]] = []
            self.table.find(value, hits)
            found = [id(span) for answer in hits for span in answer]
            assert len(found) == len(set(found)), "a span was found twice"
            assert set(found) == {id(span) for span in self.present if holds(span, value)}
            assert all(hits), "an empty answer"

    @invariant()
    def holds_together(self) -> None:
        self.table.validate()
        assert set(self.table.spans()) == set(self.present)


TestTableAgainstList = TableAgainstList.TestCase
TestTableAgainstList.settings = settings(max_examples=60, stateful_step_count=40)


def find(table: RangeTable[Span, Span], value: float) -> list[tuple[Span, ...]]:
    hits: list[tuple[Span, ...]] = []
    table.find(value, hits)
    return hits


@pytest.fixture
def steps() -> Iterator[RangeTable[Span, Span]]:
    """1,000 ranges of width 3 at 0, 1, 2, ..."""
    table: RangeTable[Span, Span] = RangeTable(ANSWERS)
    for low in range(1000):
        table.add(Span(float(low), low + 3.0))
    yield table
    table.validate()


def test_the_answer_of_a_cell_is_ready_and_the_same_each_time(steps: RangeTable[Span, Span]) -> None:
    (answer,) = find(steps, 500.25)
    assert sorted(span.low for span in answer) == [498.0, 499.0, 500.0]
    assert find(steps, 500.75)[0] is answer
    assert find(steps, 501.0)[0] is not answer


def test_a_change_leaves_the_ready_answers_of_other_blocks(steps: RangeTable[Span, Span]) -> None:
    far, near = find(steps, 900.5)[0], find(steps, 100.5)[0]
    steps.add(Span(100.0, 101.0))
    assert find(steps, 900.5)[0] is far
    assert len(find(steps, 100.5)[0]) == len(near) + 1


def test_a_span_that_leaves_and_enters_is_in_the_answers_once(steps: RangeTable[Span, Span]) -> None:
    answer, far = find(steps, 500.5)[0], find(steps, 900.5)[0]
    steps.touch(answer[0], False)
    assert answer[0] not in find(steps, 500.5)[0]
    steps.touch(answer[0], True)
    assert sorted(find(steps, 500.5)[0], key=id) == sorted(answer, key=id) and find(steps, 900.5)[0] is far


def test_blocks_come_and_go_with_the_ranges(steps: RangeTable[Span, Span]) -> None:
    spans = sorted(steps.spans(), key=lambda span: span.low)
    assert steps.blocks > 1000 // ranges.BLOCK_SPANS_MAX
    for span in spans[5:]:
        steps.remove(span)
    steps.validate()
    assert steps.blocks == 1 and steps.size == 5


def test_wide_ranges_cost_one_place_whatever_their_width(steps: RangeTable[Span, Span]) -> None:
    assert steps.wide == 0
    wide = [Span(10.0, 900.0), Span(-inf, 700.0), Span(50.5, inf)]
    for span in wide:
        steps.add(span)
    assert steps.wide == 3 and all(span.blocks == 0 for span in wide)
    assert {id(span) for answer in find(steps, 600.5) for span in answer} >= set(map(id, wide))
    for span in wide:
        steps.remove(span)
    assert steps.wide == 0


def test_ranges_that_become_wide_as_others_come_are_moved() -> None:
    table: RangeTable[Span, Span] = RangeTable(ANSWERS)
    first = Span(0.0, 1000.0)
    table.add(first)
    assert first.blocks == 1
    for low in range(1000):
        table.add(Span(float(low), low + 0.5))
    assert first.blocks == 0 and first in find(table, 500.75)[0]
    table.validate()


def test_many_ranges_with_the_same_ends_stay_cheap() -> None:
    table: RangeTable[Span, Span] = RangeTable(ANSWERS)
    spans = [Span(1.0, 5.0) for _ in range(5000)]
    for span in spans:
        table.add(span)
    assert len(find(table, 3.0)[0]) == 5000 and find(table, 5.0) == [] and table.blocks == 3
    for span in spans:
        table.remove(span)
    table.validate()
    assert table.size == 0


def test_what_a_block_keeps_ready_is_bounded() -> None:
    table: RangeTable[Span, Span] = RangeTable(ANSWERS)
    for low in range(ranges.BLOCK_SPANS_MAX):
        table.add(Span(float(low), 1000.0 + low))
    for value in range(1050):
        find(table, value + 0.5)
    (block,) = table._blocks
    assert block.cells is not None
    assert sum(len(cell) for cell in block.cells if cell) == block.kept <= range_blocks.BLOCK_CELL_ITEMS_MAX
