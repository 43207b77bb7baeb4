"""The three forms of a condition (tree, text, code) mean the same, and the parser survives anything."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.matching.errors import ConditionError
from headgate.matching.index import parts_of
from headgate.matching.index.anchors import anchors
from headgate.matching.index.traffic import holds
from headgate.matching.language import compile_condition, parse_condition, to_spark, to_text
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.matching.meaning import evaluate
from headgate.matching.tree import attributes, cost
from headgate.matching.values import known
from tests.matching.samples import random_row, random_tree

RANDOMS = st.randoms(use_true_random=False)
FRAGMENTS = (
    "b.c", "`x y`", "1", "-9223372036854775808", "9223372036854775808", "8.3", "'x'", "'It''s'", "'", "`", "(", ")",
    "a", "AND", "OR", "NOT", "BETWEEN",
    "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "+", "-", "*", "/", "%", "=", "<>", "<",
    ">=", ",", "DELTA(a)", "RISE(a)", "PERCENT", "HEARTBEAT 5", "XPATH '/a'", "==", "!", "\x00", "😀",
    "'%!_' ESCAPE '!'",
)  # fmt: skip


@given(RANDOMS)
@settings(max_examples=300)
def test_compiled_code_agrees_with_the_meaning(rng: Random) -> None:
    tree = random_tree(rng)
    compiled = compile_condition(tree)
    assert set(compiled.attributes) <= set(attributes(tree))
    for _ in range(8):
        row = random_row(rng)
        verdict = compiled.test(*[row.get(name) for name in compiled.attributes])
        assert verdict is (evaluate(tree, row) is True), to_text(tree)


@given(RANDOMS)
@settings(max_examples=300)
def test_reading_back_the_canonical_text_gives_the_same_tree(rng: Random) -> None:
    tree = random_tree(rng)
    text = to_text(tree)
    again = parse_condition(text, CANONICAL_BYTES_MAX)
    assert again == tree
    assert to_text(again) == text
    assert cost(again) == cost(tree)


@given(RANDOMS)
@settings(max_examples=300)
def test_parts_are_what_the_condition_says_and_an_anchor_holds_whenever_it_is_true(rng: Random) -> None:
    tree = random_tree(rng)
    parts = parts_of(tree)
    for _ in range(8):
        row = {name: known(value) for name, value in random_row(rng).items()}
        verdict = evaluate(tree, row) is True
        assert all(evaluate(part, row) is True for part in parts) is verdict
        for anchor in anchors(parts):
            held = [holds(term, row.get(term.attribute)) for term in anchor.terms]
            assert any(held) or not verdict, "a condition is true and its anchor does not find it"
            assert anchor.overlapping or sum(held) <= 1, "disjoint terms hold at once"
            if any(held):
                assert all(evaluate(part, row) is True for part in anchor.proven), "proven, and yet not true"


@given(RANDOMS)
def test_every_tree_prints_for_spark(rng: Random) -> None:
    text = to_spark(random_tree(rng, depth=5))
    assert text.count("'") % 2 == 0 and "\n" not in text


@given(st.text(max_size=200))
def test_arbitrary_text_gives_a_tree_or_a_condition_error(text: str) -> None:
    check_fuzz(text)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(" ".join))
@settings(max_examples=500)
def test_arbitrary_words_give_a_tree_or_a_condition_error(text: str) -> None:
    check_fuzz(text)


def check_fuzz(text: str) -> None:
    try:
        tree = parse_condition(text)
    except ConditionError as error:
        assert 1 <= error.column <= len(text) + 1
        assert error.expected and len(str(error)) < 700
    else:
        assert parse_condition(to_text(tree), CANONICAL_BYTES_MAX) == tree
        compile_condition(tree)
        evaluate(tree, {})
