"""Clients with limits of their own: `connect` and `connect_blocking` for tests that cannot wait for the defaults."""

from __future__ import annotations

import random
import secrets
import time
from typing import Any

from headgate.protocol.addresses import Addresses
from headgate.protocol.aio import Client
from headgate.protocol.blocking import BlockingClient
from headgate.protocol.client import ClientLimits, ClientOptions, Retry


def _settings(
    address: str, limits: ClientLimits, retry_seconds: float | None, options: dict[str, Any]
) -> tuple[Addresses, ClientOptions, Retry]:
    producer, epoch = secrets.token_hex(8), time.time_ns() // 1000
    return (
        Addresses(address, random.random, options.pop("shuffle", True)),
        ClientOptions(**{"producer": producer, "epoch": epoch, **options, "limits": limits}),
        Retry(retry_seconds, random.random),
    )


async def connect_limited(
    address: str, limits: ClientLimits, *, retry_seconds: float | None = None, **options: Any
) -> Client:
    """A connected asyncio client with these limits."""
    client = Client(*_settings(address, limits, retry_seconds, options))
    await client.open()
    return client


def connect_blocking_limited(
    address: str, limits: ClientLimits, *, retry_seconds: float | None = None, **options: Any
) -> BlockingClient:
    """A connected blocking client with these limits."""
    client = BlockingClient(*_settings(address, limits, retry_seconds, options))
    client.open()
    return client
