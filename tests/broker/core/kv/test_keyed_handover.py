"""What is answered to who gained keys, and when ours become his."""

from __future__ import annotations

from typing import Any

from headgate.broker.core.keyspace import Arc
from headgate.broker.core.kv import Item, KvConfig, KvStore, Tell, View
from headgate.broker.core.kv.messages import CopyVerdict, Verdict
from tests.support.keyed_parts import Kind, item, read, said, written

ME, BEFORE, AFTER, NEWCOMER = 100, 50, 200, 80


def told(store: KvStore, broker: int, kind: Kind) -> list[list[Any]]:
    """What the store said to a broker, of one kind."""
    told = [said(one) for one in store.effects if isinstance(one, Tell)]
    return [one.body for one in told if (one.identifier, one.kind) == (broker, kind)]


def owner(*some: Item, certain: bool = True) -> KvStore:
    """The owner of (50, 100], ready when it is certain."""
    store = KvStore(ME, KvConfig(), 0.0)
    store.view(View(BEFORE, ME, (AFTER,), True, certain), 0.0)
    for peer in (BEFORE, AFTER, NEWCOMER, 70):
        store.peer_up(peer, 0.0)
    for one in some:
        store.items.merge(one, 0.0)
    store.writes.spread()
    store.effects.clear()
    return store


def fetch(
    store: KvStore, asker: int, stretch: Arc, *, anyway: bool = False, same_as: KvStore | None = None, now: float = 0.1
) -> tuple[int, list[Any]]:
    """The verdict and the numbers of the items of the first page."""
    whole = same_as is not None
    count, digest = same_as.ownership.fingerprint(stretch) if same_as is not None else (0, 0)
    store.effects.clear()
    store.handle(asker, read(Kind.FETCH, [7, stretch.after, stretch.last, anyway, whole, count, digest]), now)
    number, last, verdict, items = told(store, asker, Kind.PAGE)[0]
    assert (number, last) == (7, True)
    return verdict, [one[0][1] for one in items]


def test_ready_keys_of_ours_are_his_from_that_moment() -> None:
    store = owner(item(1, 60), item(2, 90))
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER)) == (Verdict.WHOLE, [1])
    assert store.ownership.own == Arc(NEWCOMER, ME)


def test_he_may_ask_again_when_the_answer_was_lost() -> None:
    store = owner(item(1, 60))
    for _ in range(2):
        assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER)) == (Verdict.WHOLE, [1])


def test_equal_copies_need_no_items() -> None:
    store, other = owner(item(1, 60)), owner(item(1, 60))
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER), same_as=other) == (Verdict.WHOLE, [])
    store, other = owner(item(1, 60, 2)), owner(item(1, 60))
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER), same_as=other) == (Verdict.WHOLE, [1])


def test_what_came_and_went_unseen_by_who_asks_is_sent_though_the_copies_are_equal() -> None:
    store, other = owner(item(1, 60), item(2, 70, 2, None), item(3, 90, 2, None)), owner(item(1, 60))
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER), same_as=other) == (Verdict.WHOLE, [2])


def test_while_ours_are_not_ready_there_is_hope_and_nothing_is_handed_over() -> None:
    store = owner(item(1, 60), certain=False)
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER)) == (Verdict.BUSY, [])
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER), now=2.5) == (Verdict.HOPING, [])
    assert store.ownership.own == Arc(BEFORE, ME)


def test_who_waited_long_enough_gets_parts_of_what_is_without_hope() -> None:
    store = owner(item(1, 60), certain=False)
    question = told(store, AFTER, Kind.FETCH) or [[1]]
    store.handle(AFTER, read(Kind.PAGE, [question[0][0], True, int(Verdict.BUSY), []]), 0.05)
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER)) == (Verdict.BUSY, [])
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER), anyway=True) == (Verdict.PARTIAL, [1])
    assert store.ownership.own == Arc(NEWCOMER, ME)


