"""Parts of the membership machine for tests: members by place, an identity, and what it said."""

from __future__ import annotations

from random import Random
from typing import Any

from headgate.broker.core.membership import Chord, ChordConfig, Letter, Member, Post
from headgate.broker.core.membership.identity import Identity
from headgate.broker.core.membership.messages import Body

__all__ = ["CONFIG", "at", "letter", "machine_at", "new_identity", "said"]

CONFIG = ChordConfig(list_length=2, attempts=1)


def at(place: int, incarnation: int = 1) -> Member:
    """The member at this place of the ring."""
    return Member(place, incarnation, 0, f"b{place}")


def new_identity(place: int = 10, *seeds: str, config: ChordConfig = CONFIG) -> Identity:
    """Who we are."""
    return Identity(at(place), seeds, config, Random(1))


def machine_at(place: int, *seeds: str, config: ChordConfig = CONFIG) -> Chord:
    """A whole machine."""
    return Chord(at(place), seeds, config, Random(place), 0.0)


def letter(sender: Member, recipient: Member | None, body: Body) -> Letter:
    """From one to the other."""
    return Letter(sender, recipient, body)


def said(source: Identity | list[Any]) -> list[tuple[str, Body]]:
    """(address, body) of each letter written since the last call."""
    effects = source.effects if isinstance(source, Identity) else source
    letters = [(effect.address, effect.letter.body) for effect in effects if isinstance(effect, Post)]
    effects.clear()
    return letters
