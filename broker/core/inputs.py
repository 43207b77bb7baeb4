"""Everything that can happen to a Node. A host makes these, and nothing else changes a Node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from protocol.messages import Message

__all__ = [
    "DialFailed",
    "Drain",
    "Input",
    "LinkDown",
    "LinkPaused",
    "LinkResumed",
    "Loaded",
    "PeerUp",
    "Reachable",
    "Received",
    "Wake",
    "WallClock",
]


@dataclass(slots=True)
class Received:
    """Messages that one read of a link brought, in order; the host numbers its links and never reuses a number."""

    link: int
    messages: list[Message]


@dataclass(slots=True)
class PeerUp:
    """A connection between brokers: to the address that was dialled (effect Dial), or accepted when that is empty."""

    link: int
    address: str = ""


@dataclass(slots=True)
class DialFailed:
    """Nobody answered there."""

    address: str


@dataclass(slots=True)
class Reachable:
    """Where other brokers, and clients, reach this one; told once, when it listens. Without it a broker is alone."""

    address: str
    client_address: str = ""


@dataclass(slots=True)
class LinkDown:
    """The connection is gone, for this reason."""

    link: int
    reason: str


@dataclass(slots=True)
class LinkPaused:
    """The link takes no more bytes for now."""

    link: int


@dataclass(slots=True)
class LinkResumed:
    """The link takes bytes again."""

    link: int


@dataclass(slots=True)
class Wake:
    """A deadline that `next_deadline` named has come."""


@dataclass(slots=True)
class WallClock:
    """Wall-clock seconds minus the host's monotonic seconds, told at the start and whenever it moved."""

    offset_seconds: float


@dataclass(slots=True)
class Loaded:
    """What earlier lives stored (effect Store), told before the first link."""

    records: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Drain:
    """The host is about to stop: send what may still be sent, say goodbye, take nobody new."""


Input = (
    Received | PeerUp | DialFailed | Reachable | LinkDown | LinkPaused | LinkResumed | Wake | WallClock | Loaded | Drain
)
