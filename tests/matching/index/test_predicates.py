"""matching/index/predicates.py: anchors, tables, and the conditions that are found through them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headgate.matching.index.columns import Columns
from headgate.matching.index.predicates import PredicateIndex
from headgate.matching.index.steps import Found
from headgate.matching.language import parse_condition
from headgate.matching.limits import AMENDED_ITEMS_MAX
from headgate.matching.values import Value


def match(index: PredicateIndex, rows: Sequence[int] | None = None, **columns: Sequence[Value]) -> Found:
    found: Found = {}
    count = len(next(iter(columns.values())))
    index.match(range(count) if rows is None else rows, Columns(columns, count), found)
    index.validate()
    return found


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
    assert list(index.routes(condition)) == ["symbol is 'S1' -> exchange is 'NYSE' -> match"]
    index = PredicateIndex()
    alone = index.add(1, parse_condition("a IN (1, 2, 3) AND b = 1"))
    assert next(index.routes(alone)) == "b is 1 -> a is 1 -> match"


def test_conditions_without_an_anchor_are_tried_on_every_row() -> None:
    index = PredicateIndex()
    index.add(1, parse_condition("a + 0 > 1"))
    index.add(2, parse_condition("a + 0 > 1 OR b = 2"))
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


def test_a_delta_is_no_part_of_the_test() -> None:
    index = PredicateIndex()
    condition = index.add(1, parse_condition("a = 1 AND DELTA(p) > 1"))
    assert condition.attributes == ("a", "p") and list(index.routes(condition)) == ["a is 1 -> match"]
    assert match(index, a=[1, 2]) == {0: [(1,)]}


def test_twigs_are_looked_up_by_their_filters_below_an_equality_or_alone() -> None:
    index = PredicateIndex()
    names = ("#structure/1024/1", "#values/1024/1")
    for identity, text, attributes, route in (
        (1, "XPATH '/x'", names[:1], "#structure/1024/1 has 2 bits -> match"),
        (2, "XPATH 'x' AND XPATH 'y'", names[:1], "#structure/1024/1 has 2 bits -> match"),
        (3, "XPATH 'x=''1'''", names, "#structure/1024/1 has 1 bits -> test of #structure/1024/1, #values/1024/1"),
        (4, "a = 1 AND XPATH 'x'", ("a", names[0]), "a is 1 -> #structure/1024/1 has 1 bits -> match"),
        (5, "XPATH 'x' AND b <> c", (names[0], "b", "c"), "#structure/1024/1 has 1 bits -> test of b, c"),
    ):
        condition = index.add(identity, parse_condition(text))
        assert condition.attributes == attributes and list(index.routes(condition)) == [route]
    index.validate()


def test_nothing_is_left_when_all_have_gone() -> None:
    index = PredicateIndex()
    texts = ("a = 1", "a IN (1, 2) AND b > 1", "b > 2", "a = 1 AND c > 1", "a = 1 OR b LIKE 'x%'", "a = b", "a <> 2")
    conditions = [index.add(number, parse_condition(text)) for number, text in enumerate(texts)]
    for number, condition in enumerate(conditions):
        index.remove(number, condition)
        index.validate()
    assert len(index) == 0 and index.scanned == 0 and not index._root.steps
    assert match(index, a=[1], b=[5], c=[5]) == {}


def routes(index: PredicateIndex, text: str) -> list[str]:
    return list(index.routes(index.add(hash(text) % 10**9, parse_condition(text))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s = 'X' AND p BETWEEN 1 AND 2", ["s is 'X' -> p from 1.0 until before 2.0000000000000004 -> match"]),
        ("s = 'X' AND p > 1 AND p + q > 1", ["s is 'X' -> p from 1.0000000000000002 until before inf -> test of p, q"]),
        ("s LIKE 'ab%' AND p = 1", ["s begins with 'ab' -> p is 1 -> match"]),
        ("s LIKE 'ab%c'", ["s begins with 'ab' -> test of s"]),
        ("a = 1 OR b > 2", ["b from 2.0000000000000004 until before inf -> test of a, b", "a is 1 -> test of a, b"]),
        ("a IS NULL AND NOT b", ["a is NULL -> b is False -> match"]),
        ("a > b", ["every row -> test of a, b"]),
        ("a > 2 AND a < 1", []),
    ],
)
def test_the_way_to_a_condition_can_be_told(text: str, expected: list[str]) -> None:
    assert sorted(routes(PredicateIndex(), text)) == sorted(expected)


def test_a_range_below_a_key_is_found_without_any_test() -> None:
    index = PredicateIndex()
    for number in range(500):
        index.add(number, parse_condition(f"symbol = 'S{number % 5}' AND price BETWEEN {number} AND {number + 10}"))
    assert len(match(index, symbol=["S1", "S2", "S9"], price=[100, 7.5, 7])) == 2
    assert index.tally.tested == 0
    index.add(1000, parse_condition("symbol = 'S1' AND price > 100 AND size % 2 = 0"))
    assert match(index, symbol=["S1"], price=[101], size=[4])[0][-1] == (1000,)
    assert (index.tally.tested, index.tally.passed) == (1, 1)


def test_conditions_are_filed_anew_when_the_traffic_is_not_what_was_expected() -> None:
    index = PredicateIndex()
    for number in range(30):
        index.add(number, parse_condition(f"exchange = 'E{number}'"))
        index.add(100 + number, parse_condition(f"symbol = 'S{number % 12}' AND z = 1"))
    skewed = index.add(999, parse_condition("exchange = 'E0' AND symbol = 'S1'"))
    assert next(index.routes(skewed)).startswith("exchange")
    for turn in range(200):
        symbols = [f"S{(turn + row) % 12}" for row in range(100)]
        match(index, exchange=["E0"] * 100, symbol=symbols, z=[1] * 100)
    assert next(index.routes(skewed)).startswith("symbol")
    assert match(index, exchange=["E0"], symbol=["S1"], z=[0]) == {0: [(0,), (999,)]}


def test_a_condition_has_a_bounded_number_of_places() -> None:
    index = PredicateIndex()
    keys = ", ".join(map(str, range(120)))
    condition = index.add(1, parse_condition(f"a IN ({keys}) AND b IN ({keys})"))
    assert len(list(condition.places)) == 120
    assert match(index, a=[5, 5, 500], b=[7, 700, 7]) == {0: [(1,)]}


def test_the_ids_of_many_who_ask_for_the_same_are_brought_up_to_date_when_somebody_matches() -> None:
    index = PredicateIndex()
    conditions = [index.add(number, parse_condition("a > 1")) for number in range(100)]
    assert len(conditions[0].ids) == AMENDED_ITEMS_MAX + 1 and conditions[0].size == 100
    assert match(index, a=[2]) == {0: [tuple(range(100))]}
    for number in range(100):
        index.remove(number, conditions[number])
    assert not len(index) and not index._unsettled
