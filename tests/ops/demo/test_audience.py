"""The audience: every wish is one the broker takes, and a listener's notes miss nothing."""

from __future__ import annotations

from headgate.matching import extensions, parse_condition, parse_pattern
from headgate.ops.demo.audience import WISHES, Listener, Told
from headgate.protocol.client import Event


def quote(number: int) -> Event:
    return Event("ab-1", number, 0.0, "quotes/X/Y", {"number": number}, b"", "", 1)


def test_every_wish_is_served_today() -> None:
    assert len({wish.name for wish in WISHES}) == len(WISHES) == 6
    for wish in WISHES:
        assert parse_pattern(wish.pattern).stream == "quotes"
        assert not wish.where or not list(extensions(parse_condition(wish.where)))


def test_notes() -> None:
    listener = Listener(WISHES[0])
    sent_at = [10.0] * 1000
    listener.take([quote(3), quote(500)], sent_at, 10.5)
    listener.take([quote(500), quote(4)], sent_at, 10.25)
    assert listener.delivered == 4
    assert {number: count for number, count in enumerate(listener.seen) if count} == {3: 1, 4: 1, 500: 2}
    assert listener.misordered == [500, 4]
    assert (listener.latency(0.0), listener.latency(0.99)) == (0.25, 0.5)


def test_a_flood_of_one_quote_is_still_noted() -> None:
    listener = Listener(WISHES[0])
    listener.take([quote(0)] * 300, [0.0], 1.0)
    assert (listener.seen[0], listener.delivered) == (255, 300)


def test_nothing_has_no_latency() -> None:
    assert Listener(WISHES[0]).latency(0.5) == 0.0


def test_the_first_quote_after_a_gap_that_is_over_is_noted() -> None:
    listener = Listener(WISHES[0])
    listener.told = [Told(1.0, 0), Told(2.0, 3, 4, 2.5)]
    listener.take([quote(1)], [0.0] * 9, 3.0)
    listener.take([quote(2)], [0.0] * 9, 4.0)
    assert [told.served_at for told in listener.told] == [None, 3.0]
