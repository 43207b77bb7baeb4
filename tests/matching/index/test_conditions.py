"""matching/index/conditions.py: who asked for a condition."""

from __future__ import annotations

import pytest

from headgate.matching.index.conditions import Condition, Place, ids_with, ids_without, merged_ids


def of(*identities: int) -> Condition:
    condition = Condition("`a` = 1", ("a",))
    for identity in identities:
        condition.note(identity, True)
    condition.settle()
    return condition


def test_ids_are_sorted_and_follow_who_comes_and_goes() -> None:
    condition = of(9, 3)
    assert condition.ids == (3, 9) and condition.size == 2
    condition.note(3, False)
    condition.note(5, True)
    condition.note(5, False)
    condition.note(9, False)
    condition.note(9, True)
    assert condition.ids == (3, 9), "nothing changes before a match"
    condition.settle()
    assert condition.ids == (9,) and condition.size == 1


def test_ids_stay_the_same_object_while_nobody_comes_or_goes() -> None:
    condition = of(1, 2)
    ids = condition.ids
    condition.settle()
    assert condition.ids is ids


def test_settling_takes_the_ids_out_of_ready_answers_and_puts_the_new_ones_in() -> None:
    seen: list[tuple[bool, tuple[int, ...]]] = []

    class Step:
        def touch(self, place: Place, present: bool) -> None:
            seen.append((present, place.condition.ids))

    condition = of(1)
    place = Place(condition)
    place.step = Step()  # type: ignore[assignment]
    condition.file([place])
    condition.settle()
    assert seen == []
    condition.note(2, True)
    condition.settle()
    assert seen == [(False, (1,)), (True, (1, 2))]


def test_merged_ids_of_one_condition_are_its_own() -> None:
    one, two = of(5, 1), of(3)
    assert merged_ids([Place(one)]) is one.ids
    assert merged_ids([Place(one), Place(two)]) == (1, 3, 5)


@pytest.mark.parametrize("more", [(4,), (1,), (9,), (4, 5), (0, 9), (7, 4)])
def test_ids_of_one_condition_go_into_an_answer_and_out_again(more: tuple[int, ...]) -> None:
    place = Place(of(*more))
    answer = ids_with((2, 3, 6), place)
    assert answer == tuple(sorted((2, 3, 6, *more)))
    assert ids_without(answer, place) == (2, 3, 6)
    assert ids_with((), place) is place.condition.ids and ids_without(place.condition.ids, place) == ()


def test_a_condition_knows_its_places_in_order() -> None:
    condition = of(1)
    places = [Place(condition) for _ in range(3)]
    condition.file(places)
    assert list(condition.places) == places
    condition.file(())
    assert list(condition.places) == []
