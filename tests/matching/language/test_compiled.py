"""matching/language/compiled.py: the fast form. Does it agree with the meaning? tests/properties."""

from __future__ import annotations

import math

import pytest

from headgate.matching.language import Shapes, compile_condition, parse_condition, shapes_kept
from headgate.matching.limits import CONDITION_DEPTH_MAX
from headgate.matching.meaning import evaluate
from headgate.matching.tree import Attribute, Compare, Literal

EDGES: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**80,
    0.0, -0.0, 5.0, 5.5, float(2**53), 1e300, math.nan, math.inf, -math.inf, "", "5", "abc", "x", b"x", [1], {}, (5,),
)  # fmt: skip
LITERALS = (
    "5",
    "-5",
    "5.5",
    "0",
    "9007199254740993",
    "9007199254740992.0",
    "9223372036854775807",
    "'x'",
    "TRUE",
    "NULL",
)


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("literal", LITERALS)
def test_a_comparison_with_a_literal_agrees_with_the_meaning_on_every_edge(operator: str, literal: str) -> None:
    for text in (f"a {operator} {literal}", f"NOT a {operator} {literal}", f"{literal} {operator} a"):
        tree = parse_condition(text)
        test = compile_condition(tree).test
        for value in EDGES:
            assert test(value) is (evaluate(tree, {"a": value}) is True), (text, value)


@pytest.mark.parametrize(
    "text",
    [
        "a BETWEEN 0 AND 5",
        "a BETWEEN -1 AND 5.5",
        "a BETWEEN 5 AND 9223372036854775807",
        "a BETWEEN 'a' AND 'x'",
        "a BETWEEN 5 AND 'x'",
        "5 BETWEEN a AND 10",
        "a IN (0, 1, 5)",
        "a IN (0.0, 5.5)",
        "a IN (1, 9007199254740993)",
        "a IN ('x', 'abc')",
        "a IN (TRUE)",
        "a LIKE 'a%'",
        "a LIKE '%b%'",
        "a LIKE '_'",
        "a LIKE 'x'",
        "a LIKE '5!%' ESCAPE '!'",
        "'abc' LIKE 'a%' AND a",
        "a + 0 LIKE 'a%'",
        "a IS NULL",
        "a + 1 IS NULL",
        "a + 1 > 5",
        "-a < a * 2 - a / 3 % 4",
        "a",
        "NOT a",
        "a = a",
    ],
)
def test_other_predicates_agree_with_the_meaning_on_every_edge(text: str) -> None:
    for tree in (parse_condition(text), parse_condition(f"NOT ({text})")):
        made = compile_condition(tree)
        for value in EDGES:
            verdict = made.test(*[value for _ in made.attributes])
            assert verdict is (evaluate(tree, {"a": value}) is True), (text, value)


def test_values_come_in_the_order_of_the_attributes() -> None:
    made = compile_condition(parse_condition("b = 1 AND a = 2 AND b < 3"))
    assert made.attributes == ("b", "a")
    assert made.test(1, 2) is True and made.test(2, 1) is False


def test_a_condition_without_attributes() -> None:
    assert compile_condition(parse_condition("1 < 2")).test() is True
    assert compile_condition(parse_condition("NULL")).test() is False
    assert compile_condition(parse_condition("NOT NULL OR XPATH = 1")).attributes == ("XPATH",)


def test_conditions_of_one_shape_share_their_code_and_their_names() -> None:
    one = compile_condition(parse_condition("symbol = 'A' AND price BETWEEN 1 AND 2"))
    two = compile_condition(parse_condition("symbol = 'B' AND price BETWEEN 3.5 AND 4"))
    assert one.test.__code__ is two.test.__code__
    assert one.attributes is two.attributes
    assert two.test("B", 3.75) and not two.test("A", 3.75) and one.test("A", 1.5)


def test_the_cache_of_shapes_is_bounded_and_old_conditions_go_on_working() -> None:
    shapes, trees = Shapes(3), [parse_condition(" AND ".join(["a > 1"] * count)) for count in range(2, 12)]
    made = [compile_condition(tree, shapes) for tree in trees]
    assert len(shapes) == 3
    assert all(condition.test(2) and not condition.test(1) for condition in made)
    before = shapes_kept()
    assert compile_condition(trees[0], shapes).test(2) and shapes_kept() == before


def test_no_text_of_a_client_gets_into_the_code() -> None:
    evil = "__import__('os')"
    made = compile_condition(Compare("=", Attribute(evil), Literal(evil)))
    assert made.test(evil) is True
    code = made.test.__code__
    assert all(evil not in str(part) for part in (*code.co_names, *code.co_varnames, *code.co_consts))
    assert made.test.__globals__["__builtins__"] == {}


def test_the_deepest_and_widest_conditions_compile() -> None:
    tree = parse_condition("NOT (a = 1 OR " * 10 + "b" + ")" * 10)
    assert compile_condition(tree).test(1, True) in (True, False)
    sums = "a" + " + a" * (CONDITION_DEPTH_MAX - 3) + " = 30"
    assert compile_condition(parse_condition(sums)).test(1) is True
    assert compile_condition(parse_condition(" OR ".join(f"a={i}" for i in range(256)))).test(255) is True
    nested = "a = 1"
    for i in range(CONDITION_DEPTH_MAX - 3):
        nested = f"(b {('AND', 'OR')[i % 2]} {nested})"
    assert compile_condition(parse_condition(nested)).test(True, 1) is True
