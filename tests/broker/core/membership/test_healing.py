"""Healing, judged by whole machines: two rings become one, and who was cut out comes back."""

from __future__ import annotations

from headgate.broker.core.membership import Heard, Post, Ring
from headgate.broker.core.membership.merge import Healing
from headgate.broker.core.membership.messages import Fenced, Look, Meet, Seen
from headgate.broker.simulator.scenarios import RingOptions, play
from tests.support.chord_parts import at, letter, machine_at, new_identity, said


def test_without_a_contact_nothing_is_asked() -> None:
    identity = new_identity(10)
    healing = Healing(identity, Ring(identity, at(40), (at(20), at(30)), 0.0), 0.0)
    before = healing.next_deadline()
    healing.wake(before)
    assert said(identity) == [] and healing.next_deadline() > before


def test_a_seed_that_has_us_in_its_ring_is_left_in_peace() -> None:
    identity = new_identity(10, "b40")
    healing = Healing(identity, Ring(identity, at(40), (at(20), at(30)), 0.0), 0.0)
    healing.wake(healing.next_deadline())
    ((address, look),) = said(identity)
    assert address == "b40" and isinstance(look, Look)
    seen = Seen(look.number, (at(10), at(20)))
    healing.saw(letter(at(40), None, seen), seen, 6.0)
    assert said(identity) == [] and healing.move_to is None


def test_a_member_that_hears_of_another_ring_looks_soon() -> None:
    for body in (Meet(), Fenced()):
        machine = machine_at(10)
        machine.found([at(10), at(20), at(30)], 0.0)
        machine.handle(Heard(letter(at(99), at(10), body)), 1.0)
        assert machine.healing is not None
        assert machine.healing.next_deadline() <= 2.0
        machine.healing.wake(2.0)
        effects = [effect for effect in machine.identity.effects if isinstance(effect, Post)]
        assert [(one.address, type(one.letter.body)) for one in effects] == [("b99", Look)]


def test_two_rings_that_meet_become_one() -> None:
    for seed in range(3):
        verdict = play(RingOptions(seed, nodes=8, list_length=2, kind="partition"))
        assert verdict.failure == ""
