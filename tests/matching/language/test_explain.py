"""matching/language/explanation.py: why a condition matches, or does not."""

from __future__ import annotations

import pytest

from headgate.matching.language import Verdict, explain, parse_condition


def test_each_predicate_has_its_verdict_and_the_whole_has_one() -> None:
    tree = parse_condition("symbol = 'OTE' AND (price > 8 OR volume > 10)")
    explanation = explain(tree, {"symbol": "OTE", "price": 7})
    assert explanation.predicates == (
        Verdict("`symbol` = 'OTE'", "true"),
        Verdict("`price` > 8", "false"),
        Verdict("`volume` > 10", "unknown", "the event has no `volume`"),
    )
    assert explanation.verdict == "unknown" and not explanation.matches


def test_not_of_one_predicate_is_explained_as_it_is_written() -> None:
    explanation = explain(parse_condition("a NOT IN (1, 2) AND NOT (b AND c)"), {"a": 3, "b": False, "c": True})
    assert [(v.text, v.verdict) for v in explanation.predicates] == [
        ("`a` NOT IN (1, 2)", "true"),
        ("`b`", "false"),
        ("`c`", "true"),
    ]
    assert explanation.matches


def test_extensions_are_decided_later() -> None:
    explanation = explain(parse_condition("a = 1 AND XPATH '/x' AND DELTA(a) > 1"), {"a": 1})
    assert [v.verdict for v in explanation.predicates] == ["true", "later", "later"]
    assert explanation.verdict == "true"
    assert explanation.predicates[1].why == "it asks the document for n/x, r/x"


@pytest.mark.parametrize(
    ("text", "row", "why"),
    [
        ("price > 1", {"price": "8"}, "the event has `price`, as the string '8', and a number was asked for"),
        ("1 < price", {"price": True}, "the event has `price`, as TRUE, and a number was asked for"),
        ("price > 1", {"price": None}, "`price` is null"),
        ("price > 1", {"price": [1]}, "`price` is a list, bytes or an integer beyond 64 bits, which counts as null"),
        ("price > 1", {"price": 2**64}, "`price` is a list, bytes or an integer beyond 64 bits, which counts as null"),
        (
            "symbol IN ('a', 'b')",
            {"symbol": 8.5},
            "the event has `symbol`, as the number 8.5, and a string was asked for",
        ),
        ("symbol NOT LIKE 'a%'", {"symbol": 8}, "the event has `symbol`, as the number 8, and a string was asked for"),
        ("live", {"live": "yes"}, "the event has `live`, as the string 'yes', and true or false was asked for"),
        ("a BETWEEN 1 AND 2", {"a": "x"}, "the event has `a`, as the string 'x', and a number was asked for"),
        ("a BETWEEN 1 AND 'b'", {"a": 1}, "the event has `a`, as the number 1, and a string was asked for"),
        ("a + 1 > 2", {"a": "x"}, "the event has `a`, as the string 'x', and a number was asked for"),
        ("1 / a > 2", {"a": 0}, "1L / `a` overflows, or divides by zero"),
        ("a = NULL", {"a": 0}, "NULL equals nothing, and nothing is less or greater: write IS NULL"),
        ("1 = 'x'", {}, "unlike values do not compare"),
        ("a = b", {"a": 1}, "the event has no `b`"),
        ("a > 1", {"a": "x" * 99}, f"the event has `a`, as the string '{'x' * 71}…, and a number was asked for"),
        ("a > 1", {"a": 2}, ""),
    ],
)
def test_what_is_unknown_says_why(text: str, row: dict[str, object], why: str) -> None:
    assert [verdict.why for verdict in explain(parse_condition(text), row).predicates] == [why]
