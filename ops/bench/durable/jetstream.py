"""A durable pull consumer of NATS JetStream, over bare sockets: what durable subscriptions are measured beside.

File storage and explicit acknowledgements. An acknowledgement counts when the server has confirmed it, as everywhere
in this measurement: of a batch the last one asks for a confirmation, since a server answers in order. By default the
server brings its files to the disk every two minutes, so what it has confirmed may be lost with the power; from 2.10
on it can be told to do so before it answers (`sync_interval: always`), which is what a Headgate broker does. Both are
measured where the version has both. The publisher and the consumer are connections of one process each, in the text
protocol of NATS, and hand nothing to anybody: they are as fast as Python is.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headgate.protocol.aio import Tasks

from ..kit import MeasurementFailed
from ..limits import CHUNK_EVENTS, DURABLE_AHEAD_EVENTS, DURABLE_TAKEN_SECONDS_MAX
from ..peers import BODY, Nats

__all__ = ["JetStream", "consume", "publish"]

_CONNECT = {"verbose": False, "pedantic": False, "headers": True, "lang": "bench", "version": "1", "protocol": 1}
_SYNCHRONISES = (2, 10)
"""The first version that knows `sync_interval`."""
_STREAM = "bench"
_PULL_EVENTS = 1000
_PULL_AGAIN = 500
_EXPIRES_NS = 3_600_000_000_000
_ACK_WAIT_NS = 60_000_000_000
_MAX_UNACKED = 65_536


class JetStream:
    """nats-server with a store on the disk."""

    def __init__(self, synchronised: bool = False) -> None:
        """`synchronised`: what it confirms is on the disk."""
        self.name = "nats jetstream, synchronised" if synchronised else "nats jetstream"
        self._synchronised = synchronised

    def version(self) -> str | None:
        """The installed version; None when it is not installed."""
        return Nats().version()

    @property
    def can_synchronise(self) -> bool:
        """Whether the installed version can bring to the disk what it confirms."""
        numbers = re.findall(r"\d+", self.version() or "")[:2]
        return tuple(map(int, numbers)) >= _SYNCHRONISES

    def command(self, port: int, folder: Path) -> list[str]:
        """How to start it on this port, keeping all its files in this folder."""
        command = Nats().command(port, folder)
        config = folder / "nats.conf"
        always = ", sync_interval: always" if self._synchronised else ""
        store = f'jetstream {{ store_dir: "{folder}"{always} }}\n'
        config.write_text(config.read_text("ascii") + store, "ascii")
        return command


class _Connection:
    """A connection that hands every message to whoever subscribed: (subject, reply, header or body)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, inbox: bytes) -> None:
        self._reader = reader
        self._writer = writer
        self._inbox = inbox  # its own: a server tells everybody who subscribed
        self._unsent: list[bytes] = []
        self._answers: asyncio.Queue[bytes] = asyncio.Queue()
        self._tasks = Tasks()
        self.on_message: Callable[[bytes, bytes], None] = lambda reply, body: None
        self.on_answer: Callable[[bytes], None] = self._answers.put_nowait
        self._tasks.start(self._read(), "reading")

    async def ask(self, subject: str, wish: dict[str, Any]) -> dict[str, Any]:
        """A question of the JetStream API. Raises MeasurementFailed when it is refused."""
        self.publish(subject.encode(), json.dumps(wish).encode(), b"answer")
        async with asyncio.timeout(DURABLE_TAKEN_SECONDS_MAX):
            answer: dict[str, Any] = json.loads(await self._answers.get())
        if "error" in answer:
            raise MeasurementFailed("nats-server", f"{subject}: {answer['error']}")
        return answer

    def publish(self, subject: bytes, body: bytes, reply: bytes = b"") -> None:
        """Publish; answers go to `on_message` for the reply `message`, to `on_answer` for others.

        What is published in one turn of the loop is one write.
        """
        reply = b"%s.%s " % (self._inbox, reply) if reply else b""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._write)
        self._unsent.append(b"PUB %s %s%d\r\n%s\r\n" % (subject, reply, len(body), body))

    async def drain(self) -> None:
        """Wait until what was published is on its way."""
        self._write()
        await self._writer.drain()

    def _write(self) -> None:
        unsent, self._unsent = self._unsent, []
        self._writer.write(b"".join(unsent))

    async def close(self) -> None:
        """It is over."""
        await self._tasks.stop()
        self._writer.close()

    async def _read(self) -> None:
        while line := await self._reader.readline():
            verb, *words = line.split()
            if verb == b"PING":
                self._writer.write(b"PONG\r\n")
            elif verb in (b"MSG", b"HMSG"):
                body = (await self._reader.readexactly(int(words[-1]) + 2))[:-2]
                if not words[0].startswith(self._inbox) or words[0].endswith(b".message"):
                    reply = words[2] if len(words) > (3 if verb == b"MSG" else 4) else b""
                    self.on_message(reply, b"" if verb == b"HMSG" else body)
                else:
                    self.on_answer(body)
            elif verb == b"-ERR":
                self.on_answer(json.dumps({"error": line.decode()}).encode())


