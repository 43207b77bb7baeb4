"""The keyed store as its caller sees it: alone, in a small world, and fed with nonsense."""

from __future__ import annotations

import pytest

from headgate.broker.core.keyspace import RING_SIZE, Arc
from headgate.broker.core.kv import Added, Item, KvConfig, KvStore, Placed, Removed, Tell, View
from headgate.broker.core.kv.limits import ITEM_BYTES_MAX, LEASE_SECONDS
from headgate.broker.core.kv.messages import Copied, CopyVerdict
from headgate.protocol.errors import LocalError, ProtocolViolation
from tests.support.keyed_parts import Kind, item, read, written
from tests.support.keyed_world import World

PLACES = [10 << 60, 3 << 60, 7 << 60, 12 << 60, 14 << 60]


def alone() -> KvStore:
    store = KvStore(100, KvConfig(), 0.0)
    store.view(View(100, 100, (), True, True), 0.0)
    return store


def by_itself() -> KvStore:
    """Alone, but somebody else may hold copies: it keeps tombstones."""
    store = alone()
    store.view(View(100, 100, (), True, False), 0.0)
    return store


def world_of(count: int, replicas: int = 2) -> World:
    """A world that has come to rest; nothing is lost in it."""
    world = World(1, replicas)
    world.route_loss = 0.0
    world.view_delay_max = 0.1
    world.found(PLACES[:count])
    world.run_for(8.0)
    assert world.repaired()
    return world


def placed(world: World, origin: int, *some: Item, within: float = 1.0) -> None:
    ticket = world.do(origin, lambda store: store.put(some, world.now))
    world.run_for(within)
    assert ticket in world.hosts[origin].placed


def holders(world: World, *name: str | int) -> list[int]:
    return [one for one, host in world.hosts.items() if host.store.get(name) is not None]


# --- Alone ------------------------------------------------------------------------------------------------------------


def test_who_is_certain_and_alone_answers_for_everything_at_once() -> None:
    store = alone()
    scope = store.scope(0.0)
    assert scope.everything
    assert scope.until == float("inf")
    ticket = store.put([item(1, 5)], 0.0)
    assert store.effects == [Added(item(1, 5)), Placed(ticket)]


def test_an_update_is_removed_and_added_and_a_tombstone_is_removed() -> None:
    store = by_itself()
    for version, value in ((1, "x"), (2, "y"), (3, None)):
        store.put([item(1, 5, version, value)], 0.0)
    happened = [one for one in store.effects if not isinstance(one, Placed)]
    first, second = item(1, 5, 1, "x"), item(1, 5, 2, "y")
    assert happened == [Added(first), Removed(first), Added(second), Removed(second)]
    assert store.get(("sub", 1)) is None
    assert store.statistics().tombstones == 1


def test_where_nobody_else_ever_was_nothing_is_left_of_what_is_gone() -> None:
    store = alone()
    store.put([item(1, 5)], 0.0)
    store.put([item(1, 5, 2, None), item(2, 6, 1, None)], 1.0)
    assert store.items.table == {}
    store.validate()


def test_dropping_by_name_makes_tombstones_of_the_same_version() -> None:
    store = by_itself()
    store.put([item(1, 5), item(2, 6)], 0.0)
    assert store.drop_where(lambda name: name[1] == 1, 1.0) == 1
    assert store.drop_where(lambda name: name[1] == 1, 1.0) == 0
    store.put([item(1, 5)], 2.0)
    assert store.get(("sub", 1)) is None
    store.put([item(1, 5, 2)], 3.0)
    assert store.get(("sub", 1)) == item(1, 5, 2)


def test_an_item_that_fits_no_message_is_refused() -> None:
    with pytest.raises(LocalError, match="store less"):
        alone().put([item(1, 5, value=b"x" * ITEM_BYTES_MAX)], 0.0)


def test_nonsense_is_a_violation() -> None:
    store = alone()
    store.peer_up(200, 0.0)
    for kind, body in ((99, []), (Kind.LEASE, ["x"]), (Kind.COPY, [1, [[]]]), (Kind.PUT, None)):
        with pytest.raises(ProtocolViolation):
            store.handle(200, read(kind, body), 0.0)
    store.validate()


def test_a_message_of_a_link_that_is_gone_changes_nothing() -> None:
    store = alone()
    store.handle(200, read(Kind.COPY, [1, written([item(1, 5)])]), 0.0)
    assert store.effects == []
    assert store.get(("sub", 1)) is None


def test_an_answer_to_who_had_these_keys_before_is_not_taken_for_one_to_ourselves() -> None:
    store = KvStore(100, KvConfig(), 0.0)
    ticket = store.put([item(1, 0, high=RING_SIZE - 1)], 0.0)
    answer = [ticket, 0, 0, RING_SIZE - 1]
    store.handle(200, read(Kind.STORED, [99, *answer]), 0.1)
    assert Placed(ticket) not in store.effects
    store.handle(200, read(Kind.STORED, [100, *answer]), 0.1)
    assert Placed(ticket) in store.effects


