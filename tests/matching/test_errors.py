"""matching/errors.py: each error computes its text from its fields."""

from __future__ import annotations

from headgate.matching.errors import ConditionError, MatchingError, PatternError, TopicError
from headgate.matching.limits import EXCERPT_CHARACTERS_MAX


def test_condition_error_points_a_caret_at_the_column() -> None:
    error = ConditionError("price >", 8, "the condition ends too early", "a value")
    assert str(error) == "condition, column 8: the condition ends too early; expected a value\n  price >\n         ^"
    assert (error.text, error.column, error.problem, error.expected) == (
        "price >",
        8,
        "the condition ends too early",
        "a value",
    )


def test_condition_error_without_an_expectation_says_none() -> None:
    assert str(ConditionError("x", 1, "no", "")).splitlines()[0] == "condition, column 1: no"


def test_condition_error_shows_a_window_of_a_long_text_with_the_caret_under_the_place() -> None:
    text = "a" * 500 + "!" + "b" * 500
    _, excerpt, caret = str(ConditionError(text, 501, "bad", "good")).splitlines()
    assert len(excerpt) <= EXCERPT_CHARACTERS_MAX + 8
    assert excerpt[caret.index("^")] == "!"
    assert excerpt.startswith("  ...") and excerpt.endswith("...")


def test_condition_error_keeps_to_one_line_whatever_the_text_holds() -> None:
    assert len(str(ConditionError("a\n\x00\tb ?", 6, "bad", "good")).splitlines()) == 3


def test_topic_error_names_topic_problem_and_advice() -> None:
    error = TopicError("a//b", "it has an empty level (//)", "name every level")
    assert str(error) == "topic 'a//b': it has an empty level (//); name every level"
    assert (error.topic, error.problem, error.advice) == ("a//b", "it has an empty level (//)", "name every level")


def test_pattern_error_speaks_of_a_pattern_and_is_a_topic_error() -> None:
    error = PatternError("x" * 1000, "bad", "mend it")
    assert str(error).startswith("pattern 'xxx")
    assert len(str(error)) < 120
    assert isinstance(error, TopicError) and isinstance(error, MatchingError) and isinstance(error, ValueError)


def test_topic_error_escapes_what_cannot_be_printed() -> None:
    assert "\\x00" in str(TopicError("a\x00", "bad", "mend it"))
    assert "\\ud800" in str(TopicError("\ud800", "bad", "mend it"))
