"""matching/topics/table.py: from a topic to its patterns, and the memory of the answers."""

from __future__ import annotations

import gc
import re
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.topics import (
    Pattern,
    TopicHash,
    TopicMasks,
    TopicMemory,
    TopicRegex,
    TopicTable,
    TopicTree,
    hash,
    masks,
)

LEVELS = st.sampled_from(["a", "b", "c"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=4).map("/".join)
PATTERNS = st.builds(
    lambda first, rest, exact: Pattern((first, *rest), exact),
    LEVELS,
    st.lists(st.one_of(LEVELS, st.just("*")), max_size=3),
    st.booleans(),
)


TABLES: list[Callable[[], TopicTable[Pattern]]] = [TopicTree, TopicRegex, TopicHash, TopicMasks]


@pytest.mark.parametrize("make", TABLES)
@given(st.sets(PATTERNS, max_size=12), st.sets(PATTERNS, max_size=6), TOPICS)
def test_a_table_resolves_what_the_patterns_match(
    make: Callable[[], TopicTable[Pattern]], kept: set[Pattern], removed: set[Pattern], topic: str
) -> None:
    with pytest.MonkeyPatch.context() as room:
        room.setattr(masks, "TOPIC_MASKS_MAX", 2)  # so that further masks overflow
        room.setattr(hash, "HASH_LOOKUPS_MAX", 4)
        table = make()
        for pattern in sorted(kept | removed, key=str):
            table.put(pattern, pattern)
        for pattern in sorted(removed - kept, key=str):
            table.remove(pattern)
            with pytest.raises(KeyError):
                table.remove(pattern)
        found = table.resolve(topic)
        assert len(found) == len(set(found))
        assert set(found) == {pattern for pattern in kept if pattern.matches(topic)}
        assert all(table.get(pattern) == pattern for pattern in kept)
        assert all(table.get(pattern) is None for pattern in removed - kept)


@pytest.mark.parametrize("make", TABLES)
def test_the_memory_a_table_says_it_takes_is_about_what_it_takes_and_comes_back(
    make: Callable[[], TopicTable[int]],
) -> None:
    thirds = ["*", *(f"c{i}" for i in range(47))]
    patterns = [Pattern(("s", f"a{i % 50}", f"b{i % 49}", thirds[i % 48], f"d{i}")) for i in range(2000)]
    re.purge()
    tracemalloc.start()
    try:
        table, before = make(), tracemalloc.get_traced_memory()[0]
        for number, pattern in enumerate(patterns):
            table.put(pattern, number)
        grown = tracemalloc.get_traced_memory()[0] - before
        assert 0.6 < table.memory_bytes() / grown < 1.6
        for pattern in patterns:
            table.remove(pattern)
        re.purge()
        gc.collect()  # which gives back the free lists
        assert tracemalloc.get_traced_memory()[0] - before < grown / 3
    finally:
        tracemalloc.stop()


def test_an_emptied_tree_keeps_no_nodes() -> None:
    tree: TopicTree[int] = TopicTree()
    patterns = [Pattern(("a", "*", "b")), Pattern(("a", "*")), Pattern(("a",), True), Pattern(("a", "x", "y"))]
    for number, pattern in enumerate(patterns):
        tree.put(pattern, number)
    for pattern in patterns:
        tree.remove(pattern)
    assert tree.nodes() == 0 and not tree


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
