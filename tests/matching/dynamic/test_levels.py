"""Levels of filters (STATE 4.3.3), with the vectors of the paper and of its mended slips; and the bound."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching import Delta
from headgate.matching.dynamic import Levels, Triggers, parts_of_width, place_of_width

STREAM = (10, 16, 21, 25, 30, 25, 19, 13, 8)


@pytest.mark.parametrize(("width", "parts", "place"), [
    (21, (1, 4, 16), (3, 1, 6)), (34, (2, 32), (2, 2, 4)), (48, (48,), (1, 3, 2)), (63, (3, 12, 48), (3, 3, 8)),
])  # fmt: skip
def test_a_width_is_cut_into_its_digits(width: int, parts: tuple[int, ...], place: tuple[int, int, int]) -> None:
    """4.3.3"""
    assert parts_of_width(width) == parts and place_of_width(width) == place


@pytest.mark.parametrize(("width", "told"), [
    (5, [16, 21, 30, 25, 19, 13, 8]), (10, [21, 30, 19, 8]), (21, [30, 13]), (34, []),
])  # fmt: skip
def test_what_a_filter_in_levels_is_told(width: int, told: list[int]) -> None:
    """4.3.3: after the first value, more than the filter alone at 5 and 10, and never less than the bound wants."""
    levels = Levels(STREAM[0])
    levels.subscribe(1, width)
    assert [value for value in STREAM[1:] if levels.publish(value).fired] == told


def test_proxies_are_made_kept_and_reclaimed() -> None:
    """4.3.3: 21 needs 1 and 5; a subscription at 5 stands in for no proxy, since its reference is its own."""
    levels = Levels(0)
    assert levels.subscribe(1, 21) == [1, 5]
    assert levels.subscribe(2, 21) == [] and levels.subscribe(3, 34) == [2] and levels.subscribe(4, 5) == []
    assert levels.nodes() == {0: [1], 1: [2], 3: [5], 4: [34], 6: [21]}
    assert levels.unsubscribe(1) == [] and levels.unsubscribe(4) == [] and levels.unsubscribe(2) == [1, 5]
    assert levels.nodes() == {1: [2], 4: [34]} and levels.unsubscribe(3) == [2] and not levels.nodes()
    levels.validate()


def test_a_value_that_no_proxy_passes_goes_no_further() -> None:
    levels = Levels(0)
    levels.subscribe(1, 3)
    levels.subscribe(2, 21)
    assert levels.publish(1) == ((), ((),))
    assert levels.publish(4) == ((1,), ((0,), ())), "1 passes, 4 is not more than 4"
    assert levels.publish(9) == ((1,), ((0,), (3,), ()))
    assert levels.publish(40) == ((1, 2), ((0,), (3,), ()))
    assert levels.depth == 3 and len(levels) == 2 and levels.reference(2) == 40


STEPS = st.one_of(
    st.tuples(st.just("value"), st.integers(-30, 30)),
    st.tuples(st.just("subscribe"), st.integers(1, 255)),
    st.tuples(st.just("unsubscribe"), st.integers(0, 9)),
)


@pytest.mark.slow
@given(st.lists(STEPS, max_size=60))
def test_the_bound_holds_for_whoever_comes_whenever(steps: list[tuple[str, int]]) -> None:
    """|v - T| <= c after each value, by levels and by one filter each (SF, local): what `validate` asserts."""
    levels, index = Levels(0), Triggers(["value"])
    value, number, there = 0, 0, list[int]()
    has: dict[int, int] = {}
    widths: dict[int, int] = {}
    for what, given_ in steps:
        if what == "value":
            value += given_
            fired = levels.publish(value).fired
            assert len(set(fired)) == len(fired) and set(fired) <= set(there)
            has.update(dict.fromkeys(index.fire("item", [value], 0.0), value))
        elif what == "subscribe":
            number += 1
            there.append(number)
            levels.subscribe(number, given_)
            widths[number] = given_
            index.add(number, [Delta("value", given_, False)])
            has.update(dict.fromkeys(index.fire("item", [value], 0.0), value))
        elif there:
            gone = there.pop(given_ % len(there))
            levels.unsubscribe(gone)
            index.remove(gone)
        levels.validate()
        assert all(abs(value - has[one]) <= widths[one] for one in there)


@pytest.mark.slow
def test_a_fresh_subscription_with_the_reference_of_others_breaks_the_bound() -> None:
    """What a reference of one's own is for: who takes that of the filter of 21 is more than 21 behind on some walk."""
    random, worst = Random(1), 0
    for _ in range(300):
        levels, value, has = Levels(100), 100, None
        levels.subscribe(1, 21)
        for at in range(40):
            value += random.randint(-9, 9)
            fired = levels.publish(value).fired
            if at >= 20 and (fired or has is None):
                has = value
            worst = max(worst, 0 if has is None else abs(value - has))
    assert worst > 21
