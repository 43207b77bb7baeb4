"""The session over a wire without a socket: its table of states, the handshake, deadlines, what a violation gets."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.protocol.errors import ErrorCode, LocalError, ProtocolViolation
from headgate.protocol.limits import (
    CONTROL_LENGTH_MAX,
    FRAME_LENGTH_MAX,
    FRAME_SECONDS_MAX,
    HANDSHAKE_FRAME_LENGTH_MAX,
    HANDSHAKE_SECONDS_MAX,
)
from headgate.protocol.messages import (
    VERSION,
    Answer,
    Ask,
    Error,
    Goodbye,
    Hello,
    Message,
    Ping,
    Pong,
    Publish,
    Scope,
    Subscribe,
    Welcome,
    wire_name,
)
from headgate.protocol.wire import Role, Session, State, encode
from tests.support.pair import OTHER, Pair, Split, byte_by_byte, opened, pair_of, random_chunks, whole
from tests.support.samples import MESSAGES, batch, name_of
from tests.support.session_ends import framed, greeting, last_error

SPLITS = pytest.mark.parametrize("split", [whole, byte_by_byte, random_chunks(1)], ids=["whole", "bytes", "chunks"])
ROLES = pytest.mark.parametrize("role", Role, ids=lambda role: role.value)

BOTH = "ERROR GOODBYE PING PONG "
FROM = {
    Role.CLIENT: set((BOTH + "CREDIT HOLD SUBSCRIBE UNSUBSCRIBE PUBLISH PRODUCE ASK READ_LOG ACK").split()),
    Role.BROKER: set(
        (BOTH + "SUBACK UNSUBACK PUBACK DELIVER GAP INTEREST ANSWER LOG_CHUNK HANDED ACKED ENDED REJECTED").split()
    ),
    Role.PEER: set((BOTH + "CREDIT LETTER CONTROL FORWARD DELIVER GAP COPY FETCHED").split()),
}
FIRST = {
    Role.CLIENT: {"HELLO", "ERROR", "GOODBYE"},
    Role.BROKER: {"WELCOME", "ERROR", "GOODBYE"},
    Role.PEER: {"PEER", "ERROR", "GOODBYE"},
}
"""What each side may say before the handshake is done: this table is SPEC.md's, written a second time."""
ENDS = {"WELCOME": State.OPEN, "PEER": State.OPEN, "GOODBYE": State.CLOSED}
"""How the handshake ends; after any other word it goes on."""


@SPLITS
def test_a_conversation(split: Split) -> None:
    pair = Pair(split)
    pair.open()
    for role in (Role.CLIENT, Role.BROKER):
        names = FROM[role]
        said = [one for one in MESSAGES if name_of(one) in names and name_of(one) not in BOTH.split()]
        pair.say(role, *said)
        assert pair.heard[OTHER[role]] == said
    pair.say(Role.CLIENT, Error(100, Scope.REQUEST, 1, "no"), Goodbye(0, "done"))
    assert pair.heard[Role.BROKER][-2:] == [Error(100, Scope.REQUEST, 1, "no"), Goodbye(0, "done")]
    assert pair.client.closed and pair.broker.closed
    assert pair.client.failure is pair.broker.failure is None
    assert pair.client.bytes_sent == pair.broker.bytes_received > 0
    assert pair.client.bytes_received == pair.broker.bytes_sent > 0


@SPLITS
@ROLES
@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_an_open_side_hears_what_the_table_says(role: Role, message: Message, split: Split) -> None:
    pair = pair_of(role, split)
    pair.open()
    session, name = pair.sessions[role], name_of(message)
    pair.put(role, framed(message))
    if name not in FROM[OTHER[role]]:
        assert wire_name(type(message)) in last_error(session).text
        assert pair.heard[role] == []
        return
    unheard = {"PONG"} if role is Role.CLIENT else {"PING", "PONG"}
    assert pair.heard[role] == ([] if name in unheard else [message])
    assert session.closed == (name == "GOODBYE")
    assert session.take() == ([framed(Pong(5))] if name == "PING" else [])


