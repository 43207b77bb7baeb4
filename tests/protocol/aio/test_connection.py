"""Connection over real sockets and over a transport that is made up."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from headgate.protocol.aio import WRITE_BUFFER_HIGH, Connection
from headgate.protocol.aio.limits import JOIN_BYTES_MAX, WRITE_BUFFER_LOW
from headgate.protocol.data import make_batch
from headgate.protocol.errors import ConnectionLost, ErrorCode, HeadgateError, LocalError, ProtocolViolation
from headgate.protocol.limits import HANDSHAKE_SECONDS_MAX
from headgate.protocol.messages import VERSION, Ask, Goodbye, Hello, Message, Publish, Welcome
from headgate.protocol.wire import Role, Session
from tests.support.waiting import wait_until


class Recorder:
    """A handler that writes down what it is told, and answers HELLO."""

    def __init__(self, heartbeat_seconds: float = 15.0) -> None:
        self.told: list[Any] = []
        self.failure: HeadgateError | None = None
        self.heartbeat_seconds = heartbeat_seconds
        self.changed = asyncio.Event()

    def on_opened(self, connection: Connection) -> None:
        self._tell("opened")
        if connection.session.role is Role.CLIENT:
            connection.send(Hello(heartbeat_seconds=self.heartbeat_seconds))

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, Hello):
                connection.send(Welcome(VERSION, "b", b"k", False, 0, 10, message.heartbeat_seconds))
            self._tell(message)

    def on_paused(self, connection: Connection) -> None:
        self._tell("paused")

    def on_resumed(self, connection: Connection) -> None:
        self._tell("resumed")

    def on_closed(self, connection: Connection, failure: HeadgateError | None) -> None:
        self.failure = failure
        self._tell("closed")

    def _tell(self, what: Any) -> None:
        self.told.append(what)
        self.changed.set()

    async def until(self, what: object) -> None:
        async with asyncio.timeout(10):
            while not any(what == one or (isinstance(what, type) and isinstance(one, what)) for one in self.told):
                self.changed.clear()
                await self.changed.wait()


class Pipe:
    """Both ends of one real connection."""

    def __init__(self, heartbeat_seconds: float = 15.0) -> None:
        self.heard_by_broker = Recorder()
        self.heard_by_client = Recorder(heartbeat_seconds)
        self.broker: Connection
        self.client: Connection

    async def __aenter__(self) -> Pipe:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.client = Connection(Session(Role.CLIENT, time.monotonic()), self.heard_by_client, time.monotonic)
        await loop.create_connection(lambda: self.client, "127.0.0.1", port)
        await self.heard_by_client.until(Welcome)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in (self.client, self.broker):
            connection.abort()
        await self.heard_by_client.until("closed")
        await self.heard_by_broker.until("closed")

    def _accept(self) -> Connection:
        self.broker = Connection(Session(Role.BROKER, time.monotonic()), self.heard_by_broker, time.monotonic)
        return self.broker


def read(connection: Connection, data: bytes) -> None:
    """Bytes come, as a loop brings them."""
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


class FakeTransport(asyncio.Transport):
    """Keeps what was written, and may be unable to half-close."""

    def __init__(self, half_closes: bool = True) -> None:
        super().__init__({"peername": ("::1", 7, 0, 0)})
        self.calls: list[tuple[str, int]] = []
        self.written = b""
        self.limits: tuple[int | None, int | None] = (None, None)
        self._half_closes = half_closes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limits = (high, low)

    def write(self, data: Any) -> None:
        self.calls.append(("write", len(data)))
        self.written += data

    def writelines(self, list_of_data: Any) -> None:
        self.calls.append(("writelines", len(list_of_data)))
        self.written += b"".join(list_of_data)

    def can_write_eof(self) -> bool:
        return self._half_closes

    def write_eof(self) -> None:
        self.calls.append(("write_eof", 0))

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.calls.append(("close", 0))

    def abort(self) -> None:
        self.calls.append(("abort", 0))


def made_up(clock: float = 0.0, half_closes: bool = True) -> tuple[Connection, FakeTransport, Recorder, list[float]]:
    now = [clock]
    recorder = Recorder()
    connection = Connection(Session(Role.CLIENT, clock), recorder, lambda: now[0])
    transport = FakeTransport(half_closes)
    connection.connection_made(transport)
    return connection, transport, recorder, now


async def test_the_handshake_and_a_message_arrive() -> None:
    async with Pipe() as pipe:
        pipe.client.send(Ask(1, "status", {}))
        await pipe.heard_by_broker.until(Ask)
        assert pipe.client.peer.startswith("127.0.0.1:")
        assert pipe.client.bytes_out == pipe.broker.bytes_in > 0


async def test_messages_of_one_turn_are_one_write() -> None:
    connection, transport, _, _ = made_up()
    connection.flush()
    transport.calls.clear()
    welcome = Session(Role.BROKER, 0.0)
    welcome.receive(transport.written, 0.0)
    welcome.send(Welcome(VERSION, "b", b"k", False, 0, 10, 15.0))
    read(connection, b"".join(welcome.take()))
    for number in range(1, 4):
        connection.send(Ask(number, "status", {}))
    assert transport.calls == []
    await asyncio.sleep(0)
    assert [name for name, _ in transport.calls] == ["write"]
    batch = make_batch(["a"], {}, [b"x" * JOIN_BYTES_MAX])
    connection.send(Publish(1, 1, batch))
    connection.flush()
    assert [name for name, _ in transport.calls[1:]] == ["writelines", "write"]
    assert len(welcome.receive(transport.written[welcome.bytes_received :], 0.0)) == 4
    connection.connection_lost(None)


async def test_what_is_said_in_the_middle_of_a_write_goes_behind_it() -> None:
    connection, transport, recorder, _ = made_up()
    connection.flush()
    broker = Session(Role.BROKER, 0.0)
    broker.receive(transport.written, 0.0)
    broker.send(Welcome(VERSION, "b", b"k", False, 0, 10, 15.0))
    read(connection, b"".join(broker.take()))
    written_lines = transport.writelines

    def fills_up(lines: Any) -> None:
        written_lines(lines)
        connection.pause_writing()

    def answer(paused: Connection) -> None:
        paused.send(Ask(1, "status", {}))
        paused.flush()

    transport.writelines = fills_up  # type: ignore[method-assign]
    recorder.on_paused = answer  # type: ignore[method-assign]
    connection.send(Publish(1, 1, make_batch(["a"], {}, [b"x" * JOIN_BYTES_MAX])))
    connection.flush()
    heard = broker.receive(transport.written[broker.bytes_received :], 0.0)
    assert [type(message) for message in heard] == [Publish, Ask]
    await asyncio.sleep(0)
    connection.connection_lost(None)


async def test_limits_and_address_are_set() -> None:
    connection, transport, _, _ = made_up()
    assert transport.limits == (WRITE_BUFFER_HIGH, WRITE_BUFFER_LOW)
    assert connection.peer == "[::1]:7"
    connection.connection_lost(None)


async def test_a_slow_reader_pauses_its_writer_and_resumes_it() -> None:
    async with Pipe() as pipe:
        pipe.broker.pause_reading()
        batch = make_batch(["a"], {}, [b"x" * 1_000_000])
        sent = 0
        while not pipe.client.write_paused:
            sent += 1
            pipe.client.send(Publish(sent, 1, batch))
            pipe.client.flush()
            assert sent < 100
        pipe.broker.resume_reading()
        await pipe.heard_by_client.until("resumed")
        assert not pipe.client.write_paused


async def test_who_is_muted_hears_that_we_live_and_is_read_when_that_is_over() -> None:
    async with Pipe(heartbeat_seconds=0.05) as pipe:
        pipe.broker.mute(True)
        pipe.broker.resume_reading()  # what else may have stopped is no reason to read
        pipe.client.send(Ask(1, "status", {}))
        pipe.client.flush()
        before, ping = pipe.client.bytes_in, 11
        await wait_until(lambda: pipe.client.closed or pipe.client.bytes_in >= before + 4 * ping)
        assert not pipe.client.closed and not pipe.broker.closed, "four heartbeats, of which two would be silence"
        assert not [one for one in pipe.heard_by_broker.told if isinstance(one, Ask)]
        pipe.broker.mute(False)
        await pipe.heard_by_broker.until(Ask)
        pipe.broker.mute(True)
        pipe.broker.close()
        await pipe.heard_by_client.until("closed")
        await pipe.heard_by_broker.until("closed")


async def test_goodbye_arrives_after_everything_and_both_ends_close() -> None:
    async with Pipe() as pipe:
        pipe.client.send(Ask(1, "status", {}))
        pipe.client.close()
        pipe.client.close()
        await pipe.heard_by_broker.until("closed")
        await pipe.heard_by_client.until("closed")
        assert [type(one) for one in pipe.heard_by_broker.told[-3:-1]] == [Ask, Goodbye]
        assert pipe.heard_by_broker.failure is None
        assert pipe.heard_by_client.failure is None
        with pytest.raises(LocalError):
            pipe.client.send(Ask(2, "status", {}))


async def test_last_words_arrive_although_the_peer_goes_on_talking() -> None:
    async with Pipe() as pipe:
        # Unread bytes in the closing socket would reset the connection and destroy the goodbye.
        pipe.client.send(Publish(1, 1, make_batch(["a"], {}, [b"x" * 1_000_000])))
        pipe.broker.close(ErrorCode.SHUTTING_DOWN, "bye")
        pipe.client.flush()
        await pipe.heard_by_client.until("closed")
        assert [one.text for one in pipe.heard_by_client.told if isinstance(one, Goodbye)] == ["bye"]
        assert pipe.heard_by_client.failure is None


async def test_rubbish_is_answered_with_an_error_and_the_end() -> None:
    async with Pipe() as pipe:
        assert pipe.client._transport is not None
        pipe.client._transport.write(b"\x00\x00\x00\x01\xc1")
        await pipe.heard_by_client.until("closed")
        for heard in (pipe.heard_by_client, pipe.heard_by_broker):
            assert isinstance(heard.failure, ProtocolViolation)


async def test_an_abort_is_a_loss_for_the_other_side() -> None:
    async with Pipe() as pipe:
        pipe.broker.abort("enough")
        await pipe.heard_by_client.until("closed")
        assert isinstance(pipe.heard_by_client.failure, ProtocolViolation | ConnectionLost)
        assert pipe.heard_by_broker.failure is not None
        assert pipe.client.closed


async def test_silence_is_broken_by_a_ping_and_two_heartbeats_of_it_are_the_end() -> None:
    connection, transport, recorder, now = made_up()
    connection.flush()
    broker = Session(Role.BROKER, 0.0)
    broker.receive(transport.written, 0.0)
    broker.send(Welcome(VERSION, "b", b"k", False, 0, 10, 1.0))
    read(connection, b"".join(broker.take()))
    for beat in (1.0, 2.0):
        now[0] = beat
        connection._wake()
        broker.receive(transport.written[broker.bytes_received :], now[0])
        pong = b"".join(broker.take())
        assert pong, "a PING was answered"
        read(connection, pong)
    now[0] = 3.0
    connection._wake()
    assert not connection.closed
    now[0] = 4.0
    connection._wake()
    assert connection.closed
    connection.connection_lost(None)
    assert isinstance(recorder.failure, ProtocolViolation)
    assert recorder.failure.code == ErrorCode.TIMEOUT


async def test_the_deadline_of_the_handshake_gives_way_to_the_heartbeat() -> None:
    connection, transport, _, _ = made_up()
    connection.flush()
    first = connection._timer
    broker = Session(Role.BROKER, 0.0)
    broker.receive(transport.written, 0.0)
    broker.send(Welcome(VERSION, "b", b"k", False, 0, 10, 0.1))
    read(connection, b"".join(broker.take()))
    await asyncio.sleep(0)
    assert first is not None and first.cancelled()
    assert connection._timer is not None and connection._timer.when() < first.when()
    connection.connection_lost(None)


async def test_the_timer_fires_for_the_handshake_and_says_why() -> None:
    connection, transport, recorder, now = made_up()
    connection.flush()
    now[0] = HANDSHAKE_SECONDS_MAX
    connection._wake()
    assert ("write_eof", 0) in transport.calls
    connection.connection_lost(None)
    assert isinstance(recorder.failure, ProtocolViolation)
    assert recorder.failure.code == ErrorCode.TIMEOUT


async def test_a_timer_that_is_early_is_armed_again() -> None:
    connection, transport, _, now = made_up()
    connection.flush()
    now[0] = HANDSHAKE_SECONDS_MAX / 2
    connection._wake()
    assert connection._timer is not None
    assert not connection.closed
    assert ("write_eof", 0) not in transport.calls
    connection.connection_lost(None)
    assert connection._timer.cancelled()


async def test_silence_is_ours_while_we_do_not_read() -> None:
    async with Pipe() as pipe:
        pipe.client.pause_reading()
        pipe.client._clock = lambda: time.monotonic() + 100
        pipe.client._wake()
        pipe.client._wake()
        assert not pipe.client.closed
        pipe.client._clock = time.monotonic


async def test_a_transport_that_cannot_half_close_is_closed() -> None:
    connection, transport, recorder, _ = made_up(half_closes=False)
    connection.close()
    assert transport.calls[-1] == ("close", 0)
    connection.connection_lost(OSError("reset"))
    assert recorder.told[-1] == "closed"
    connection.flush()
    connection.abort()


async def test_a_close_after_the_other_side_has_reset_is_just_the_end() -> None:
    connection, transport, _, _ = made_up()

    def reset() -> None:
        raise OSError(107, "Transport endpoint is not connected")

    transport.write_eof = reset  # type: ignore[method-assign]  # as a socket does before the loop hears of it
    connection.close()
    assert connection.closed and ("abort", 0) in transport.calls
    connection.connection_lost(None)


async def test_connections_may_share_the_buffer_that_they_read_into() -> None:
    """Each keeps the part of a frame that it has, whatever another one reads meanwhile."""
    buffer = memoryview(bytearray(4096))
    recorders = [Recorder(), Recorder()]
    connections = [Connection(Session(Role.BROKER, 0.0), one, lambda: 0.0, buffer) for one in recorders]
    streams = []
    for name, connection in zip(("ann", "bob"), connections, strict=True):
        connection.connection_made(FakeTransport())
        client = Session(Role.CLIENT, 0.0)
        client.send(Hello(name=name))
        streams.append(b"".join(client.take()))
    for place in range(max(map(len, streams))):
        for connection, stream in zip(connections, streams, strict=True):
            read(connection, stream[place : place + 1]) if place < len(stream) else None
    names = [[message.name for message in one.told if isinstance(message, Hello)] for one in recorders]
    assert names == [["ann"], ["bob"]]
    for connection in connections:
        connection.connection_lost(None)
