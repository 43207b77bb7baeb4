"""nats-server: core NATS, the text protocol, subjects; the peer that ratios are given to.

`Nats` is measured by generator and sink, as all peers are. A `NatsClient` publishes and subscribes over one connection,
with TLS or without, as a client of ours does.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from ..kit import Want, Workload
from ..limits import BODY_LENGTH
from .peer import BODY, Peer, Publisher, SizedSubscriber, dial, find, installed, read_until

__all__ = ["Nats", "NatsClient"]

# A slow reader would be cut off at 64 MiB by default; nothing here is meant to be cut off.
_CONFIG = "max_pending: 1GB\nwrite_deadline: '60s'\nping_interval: '1h'\n"
_CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"lang":"bench","version":"1"}\r\nPING\r\n'
_FIRST_SUBSCRIPTION = 10_000
"""Subscription ids all have five digits, so that every delivery has the same length."""


def _subject(topic: str) -> str:
    return topic.replace("/", ".")


class Nats(Peer):
    """nats-server, installed from the distribution or from its releases."""

    name = "nats"

    def __init__(self, pair: str = "") -> None:
        """`pair`: it speaks TLS with the certificate `pair`.pem and its key `pair`.key."""
        self._tls = f"tls: {{cert_file: '{pair}.pem', key_file: '{pair}.key'}}\n" if pair else ""

    def version(self) -> str | None:
        line = installed("nats-server", "--version")
        found = re.search(r"\d+\.\d+\S*", line or "")
        return found.group() if found else line

    def command(self, port: int, folder: Path) -> list[str]:
        config = folder / "nats.conf"
        config.write_text(_CONFIG + self._tls, encoding="ascii")
        return [find("nats-server") or "nats-server", "--addr", "127.0.0.1", "--port", str(port), "-c", str(config)]

    def publisher(self, port: int) -> Publisher:
        connection = dial(port)
        connection.sendall(_CONNECT)
        read_until(connection, b"PONG\r\n")
        return Publisher(connection)

    def subscriber(self, port: int, wants: Sequence[Want]) -> SizedSubscriber:
        subjects = [_subject(topic) for topic in dict.fromkeys(want.topic for want in wants)]
        lines = [f"SUB {subject} {number}\r\n".encode() for number, subject in enumerate(subjects, _FIRST_SUBSCRIPTION)]
        connection = dial(port)
        connection.sendall(_CONNECT.removesuffix(b"PING\r\n") + b"".join(lines) + b"PING\r\n")
        read_until(connection, b"PONG\r\n")
        head = f"MSG {subjects[0]} {_FIRST_SUBSCRIPTION} {BODY_LENGTH}\r\n"
        return SizedSubscriber(connection, len(head) + BODY_LENGTH + 2)

    def encode(self, workload: Workload, first: int, last: int) -> bytearray:
        return bytearray().join(
            b"PUB %s %d\r\n%s\r\n" % (_subject(event.topic).encode(), BODY_LENGTH, BODY)
            for event in workload.events[first:last]
        )


class NatsClient:
    """Publishes bodies of one length to one subject, and is sent them. `connect` makes one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, topic: str, length: int) -> None:
        self._reader, self._writer = reader, writer
        self._subject, self._length = _subject(topic).encode(), length
        self._arrival = len(b"MSG %s %d %d\r\n\r\n" % (self._subject, _FIRST_SUBSCRIPTION, length)) + length
        self._bytes = 0

    @classmethod
    async def connect(cls, port: int, topic: str, length: int, ca: str = "") -> NatsClient:
        """Over TLS when an authority is given; the subscription is in force."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await reader.readuntil(b"\r\n")  # INFO comes first, and in plain text
        if ca:
            await writer.start_tls(ssl.create_default_context(cafile=ca), server_hostname="127.0.0.1")
        client = cls(reader, writer, topic, length)
        line = b"SUB %s %d\r\n" % (client._subject, _FIRST_SUBSCRIPTION)
        writer.write(_CONNECT.removesuffix(b"PING\r\n") + line + b"PING\r\n")
        await reader.readuntil(b"PONG\r\n")
        return client

    def encode(self, body: bytes, count: int) -> bytes:
        """What publishes that so many times."""
        return b"PUB %s %d\r\n%s\r\n" % (self._subject, self._length, body) * count

    def publish(self, data: bytes) -> None:
        """Write that; it goes while deliveries are taken."""
        self._writer.write(data)

    async def take(self) -> int:
        """How many deliveries are whole with what came next."""
        self._bytes += len(await self._reader.read(1 << 20))
        count, self._bytes = divmod(self._bytes, self._arrival)
        return count

    def close(self) -> None:
        """No more of it."""
        self._writer.close()
