"""STATE 4.3: levels of filters as a model, with the vectors of the paper and of its mended slips."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.ops.bench.papers import __main__ as papers
from headgate.ops.bench.papers.models import Levels, mfd_messages, parts_of_width, place_of_width, sf_messages

WIDTHS = st.lists(st.integers(1, 63), min_size=1, max_size=8)
STREAM = (10, 16, 21, 25, 30, 25, 19, 13, 8)


@pytest.mark.parametrize(("width", "parts", "place"), [
    (21, (1, 4, 16), (3, 1, 6)), (34, (2, 32), (2, 2, 4)), (48, (48,), (1, 3, 2)), (63, (3, 12, 48), (3, 3, 8)),
])  # fmt: skip
def test_a_width_is_cut_into_its_digits(width: int, parts: tuple[int, ...], place: tuple[int, int, int]) -> None:
    """4.3.3"""
    assert parts_of_width(width) == parts and place_of_width(width) == place


@pytest.mark.parametrize(("width", "delivered"), [
    (5, [10, 16, 21, 30, 25, 19, 13, 8]), (10, [10, 21, 30, 19, 8]), (21, [10, 30, 13]), (34, [10]),
])  # fmt: skip
def test_what_a_filter_in_levels_delivers(width: int, delivered: list[int]) -> None:
    """4.3.3: more than the filter alone at 5 and 10, and never less than the bound wants."""
    levels = Levels()
    levels.subscribe(width)
    assert [value for value in STREAM if levels.publish(value).delivered] == delivered


def test_proxies_are_what_a_filter_needs_before_it() -> None:
    levels = Levels()
    for width in (21, 5, 34):
        levels.subscribe(width)
    assert levels.filters() == [1, 2, 5, 34, 21]


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.lists(st.integers(1, 63), min_size=1, max_size=8), st.lists(st.integers(0, 200), max_size=60), st.integers(0, 9)
)
def test_the_bound_holds_for_those_from_the_beginning_and_those_who_join(
    widths: list[int], values: list[int], late: int
) -> None:
    """Theorem 1, as far as it is true: |v - T| <= c."""
    levels, has, joined = Levels(), dict[int, int](), 0
    for width in widths[1:]:
        levels.subscribe(width)
    for at, value in enumerate(values):
        if at == late:
            joined = levels.join(widths[0])
        has.update(dict.fromkeys(levels.publish(value).delivered, value))
        assert all(abs(value - has[width]) <= width for width in set(widths[1:]))
        assert not joined or abs(value - has[joined]) <= widths[0]


def test_a_fresh_subscription_with_the_reference_of_others_breaks_the_bound() -> None:
    """What `join` is for: with the state of the filter of 21, some walk leaves a newcomer more than 21 behind."""
    random, worst = Random(1), 0
    for _ in range(300):
        levels, value, has = Levels(), 100, None
        levels.subscribe(21)
        for at in range(40):
            value += random.randint(-9, 9)
            passed = levels.publish(value)
            if at >= 20 and (21 in passed.delivered or has is None):
                has = value
            worst = max(worst, 0 if has is None else abs(value - has))
    assert worst > 21


def test_at_one_broker_a_segment_all_are_the_same() -> None:
    assert sf_messages(400, 1) == mfd_messages(400, 1, 3, range(9))
    assert mfd_messages(400, 9, 1, range(9)) < sf_messages(400, 9) < mfd_messages(400, 9, 3, range(9))


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main(["filters"], filter_days=1, filter_values=110) == 0
    assert "brokers a segment" in capsys.readouterr().out
