"""What a keyed store is told when it is made, and what it tells of itself: both frozen."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..keyspace import MESH_BROKERS_MAX, Arc
from ..safeguards import SAFEGUARDS, Safeguard
from .limits import DEFAULT_LIMITS, LEASE_SECONDS, LIVES_MAX, KvLimits

__all__ = ["KvConfig", "KvStatistics"]


@dataclass(frozen=True, slots=True)
class KvConfig:
    """Which life of the broker this is, and its limits. Leases must be the same at all brokers."""

    life: int = 0
    """Never the same again at a broker of this identifier: the numbers of its puts begin with it."""
    lease_seconds: float = LEASE_SECONDS
    limits: KvLimits = DEFAULT_LIMITS
    mesh_brokers: int = MESH_BROKERS_MAX
    """Up to so many brokers all are linked to each other."""
    safeguards: frozenset[Safeguard] = field(default=SAFEGUARDS, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.life < LIVES_MAX:
            raise ValueError(f"life is {self.life}: make it 0 to {LIVES_MAX - 1}")
        if not 0 < self.lease_seconds <= LEASE_SECONDS:
            raise ValueError(f"lease_seconds is {self.lease_seconds}: make it more than 0 and at most {LEASE_SECONDS}")


@dataclass(frozen=True, slots=True)
class KvStatistics:
    """A snapshot, for metrics and `headgate ring`: sizes now, and counts since the start."""

    items: int
    tombstones: int
    own: Arc | None
    ready: Arc | None
    siblings: dict[int, bool]
    """Sibling -> whether it holds all of our keys."""
    replicas: tuple[int, ...]
    puts_waiting: int
    puts_resent: int
    puts_unconfirmed: int
    puts_dropped: int
    streams: int
    differences: int
    offered: int
    settled: int
    full: int
