"""matching/explain.py: why a condition matches, or does not."""

from __future__ import annotations

from headgate.matching.explain import Verdict, explain
from headgate.matching.language import parse_condition


def test_each_predicate_has_its_verdict_and_the_whole_has_one() -> None:
    tree = parse_condition("symbol = 'OTE' AND (price > 8 OR volume > 10)")
    explanation = explain(tree, {"symbol": "OTE", "price": 7})
    assert explanation.predicates == (
        Verdict("`symbol` = 'OTE'", "true"),
        Verdict("`price` > 8", "false"),
        Verdict("`volume` > 10", "unknown"),
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