def test_who_claims_our_own_place_is_handed_nothing() -> None:
    store = owner(item(1, 60))
    assert fetch(store, AFTER, Arc(BEFORE, AFTER)) == (Verdict.BUSY, [])
    assert store.ownership.own == Arc(BEFORE, ME)


def test_of_keys_that_are_nobodys_here_parts_are_given() -> None:
    store = owner(item(1, 20))
    assert fetch(store, BEFORE, Arc(10, BEFORE)) == (Verdict.PARTIAL, [1])


def replicating(until: float) -> KvStore:
    """It holds a replica of (10, 50] for the broker before it, granted until then."""
    store = owner()
    store.handle(BEFORE, read(Kind.STREAM, [1, True, True, 10, BEFORE, written([item(1, 20)])]), 0.0)
    number = told(store, BEFORE, Kind.LEASE)[0][0]
    store.handle(BEFORE, read(Kind.GRANTED, [number, 10, int(until * 1000)]), 0.0)
    return store


def test_a_living_owner_is_not_gone_over() -> None:
    store = replicating(2.0)
    assert fetch(store, NEWCOMER, Arc(10, BEFORE), now=0.5) == (Verdict.OWNED, [])
    store.handle(BEFORE, read(Kind.COPY, [2, []]), 0.6)
    assert told(store, BEFORE, Kind.COPIED) == [[2, CopyVerdict.STORED]]


def test_a_dead_owners_replica_is_given_and_closed() -> None:
    store = replicating(2.0)
    store.peer_down(BEFORE, 0.4)
    assert fetch(store, NEWCOMER, Arc(10, BEFORE), now=0.5) == (Verdict.WHOLE, [1])
    store.peer_up(BEFORE, 0.6)
    store.handle(BEFORE, read(Kind.COPY, [1, []]), 0.7)
    assert told(store, BEFORE, Kind.COPIED) == [[1, CopyVerdict.REFUSED]]


def test_a_silent_owners_replica_is_given_when_his_grant_is_over_and_he_hears_it() -> None:
    store = replicating(2.0)
    store.tick(1.0)
    assert fetch(store, NEWCOMER, Arc(10, BEFORE), now=2.0) == (Verdict.WHOLE, [1])
    assert told(store, BEFORE, Kind.COPIED) == [[1, CopyVerdict.REFUSED]]


def test_a_replica_that_is_long_out_of_date_is_parts() -> None:
    store = replicating(0.5)
    assert fetch(store, NEWCOMER, Arc(10, BEFORE), now=6.0) == (Verdict.PARTIAL, [1])


def test_what_was_handed_on_is_parts_for_others() -> None:
    store = owner(item(1, 60))
    assert fetch(store, NEWCOMER, Arc(BEFORE, NEWCOMER), now=0.1) == (Verdict.WHOLE, [1])
    assert fetch(store, 70, Arc(BEFORE, 70), now=0.2) == (Verdict.PARTIAL, [1])


def test_who_stood_still_past_the_end_of_a_grant_gives_parts() -> None:
    store = replicating(2.0)
    assert fetch(store, NEWCOMER, Arc(10, BEFORE), now=2.0) == (Verdict.PARTIAL, [1])


def test_who_was_told_that_he_is_left_out_gives_parts() -> None:
    store = replicating(2.0)
    store.peer_down(BEFORE, 0.5)
    assert fetch(store, NEWCOMER, Arc(10, BEFORE), now=0.6) == (Verdict.WHOLE, [1])
    store = replicating(2.0)
    store.effects.clear()
    store.tick(0.7)
    store.handle(BEFORE, read(Kind.GRANTED, [told(store, BEFORE, Kind.LEASE)[0][0], 10, 0]), 0.8)
    assert fetch(store, NEWCOMER, Arc(10, BEFORE), now=0.9) == (Verdict.PARTIAL, [1])
