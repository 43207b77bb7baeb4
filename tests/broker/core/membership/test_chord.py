"""The membership machine: roles, lives, and what it asks of its host."""

from __future__ import annotations

from headgate.broker.core.effects import Note
from headgate.broker.core.membership import Chord, Heard, Member, Notify, Owning, Reborn, State, Tick
from headgate.broker.core.membership.members import after
from headgate.broker.core.membership.messages import (
    Body,
    Busy,
    Fenced,
    Gone,
    Greet,
    Look,
    Open,
    Ping,
    Pong,
    Propose,
    Query,
    Ringed,
    Seen,
    Shrunk,
)
from tests.support.chord_parts import at, letter, machine_at, said

A, B, C, D = at(10), at(20), at(30), at(40)


def in_ring(place: int = 10) -> Chord:
    machine = machine_at(place)
    machine.found([A, B, C, D], 0.0)
    machine.handle(Tick(), 0.0)
    return machine


def test_a_lone_broker_is_a_mesh_of_one_and_owns_everything() -> None:
    machine = machine_at(10)
    assert machine.handle(Tick(), 0.0)[-1] == Owning(A, A, True)
    assert machine.status(0.0).role == "mesh" and machine.members() == (A,)
    machine.validate()


def test_in_a_mesh_a_key_belongs_to_the_next_broker() -> None:
    machine = machine_at(20)
    effects = machine.handle(Heard(letter(A, None, Greet(()))), 0.0)
    assert Owning(A, B, True) in effects
    assert Owning(A, B, True) not in machine.handle(Heard(letter(A, None, Greet(()))), 0.1)


def test_a_member_answers_a_letter_for_a_former_life_with_gone() -> None:
    machine = in_ring()
    former = at(10, 0)
    assert said(machine.handle(Heard(letter(B, former, Query(1))), 1.0)) == [("b20", Gone(former))]
    assert said(machine.handle(Heard(letter(B, former, Pong(1))), 1.0)) == []


def test_gone_is_as_good_as_a_timeout() -> None:
    machine = in_ring()
    ring = machine.ring
    assert ring is not None
    ring.stabilize(1.0)
    machine.identity.effects.clear()
    effects = machine.handle(Heard(letter(B._replace(incarnation=2), A, Gone(B))), 1.0)
    assert ring.successors == (C, after(C))
    assert [address for address, _ in said(effects)] == ["b30"]


def test_suspected_means_fenced() -> None:
    machine = in_ring()
    machine.identity.declare_dead(C)
    machine.identity.effects.clear()
    for body in (Query(1), Ping(2), Notify()):
        assert said(machine.handle(Heard(letter(C, A, body)), 1.0)) == [("b30", Fenced())]
    assert said(machine.handle(Heard(letter(C, A, State(1, B, (D, A)))), 1.0)) == []


def test_whoever_is_in_no_ring_is_invited_by_a_ring_that_is_whole() -> None:
    machine = in_ring()
    greeting = Heard(letter(at(99), None, Greet(())))
    assert said(machine.handle(greeting, 1.0)) == [("b99", Ringed())]
    assert machine.ring is not None
    machine.ring.successors = (B, after(B))
    assert said(machine.handle(greeting, 1.0)) == []


def test_an_invitation_leads_into_the_ring() -> None:
    machine = machine_at(25)
    ((_, look),) = said(machine.handle(Heard(letter(C, None, Ringed())), 0.0))
    assert isinstance(look, Look)
    ((_, look),) = said(machine.handle(Heard(letter(C, None, Seen(look.number, (D, A), (B,)))), 0.0))
    assert isinstance(look, Look)
    ((address, query),) = said(machine.handle(Heard(letter(B, None, Seen(look.number, (C, D)))), 0.0))
    assert address == "b20" and isinstance(query, Query)
    effects = machine.handle(Heard(letter(B, at(25), State(query.number, A, (C, D)))), 0.0)
    assert machine.ring is not None and machine.ring.successors == (C, D)
    assert Owning(B, at(25), False) in effects
    assert Owning(B, at(25), True) in machine.handle(Heard(letter(B, at(25), Notify())), 0.1)
    machine.validate()


def test_a_lost_ring_ends_a_life_and_the_next_one_begins_in_the_mesh() -> None:
    machine = in_ring()
    assert machine.ring is not None
    machine.ring.lost = "orphaned"
    effects = machine.handle(Tick(), 0.0)
    assert Reborn(at(10, 2)) in effects
    assert any(isinstance(effect, Note) and effect.facts["reason"] == "orphaned" for effect in effects)
    assert {address for address, body in said(effects) if isinstance(body, Greet)} >= {"b20", "b30", "b40"}
    assert machine.mesh is not None and machine.me == at(10, 2)
    machine.validate()


