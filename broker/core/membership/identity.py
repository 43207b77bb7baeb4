"""The identity of one broker: which member it is now, what it says, and which members it has declared dead.

The parts of the membership machine share it, so that nothing can be said under a former incarnation, and so that a
member that one part declared dead is dead for all (suspected means fenced).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from .config import CONTACTS_MAX, FENCED_MAX, ChordConfig
from .members import Member
from .messages import Body, ChordEffect, Letter, Lost, Post, Reborn

__all__ = ["Identity"]


class Identity:
    """Holds which member this broker is, numbers its questions, and gathers what it says."""

    def __init__(self, me: Member, seeds: Sequence[str], config: ChordConfig, random: Random) -> None:
        self.me = me
        self.config = config
        self.random = random
        self.effects: list[ChordEffect] = []
        self.fenced: dict[Member, None] = {}
        self.seeds = [seed for seed in dict.fromkeys(seeds) if seed != me.address]
        self.once_known: dict[str, None] = {}
        self._numbers = 0

    def number(self) -> int:
        """A number that no question of this broker had before."""
        self._numbers += 1
        return self._numbers

    def tell(self, member: Member, body: Body) -> None:
        """Write to a member."""
        assert not member.artificial and member != self.me
        self.effects.append(Post(member.address, Letter(self.me, member, body)))

    def tell_address(self, address: str, body: Body) -> None:
        """Write to the broker that lives there."""
        self.effects.append(Post(address, Letter(self.me, None, body)))

    def declare_dead(self, member: Member) -> None:
        """From now on this member is dead here, whatever it says; its broker may come back as another one."""
        if member.artificial or member in self.fenced:
            return
        self.fenced[member] = None
        if len(self.fenced) > FENCED_MAX:
            self.fenced.pop(next(iter(self.fenced)))
        self.remember(member.address)
        self.effects.append(Lost(member))

    def remember(self, address: str) -> None:
        """Keep an address that may be worth asking later."""
        if address in self.seeds or address == self.me.address:
            return
        self.once_known.pop(address, None)
        self.once_known[address] = None
        if len(self.once_known) > CONTACTS_MAX:
            self.once_known.pop(next(iter(self.once_known)))

    def contacts(self) -> list[str]:
        """Seeds, and who was known once."""
        return [*self.seeds, *self.once_known]

    def be_reborn(self) -> None:
        """Become the next member that this broker is. A new life declares no member dead.

        A member that the old one declared dead may live in the ring that the new one joins; if the new one shunned it
        there, all of its list would be dead.
        """
        self.me = self.me._replace(incarnation=self.me.incarnation + 1)
        self.fenced.clear()
        self.effects.append(Reborn(self.me))