@ROLES
@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_an_opening_side_hears_what_the_table_says(role: Role, message: Message) -> None:
    session = Session(role, 0.0) if role is Role.BROKER else greeting(role)
    heard = session.receive(framed(message), 0.0)
    if name_of(message) in FIRST[OTHER[role]]:
        assert heard == [message]
        assert session.state is ENDS.get(name_of(message), State.OPENING)
    else:
        assert heard == []
        assert wire_name(type(message)) in last_error(session).text


@ROLES
@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_a_side_says_what_the_table_says(role: Role, message: Message) -> None:
    for session, allowed in ((opened(role), FROM[role]), (Session(role, 0.0), FIRST[role] - {"WELCOME"})):
        if name_of(message) in allowed:
            session.send(message)
            assert b"".join(session.take()) == framed(message)
        else:
            with pytest.raises(LocalError):
                session.send(message)
            assert session.take() == []


@ROLES
@pytest.mark.parametrize("message", MESSAGES, ids=name_of)
def test_a_closed_side_hears_nothing(role: Role, message: Message) -> None:
    session = opened(role)
    session.send(Goodbye(0, ""))
    session.take()
    assert session.receive(framed(message), 1.0) == []
    assert session.take() == []
    assert session.failure is None


@ROLES
def test_what_follows_a_goodbye_or_a_violation_is_not_read(role: Role) -> None:
    session = opened(role)
    assert session.receive(framed(Goodbye(0, ""), Error(1, 0, 0, "late")) + b"\xff" * 9, 1.0) == [Goodbye(0, "")]
    assert session.failure is None
    session = opened(role)
    fine = Error(100, Scope.REQUEST, 1, "fine")
    assert session.receive(framed(fine) + bytes(4) + framed(fine), 1.0) == [fine]
    assert last_error(session).code == ErrorCode.PROTOCOL


def test_hello_is_said_once() -> None:
    for second in (0.0, 1.0):
        session = Session(Role.BROKER, 0.0)
        if second:
            assert session.receive(framed(Hello()), 0.0) == [Hello()]
            assert session.receive(framed(Hello()), second) == []
        else:
            assert session.receive(framed(Hello(), Hello()), 0.0) == [Hello()]
        assert last_error(session).text == "HELLO is said once"
    session = opened(Role.BROKER)
    session.receive(framed(Hello()), 0.0)
    assert "HELLO may not come" in last_error(session).text
    client = greeting(Role.CLIENT)
    with pytest.raises(LocalError, match="once"):
        client.send(Hello())


def test_welcome_answers_a_hello() -> None:
    welcome = Welcome(VERSION, "ann", b"", False, 0, 1, 15.0)
    client = Session(Role.CLIENT, 0.0)
    assert client.receive(framed(welcome), 0.0) == []
    assert "WELCOME answers a HELLO" in last_error(client).text
    with pytest.raises(LocalError, match="answers it"):
        Session(Role.BROKER, 0.0).send(welcome)
    client = greeting(Role.CLIENT)
    assert client.receive(framed(welcome, welcome), 0.0) == [welcome]
    assert "WELCOME may not come" in last_error(client).text


def test_nothing_is_said_between_hello_and_welcome() -> None:
    session = Session(Role.BROKER, 0.0)
    assert session.receive(framed(Hello(), Subscribe(1, 1, "a")), 0.0) == [Hello()]
    assert "the first message is HELLO, not SUBSCRIBE" in last_error(session).text


@pytest.mark.parametrize("version", [0, 1, 2**53])
def test_another_version_is_refused_by_both(version: int) -> None:
    broker = Session(Role.BROKER, 0.0)
    assert broker.receive(framed(Hello(version=version)), 0.0) == []
    assert last_error(broker).code == ErrorCode.VERSION
    client = greeting(Role.CLIENT)
    assert client.receive(framed(Welcome(version, "ann", b"", False, 0, 1, 15.0)), 0.0) == []
    assert last_error(client).code == ErrorCode.VERSION


