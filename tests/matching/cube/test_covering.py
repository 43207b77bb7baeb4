"""Covering, antichains, and their merge by AND."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.cube import bounded, covers, minimal, passes, with_filter

FILTERS = st.lists(st.integers(0, 2**12 - 1), max_size=30)
DOCUMENT = st.integers(0, 2**12 - 1)


def test_or_asks_for_more_than_either_and_and_for_less() -> None:
    one, other, document = 0b0011, 0b1100, 0b0111
    assert passes([one, other], document)
    assert not passes([one | other], document)
    assert passes(bounded([one, other], 1), document)


@given(FILTERS, DOCUMENT)
def test_minimal_filters_pass_exactly_what_all_of_them_pass(filters: list[int], document: int) -> None:
    kept = minimal(filters)
    assert passes(kept, document) == passes(filters, document)
    assert not any(covers(one, other) for one in kept for other in kept if one != other)


@given(FILTERS, st.integers(1, 5), DOCUMENT)
def test_a_bounded_antichain_passes_all_that_passed(filters: list[int], count_max: int, document: int) -> None:
    kept = bounded(filters, count_max)
    assert len(kept) <= count_max
    assert kept == minimal(kept)
    assert passes(kept, document) or not passes(filters, document)


@given(FILTERS, st.integers(0, 2**12 - 1))
def test_a_covered_filter_changes_nothing(filters: list[int], one: int) -> None:
    kept = minimal(filters)
    assert (with_filter(kept, one) is kept) == passes(kept, one)
