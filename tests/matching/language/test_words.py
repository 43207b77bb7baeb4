"""matching/language/words.py: the words of a condition."""

from __future__ import annotations

import pytest

from headgate.matching.language.words import KEYWORDS, Refusal, words


def kinds(text: str) -> list[str]:
    return [word.kind for word in words(text)]


def test_columns_count_characters_from_one() -> None:
    assert [(word.text, word.column) for word in words("é = 'x'  AND b>1")] == [
        ("é", 1),
        ("=", 3),
        ("'x'", 5),
        ("AND", 10),
        ("b", 14),
        (">", 15),
        ("1", 16),
    ]


def test_keywords_in_any_case_and_names_as_they_are() -> None:
    for keyword in KEYWORDS:
        assert kinds(keyword.lower()) == kinds(keyword.title()) == [keyword]
    assert [word.value for word in words("Price price ORDER andrew")] == ["Price", "price", "ORDER", "andrew"]


def test_a_long_s_does_not_make_a_keyword() -> None:
    assert kinds("iſ") == ["NAME"]  # str.upper would make it IS


@pytest.mark.parametrize(
    "name",
    ["body.order.price", "items.0.id", "_x$", "größe", "a$b", "delta", "rise", "percent", "xpath", "heartbeat"],
)
def test_names(name: str) -> None:
    assert [(word.kind, word.value) for word in words(name)] == [("NAME", name)]


def test_names_in_backticks_may_hold_anything() -> None:
    assert [word.value for word in words("`a b` `and` `a``b` `x'y`")] == ["a b", "and", "a`b", "x'y"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("007", 7),
        ("5L", 5),
        ("8.3", 8.3),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-3", 0.001),
        ("8.3D", 8.3),
        ("5d", 5.0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    (word,) = words(text)
    assert word.value == value and type(word.value) is type(value)


def test_strings_have_one_escape_only() -> None:
    assert [word.value for word in words(r"'It''s' '' '\n' '''' 'a''''b'")] == ["It's", "", r"\n", "'", "a''b"]


def test_delta_xpath_and_heartbeat_are_words_only_where_what_follows_says_so() -> None:
    assert kinds("DELTA ( x") == ["DELTA", "LEFT", "NAME"]
    assert kinds("xpath '/a'") == ["XPATH", "STRING"]
    assert kinds("heartbeat 60 heartbeat = 60") == ["HEARTBEAT", "INTEGER", "NAME", "COMPARISON", "INTEGER"]


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("a = 'x", 5, "closing quote"),
        ("a = 'x''", 5, "closing quote"),
        ("`a", 1, "closing backtick"),
        ("`a`` = 1", 1, "closing backtick"),
        ("`", 1, "closing backtick"),
        ("`` = 1", 1, "the name of an attribute"),
        ('a = "x"', 5, "single quotes"),
        ("a == 1", 3, "a single ="),
        ("a && b", 3, "AND"),
        ("a | b", 3, "OR"),
        ("!a", 1, "NOT"),
        ("a = 12abc", 5, "a number such as"),
        ("a = 1.2.3", 5, "a number such as"),
        ("a = 1.5L", 5, "an integer before the L"),
        ("a = 1e999", 5, "a number up to"),
        ("a = 99999999999999999999", 5, "at most 9223372036854775807"),
        ("a = " + "9" * 4000, 5, "at most 9223372036854775807"),
        ("a = \x00", 5, "a value"),
        ("a = b; DROP", 6, "the end"),
        ("x" * 256 + " = 1", 1, "at most 255 bytes"),
    ],
)
def test_what_is_no_word_is_refused_with_column_and_advice(text: str, column: int, expected: str) -> None:
    with pytest.raises(Refusal) as caught:
        list(words(text))
    assert caught.value.column == column
    assert expected in caught.value.expected
    assert len(caught.value.problem) < 100
