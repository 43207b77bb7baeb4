"""A session in the middle of its handshake, and what a session that failed must look like."""

from __future__ import annotations

import pytest

from headgate.protocol.errors import LocalError, ProtocolViolation
from headgate.protocol.messages import Error, Hello, Message, Ping, Scope
from headgate.protocol.wire import Role, Session, decode, encode_chunks, frame
from tests.support.pair import PEER
from tests.support.samples import MESSAGES

__all__ = ["framed", "greeting", "last_error"]


def framed(*messages: Message) -> bytes:
    return b"".join(b"".join(frame(encode_chunks(message))) for message in messages)


def last_error(session: Session) -> Error:
    """The one ERROR that a failed session says, after which it says and hears nothing."""
    assert session.closed
    written = b"".join(session.take())
    length = int.from_bytes(written[:4], "big")
    error = decode(written[4 : 4 + length])
    assert isinstance(error, Error) and error.scope == Scope.CONNECTION
    assert len(written) == 4 + length, "something was said after the ERROR"
    assert isinstance(session.failure, ProtocolViolation)
    assert (error.code, error.text) == (session.failure.code, session.failure.text)
    assert session.receive(framed(Ping(1), *MESSAGES), 1.0) == []
    session.wake(1e9)
    assert session.take() == []
    assert session.next_deadline() == float("inf")
    for message in MESSAGES:
        with pytest.raises(LocalError):
            session.send(message)
    return error


def greeting(role: Role) -> Session:
    """A session in the middle of its handshake: HELLO was said, or our own PEER."""
    session = Session(role, 0.0)
    if role is Role.PEER:
        session.send(PEER)
        session.take()
    elif role is Role.CLIENT:
        session.send(Hello())
        session.take()
    else:
        assert session.receive(framed(Hello()), 0.0) == [Hello()]
    return session
