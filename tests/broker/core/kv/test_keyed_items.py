"""Items by name: merging is a join, tombstones win and are forgotten, tallies are what counting gives."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import RING_SIZE, Arc
from headgate.broker.core.kv import Added, Item, KvLimits, Removed
from headgate.broker.core.kv.items import Items, Merged, digest_of
from headgate.broker.core.kv.messages import KvEffect
from headgate.broker.core.timers import Timers
from tests.support.keyed_parts import item

small = st.builds(
    lambda number, key, version, live: item(number, key * 10, version, "x" if live else None),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(1, 3),
    st.booleans(),
)


def made(effects: list[KvEffect] | None = None, timers: Timers | None = None, **limits: int) -> Items:
    return Items([] if effects is None else effects, timers or Timers(), KvLimits(tombstone_seconds=60.0, **limits))


def test_a_higher_version_wins() -> None:
    items = made()
    assert items.merge(item(1, 5, 2), 0.0) is Merged.NEWER
    assert items.merge(item(1, 5, 1), 0.0) is Merged.OLDER
    assert items.merge(item(1, 5, 2), 0.0) is Merged.SAME
    assert items.merge(item(1, 5, 3), 0.0) is Merged.NEWER


def test_at_equal_version_the_tombstone_wins() -> None:
    for order in permutations([item(1, 5, 2), item(1, 5, 2, None)]):
        items = made()
        for one in order:
            items.merge(one, 0.0)
        assert items.table[("sub", 1)].value is None


def test_a_newer_version_brings_a_removed_item_back() -> None:
    items = made()
    items.merge(item(1, 5, 2, None), 0.0)
    assert items.merge(item(1, 5, 3), 0.0) is Merged.NEWER
    assert len(items) == 1
    assert items.tombstones == 0


@given(st.lists(small, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_merging_makes_no_difference(copies: list[Item], random) -> None:  # type: ignore[no-untyped-def]
    key_of = {("sub", number): number * 10 for number in range(4)}  # a name keeps its segment for life
    copies = [one._replace(low=key_of[one.name], high=key_of[one.name]) for one in copies]
    one, other = made(), made()
    for copy in copies:
        one.merge(copy, 0.0)
    shuffled = copies * 2
    random.shuffle(shuffled)
    for copy in shuffled:
        other.merge(copy, 0.0)
    assert one.table == other.table


@given(st.lists(small, max_size=12))
def test_the_effects_tell_what_is_held(copies: list[Item]) -> None:
    effects: list[KvEffect] = []
    items = made(effects)
    indexed: dict[object, Item] = {}
    for copy in copies:
        items.merge(copy, 0.0)
    items.remove(("sub", 0))
    for effect in effects:
        if isinstance(effect, Added):
            assert effect.item.name not in indexed
            indexed[effect.item.name] = effect.item
        elif isinstance(effect, Removed):
            assert indexed.pop(effect.item.name) == effect.item
    assert indexed == {name: held for name, held in items.table.items() if held.value is not None}


@given(st.lists(small, max_size=12), st.integers(0, 30), st.integers(0, 30))
def test_a_tally_is_what_counting_gives(copies: list[Item], after: int, last: int) -> None:
    items = made()
    stretch = Arc(after, last)
    items.watch(7, stretch)
    for copy in copies:
        items.merge(copy, 0.0)
    items.remove(("sub", 2))
    assert items.watched(7) == items.tally(stretch)
    items.validate()


def test_equal_items_have_equal_digests_and_others_have_not() -> None:
    assert digest_of(item(1, 5)) == digest_of(item(1, 5, value="y"))
    assert len({digest_of(item(1, 5)), digest_of(item(2, 5)), digest_of(item(1, 5, 2))}) == 3


def test_tombstones_are_forgotten_in_time() -> None:
    timers = Timers()
    items = made(timers=timers)
    items.merge(item(1, 5, 1, None), 0.0)
    items.merge(item(2, 5, 1, None), 10.0)
    assert timers.next == 60.0
    items.forget_tombstones(60.0)
    assert list(items.table) == [("sub", 2)] and timers.next == 70.0


def test_of_too_many_tombstones_the_oldest_go_first() -> None:
    items = made(tombstones=3)
    for number in range(5):
        items.merge(item(number, 5, 1, None), float(number))
    assert list(items.table) == [("sub", 2), ("sub", 3), ("sub", 4)]


def test_when_it_is_full_only_what_is_known_is_renewed() -> None:
    items = made(items=1)
    items.merge(item(1, 5), 0.0)
    assert items.merge(item(2, 5), 0.0) is Merged.FULL
    assert items.merge(item(1, 5, 2), 0.0) is Merged.NEWER
    assert items.full == 1


def test_what_touches_a_stretch_is_found() -> None:
    items = made()
    for one in (item(1, 5), item(2, 15), item(3, 0, high=RING_SIZE - 1), item(4, 8, 1, None)):
        items.merge(one, 0.0)
    assert [one.name[1] for one in items.touching(Arc(4, 10))] == [1, 3, 4]
    assert len(list(items.touching(Arc(4, 4)))) == 4
