"""matching/topics/hash.py: the paper's hash scheme. Its claims are in tests/papers/test_hier.py."""

from __future__ import annotations

import pytest

from headgate.matching.topics import Pattern, TopicHash, parse_pattern


def test_a_pattern_and_its_exact_twin_are_two() -> None:
    table: TopicHash[int] = TopicHash()
    below, exact = parse_pattern("a/*"), parse_pattern("a/*", exact=True)
    table.put(below, 1)
    table.put(exact, 2)
    assert sorted(table.resolve("a/b")) == [1, 2] and table.resolve("a/b/c") == [1]
    table.remove(below)
    assert table.get(below) is None and table.get(exact) == 2 and table.resolve("a/b/c") == []
    with pytest.raises(KeyError):
        table.remove(below)


def test_a_topic_that_would_make_more_keys_than_there_are_patterns_tries_the_patterns() -> None:
    table: TopicHash[int] = TopicHash()
    for number in range(3):
        table.put(Pattern(("a", *["*"] * 20, str(number))), number)
    topic = "/".join(["a", *"x" * 20, "1", "below"])
    assert table.lookups(topic) > 2**20 and table.resolve(topic) == [1]


def test_streams_are_apart() -> None:
    table: TopicHash[int] = TopicHash()
    table.put(Pattern(("a", "*")), 1)
    table.put(Pattern(("b", "x")), 2)
    assert table.lookups("a/x") == 3 and table.lookups("b/x") == 2 and table.lookups("c") == 0
    assert table.resolve("c/x") == [] and table.resolve("b/x") == [2]
