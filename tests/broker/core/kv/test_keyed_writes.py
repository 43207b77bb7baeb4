"""Writes at an owner: each of the rules that a confirmation waits for."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from headgate.broker.core.keyspace import RING_SIZE
from headgate.broker.core.kv import Item, KvConfig, KvStore, Placed, Route, Tell, View
from headgate.broker.core.kv.limits import PUT_HOPS_MAX
from headgate.broker.core.kv.messages import CopyVerdict, Renewal, Verdict
from headgate.broker.core.messages import STORE
from tests.support.keyed_parts import Kind, Said, item, read, said, written

ME, BEFORE, FIRST, SECOND, ORIGIN = 100, 50, 200, 300, 900
READY_AT = 0.0
LEASE = 2.5


class Owner:
    """The store of a broker that owns (50, 100] with two synced siblings, and leases that never end but on request."""

    def __init__(self) -> None:
        self.store = KvStore(ME, KvConfig(), 0.0)
        self.store.view(View(BEFORE, ME, (FIRST, SECOND), True), 0.0)
        for peer in (BEFORE, FIRST, SECOND, ORIGIN):
            self.store.peer_up(peer, 0.0)
        fetch = next(one for one in self.tells() if one.kind == Kind.FETCH)
        self.hear(FIRST, Kind.PAGE, [fetch.body[0], True, Verdict.WHOLE, []], READY_AT)
        self.answer(READY_AT)

    def hear(self, sender: int, kind: Kind, body: list[Any], now: float) -> None:
        plain = [int(part) if isinstance(part, IntEnum) else part for part in body]
        self.store.handle(sender, read(kind, plain), now)

    def tells(self) -> list[Said]:
        taken = [said(one) for one in self.store.effects if isinstance(one, Tell)]
        self.store.effects.clear()
        return taken

    def answer(self, now: float, *silent: int, renew: bool = True) -> list[Said]:
        """Siblings acknowledge, and the first says yes; returns what else was said."""
        rest = []
        while tells := self.tells():
            for one in tells:
                if one.kind in (Kind.STREAM, Kind.COPY, Kind.CHECK):
                    if one.identifier not in silent:
                        self.hear(one.identifier, Kind.COPIED, [one.body[0], CopyVerdict.STORED], now)
                elif one.kind == Kind.RENEW:
                    if renew:
                        self.hear(one.identifier, Kind.RENEWED, [one.body[0], Renewal.YES], now)
                else:
                    rest.append(one)
        return rest

    def put(
        self,
        now: float,
        some: list[Item],
        until: int | None = None,
        hops: int = 0,
        start: int | None = None,
        ticket: int = 1,
    ) -> None:
        begin = some[0].low if start is None else start
        end = some[0].high if until is None else until
        self.hear(ORIGIN, Kind.PUT, [ORIGIN, ticket, 0, begin, end, hops, written(some)], now)

    def keep_leases(self, until: float) -> None:
        now = 0.0
        while (now := max(now + 0.01, self.store.timers.next)) < until:
            self.store.tick(now)
            self.answer(now)


def stored(tells: list[Said]) -> list[list[Any]]:
    return [one.body[1:] for one in tells if one.kind == Kind.STORED and one.identifier == one.body[0] == ORIGIN]


def test_confirmed_when_all_siblings_acknowledged() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.put(3.0, [item(1, 60)])
    assert stored(it.answer(3.0, FIRST, SECOND)) == []
    it.hear(FIRST, Kind.COPIED, [2, CopyVerdict.STORED], 3.1)
    assert stored(it.tells()) == []
    it.hear(SECOND, Kind.COPIED, [2, CopyVerdict.STORED], 3.1)
    assert stored(it.tells()) == [[1, 0, 60, 60]]


def test_a_put_of_a_later_life_of_its_origin_is_not_taken_for_one_of_the_former() -> None:
    it = Owner()
    it.keep_leases(3.0)
    lives = [KvStore(ORIGIN, KvConfig(life=life), 0.0) for life in (1, 2)]
    former, present = (store.put([item(1, 60)], 0.0) for store in lives)
    it.put(3.0, [item(1, 60)], ticket=former)
    it.answer(3.0, FIRST, SECOND)
    it.put(3.1, [item(1, 60, 2)], ticket=present)
    assert [one.body[0] for one in it.tells() if one.kind == Kind.COPY] == [3, 3]
    for sibling in (FIRST, SECOND):
        it.hear(sibling, Kind.COPIED, [2, CopyVerdict.STORED], 3.2)  # that is all of the former's
    assert [body[0] for body in stored(it.tells())] == [former]
    for sibling in (FIRST, SECOND):
        it.hear(sibling, Kind.COPIED, [3, CopyVerdict.STORED], 3.3)
    assert [body[0] for body in stored(it.tells())] == [present]


def test_not_before_a_lease_has_passed_since_the_keys_were_gained() -> None:
    it = Owner()
    it.put(1.0, [item(1, 60)])
    assert stored(it.answer(1.0)) == []
    it.keep_leases(LEASE)
    assert len(it.store.writes_in_flight) == 1
    it.store.tick(LEASE)
    assert stored(it.tells()) == [[1, 0, 60, 60]]


def test_not_without_a_lease_of_ones_own() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.put(6.0, [item(1, 60)])  # long over
    assert stored(it.answer(6.0, renew=False)) == []


def test_who_had_no_lease_for_a_moment_gains_his_keys_anew() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.put(6.0, [item(1, 60)])
    it.answer(6.0)
    it.store.tick(6.1)
    (fetch,) = [one for one in it.tells() if one.kind == Kind.FETCH]
    it.hear(FIRST, Kind.PAGE, [fetch.body[0], True, Verdict.WHOLE, []], 6.2)
    assert stored(it.answer(6.2)) == []
    confirmed, now = [], 6.2
    while not confirmed:
        now = max(now + 0.01, it.store.timers.next)
        it.store.tick(now)
        confirmed = stored(it.answer(now))
    assert confirmed == [[1, 0, 60, 60]]
    assert 6.2 + LEASE <= now < 6.3 + LEASE


def test_not_while_a_former_sibling_may_still_answer() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.hear(SECOND, Kind.LEASE, [1], 3.0)
    (granted,) = [one for one in it.tells() if one.kind == Kind.GRANTED]
    ends = 3.0 + granted.body[2] / 1000
    it.store.view(View(BEFORE, ME, (FIRST,), True), 3.0)
    it.put(3.0, [item(1, 60)])
    assert stored(it.answer(3.0)) == []
    it.keep_leases(ends - 0.01)
    assert len(it.store.writes_in_flight) == 1
    it.keep_leases(ends + 0.01)
    assert len(it.store.writes_in_flight) == 0


def test_a_new_sibling_must_have_it_too() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.put(3.0, [item(1, 60)])
    it.store.view(View(BEFORE, ME, (FIRST, SECOND, 400), True), 3.0)
    assert stored(it.answer(3.0)) == []
    it.store.peer_up(400, 3.1)
    assert stored(it.answer(3.1)) == [[1, 0, 60, 60]]


def test_what_a_broken_link_swallowed_is_sent_again_over_the_new_one() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.put(3.0, [item(1, 60)])
    it.answer(3.0, SECOND)
    it.store.peer_down(SECOND, 3.1)
    it.store.peer_up(SECOND, 3.2)
    assert stored(it.answer(3.2)) == [[1, 0, 60, 60]]


def test_a_refresh_is_confirmed_at_once() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.put(3.0, [item(1, 60)])
    it.answer(3.0)
    it.put(3.1, [item(1, 60)])
    tells = it.tells()
    assert stored(tells) == [[1, 0, 60, 60]]
    assert [one for one in tells if one.kind == Kind.COPY] == []


def test_what_came_by_another_way_is_copied_before_it_is_confirmed() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.hear(BEFORE, Kind.STREAM, [1, True, True, 10, BEFORE, written([item(1, 40, high=60)])], 3.0)
    copies = [one.identifier for one in it.tells() if one.kind == Kind.COPY]
    assert copies == [FIRST, SECOND]
    it.put(3.0, [item(1, 40, high=60)], start=51)
    assert stored(it.tells()) == []
    for sibling in (FIRST, SECOND):
        it.hear(sibling, Kind.COPIED, [2, CopyVerdict.STORED], 3.1)
    assert stored(it.tells()) == [[1, 0, 51, 60]]


def test_the_rest_of_a_segment_is_passed_on() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.put(3.0, [item(1, 60, high=150)])
    (route,) = [one for one in it.store.effects if isinstance(one, Route)]
    assert (route.key, STORE.write(route.message)[1][:6]) == (101, [ORIGIN, 1, 0, 101, 150, 1])
    assert stored(it.answer(3.0)) == [[1, 0, 60, 100]]


def test_what_is_not_ours_is_passed_on_for_so_many_hops() -> None:
    it = Owner()
    it.put(3.0, [item(1, 150)])
    assert [one.key for one in it.store.effects if isinstance(one, Route)] == [150]
    it.store.effects.clear()
    it.put(3.0, [item(1, 150)], hops=PUT_HOPS_MAX)
    assert it.store.effects == []


def test_what_was_handed_on_goes_to_the_newcomer() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.store.peer_up(80, 3.0)
    it.hear(80, Kind.FETCH, [1, BEFORE, 80, False, False, 0, 0], 3.0)
    it.answer(3.0)
    it.put(3.0, [item(1, 60)])
    (put,) = it.tells()
    assert (put.identifier, put.kind) == (80, Kind.PUT)
    assert ("sub", 1) not in it.store.items.table


def test_handing_over_ends_what_was_not_confirmed() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.put(3.0, [item(1, 60)])
    it.store.peer_up(80, 3.0)
    it.hear(80, Kind.FETCH, [1, BEFORE, 80, False, False, 0, 0], 3.0)
    tells = it.answer(3.0)
    assert stored(tells) == []
    assert [one.body[3][0][0] for one in tells if one.kind == Kind.PAGE] == [["sub", 1]]
    assert len(it.store.writes_in_flight) == 0


def test_alone_with_the_ring_a_segment_past_oneself_is_covered_in_two_steps() -> None:
    store = KvStore(ME, KvConfig(), 0.0)
    store.view(View(ME, ME, (), True, True), 0.0)
    whole = item(1, 0, high=RING_SIZE - 1)
    ticket = store.put([whole, item(2, 90, high=110)], 0.0)
    assert Placed(ticket) in store.effects
    assert store.get(("sub", 1)) == whole


def test_who_is_no_sibling_hears_that_he_is_left_out_and_one_not_yet_synced_hears_nothing() -> None:
    it = Owner()
    it.keep_leases(3.0)
    it.hear(ORIGIN, Kind.LEASE, [7], 3.0)
    assert [one.body for one in it.tells() if one.kind == Kind.GRANTED] == [[7, BEFORE, 0]]
    it.store.peer_down(SECOND, 3.1)
    it.store.peer_up(SECOND, 3.1)
    it.hear(SECOND, Kind.LEASE, [8], 3.1)
    assert [one for one in it.tells() if one.kind == Kind.GRANTED] == []
