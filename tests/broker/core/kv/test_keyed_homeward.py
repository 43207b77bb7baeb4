"""Items that are nobody's here go home and are removed then, not before."""

from __future__ import annotations

from headgate.broker.core.keyspace import Stretch
from headgate.broker.core.kv import Item
from headgate.broker.core.kv.items import Items
from headgate.broker.core.kv.writes import Homeward, Puts
from tests.support.keyed_parts import item


class Home:
    """A homeward with its puts; ours is what lies up to 100."""

    def __init__(self) -> None:
        self.sent: list[Item] = []
        self.items = Items([], 60.0)
        self.concerns = [Stretch(0, 100)]
        self.puts = Puts(self.answered, lambda ticket, part, start, until, items, now: self.sent.extend(items))
        self.homeward = Homeward(self.items, self.puts, lambda: self.concerns, 10.0)
        for one in (item(1, 50), item(2, 150), item(3, 160, 1, None), item(4, 90, high=170)):
            self.items.merge(one, 0.0)

    def answered(self, ticket: int, placed: bool) -> None:
        assert self.homeward.answered(ticket, placed)

    def names(self) -> list[object]:
        return [name[1] for name in self.items.table]


def test_nothing_is_looked_at_before_the_last_change_is_long_past() -> None:
    home = Home()
    home.homeward.changed(0.0)
    home.homeward.changed(6.0)
    home.homeward.tick(True, 15.9)
    assert home.sent == []
    assert home.homeward.look_at == 16.0


def test_what_is_nobodys_is_placed_and_then_removed() -> None:
    home = Home()
    home.homeward.changed(0.0)
    home.homeward.tick(True, 10.0)
    assert home.sent == [item(2, 150)]
    assert home.names() == [1, 2, 4]  # the tombstone is of no use to anybody
    home.puts.stored(1, 0, 150, 150)
    assert home.names() == [1, 4]
    home.homeward.tick(True, 20.0)
    assert home.homeward.look_at == float("inf")


def test_what_became_ours_meanwhile_or_newer_is_kept() -> None:
    for newer in (False, True):
        home = Home()
        home.homeward.changed(0.0)
        home.homeward.tick(True, 10.0)
        if newer:
            home.items.merge(item(2, 150, 2), 11.0)
        else:
            home.concerns.append(Stretch(100, 200))
        home.puts.stored(1, 0, 150, 150)
        assert 2 in home.names()


def test_what_may_have_been_of_concern_meanwhile_is_kept_for_as_long_again() -> None:
    home = Home()
    home.homeward.changed(0.0)
    home.homeward.tick(True, 10.0)
    home.homeward.changed(10.5)
    home.puts.stored(1, 0, 150, 150)
    assert home.names() == [1, 2, 4]
    home.homeward.tick(True, 20.5)
    home.puts.stored(2, 0, 150, 150)
    assert home.names() == [1, 4]


def test_what_was_not_placed_is_kept_and_tried_again() -> None:
    home = Home()
    home.homeward.changed(0.0)
    home.homeward.tick(True, 10.0)
    assert len(home.homeward) == 1
    home.puts.tick(50.0)  # given up
    assert len(home.homeward) == 0
    home.sent.clear()
    home.homeward.tick(True, 50.0)
    assert 2 in home.names()
    assert home.sent == [item(2, 150)]


def test_outside_the_ring_everything_is_kept() -> None:
    home = Home()
    home.homeward.changed(0.0)
    home.homeward.tick(False, 10.0)
    assert home.sent == []
    assert home.names() == [1, 2, 3, 4]
    assert home.homeward.look_at == 20.0


def test_the_answer_to_another_put_is_none_of_its_business() -> None:
    assert not Home().homeward.answered(99, True)
