"""What one broker knows of another, and whom it tells what the other one says; no behaviour.

A `PeerInfo` is one *life* of another broker: it stays the same object while links come and go, so that counts go on
where they were, and it is another one when the broker comes back in a new life.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.protocol.messages import Control, Copy, Deliver, Forward, Gap, Letter

from .subscribers import ClientSession

__all__ = ["Entry", "PeerHooks", "PeerInfo", "Refusal"]


class Entry(NamedTuple):
    """A FORWARD that was sent: up to which event of the link's count it reaches, its stream, its events."""

    position: int
    stream: str
    events: int


class Refusal(NamedTuple):
    """A broker's word that this one may not be linked to it: its code (`ErrorCode`), why, and when it said so last."""

    code: int
    text: str
    at: float


@dataclass(slots=True, eq=False)
class PeerInfo:
    """Another broker in one of its lives. `link` is None while there is none."""

    name: str
    identifier: int
    life: int
    address: str
    client_address: str
    session: ClientSession  # credit and outbox of the events to it
    link: int | None = None
    dialled: bool = False  # the link is one that we dialled
    counted: bool = False  # the other side's first CREDIT came on this link: it knows the link, and we its count
    left: bool = False  # it said goodbye to shut down, and before that what it had for us
    active: float = 0.0  # when something was last said on the link; while there is none: since when
    aliases: dict[str, None] = field(default_factory=dict)  # addresses at which it was met

    forwards: deque[Forward] = field(default_factory=deque)
    forwards_bytes: int = 0
    forwards_turn: bool = False
    ledger: deque[Entry] = field(default_factory=deque)
    acknowledged: int = 0  # events that it is done with
    reported: bool = False  # what the ledger holds was given up already
    settle_at: float = float("inf")
    dropped: int = 0
    paused_tells: int = 0

    got: int = 0  # events that came from it
    handled: int = 0  # those that we are done with
    told_got: int = 0
    told_handled: int = 0
    acknowledge_at: float = float("inf")


@dataclass(slots=True)
class PeerHooks:
    """Who is told what; every one gets `now` last. Those that get a message may raise ProtocolViolation."""

    up: Callable[[PeerInfo, float], None]
    down: Callable[[PeerInfo, str, float], None]
    letter: Callable[[PeerInfo, Letter, float], None]
    control: Callable[[PeerInfo, Control, float], None]
    copy: Callable[[PeerInfo, Copy, float], None]
    forward: Callable[[PeerInfo, Forward, float], None]
    deliver: Callable[[PeerInfo, Deliver, float], None]
    gap: Callable[[PeerInfo, Gap, float], None]
    lost: Callable[[PeerInfo, str, int, float], None]  # events of a stream that were forwarded and did not arrive
    returned: Callable[[PeerInfo, list[Forward], float], None]  # what was never sent: send it elsewhere
