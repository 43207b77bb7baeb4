"""Patterns as regular expressions agree with their plain meaning; conditions reach Spark only through our own tree."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.errors import ConditionError
from headgate.matching.topics import Pattern, parse_pattern
from headgate.ops.jobs.audit_text import condition_text, condition_tree, pattern_expression

LEVELS = st.sampled_from(
    ["a", "b", "ab", "a.b", "a*", ".", ".*", "[^x]*", "(", "\\", "\\E", "$", "größe", "😀", "a b", "-", "#"]
)
NAMES = st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="/*"), min_size=1, max_size=4)
PATTERN_LEVELS = st.lists(LEVELS | NAMES | st.just("*"), min_size=1, max_size=5)
TOPIC_LEVELS = st.lists(LEVELS | NAMES, min_size=1, max_size=6)


def found(pattern: Pattern, topic: str) -> bool:
    """As Java finds it. Python spells the end of the text with a capital letter."""
    return re.search(pattern_expression(pattern).replace(r"\z", r"\Z"), topic) is not None


@given(PATTERN_LEVELS, TOPIC_LEVELS, st.booleans())
def test_a_pattern_is_found_in_the_topics_that_it_matches(levels: list[str], topic: list[str], exact: bool) -> None:
    pattern = Pattern(tuple(levels), exact)
    assert found(pattern, "/".join(topic)) == pattern.matches("/".join(topic))


@given(TOPIC_LEVELS, st.data(), st.booleans())
def test_a_pattern_made_from_a_topic_is_found_in_it(topic: list[str], data: st.DataObject, exact: bool) -> None:
    length = len(topic) if exact else data.draw(st.integers(1, len(topic)))
    stars = data.draw(st.sets(st.integers(1, 6)))
    levels = ["*" if place in stars else level for place, level in enumerate(topic[:length])]
    pattern = Pattern(tuple(levels), exact)
    assert found(pattern, "/".join(topic))
    assert not found(pattern, "/".join([topic[0] + "x", *topic[1:]]))


@pytest.mark.parametrize(
    ("pattern", "exact", "expression"),
    [
        ("quotes/*/OTE", False, r"\Aquotes/[^/]*/OTE(?:/|\z)"),
        ("quotes", True, r"\Aquotes\z"),
        ("a.b/c$", False, r"\Aa\.b/c\$(?:/|\z)"),
    ],
)
def test_an_expression_begins_and_ends_where_the_topic_does(pattern: str, exact: bool, expression: str) -> None:
    assert pattern_expression(parse_pattern(pattern, exact)) == expression


def test_no_condition_is_no_tree() -> None:
    assert condition_tree("") is None


def test_a_condition_is_printed_from_its_tree() -> None:
    tree = condition_tree("price > 8.5")
    assert tree is not None
    text = condition_text(tree)
    assert text.startswith("(") and text.endswith("\n)") and "`price.d`" in text


@pytest.mark.parametrize(
    "text",
    [
        "price > 1 AND",
        "reflect('java.lang.System', 'getProperty', 'user.name') = 'x'",
        "price IN (SELECT 1)",
        "price > 1 /* and so on */",
        "rand() > 0.5",
        "i = 3 and",
    ],
)
def test_what_spark_would_run_and_we_do_not_know_is_refused(text: str) -> None:
    with pytest.raises(ConditionError):
        condition_tree(text)


def test_what_is_only_a_comment_never_reaches_spark() -> None:
    tree = condition_tree("price > 1 -- ) OR (TRUE")
    assert tree is not None and tree == condition_tree("price > 1")
    assert "TRUE" not in condition_text(tree) and "--" not in condition_text(tree)
