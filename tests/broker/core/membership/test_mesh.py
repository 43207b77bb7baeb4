"""The mesh: who is known, and how a ring is opened."""

from __future__ import annotations

from headgate.broker.core.membership import Letter, Member
from headgate.broker.core.membership.identity import Identity
from headgate.broker.core.membership.mesh import Mesh
from headgate.broker.core.membership.messages import Agree, Body, Gone, Greet, Open, Propose, Query
from tests.support.chord_parts import at, letter, new_identity, said

A, B, C = at(10), at(20), at(30)
VIEW = (A, B, C)


def new_mesh(place: int = 10, *seeds: str) -> tuple[Mesh, Identity]:
    identity = new_identity(place, *seeds)
    return Mesh(identity, 0.0), identity


def greet(mesh: Mesh, *members: Member, now: float = 0.0) -> None:
    for member in members:
        body = Greet(())
        mesh.greeted(Letter(member, None, body), body, now)


def settle(mesh: Mesh, *members: Member) -> float:
    """Greet until the view has been the same for long enough."""
    now = 0.0
    for _ in range(8):
        greet(mesh, *members, now=now)
        now = mesh.next_deadline()
        mesh.wake(now, True)
    return now


def bodies(identity: Identity, kind: type[Body]) -> list[str]:
    return [address for address, body in said(identity) if isinstance(body, kind)]


def test_seeds_are_greeted_and_whoever_answers_is_known() -> None:
    mesh, identity = new_mesh(10, "b20", "b30")
    mesh.wake(1.0, True)
    assert said(identity) == [("b20", Greet(())), ("b30", Greet(()))]
    greet(mesh, B)
    assert mesh.members() == (A, B)
    assert said(identity) == [("b20", Greet((B,)))]


def test_whom_others_know_is_greeted_too() -> None:
    mesh, identity = new_mesh()
    body = Greet((C, A))
    mesh.greeted(letter(B, A, body), body, 0.0)
    assert ("b30", Greet(())) in said(identity)
    assert mesh.members() == (A, B)


def test_the_silent_are_forgotten_but_their_address_is_not() -> None:
    mesh, identity = new_mesh()
    greet(mesh, B, now=0.0)
    for _ in range(8):
        mesh.wake(mesh.next_deadline(), True)
    assert mesh.members() == (A,)
    assert identity.contacts() == ["b20"]


def test_who_stood_still_takes_the_silence_for_its_own() -> None:
    mesh, _ = new_mesh()
    greet(mesh, B, now=0.0)
    mesh.wake(5.0, True)
    assert mesh.members() == (A, B)
    for _ in range(8):
        mesh.wake(mesh.next_deadline(), True)
    assert mesh.members() == (A,)


def test_a_broker_that_comes_back_replaces_its_former_life() -> None:
    mesh, _ = new_mesh()
    greet(mesh, B, B._replace(incarnation=2))
    assert mesh.members() == (A, B._replace(incarnation=2))


def test_the_lowest_proposes_once_enough_are_known_for_a_while() -> None:
    mesh, identity = new_mesh(10)
    greet(mesh, B, C)
    mesh.wake(mesh.next_deadline(), True)
    assert bodies(identity, Propose) == []
    settle(mesh, B, C)
    assert bodies(identity, Propose) == ["b20", "b30"]


def test_nobody_proposes_with_too_few_or_while_joining_or_when_another_is_lower() -> None:
    for place, others, free in ((10, (B,), True), (25, (A, B, C), True), (10, (B, C), False)):
        mesh, identity = new_mesh(place)
        now = 0.0
        for _ in range(10):
            greet(mesh, *others, now=now)
            now = mesh.next_deadline()
            mesh.wake(now, free)
        assert bodies(identity, Propose) == []


def test_the_ring_is_open_when_all_have_agreed() -> None:
    mesh, identity = new_mesh(10)
    now = settle(mesh, B, C)
    said(identity)
    mesh.agreed(letter(B, A, Agree(VIEW)), Agree(VIEW), now)
    assert not mesh.opened
    mesh.agreed(letter(C, A, Agree(VIEW)), Agree(VIEW), now)
    assert mesh.opened == VIEW
    assert bodies(identity, Open) == ["b20", "b30"]


def test_an_agreement_that_comes_too_late_opens_nothing() -> None:
    mesh, _ = new_mesh(10)
    now = settle(mesh, B, C) + 60.0
    for member in (B, C):
        mesh.agreed(letter(member, A, Agree(VIEW)), Agree(VIEW), now)
    assert not mesh.opened


