"""What a Node is told when it is made: frozen, checked once, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from .kv import KvLimits
from .limits import (
    DEFAULT_LIMITS,
    LOG_COPIES_DEFAULT,
    OUTBOX_BYTES_DEFAULT,
    OUTBOX_BYTES_TOTAL_DEFAULT,
    REPLICAS_DEFAULT,
    SESSION_GRACE_SECONDS,
    Limits,
)
from .membership import ChordConfig
from .safeguards import SAFEGUARDS, Safeguard

__all__ = ["CLUSTER_DEFAULT", "NodeConfig", "broker_id"]

CLUSTER_DEFAULT = "headgate"
"""The cluster of a broker that was not told another one."""


def broker_id(name: str) -> int:
    """The first eight bytes of SHA-1 over the broker's name."""
    return int.from_bytes(hashlib.sha1(name.encode(), usedforsecurity=False).digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """One broker's own settings; bytes and seconds as named."""

    name: str
    incarnation: int
    outbox_bytes: int = OUTBOX_BYTES_DEFAULT
    outbox_bytes_total: int = OUTBOX_BYTES_TOTAL_DEFAULT
    grace_seconds: float = SESSION_GRACE_SECONDS
    slow_consumer: Literal["drop", "disconnect"] = "drop"
    cluster: str = CLUSTER_DEFAULT
    seeds: tuple[str, ...] = ()
    replicas: int = REPLICAS_DEFAULT
    log_copies: int = LOG_COPIES_DEFAULT
    chord: ChordConfig = field(default_factory=ChordConfig)
    limits: Limits = DEFAULT_LIMITS
    kv: KvLimits = field(default_factory=KvLimits)
    safeguards: frozenset[Safeguard] = field(default=SAFEGUARDS, repr=False)  # a set is written in no order
    """All of them, but in a simulation that shows what one is for."""

    @property
    def identifier(self) -> int:
        """This broker's place on the ring."""
        return broker_id(self.name)

    @property
    def fingerprint(self) -> dict[str, int | float | str]:
        """What brokers of one cluster must agree on; a broker that differs is turned away, and told in which.

        Nothing else: how many copies of keys and of stored events there are is a promise of the whole cluster, and
        the ring is kept by rules that are alike everywhere. Limits and times of one broker are its own affair.
        """
        chord = self.chord
        return {
            "replicas": self.replicas,
            "log_copies": self.log_copies,
            "list_length": chord.list_length,
            "attempts": chord.attempts,
        }

    @property
    def origin(self) -> str:
        """What every event id of this broker's life begins with."""
        return f"{broker_id(self.name):016x}-{self.incarnation:x}"
