"""Hostile bytes over real sockets (framing), each time beside a witness who must not notice.

The rest of that list: `test_hostile_requests.py` (well-formed frames that ask for what nobody should get) and
`test_hostile_resources.py` (crowds, floods and storms).
"""

from __future__ import annotations

import asyncio

import pytest
import structlog

from headgate.broker.daemon.limits import DaemonLimits
from headgate.protocol.data import make_batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import FRAME_LENGTH_MAX, HANDSHAKE_FRAME_LENGTH_MAX
from headgate.protocol.messages import (
    VERSION,
    Ask,
    Credit,
    Deliver,
    Error,
    Goodbye,
    Hello,
    Mode,
    Ping,
    Pong,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Welcome,
)
from headgate.protocol.wire import SessionLimits
from tests.support.http import get
from tests.support.raw_client import RawClient, framed
from tests.support.samples import MESSAGES
from tests.support.waiting import wait_until
from tests.support.witness import besieged

HELLO = framed(Hello())
TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(100)
FOREIGN = {
    "http": (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "the other side speaks HTTP"),
    "tls": (TLS_HELLO, "the other side speaks TLS"),
    "nats": (b'CONNECT {"verbose":false}\r\nPING\r\n', "the other side speaks the NATS protocol"),
    "mqtt": (bytes.fromhex("101000044d5154540402003c0004") + b"abcd", "over the limit"),
    "ssh": (b"SSH-2.0-OpenSSH_9.2\r\n", "over the limit"),
}


def length(number: int) -> bytes:
    return number.to_bytes(4, "big")


@pytest.mark.parametrize("greeted", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (length(0), ErrorCode.PROTOCOL),
        (length(0xFFFFFFFF), ErrorCode.TOO_LARGE),
        (length(FRAME_LENGTH_MAX + 1), ErrorCode.TOO_LARGE),
        (length(1) + b"\xc1", ErrorCode.PROTOCOL),
        (length(2) + b"\x91\x63", ErrorCode.PROTOCOL),
        (length(3) + b"\x92\x63\x01", ErrorCode.PROTOCOL),
        (length(6) + b"\xdd\xff\xff\xff\xff\x01", ErrorCode.PROTOCOL),
        (length(100) + b"\x91" * 100, ErrorCode.PROTOCOL),
    ],
    ids=["zero", "all ones", "over the limit", "no msgpack", "unknown type", "type 99", "huge array", "nested"],
)
async def test_a_frame_that_is_none(greeted: bool, data: bytes, code: ErrorCode) -> None:
    async with besieged() as broker:
        client = await (RawClient.greeted if greeted else RawClient.connect)(broker.address)
        await client.write(data)
        assert (await client.refusal()).code == code
        await client.close()
        await wait_until(lambda: broker.daemon.server.violations == 1)


async def test_a_stranger_may_send_a_page_and_no_more() -> None:
    async with besieged() as broker:
        stranger = await RawClient.connect(broker.address)
        await stranger.write(length(HANDSHAKE_FRAME_LENGTH_MAX + 1))
        refusal = await stranger.refusal()
        assert refusal.code == ErrorCode.TOO_LARGE and str(HANDSHAKE_FRAME_LENGTH_MAX) in refusal.text
        await stranger.close()
        stranger = await RawClient.connect(broker.address)
        await stranger.write(length(HANDSHAKE_FRAME_LENGTH_MAX) + b"\xc0" * HANDSHAKE_FRAME_LENGTH_MAX)
        assert (await stranger.refusal()).code == ErrorCode.PROTOCOL, "the page was read, and is no HELLO"
        await stranger.close()


@pytest.mark.parametrize("kind", FOREIGN)
async def test_another_protocol_is_told_where_it_is(kind: str) -> None:
    data, text = FOREIGN[kind]
    async with besieged() as broker:
        client = await RawClient.connect(broker.address)
        await client.write(data)
        refusal = await client.refusal()
        assert refusal.code == ErrorCode.TOO_LARGE and text in refusal.text
        await client.close()


@pytest.mark.parametrize("begun", [b"", length(4000)[:3], length(4000) + b"x"], ids=["nothing", "length", "a byte"])
async def test_who_does_not_finish_a_handshake_is_cut(begun: bytes) -> None:
    async with besieged(limits=DaemonLimits(session=SessionLimits(handshake_seconds=0.3))) as broker:
        client = await RawClient.connect(broker.address)
        await client.write(begun)
        refusal = await client.refusal()
        assert (refusal.code, refusal.text) == (ErrorCode.TIMEOUT, "no handshake within 0.3 seconds")
        await client.close()


async def test_a_frame_that_never_ends_is_cut_however_it_trickles() -> None:
    async with besieged(limits=DaemonLimits(session=SessionLimits(frame_seconds=0.2))) as broker:
        client = await RawClient.greeted(broker.address)
        await client.write(length(1_000_000))
        trickling = asyncio.get_running_loop().create_task(trickle(client))
        refusal = await client.refusal()
        assert (refusal.code, refusal.text) == (ErrorCode.TIMEOUT, "a frame was not complete within 0.2 seconds")
        trickling.cancel()
        await client.close()


async def trickle(client: RawClient) -> None:
    while True:
        await client.write(b"x")
        await asyncio.sleep(0.01)


def port_of(client: RawClient) -> int:
    return int(client.socket.getsockname()[1])


