"""One HTTP request over a bare socket, as a scraper makes it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from headgate.protocol.addresses import split_address

__all__ = ["Answer", "get", "request"]


@dataclass(frozen=True)
class Answer:
    """Status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    text: str


async def get(address: str, path: str) -> Answer:
    """GET."""
    return await request(address, f"GET {path} HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n".encode())


async def request(address: str, data: bytes) -> Answer:
    """These bytes, and what comes back."""
    reader, writer = await asyncio.open_connection(*split_address(address))
    try:
        async with asyncio.timeout(10):
            writer.write(data)
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Answer(int(status.split()[1]), {name.lower(): value for name, value in headers.items()}, body.decode())
