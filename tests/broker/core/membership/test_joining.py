"""Joining: the walk, the step, and all that can go wrong with them. We are 25, between 20 and 30."""

from __future__ import annotations

from headgate.broker.core.membership import ChordConfig, Joining, State
from headgate.broker.core.membership.identity import Identity
from headgate.broker.core.membership.messages import Busy, Query, Seen
from tests.support.chord_parts import CONFIG, at, letter, new_identity, said

A, B, C, D, ME = at(10), at(20), at(30), at(40), at(25)


def asking(config: ChordConfig = CONFIG) -> tuple[Joining, Identity]:
    """An attempt that has found 20 and asked it."""
    identity = new_identity(25, config=config)
    joining = Joining(identity, "b20", 0.0)
    number = said(identity)[0][1].number  # type: ignore[union-attr]
    joining.saw(letter(B, None, Seen(number, (C, D))), Seen(number, (C, D)), 0.0)
    assert said(identity) == [("b20", Query(joining.number))]
    return joining, identity


def test_the_whole_list_of_the_member_before_us_is_taken() -> None:
    joining, _ = asking()
    joining.state(letter(B, ME, State(joining.number, A, (C, D))), State(joining.number, A, (C, D)), 0.0)
    assert joining.pointers == (B, (C, D)) and not joining.failed


def test_a_place_that_was_taken_meanwhile_is_not_ours() -> None:
    joining, _ = asking()
    body = State(joining.number, A, (at(23), C))
    joining.state(letter(B, ME, body), body, 0.0)
    assert joining.failed and joining.pointers is None


def test_a_list_that_reaches_round_is_no_ring_to_join() -> None:
    joining, _ = asking()
    body = State(joining.number, A, (C, B))
    joining.state(letter(B, ME, body), body, 0.0)
    assert joining.failed


def test_a_busy_member_is_asked_again() -> None:
    joining, identity = asking(ChordConfig(list_length=2, attempts=2))
    joining.busy(letter(B, ME, Busy(joining.number)), Busy(joining.number), 0.0)
    assert joining.next_deadline() < identity.config.answer_seconds
    joining.wake(joining.next_deadline())
    assert said(identity) == [("b20", Query(joining.number))] and not joining.failed


def test_a_member_that_is_busy_for_long_is_no_silent_one() -> None:
    joining, identity = asking()
    for _ in range(20):
        joining.busy(letter(B, ME, Busy(joining.number)), Busy(joining.number), 0.0)
        joining.wake(joining.next_deadline())
        assert said(identity) == [("b20", Query(joining.number))] and not joining.failed
    joining.wake(joining.next_deadline())
    assert joining.failed


def test_who_does_not_answer_ends_the_attempt() -> None:
    joining, _ = asking()
    for now in (10.0, 20.0, 30.0, 40.0):
        joining.wake(now)
    assert joining.failed


def test_an_answer_to_something_else_changes_nothing() -> None:
    joining, _ = asking()
    body = State(joining.number + 1, A, (C, D))
    joining.state(letter(B, ME, body), body, 0.0)
    assert joining.pointers is None and not joining.failed


def test_a_walk_that_ends_nowhere_ends_the_attempt() -> None:
    joining = Joining(new_identity(25), "nobody", 0.0)
    joining.wake(10.0)
    assert joining.failed