def test_beside_a_ring_that_was_heard_of_no_other_is_opened() -> None:
    mesh, identity = new_mesh(10)
    mesh.heard_of_ring_at = 3.0
    assert settle(mesh, B, C) < 5.0 and bodies(identity, Propose) == []
    while mesh.next_deadline() < 6.0:
        greet(mesh, B, C, now=mesh.next_deadline())
        mesh.wake(mesh.next_deadline(), True)
    assert bodies(identity, Propose) == ["b20", "b30"], "nobody invites us any more"
    mesh.agreed(letter(B, A, Agree(VIEW)), Agree(VIEW), 6.0)
    mesh.heard_of_ring_at = 6.0
    mesh.agreed(letter(C, A, Agree(VIEW)), Agree(VIEW), 6.1)
    assert not mesh.opened and not mesh.promised


def test_who_heard_of_a_ring_does_not_agree_to_another() -> None:
    mesh, identity = new_mesh(20)
    mesh.heard_of_ring_at = 0.0
    mesh.proposed(letter(A, B, Propose(VIEW)), Propose(VIEW), 1.0, True)
    assert said(identity) == []
    mesh.proposed(letter(A, B, Propose(VIEW)), Propose(VIEW), 3.0, True)
    assert said(identity) == [("b10", Agree(VIEW))]


def test_who_agrees_waits_for_open() -> None:
    mesh, identity = new_mesh(20)
    mesh.proposed(letter(A, B, Propose(VIEW)), Propose(VIEW), 0.0, True)
    assert said(identity) == [("b10", Agree(VIEW))]
    mesh.told_open(letter(C, B, Open(VIEW)), Open(VIEW), 1.0)
    assert not mesh.opened
    mesh.told_open(letter(A, B, Open(VIEW)), Open(VIEW), 1.0)
    assert mesh.opened == VIEW


def test_a_proposal_is_left_unanswered_by_whoever_knows_better() -> None:
    views = [(A, B), (B, A, C), (A, at(25), C)]
    for view in views:
        mesh, identity = new_mesh(20)
        mesh.proposed(letter(A, B, Propose(view)), Propose(view), 0.0, True)
        assert said(identity) == [], view
    mesh, identity = new_mesh(20)
    greet(mesh, at(40))
    said(identity)
    mesh.proposed(letter(A, B, Propose(VIEW)), Propose(VIEW), 0.0, True)
    mesh.proposed(letter(A, B, Propose((*VIEW, at(40)))), Propose((*VIEW, at(40))), 0.0, False)
    assert said(identity) == []


def test_a_letter_from_the_ring_stands_for_an_open_that_was_lost() -> None:
    mesh, _ = new_mesh(20)
    mesh.heard_of_ring(letter(C, B, Query(1)))
    assert not mesh.opened
    mesh.proposed(letter(A, B, Propose(VIEW)), Propose(VIEW), 0.0, True)
    mesh.heard_of_ring(letter(at(50), B, Query(1)))
    assert not mesh.opened
    mesh.heard_of_ring(letter(C, B, Query(1)))
    assert mesh.opened == VIEW


def test_a_promise_ends() -> None:
    mesh, _ = new_mesh(20)
    mesh.proposed(letter(A, B, Propose(VIEW)), Propose(VIEW), 0.0, True)
    mesh.wake(60.0, True)
    assert mesh.promised == ()


def test_who_was_in_the_ring_counts_as_heard_until_it_has_been_silent() -> None:
    mesh, identity = new_mesh()
    mesh.expect([B, C], 1.0)
    assert mesh.members() == VIEW
    mesh.wake(1.5, True)
    assert mesh.members() == VIEW
    assert {address for address, body in said(identity) if isinstance(body, Greet)} == {"b20", "b30"}
    greet(mesh, at(20, 2), now=2.0)
    assert mesh.members() == (A, at(20, 2), C), "it comes back as another member, once"
    now = 1.5
    while now < 3.5:
        now = mesh.next_deadline()
        mesh.wake(now, True)
    assert mesh.members() == (A, at(20, 2))


def test_only_who_goes_can_say_so() -> None:
    mesh, _ = new_mesh()
    greet(mesh, B, C)
    mesh.left(letter(B, A, Gone(C)), Gone(C))
    assert mesh.members() == VIEW
    mesh.left(letter(C, A, Gone(C)), Gone(C))
    assert mesh.members() == (A, B)
    mesh.left(letter(C, A, Gone(C)), Gone(C))
    assert mesh.members() == (A, B)
