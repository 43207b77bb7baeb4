"""A client without manners: a bare socket that says what the test wants, well-formed or not, and reads what comes."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from headgate.protocol.addresses import split_address
from headgate.protocol.limits import HEARTBEAT_SECONDS_MAX
from headgate.protocol.messages import Error, Hello, Message, Suback, Subscribe, Welcome
from headgate.protocol.wire import decode, encode_chunks, frame

__all__ = ["RawClient", "framed"]


def framed(*messages: Message) -> bytes:
    """The bytes of these messages on the wire."""
    return b"".join(chunk for message in messages for chunk in frame(encode_chunks(message)))


class RawClient:
    """One socket. Everything that waits is bounded."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, address: str) -> RawClient:
        """A connected socket that has said nothing."""
        return cls(*await asyncio.open_connection(*split_address(address)))

    @classmethod
    async def greeted(cls, address: str, credit: int = 1_000_000, name: str = "raw") -> RawClient:
        """With its handshake done. It answers no PING, so it is given long to be silent."""
        client = await cls.connect(address)
        await client.say(Hello(name=name, credit=credit, heartbeat_seconds=HEARTBEAT_SECONDS_MAX))
        assert isinstance(await client.hear(), Welcome)
        return client

    @property
    def socket(self) -> socket.socket:
        """The socket itself, for options."""
        found: socket.socket = self.writer.get_extra_info("socket")
        return found

    async def say(self, *messages: Message) -> None:
        """Send well-formed messages."""
        await self.write(framed(*messages))

    async def write(self, data: bytes) -> None:
        """Send bytes; a broker that has hung up meanwhile is no error here."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            return

    async def hear(self) -> Message:
        """The next message."""
        async with asyncio.timeout(60):
            length = int.from_bytes(await self.reader.readexactly(4), "big")
            return decode(memoryview(await self.reader.readexactly(length)))

    async def hear_a(self, kind: type[Any]) -> Any:
        """The next message of this kind; others are dropped."""
        while True:
            message = await self.hear()
            if type(message) is kind:
                return message

    async def hear_the_end(self) -> list[Message]:
        """Everything until the broker closes or cuts the connection."""
        heard = []
        while True:
            try:
                heard.append(await self.hear())
            except (asyncio.IncompleteReadError, ConnectionError):
                return heard

    async def refusal(self) -> Error:
        """The ERROR that is the broker's last word, after which it closes."""
        heard = await self.hear_the_end()
        assert heard and isinstance(heard[-1], Error), heard
        return heard[-1]

    async def subscribe(self, number: int, pattern: str, condition: str = "") -> Suback | Error:
        """SUBSCRIBE, and what the broker says to it."""
        await self.say(Subscribe(number, number, pattern, condition))
        while True:
            answer = await self.hear()
            if isinstance(answer, Suback | Error):
                return answer

    def reset(self) -> None:
        """End with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.close()

    async def close(self) -> None:
        """Just hang up."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return
