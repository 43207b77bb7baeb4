"""matching/index/range_blocks.py: bounds, cells and answers of one block. Whole tables: test_ranges.py."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from math import inf, nan
from random import Random

import pytest

from headgate.matching.index import Answers, Span
from headgate.matching.index.range_blocks import Block, packed, with_end, without_end
from headgate.matching.limits import AMENDED_ITEMS_MAX, BLOCK_CELL_ITEMS_MAX

ANSWERS: Answers[Span, Span] = Answers(
    tuple,
    lambda spans, span: (*spans, span),
    lambda spans, span: tuple(one for one in spans if one is not span),
    lambda span: 1,
)


def block_of(*spans: Span, low: float = 0.0, high: float = 100.0) -> Block[Span, Span]:
    block: Block[Span, Span] = Block(low, high, [], [()], [])
    for span in spans:
        block.put(span, ANSWERS.joined)
    return block


def answer_at(block: Block[Span, Span], value: float) -> tuple[Span, ...] | None:
    return block.cells[bisect_right(block.bounds, value)]


def check(block: Block[Span, Span]) -> Block[Span, Span]:
    """All that is ready is what would be made."""
    block.validate()
    for answer, spans in block.ready():
        assert sorted(map(id, answer)) == sorted(map(id, spans))
    return block


@pytest.fixture
def spans() -> Iterator[list[Span]]:
    """Forty ranges that overlap, more ends than are kept as a list."""
    rng = Random(3)
    yield [Span(low, low + 20.0) for low in (rng.uniform(-10, 90) for _ in range(40))]


def test_packed_ends_are_searched_as_a_list_would_be() -> None:
    rng = Random(1)
    for count in (0, 1, 31, 32, 33, 200):
        ends = sorted(rng.uniform(-5, 5) for _ in range(count))
        found = packed(list(ends))
        assert list(found) == ends
        for value in (*ends, -inf, inf, nan, 0, -0.0, 2**70):
            assert bisect_right(found, value) == bisect_right(ends, value)


def test_ends_come_and_go_one_by_one_through_both_forms() -> None:
    rng = Random(2)
    ends: list[float] = []
    form = packed([])
    forms = set()
    for turn in range(400):
        if ends and rng.random() < (0.3 if turn < 200 else 0.7):
            place = rng.randrange(len(ends))
            del ends[place]
            form = without_end(form, place)
        else:
            end = rng.random()
            place = bisect_right(ends, end)
            ends.insert(place, end)
            form = with_end(form, place, end)
        assert list(form) == ends
        forms.add(type(form))
    assert forms == {list, memoryview}


def test_a_change_keeps_the_answers_ready(spans: list[Span]) -> None:
    block = check(block_of(*spans))
    assert None not in block.cells, "an answer was forgotten"
    for span in spans[::2]:
        block.take(span, ANSWERS.parted)
        check(block)
        assert None not in block.cells
    assert set(answer_at(block, 50.0) or ()) == {span for span in spans[1::2] if span.low <= 50.0 < span.high}


def test_without_a_way_to_amend_the_answers_are_forgotten_where_the_span_is(spans: list[Span]) -> None:
    block = block_of(*spans)
    block.put(Span(40.0, 41.0), None)
    assert answer_at(block, 40.5) is None and answer_at(block, 80.0) is not None
    made = block.fill(bisect_right(block.bounds, 40.5), ANSWERS.merge)
    assert answer_at(check(block), 40.5) is made


def test_an_answer_too_long_to_amend_is_forgotten() -> None:
    block = block_of(*[Span(0.0, 100.0) for _ in range(AMENDED_ITEMS_MAX + 1)])
    assert len(answer_at(block, 5.0) or ()) == AMENDED_ITEMS_MAX + 1
    block.put(Span(0.0, 100.0), ANSWERS.joined)
    assert answer_at(check(block), 5.0) is None


def test_all_answers_are_forgotten_when_they_become_too_much() -> None:
    block = block_of()
    for low in range(80):
        block.put(Span(float(low), 90.0 + low / 100), ANSWERS.joined)
        assert check(block).kept <= BLOCK_CELL_ITEMS_MAX
    assert None in block.cells


def test_halves_have_the_answers_of_the_whole_and_so_has_the_block_that_they_are_joined_to(spans: list[Span]) -> None:
    block = block_of(*spans)
    left, right = map(check, block.split())
    for value in range(100):
        whole = set(answer_at(block, value) or ())
        assert set(answer_at(left if value < left.high else right, value) or ()) == whole
        assert set(answer_at(check(left.joined(right)), value) or ()) == whole
    assert {*left.spans(), *right.spans()} == set(spans)


def test_bounds_of_ranges_that_are_gone_go_too(spans: list[Span]) -> None:
    block = block_of(*spans)
    for span in spans[3:]:
        block.take(span, ANSWERS.parted)
    assert len(block.bounds) <= 3 * len(block.inner) + 16 and None not in check(block).cells
