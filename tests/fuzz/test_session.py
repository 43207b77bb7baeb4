"""Arbitrary and damaged bytes into a session of either role, before and after its handshake.

`receive` never raises; a session that fails says one ERROR and nothing after it; how the bytes were cut changes
nothing; memory follows the bytes that came.
"""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Error, Goodbye, Hello, Message, Scope, Welcome
from headgate.protocol.wire import Role, Session, State, decode, encode_chunks, frame
from tests.support.pair import PEER, Split, byte_by_byte, opened, random_chunks, whole
from tests.support.samples import MESSAGES

ROLES = pytest.mark.parametrize("role", Role, ids=lambda role: role.value)
OPEN = pytest.mark.parametrize("is_open", [False, True], ids=["opening", "open"])

FRAMED = [b"".join(frame(encode_chunks(message))) for message in MESSAGES]
FROM_CLIENT = b"".join(FRAMED[number - 1] for number in (5, 7, 8, 12, 17, 10, 19, 6, 20, 24, 3, 12))
FROM_BROKER = b"".join(FRAMED[number - 1] for number in (5, 9, 16, 14, 13, 15, 23, 18, 25, 11, 6, 21, 27, 26, 3, 14))
WELCOME = b"".join(frame(encode_chunks(Welcome(2, "ann", b"key", False, 0, 256, 15.0))))
AMONG_PEERS = b"".join(FRAMED[place] for place in (4, 6, 28, 29, 30, 13, 14, 28, 5, 31, 32, 2, 30))
VALID = {Role.BROKER: FROM_CLIENT, Role.CLIENT: FROM_BROKER, Role.PEER: AMONG_PEERS}
GREETING = {Role.BROKER: FRAMED[0], Role.CLIENT: WELCOME, Role.PEER: FRAMED[27]}


def begun(role: Role, is_open: bool) -> Session:
    """A session that waits for the other side's word."""
    if is_open:
        return opened(role)
    session = Session(role, 0.0)
    if role is Role.CLIENT:
        session.send(Hello())
        session.take()
    elif role is Role.PEER:
        session.send(PEER)
        session.take()
    return session


def converse(session: Session, data: bytes, split: Split = whole) -> tuple[list[Message], bytes, str]:
    """(messages heard, bytes said, why it ended) after all of `data` came in."""
    heard: list[Message] = []
    for piece in split(data):
        heard += session.receive(piece, 1.0)
    said = b"".join(session.take())
    check_the_end(session, heard, said)
    return heard, said, str(session.failure)


def check_the_end(session: Session, heard: list[Message], said: bytes) -> None:
    """Either it goes on, or somebody said goodbye, or there is a failure; ours was told in one last ERROR."""
    replies = list(messages_in(said))
    errors = [reply for reply in replies if isinstance(reply, Error)]
    if session.state is not State.CLOSED:
        assert session.failure is None and not errors
        return
    told = [one for one in heard if isinstance(one, Error) and one.scope == Scope.CONNECTION]
    if session.failure is None:
        assert isinstance(heard[-1], Goodbye) and not errors
    elif told:
        assert heard[-1] is told[0] and not errors
    else:
        assert isinstance(session.failure, ProtocolViolation)
        assert errors == [replies[-1]] and errors[0].scope == Scope.CONNECTION
    assert session.receive(FROM_CLIENT + FROM_BROKER, 2.0) == []
    session.wake(1e9)
    assert session.take() == []


def messages_in(stream: bytes) -> list[Message]:
    """What a side said, read back; it must always be valid."""
    messages, start = [], 0
    while start < len(stream):
        end = start + 4 + int.from_bytes(stream[start : start + 4], "big")
        messages.append(decode(stream[start + 4 : end]))
        start = end
    return messages


def damaged(data: bytes, draw: Random) -> bytes:
    """The same bytes after one to three flips, insertions, removals or repetitions."""
    bad = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(bad))
        act = draw.randrange(4)
        if act == 0:
            bad[place] ^= 1 << draw.randrange(8)
        elif act == 1:
            bad[place:place] = draw.randbytes(draw.randint(1, 4))
        elif act == 2:
            del bad[place : place + draw.randint(1, 4)]
        else:
            bad[place:place] = bad[place : place + draw.randint(1, 30)]
    return bytes(bad)


@ROLES
@OPEN
@given(data=st.binary(max_size=80))
def test_any_bytes(role: Role, is_open: bool, data: bytes) -> None:
    results = [converse(begun(role, is_open), data, split) for split in (whole, byte_by_byte, random_chunks(7))]
    assert results[0] == results[1] == results[2]


@ROLES
@OPEN
@given(bodies=st.lists(st.binary(min_size=1, max_size=30), max_size=4))
def test_any_bodies_in_good_frames(role: Role, is_open: bool, bodies: list[bytes]) -> None:
    stream = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    assert converse(begun(role, is_open), stream) == converse(begun(role, is_open), stream, byte_by_byte)


@ROLES
@OPEN
@given(order=st.lists(st.integers(0, len(MESSAGES) - 1), max_size=8))
def test_any_messages_in_any_order(role: Role, is_open: bool, order: list[int]) -> None:
    stream = b"".join(FRAMED[place] for place in order)
    assert converse(begun(role, is_open), stream) == converse(begun(role, is_open), stream, random_chunks(3))


@ROLES
def test_the_streams_that_are_damaged_below_are_valid(role: Role) -> None:
    for session, stream in ((opened(role), VALID[role]), (begun(role, False), GREETING[role])):
        heard, _, failure = converse(session, stream)
        assert heard and failure == "None"


@ROLES
@pytest.mark.parametrize("seed", range(8))
def test_damaged_streams(role: Role, seed: int) -> None:
    draw = Random(seed)
    failures = 0
    for turn in range(60):
        for is_open, valid in ((True, VALID[role]), (False, GREETING[role])):
            stream = damaged(valid, draw)
            whole_result = converse(begun(role, is_open), stream)
            assert converse(begun(role, is_open), stream, random_chunks(turn)) == whole_result
            failures += whole_result[2] != "None"
    assert failures > 40, "the damage was too small to show anything"


@ROLES
@OPEN
@pytest.mark.parametrize("seed", range(3))
def test_hostile_bytes_take_bounded_memory(role: Role, is_open: bool, seed: int) -> None:
    draw = Random(seed)
    marks = b"\xdc\xdd\xde\xdf\xda\xdb\xc5\xc6\x9f\x8f\x90\x80\xff\x00\x20"
    numbers = (1, 2, 8, 12, 17, 19, 20, 21, 23, 24, 25, 26, 32, 33, 34, 35, 36, 37)
    tracemalloc.start()
    for _ in range(30):
        body = bytes([0x90 + draw.randint(1, 12), draw.choice(numbers)]) + bytes(draw.choices(marks, k=4000))
        converse(begun(role, is_open), len(body).to_bytes(4, "big") + body, whole)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20
