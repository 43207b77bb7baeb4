"""The vocabulary of the ring: every body is a slotted dataclass and the union names them all."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import get_args

from headgate.broker.core.membership import ChordEffect, ChordInput, Letter, Member, messages
from headgate.broker.core.membership.messages import Body, Look

OTHERS = {"Body", "ChordEffect", "ChordInput", "Letter", "from_wire", "to_wire"}


def test_every_class_offered_is_a_body_an_input_or_an_effect() -> None:
    named = {kind.__name__ for union in (Body, ChordEffect, ChordInput) for kind in get_args(union)} - {"Note"}
    assert named == set(messages.__all__) - OTHERS


def test_letters_and_bodies_are_slotted() -> None:
    for kind in (*get_args(Body), Letter):
        assert is_dataclass(kind) and "__slots__" in vars(kind)


def test_a_letter_names_both_lives() -> None:
    letter = Letter(Member(1, 2), Member(3, 4), Look(5))
    assert (letter.sender.incarnation, letter.recipient.incarnation) == (2, 4)  # type: ignore[union-attr]
