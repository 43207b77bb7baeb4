"""Allowed: a filter over what the index answers, against a look at each row and each subscription."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.forwarding.forwarding import Allowed
from headgate.broker.core.keyspace import Shelf, equal_shelf, topic_shelf

SHELVES = [topic_shelf(1), topic_shelf(2), equal_shelf("x"), equal_shelf("y")]
ROWS = 6

Groups = list[tuple[tuple[int, ...], list[int]]]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[int, Shelf], Groups, set[Shelf], dict[Shelf, set[int]]]:
    """Where subscriptions rest, what an index may answer (a row in one group at the most), and what is allowed."""
    shelf_of = {number: draw(st.sampled_from(SHELVES)) for number in range(1, 8)}
    rows = draw(st.permutations(range(ROWS)))
    groups: Groups = []
    while rows:
        share = draw(st.integers(1, len(rows)))
        subscriptions = draw(st.lists(st.sampled_from(sorted(shelf_of)), min_size=1, unique=True))
        if draw(st.booleans()):
            groups.append((tuple(subscriptions), sorted(rows[:share])))
        rows = rows[share:]
    whole = draw(st.sets(st.sampled_from(SHELVES)))
    some = draw(st.dictionaries(st.sampled_from(SHELVES), st.sets(st.integers(0, ROWS - 1), min_size=1)))
    return shelf_of, groups, whole, {shelf: rows for shelf, rows in some.items() if shelf not in whole}


@given(worlds(), st.booleans())
def test_what_is_left_is_what_looking_at_each_row_and_subscription_says(
    world: tuple[dict[int, Shelf], Groups, set[Shelf], dict[Shelf, set[int]]], remembered: bool
) -> None:
    shelf_of, groups, whole, rows = world
    memory: dict[tuple[int, ...], tuple[Shelf, ...]] = {}
    allowed = Allowed(shelf_of, memory, 1000)
    allowed.whole, allowed.rows = whole, rows
    if remembered:
        list(Allowed(shelf_of, memory, 1000)(groups))
    left = list(allowed(groups))
    wanted = {
        (row, subscription)
        for subscriptions, places in groups
        for row in places
        for subscription in subscriptions
        if shelf_of[subscription] in whole or row in rows.get(shelf_of[subscription], ())
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
    memory: dict[tuple[int, ...], tuple[Shelf, ...]] = {}
    allowed = Allowed(dict.fromkeys(range(9), SHELVES[0]), memory, 2)
    allowed.whole = {SHELVES[0]}
    groups = [((number,), [number]) for number in range(5)]
    assert list(allowed(groups)) == groups
    assert len(memory) <= 2
