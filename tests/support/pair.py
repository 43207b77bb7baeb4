"""Two real sessions and a wire between them that has no socket: bytes move when the test says so, cut as it says.

pair = Pair(byte_by_byte)
pair.open()
pair.say(Role.CLIENT, Ping(1))
assert pair.heard[Role.BROKER] == [...]

`PeerPair` is the same for a link between brokers, of which one side is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from headgate.protocol.messages import PEER_VERSION, VERSION, Hello, Message, Peer, Welcome
from headgate.protocol.wire import Role, Session, State

__all__ = ["OTHER", "PEER", "Pair", "PeerPair", "Split", "byte_by_byte", "opened", "pair_of", "random_chunks", "whole"]

Split = Callable[[bytes], Iterator[bytes]]
OTHER = {Role.CLIENT: Role.BROKER, Role.BROKER: Role.CLIENT, Role.PEER: Role.PEER}
PEER = Peer(PEER_VERSION, "bob", 2, "bob:7401", "bob:7400", "headgate", False, {"replicas": 2})
_BOTH = (Role.CLIENT, Role.BROKER)


def whole(data: bytes) -> Iterator[bytes]:
    """All that was written comes in at once."""
    if data:
        yield data


def byte_by_byte(data: bytes) -> Iterator[bytes]:
    """Each byte comes in alone."""
    return (data[place : place + 1] for place in range(len(data)))


def random_chunks(seed: int) -> Split:
    """Pieces of 1 to 40 bytes, the same for the same seed."""
    draw = Random(seed)

    def split(data: bytes) -> Iterator[bytes]:
        start = 0
        while start < len(data):
            end = start + draw.randint(1, 40)
            yield data[start:end]
            start = end

    return split


class Pair:
    """A client's session and a broker's, a clock, and what each host heard."""

    def __init__(self, split: Split = whole, heartbeat_seconds: float = 15.0) -> None:
        self.now = 0.0
        self.split = split
        self.sessions = {role: Session(role, self.now, heartbeat_seconds) for role in _BOTH}
        self.heard: dict[Role, list[Message]] = {role: [] for role in _BOTH}

    @property
    def client(self) -> Session:
        return self.sessions[Role.CLIENT]

    @property
    def broker(self) -> Session:
        return self.sessions[Role.BROKER]

    def open(self) -> None:
        """The handshake, forgotten by `heard` afterwards."""
        hello = Hello(heartbeat_seconds=self.client.heartbeat_seconds)
        self.say(Role.CLIENT, hello)
        self.say(Role.BROKER, Welcome(VERSION, "ann", b"key", False, 0, 256, hello.heartbeat_seconds))
        assert self.heard[Role.BROKER] == [hello]
        assert self.client.state is self.broker.state is State.OPEN
        for messages in self.heard.values():
            messages.clear()

    def say(self, role: Role, *messages: Message) -> None:
        """One side's host sends; everything is carried, answers included."""
        for message in messages:
            self.sessions[role].send(message)
        self.carry()

    def carry(self) -> None:
        """Move bytes both ways until there are none."""
        moved = True
        while moved:
            moved = False
            for role in _BOTH:
                data = b"".join(self.sessions[role].take())
                moved = moved or bool(data)
                self.put(OTHER[role], data)

    def put(self, role: Role, data: bytes) -> None:
        """Bytes come in at one side, whoever wrote them."""
        for piece in self.split(data):
            self.heard[role] += self.sessions[role].receive(piece, self.now)

    def wake(self, seconds: float) -> None:
        """Time passes; each side looks at its clock."""
        self.now += seconds
        for session in self.sessions.values():
            session.wake(self.now)


class PeerPair(Pair):
    """Two brokers; `sessions` has the one that accepted, and what it hears comes from the one that dialled."""

    def __init__(self, split: Split = whole, heartbeat_seconds: float = 15.0) -> None:
        self.now = 0.0
        self.split = split
        self.dialler = Session(Role.PEER, self.now, heartbeat_seconds)
        self.sessions = {Role.PEER: Session(Role.PEER, self.now, heartbeat_seconds)}
        self.heard = {Role.PEER: []}

    def open(self) -> None:
        """The handshake, forgotten by `heard` afterwards."""
        acceptor = self.sessions[Role.PEER]
        self.dialler.send(PEER)
        self.put(Role.PEER, b"".join(self.dialler.take()))
        assert self.heard[Role.PEER] == [PEER] and not acceptor.closed
        acceptor.send(PEER)
        assert self.dialler.receive(b"".join(acceptor.take()), self.now) == [PEER]
        assert self.dialler.state is acceptor.state is State.OPEN
        self.heard[Role.PEER].clear()


def opened(role: Role, heartbeat_seconds: float = 15.0) -> Session:
    """One session past its handshake, with nothing to write."""
    pair = pair_of(role, heartbeat_seconds=heartbeat_seconds)
    pair.open()
    return pair.sessions[role]


def pair_of(role: Role, split: Split = whole, heartbeat_seconds: float = 15.0) -> Pair:
    """A pair with this role on one side."""
    return (PeerPair if role is Role.PEER else Pair)(split, heartbeat_seconds)
