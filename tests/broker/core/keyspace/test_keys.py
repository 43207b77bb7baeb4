"""Keys: one key for what `=` calls equal, another for all else, and an arc that holds everything in a range."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import (
    RING_SIZE,
    Domain,
    Segment,
    Span,
    declared_domain,
    distance,
    equality_key,
    prefix_key,
)
from headgate.broker.core.keyspace.keys import CELLS_MAX, attribute_start, order_preserving_key
from headgate.matching.values import equal, less, less_or_equal

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 3),
    st.integers(2**53 - 2, 2**53 + 2),
    st.floats(),
    st.sampled_from([0.0, -0.0, 1.0, 2.0**53, math.nan]),
    st.text(max_size=3),
    st.sampled_from(["1", "1.0", "true", ""]),
)
numbers = st.one_of(
    st.integers(-40, 40), st.integers(-(2**63), 2**63 - 1), st.floats(), st.floats(-40, 40), st.sampled_from([8.3, 8.7])
)
bounds = st.one_of(st.none(), numbers)


def domain(minimum: float = 0.0, maximum: float = 20.0, precision: float = 0.01) -> Domain:
    found = declared_domain("quotes", "price", minimum, maximum, precision)
    assert found is not None
    return found


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    minimum = draw(st.one_of(st.integers(-50, 50), st.floats(-50, 50)))
    width = draw(st.one_of(st.integers(1, 100), st.floats(0.001, 100)))
    found = declared_domain("s", "a", minimum, minimum + width, draw(st.sampled_from([0.001, 0.01, 0.1, 0.3, 1, 7])))
    assume(found is not None)
    assert found is not None
    return found


@st.composite
def spans(draw: st.DrawFn) -> Span:
    return Span(draw(bounds), draw(bounds), draw(st.booleans()), draw(st.booleans()))


# --- One value, one key -----------------------------------------------------------------------------------------------


@given(values, values)
def test_equal_values_have_one_key(
    left: bool | int | float | str | None, right: bool | int | float | str | None
) -> None:
    if equal(left, right):
        assert equality_key("s", "a", left) == equality_key("s", "a", right)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (0.0, -0.0), (-0.0, 0), (math.nan, -math.nan), (2**53 + 1, 2.0**53)],
)
def test_numbers_that_are_equal_share_their_key(left: float, right: float) -> None:
    assert equality_key("quotes", "price", left) == equality_key("quotes", "price", right)


def test_unlike_values_have_different_keys() -> None:
    different = [1, True, "1", 0, False, "", "true", 1.5, "1.0", math.nan, math.inf, -math.inf, "\ud800"]
    assert len({equality_key("s", "a", value) for value in different}) == len(different)


def test_null_has_no_key() -> None:
    assert equality_key("s", "a", None) is None


def test_kinds_and_splits_of_the_same_letters_are_apart() -> None:
    keys = [
        equality_key("ab", "c", "d"),
        equality_key("a", "bc", "d"),
        equality_key("a", "b", "cd"),
        prefix_key("ab"),
        prefix_key("ab/c"),
        attribute_start("ab", "c"),
        attribute_start("a", "bc"),
    ]
    assert len(set(keys)) == len(keys)
    assert all(key is not None and 0 <= key < RING_SIZE for key in keys)


def test_keys_are_the_same_for_ever() -> None:
    assert equality_key("quotes", "symbol", "OTE") == 14520460154843596054
    assert equality_key("quotes", "price", 1) == 16771943234437124203
    assert prefix_key("quotes/NYSE") == 11368720685891401433
    assert attribute_start("quotes", "price") == 5754802388391143039


# --- Spans ------------------------------------------------------------------------------------------------------------


@given(spans(), numbers)
def test_a_span_contains_what_the_comparisons_say(span: Span, value: float) -> None:
    below, above = (less_or_equal if span.with_low else less), (less_or_equal if span.with_high else less)
    expected = (span.low is None or below(span.low, value)) and (span.high is None or above(value, span.high))
    assert span.contains(value) == expected
    if expected:
        assert not span.is_empty()


def test_no_span_contains_what_is_not_a_number() -> None:
    assert not any(Span().contains(value) for value in (None, True, "5"))
    assert Span().contains(math.nan)
    assert Span(low=5).contains(math.nan)
    assert not Span(high=5).contains(math.nan)


@pytest.mark.parametrize("span", [Span(3, 2), Span(2, 2, with_low=False), Span(2, 2.0, with_high=False)])
def test_a_span_that_nothing_can_be_in_is_empty(span: Span) -> None:
    assert span.is_empty()
    assert domain().segment(span) is None
    assert len(domain().span_cells(span)) == 0


# --- The order-preserving hash ----------------------------------------------------------------------------------------


@given(domains(), spans(), numbers)
def test_what_is_in_a_span_has_its_key_on_the_arc(some: Domain, span: Span, value: float) -> None:
    if not span.contains(value):
        return
    segment, key = some.segment(span), some.key(value)
    assert segment is not None
    assert key is not None
    assert segment.covers(key)
    assert some.cell(value) in some.span_cells(span)


@given(domains(), numbers, numbers)
def test_cells_keep_the_order(some: Domain, left: float, right: float) -> None:
    if less_or_equal(left, right):
        assert 0 <= some.cell(left) <= some.cell(right) < some.cells


@given(domains())
def test_cells_go_once_around_and_the_maximum_stops_short_of_the_minimum(some: Domain) -> None:
    cells = sorted({0, 1, some.cells // 2, some.cells - 1} & set(range(some.cells)))
    offsets = [distance(some.start, some.key_of_cell(cell)) for cell in cells]
    assert offsets == sorted(set(offsets))
    assert some.key(some.minimum) == some.start
    assert distance(some.start, some.key_of_cell(some.cells - 1)) >= RING_SIZE // some.cells * (some.cells - 1)


def test_a_share_of_the_domain_is_that_share_of_the_ring() -> None:
    segment = domain().segment(Span(8.30, 8.70))
    assert segment is not None
    assert distance(segment.low, segment.high) / RING_SIZE == pytest.approx(0.4 / 20.01, rel=1e-9)
    whole = domain().segment(Span())
    assert whole == Segment(domain().start, domain().key_of_cell(2000))


def test_what_is_no_number_has_no_place_among_ranges() -> None:
    assert [domain().key(value) for value in (None, True, "8.4")] == [None, None, None]


def test_values_outside_the_domain_lie_at_its_ends() -> None:
    some = domain()
    assert [some.cell(value) for value in (-5, -math.inf, 0, 20, 99, math.inf, math.nan)] == [0, 0, 0] + 4 * [2000]
    assert some.span_cells(Span(low=50)) == range(2000, 2001)
    assert some.span_cells(Span(high=-1)) == range(1)


@pytest.mark.parametrize(
    "numbers_",
    [(5, 5, 1), (6, 5, 1), (0, 1, 0), (0, 1, -1), (0, math.inf, 1), (math.nan, 1, 1), (0, 1, math.nan), (0, 1, 1e-300)],
)
def test_a_declaration_that_makes_no_domain_is_none(numbers_: tuple[float, float, float]) -> None:
    assert declared_domain("s", "a", *numbers_) is None


def test_the_finest_domain_still_keeps_its_cells_apart() -> None:
    finest = declared_domain("s", "a", 0, CELLS_MAX - 3, 1)
    assert finest is not None
    assert declared_domain("s", "a", 0, CELLS_MAX, 1) is None
    keys = [finest.key_of_cell(cell) for cell in (0, 1, 2, finest.cells - 1)]
    assert len(set(keys)) == 4


def test_a_domain_declared_wrongly_by_ourselves_is_stopped() -> None:
    with pytest.raises(AssertionError):
        Domain("s", "a", 5, 5, 1)


def test_the_paper_counts_multiples_of_the_precision() -> None:
    some = domain(0, 10, 1)
    assert some.grid_cells(Span(0, 4, False, False)) == range(1, 4)
    assert some.grid_cells(Span(0, 4)) == range(5)
    assert some.grid_cells(Span(0.5, 3.5)) == range(1, 4)
    assert some.grid_cells(Span(0.5, 3.5, False, False)) == range(1, 4)
    assert some.grid_cells(Span(-5, 50)) == range(11)
    assert some.grid_cells(Span()) == range(11)
    assert len(some.grid_cells(Span(11, 12))) == 0
    assert len(some.grid_cells(Span(-3, -2))) == 0
    assert len(some.grid_cells(Span(7, 3))) == 0


@given(st.integers(0, 100), st.integers(0, 100), st.booleans(), st.booleans(), st.integers(0, 100))
def test_on_the_grid_the_paper_s_count_is_exact(low: int, high: int, one: bool, two: bool, cell: int) -> None:
    some = domain(0, 10, 0.1)
    span = Span(low / 10, high / 10, one, two)
    assert (cell in some.grid_cells(span)) == span.contains(cell / 10)


def test_the_paper_s_hash_in_a_ring_of_eight() -> None:
    assert [order_preserving_key(5, cell, 8, ring_size=8) for cell in (1, 2, 3)] == [6, 7, 0]


@given(domains(), st.floats(0, 1))
def test_the_cell_of_a_cell_s_key_is_that_cell(some: Domain, share: float) -> None:
    cell = min(some.cells - 1, int(share * some.cells))
    assert some.cell_at(some.key_of_cell(cell)) == cell
    assert cell in (0, some.cell_at(some.key_of_cell(cell) - 1))
