"""The oracle: each part of the invariant broken by hand, and principals against their plain definition."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import between
from headgate.broker.core.membership import Member, Pointers, Snapshot, consequences, ideal_complaints, invariant
from headgate.broker.core.membership.invariant import principals
from headgate.broker.core.membership.members import after, ideal
from tests.support.chord_parts import at

A, B, C, D, E = RING = [at(place) for place in (10, 20, 30, 40, 50)]


def ring(*changes: tuple[Member, Pointers]) -> Snapshot:
    """The ideal ring of five with two successors each, and changes."""
    return Snapshot({member: Pointers(*pointers) for member, pointers in ideal(RING, 2).items()} | dict(changes))


def test_the_ideal_ring_is_without_fault() -> None:
    snapshot = ring()
    assert invariant(snapshot, 2) == consequences(snapshot) == ""
    assert ideal_complaints(snapshot, 2) == []
    assert principals(snapshot) == RING


def test_a_list_of_the_dead_is_found() -> None:
    assert "OneLiveSuccessor" in invariant(ring((A, Pointers(E, (after(A), at(15))))), 2)


def test_too_few_principals_are_found() -> None:
    assert "SufficientPrincipals" in invariant(ring((A, Pointers(E, (D, E)))), 3)
    assert principals(ring((A, Pointers(E, (D, E))))) == [A, D, E]
    assert "SufficientPrincipals" in invariant(ring((A, Pointers(E, (B, B)))), 2)


def test_answers_under_way_count() -> None:
    snapshot = ring()
    snapshot.answers = [(A, B, D)]
    assert C not in principals(snapshot)
    snapshot.answers = [(A, at(12), at(14))]
    assert "LiveAnswers" in invariant(snapshot, 2)


def test_the_consequences_are_found_by_walking() -> None:
    assert "OrderedLists" in consequences(ring((A, Pointers(E, (C, B)))))
    assert "ConnectedAppendages" in consequences(ring((A, Pointers(E, (at(12), at(14))))))
    two = {member: Pointers(*pointers) for part in ((A, B), (C, D)) for member, pointers in ideal(part, 1).items()}
    assert "AtMostOneRing" in consequences(Snapshot(two))
    loop = {A: Pointers(A, (C,)), C: Pointers(A, (B,)), B: Pointers(A, (D,)), D: Pointers(A, (A,))}
    assert "OrderedRing" in consequences(Snapshot(loop))


def test_a_member_beside_the_ring_that_leads_to_it_is_fine() -> None:
    snapshot = ring((at(35), Pointers(C, (D, E))))
    assert consequences(snapshot) == invariant(snapshot, 2) == ""
    assert principals(snapshot) == RING


def test_every_pointer_that_is_not_ideal_is_named() -> None:
    complaints = ideal_complaints(ring((A, Pointers(D, (C, D)))), 2)
    assert len(complaints) == 2 and "b50/1" in complaints[0] and "b20/1" in complaints[1]


members = st.integers(0, 12).map(lambda place: Member(place, 1))


@given(st.dictionaries(members, st.tuples(members, members), min_size=1), st.lists(st.tuples(members, members)))
def test_principals_are_those_whom_no_pair_skips(
    lists: dict[Member, tuple[Member, Member]], answers: list[tuple[Member, ...]]
) -> None:
    snapshot = Snapshot({member: Pointers(member, entries) for member, entries in lists.items()}, answers)
    plain = [
        member
        for member in sorted(lists)
        if not any(between(low, member, high) for one in snapshot.extended_lists() for low, high in pairwise(one))
    ]
    assert principals(snapshot) == plain
