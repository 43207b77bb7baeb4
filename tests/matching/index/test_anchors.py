"""matching/index/anchors.py: what a condition needs to be true, as keys, ranges and prefixes."""

from __future__ import annotations

from math import inf, nextafter

import pytest

from headgate.matching.index import parts_of
from headgate.matching.index.anchors import Keys, Prefixes, Ranges, anchors, key_of
from headgate.matching.language import parse_condition, to_text
from headgate.matching.limits import ALTERNATIVES_MAX, PREFIX_CHARACTERS_MAX


def after(number: float) -> float:
    return nextafter(number, inf)


def terms(text: str) -> list[tuple[object, ...]]:
    return [anchor.terms for anchor in anchors(parts_of(parse_condition(text)))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", [(Keys("a", (1,)),)]),
        ("1 = a AND b > 2", [(Keys("a", (1,)),), (Ranges("b", ((after(2), inf),)),)]),
        ("a = 'x' AND b IN (1, 2.0)", [(Keys("a", ("x",)),), (Keys("b", (1, 2.0)),)]),
        ("a IN (1, 2, 1)", [(Keys("a", (1, 2)),)]),
        ("a = 1 OR a = 'x'", [(Keys("a", (1, "x")),)]),
        ("a = TRUE", [(Keys("a", ((True,),)),)]),
        ("a AND NOT b", [(Keys("a", ((True,),)),), (Keys("b", ((False,),)),)]),
        ("a IS NULL", [(Keys("a", (None,)),)]),
        ("a IS NOT NULL", []),
        ("a = NULL", []),
        ("a = b", []),
        ("a + 1 = 2", []),
        ("a = 9007199254740993", []),
        ("a > 9007199254740993", []),
        ("a IN (1, 9007199254740993)", []),
        ("a >= 'x'", []),
        ("a BETWEEN 1 AND 2", [(Ranges("a", ((1.0, after(2)),)),)]),
        ("a BETWEEN 2 AND 1", [(Ranges("a", ()),)]),
        ("a BETWEEN 2 AND b", []),
        ("5 > a", [(Ranges("a", ((-inf, 5.0),)),)]),
        ("a <= 5", [(Ranges("a", ((-inf, after(5)),)),)]),
        ("a >= 0 AND 10 > a", [(Ranges("a", ((0.0, 10.0),)),)]),
        ("a >= 10 AND a < 10", [(Ranges("a", ()),)]),
        ("a <> 3", [(Ranges("a", ((-inf, 3.0), (after(3), inf))),)]),
        ("NOT a = 3", [(Ranges("a", ((-inf, 3.0), (after(3), inf))),)]),
        ("a <> 'x'", []),
        ("a <> 3 AND a > 1", [(Ranges("a", ((after(1), 3.0), (after(3), inf))),)]),
        ("NOT (a < 1 OR b = 1)", [(Ranges("a", ((1.0, inf),)),), (Ranges("b", ((-inf, 1.0), (after(1), inf))),)]),
        ("a NOT BETWEEN 1 AND 2", [(Ranges("a", ((-inf, 1.0), (after(2), inf))),)]),
        ("a < 1 OR a < 3 OR a > 5", [(Ranges("a", ((-inf, 3.0), (after(5), inf))),)]),
        ("a = 1 OR a > 5", [(Ranges("a", ((1.0, after(1)), (after(5), inf))),)]),
        ("a = 'x' OR a > 5", [(Keys("a", ("x",)), Ranges("a", ((after(5), inf),)))]),
        ("a LIKE 'abc%'", [(Prefixes("a", ("abc",)),)]),
        ("a LIKE 'abc%x_'", [(Prefixes("a", ("abc",)),)]),
        ("a LIKE '%abc'", []),
        ("a NOT LIKE 'abc%'", []),
        ("a LIKE 'ab%' OR a LIKE 'abc%'", [(Prefixes("a", ("ab",)),)]),
        ("a = 1 OR b = 1", [(Keys("a", (1,)), Keys("b", (1,)))]),
        ("a = 1 OR b IS NOT NULL", []),
        ("a = 1 OR (b > 1 AND c = 2)", [(Keys("a", (1,)), Keys("c", (2,)))]),
    ],
)
def test_anchors_are_what_an_index_can_find(text: str, expected: list[tuple[object, ...]]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "proven"),
    [
        ("a = 1", ["a = 1"]),
        ("a > 1 AND a < 5", ["a > 1", "a < 5"]),
        ("a LIKE 'abc%'", ["a LIKE 'abc%'"]),
        ("a LIKE 'abc_'", []),
        (f"a LIKE '{'x' * (PREFIX_CHARACTERS_MAX + 1)}%'", []),
        ("a = 1 OR a = 2", ["a = 1 OR a = 2"]),
        ("a = 1 OR (a = 2 AND b = 3)", []),
        ("a = 1 OR b = 1", []),
        ("a = 'abc' OR a LIKE 'ab%'", []),
    ],
)
def test_a_part_is_proven_only_when_the_terms_say_all_of_it(text: str, proven: list[str]) -> None:
    (anchor,) = anchors(parts_of(parse_condition(text)))
    assert [to_text(part).replace("`", "") for part in anchor.proven] == proven


def test_terms_of_several_attributes_may_hold_at_once() -> None:
    def overlapping(text: str) -> list[bool]:
        return [anchor.overlapping for anchor in anchors(parts_of(parse_condition(text)))]

    assert overlapping("a = 1 OR b = 1") == [True]
    assert overlapping("a = 'abc' OR a LIKE 'ab%'") == [True]
    assert overlapping("a = 1 OR a > 5") == overlapping("a = 'x' OR a < 5") == [False]


def test_alternatives_are_bounded() -> None:
    sides = [f"(a > {10 * i} AND a < {10 * i + 5})" for i in range(ALTERNATIVES_MAX + 1)]
    many = " OR ".join(f"a BETWEEN {10 * i} AND {10 * i + 5}" for i in range(ALTERNATIVES_MAX + 1))
    assert terms(many) == []
    assert len(terms(" OR ".join(sides[:-1]))) == 1
    unequal = " AND ".join(f"a <> {i}" for i in range(100))
    (anchor,) = anchors(parts_of(parse_condition(unequal)))
    assert isinstance(anchor.terms[0], Ranges) and len(anchor.terms[0].ranges) <= ALTERNATIVES_MAX
    assert len(anchor.proven) == len(anchor.terms[0].ranges) - 1


def test_the_key_of_a_bool_is_not_that_of_a_number() -> None:
    assert key_of(True) == (True,) != key_of(1) == 1 == key_of(1.0)
    assert key_of(None) is None