@pytest.mark.parametrize("seconds", [0, 0.049, 300.1])
def test_a_heartbeat_has_bounds_on_both_sides(seconds: float) -> None:
    broker = Session(Role.BROKER, 0.0)
    assert broker.receive(framed(Hello(heartbeat_seconds=seconds)), 0.0) == []
    assert "heartbeat" in last_error(broker).text
    client = greeting(Role.CLIENT)
    assert client.receive(framed(Welcome(VERSION, "ann", b"", False, 0, 1, seconds)), 0.0) == []
    assert "heartbeat" in last_error(client).text


@ROLES
def test_the_frame_limit_before_and_after_the_handshake(role: Role) -> None:
    for session, limit in ((greeting(role), HANDSHAKE_FRAME_LENGTH_MAX), (opened(role), FRAME_LENGTH_MAX)):
        assert session.receive(limit.to_bytes(4, "big"), 0.0) == []
        assert session.state is not State.CLOSED
    for session, limit in ((greeting(role), HANDSHAKE_FRAME_LENGTH_MAX), (opened(role), FRAME_LENGTH_MAX)):
        session.receive((limit + 1).to_bytes(4, "big"), 0.0)
        assert last_error(session).code == ErrorCode.TOO_LARGE
        assert "over the limit" in str(session.failure)


def test_a_large_frame_may_follow_welcome_in_one_segment() -> None:
    client = greeting(Role.CLIENT)
    answer = Answer(1, "x" * 100_000)
    welcome = Welcome(VERSION, "ann", b"", False, 0, 1, 15.0)
    assert client.receive(framed(welcome, answer), 0.0) == [welcome, answer]


def test_our_own_frames_keep_the_limits() -> None:
    client = Session(Role.CLIENT, 0.0)
    with pytest.raises(LocalError, match="at most 4096"):
        client.send(Hello(credentials="x" * HANDSHAKE_FRAME_LENGTH_MAX))
    client.send(Hello())
    client = opened(Role.CLIENT)
    for message in (Publish(1, 1, batch()), Ask(1, "x", {"a": "b" * FRAME_LENGTH_MAX})):
        if isinstance(message, Publish):
            message.batch.records = bytes(FRAME_LENGTH_MAX)
        with pytest.raises(LocalError, match="at most"):
            client.send(message)
    assert client.take() == []
    assert client.state is State.OPEN


@ROLES
@pytest.mark.parametrize(
    "data", [bytes(4), b"\xff" * 4, b"\x00\x00\x00\x01\xc1", b"\x00\x00\x00\x02\x92\x63", b"GET / HTTP/1.1\r\n"]
)
@SPLITS
def test_a_violation_gets_one_error_and_silence(role: Role, data: bytes, split: Split) -> None:
    for session in (greeting(role), opened(role)):
        for piece in split(data + data):
            assert session.receive(piece, 0.0) == []
        last_error(session)


def test_http_and_tls_are_told_where_they_are() -> None:
    for data, text in ((b"GET / HTTP/1.1\r\n", "HTTP"), (b"\x16\x03\x01\x02\x00\x01", "TLS"), (b"CONNECT {}", "NATS")):
        session = Session(Role.BROKER, 0.0)
        session.receive(data, 0.0)
        assert text in last_error(session).text


def test_what_may_not_come_is_refused_unopened() -> None:
    session = opened(Role.BROKER)
    hostile = b"\x93\x12\x01" + b"\xdc\x20\x00" * 1000
    session.receive(len(hostile).to_bytes(4, "big") + hostile, 0.0)
    assert last_error(session).text == "ANSWER may not come to a broker that is open"


def test_a_control_frame_has_its_own_limit() -> None:
    session = opened(Role.BROKER)
    body = b"\x9b\x14" + bytes(CONTROL_LENGTH_MAX)
    session.receive(len(body).to_bytes(4, "big") + body, 0.0)
    assert last_error(session).code == ErrorCode.TOO_LARGE