def test_a_ring_letter_to_one_who_promised_opens_the_ring_and_is_answered() -> None:
    machine = machine_at(20)
    machine.handle(Heard(letter(A, B, Propose((A, B, C)))), 0.0)
    assert said(machine.handle(Heard(letter(C, B, Query(3))), 1.0)) == [("b30", State(3, A, (C, A)))]


def test_open_puts_everybody_at_the_ideal_place() -> None:
    machine = machine_at(20)
    machine.handle(Heard(letter(A, B, Propose((A, B, C)))), 0.0)
    machine.handle(Heard(letter(A, B, Open((A, B, C)))), 1.0)
    assert machine.ring is not None
    assert (machine.ring.predecessor, machine.ring.successors) == (A, (C, A))


def test_what_was_ours_in_the_mesh_is_ours_in_the_ring_and_what_was_not_must_be_given() -> None:
    for newcomer, serving in ((None, True), (at(5), True), (at(15), False)):
        machine = machine_at(20)
        machine.handle(Heard(letter(A, B, Propose((A, B, C)))), 0.0)
        if newcomer is not None:
            machine.handle(Heard(letter(newcomer, B, Greet(()))), 0.1)
        machine.handle(Heard(letter(A, B, Open((A, B, C)))), 1.0)
        assert machine.owning() == Owning(A, B, serving), newcomer
        machine.handle(Heard(letter(A, B, Notify())), 1.1)
        assert machine.owning() == Owning(A, B, True)


def test_a_broker_alone_owns_everything_so_it_gains_nothing_by_a_ring() -> None:
    machine = machine_at(20)
    machine.handle(Heard(letter(A, B, Propose((A, B, C)))), 0.0)
    assert machine.owning() == Owning(B, B, True)
    machine.handle(Heard(letter(A, B, Open((A, B, C)))), 1.0)
    assert machine.owning() == Owning(A, B, True)


def test_one_that_a_ring_buried_before_it_was_in_it_comes_as_another() -> None:
    machine = machine_at(25)
    machine.handle(Heard(letter(A, at(25), Propose((A, at(25), C)))), 0.0)
    machine.handle(Heard(letter(C, at(25, 0), Fenced())), 0.1)
    assert machine.me == at(25), "that was a former life"
    assert Reborn(at(25, 2)) in machine.handle(Heard(letter(C, at(25), Fenced())), 0.1)
    machine.validate()
    machine.handle(Heard(letter(A, at(25, 2), Query(1))), 0.2)
    assert machine.ring is None, "what the former one promised is void"


def test_who_was_answered_just_now_is_awake_even_if_only_with_busy() -> None:
    machine = in_ring()
    ring = machine.ring
    assert ring is not None
    greeting = Heard(letter(at(99), None, Greet(())))
    for invited, late in ((True, 0.0), (False, 5.0)):
        ring.stabilize(100.0)
        assert ring.step is not None
        machine.identity.effects.clear()
        now = ring.step.deadline + late
        machine.handle(Heard(letter(B, A, Busy(ring.step.number))), now)
        assert (said(machine.handle(greeting, now)) == [("b99", Ringed())]) is invited
        ring.answered_at = 0.0


def test_a_ring_letter_to_one_outside_all_rings_makes_it_another_member() -> None:
    machine = machine_at(20)
    effects = machine.handle(Heard(letter(C, B, Notify())), 1.0)
    assert Reborn(at(20, 2)) in effects
    assert said(effects) == [("b30", Gone(B))]


def test_letters_of_our_own_are_no_news() -> None:
    machine = in_ring()
    assert machine.handle(Heard(letter(at(10, 7), None, Greet(()))), 1.0) == []


def test_lists_are_shown_with_the_hints_of_routing() -> None:
    machine = in_ring()
    machine.hints = (D,)
    assert said(machine.handle(Heard(letter(C, None, Look(4))), 1.0)) == [("b30", Seen(4, (B, C), (D,)))]


def test_who_leaves_a_large_ring_tells_both_sides_and_says_nothing_more() -> None:
    machine = in_ring()
    assert said(machine.farewell()) == [("b40", Gone(A)), ("b20", Gone(A)), ("b30", Gone(A))]
    assert machine.next_deadline() == float("inf")
    assert machine.handle(Heard(letter(B, A, Query(1))), 1.0) == machine.handle(Tick(), 9.0) == []
    machine.validate()


def test_who_leaves_a_ring_that_is_too_small_without_it_ends_the_ring() -> None:
    leaving, others = small_ring(10), (small_ring(20), small_ring(30))
    words = said(leaving.farewell())
    assert words[:2] == [("b30", Shrunk((C, B), (A,))), ("b20", Shrunk((C, B), (A,)))]
    assert words[2:] == [("b30", Gone(A)), ("b20", Gone(A))]
    for other in others:
        effects = [other.handle(Heard(letter(A, other.me, body)), 1.0) for body in (Shrunk((C, B), (A,)), Gone(A))]
        assert other.ring is None and not said(effects[1]), "told once, and it need not find out"
    assert others[0].members() == (at(20, 2), C) and others[1].members() == (at(30, 2), B)


