"""What was handed out live: each number of late, and up to where of what is older; and a dumb twin that keeps all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client.delivered import DeliveredSet, source_of
from headgate.protocol.limits import DELIVERED_EVENTS_MAX, DELIVERED_LIVES_MAX, REPLAY_LATE_SECONDS

ANN, LATER, BOB = "00000000000000aa-1", "00000000000000aa-2", "00000000000000bb-1"
LATE_US = int(REPLAY_LATE_SECONDS * 1e6)


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (ANN, ("00000000000000aa", 1)),
        ("aa-1f", ("aa", 31)),
        ("a-b-2", ("a-b", 2)),
        ("fake", ("fake", 0)),
        ("a-x", ("a-x", 0)),
    ],
)
def test_an_origin_names_a_broker_and_a_life(origin: str, source: tuple[str, int]) -> None:
    assert source_of(origin) == source


def test_what_was_handed_out_is_known_by_number() -> None:
    heard = DeliveredSet()
    heard.add(ANN, 0, [3, 4, 9])
    heard.add(ANN, 0, [6])
    heard.add(ANN, 0, [])
    assert heard.unheard(ANN, [2, 3, 4, 5, 6, 9, 10]) == [0, 3, 6]
    assert heard.unheard(LATER, [3]) == heard.unheard(BOB, [3]) == [0]
    assert heard.is_complete and not heard.settled(ANN, 0)


def test_whether_all_of_a_range_was_handed_out() -> None:
    heard = DeliveredSet()
    heard.add(ANN, 0, [3, 4, 5, 9])
    assert heard.has_all(ANN, 3, 6) and heard.has_all(ANN, 7, 7)
    assert not heard.has_all(ANN, 2, 6) and not heard.has_all(ANN, 3, 7) and not heard.has_all(LATER, 3, 4)
    assert not heard.has_all(BOB, 0, 10**15)
    heard.settle(ANN, 8)
    assert heard.has_all(ANN, 0, 10) and not heard.has_all(ANN, 0, 10**15)


def test_what_is_old_is_settled_up_to_its_last_number() -> None:
    heard = DeliveredSet()
    heard.add(ANN, 0, [3, 9])
    heard.add(ANN, LATE_US, [12])
    assert heard.is_complete, "something may still come late"
    heard.add(ANN, LATE_US + 1, [15])
    assert not heard.is_complete
    assert heard.settled(ANN, 9) and not heard.settled(ANN, 10)
    assert heard.unheard(ANN, [1, 8, 9, 10, 12, 15, 16]) == [3, 6]
    assert not heard.settled(LATER, 1) and not heard.settled(BOB, 1)
    heard.add(LATER, 2 * LATE_US + 2, [0])
    assert heard.settled(ANN, 15) and not heard.settled(LATER, 0)


def test_a_later_life_settles_the_former_one_whatever_its_clock_says() -> None:
    heard = DeliveredSet()
    heard.add(LATER, 0, [5])
    heard.add(LATER, LATE_US + 1, [6])
    assert heard.settled(ANN, 1_000_000) and heard.settled(LATER, 5) and not heard.settled(LATER, 6)
    assert heard.unheard(ANN, [7, 8]) == []


def test_nothing_is_forgotten_for_its_age_while_it_is_told_so() -> None:
    heard = DeliveredSet()
    heard.keeps_old = True
    heard.add(ANN, 0, [3])
    heard.add(ANN, 10 * LATE_US, [8])
    assert heard.is_complete and heard.unheard(ANN, [3, 5, 8]) == [1]
    heard.keeps_old = False
    heard.add(ANN, 10 * LATE_US, [9])
    assert heard.settled(ANN, 3) and not heard.settled(ANN, 5)


def test_so_many_are_kept_and_no_more() -> None:
    heard = DeliveredSet()
    heard.keeps_old = True
    for start in range(0, 2 * DELIVERED_EVENTS_MAX, 4096):
        heard.add(ANN, 0, range(start, start + 4096))
    assert heard.settled(ANN, DELIVERED_EVENTS_MAX - 1) and not heard.settled(ANN, DELIVERED_EVENTS_MAX)
    assert heard.unheard(ANN, [0, 2 * DELIVERED_EVENTS_MAX - 1, 2 * DELIVERED_EVENTS_MAX]) == [2]


def test_too_much_of_a_later_life_does_not_hide_the_rest_of_a_former_one() -> None:
    heard = DeliveredSet()
    heard.keeps_old = True
    heard.add(ANN, 0, [1, 2, 3])
    for start in range(0, 2 * DELIVERED_EVENTS_MAX, 4096):
        heard.add(LATER, LATE_US, range(start, start + 4096))
    assert heard.unheard(ANN, [1, 2, 3, 4, 5]) == [3, 4] and heard.unheard(LATER, [0, 4095]) == []
    assert heard.settled(ANN, 3) and not heard.settled(ANN, 4)
    assert not heard.settled(LATER, 0), "whoever skips to it skips what is before it in the log"
    assert heard.has_all(ANN, 0, 4) and not heard.has_all(ANN, 0, 5) and heard.has_all(LATER, 0, 9000)
    heard.keeps_old = False
    heard.add(LATER, 3 * LATE_US, [2 * DELIVERED_EVENTS_MAX])
    assert heard.settled(ANN, 5) and heard.unheard(ANN, [4, 5]) == [] and heard.has_all(ANN, 0, 10**15)


def test_so_many_lives_are_told_apart_and_no_more() -> None:
    heard = DeliveredSet()
    heard.keeps_old = True
    lives = [f"00000000000000aa-{life:x}" for life in range(1, DELIVERED_LIVES_MAX + 4)]
    for origin in lives:
        heard.add(origin, 0, [7])
    heard.add(f"00000000000000aa-{999:x}", 0, range(DELIVERED_EVENTS_MAX))
    assert [len(heard.unheard(origin, [7, 8])) for origin in lives] == [0, 0, 1] + [1] * DELIVERED_LIVES_MAX
    assert heard.settled(lives[2], 7) and not heard.settled(lives[3], 7)
    heard.settle(lives[9], 3)
    assert heard.settled(lives[9], 7) and not heard.settled(lives[9], 8)


def test_somebody_may_say_up_to_where_all_is_settled() -> None:
    heard = DeliveredSet()
    heard.settle(LATER, 7)
    heard.settle(ANN, 9)
    assert heard.settled(ANN, 100) and heard.settled(LATER, 7) and not heard.settled(LATER, 8)
    assert not heard.is_complete


@given(st.lists(st.tuples(st.integers(0, LATE_US // 3), st.lists(st.integers(0, 3), max_size=4)), max_size=60))
def test_what_is_not_settled_is_known_exactly(steps: list[tuple[int, list[int]]]) -> None:
    heard, number, time = DeliveredSet(), 0, 0
    all_of_it: set[int] = set()
    for pause, skips in steps:
        time += pause
        numbers = [number := number + 1 + skip for skip in skips]
        heard.add(ANN, time, numbers)
        all_of_it |= set(numbers)
        for one in range(number + 3):
            if not heard.settled(ANN, one):
                assert heard.unheard(ANN, [one]) == ([] if one in all_of_it else [0])
