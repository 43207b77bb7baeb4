"""Leases on one's own keys, and those given to the broker before."""

from __future__ import annotations

from headgate.broker.core.keyspace import Arc
from headgate.broker.core.kv.leases import Leases
from headgate.broker.core.kv.messages import Renewal
from tests.support.keyed_parts import Kind, Sent

ME, FIRST, SECOND = 100, 200, 300
OURS = Arc(50, ME)


def leases(*siblings: int) -> tuple[Leases, Sent]:
    sent = Sent()
    made = Leases(ME, {FIRST: None, SECOND: None}, sent, sent.timers, 2.5)
    made.set_siblings(siblings, 0.0)
    made.set_ours(OURS, 0.0)
    return made, sent


def test_alone_asks_nobody_and_answers_always() -> None:
    made, sent = leases()
    assert made.holds(OURS, 1e9)
    assert made.scope(1e9) == [(OURS, float("inf"))]
    assert sent.take() == []


def test_the_first_sibling_is_asked_and_his_yes_counts_from_the_asking() -> None:
    made, sent = leases(FIRST, SECOND)
    ((broker, kind, body),) = sent.take()
    assert (broker, kind, body) == (FIRST, Kind.RENEW, [1, 50])
    assert not made.holds(OURS, 0.0)
    assert not made.renewed(FIRST, 1, Renewal.YES, 2.0)
    assert made.holds(OURS, 2.4)
    assert not made.holds(OURS, 2.5)


def test_an_answer_that_lay_about_for_a_lease_is_worth_nothing() -> None:
    made, _ = leases(FIRST)
    made.renewed(FIRST, 1, Renewal.YES, 2.6)
    assert not made.holds(OURS, 2.6)
    assert made.scope(2.6) == []


def test_only_who_was_asked_may_answer_and_only_once() -> None:
    made, _ = leases(FIRST, SECOND)
    made.renewed(SECOND, 1, Renewal.YES, 0.1)
    assert not made.holds(OURS, 0.1)
    made.renewed(FIRST, 1, Renewal.YES, 0.1)
    assert not made.holds(OURS, 0.1)
    made.validate()


def test_he_is_asked_four_times_a_lease() -> None:
    made, sent = leases(FIRST)
    sent.take()
    assert sent.timers.next == 0.625
    made.ask_again(0.625)
    assert sent.kinds() == [(FIRST, "RENEW")]


def test_a_no_because_the_keys_are_his_is_told_to_the_caller() -> None:
    made, _ = leases(FIRST)
    assert made.renewed(FIRST, 1, Renewal.MINE, 0.1)
    made.ask_again(0.625)
    assert not made.renewed(FIRST, 2, Renewal.ANOTHERS, 0.7)
    assert not made.holds(OURS, 0.7)


def test_the_promise_of_one_who_is_a_sibling_no_longer_is_void() -> None:
    made, sent = leases(FIRST, SECOND)
    made.renewed(FIRST, 1, Renewal.YES, 0.1)
    sent.take()
    made.set_siblings((SECOND,), 0.2)
    assert not made.holds(OURS, 0.2)
    assert sent.kinds() == [(SECOND, "RENEW")]


def test_a_newcomer_before_the_first_sibling_leaves_his_promise_standing() -> None:
    made, _ = leases(SECOND)
    made.renewed(SECOND, 1, Renewal.YES, 0.1)
    made.set_siblings((FIRST, SECOND), 0.2)
    assert made.holds(OURS, 0.2)


def test_keys_handed_on_are_answered_for_until_the_promise_ends() -> None:
    made, _ = leases(FIRST)
    made.renewed(FIRST, 1, Renewal.YES, 0.1)
    made.set_ours(Arc(80, ME), 0.2)
    assert made.scope(0.3) == [(OURS, 2.5)]
    assert made.scope(2.5) == []


def test_who_was_alone_answers_for_a_lease_for_keys_handed_on() -> None:
    made, _ = leases()
    made.set_ours(Arc(80, ME), 1.0)
    assert (OURS, 3.5) in made.scope(1.0)
    assert made.scope(3.5) == [(Arc(80, ME), float("inf"))]


def test_who_was_alone_and_has_a_sibling_now_goes_on_for_a_lease() -> None:
    made, _ = leases()
    made.set_siblings((FIRST,), 1.0)
    assert made.holds(OURS, 3.4)
    assert not made.holds(OURS, 3.5)


def test_in_no_ring_nothing_is_ours() -> None:
    made, _ = leases()
    made.forget()
    assert made.scope(0.0) == []
    assert not made.holds(OURS, 0.0)


def asked(made: Leases, sent: Sent, broker: int, stretch: Arc, own: Arc | None, now: float) -> Renewal:
    made.asked(broker, 9, stretch, own, now)
    _, kind, body = sent.take()[-1]
    assert kind is Kind.RENEWED
    return Renewal(body[1])


def test_one_at_a_time_gets_a_lease_on_a_key() -> None:
    made, sent = leases(FIRST)
    assert asked(made, sent, 90, Arc(50, 90), Arc(90, ME), 0.0) is Renewal.YES
    assert asked(made, sent, 95, Arc(50, 95), Arc(95, ME), 1.0) is Renewal.ANOTHERS
    assert asked(made, sent, 95, Arc(90, 95), Arc(95, ME), 1.0) is Renewal.YES
    assert asked(made, sent, 90, Arc(50, 90), Arc(95, ME), 1.0) is Renewal.YES
    assert asked(made, sent, 95, Arc(50, 95), Arc(95, ME), 3.5) is Renewal.YES


def test_nobody_gets_one_on_keys_that_are_our_own() -> None:
    made, sent = leases(FIRST)
    assert asked(made, sent, 90, Arc(50, 90), OURS, 0.0) is Renewal.MINE
