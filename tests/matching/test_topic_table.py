"""matching/topic_table.py: from a topic to its patterns, and the memory of the answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.topic_table import TopicMemory, TopicTree
from matching.topics import Pattern

LEVELS = st.sampled_from(["a", "b", "c"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=4).map("/".join)
PATTERNS = st.builds(
    lambda first, rest, exact: Pattern((first, *rest), exact),
    LEVELS,
    st.lists(st.one_of(LEVELS, st.just("*")), max_size=3),
    st.booleans(),
)


@given(st.sets(PATTERNS, max_size=12), st.sets(PATTERNS, max_size=6), TOPICS)
def test_the_tree_resolves_what_the_patterns_match(kept: set[Pattern], removed: set[Pattern], topic: str) -> None:
    tree: TopicTree[Pattern] = TopicTree()
    for pattern in sorted(kept | removed, key=str):
        tree.put(pattern, pattern)
    for pattern in sorted(removed - kept, key=str):
        tree.remove(pattern)
    found = tree.resolve(topic)
    assert len(found) == len(set(found))
    assert set(found) == {pattern for pattern in kept if pattern.matches(topic)}
    assert all(tree.get(pattern) == pattern for pattern in kept)
    assert all(tree.get(pattern) is None for pattern in removed - kept)


def test_an_emptied_tree_keeps_no_nodes() -> None:
    tree: TopicTree[int] = TopicTree()
    patterns = [Pattern(("a", "*", "b")), Pattern(("a", "*")), Pattern(("a",), True), Pattern(("a", "x", "y"))]
    for number, pattern in enumerate(patterns):
        tree.put(pattern, number)
    for pattern in patterns:
        tree.remove(pattern)
    assert tree._root.is_empty()


def test_removing_what_is_not_there_is_an_error_and_changes_nothing() -> None:
    tree: TopicTree[int] = TopicTree()
    tree.put(Pattern(("a", "b")), 1)
    for absent in (Pattern(("a",)), Pattern(("a", "b"), True), Pattern(("a", "*")), Pattern(("x", "y", "z"))):
        with pytest.raises(KeyError):
            tree.remove(absent)
    assert tree.resolve("a/b/c") == [1]


@given(st.lists(TOPICS, unique=True), PATTERNS)
def test_a_pattern_makes_the_memory_forget_the_topics_it_matches_and_no_others(
    topics: list[str], pattern: Pattern
) -> None:
    memory: TopicMemory[str] = TopicMemory()
    for topic in topics:
        assert memory.remember(topic, topic) is None
    forgotten = memory.forget(pattern)
    memory.validate()
    assert sorted(forgotten) == sorted(topic for topic in topics if pattern.matches(topic))
    assert sorted(memory.answers) == sorted(topic for topic in topics if not pattern.matches(topic))


def test_a_full_memory_lets_the_oldest_go() -> None:
    memory: TopicMemory[int] = TopicMemory(topics_max=2)
    assert [memory.remember(topic, number) for number, topic in enumerate(["a", "a/b", "c", "d"])] == [None, None, 0, 1]
    assert memory.answers == {"c": 2, "d": 3}
    memory.validate()
