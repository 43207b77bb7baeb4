"""Everything that can happen to a Node. A host makes these, and nothing else changes a Node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.messages import Message

from .log_state import LogState, ProducerState
from .rights import Policy

__all__ = [
    "Admitted",
    "AsideRemoved",
    "Caused",
    "Certified",
    "DialFailed",
    "Drain",
    "Found",
    "Governed",
    "Input",
    "LinkDown",
    "LinkPaused",
    "LinkResumed",
    "Loaded",
    "LogInput",
    "NotStored",
    "Opened",
    "PeerUp",
    "Reachable",
    "RecordsRoom",
    "Received",
    "RowsRead",
    "Stored",
    "Trimmed",
    "Wake",
    "WallClock",
]


@dataclass(slots=True)
class Caused:
    """Every input. `cause` says why it happened, if the host knows more than the input says itself (`cause.py`)."""

    cause: str = field(default="", kw_only=True, repr=False, compare=False)


@dataclass(slots=True)
class Received(Caused):
    """Messages that one read of a link brought, in order; the host numbers its links and never reuses a number.

    `address` is where the other side speaks from, as far as the host knows: it is shown to people. `more` says that the
    host is in the middle of a turn: what clients published is delivered and acknowledged at its end, together.
    """

    link: int
    messages: list[Message]
    address: str = ""
    more: bool = False


@dataclass(slots=True)
class Admitted(Caused):
    """The host knows who speaks on a link: told before its HELLO, where there is a policy.

    `credential` names what that user has shown; when it is none of the policy's any more, the session ends. A web token
    says by itself which roles its user has, and when it ends.
    """

    link: int
    user: str
    credential: str
    roles: tuple[str, ...] | None = None
    """None: those that the policy gives its user."""
    ends: float = float("inf")
    """When what was shown ends, in seconds since 1970; what ends with the policy has no end here."""


@dataclass(slots=True)
class Governed(Caused):
    """From now on this policy holds, for sessions that there are as well. Before the first one nobody is named."""

    policy: Policy


@dataclass(slots=True)
class Certified(Caused):
    """When the certificate of each port that speaks TLS ends, in seconds since 1970, by the port's name."""

    ends: Mapping[str, float]


@dataclass(slots=True)
class PeerUp(Caused):
    """A connection between brokers: to the address that was dialled (effect Dial), or accepted when that is empty.

    `names` are those that the other side's certificate proves; None where brokers show none.
    """

    link: int
    address: str = ""
    names: tuple[str, ...] | None = None


@dataclass(slots=True)
class DialFailed(Caused):
    """No broker answered there."""

    address: str


@dataclass(slots=True)
class Reachable(Caused):
    """Where other brokers, and clients, reach this one; told once, when it listens. Without it a broker is alone."""

    address: str
    client_address: str = ""


@dataclass(slots=True)
class LinkDown(Caused):
    """The connection is gone, for this reason."""

    link: int
    reason: str


@dataclass(slots=True)
class LinkPaused(Caused):
    """The link takes no more bytes for now."""

    link: int


@dataclass(slots=True)
class LinkResumed(Caused):
    """The link takes bytes again."""

    link: int


@dataclass(slots=True)
class Wake(Caused):
    """A deadline that `next_deadline` named has come."""


@dataclass(slots=True)
class WallClock(Caused):
    """Wall-clock seconds minus the host's monotonic seconds, told at the start and whenever it moved."""

    offset_seconds: float


@dataclass(slots=True)
class Loaded(Caused):
    """What earlier lives stored (effect Store), told before the first link."""

    records: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Drain(Caused):
    """The host is about to stop: send what may still be sent, say goodbye, take no new connections."""


@dataclass(slots=True)
class Opened(Caused):
    """What the store holds, told once, before Loaded; never told by a host without a disk.

    `epoch` is what our own logs are written under from now on: that of before, or a larger one when something was
    missing. `damage` says in words what was missing or had to be put aside; empty in every ordinary start. `durables`
    are the states of durable subscriptions by name, as KeepDurable gave them.
    """

    epoch: int
    logs: list[LogState] = field(default_factory=list)
    producers: list[ProducerState] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    durables: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Stored(Caused):
    """Every `LogWrite` up to this ticket is on the disk, those told in NotStored aside."""

    upto: int


@dataclass(slots=True)
class NotStored(Caused):
    """All that was asked to be kept, and not told Stored before, is not in the logs.

    The logs end, and the producers are, where Stored last said. Nothing more is kept before the Node has answered with
    WriteOn. `fatal`: the disk failed in a way that leaves open what it holds: see Halt. Otherwise it is full, and the
    next Append may fare better.
    """

    reason: str
    fatal: bool = False


@dataclass(slots=True)
class RowsRead(Caused):
    """The rows that ReadRows asked for, in order, and where the next ones begin; none when the log ends there.

    Where a row cannot be read any more, `damage` says so: there are no rows then, and reading goes on at `next`.
    """

    ticket: int
    rows: list[bytes]
    next: int
    damage: str = ""


@dataclass(slots=True)
class Found(Caused):
    """What FindTime, FindSize or FindIds asked for; None when there is no such log, or it is damaged there."""

    ticket: int
    value: Any


@dataclass(slots=True)
class Trimmed(Caused):
    """A log after TrimLog."""

    state: LogState


@dataclass(slots=True)
class AsideRemoved(Caused):
    """The store has thrown away rows that it had put aside long ago: so many rows, and bytes."""

    rows: int
    bytes: int


@dataclass(slots=True)
class RecordsRoom(Caused):
    """Whether small records (Store) are kept over a restart: why they are not, or would not be; empty when they are."""

    obstacle: str


LogInput = Opened | Stored | NotStored | RowsRead | Found | Trimmed | AsideRemoved
"""What a host's store says."""

Input = (
    Received
    | Admitted
    | Governed
    | Certified
    | PeerUp
    | DialFailed
    | Reachable
    | LinkDown
    | LinkPaused
    | LinkResumed
    | Wake
    | WallClock
    | Loaded
    | RecordsRoom
    | Drain
    | LogInput
)
