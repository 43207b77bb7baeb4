"""Allowed: a filter over what the index answers, against a look at each row and each subscription."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.forwarding.forwarding import Allowed
from headgate.broker.core.keyspace import Dimension, equal_dimension, topic_dimension

DIMENSIONS = [topic_dimension(1), topic_dimension(2), equal_dimension("x"), equal_dimension("y")]
ROWS = 6

Groups = list[tuple[tuple[int, ...], list[int]]]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[int, Dimension], Groups, set[Dimension], dict[Dimension, set[int]]]:
    """Where subscriptions rest, what an index may answer (a row in one group at the most), and what is allowed."""
    dimension_of = {number: draw(st.sampled_from(DIMENSIONS)) for number in range(1, 8)}
    rows = draw(st.permutations(range(ROWS)))
    groups: Groups = []
    while rows:
        share = draw(st.integers(1, len(rows)))
        subscriptions = draw(st.lists(st.sampled_from(sorted(dimension_of)), min_size=1, unique=True))
        if draw(st.booleans()):
            groups.append((tuple(subscriptions), sorted(rows[:share])))
        rows = rows[share:]
    whole = draw(st.sets(st.sampled_from(DIMENSIONS)))
    some = draw(st.dictionaries(st.sampled_from(DIMENSIONS), st.sets(st.integers(0, ROWS - 1), min_size=1)))
    return dimension_of, groups, whole, {dimension: rows for dimension, rows in some.items() if dimension not in whole}


@given(worlds(), st.booleans())
def test_what_is_left_is_what_looking_at_each_row_and_subscription_says(
    world: tuple[dict[int, Dimension], Groups, set[Dimension], dict[Dimension, set[int]]], remembered: bool
) -> None:
    dimension_of, groups, whole, rows = world
    memory: dict[tuple[int, ...], tuple[Dimension, ...]] = {}
    allowed = Allowed(dimension_of, memory, 1000)
    allowed.whole, allowed.rows = whole, rows
    if remembered:
        list(Allowed(dimension_of, memory, 1000)(groups))
    left = list(allowed(groups))
    wanted = {
        (row, subscription)
        for subscriptions, places in groups
        for row in places
        for subscription in subscriptions
        if dimension_of[subscription] in whole or row in rows.get(dimension_of[subscription], ())
    }
    pairs = [(row, subscription) for subscriptions, places in left for row in places for subscription in subscriptions]
    assert sorted(pairs) == sorted(wanted)
    seen = [row for _, places in left for row in places]
    assert len(seen) == len(set(seen)), "a row is in one group"
    order = {subscription: place for some, _ in groups for place, subscription in enumerate(some)}
    assert all(subscriptions and places for subscriptions, places in left)
    for subscriptions, places in left:
        (group,) = [some for some, of in groups if places[0] in of]
        assert [one for one in group if one in subscriptions] == list(subscriptions), order
    assert allowed.nothing == (not whole and not rows)


def test_what_is_remembered_is_bounded() -> None:
    memory: dict[tuple[int, ...], tuple[Dimension, ...]] = {}
    allowed = Allowed(dict.fromkeys(range(9), DIMENSIONS[0]), memory, 2)
    allowed.whole = {DIMENSIONS[0]}
    groups = [((number,), [number]) for number in range(5)]
    assert list(allowed(groups)) == groups
    assert len(memory) <= 2