async def _dial(port: int) -> _Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    inbox = f"_INBOX.{secrets.token_hex(8)}"
    writer.write(f"CONNECT {json.dumps(_CONNECT)}\r\nSUB {inbox}.* 1\r\n".encode())
    return _Connection(reader, writer, inbox.encode())


async def publish(port: int, events: int, taken: Callable[[], int]) -> None:
    """Store so many events, not too far ahead of what the consumer has taken. Raises MeasurementFailed."""
    connection = await _dial(port)
    stored = sent = 0
    refused = ""

    def answered(body: bytes) -> None:
        nonlocal stored, refused
        stored += 1
        if b'"error"' in body:
            refused = body.decode()

    connection.on_answer = answered
    try:
        while stored < events and not refused:
            if sent < min(events, taken() + DURABLE_AHEAD_EVENTS, stored + DURABLE_AHEAD_EVENTS):
                for _ in range(min(CHUNK_EVENTS, events - sent)):
                    connection.publish(_STREAM.encode(), BODY, b"answer")
                    sent += 1
                await connection.drain()
            await asyncio.sleep(0 if sent < events else 0.001)
    finally:
        await connection.close()
    if refused:
        raise MeasurementFailed("nats-server", f"does not store: {refused}")


async def consume(port: int, case: str, events: int, ready: Callable[[], None], count: Callable[[int], None]) -> None:
    """Take so many, and have the acknowledgement of each confirmed; `count` is told how many are. Raises
    MeasurementFailed.
    """
    connection = await _dial(port)
    done, pulled, seen, confirmed = asyncio.Event(), 0, 0, 0
    unsaid: list[bytes] = []
    flights: deque[int] = deque()
    waiting: asyncio.Queue[bytes] = asyncio.Queue()
    tasks = Tasks()

    def pull() -> None:
        nonlocal pulled
        pulled += _PULL_EVENTS
        wish = {"batch": _PULL_EVENTS, "expires": _EXPIRES_NS}
        connection.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{_STREAM}.{_STREAM}".encode(), json.dumps(wish).encode(), b"message"
        )

    def turn() -> None:
        """All that came in a turn of the loop is acknowledged together."""
        if not unsaid:
            return
        if case == "batch":
            for reply in unsaid[:-1]:
                connection.publish(reply, b"+ACK")
        flights.append(len(unsaid))
        connection.publish(unsaid[-1], b"+ACK", b"answer")
        unsaid.clear()

    def came(reply: bytes, body: bytes) -> None:
        nonlocal seen
        if not reply:
            return
        seen += 1
        if pulled - seen < _PULL_AGAIN:
            pull()
        if case == "each":
            waiting.put_nowait(reply)
            return
        if not unsaid:
            asyncio.get_running_loop().call_soon(turn)
        unsaid.append(reply)

    async def one_by_one() -> None:
        """Each in a turn of the loop of its own, as of an application that does something with it."""
        while True:
            reply = await waiting.get()
            flights.append(1)
            connection.publish(reply, b"+ACK", b"answer")
            await asyncio.sleep(0)

    def settled(body: bytes) -> None:
        nonlocal confirmed
        confirmed += flights.popleft()
        count(confirmed)
        if confirmed >= events:
            done.set()

    try:
        wish: dict[str, Any] = {"name": _STREAM, "subjects": [_STREAM], "storage": "file", "retention": "limits"}
        await connection.ask(f"$JS.API.STREAM.CREATE.{_STREAM}", wish)
        config = {
            "durable_name": _STREAM,
            "deliver_policy": "all",
            "ack_policy": "all" if case == "cumulative" else "explicit",
            "ack_wait": _ACK_WAIT_NS,
            "max_ack_pending": _MAX_UNACKED,
        }
        wish = {"stream_name": _STREAM, "config": config}
        await connection.ask(f"$JS.API.CONSUMER.DURABLE.CREATE.{_STREAM}.{_STREAM}", wish)
        connection.on_message, connection.on_answer = came, settled
        tasks.start(one_by_one(), "acknowledging")
        pull()
        ready()
        async with asyncio.timeout(DURABLE_TAKEN_SECONDS_MAX):
            await done.wait()
    except TimeoutError:
        raise MeasurementFailed("nats-server", f"{confirmed} of {events} were taken") from None
    finally:
        await tasks.stop()
        await connection.close()