async def test_a_conversation_byte_by_byte_is_as_good_as_any() -> None:
    async with besieged() as broker:
        client = await RawClient.connect(broker.address)
        publish = Publish(1, Mode.ACCEPTED, make_batch(["a"], {}, [b"x"]))
        for byte in HELLO + framed(Subscribe(1, 1, "a"), publish, Ask(2, "status", {})):
            await client.write(bytes([byte]))
        assert isinstance(await client.hear_a(Welcome), Welcome)
        assert await client.hear_a(Suback) == Suback(1, 1)
        assert (await client.hear_a(Deliver)).routes == [1, 1]
        await client.close()


async def test_ten_thousand_frames_at_once_are_all_answered() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.write(b"".join(framed(Ping(number)) for number in range(10_000)))
        assert [await client.hear() for _ in range(10_000)] == [Pong(number) for number in range(10_000)]
        await client.close()


@pytest.mark.parametrize("number", range(len(MESSAGES)))
async def test_a_first_word_that_is_not_hello_is_the_last(number: int) -> None:
    message = MESSAGES[number]
    if isinstance(message, Hello | Error | Goodbye):
        return
    async with besieged() as broker:
        client = await RawClient.connect(broker.address)
        await client.say(message)
        refusal = await client.refusal()
        assert refusal.code in (ErrorCode.PROTOCOL, ErrorCode.TOO_LARGE)
        await client.close()
        assert broker.daemon.node.statistics(0).sessions <= 2, "a stranger has no session"


@pytest.mark.parametrize(
    "message",
    [
        Hello(),
        Welcome(VERSION, "not a broker", b"key", False, 0, 1, 1.0),
        Suback(1, 1),
        Puback(1),
    ],
    ids=lambda message: type(message).__name__,
)
async def test_what_a_guest_may_not_say(message: Hello | Welcome | Suback | Puback) -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(message)
        assert (await client.refusal()).code == ErrorCode.PROTOCOL
        await client.close()


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        (Hello(version=0), ErrorCode.VERSION),
        (Hello(version=2**31), ErrorCode.VERSION),
        (Hello(heartbeat_seconds=0.0), ErrorCode.PROTOCOL),
        (Hello(heartbeat_seconds=1e9), ErrorCode.PROTOCOL),
        (Hello(heartbeat_seconds=float("nan")), ErrorCode.PROTOCOL),
    ],
    ids=["version 0", "version 2^31", "no heartbeat", "a heartbeat of years", "nan"],
)
async def test_a_hello_that_cannot_be(hello: Hello, code: ErrorCode) -> None:
    async with besieged() as broker:
        client = await RawClient.connect(broker.address)
        await client.say(hello)
        assert (await client.refusal()).code == code
        await client.close()


async def test_a_session_key_that_nobody_has_gives_a_new_session() -> None:
    async with besieged() as broker:
        for key in (b"\x00", b"k" * 256):
            client = await RawClient.connect(broker.address)
            await client.say(Hello(session=key, received=10))
            welcome = await client.hear()
            assert isinstance(welcome, Welcome) and not welcome.resumed and welcome.session != key
            await client.close()


async def test_half_a_close_is_a_close() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(Ping(1))
        assert await client.hear() == Pong(1)
        client.writer.write_eof()
        assert await client.hear_the_end() == []
        await client.close()
        await wait_until(lambda: len(broker.daemon.driver.links) == 2)


@pytest.mark.parametrize("greeted", [False, True], ids=["before", "after"])
async def test_a_reset_in_the_middle_of_a_frame(greeted: bool) -> None:
    async with besieged() as broker:
        for _ in range(20):
            client = await (RawClient.greeted if greeted else RawClient.connect)(broker.address)
            await client.write(length(4000) + b"x" * 100)
            client.reset()
            await client.close()
        await wait_until(lambda: len(broker.daemon.driver.links) == 2)
        assert broker.daemon.server.violations == 0, "a lost connection is no violation"


async def test_a_fault_of_ours_costs_the_one_who_met_it_and_is_in_the_metrics() -> None:
    async with besieged() as broker:

        def broken(*_: object) -> None:
            raise RuntimeError("a fault of ours")

        client = await RawClient.greeted(broker.address)
        await client.subscribe(1, "a")
        broker.daemon.node.clients.table[Ask] = broken
        with structlog.testing.capture_logs() as lines:
            await client.say(Ask(1, "status", {}))
            (goodbye,) = await client.hear_the_end()
        assert isinstance(goodbye, Goodbye) and "a fault in the broker" in goodbye.text
        assert [line["event"] for line in lines if line["log_level"] == "error"] == ["fault while handling an input"]
        await client.close()
        await wait_until(lambda: broker.daemon.server.connections == 2)
        assert broker.daemon.node.statistics(0).subscriptions == 2
        assert "headgate_faults_total 1.0" in (await get(broker.admin, "/metrics")).text


async def test_after_goodbye_nothing_counts() -> None:
    async with besieged() as broker:
        watcher = await RawClient.greeted(broker.address)
        await watcher.subscribe(1, "a")
        client = await RawClient.greeted(broker.address)
        late = (
            framed(Publish(1, Mode.ACCEPTED, make_batch(["a"], {}, [b"x"])), Hello(), Credit(-1, -1))
            + b"\xff" * 100_000
        )
        await client.write(framed(Goodbye(ErrorCode.GOODBYE, "")) + late)
        assert [type(message) for message in await client.hear_the_end()] in ([], [Goodbye])
        await client.close()
        await watcher.say(Ping(1))
        assert await watcher.hear() == Pong(1), "the late PUBLISH was not carried"
        assert broker.daemon.server.violations == 0
        await watcher.close()
