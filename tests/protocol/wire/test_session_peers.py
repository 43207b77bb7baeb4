"""The session on a link between brokers: both sides greet, once, and then say the same things."""

from __future__ import annotations

import dataclasses

import pytest

from headgate.protocol.errors import ErrorCode, LocalError
from headgate.protocol.limits import HEARTBEAT_SECONDS_DEFAULT, PEER_HEARTBEAT_SECONDS
from headgate.protocol.messages import (
    PEER_VERSION,
    Control,
    Copy,
    Credit,
    Deliver,
    Fetched,
    Forward,
    Gap,
    Hello,
    Letter,
)
from headgate.protocol.wire import Role, Session
from tests.support.pair import PEER, PeerPair, byte_by_byte, opened, whole
from tests.support.samples import MESSAGES
from tests.support.session_ends import framed, greeting, last_error

KINDS = (Credit, Letter, Control, Forward, Deliver, Gap, Copy, Fetched)
"""What brokers say to each other beside what everybody says."""


def test_brokers_talk() -> None:
    for split in (whole, byte_by_byte):
        pair = PeerPair(split)
        pair.open()
        acceptor = pair.sessions[Role.PEER]
        said = [one for one in MESSAGES if isinstance(one, KINDS)]
        assert len(said) == 8
        for message in said:
            pair.dialler.send(message)
            acceptor.send(message)
        pair.put(Role.PEER, b"".join(pair.dialler.take()))
        assert pair.heard[Role.PEER] == said
        assert pair.dialler.receive(b"".join(acceptor.take()), 0.0) == said


def test_peer_is_said_once_by_each_side() -> None:
    acceptor = Session(Role.PEER, 0.0)
    assert acceptor.receive(framed(PEER, PEER), 0.0) == [PEER]
    assert last_error(acceptor).text == "PEER is said once"
    caller = greeting(Role.PEER)
    with pytest.raises(LocalError, match="PEER once"):
        caller.send(PEER)
    assert caller.receive(framed(PEER, PEER), 0.0) == [PEER]
    assert "PEER may not come to a peer that is open" in last_error(caller).text


def test_brokers_that_speak_different_versions_part() -> None:
    for session in (Session(Role.PEER, 0.0), greeting(Role.PEER)):
        assert session.receive(framed(dataclasses.replace(PEER, version=1)), 0.0) == []
        error = last_error(session)
        assert error.code == ErrorCode.VERSION
        assert f"this one speaks version {PEER_VERSION}, and bob at bob:7401 speaks version 1: " in error.text


def test_who_comes_to_the_wrong_port_is_told_the_other_one() -> None:
    for session in (Session(Role.PEER, 0.0), opened(Role.PEER)):
        session.receive(framed(Hello()), 0.0)
        assert "for brokers, clients connect to --listen (7400 unless set)" in last_error(session).text
    for session in (Session(Role.BROKER, 0.0), opened(Role.BROKER)):
        session.receive(framed(PEER), 0.0)
        assert "for clients, brokers connect to --peer-listen (7401 unless set)" in last_error(session).text


def test_brokers_look_after_each_other_more_often_than_after_clients() -> None:
    assert Session(Role.PEER, 0.0).heartbeat_seconds == PEER_HEARTBEAT_SECONDS
    assert Session(Role.BROKER, 0.0).heartbeat_seconds == HEARTBEAT_SECONDS_DEFAULT
