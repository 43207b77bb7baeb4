"""matching/tree.py: normal form, and the questions one can ask a tree."""

from __future__ import annotations

import pytest

from headgate.matching.language import parse_condition
from headgate.matching.limits import INTEGER_MIN
from headgate.matching.tree import (
    And,
    Attribute,
    Compare,
    Cost,
    Delta,
    In,
    Literal,
    Negate,
    Or,
    XPath,
    attributes,
    children,
    conjunction,
    conjuncts,
    cost,
    disjunction,
    extensions,
    membership,
    opposite,
    static_part,
)

A, B, C = Attribute("a"), Attribute("b"), Attribute("c")


def test_literals_are_told_apart_by_type() -> None:
    assert Literal(1) != Literal(1.0) and Literal(1) != Literal(True) and Literal(0.0) != Literal(-0.0)
    assert Literal(1) == Literal(1) and hash(Literal("x")) == hash(Literal("x"))
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3


def test_and_and_or_are_flat() -> None:
    assert conjunction([conjunction([A, B]), C]) == And((A, B, C))
    assert disjunction([A, disjunction([B, C])]) == Or((A, B, C))
    assert conjunction([A]) == disjunction([A]) == A
    assert conjunction([]) == Literal(True) and disjunction([]) == Literal(False)


def test_a_minus_before_a_number_is_part_of_it() -> None:
    assert opposite(Literal(5)) == Literal(-5)
    assert opposite(Literal(-0.0)) == Literal(0.0)
    assert opposite(Literal(True)) == Negate(Literal(True))
    assert opposite(Literal(INTEGER_MIN)) == Negate(Literal(INTEGER_MIN))
    assert opposite(A) == Negate(A)


def test_in_of_mixed_types_is_the_or_of_equals_that_it_means() -> None:
    assert membership(A, [Literal(1), Literal(2)]) == In(A, (Literal(1), Literal(2)))
    assert membership(A, [Literal(1), Literal(2.5)]) == Or((Compare("=", A, Literal(1)), Compare("=", A, Literal(2.5))))
    assert membership(A, [B]) == Compare("=", A, B)
    assert membership(A, [Literal(None)]) == Compare("=", A, Literal(None))


def test_attributes_come_once_each_in_order_of_appearance() -> None:
    assert attributes(parse_condition("b > 1 AND (a = 2 OR b + c < a) AND DELTA(d) > 1")) == ("b", "a", "c", "d")
    assert attributes(parse_condition("TRUE")) == ()


@pytest.mark.parametrize(
    ("text", "terms", "depth"),
    [
        ("a", 0, 1),
        ("a = 1", 1, 2),
        ("a = 1 AND b = 2 AND c = 3", 3, 3),
        ("a BETWEEN 1 AND 2", 2, 2),
        ("a IN (1, 2, 3)", 1, 2),
        ("a + b IN (1, 2, 3)", 2, 3),
        ("NOT (a + 1 > 2 OR b IS NULL)", 3, 5),
        ("a LIKE 'x' AND XPATH '/a' AND DELTA(b) > 1", 3, 3),
    ],
)
def test_static_cost(text: str, terms: int, depth: int) -> None:
    assert cost(parse_condition(text)) == Cost(terms, depth)


def test_conjuncts_extensions_and_static_part() -> None:
    tree = parse_condition("a = 1 AND XPATH '/b' AND DELTA(p) >= 2 HEARTBEAT 60")
    assert extensions(tree) == (XPath("/b"), Delta("p", 2, True, 60))
    assert static_part(tree) == Compare("=", A, Literal(1)) == conjuncts(tree)[0]
    assert len(conjuncts(tree)) == 3
    assert conjuncts(A) == (A,)
    assert static_part(parse_condition("XPATH '/b'")) == Literal(True)
    assert extensions(A) == ()


def test_children_of_each_kind_of_node() -> None:
    tree = parse_condition("NOT (a + 1 BETWEEN -b AND c) OR a LIKE 'x' OR a IS NULL OR a IN (1)")
    seen = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        seen.append(type(node).__name__)
        waiting.extend(children(node))
    assert set(seen) == {"Or", "Not", "Between", "Arithmetic", "Attribute", "Literal", "Negate", "Like", "IsNull", "In"}
