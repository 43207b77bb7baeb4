"""Items that are nobody's here go home and are removed then, not before."""

from __future__ import annotations

from headgate.broker.core.keyspace import Arc
from headgate.broker.core.kv import Item, Placed, Unplaced
from headgate.broker.core.kv.items import Items
from headgate.broker.core.kv.messages import KvEffect, SetOut
from headgate.broker.core.kv.writes import Orphans, Puts
from headgate.broker.core.timers import Timers
from tests.support.keyed_parts import item


class Home:
    """A homeward with its puts; ours is what lies up to 100."""

    def __init__(self) -> None:
        self.effects, self.timers = list[KvEffect](), Timers()
        self.items = Items([], Timers())
        self.concerns = [Arc(0, 100)]
        self.puts = Puts(self.effects, self.timers)
        self.orphans = Orphans(self.items, self.puts, self.timers)
        for one in (item(1, 50), item(2, 150), item(3, 160, 1, None), item(4, 90, high=170)):
            self.items.merge(one, 0.0)

    @property
    def sent(self) -> list[Item]:
        return [item for one in self.effects if isinstance(one, SetOut) for item in one.items]

    def look(self, serving: bool, now: float) -> None:
        """What the store does when the timer has come."""
        if "orphans" in self.timers.due(now):
            self.orphans.look_through(self.concerns, serving, now)

    def stored(self, *where: int) -> None:
        self.puts.stored(*where)
        self.answer()

    def answer(self) -> None:
        for one in self.effects:
            if isinstance(one, Placed | Unplaced):
                self.orphans.answered(one.ticket, isinstance(one, Placed), self.concerns)
        self.effects[:] = [one for one in self.effects if isinstance(one, SetOut)]

    def names(self) -> list[object]:
        return [name[1] for name in self.items.table]


def test_nothing_is_looked_at_before_the_last_change_is_long_past() -> None:
    home = Home()
    home.orphans.changed(0.0)
    home.orphans.changed(6.0)
    home.look(True, 15.9)
    assert home.sent == []
    assert home.timers.when("orphans") == 16.0


def test_what_is_nobodys_is_placed_and_then_removed() -> None:
    home = Home()
    home.orphans.changed(0.0)
    home.look(True, 10.0)
    assert home.sent == [item(2, 150)]
    assert home.names() == [1, 2, 4]  # the tombstone is of no use to anybody
    home.stored(1, 0, 150, 150)
    assert home.names() == [1, 4]
    home.look(True, 20.0)
    assert home.timers.when("orphans") == float("inf")


def test_what_became_ours_meanwhile_or_newer_is_kept() -> None:
    for newer in (False, True):
        home = Home()
        home.orphans.changed(0.0)
        home.look(True, 10.0)
        if newer:
            home.items.merge(item(2, 150, 2), 11.0)
        else:
            home.concerns.append(Arc(100, 200))
        home.stored(1, 0, 150, 150)
        assert 2 in home.names()


def test_what_may_have_been_of_concern_meanwhile_is_kept_for_as_long_again() -> None:
    home = Home()
    home.orphans.changed(0.0)
    home.look(True, 10.0)
    home.orphans.changed(10.5)
    home.stored(1, 0, 150, 150)
    assert home.names() == [1, 2, 4]
    home.look(True, 20.5)
    home.stored(2, 0, 150, 150)
    assert home.names() == [1, 4]


def test_what_was_not_placed_is_kept_and_tried_again() -> None:
    home = Home()
    home.orphans.changed(0.0)
    home.look(True, 10.0)
    assert len(home.orphans) == 1
    home.puts.go_on(50.0)  # given up
    home.answer()
    assert len(home.orphans) == 0
    home.effects.clear()
    home.look(True, 50.0)
    assert 2 in home.names()
    assert home.sent == [item(2, 150)]


def test_outside_the_ring_everything_is_kept() -> None:
    home = Home()
    home.orphans.changed(0.0)
    home.look(False, 10.0)
    assert home.sent == []
    assert home.names() == [1, 2, 3, 4]
    assert home.timers.when("orphans") == 20.0


def test_the_answer_to_another_put_is_none_of_its_business() -> None:
    assert not Home().orphans.owns(99)
