"""Identity: one life at a time, and who is dead to it."""

from __future__ import annotations

from headgate.broker.core.membership import Letter, Lost, Post, Reborn
from headgate.broker.core.membership.config import CONTACTS_MAX, FENCED_MAX
from headgate.broker.core.membership.members import after
from headgate.broker.core.membership.messages import Look
from tests.support.chord_parts import at, new_identity


def test_what_is_said_names_both_lives() -> None:
    identity = new_identity(10)
    identity.tell(at(20), Look(1))
    identity.tell_address("b30", Look(2))
    assert identity.effects == [
        Post("b20", Letter(at(10), at(20), Look(1))),
        Post("b30", Letter(at(10), None, Look(2))),
    ]


def test_numbers_do_not_repeat() -> None:
    identity = new_identity()
    assert identity.number() != identity.number()


def test_the_dead_are_announced_once_and_their_address_is_kept() -> None:
    identity = new_identity(10, "b10", "seed", "seed")
    for _ in range(2):
        identity.declare_dead(at(20))
    identity.declare_dead(after(at(20)))
    assert identity.effects == [Lost(at(20))]
    assert identity.contacts() == ["seed", "b20"]


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    identity = new_identity()
    for place in range(100, 101 + FENCED_MAX):
        identity.declare_dead(at(place))
    assert len(identity.fenced) == FENCED_MAX and at(100) not in identity.fenced
    assert len(identity.once_known) == CONTACTS_MAX and "b100" not in identity.once_known


def test_a_new_life_is_another_member_and_accuses_nobody() -> None:
    identity = new_identity(10)
    identity.declare_dead(at(20))
    identity.be_reborn()
    assert identity.me == at(10, 2)
    assert identity.effects[-1] == Reborn(at(10, 2))
    assert not identity.fenced
