"""matching/index/index.py: the five verbs. That it agrees with its twin is tests/properties/test_matching_index.py."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from headgate.matching.index import Index, Matches
from headgate.matching.language import compile_condition, parse_condition
from headgate.matching.topics import Pattern, parse_pattern
from headgate.matching.tree import Tree


def made(*subscriptions: tuple[str, str | None]) -> Index:
    """An index of subscriptions numbered from 1."""
    index = Index()
    for number, (pattern, text) in enumerate(subscriptions, 1):
        index.add(number, parse_pattern(pattern), condition(text))
    return index


def condition(text: str | None) -> Tree | None:
    return None if text is None else parse_condition(text)


def plain(matches: Matches) -> dict[tuple[int, ...], list[int]]:
    return {ids: list(rows) for ids, rows in matches}


def test_rows_come_in_groups_of_the_same_subscriptions() -> None:
    index = made(("q", None), ("q/*/b", None), ("q", "p > 1"))
    found = index.match(["q/a/b", "q/a/c", "r", "q/x/b"], 4, {"p": [1, 2, 3, 2]})
    assert plain(found) == {(1, 2): [0], (1, 3): [1], (1, 2, 3): [3]}


def test_one_topic_for_all_rows_answers_with_a_range_and_the_same_ids_each_time() -> None:
    index = made(("q", None), ("q/a", None))
    ((ids, rows),) = index.match(("q/a",), 1000, {})
    assert ids == (1, 2) and rows == range(1000)
    assert index.match(("q/a",), 5, {})[0][0] is ids
    assert index.match(["q/a", "q/a/b"], 2, {}) == [(ids, [0, 1])]
    assert index.match(("x",), 5, {}) == [] == index.match(("q",), 0, {})


def test_one_topic_with_conditions() -> None:
    index = made(("q", "a = 1"), ("q", "a = 1 OR b = 2"), ("q", None))
    found = index.match(("q/x",), 3, {"a": [1, 2, 2], "b": [0, 2, 0]})
    assert plain(found) == {(1, 2, 3): [0], (2, 3): [1], (3,): [2]}


def test_a_missing_column_is_null_in_every_row() -> None:
    index = made(("q", "a IS NULL"), ("q", "a = 1"), ("q", "b = 1 AND a > 1"))
    assert plain(index.match(("q",), 2, {"b": [1, 2]})) == {(1,): [0, 1]}


def test_equal_groups_of_different_topics_are_one() -> None:
    index = made(("q", "a = 1"), ("q/x", "a = 2"))
    assert plain(index.match(["q/x", "q/y", "q/x"], 3, {"a": [1, 1, 1]})) == {(1,): [0, 1, 2]}


def test_changes_are_seen_by_topics_that_are_remembered() -> None:
    index = made(("q", None))
    topics = ["q/a", "q/b/c"]
    assert plain(index.match(topics, 2, {})) == {(1,): [0, 1]}
    index.add(5, parse_pattern("q"))
    index.add(4, parse_pattern("q/a"))
    index.add(6, parse_pattern("q/*/c"), parse_condition("x = 1"))
    assert plain(index.match(topics, 2, {"x": [1, 1]})) == {(1, 4, 5): [0], (1, 5, 6): [1]}
    index.remove(4)
    index.remove(1)
    assert plain(index.match(topics, 2, {"x": [1, 2]})) == {(5,): [0, 1]}
    index.remove(5)
    index.remove(6)
    assert index.match(topics, 2, {"x": [1, 1]}) == []
    index.validate()


def test_a_new_pattern_forgets_only_the_topics_it_matches() -> None:
    index = made(("q", None))
    index.match(["q/a", "q/b", "q/c"], 3, {})
    index.add(2, parse_pattern("q/a"))
    assert index.statistics().remembered_topics == 2
    index.add(3, parse_pattern("q"))
    assert index.statistics().remembered_topics == 2


def test_attributes_are_those_that_some_condition_reads() -> None:
    index = made(("q", "b = 1 AND DELTA(p) > 1"), ("q", "b = 2 OR a > 1"))
    assert index.attributes() == ("a", "b", "p")
    assert index.attributes() is index.attributes()
    index.remove(2)
    assert index.attributes() == ("b", "p")
    index.remove(1)
    assert index.attributes() == ()


def test_a_number_is_used_once_and_an_unknown_one_cannot_go() -> None:
    index = made(("q", None))
    with pytest.raises(KeyError, match="1 is there already"):
        index.add(1, parse_pattern("r"))
    with pytest.raises(KeyError):
        index.remove(2)
    assert len(index) == 1 and 1 in index and 2 not in index
    index.validate()


def test_topics_must_be_one_or_as_many_as_rows() -> None:
    with pytest.raises(AssertionError, match="one for all rows"):
        made(("q", None)).match(["q", "q"], 3, {})


def test_statistics_is_a_snapshot() -> None:
    index = made(("q", "a = 1"), ("q", "a = 1"), ("q/x", "a + 1 > 2"), ("r", None))
    index.match(["q/x", "q/y", "zzz"], 3, {"a": [1, 1, 1]})
    found = index.statistics()
    assert (found.subscriptions, found.patterns, found.conditions, found.scanned_conditions) == (4, 3, 2, 1)
    assert (found.attributes, found.remembered_topics, found.audiences) == (1, 3, 3)
    assert found.shapes >= 1 and found.places == 2
    assert (found.rows, found.tested, found.passed, found.resolved_topics) == (3, 1, 0, 3)
    assert found.candidates_each == 1 / 3 and found.hit_rate == 0.0 and found.bytes_each == found.memory_bytes / 4
    empty = Index().statistics()
    assert (empty.candidates_each, empty.hit_rate, empty.bytes_each) == (0.0, 1.0, 0.0)


TEXTS = ("s = '{0}' AND p BETWEEN {0} AND {0} + 1", "p BETWEEN {0} AND {1}", "s LIKE '{0}%'", None)


@pytest.mark.parametrize("text", TEXTS)
def test_memory_is_about_what_statistics_say_and_comes_back_when_all_have_gone(text: str | None) -> None:
    starts = [number * 7 % 1000 for number in range(3000)]
    conditions = [condition(text and text.format(start, start + 5)) for start in starts]
    compile_condition(parse_condition("s = '1' AND p BETWEEN 1 AND 1 + 1"))
    tracemalloc.start()
    try:
        index, before = Index(), tracemalloc.get_traced_memory()[0]
        for number, tree in enumerate(conditions):
            index.add(number, Pattern(("q",)), tree)
        index.match(("q",), 3, {"s": ["1", "77", "x"], "p": [1, 500.5, None]})
        grown = tracemalloc.get_traced_memory()[0] - before
        assert 0.4 < index.statistics().memory_bytes / grown < 2.5
        for number in range(3000):
            index.remove(number)
        assert index.match(("q",), 3, {"s": ["1", "77", "x"], "p": [1, 500.5, None]}) == []
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < grown / 5, "what stays is caches of a fixed size"
    finally:
        tracemalloc.stop()
    index.validate()


def test_the_way_to_a_subscription_can_be_told() -> None:
    index = made(("q/*/x", "a = 1 AND b > c"), ("q", None), ("q", "a IN (1, 'x')"), ("q", "a > 1 AND a < 1"))
    assert index.explain(1) == ("at and below q/*/x -> a is 1 -> test of b, c",)
    assert index.explain(2) == ("at and below q -> match",)
    assert index.explain(3) == ("at and below q -> a is 1 -> match", "at and below q -> a is 'x' -> match")
    assert index.explain(4) == ("at and below q -> never",)
    index.add(9, parse_pattern("q", exact=True))
    assert index.explain(9) == ("exactly q -> match",)
    with pytest.raises(KeyError):
        index.explain(5)


def test_topics_that_do_not_fit_into_the_memory_at_once_are_still_one_group() -> None:
    index = Index(remembered_topics_max=1)
    index.add(1, parse_pattern("q"))
    assert index.match(["q/a", "r", "q/b", "q/a"], 4, {}) == [((1,), [0, 2, 3])]
    index.validate()


def test_equal_answers_of_different_cells_are_one_group() -> None:
    index = made(("q", "a = 'x' AND p > 1"), ("q", "a IN ('x', 'y')"), ("q", "a = 'y' AND p > 5"))
    found = index.match(("q",), 4, {"a": ["x", "y", "x", "y"], "p": [0, 0, 0, 0]})
    assert found == [((2,), [0, 1, 2, 3])]
    twice = made(("q", "a IN ('x', 'y')"), ("q", "a IN ('x', 'y', 'z')"))
    assert twice.match(("q",), 3, {"a": ["y", "x", "y"]}) == [((1, 2), [0, 1, 2])]


def test_many_attributes_an_event() -> None:
    index = Index()
    for number in range(640):
        index.add(number, Pattern(("q",)), parse_condition(f"a{number % 64} BETWEEN {number} AND {number + 64}"))
    columns = {f"a{place}": [320.0 + place] for place in range(64)}
    ((ids, rows),) = index.match(("q",), 1, columns)
    expected = [n for n in range(640) if n <= 320 + n % 64 <= n + 64]
    assert list(ids) == expected and list(rows) == [0]


def test_the_memory_of_topics_is_bounded_and_audiences_go_with_it() -> None:
    index = Index(remembered_topics_max=3)
    for number in range(10):
        index.add(number, parse_pattern(f"q/{number}"))
    topics = [f"q/{number}" for number in range(10)]
    assert plain(index.match(topics, 10, {})) == {(number,): [number] for number in range(10)}
    assert index.statistics().remembered_topics == index.statistics().audiences == 3
    index.validate()


def test_a_storm_of_identical_subscriptions_stays_one_condition() -> None:
    index = Index()
    pattern, tree = Pattern(("q",)), parse_condition("a = 1")
    for number in range(20_000):
        index.add(number, pattern, tree)
    ((ids, rows),) = index.match(("q",), 2, {"a": [1, 2]})
    assert len(ids) == 20_000 and rows == [0]
    assert index.statistics().conditions == 1
    for number in range(20_000):
        index.remove(number)
    assert index.match(("q",), 2, {"a": [1, 2]}) == [] and index.attributes() == ()


def test_many_subscriptions_that_match_everything() -> None:
    index = Index()
    for number in range(2_000):
        index.add(number, Pattern(("q",)), parse_condition(f"a <> {number + 10}"))
    ((ids, rows),) = index.match(("q",), 3, {"a": [1, 1, 1]})
    assert len(ids) == 2_000 and rows == [0, 1, 2]
