"""matching/topics/patterns.py: topics and patterns."""

from __future__ import annotations

import pytest

from headgate.matching.errors import PatternError, TopicError
from headgate.matching.topics import Pattern, check_topic, parse_pattern


def test_a_topic_is_cut_into_levels() -> None:
    assert check_topic("quotes/NYSE/OTE") == ("quotes", "NYSE", "OTE")
    assert check_topic("q") == ("q",)
    assert check_topic("a b/#1/ü") == ("a b", "#1", "ü")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("/a", "begins with /"),
        ("a/", "ends with /"),
        ("a//b", "empty level"),
        ("/", "begins with /"),
        ("a/\x00", "control character"),
        ("a\n", "control character"),
        ("a\x7f", "control character"),
        ("\ud800", "surrogate"),
        ("/".join("a" * 33), "33 levels"),
        ("/".join("a" * 200), "200 levels"),
        ("x" * 1025, "longer than 1024"),
        ("é" * 513, "longer than 1024"),
        ("x" * 1_000_000, "longer than 1024"),
    ],
)
def test_topics_and_patterns_are_refused_for_the_same_reasons(text: str, word: str) -> None:
    with pytest.raises(TopicError, match=word) as topic_error:
        check_topic(text)
    with pytest.raises(PatternError, match=word):
        parse_pattern(text)
    assert not isinstance(topic_error.value, PatternError)
    assert len(str(topic_error.value)) < 300


def test_the_limits_themselves_are_allowed() -> None:
    assert len(check_topic("/".join("a" * 32))) == 32
    assert check_topic("x" * 1024) and check_topic("é" * 512)


def test_an_event_has_no_wildcard() -> None:
    with pytest.raises(TopicError, match="no level may be"):
        check_topic("quotes/*/OTE")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("quotes/#", "leave it out"),
        ("quotes/+/x", r"write \* for one whole level"),
        ("quotes/>", "leave it out"),
        ("quotes/ab*", "whole level"),
        ("quotes/**", "whole level"),
        ("*", "subscribe to each stream"),
        ("*/NYSE", "subscribe to each stream"),
        ("#", "leave it out"),
    ],
)
def test_a_foreign_or_misplaced_wildcard_is_refused_with_what_to_write_instead(text: str, advice: str) -> None:
    with pytest.raises(PatternError, match=advice):
        parse_pattern(text)


@pytest.mark.parametrize(
    ("pattern", "topic", "below", "exact"),
    [
        ("quotes", "quotes", True, True),
        ("quotes", "quotes/NYSE/OTE", True, False),
        ("quotes", "quotes2", False, False),
        ("quotes/NYSE", "quotes", False, False),
        ("quotes/*/OTE", "quotes/NYSE/OTE", True, True),
        ("quotes/*/OTE", "quotes/NYSE/OTE/bid", True, False),
        ("quotes/*/OTE", "quotes/NYSE/IBM", False, False),
        ("quotes/*/OTE", "quotes/OTE", False, False),
        ("quotes/*", "quotes", False, False),
        ("quotes/*", "quotes/x", True, True),
        ("Quotes", "quotes", False, False),
        ("caf\u00e9", "cafe\u0301", False, False),
    ],
)
def test_matching(pattern: str, topic: str, below: bool, exact: bool) -> None:
    assert parse_pattern(pattern).matches(topic) is below
    assert parse_pattern(pattern, exact=True).matches(topic) is exact


def test_what_a_pattern_knows_of_itself() -> None:
    pattern = parse_pattern("quotes/NYSE/*/bid", exact=True)
    assert pattern == Pattern(("quotes", "NYSE", "*", "bid"), True)
    assert (pattern.stream, pattern.literal_prefix, str(pattern)) == ("quotes", "quotes/NYSE", "quotes/NYSE/*/bid")
    assert parse_pattern("a/b").literal_prefix == "a/b"
