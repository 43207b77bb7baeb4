"""The ring machine: each step of the protocol alone, by letters. We are member 10 of 10, 20, 30, 40."""

from __future__ import annotations

import pytest

from headgate.broker.core.membership import ChordConfig, Letter, Lost, Member, Notify, Ring, State, SuccessorList
from headgate.broker.core.membership.identity import Identity
from headgate.broker.core.membership.members import after
from headgate.broker.core.membership.messages import Busy, Fenced, Ping, Pong, Query
from tests.support.chord_parts import CONFIG, at, new_identity, said

A, B, C, D = at(10), at(20), at(30), at(40)


def new_ring(config: ChordConfig = CONFIG) -> tuple[Ring, Identity]:
    identity = new_identity(10, config=config)
    return Ring(identity, D, (B, C), 0.0), identity


def hear(ring: Ring, sender: Member, body: Query | State | Busy | Ping | Pong | Notify, now: float = 1.0) -> None:
    ring.table[type(body)](Letter(sender, A, body), body, now)


def stabilizing(config: ChordConfig = CONFIG) -> tuple[Ring, Identity, int]:
    ring, identity = new_ring(config)
    ring.stabilize(1.0)
    ((address, question),) = said(identity)
    assert address == "b20" and isinstance(question, Query)
    return ring, identity, question.number


def answer(ring: Ring, sender: Member, number: int, predecessor: Member, successors: SuccessorList) -> None:
    hear(ring, sender, State(number, predecessor, successors))


def test_the_head_that_answers_is_adopted_with_its_list_and_notified() -> None:
    ring, identity, number = stabilizing()
    answer(ring, B, number, A, (C, D))
    assert ring.successors == (B, C)
    assert said(identity) == [("b20", Notify())]
    assert ring.step is None and ring.stabilized_at == 1.0


def test_a_head_with_another_list_changes_ours() -> None:
    ring, _, number = stabilizing()
    answer(ring, B, number, A, (D, at(50)))
    assert ring.successors == (B, D)


def test_a_member_between_is_asked_before_it_is_adopted() -> None:
    ring, identity, number = stabilizing()
    answer(ring, B, number, at(15), (C, D))
    ((address, question),) = said(identity)
    assert address == "b15" and isinstance(question, Query)
    assert ring.successors == (B, C)
    answer(ring, at(15), question.number, A, (B, C))
    assert ring.successors == (at(15), B)
    assert said(identity) == [("b15", Notify())]


def test_a_dead_member_between_changes_nothing_but_the_head_hears_of_us() -> None:
    ring, identity, number = stabilizing()
    answer(ring, B, number, at(15), (C, D))
    said(identity)
    ring.wake(2.0)
    assert ring.successors == (B, C)
    assert said(identity) == [("b20", Notify())]
    assert at(15) in identity.fenced


def test_who_was_declared_dead_is_told_so_and_not_asked_again() -> None:
    ring, identity, number = stabilizing()
    identity.declare_dead(at(15))
    answer(ring, B, number, at(15), (C, D))
    assert said(identity) == [("b15", Fenced()), ("b20", Notify())]


def test_a_dead_head_is_dropped_the_list_padded_and_the_next_one_asked() -> None:
    ring, identity, _ = stabilizing()
    ring.wake(2.0)
    assert ring.successors == (C, after(C))
    assert identity.effects[0] == Lost(B)
    ((address, question),) = said(identity)
    assert address == "b30" and isinstance(question, Query)


def test_a_list_of_nobody_living_is_the_end_of_this_life() -> None:
    ring, _, _ = stabilizing()
    ring.wake(2.0)
    ring.wake(3.0)
    assert ring.lost == "orphaned"


def test_a_list_that_reaches_round_to_ourselves_is_no_ring() -> None:
    ring, _, number = stabilizing()
    answer(ring, B, number, A, (A, B))
    assert ring.lost == "shrunk"


def test_a_question_is_sent_again_before_anybody_is_declared_dead() -> None:
    ring, identity, number = stabilizing(ChordConfig(list_length=2, attempts=2))
    ring.wake(1.5)
    assert said(identity) == [("b20", Query(number))]
    answer(ring, B, number, A, (C, D))
    assert not identity.fenced and ring.step is None


def test_an_answer_to_a_former_question_changes_nothing() -> None:
    ring, _, number = stabilizing()
    answer(ring, B, number + 7, A, (D, D))
    assert ring.successors == (B, C) and ring.step is not None


