"""Puts at their origin: what is covered, what is sent again, when they end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import RING_SIZE
from headgate.broker.core.kv import KvLimits, Placed, Unplaced
from headgate.broker.core.kv.limits import PAGE_ITEMS_MAX, TICKETS_MAX
from headgate.broker.core.kv.messages import KvEffect, SetOut
from headgate.broker.core.kv.writes import Part, Puts
from headgate.broker.core.timers import Timers
from tests.support.keyed_parts import item


class Origin:
    """Puts, and what they send and answer."""

    def __init__(self, **limits: int) -> None:
        self.effects, self.timers = list[KvEffect](), Timers()
        self.puts = Puts(self.effects, self.timers, limits=KvLimits(**limits))

    @property
    def sent(self) -> list[tuple[int, int, int, int, int]]:
        """The parts that set out."""
        parts = [one for one in self.effects if isinstance(one, SetOut)]
        return [(one.ticket, one.part, one.start, one.until, len(one.items)) for one in parts]

    @property
    def answers(self) -> list[tuple[int, bool]]:
        """The tickets that came to their end, and whether what they put is placed."""
        ended = [one for one in self.effects if isinstance(one, Placed | Unplaced)]
        return [(one.ticket, isinstance(one, Placed)) for one in ended]

    def go_on(self, now: float) -> None:
        """What the store does at this time."""
        if "puts" in self.timers.due(now):
            self.puts.go_on(now)


def test_items_of_one_segment_travel_together() -> None:
    origin = Origin()
    origin.puts.begin([item(1, 5), item(2, 5), item(3, 9), item(4, 5, high=9)], 0.0)
    assert origin.sent == [(1, 0, 5, 5, 2), (1, 1, 9, 9, 1), (1, 2, 5, 9, 1)]


def test_no_two_lives_number_their_puts_alike() -> None:
    former, present = (Puts([], Timers(), life) for life in (4, 5))
    numbers = [puts.begin([item(1, 5)], 0.0) for puts in (former, former, present)]
    assert numbers == [4 * TICKETS_MAX + 1, 4 * TICKETS_MAX + 2, 5 * TICKETS_MAX + 1]


def test_many_items_travel_in_pages() -> None:
    origin = Origin()
    origin.puts.begin([item(number, 5) for number in range(PAGE_ITEMS_MAX + 1)], 0.0)
    assert [sent[4] for sent in origin.sent] == [PAGE_ITEMS_MAX, 1]


def test_placed_when_every_key_is_covered_in_whatever_order() -> None:
    origin = Origin()
    ticket = origin.puts.begin([item(1, 10, high=20), item(2, 30)], 0.0)
    for start, last in ((16, 20), (10, 12), (12, 14)):
        origin.puts.stored(ticket, 0, start, last)
    origin.puts.stored(ticket, 1, 30, 30)
    assert origin.answers == []
    origin.puts.stored(ticket, 0, 15, 15)
    assert origin.answers == [(ticket, True)]
    origin.puts.validate()
    assert origin.puts.items_waiting == 0


def test_what_nobody_asked_about_is_ignored() -> None:
    origin = Origin()
    ticket = origin.puts.begin([item(1, 10, high=20)], 0.0)
    for number, part, start, last in ((99, 0, 10, 20), (ticket, 7, 10, 20), (ticket, 0, 5, 20), (ticket, 0, 10, 21)):
        origin.puts.stored(number, part, start, last)
    assert origin.answers == []


def test_only_the_gaps_are_sent_again_and_not_while_there_is_progress() -> None:
    origin = Origin()
    ticket = origin.puts.begin([item(1, 10, high=20)], 0.0)
    origin.puts.stored(ticket, 0, 10, 12)
    origin.puts.stored(ticket, 0, 16, 18)
    origin.effects.clear()
    origin.go_on(1.0)
    assert origin.sent == []
    origin.go_on(2.0)
    assert origin.sent == [(ticket, 0, 13, 15, 1), (ticket, 0, 19, 20, 1)]


def test_it_is_given_up_in_time() -> None:
    origin = Origin()
    ticket = origin.puts.begin([item(1, 10)], 0.0)
    now = 0.0
    while not origin.answers:
        now = origin.timers.next
        origin.go_on(now)
    assert origin.answers == [(ticket, False)]
    assert now == KvLimits().put_seconds
    assert origin.timers.next == float("inf")
    origin.puts.stored(ticket, 0, 10, 10)
    assert len(origin.puts) == 0


def test_nothing_to_place_is_placed_and_too_much_is_not() -> None:
    origin = Origin(put_items_waiting=2)
    assert origin.puts.begin([], 0.0) == 1
    origin.puts.begin([item(1, 5), item(2, 5)], 0.0)
    origin.puts.begin([item(3, 5)], 0.0)
    assert origin.answers == [(1, True), (3, False)]
    origin.puts.validate()


@given(st.integers(0, RING_SIZE - 1), st.integers(1, 30), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29))))
def test_gaps_are_what_no_answer_covered(low: int, length: int, answers: list[tuple[int, int]]) -> None:
    part = Part([], low, length)
    covered: set[int] = set()
    for one, other in answers:
        first, last = min(one, other), max(one, other)
        if last < length:
            part.cover(first, last)
            covered |= set(range(first, last + 1))
    gaps = {(start + step) % RING_SIZE for start, end in part.gaps() for step in range((end - start) % RING_SIZE + 1)}
    assert gaps == {(low + offset) % RING_SIZE for offset in range(length) if offset not in covered}
    assert part.done == (not gaps)
