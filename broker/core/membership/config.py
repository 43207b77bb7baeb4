"""What a membership machine is told when it is made: frozen, checked once. Bounds stand here with their reasons."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..safeguards import SAFEGUARDS, Safeguard

__all__ = ["CONTACTS_MAX", "FENCED_MAX", "MESH_MAX", "WALK_HOPS_MAX", "WALK_MEMORY_HOPS", "ChordConfig"]

FENCED_MAX = 1024
"""Members declared dead that are remembered. Each costs a hundred bytes; by the time so many more have died, nothing
of the oldest is under way any more."""

CONTACTS_MAX = 256
"""Addresses of brokers that were known once, asked now and then whether they live in another ring."""

WALK_HOPS_MAX = 16_384
"""Hops of one look around the ring: without fingers it goes forward by a successor list a hop."""

WALK_MEMORY_HOPS = 16
"""Hops whose lists a walk remembers: the last few are enough to see who stands before the place."""

MESH_MAX = 256
"""Brokers that one broker greets while there is no ring: a ring opens long before, and a forged list ends somewhere."""


@dataclass(frozen=True, slots=True)
class ChordConfig:
    """Alike on every broker of a cluster; seconds as named."""

    list_length: int = 4
    """Successors that a member knows. With 4, all of four neighbours must die between two stabilizations to break the
    ring; 2 and 3 are for tests."""

    stabilize_seconds: float = 1.0
    """How often a member looks at its successor; the time to repair is a few of these."""

    answer_seconds: float = 0.5
    """How long one sending of a query waits; more than a round trip with everything that delays it."""

    attempts: int = 3
    """Sendings without an answer after which a member is declared dead."""

    busy_seconds: float = 0.1
    """About when to ask a busy member again: a few round trips."""

    greet_seconds: float = 0.5
    """How often brokers without a ring greet each other."""

    silence_seconds: float = 2.0
    """After so much silence a broker is no longer counted while there is no ring: four greetings."""

    promise_seconds: float = 6.0
    """How long who agreed to open a ring waits for it: three times what the opener gives the others to agree."""

    probe_seconds: float = 5.0
    """How often a member asks a seed whether there is another ring."""

    safeguards: frozenset[Safeguard] = field(default=SAFEGUARDS, repr=False)  # a set is written in no order
    """All of them, but in a simulation that shows what one is for."""

    def __post_init__(self) -> None:
        if self.list_length < 2:
            raise ValueError(f"list_length is {self.list_length}; a ring needs at least 2 successors a member")
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}; a member must be asked at least once")

    @property
    def ring_size_min(self) -> int:
        """Fewer members than this are a full mesh and no ring."""
        return self.list_length + 1
