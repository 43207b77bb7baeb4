"""matching/meaning.py: the three-valued meaning."""

from __future__ import annotations

import math
from itertools import product

import pytest

from headgate.matching.language import parse_condition
from headgate.matching.meaning import evaluate, value_of
from headgate.matching.tree import Attribute, Literal, Negate, Tree
from headgate.matching.values import Value

NAN = math.nan
THREE = (True, False, None)


def verdict(text: str, **row: object) -> bool | None:
    return evaluate(parse_condition(text), row)


def test_truth_table_of_and() -> None:
    table = {(a, b): verdict("a AND b", a=a, b=b) for a, b in product(THREE, THREE)}
    assert [pair for pair, value in table.items() if value is True] == [(True, True)]
    assert [pair for pair, value in table.items() if value is None] == [(True, None), (None, True), (None, None)]


def test_truth_table_of_or() -> None:
    table = {(a, b): verdict("a OR b", a=a, b=b) for a, b in product(THREE, THREE)}
    assert [pair for pair, value in table.items() if value is False] == [(False, False)]
    assert [pair for pair, value in table.items() if value is None] == [(False, None), (None, False), (None, None)]


def test_truth_table_of_not() -> None:
    assert [verdict("NOT a", a=a) for a in THREE] == [False, True, None]


@pytest.mark.parametrize(
    ("text", "a", "expected"),
    [
        ("a = 'x'", None, None),
        ("NOT a = 'x'", None, None),
        ("a <> 'x'", None, None),
        ("a = NULL", 1, None),
        ("a IS NULL", None, True),
        ("a IS NOT NULL", "", True),
        ("a + 1 IS NULL", "x", True),
        ("a IN (1, NULL)", 1, True),
        ("a IN (1, NULL)", 2, None),
        ("a NOT IN (1, NULL)", 2, None),
        ("a NOT IN (1, 2)", 3, True),
        ("a IN ('1', 2)", 2.0, True),
        ("a BETWEEN 1 AND NULL", 0, False),
        ("a BETWEEN 1 AND NULL", 2, None),
        ("a BETWEEN 2 AND 1", 1, False),
        ("a BETWEEN 1 AND 3", NAN, False),
        ("a LIKE '%'", None, None),
        ("a LIKE '%'", 5, None),
        ("a NOT LIKE 'x%'", "y", True),
        ("a", 1, None),
        ("a", "true", None),
        ("a OR TRUE", None, True),
        ("a AND FALSE", None, False),
        ("a = 10", "10", None),
        ("a > 9", "10", None),
        ("a = 1", True, None),
        ("a = TRUE", 1, None),
        ("a < TRUE", False, True),
        ("a = 9007199254740993", 9007199254740993, True),
        ("a = 9007199254740992", 9007199254740993, False),
        ("a = 9007199254740992.0", 9007199254740993, True),
        ("a = 9223372036854775807", 2.0**63, True),
        ("a > 1e308", NAN, True),
        ("a >= 5", NAN, True),
        ("a <= 5", NAN, False),
        ("a = a", NAN, True),
        ("a = 0", -0.0, True),
        ("a + 1 > 0", 2**63 - 1, None),
        ("a + 1.0 > 0", 2**63 - 1, True),
        ("-a > 0", -(2**63), None),
        ("1 / a > 0", 0, None),
        ("1 / a = 0.5", 2, True),
        ("a % 3 = -1", -7, True),
        ("a % 0 = 0", 1, None),
        ("a = '10'", "10 ", False),
        ("a = 'caf\u00e9'", "cafe\u0301", False),
        ("a = 'A'", "a", False),
    ],
)
def test_verdicts(text: str, a: Value, expected: bool | None) -> None:
    assert verdict(text, a=a) is expected


@pytest.mark.parametrize("stranger", [b"x", [1], {"x": 1}, 2**63, -(2**63) - 1, 2**64 - 1, object()])
def test_a_value_of_a_foreign_type_is_read_as_null(stranger: object) -> None:
    assert verdict("a IS NULL", a=stranger) is True
    for text in ("a = 1", "a > 0", "a <> 1", "a LIKE '%'", "a IN (1, 2)", "a = a", "a", "a + 0 = a"):
        assert verdict(text, a=stranger) is None


def test_an_absent_attribute_is_null() -> None:
    assert verdict("a IS NULL") is True
    assert verdict("a = 1 OR b = 2", b=2) is True


def test_extensions_count_as_true() -> None:
    assert verdict("a = 1 AND XPATH '/x' AND DELTA(a) > 3", a=1) is True
    assert verdict("DELTA(a) > 3", a=None) is True


def test_value_of_a_calculation() -> None:
    assert value_of(Negate(Attribute("a")), {"a": 2}) == -2
    assert value_of(Literal("x"), {}) == "x"


def test_a_string_is_no_condition_even_in_a_tree_made_by_hand() -> None:
    tree: Tree = Literal("x")
    assert evaluate(tree, {}) is None
