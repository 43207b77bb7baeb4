"""The state of a durable subscription: its record and its cursor, as they are kept on k disks and joined.

Two states of one name are joined, in any order and any number of times, and nothing that either settled is owed again:
so brokers that lost sight of each other need no vote.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .messages import Place

__all__ = ["Cursor", "DeadLetter", "DurableState", "Section"]


class Section(NamedTuple):
    """Positions before these ends have to match this condition as well."""

    condition: str
    ends: dict[Place, int]


class Cursor(NamedTuple):
    """Every position of a log before `upto` is settled (acknowledged, given up, or known not to match), but `owed`."""

    upto: int
    owed: tuple[tuple[int, int], ...] = ()


class DeadLetter(NamedTuple):
    """An event that was given up: where it is, how often it was handed out, why, and when (microseconds since 1970)."""

    place: Place
    position: int
    delivered: int
    reason: str
    time: int


@dataclass(slots=True)
class DurableState:
    """All that is kept of a durable subscription."""

    name: str
    version: int = 1
    removed: bool = False
    generation: int = 0
    stream: str = ""
    pattern: str = ""
    exact: bool = False
    condition: str = ""
    sharing: str = "exclusive"
    ack_wait: float = 30.0
    max_deliver: int = 0
    backoff: tuple[float, ...] = ()
    max_unacked: int = 1000
    dead_letter: str = ""
    created: int = 0
    starts: dict[Place, int] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    cursors: dict[Place, Cursor] = field(default_factory=dict)
    handed: dict[Place, int] = field(default_factory=dict)
    counts: dict[Place, dict[int, int]] = field(default_factory=dict)
    dead: tuple[DeadLetter, ...] = ()