def test_who_took_keys_over_acknowledges_nothing_of_their_former_owner() -> None:
    store = KvStore(100, KvConfig(), 0.0)
    store.view(View(20, 100, (200,), True), 0.0)
    store.peer_up(50, 0.0)
    store.effects.clear()
    for kind, body in ((Kind.COPY, [1, []]), (Kind.STREAM, [2, True, True, 20, 50, []]), (Kind.CHECK, [3, 20, 0, 0])):
        store.handle(50, read(kind, body), 0.0)
    assert store.effects == [Tell(50, Copied(sequence, CopyVerdict.REFUSED)) for sequence in (1, 2, 3)]


def test_a_scope_is_the_same_object_until_it_ends_and_its_epoch_changes_with_the_keys() -> None:
    world = world_of(3)
    store = world.hosts[PLACES[0]].store
    scope = store.scope(world.now)
    assert store.scope(world.now) is scope
    world.run_for(1.0)
    later = store.scope(world.now)
    assert later.epoch == scope.epoch
    assert later.until > scope.until
    gone = store.scope(world.now + LEASE_SECONDS)
    assert gone.epoch > scope.epoch
    assert not gone.covers(PLACES[0])


# --- A small world ----------------------------------------------------------------------------------------------------


def test_up_to_three_brokers_all_answer_for_everything() -> None:
    world = world_of(3)
    assert all(host.store.scope(world.now).everything for host in world.hosts.values())


def test_an_item_lives_at_its_owner_and_at_the_next_two() -> None:
    world = world_of(5)
    placed(world, PLACES[0], item(1, 5 << 60))
    assert sorted(holders(world, "sub", 1)) == [7 << 60, 10 << 60, 12 << 60]


def test_a_segment_is_stored_at_every_owner_on_it() -> None:
    world = world_of(5, replicas=1)
    placed(world, PLACES[3], item(1, 13 << 60, high=2 << 60), item(2, 0, high=RING_SIZE - 1))
    assert sorted(holders(world, "sub", 1)) == [3 << 60, 7 << 60, 14 << 60]
    assert len(holders(world, "sub", 2)) == 5


def test_a_tombstone_is_known_wherever_the_item_was() -> None:
    world = world_of(5)
    placed(world, PLACES[0], item(1, 5 << 60))
    placed(world, PLACES[2], item(1, 5 << 60, 2, None))
    assert holders(world, "sub", 1) == []


def test_after_a_crash_the_next_one_answers_and_copies_are_topped_up() -> None:
    world = world_of(5)
    placed(world, PLACES[0], item(1, 5 << 60))
    world.crash(7 << 60)
    world.run_for(4.0)
    assert world.hosts[10 << 60].store.scope(world.now).covers(5 << 60)
    assert sorted(holders(world, "sub", 1)) == [10 << 60, 12 << 60, 14 << 60]
    world.run_for(3.0)
    placed(world, PLACES[1], item(1, 5 << 60, 2))


def test_a_newcomer_is_handed_its_keys_and_what_is_nobodys_goes() -> None:
    world = world_of(4)
    placed(world, PLACES[0], item(1, 5 << 60))
    world.start(6 << 60)
    world.run_for(3.0)
    assert world.hosts[6 << 60].store.get(("sub", 1)) is not None
    world.run_for(25.0)
    assert sorted(holders(world, "sub", 1)) == [6 << 60, 7 << 60, 10 << 60]


def test_a_broker_that_stood_still_wakes_up_answering_for_nothing() -> None:
    world = world_of(3)
    host = world.hosts[PLACES[0]]
    host.paused = True
    world.run_for(LEASE_SECONDS)
    assert host.store.scope(world.now).stretches == ()


def test_statistics_tell_who_holds_what() -> None:
    world = world_of(5)
    placed(world, PLACES[0], item(1, 5 << 60))
    statistics = world.hosts[7 << 60].store.statistics()
    assert statistics.own == statistics.ready == Arc(3 << 60, 7 << 60)
    assert statistics.siblings == {10 << 60: True, 12 << 60: True}
    assert sorted(statistics.replicas) == [3 << 60, 14 << 60]
    assert (statistics.items, statistics.puts_waiting, statistics.puts_unconfirmed) == (1, 0, 0)


def test_a_lost_copy_is_found_by_comparing() -> None:
    world = world_of(3)
    placed(world, PLACES[0], item(1, 5 << 60))
    world.do(10 << 60, lambda store: store.items.remove(("sub", 1)))
    world.run_for(3 * world.config.limits.check_seconds)
    assert len(holders(world, "sub", 1)) == 3
    assert world.hosts[7 << 60].store.statistics().differences == 1
