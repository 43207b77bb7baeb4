"""What the oracle is shown: members of rings alone, and the lists of answers that somebody waits for."""

from __future__ import annotations

from headgate.broker.core.membership import Chord, Heard, State, Tick
from headgate.broker.core.membership.messages import Pong, Query, Ringed, Seen
from headgate.broker.simulator.engine import outcome, pointers_of, snapshot_of
from tests.support.chord_parts import at, letter, machine_at, said

A, B, C, D, ME = at(10), at(20), at(30), at(40), at(25)


def member() -> Chord:
    machine = machine_at(10)
    machine.found([A, B, C, D], 0.0)
    machine.handle(Tick(), 0.0)
    return machine


def test_who_is_in_no_ring_is_not_in_the_picture() -> None:
    snapshot = snapshot_of([member(), machine_at(25)], [])
    assert list(snapshot.members) == [A]
    assert (snapshot.members[A].predecessor, snapshot.members[A].successors) == (D, (B, C))
    assert snapshot.answers == []


def test_an_answer_counts_while_somebody_waits_for_it() -> None:
    machine = member()
    assert machine.ring is not None
    machine.ring.stabilize(1.0)
    step = machine.ring.step
    assert step is not None
    machine.identity.effects.clear()
    answer = letter(B, A, State(step.number, A, (C, D)))
    assert outcome(machine, answer) == (A, B, C)
    assert snapshot_of([machine], [(machine, answer), (None, answer)]).answers == [(A, B, C)]
    assert outcome(machine, letter(B, A, State(step.number + 1, A, (C, D)))) == ()
    assert outcome(machine, letter(B, A, Pong(step.number))) == ()
    machine.handle(Heard(answer), 1.1)
    assert outcome(machine, answer) == ()


def test_an_answer_to_a_newcomer_counts_if_its_place_is_still_free() -> None:
    machine = machine_at(25)
    ((_, look),) = said(machine.handle(Heard(letter(C, None, Ringed())), 0.0))
    ((_, query),) = said(machine.handle(Heard(letter(B, None, Seen(look.number, (C, D)))), 0.0))  # type: ignore[union-attr]
    assert isinstance(query, Query)
    assert outcome(machine, letter(B, ME, State(query.number, A, (C, D)))) == (ME, C, D)
    assert outcome(machine, letter(B, ME, State(query.number, A, (at(22), C)))) == ()


def test_pointers_differ_when_one_of_them_does() -> None:
    machine = member()
    before = pointers_of(machine)
    assert before == pointers_of(member())
    assert machine.ring is not None
    machine.ring.successors = (B, D)
    assert pointers_of(machine) != before
    assert pointers_of(machine_at(25)) != pointers_of(machine_at(26))
