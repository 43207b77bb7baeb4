"""Siblings, at the owner: streams, writes, acknowledgements, comparisons, grants."""

from __future__ import annotations

from headgate.broker.core.keyspace import Arc
from headgate.broker.core.kv import Item, KvLimits
from headgate.broker.core.kv.items import Items
from headgate.broker.core.kv.messages import CopyVerdict
from headgate.broker.core.kv.replication import Siblings, WritesInFlight
from headgate.broker.core.timers import Timers
from tests.support.keyed_parts import Kind, Sent, item

ME, NEXT, OTHER = 100, 200, 300
OURS = Arc(0, ME)


class Owner:
    """Siblings of an owner of (0, 100] with a few items."""

    def __init__(self, *present: int, count: int = 3, **limits: int) -> None:
        self.sent = Sent()
        self.items = Items([], Timers())
        for number in range(count):
            self.items.merge(item(number, number + 1), 0.0)
        self.linked: dict[int, None] = dict.fromkeys(present)
        self.timers, self.writes_in_flight = Timers(), WritesInFlight()
        self.writes_in_flight.set_siblings(present)
        self.siblings = Siblings(
            ME, self.items, self.linked, self.writes_in_flight, self.sent, self.timers, KvLimits(**limits)
        )
        self.siblings.set_siblings(present)
        self.siblings.set_ours(OURS, 0.0)

    def unconfirmed(self, *items: Item) -> None:
        """Writes that every sibling is still to acknowledge, numbered from 1."""
        for number, one in enumerate(items, start=1):
            assert self.writes_in_flight.begin(ME, number, 0, OURS, [one])
        self.writes_in_flight.set_siblings(())
        self.writes_in_flight.set_siblings(tuple(self.siblings.present))

    def synced(self) -> Owner:
        for broker, _, body in self.sent.take():
            self.siblings.copied(broker, body[0], CopyVerdict.STORED, 0.0)
        self.sent.take()
        return self


def test_a_sibling_is_sent_everything_and_is_synced_when_it_has_the_last_page() -> None:
    it = Owner(NEXT)
    ((broker, kind, body),) = it.sent.messages
    assert (broker, kind, body[:5]) == (NEXT, Kind.STREAM, [1, True, True, 0, ME])
    assert len(body[5]) == 3
    assert it.siblings.present == {NEXT: False}
    assert it.siblings.granted(NEXT, 0.0, 2.0) is None
    it.siblings.copied(NEXT, 1, CopyVerdict.STORED, 0.1)
    assert it.siblings.present == {NEXT: True}
    assert it.siblings.granted(NEXT, 0.1, 2.0) == OURS


def test_pages_wait_for_acknowledgements() -> None:
    it = Owner(NEXT, count=6, page_items=1)
    assert [body[:3] for _, _, body in it.sent.take()] == [
        [1, True, False],
        [2, False, False],
        [3, False, False],
        [4, False, False],
    ]
    it.siblings.copied(NEXT, 2, CopyVerdict.STORED, 0.1)
    it.siblings.validate()
    assert [body[:3] for _, _, body in it.sent.take()] == [[5, False, False], [6, False, True]]
    it.siblings.copied(NEXT, 5, CopyVerdict.STORED, 0.1)
    assert it.siblings.present == {NEXT: False}
    it.siblings.copied(NEXT, 6, CopyVerdict.STORED, 0.1)
    assert it.siblings.present == {NEXT: True}


def test_a_write_goes_out_at_once_and_is_waited_for() -> None:
    it = Owner(NEXT, OTHER).synced()
    it.siblings.copy([item(9, 9)])
    assert it.siblings.wait_for([item(9, 9)], True, 77) == [NEXT, OTHER]
    assert it.sent.kinds() == [(NEXT, "COPY"), (OTHER, "COPY")]
    assert it.siblings.copied(NEXT, 2, CopyVerdict.STORED, 0.1) == [77]
    assert it.siblings.copied(NEXT, 2, CopyVerdict.STORED, 0.1) == []


def test_nothing_new_and_everything_acknowledged_is_not_waited_for() -> None:
    it = Owner(NEXT).synced()
    assert it.siblings.wait_for([item(1, 2)], False, 77) == []
    it.siblings.copy([item(9, 9)])
    assert it.siblings.wait_for([item(1, 2)], False, 78) == [NEXT]
    assert it.siblings.copied(NEXT, 2, CopyVerdict.STORED, 0.1) == [78]


def test_to_an_unsynced_sibling_known_items_are_sent_again() -> None:
    it = Owner(NEXT)
    it.sent.take()
    assert it.siblings.wait_for([item(1, 2)], False, 77) == [NEXT]
    assert it.sent.kinds() == [(NEXT, "COPY")]


def test_a_sibling_without_a_link_is_waited_for_and_sent_everything_when_it_comes() -> None:
    it = Owner(NEXT).synced()
    del it.linked[NEXT]
    it.siblings.link_new(NEXT)
    it.siblings.copy([item(9, 9)])
    assert it.siblings.wait_for([item(9, 9)], True, 77) == [NEXT]
    assert it.sent.take() == []
    it.linked[NEXT] = None
    it.siblings.link_new(NEXT)
    it.unconfirmed(item(9, 9))
    it.siblings.go_on(1.0)
    assert it.sent.kinds() == [(NEXT, "COPY"), (NEXT, "STREAM")]
    assert it.siblings.copied(NEXT, 1, CopyVerdict.STORED, 1.1) == [1]