def test_in_the_middle_of_a_step_pointers_are_not_told_but_pings_are_answered() -> None:
    ring, identity, _ = stabilizing()
    hear(ring, D, Query(5))
    hear(ring, D, Ping(6))
    assert said(identity) == [("b40", Busy(5)), ("b40", Pong(6))]


def test_between_steps_pointers_are_told() -> None:
    ring, identity = new_ring()
    hear(ring, D, Query(5))
    assert said(identity) == [("b40", State(5, D, (B, C)))]


def test_a_busy_head_ends_the_step_and_is_asked_again_soon() -> None:
    ring, identity, number = stabilizing()
    hear(ring, B, Busy(number))
    assert ring.step is None and not identity.fenced
    assert 1.0 < ring.next_deadline() < 1.0 + 2 * CONFIG.busy_seconds
    ring.wake(ring.next_deadline())
    assert ring.step is not None


def test_a_nearer_notifier_becomes_predecessor_at_once() -> None:
    ring, identity = new_ring()
    assert not ring.serving
    hear(ring, at(45), Notify())
    assert ring.predecessor == at(45) and ring.serving
    assert said(identity) == []


def test_a_farther_notifier_becomes_predecessor_only_when_the_present_one_is_dead() -> None:
    ring, identity = new_ring()
    hear(ring, C, Notify())
    ((address, ping),) = said(identity)
    assert address == "b40" and isinstance(ping, Ping)
    ring.wake(2.0)
    assert ring.predecessor == C
    assert D in identity.fenced


def test_a_predecessor_that_answers_stays() -> None:
    ring, identity = new_ring()
    hear(ring, C, Notify())
    ((_, ping),) = said(identity)
    assert isinstance(ping, Ping)
    hear(ring, D, Pong(ping.number))
    assert ring.predecessor == D and ring.notified_by is None and ring.step is None


def test_a_predecessor_known_to_be_dead_is_not_pinged() -> None:
    ring, identity = new_ring()
    identity.declare_dead(D)
    hear(ring, C, Notify())
    assert ring.predecessor == C


def test_of_those_that_notify_in_the_middle_of_a_step_the_nearest_waits() -> None:
    ring, _, number = stabilizing()
    for notifier in (at(45), at(50), at(42)):
        hear(ring, notifier, Notify())
    assert ring.predecessor == D
    answer(ring, B, number, A, (C, D))
    assert ring.predecessor == at(50)


def test_keys_are_served_once_the_predecessor_has_notified() -> None:
    ring, _ = new_ring()
    hear(ring, D, Notify())
    assert ring.serving and ring.predecessor == D


def test_there_is_never_a_second_open_query() -> None:
    ring, _, _ = stabilizing()
    with pytest.raises(AssertionError):
        ring.stabilize(1.0)


def test_validate_finds_a_list_of_the_wrong_length() -> None:
    ring, _ = new_ring()
    ring.validate()
    ring.successors = (B,)
    with pytest.raises(AssertionError):
        ring.validate()


def test_a_head_known_to_be_dead_is_replaced_at_once_and_any_other_when_its_turn_comes() -> None:
    for member, soon in ((B, True), (C, False)):
        ring, identity = new_ring()
        ring.stabilize_at = 9.0
        ring.dead(member, 2.0)
        assert (ring.next_deadline() == 2.0) == soon
        said(identity)
        if soon:
            ring.wake(2.0)
            ((address, question),) = said(identity)
            assert address == "b30" and isinstance(question, Query)
            assert ring.successors == (C, after(C))


def test_a_dead_head_does_not_end_a_step_that_asks_somebody_else() -> None:
    ring, identity, number = stabilizing()
    answer(ring, B, number, at(15), (C, D))
    ((address, _),) = said(identity)
    assert address == "b15" and ring.step is not None
    ring.dead(B, 2.0)
    assert ring.step is not None and ring.step.asked == at(15)


def test_a_ring_that_is_too_small_names_who_is_left() -> None:
    ring, identity, number = stabilizing(ChordConfig(list_length=3, attempts=1))
    identity.declare_dead(C)
    answer(ring, B, number, A, (C, D, A))
    assert not ring.lost
    ring.stabilize(2.0)
    assert ring.step is not None
    answer(ring, B, ring.step.number, A, (C, A, B))
    assert (ring.lost, ring.left) == ("shrunk", (B,))
