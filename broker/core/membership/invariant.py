"""The ring's invariant as an executable predicate: the oracle of the simulator (Zave, the inductive
invariant).

It is global: it sees the pointers of all live members at one moment, and the lists in answers that are under way. The
broker itself never uses it.

    OneLiveSuccessor       every member has a live member in its list
    SufficientPrincipals   at least r + 1 members are principals: no list, and no list under way, skips them
    LiveAnswers            every list under way has a live member in it

What follows from it is checked apart (`consequences`), so that a hole in the argument would show: one ring, ordered,
reached by every other member; lists in order and without repetition. (That all principals are on the ring follows from
its order: a principal that is not on it lies between two neighbours on it, and so one of their lists skips it.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..keyspace import between
from .members import Member, SuccessorList, ideal

__all__ = ["Pointers", "Snapshot", "consequences", "ideal_complaints", "invariant", "principals"]


@dataclass(slots=True)
class Pointers:
    """Of one member."""

    predecessor: Member
    successors: SuccessorList


@dataclass(slots=True)
class Snapshot:
    """All live members, and for each answer that a member waits for the extended list that it will lead to."""

    members: Mapping[Member, Pointers]
    answers: Sequence[tuple[Member, ...]] = ()

    def extended_lists(self) -> list[tuple[Member, ...]]:
        """Each with its owner in front."""
        return [(member, *pointers.successors) for member, pointers in self.members.items()] + list(self.answers)


def principals(snapshot: Snapshot) -> list[Member]:
    """Members that no adjacent pair of any extended list skips."""
    ring = sorted(snapshot.members)
    skipped = [False] * len(ring)
    for pair in {pair: None for one in snapshot.extended_lists() for pair in pairwise(one)}:
        low, high = pair
        start, end = bisect_right(ring, low), bisect_left(ring, high)
        if low < high:
            skipped[start:end] = [True] * max(0, end - start)
        else:
            skipped[start:] = [True] * (len(ring) - start)
            skipped[:end] = [True] * end
    return [member for member, is_skipped in zip(ring, skipped, strict=True) if not is_skipped]


def invariant(snapshot: Snapshot, list_length: int) -> str:
    """The name of what does not hold, with an example; empty when all is well."""
    live = snapshot.members
    for member, pointers in live.items():
        if not any(entry in live for entry in pointers.successors):
            return f"OneLiveSuccessor: all of {member}'s list is dead: {_text(pointers.successors)}"
    for answer in snapshot.answers:
        if not any(entry in live for entry in answer[1:]):
            return f"LiveAnswers: all of a list under way is dead: {_text(answer)}"
    found = principals(snapshot)
    if len(found) <= list_length:
        return f"SufficientPrincipals: {len(found)} of {len(live)} members, {list_length + 1} are needed"
    return ""


def consequences(snapshot: Snapshot) -> str:
    """What the invariant implies, found by walking; the name of what does not hold, or empty."""
    live = snapshot.members
    for member, pointers in live.items():
        extended = (member, *pointers.successors)
        triples = zip(extended, extended[1:], extended[2:], strict=False)
        repeats = len(dict.fromkeys(extended)) < len(extended)
        if repeats or any(not between(low, middle, high) for low, middle, high in triples):
            return f"OrderedLists: {_text(extended)}"
    best = {member: next((one for one in live[member].successors if one in live), None) for member in live}
    rings: list[list[Member]] = []
    placed: dict[Member, None] = {}
    for start in sorted(live):
        path: dict[Member, None] = {}
        here: Member | None = start
        while here is not None and here not in path and here not in placed:
            path[here] = None
            here = best[here]
        if here is None:
            return f"ConnectedAppendages: from {start} the way ends"
        if here in path:
            cycle = list(path)
            rings.append(cycle[cycle.index(here) :])
        placed |= path
    if len(rings) != 1:
        return f"{'AtMostOneRing' if rings else 'AtLeastOneRing'}: there are {len(rings)}"
    (ring,) = rings
    if sum(low >= high for low, high in zip(ring, (*ring[1:], ring[0]), strict=True)) != 1:
        return f"OrderedRing: {_text(ring)}"
    return ""


def ideal_complaints(snapshot: Snapshot, list_length: int) -> list[str]:
    """Every pointer that differs from the ideal ring of the live members."""
    wanted = ideal(list(snapshot.members), list_length)
    found: list[str] = []
    for member, pointers in snapshot.members.items():
        predecessor, successors = wanted[member]
        if pointers.predecessor != predecessor:
            found.append(f"{member}: predecessor {pointers.predecessor}, should be {predecessor}")
        if pointers.successors != successors:
            found.append(f"{member}: {_text(pointers.successors)}, should be {_text(successors)}")
    return found


def _text(members: Sequence[Member]) -> str:
    return " ".join(map(str, members))
