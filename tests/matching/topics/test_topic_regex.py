"""matching/topics/regex.py: the paper's regular expressions."""

from __future__ import annotations

import pytest

from headgate.matching.topics import TopicRegex, parse_pattern
from headgate.matching.topics.regex import expression


@pytest.mark.parametrize(
    ("pattern", "exact", "expected"),
    [("a", False, "a(?:/.*)?"), ("a/*/b", True, "a/[^/]*/b"), ("a.b/(c", False, r"a\.b/\(c(?:/.*)?")],
)
def test_the_expression_of_a_pattern(pattern: str, exact: bool, expected: str) -> None:
    assert expression(parse_pattern(pattern, exact)) == expected


def test_what_is_special_to_regular_expressions_is_not_special_in_a_topic() -> None:
    table: TopicRegex[int] = TopicRegex()
    table.put(parse_pattern("a/.*"[:3] + "b"), 1)
    assert table.resolve("a/.b") == [1] and table.resolve("a/xb") == []
    table.remove(parse_pattern("a/.b"))
    with pytest.raises(KeyError):
        table.remove(parse_pattern("a/.b"))
