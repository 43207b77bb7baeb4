"""matching/index/steps.py: each step finds what it should, by column and by row, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.matching.index.columns import Columns
from headgate.matching.index.conditions import Condition, Place
from headgate.matching.index.steps import Branch, Found, Hits, LeafStep, Tally
from headgate.matching.values import Value


def condition(identity: int) -> Condition:
    made = Condition(str(identity), ())
    made.note(identity, True)
    made.settle()
    return made


def file(step: LeafStep, place: Place) -> Place:
    place.step = step
    place.condition.file([*place.condition.places, place])
    step.put(place)  # type: ignore[attr-defined]
    return place


def both(branch: Branch, rows: range | list[int], **cells: list[Value]) -> dict[int, list[int]]:
    """What a branch finds, taken by column and by row, which must be the same."""
    columns = Columns(cells, len(next(iter(cells.values()))))
    swept: Found = {}
    for step in branch.steps:
        step.sweep(rows, columns, swept)
    for row in rows:
        hits: Hits = []
        for step in branch.steps:
            step.collect(row, columns, hits)
        assert sorted(hits) == sorted(swept.get(row, []))
    return {row: sorted(i for ids in hits for i in ids) for row, hits in swept.items()}


def test_a_key_leads_to_a_branch() -> None:
    root = Branch()
    for number, key in enumerate(["x", 1, None, (True,)]):
        file(root.keyed("a").below(key).ready(), Place(condition(number)))
    cells: list[Value] = ["x", 1, 1.0, True, None, "y", False]
    assert both(root, range(7), a=cells) == {0: [0], 1: [1], 2: [1], 3: [3], 4: [2]}
    assert both(root, [1, 3], a=cells) == {1: [1], 3: [3]}
    assert both(root, range(2), b=[1, 1]) == {0: [2], 1: [2]}, "an absent attribute is NULL"


def test_a_prefix_leads_to_a_branch() -> None:
    root = Branch()
    for number, prefix in enumerate(["ab", "abc", "x"]):
        file(root.prefixed("a").below(prefix).ready(), Place(condition(number)))
    assert both(root, range(5), a=["abcd", "ab", "a", "xyz", 7]) == {0: [0, 1], 1: [0], 3: [2]}
    assert both(root, range(1), b=[1]) == {}


def test_ranges_match_numbers_only() -> None:
    root = Branch()
    file(root.ranged("a", None), Place(condition(1), low=0.0, high=10.0))
    assert both(root, range(6), a=[5, 0.0, 10, "5", True, None]) == {0: [1], 1: [1]}


def test_ranges_with_a_test_are_tested() -> None:
    root, tally = Branch(), Tally()
    file(root.ranged("a", tally), Place(condition(1), ("b",), lambda b: b == "x", 0.0, 10.0))
    file(root.ranged("a", tally), Place(condition(2), ("a", "b"), lambda a, b: a == b, 0.0, 10.0))
    file(root.ranged("a", None), Place(condition(3), low=5.0, high=6.0))
    assert both(root, range(3), a=[5, 4, 50], b=["x", 4, "x"]) == {0: [1, 3], 1: [2]}
    assert (tally.tested, tally.passed) == (8, 4)


def test_ready_conditions_match_every_row_with_one_answer() -> None:
    root = Branch()
    for number in (2, 1):
        file(root.ready(), Place(condition(number)))
    columns, found = Columns({}, 3), dict[int, Hits]()
    root.steps[0].sweep(range(3), columns, found)
    assert found == {0: [(1, 2)], 1: [(1, 2)], 2: [(1, 2)]} and found[0][0] is found[1][0]


def test_a_changed_subscriber_changes_the_ready_answer() -> None:
    root = Branch()
    ready, ranged = root.ready(), root.ranged("a", None)
    places = [file(ready, Place(condition(1))), file(ranged, Place(condition(2), low=0.0, high=1.0))]
    assert both(root, range(1), a=[0]) == {0: [1, 2]}
    for place in places:
        place.condition.note(10 * place.condition.ids[0], True)
        place.condition.settle()
    assert both(root, range(1), a=[0]) == {0: [1, 2, 10, 20]}


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b")])
def test_scanned_conditions_are_tested_on_the_rows_given(names: tuple[str, ...]) -> None:
    root, tally = Branch(), Tally()
    file(root.scanned(tally), Place(condition(1), names, lambda *values: sum(values) == len(values)))
    expected = {row: [1] for row in ((1, 2) if names else (0, 1, 2))}
    assert both(root, range(3), a=[0, 1, 1], b=[5, 1, 1]) == expected
    assert both(root, [0, 2], a=[0, 1, 1], b=[5, 1, 1]) == {row: [1] for row in expected if row != 1}
    assert tally.tested == 10


def test_a_condition_that_overlaps_itself_is_reported_once() -> None:
    root, tally = Branch(), Tally()
    twice = condition(1)
    twice.overlapping = True
    for attribute in ("a", "b"):
        file(root.keyed(attribute).below(1).scanned(tally), Place(twice, ("a",), lambda a: True))
    assert both(root, range(3), a=[1, 1, 0], b=[1, 0, 1]) == {0: [1], 1: [1], 2: [1]}


def test_nothing_is_left_behind() -> None:
    root, tally = Branch(), Tally()
    ways: list[Callable[[], LeafStep]] = [
        lambda: root.keyed("a").below(1).ready(),
        lambda: root.keyed("a").below(2).prefixed("b").below("x").scanned(tally),
        lambda: root.prefixed("b").below("x").keyed("a").below(1).ranged("c", None),
        lambda: root.ranged("c", tally),
        lambda: root.scanned(tally),
        lambda: root.ready(),
    ]
    places = [file(way(), Place(condition(i), ("a",), lambda a: True, 0.0, 1.0)) for i, way in enumerate(ways)]
    assert {place for step in root.steps for place in step.places()} == set(places)
    assert root.keyed("a") is root.keyed("a") and root.ranged("c", tally) is not root.ranged("c", None)
    root.prune(root.ranged("c", None))
    for place in places:
        assert root.steps and place.step is not None
        place.step.take(place)
    assert root.steps == []