def test_acknowledgements_of_what_was_not_sent_are_ignored() -> None:
    it = Owner(NEXT).synced()
    assert it.siblings.copied(NEXT, 5, CopyVerdict.STORED, 0.1) == []
    assert it.siblings.copied(OTHER, 1, CopyVerdict.STORED, 0.1) == []
    it.siblings.validate()


def test_a_sibling_that_refuses_is_left_alone_for_a_while() -> None:
    it = Owner(NEXT).synced()
    it.siblings.copy([item(9, 9)])
    it.siblings.wait_for([item(9, 9)], True, 77)
    it.sent.take()
    assert it.siblings.copied(NEXT, 2, CopyVerdict.REFUSED, 1.0) == []
    assert it.siblings.granted(NEXT, 1.0, 2.0) is None
    it.siblings.copy([item(8, 8)])
    assert it.siblings.wait_for([item(8, 8)], True, 78) == [NEXT]
    assert it.sent.take() == []
    assert it.timers.next == 2.0
    it.unconfirmed(item(9, 9), item(8, 8))
    it.siblings.go_on(2.0)
    assert it.sent.kinds() == [(NEXT, "COPY"), (NEXT, "COPY"), (NEXT, "STREAM")]


def test_when_our_keys_grow_only_the_new_ones_are_sent() -> None:
    it = Owner(NEXT).synced()
    it.siblings.set_ours(Arc(900, ME), 1.0)
    ((_, kind, body),) = it.sent.take()
    assert (kind, body[3:5]) == (Kind.STREAM, [900, 0])
    assert it.siblings.granted(NEXT, 1.0, 2.0) == OURS
    it.siblings.copied(NEXT, 2, CopyVerdict.STORED, 1.1)
    assert it.siblings.granted(NEXT, 1.1, 2.0) == Arc(900, ME)


def test_when_our_keys_shrink_the_sibling_hears_it() -> None:
    it = Owner(NEXT).synced()
    it.siblings.set_ours(Arc(2, ME), 1.0)
    ((_, kind, body),) = it.sent.take()
    assert (kind, body[1:3]) == (Kind.CHECK, [2, 1])
    assert it.siblings.granted(NEXT, 1.0, 2.0) == Arc(2, ME)


def test_when_they_shrink_while_a_stream_is_under_way_it_hears_it_then() -> None:
    it = Owner(NEXT)
    it.sent.take()
    it.siblings.set_ours(Arc(2, ME), 1.0)
    assert it.sent.take() == []
    it.siblings.copied(NEXT, 1, CopyVerdict.STORED, 1.1)
    assert it.sent.kinds() == [(NEXT, "CHECK")]
    assert it.siblings.present == {NEXT: True}


def test_different_twice_means_everything_again() -> None:
    it = Owner(NEXT).synced()
    it.siblings.go_on(10.0)
    tally = it.items.tally(OURS)
    assert it.sent.take() == [(NEXT, Kind.CHECK, [2, 0, tally.count, tally.digest])]
    it.siblings.copied(NEXT, 2, CopyVerdict.DIFFERENT, 10.1)
    assert it.sent.take() == []
    it.siblings.go_on(12.6)
    assert it.sent.kinds() == [(NEXT, "CHECK")]
    it.siblings.copied(NEXT, 3, CopyVerdict.DIFFERENT, 12.7)
    assert it.sent.kinds() == [(NEXT, "STREAM")]
    assert it.siblings.differences == 1


def test_different_once_is_forgotten_when_it_is_the_same_again() -> None:
    it = Owner(NEXT).synced()
    for now, verdict in ((10.0, CopyVerdict.DIFFERENT), (13.0, CopyVerdict.STORED), (24.0, CopyVerdict.DIFFERENT)):
        it.siblings.go_on(now)
        it.siblings.copied(NEXT, it.sent.take()[-1][2][0], verdict, now)
    assert it.siblings.differences == 0


def test_grants_are_remembered_when_one_is_a_sibling_no_longer() -> None:
    it = Owner(NEXT).synced()
    it.siblings.granted(NEXT, 1.0, 3.5)
    assert it.siblings.others_until(1.5) == 1.5
    it.siblings.set_siblings((OTHER,))
    assert it.siblings.others_until(1.5) == 3.5
    assert it.siblings.others_until(3.5) == 3.5
    assert it.siblings.grants == {}


def test_who_is_no_sibling_is_granted_nothing() -> None:
    it = Owner(NEXT).synced()
    assert it.siblings.granted(OTHER, 1.0, 2.0) is None
    assert it.siblings.counts(NEXT) and not it.siblings.counts(OTHER)
    assert it.siblings.granted(NEXT, 1.0, 1.0) is None
    it.siblings.set_ours(None, 1.0)
    assert it.siblings.granted(NEXT, 1.0, 2.0) is None