@ROLES
def test_the_handshake_has_a_deadline_that_bytes_do_not_move(role: Role) -> None:
    session = Session(role, 100.0)
    for step in range(int(HANDSHAKE_SECONDS_MAX)):
        session.receive(b"\x00", 100.0 + step) if step < 3 else None
        assert session.next_deadline() == 100.0 + HANDSHAKE_SECONDS_MAX
        session.wake(100.0 + step)
        assert not session.closed
    session.wake(session.next_deadline())
    assert last_error(session).code == ErrorCode.TIMEOUT


@ROLES
def test_a_length_and_then_silence_or_one_byte_a_second(role: Role) -> None:
    for trickle in (b"", b"x"):
        session = opened(role, heartbeat_seconds=300.0)
        session.receive(framed(Pong(1)) + b"\x00\x00\x10\x00", 10.0)
        for second in range(11, 10 + int(FRAME_SECONDS_MAX)):
            session.receive(trickle, float(second))
            session.wake(float(second))
            assert not session.closed
        assert session.next_deadline() == 10.0 + FRAME_SECONDS_MAX
        session.wake(10.0 + FRAME_SECONDS_MAX)
        assert "not complete" in last_error(session).text


def test_each_frame_has_its_own_deadline() -> None:
    session = opened(Role.BROKER, heartbeat_seconds=300.0)
    stream = framed(Pong(1)) * 40
    for second, byte in enumerate(stream[2:-3]):
        session.receive(stream[:2] if not second else b"", float(second))
        session.receive(bytes([byte]), float(second))
        session.wake(float(second))
    assert not session.closed


def test_silence_gets_a_ping_and_then_the_end() -> None:
    session = opened(Role.BROKER, heartbeat_seconds=10.0)
    session.wake(9.9)
    assert session.take() == []
    session.wake(10.0)
    assert session.take() == [framed(Ping(10))]
    assert session.next_deadline() == 20.0
    session.wake(19.9)
    assert session.take() == [] and not session.closed
    session.wake(20.0)
    assert last_error(session).code == ErrorCode.TIMEOUT


def test_two_idle_sides_keep_each_other_alive() -> None:
    pair = Pair(heartbeat_seconds=10.0)
    pair.open()
    for _ in range(100):
        pair.wake(5.0)
        pair.carry()
    assert pair.client.state is pair.broker.state is State.OPEN
    assert {type(one) for one in pair.heard[Role.CLIENT]} == {Ping} and pair.heard[Role.BROKER] == []


def test_a_host_that_slept_hears_the_answer_to_its_ping() -> None:
    session = opened(Role.BROKER, heartbeat_seconds=10.0)
    session.wake(500.0)
    session.wake(500.0)
    assert session.take() == [framed(Ping(500))]
    session.receive(framed(Pong(500)), 501.0)
    session.wake(510.0)
    assert not session.closed
    assert session.next_deadline() == 511.0


@ROLES
def test_an_error_about_the_connection_ends_it(role: Role) -> None:
    for code, kept in ((ErrorCode.SHUTTING_DOWN, ErrorCode.SHUTTING_DOWN), (77, ErrorCode.PROTOCOL)):
        session = opened(role)
        error = Error(code, Scope.CONNECTION, 0, "because")
        assert session.receive(framed(error, Ping(1)), 0.0) == [error]
        assert session.closed and session.take() == []
        assert isinstance(session.failure, ProtocolViolation)
        assert (session.failure.code, session.failure.text) == (kept, "because")
        session = opened(role)
        session.send(error)
        assert session.closed and session.failure is None


@ROLES
def test_a_lost_stream_closes_and_says_nothing(role: Role) -> None:
    session = opened(role)
    session.receive(b"\x00\x00", 0.0)
    session.lost("connection reset")
    assert session.closed and session.take() == []
    assert str(session.failure) == "connection reset"
    first: Any = session.failure
    session.lost("again")
    assert session.failure is first


@ROLES
def test_a_message_that_cannot_be_written_changes_nothing(role: Role) -> None:
    session = opened(role)
    with pytest.raises(LocalError):
        session.send(Goodbye(0, "\ud800"))
    assert session.state is State.OPEN and session.take() == []
    session.send(Ping(1))
    assert b"".join(session.take()) == framed(Ping(1)) == b"\x00\x00\x00\x03" + encode(Ping(1))
