"""What the oracle of the ring is shown: the pointers of machines, and the lists that answers under way will lead to."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.broker.core.membership import Chord, Letter, Member, Pointers, Snapshot, State, adopted

__all__ = ["outcome", "pointers_of", "snapshot_of"]


def snapshot_of(machines: Iterable[Chord], answers: Iterable[tuple[Chord | None, Letter]]) -> Snapshot:
    """Everybody's pointers now; `answers` are letters under way, each with the machine that it is for."""
    members: dict[Member, Pointers] = {}
    for machine in machines:
        if machine.ring is not None:
            members[machine.me] = Pointers(machine.ring.predecessor, machine.ring.successors)
    lists = [outcome(machine, letter) for machine, letter in answers]
    return Snapshot(members, [one for one in lists if one])


def outcome(machine: Chord | None, letter: Letter) -> tuple[Member, ...]:
    """The extended list that this answer will lead to, or () when nobody waits for it."""
    body = letter.body
    if machine is None or not isinstance(body, State):
        return ()
    step = None if machine.ring is None else machine.ring.step
    joining = machine.joining
    if step is not None and step.number == body.number:
        return (machine.me, *adopted(letter.sender, body.successors))
    if joining is not None and joining.number == body.number and joining.fits(letter.sender, body.successors):
        return (machine.me, *body.successors)
    return ()


def pointers_of(machine: Chord) -> object:
    """What a machine's member points at, to compare with what it was."""
    ring = machine.ring
    return (machine.me, ring is None, ring and ring.predecessor, ring and ring.successors)
