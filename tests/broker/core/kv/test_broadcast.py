"""Broadcasts: two link times when all answers together cover the ring, and a put along the ring when they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.broker.core.keyspace import MESH_BROKERS_MAX, RING_SIZE, Arc
from headgate.broker.core.kv import Item, KvConfig, KvStore, Placed, Tell, View
from headgate.broker.core.kv.broadcast import Broadcasts
from headgate.broker.core.kv.items import Items
from headgate.broker.core.kv.limits import DEFAULT_LIMITS
from headgate.broker.core.kv.messages import Told, Walk
from tests.support.keyed_parts import Kind, Said, Sent, item, read, said, written

ME, NEXT, LAST = 100, 200, 300
WHOLE = item(1, 0, high=RING_SIZE - 1)
OWN = Told(7, True, LAST, [NEXT], [LAST])
THEIRS = {NEXT: Told(7, True, ME, [LAST], [ME]), LAST: Told(7, True, NEXT, [ME], [NEXT])}


class Origin:
    """Broadcasts of one of three brokers, each of which has one sibling."""

    def __init__(self) -> None:
        self.sent = Sent()
        items = Items(self.sent, self.sent.timers)
        linked: dict[int, None] = dict.fromkeys(THEIRS)
        self.broadcasts = Broadcasts(ME, items, linked, self.sent, self.sent.timers, DEFAULT_LIMITS, 64)
        self.broadcasts.store([WHOLE], 0.0)
        self.broadcasts.begin(7, [WHOLE], OWN, 0.0)

    def answer(self, sender: int, **different: object) -> None:
        self.broadcasts.told(sender, replace(THEIRS[sender], **different))  # type: ignore[arg-type]

    @property
    def ends(self) -> list[object]:
        return [one for one in self.sent if isinstance(one, Placed | Walk)]


def test_everybody_is_told_at_once_and_it_is_placed_with_the_last_answer() -> None:
    origin = Origin()
    assert origin.sent.messages == [(one, Kind.TELLALL, [7, written([WHOLE])]) for one in THEIRS]
    origin.answer(NEXT)
    origin.broadcasts.validate()
    assert origin.ends == []
    origin.answer(LAST)
    assert origin.ends == [Placed(7)]
    origin.answer(LAST)
    assert origin.ends == [Placed(7)] and origin.sent.timers.next == float("inf")


@pytest.mark.parametrize(
    "different",
    [
        {"ready": False},
        {"after": NEXT + 50},  # of somebody unknown here
        {"siblings": [ME, 999]},
        {"owners": []},  # and so the arc of the broker before it is not kept by all its siblings
    ],
)
def test_what_is_not_covered_sets_out_along_the_ring(different: dict[str, object]) -> None:
    origin = Origin()
    origin.answer(NEXT)
    origin.answer(LAST, **different)
    assert origin.ends == [Walk(7, [WHOLE])]


def test_who_does_not_answer_is_not_waited_for() -> None:
    origin = Origin()
    origin.answer(NEXT)
    assert origin.sent.timers.next == DEFAULT_LIMITS.broadcast_seconds
    origin.broadcasts.go_on(DEFAULT_LIMITS.broadcast_seconds)
    assert origin.ends == [Walk(7, [WHOLE])]
    origin.answer(LAST)
    assert len(origin.ends) == 1


def test_only_what_is_of_the_whole_ring_is_broadcast_and_only_where_all_are_linked() -> None:
    broadcasts = Origin().broadcasts
    assert broadcasts.fits([WHOLE])
    assert not broadcasts.fits([]) and not broadcasts.fits([WHOLE, item(2, 5)])
    broadcasts._linked.update(dict.fromkeys(range(MESH_BROKERS_MAX)))
    assert not broadcasts.fits([WHOLE])


def owner() -> KvStore:
    """The owner of (50, 100], whose sibling has everything, and says so."""
    store = KvStore(ME, KvConfig(), 0.0)
    store.view(View(50, ME, (NEXT,), True, True), 0.0)
    for broker in (NEXT, LAST):
        store.peer_up(broker, 0.0)
    say(store, 0.1)
    return store


def say(store: KvStore, now: float) -> list[tuple[int, Kind]]:
    """What it tells; the sibling answers to all of it."""
    heard = []
    for effect in store.effects:
        if isinstance(effect, Tell):
            broker, kind, body = said(effect)
            heard.append((broker, kind))
            if kind in (Kind.STREAM, Kind.COPY, Kind.CHECK):
                hear(store, NEXT, Kind.COPIED, [body[0], 0], now)
            elif kind is Kind.RENEW:
                hear(store, NEXT, Kind.RENEWED, [body[0], 0], now)
    store.effects.clear()
    return heard


def hear(store: KvStore, sender: int, kind: Kind, body: list[Any], now: float) -> None:
    store.handle(sender, read(kind, body), now)


def told(store: KvStore) -> list[Said]:
    return [said(one) for one in store.effects if isinstance(one, Tell)]


def test_an_owner_answers_for_its_arc_and_names_who_else_may_answer_for_it() -> None:
    store = owner()
    hear(store, LAST, Kind.TELLALL, [1, written([WHOLE])], 0.2)
    assert told(store) == [(LAST, Kind.TOLD, [1, True, 50, [NEXT], []])]
    assert store.get(WHOLE.name) == WHOLE
    store.effects.clear()
    hear(store, LAST, Kind.TELLALL, [2, written([WHOLE])], 9.0)
    (late,) = [body for _, kind, body in told(store) if kind is Kind.TOLD]
    assert late[1] is False, "its lease is over"


def test_what_was_told_and_comes_as_a_put_after_all_is_copied_to_the_sibling_first() -> None:
    store = owner()
    hear(store, LAST, Kind.TELLALL, [1, written([WHOLE])], 0.2)
    assert say(store, 0.2) == [(LAST, Kind.TOLD)], "the sibling has been told by the origin"
    hear(store, LAST, Kind.PUT, [LAST, 1, 0, 51, ME, 0, written([WHOLE])], 0.3)
    assert [(broker, kind) for broker, kind, _ in told(store)] == [(NEXT, Kind.COPY)], (
        "not confirmed before the sibling acknowledged it"
    )
    say(store, 0.3)
    hear(store, LAST, Kind.PUT, [LAST, 2, 0, 51, ME, 0, written([WHOLE])], 0.4)
    assert (NEXT, Kind.COPY) not in say(store, 0.4), "once is enough"


def test_a_broker_alone_is_everybody() -> None:
    store = KvStore(ME, KvConfig(), 0.0)
    store.view(View(ME, ME, (), True, True), 0.0)
    ticket = store.put([WHOLE], 0.0)
    assert store.effects[-1] == Placed(ticket) and store.scope(0.0).covers(Arc(0, 5).last)
    assert isinstance(store.get(WHOLE.name), Item)
