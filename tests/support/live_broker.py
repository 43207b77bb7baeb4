"""A real broker in this process, on free ports of the loopback: the daemon, its sockets and its files, without fork."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from headgate.broker.daemon import load_settings
from headgate.broker.daemon.limits import DEFAULT_LIMITS, DaemonLimits
from headgate.broker.daemon.main import Daemon

__all__ = ["LiveBroker", "live_broker"]


@dataclass
class LiveBroker:
    """Where it listens, and the daemon itself for a look inside."""

    address: str
    admin: str
    daemon: Daemon


@asynccontextmanager
async def live_broker(limits: DaemonLimits = DEFAULT_LIMITS, **settings: Any) -> AsyncIterator[LiveBroker]:
    """A started broker; stopped, drained and validated at the end."""
    with tempfile.TemporaryDirectory() as directory:
        given = {
            "listen": "127.0.0.1:0",
            "peer_listen": "127.0.0.1:0",
            "admin": "127.0.0.1:0",
            "data": directory,
            "name": "test",
            "log_level": "error",
            "drain_seconds": 1.0,
        }
        daemon = Daemon(load_settings(given | settings), limits)
        await daemon.start()
        try:
            yield LiveBroker(daemon.server.address, daemon.health.address, daemon)
            daemon.node.validate()
        finally:
            await daemon.stop()
