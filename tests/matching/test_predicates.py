"""matching/predicates.py: anchors, tables, and the conditions that are found through them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from matching.language import parse_condition
from matching.predicates import Found, PredicateIndex, anchors
from matching.values import Value


def match(index: PredicateIndex, rows: Sequence[int] | None = None, **columns: Sequence[Value]) -> Found:
    found: Found = {}
    index.match(range(len(next(iter(columns.values())))) if rows is None else rows, columns, found)
    index.validate()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", [("a", (1,))]),
        ("1 = a AND b > 2", [("a", (1,))]),
        ("a = 'x' AND b IN (1, 2.0)", [("a", ("x",)), ("b", (1, 2.0))]),
        ("a IN (1, 2, 1)", [("a", (1, 2))]),
        ("a = 1 OR a = 'x'", [("a", (1, "x"))]),
        ("a = 1 OR b = 1", []),
        ("a = 1 OR a > 5", []),
        ("a = TRUE", []),
        ("a = NULL", []),
        ("a = b", []),
        ("a <> 1", []),
        ("NOT a = 1", []),
        ("a + 1 = 2", []),
        ("a = 9007199254740993", []),
        ("a IN (1, 9007199254740993)", []),
        ("a", []),
    ],
)
def test_anchors_are_what_a_hash_table_can_find(text: str, expected: list[tuple[str, tuple[Value, ...]]]) -> None:
    assert [(anchor.attribute, anchor.keys) for anchor in anchors(parse_condition(text))] == expected


def test_an_anchored_condition_is_found_and_its_rest_is_checked() -> None:
    index = PredicateIndex()
    index.add(7, parse_condition("symbol = 'OTE' AND price BETWEEN 1 AND 2 AND volume > 10"))
    symbols = ["OTE", "OTE", "IBM", "OTE", None]
    found = match(index, symbol=symbols, price=[1.5, 3, 1.5, 1, 1], volume=[11, 11, 11, 5, 11])
    assert found == {0: [(7,)]}
    assert index.scanned == 0 and len(index) == 1


def test_one_and_one_point_zero_are_one_key_and_true_is_not() -> None:
    index = PredicateIndex()
    index.add(1, parse_condition("a = 1"))
    assert sorted(match(index, a=[1, 1.0, True, "1", 2])) == [0, 1]


def test_unhashable_values_are_no_values() -> None:
    index = PredicateIndex()
    index.add(1, parse_condition("a = 1"))
    assert sorted(match(index, a=[[1], 1, {}])) == [1]  # type: ignore[list-item]


def test_identical_conditions_are_one_and_stand_for_all_who_asked() -> None:
    index = PredicateIndex()
    tree = parse_condition("a = 1")
    conditions = [index.add(number, parse_condition(text)) for number, text in ((9, "a=1"), (3, "A = 1"), (5, "a = 1"))]
    assert conditions[0] is conditions[2] and conditions[0] is not conditions[1]
    assert match(index, a=[1], A=[0]) == {0: [(5, 9)]}
    index.remove(9, conditions[0])
    assert index.add(9, tree) is conditions[0]
    index.remove(5, conditions[0])
    assert match(index, a=[1], A=[1]) == {0: [(9,), (3,)]}


def test_the_ids_are_the_same_object_while_nobody_comes_or_goes() -> None:
    index = PredicateIndex()
    for number in range(3):
        index.add(number, parse_condition("a = 1"))
    assert match(index, a=[1])[0][0] is match(index, a=[1])[0][0]


def test_the_most_selective_anchor_is_chosen() -> None:
    index = PredicateIndex()
    for number in range(20):
        index.add(number, parse_condition(f"symbol = 'S{number}'"))
    condition = index.add(99, parse_condition("exchange = 'NYSE' AND symbol = 'S1'"))
    assert condition.anchor is not None and condition.anchor.attribute == "symbol"
    alone = PredicateIndex().add(1, parse_condition("a IN (1, 2, 3) AND b = 1"))
    assert alone.anchor is not None and alone.anchor.attribute == "b"


def test_conditions_without_an_anchor_are_tried_on_every_row() -> None:
    index = PredicateIndex()
    index.add(1, parse_condition("a > 1"))
    index.add(2, parse_condition("a > 1 OR b = 2"))
    index.add(3, parse_condition("1 = 1"))
    index.add(4, parse_condition("1 = 2"))
    assert index.scanned == 4
    assert match(index, a=[1, 2], b=[2, 3]) == {0: [(2,), (3,)], 1: [(1,), (2,), (3,)]}


def test_only_the_given_rows_are_looked_at() -> None:
    index = PredicateIndex()
    index.add(1, parse_condition("a = 1"))
    index.add(2, parse_condition("a > 0"))
    index.add(3, parse_condition("a > 0 AND b > 0"))
    assert match(index, [1, 3], a=[1, 1, 1, 2], b=[1, 1, 1, 1]) == {1: [(1,), (2,), (3,)], 3: [(2,), (3,)]}


def test_extensions_are_no_part_of_the_test() -> None:
    index = PredicateIndex()
    condition = index.add(1, parse_condition("a = 1 AND XPATH '/x' AND DELTA(p) > 1"))
    assert condition.rest == () and condition.attributes == ("a", "p")
    assert match(index, a=[1, 2]) == {0: [(1,)]}


def test_nothing_is_left_when_all_have_gone() -> None:
    index = PredicateIndex()
    texts = ("a = 1", "a IN (1, 2) AND b > 1", "b > 2", "a = 1 AND c > 1")
    conditions = [index.add(number, parse_condition(text)) for number, text in enumerate(texts)]
    for number, condition in enumerate(conditions):
        index.remove(number, condition)
        index.validate()
    assert len(index) == 0 and index.scanned == 0 and not index._tables
    assert match(index, a=[1], b=[5], c=[5]) == {}
