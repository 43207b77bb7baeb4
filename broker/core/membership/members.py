"""Members: who is on the ring, and the algebra of successor lists; no state.

A member is one *incarnation* of a broker: when a broker restarts, or was declared dead while it lived, it comes back
under a higher incarnation and is another member, directly after its former self. So no member ever comes back, which
is what the proof of the protocol assumes (Zave), and still a broker keeps its place on the ring.

Members are ordered by (identifier, incarnation, padding), and `between` of `keyspace/identifiers.py` works on them. A
member is made once, by the broker it is, and only copied by others; so equal members have equal addresses.

*Padding.* A list that loses its head is filled up with `last + 1`: an artificial member directly after the last entry.
No member can lie between the two, so the list claims nothing untrue; no broker answers for it, so it counts as dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from ..keyspace import hash_identifier
from ..messages import Address, Identifier, whole
from .config import MESH_MAX

__all__ = [
    "NUMBER_MAX",
    "RING_TOP",
    "Member",
    "SuccessorList",
    "adopted",
    "after",
    "ideal",
    "member_of",
    "without_head",
]


NUMBER_MAX = 2**63 - 1
"""Of an incarnation, and of a question about the ring."""


class Member(NamedTuple):
    """One life of one broker on the ring, or an artificial entry of a successor list (padding > 0)."""

    identifier: Identifier
    incarnation: Annotated[int, whole(NUMBER_MAX)]
    padding: Annotated[int, whole(MESH_MAX - 1)] = 0
    address: Address = ""

    @property
    def artificial(self) -> bool:
        """Made to fill a list up: no broker is there."""
        return self.padding > 0

    def __str__(self) -> str:
        name = self.address or f"{self.identifier:016x}"
        return f"{name}/{self.incarnation}" + (f"+{self.padding}" if self.padding else "")


SuccessorList = tuple[Member, ...]

RING_TOP = Member(0, -1)
"""The place before every member: the member that precedes it is the highest of the ring."""


def member_of(name: str, incarnation: int, address: str) -> Member:
    """The member that a broker of this name is; its identifier is the hash of its name."""
    return Member(hash_identifier(name), incarnation, 0, address)


def after(last: Member) -> Member:
    """last + 1: an artificial member with none between."""
    return Member(last.identifier, last.incarnation, last.padding + 1)


def adopted(head: Member, successors: SuccessorList) -> SuccessorList:
    """The list of a member whose successor is `head`, which has this list."""
    return (head, *successors[:-1])


def without_head(successors: SuccessorList) -> SuccessorList:
    """The list after its head died."""
    return (*successors[1:], after(successors[-1]))


def ideal(members: Sequence[Member], list_length: int) -> dict[Member, tuple[Member, SuccessorList]]:
    """Member -> (predecessor, successor list) when all pointers are right: the dumb twin of the protocol."""
    ring = sorted(members)
    return {
        member: (
            ring[position - 1],
            tuple(ring[(position + step) % len(ring)] for step in range(1, list_length + 1)),
        )
        for position, member in enumerate(ring)
    }