def test_who_leaves_a_mesh_or_nobody() -> None:
    machine = machine_at(20)
    machine.handle(Heard(letter(A, None, Greet(()))), 0.0)
    assert said(machine.farewell()) == [("b10", Gone(B))]
    assert machine_at(20).farewell() == []


def test_the_status_counts_what_is_dead() -> None:
    machine = in_ring()
    machine.identity.declare_dead(C)
    status = machine.status(3.0)
    assert (status.role, status.dead_entries, status.stabilized_seconds_ago) == ("ring", 1, 3.0)
    assert status.members == (A, B) and status.serving


def test_nothing_that_may_be_heard_breaks_a_machine() -> None:
    bodies: list[Body] = [Query(1), State(1, A, (B, C)), Ping(1), Pong(1), Notify(), Gone(A), Fenced(), Look(1)]
    bodies += [Seen(1, (A, B)), Greet((A, B)), Ringed(), Propose((A, B, C)), Open((A, B, C)), Shrunk((A, B, C), (D,))]
    for machine in (machine_at(25), in_ring()):
        for number, body in enumerate(bodies):
            for recipient in (None, machine.me, Member(1, 1)):
                machine.handle(Heard(letter(C, recipient, body)), float(number))
                machine.handle(Tick(), machine.next_deadline())
                machine.validate()


# --- A ring that has become too small ---------------------------------------------------------------------------------


def small_ring(place: int) -> Chord:
    """One of three, which is as few as a ring may have."""
    machine = machine_at(place)
    machine.found([A, B, C], 0.0)
    machine.handle(Tick(), 0.0)
    return machine


def test_who_finds_the_ring_too_small_tells_everybody_and_counts_them_as_there() -> None:
    machine = small_ring(10)
    ring = machine.ring
    assert ring is not None
    ring.stabilize(1.0)
    assert ring.step is not None
    machine.identity.effects.clear()
    machine.identity.declare_dead(B)
    effects = machine.handle(Heard(letter(B._replace(incarnation=2), A, Gone(B))), 1.0)
    ((_, query),) = [one for one in said(effects) if isinstance(one[1], Query)]
    assert isinstance(query, Query)
    effects = machine.handle(Heard(letter(C, A, State(query.number, B, (A, B)))), 1.1)
    assert machine.ring is None and machine.mesh is not None
    assert machine.members() == (at(10, 2), C), "a moment of silence does not make its keys ours"
    assert Owning(C, at(10, 2), True) in effects
    words = said(effects)
    assert ("b30", Shrunk((A, C), (B,))) in words, "by the names that they have in the ring"
    assert [address for address, body in words if isinstance(body, Greet)] == ["b30"]
    machine.validate()


def test_who_is_told_leaves_at_once_and_its_keys_stay_whose_they_were() -> None:
    machine = small_ring(30)
    assert Owning(B, C, True) == machine.owning()
    effects = machine.handle(Heard(letter(at(10, 2), C, Shrunk((at(10, 2), C), (B,)))), 1.0)
    assert machine.ring is not None, "it names the next life of one, of whom we know only this one"
    effects = machine.handle(Heard(letter(at(10, 2), C, Shrunk((A, C), (B,)))), 1.0)
    assert machine.ring is None and machine.me == at(30, 2)
    assert machine.members() == (at(30, 2), A)
    assert Owning(A, at(30, 2), True) in effects
    assert [body for _, body in said(effects) if isinstance(body, Shrunk)] == [Shrunk((C, A), (B,))]
    machine.validate()


def test_who_knows_of_somebody_alive_that_the_news_leaves_out_does_not_believe_it() -> None:
    for news in (Shrunk((A, B), ()), Shrunk((A,), (B, D)), Shrunk((A, C, B), ())):
        machine = in_ring()
        assert machine.ring is not None and machine.ring.predecessor == D
        effects = machine.handle(Heard(letter(B, A, news)), 1.0)
        assert machine.ring is not None, news
        assert said(effects) == []


def test_a_dead_one_that_the_news_names_is_dead_to_us_as_well_and_one_known_to_be_dead_is_not_missed() -> None:
    machine = in_ring()
    machine.identity.declare_dead(D)
    effects = machine.handle(Heard(letter(B, A, Shrunk((B, A), (C,)))), 1.0)
    assert machine.ring is None
    assert [body for _, body in said(effects) if isinstance(body, Shrunk)] == [Shrunk((A, B), (D, C))]
    assert machine.members() == (at(10, 2), B)


def test_in_the_mesh_who_says_that_it_goes_is_gone() -> None:
    machine = machine_at(20)
    machine.handle(Heard(letter(A, None, Greet(()))), 0.0)
    assert machine.members() == (B, A)
    effects = machine.handle(Heard(letter(A, B, Gone(A))), 0.1)
    assert machine.members() == (B,)
    assert Owning(B, B, True) in effects
