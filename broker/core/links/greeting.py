"""May these two be linked? One broker's greeting beside another's, and what speaks against it; no state.

The text of an objection is read by an operator on either side, so it names both values and what to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Control, Copy, Deliver, Error, Fetched, Forward, Gap, Letter, Peer, Scope

from ..delivery import ClientSession
from ..keyspace import hash_identifier

__all__ = [
    "Entry",
    "PeerHooks",
    "PeerInfo",
    "Refusal",
    "is_same_broker",
    "objection",
    "objection_to_founder",
]

# What one broker knows of another, and which part it tells what the other one says; no behaviour.
#
# A `PeerInfo` is one *life* of another broker: it stays the same object while links come and go, so that counts go on
# where they were, and it is another one when the broker comes back in a new life.


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
    named: str = ""  # the version of its users and roles; empty: it asks nobody who they are, or has not said

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
    fetched: Callable[[PeerInfo, Fetched, float], None]


def is_same_broker(mine: Peer, theirs: Peer) -> bool:
    """Whether we have dialled ourselves."""
    return (mine.name, mine.life, mine.address, mine.client_address) == (
        theirs.name,
        theirs.life,
        theirs.address,
        theirs.client_address,
    )


def objection(mine: Peer, theirs: Peer, known: PeerInfo | None) -> Error | None:
    """Why not; `known` is what we remember under their identifier."""
    if not theirs.name or not theirs.address:
        return _refusal(ErrorCode.PROTOCOL, "a broker says its name and the address where others reach it")
    if theirs.cluster != mine.cluster:
        text = (
            f"{mine.name} is of the cluster {mine.cluster!r}, and {theirs.name} at {theirs.address} of "
            f"{theirs.cluster!r}: clusters of different names never link; if these are to be one, start both with the "
            "same --cluster, and else take the address of the other one out of --join"
        )
        return _refusal(ErrorCode.OTHER_CLUSTER, text)
    if theirs.name == mine.name:
        return _refusal(ErrorCode.DUPLICATE, _two_brokers(theirs.name, mine.address, theirs.address))
    difference = _difference(mine, theirs)
    if difference:
        return _refusal(ErrorCode.MISMATCH, difference)
    if hash_identifier(theirs.name) == hash_identifier(mine.name):
        text = f"{theirs.name} and {mine.name} have the same place on the ring: give one of them another --name"
        return _refusal(ErrorCode.DUPLICATE, text)
    return None if known is None else _against_known(theirs, known)


def objection_to_name(theirs: Peer, names: tuple[str, ...] | None) -> Error | None:
    """Why not, when brokers show certificates: `names` are those in the other side's."""
    if names is None or theirs.name in names:
        return None
    proved = ", ".join(names) or "nobody"
    text = (
        f"it says that it is {theirs.name!r}, and its certificate is for {proved}: give it the certificate of its "
        "--name (`headgate cert init` makes one for each broker)"
    )
    return _refusal(ErrorCode.UNAUTHORISED, text)


def objection_to_founder(mine: Peer, theirs: Peer, dialled: str) -> Error | None:
    """Why not link to a broker that answered at an address that is only remembered here: it was told to join none.

    A founder is joined by those who were told its address. Else a broker that begins a cluster of its own, where
    another one once was, would find itself in the other one's.
    """
    if not theirs.founder:
        return None
    text = (
        f"{theirs.name} was told to join nobody, and {mine.name} of the cluster {mine.cluster!r} only remembers its "
        f"address {dialled}: start it with --join {mine.address} if it is to be of that cluster, and else give it "
        "another --cluster"
    )
    return _refusal(ErrorCode.OTHER_CLUSTER, text)


def _against_known(theirs: Peer, known: PeerInfo) -> Error | None:
    if known.name != theirs.name:
        text = f"{theirs.name} and {known.name} have the same place on the ring: give one of them another --name"
        return _refusal(ErrorCode.DUPLICATE, text)
    if theirs.life < known.life:
        text = (
            f"{theirs.name} is known here in life {known.life}, and this is life {theirs.life}: an older process, "
            "or one that lost its data, which is taken back a minute after the other one was last seen"
        )
        return _refusal(ErrorCode.DUPLICATE, text)
    if theirs.life == known.life and theirs.address != known.address:
        return _refusal(ErrorCode.DUPLICATE, _two_brokers(theirs.name, known.address, theirs.address))
    if theirs.life > known.life and known.link is not None:
        text = _two_brokers(theirs.name, known.address, theirs.address)
        text += f"; here life {known.life} is linked, and life {theirs.life} may take its place when it no longer is"
        return _refusal(ErrorCode.DUPLICATE, text)
    return None


def _two_brokers(name: str, one: str, other: str) -> str:
    return f"two brokers are named {name}, at {one} and at {other}: give one of them another --name"


def _difference(mine: Peer, theirs: Peer) -> str:
    """The first setting in which two brokers differ, in words; empty when they agree."""
    for name in sorted({*mine.fingerprint, *theirs.fingerprint}):
        ours, others = mine.fingerprint.get(name), theirs.fingerprint.get(name)
        if type(ours) is not type(others) or ours != others:
            return (
                f"all brokers of a cluster have the same {name}, and {mine.name} has {ours!r} where "
                f"{theirs.name} has {others!r}: change one of them and restart it"
            )
    return ""


def _refusal(code: ErrorCode, text: str) -> Error:
    return Error(code, Scope.CONNECTION, 0, text)
