"""One connection as a machine without I/O: handshake, states, heartbeats, goodbye. Clients and brokers share it.

The host's duties, step by step:

    1. bytes came:    for message in session.receive(data, now): …       never raises; see `failure` afterwards
    2. say something: session.send(message)                              raises LocalError in the wrong state
    3. after either:  write session.take() to the socket; when session.closed, close it once that is written
    4. time passed:   session.wake(now) when session.next_deadline() is due
    5. stream ended:  session.lost(reason)

States, and what may come in, are the table `_ACCEPTED`; drawn out (HELLO and WELCOME come once, in this order):

    OPENING --HELLO sent or received, WELCOME the other way--> OPEN --GOODBYE or ERROR--> CLOSED
       |                                                        |
       +--anything else, a bad frame, a deadline----------------+--> CLOSED, `failure` says why

On a link between brokers both sides are PEER: the dialler says PEER, the acceptor answers with PEER, and both are open.

A violation is answered with one ERROR of scope CONNECTION, then nothing more is read. PING is answered here and PONG
never leaves this file; a client's host hears of PING, which asks it for CREDIT as well. Silence for one heartbeat sends
a PING; silence for two is the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..errors import ErrorCode, HeadgateError, LocalError, ProtocolViolation
from ..limits import (
    FRAME_LENGTH_MAX,
    FRAME_SECONDS_MAX,
    HANDSHAKE_FRAME_LENGTH_MAX,
    HANDSHAKE_SECONDS_MAX,
    HEARTBEAT_SECONDS_DEFAULT,
    HEARTBEAT_SECONDS_MAX,
    HEARTBEAT_SECONDS_MIN,
    PEER_HEARTBEAT_SECONDS,
)
from ..messages import (
    PEER_VERSION,
    VERSION,
    Ack,
    Acked,
    Answer,
    Ask,
    Control,
    Copy,
    Credit,
    Deliver,
    Ended,
    Error,
    Fetched,
    Forward,
    Gap,
    Goodbye,
    Handed,
    Hello,
    Hold,
    Interest,
    Letter,
    LogChunk,
    Message,
    Peer,
    Ping,
    Pong,
    Puback,
    Publish,
    ReadLog,
    Rejected,
    Scope,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
    wire_name,
)
from .codec import decode, encode_chunks, kind_of
from .frames import FrameReader, frame

__all__ = ["WORDLESS", "Role", "Session", "SessionLimits", "State"]

WORDLESS = "the other side closed the connection without a goodbye"
"""Why a connection was lost whose other side went without a word."""


class Role(Enum):
    """Which end of the wire this is."""

    CLIENT = "client"
    BROKER = "broker"
    PEER = "peer"

    # The one of Enum is Python, and asked four times for each event that comes alone.
    __hash__ = object.__hash__


class State(Enum):
    """Where the connection is in its life."""

    OPENING = "opening"
    OPEN = "open"
    CLOSED = "closed"

    __hash__ = object.__hash__


_BOTH = (Ping, Pong, Error, Goodbye)
_FROM_CLIENT = frozenset((*_BOTH, Credit, Hold, Subscribe, Unsubscribe, Publish, Ask, ReadLog, Ack))
_FROM_BROKER = frozenset(
    (*_BOTH, Suback, Unsuback, Puback, Deliver, Gap, Interest, Answer, LogChunk, Handed, Acked, Ended, Rejected)
)
_AMONG_PEERS = frozenset((*_BOTH, Credit, Letter, Control, Forward, Deliver, Gap, Copy, Fetched))
_ACCEPTED: dict[tuple[Role, State], frozenset[type]] = {
    (Role.BROKER, State.OPENING): frozenset((Hello, Error, Goodbye)),
    (Role.BROKER, State.OPEN): _FROM_CLIENT,
    (Role.CLIENT, State.OPENING): frozenset((Welcome, Error, Goodbye)),
    (Role.CLIENT, State.OPEN): _FROM_BROKER,
    (Role.PEER, State.OPENING): frozenset((Peer, Error, Goodbye)),
    (Role.PEER, State.OPEN): _AMONG_PEERS,
    (Role.BROKER, State.CLOSED): frozenset(),
    (Role.CLIENT, State.CLOSED): frozenset(),
    (Role.PEER, State.CLOSED): frozenset(),
}
_SENT: dict[tuple[Role, State], frozenset[type]] = {
    (Role.BROKER, State.OPENING): frozenset((Welcome, Error, Goodbye)),
    (Role.BROKER, State.OPEN): _FROM_BROKER,
    (Role.CLIENT, State.OPENING): frozenset((Hello, Error, Goodbye)),
    (Role.CLIENT, State.OPEN): _FROM_CLIENT,
    (Role.PEER, State.OPENING): frozenset((Peer, Error, Goodbye)),
    (Role.PEER, State.OPEN): _AMONG_PEERS,
    (Role.BROKER, State.CLOSED): frozenset(),
    (Role.CLIENT, State.CLOSED): frozenset(),
    (Role.PEER, State.CLOSED): frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """How long this side waits for what the other one has begun; `protocol/limits.py` has the reasons."""

    handshake_seconds: float = HANDSHAKE_SECONDS_MAX
    frame_seconds: float = FRAME_SECONDS_MAX


DEFAULT_LIMITS = SessionLimits()


class Session:
    """One connection's protocol: bytes in, messages out, and back."""

    def __init__(
        self,
        role: Role,
        now: float,
        heartbeat_seconds: float | None = None,
        limits: SessionLimits = DEFAULT_LIMITS,
    ) -> None:
        self.role = role
        self.limits = limits
        self.state = State.OPENING
        self.failure: HeadgateError | None = None
        self.violated = False  # the failure is one of the other side, found here; not just the end of the bytes
        self.bytes_received = 0
        self.bytes_sent = 0
        usual = PEER_HEARTBEAT_SECONDS if role is Role.PEER else HEARTBEAT_SECONDS_DEFAULT
        self.heartbeat_seconds = usual if heartbeat_seconds is None else heartbeat_seconds
        self._reader = FrameReader()
        self._outgoing: list[bytes] = []
        self._opened = now
        self._heard = now
        self._pinged: float | None = None
        self._frame_began = now
        self._greeted = False  # HELLO was said, or our PEER
        self._was_greeted = False  # by the PEER of the other side
        self._delivering = False  # DELIVER may be sent: the short way for what is sent most

    @property
    def closed(self) -> bool:
        """Nothing more is read or sent; what `take` still gives may be written."""
        return self.state is State.CLOSED

    def receive(self, data: bytes | memoryview, now: float) -> list[Message]:
        """The messages that `data` completes. Never raises: a violation ends the session and is kept in `failure`."""
        messages: list[Message] = []
        state = self.state
        if state is State.CLOSED:
            return messages
        self.bytes_received += len(data)
        self._heard = now
        self._pinged = None
        waiting = self._reader.waiting
        accepted = _ACCEPTED[self.role, state]
        try:
            for view in self._reader.feed(data):
                waiting = False
                kind = kind_of(view)
                if kind not in accepted:
                    raise ProtocolViolation(self._out_of_place(kind))
                message = decode(view, kind)
                if kind is not Publish and kind is not Deliver and self._absorb(message):
                    continue
                messages.append(message)
                if self.state is not state:
                    state = self.state
                    accepted = _ACCEPTED[self.role, state]
                    if state is State.CLOSED:
                        return messages
        except ProtocolViolation as violation:
            self._fail(violation)
        if not waiting:
            self._frame_began = now
        return messages

    def send(self, message: Message) -> None:
        """Queue a message. Raises LocalError when this side may not say that now."""
        kind = type(message)
        if kind is Deliver and self._delivering:
            self._outgoing += frame(encode_chunks(message))
            return
        if kind not in _SENT[self.role, self.state]:
            raise LocalError(f"{wire_name(kind)} is not sent by a {self.role.value} that is {self.state.value}")
        opening = self.state is State.OPENING
        if (kind is Hello and self._greeted) or (kind is Welcome and not self._greeted):
            raise LocalError("the client says HELLO, once, and the broker answers it with WELCOME")
        if kind is Peer and self._greeted:
            raise LocalError("a broker says PEER once")
        chunks = frame(encode_chunks(message), HANDSHAKE_FRAME_LENGTH_MAX if opening else FRAME_LENGTH_MAX)
        self._outgoing += chunks
        if kind is Hello:
            self._greeted = True
        elif kind is Welcome:
            self._open(message.heartbeat_seconds)  # type: ignore[union-attr]  # kind is the type of message
        elif kind is Peer:
            self._greeted = True
            if self._was_greeted:
                self._open(self.heartbeat_seconds)
        elif kind is Goodbye or (kind is Error and message.scope == Scope.CONNECTION):  # type: ignore[union-attr]
            self._close()

    def take(self) -> list[bytes]:
        """The bytes to write now, in order."""
        outgoing = self._outgoing
        if outgoing:
            self._outgoing = []
            self.bytes_sent += len(outgoing[0]) if len(outgoing) == 1 else sum(map(len, outgoing))
        return outgoing

    def next_deadline(self) -> float:
        """When `wake` wants to be called."""
        if self.state is State.CLOSED:
            return float("inf")
        if self.state is State.OPENING:
            return self._opened + self.limits.handshake_seconds
        # From the ping itself: a host that slept must give the answer time to come in.
        silence = self.heartbeat_seconds + (self._heard if self._pinged is None else self._pinged)
        if self._reader.waiting:
            return min(silence, self._frame_began + self.limits.frame_seconds)
        return silence

    def wake(self, now: float) -> None:
        """Look at the clock: ping a silent peer, end what overran its deadline."""
        if now < self.next_deadline():
            return
        if self.state is State.OPENING:
            text = f"no handshake within {self.limits.handshake_seconds:g} seconds"
            self._fail(ProtocolViolation(text, ErrorCode.TIMEOUT))
        elif self._reader.waiting and now >= self._frame_began + self.limits.frame_seconds:
            text = f"a frame was not complete within {self.limits.frame_seconds:g} seconds"
            self._fail(ProtocolViolation(text, ErrorCode.TIMEOUT))
        elif self._pinged is not None:
            text = f"silent for {2 * self.heartbeat_seconds:g} seconds, two heartbeats"
            self._fail(ProtocolViolation(text, ErrorCode.TIMEOUT))
        else:
            self._pinged = now
            self._outgoing += frame(encode_chunks(Ping(int(now))))

    def lost(self, reason: str) -> None:
        """The byte stream ended without a goodbye."""
        if self.state is not State.CLOSED:
            self._close()
            self.failure = ProtocolViolation(reason)

    def _absorb(self, message: Message) -> bool:
        """Handle what concerns the session alone; True when the host need not see it."""
        kind = type(message)
        if kind is Ping:
            self._outgoing += frame(encode_chunks(Pong(message.token)))  # type: ignore[union-attr]
            return self.role is not Role.CLIENT
        if kind is Pong:
            return True
        if isinstance(message, Hello):
            self._check_hello(message)
        elif isinstance(message, Welcome):
            self._check_welcome(message)
            self._open(message.heartbeat_seconds)
        elif isinstance(message, Peer):
            self._check_peer(message)
        elif isinstance(message, Goodbye):
            self._close()
        elif isinstance(message, Error) and message.scope == Scope.CONNECTION:
            self._close()
            code = ErrorCode(message.code) if message.code in set(ErrorCode) else ErrorCode.PROTOCOL
            self.failure = ProtocolViolation(message.text, code)
        return False

    def _check_hello(self, hello: Hello) -> None:
        if self._greeted:
            raise ProtocolViolation("HELLO is said once")
        self._greeted = True
        if hello.version != VERSION:
            text = f"this broker speaks version {VERSION}, the client {hello.version}: upgrade the older one"
            raise ProtocolViolation(text, ErrorCode.VERSION)
        self._check_heartbeat(hello.heartbeat_seconds)

    def _check_welcome(self, welcome: Welcome) -> None:
        if not self._greeted:
            raise ProtocolViolation("WELCOME answers a HELLO, and none was sent")
        if welcome.version != VERSION:
            text = f"this client speaks version {VERSION}, the broker {welcome.version}: upgrade the older one"
            raise ProtocolViolation(text, ErrorCode.VERSION)
        self._check_heartbeat(welcome.heartbeat_seconds)

    def _check_peer(self, peer: Peer) -> None:
        if self._was_greeted:
            raise ProtocolViolation("PEER is said once")
        self._was_greeted = True
        if peer.version != PEER_VERSION:
            text = (
                f"to other brokers this one speaks version {PEER_VERSION}, and {peer.name} at {peer.address} speaks "
                f"version {peer.version}: brokers of a cluster are of one version, upgrade the older one"
            )
            raise ProtocolViolation(text, ErrorCode.VERSION)
        if self._greeted:
            self._open(self.heartbeat_seconds)

    def _check_heartbeat(self, seconds: float) -> None:
        if not HEARTBEAT_SECONDS_MIN <= seconds <= HEARTBEAT_SECONDS_MAX:
            text = f"a heartbeat is {HEARTBEAT_SECONDS_MIN:g} to {HEARTBEAT_SECONDS_MAX:g} seconds"
            raise ProtocolViolation(text)

    def _open(self, heartbeat_seconds: float) -> None:
        self.state = State.OPEN
        self._delivering = self.role is not Role.CLIENT
        self.heartbeat_seconds = heartbeat_seconds
        self._reader.length_max = FRAME_LENGTH_MAX

    def _close(self) -> None:
        self.state = State.CLOSED
        self._delivering = False

    def _out_of_place(self, kind: type[Any]) -> str:
        name = wire_name(kind)
        if self.role is Role.PEER and kind is Hello:
            return "HELLO may not come here: this port is for brokers, clients connect to --listen (7400 unless set)"
        if self.role is Role.BROKER and kind is Peer:
            return (
                "PEER may not come here: this port is for clients, brokers connect to --peer-listen (7401 unless set)"
            )
        if self.role is Role.PEER and self.state is State.OPENING:
            return f"the first message is PEER, not {name}"
        if self.role is Role.BROKER and self.state is State.OPENING:
            return f"the first message is HELLO, not {name}"
        return f"{name} may not come to a {self.role.value} that is {self.state.value}"

    def _fail(self, violation: ProtocolViolation) -> None:
        self.failure = violation
        self.violated = True
        if self.state is not State.CLOSED:
            error = Error(violation.code, Scope.CONNECTION, 0, violation.text[:1000])
            self._outgoing += frame(encode_chunks(error))
            self._close()
