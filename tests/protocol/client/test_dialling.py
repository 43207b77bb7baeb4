"""Dialling: rounds over all brokers without a pause, pauses between rounds, an end when patience ends."""

from __future__ import annotations

from headgate.protocol.addresses import Addresses
from headgate.protocol.client import Attempt, Dialling, Retry
from headgate.protocol.errors import ConnectionLost
from headgate.protocol.limits import DIAL_SECONDS_MAX, HANDSHAKE_SECONDS_MAX, RETRY_DELAY_SECONDS_MIN

PAUSE = RETRY_DELAY_SECONDS_MIN / 2


def lost(seconds: float, now: float = 0.0) -> Retry:
    retry = Retry(seconds, lambda: 0.0)
    retry.lost(now)
    return retry


def in_order(text: str) -> Addresses:
    return Addresses(text, lambda: 0.0, shuffle=False)


def taken(dialling: Dialling, now: float, count: int) -> list[Attempt | None]:
    return [dialling.next(now) for _ in range(count)]


def test_a_round_has_one_pause_and_gives_its_last_broker_the_most_time() -> None:
    dialling = Dialling(in_order("a,b:1"), lost(10))
    assert taken(dialling, 0.0, 4) == [
        Attempt("a", PAUSE, DIAL_SECONDS_MAX),
        Attempt("b:1", 0.0, HANDSHAKE_SECONDS_MAX),
        Attempt("a", 2 * PAUSE, DIAL_SECONDS_MAX),
        Attempt("b:1", 0.0, HANDSHAKE_SECONDS_MAX),
    ]


def test_one_broker_has_all_the_time_there_is() -> None:
    attempt = Dialling(in_order("h"), lost(10), at_once=True).next(0.0)
    assert attempt == Attempt("h", 0.0, HANDSHAKE_SECONDS_MAX)
    assert attempt.target == ("h", 7400)


def test_the_first_search_tries_everybody_even_without_any_patience() -> None:
    dialling = Dialling(in_order("a,b,c"), lost(0), at_once=True)
    assert [attempt and attempt.address for attempt in taken(dialling, 5.0, 4)] == ["a", "b", "c", None]


def test_a_round_that_has_begun_is_finished_and_no_other_begins_after_the_budget() -> None:
    dialling = Dialling(in_order("a,b"), lost(1.0))
    assert dialling.next(0.9) is not None
    assert dialling.next(1.5) is not None
    assert dialling.next(1.5) is None


def test_who_was_reached_comes_first_the_next_time() -> None:
    addresses = in_order("a,b,c")
    Dialling(addresses, lost(1.0)).reached("b")
    again = Dialling(addresses, lost(1.0))
    assert [attempt and attempt.address for attempt in taken(again, 0.0, 3)] == ["b", "c", "a"]


def test_the_reason_is_one_where_all_agree_and_each_brokers_own_where_not() -> None:
    dialling = Dialling(in_order("a,b"), lost(1.0))
    assert dialling.reason == ""
    dialling.failed(Attempt("a", 0.0, 1.0), ConnectionLost("gone"))
    dialling.failed(Attempt("b", 0.0, 1.0), ConnectionLost("gone"))
    assert dialling.reason == "gone"
    dialling.failed(Attempt("b", 0.0, 1.0), ConnectionRefusedError())
    assert dialling.reason == "a: gone; b: connection refused (is a broker running there?)"
