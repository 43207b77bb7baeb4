"""Wire: one socket and one session, moved on by turns."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from headgate.protocol.blocking.limits import UNSENT_BYTES_MAX
from headgate.protocol.blocking.wire import Wire
from headgate.protocol.data import make_batch
from headgate.protocol.errors import ConnectionLost
from headgate.protocol.messages import VERSION, Answer, Ask, Hello, Message, Publish, Welcome
from headgate.protocol.wire import Role, Session


class Peer:
    """The other end: a plain socket and a broker's session, in the same thread."""

    def __init__(self, wire: Wire, accepted: socket.socket) -> None:
        self.wire = wire
        self.socket = accepted
        self.session = Session(Role.BROKER, time.monotonic())

    def hear(self) -> list[Message]:
        """What one read brings."""
        return self.session.receive(self.socket.recv(1 << 20), time.monotonic())

    def say(self, *messages: Message) -> None:
        for message in messages:
            self.session.send(message)
        self.socket.sendall(b"".join(self.session.take()))


@pytest.fixture
def peer() -> Iterator[Peer]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        wire = Wire(host, port, 5.0, time.monotonic)
        accepted, _ = server.accept()
        made = Peer(wire, accepted)
        wire.send(Hello(heartbeat_seconds=0.05))
        assert wire.turn(0.0) == []
        made.hear()
        made.say(Welcome(VERSION, "b", b"k", False, 0, 10, 0.05))
        assert [type(one) for one in wire.turn(5.0)] == [Welcome]
        yield made
        wire.close()
        accepted.close()


def test_a_turn_writes_waits_and_reads(peer: Peer) -> None:
    peer.wire.send(Ask(1, "status", {}))
    assert peer.wire.turn(0.0) == []
    assert peer.hear() == [Ask(1, "status", {})]
    peer.say(Answer(1, 5), Answer(2, 6))
    assert peer.wire.turn(None) == [Answer(1, 5), Answer(2, 6)]


def test_waiting_without_end_still_keeps_the_heartbeat(peer: Peer) -> None:
    assert peer.wire.turn(None) == []
    assert peer.hear() == []
    assert peer.session.take(), "a PING came, and its PONG goes out"


def test_a_peer_that_does_not_read_pauses_us(peer: Peer) -> None:
    batch = make_batch(["a"], {}, [b"x" * 1_000_000])
    count = 0
    while not peer.wire.paused:
        count += 1
        peer.wire.send(Publish(count, 1, batch))
        peer.wire.turn(0.0)
        assert count < 100
    got: list[Message] = []
    while len(got) < count:
        got += peer.hear()
        peer.wire.turn(0.0)
    assert [one.sequence for one in got if isinstance(one, Publish)] == list(range(1, count + 1))
    assert not peer.wire.paused
    assert UNSENT_BYTES_MAX >= 1_000_000


def test_the_end_of_the_stream_is_a_loss(peer: Peer) -> None:
    peer.socket.close()
    with pytest.raises((ConnectionLost, OSError)):
        for _ in range(3):
            peer.wire.turn(1.0)
    assert peer.wire.session.closed


def test_nobody_there_is_an_error_of_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    with pytest.raises(OSError):
        Wire(host, port, 1.0, time.monotonic)


def test_what_was_read_counts_though_nothing_can_be_written_any_more(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(wire: Wire) -> None:
        if wire.session.bytes_received != before:
            raise BrokenPipeError

    before = peer.wire.session.bytes_received
    monkeypatch.setattr(Wire, "_write", broken)
    peer.say(Answer(1, 5))
    assert peer.wire.turn(5.0) == [Answer(1, 5)]
    with pytest.raises(BrokenPipeError):
        peer.wire.turn(5.0)
