"""matching/conditions.py: who asked for a condition."""

from __future__ import annotations

from matching.conditions import Condition, Place, merged_ids


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


def test_settling_touches_the_places_where_ready_answers_hold_the_ids() -> None:
    touched: list[Place] = []

    class Step:
        def touch(self, place: Place) -> None:
            touched.append(place)

    condition = of(1)
    place = Place(condition)
    place.step = Step()  # type: ignore[assignment]
    condition.places = (place,)
    condition.settle()
    assert touched == []
    condition.note(2, True)
    condition.settle()
    assert touched == [place]


def test_merged_ids_of_one_condition_are_its_own() -> None:
    one, two = of(5, 1), of(3)
    assert merged_ids([Place(one)]) is one.ids
    assert merged_ids([Place(one), Place(two)]) == (1, 3, 5)
