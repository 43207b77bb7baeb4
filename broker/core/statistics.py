"""An immutable snapshot of what a Node has done and holds; metrics and `status` read it, the core knows neither."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["NodeStatistics"]


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """Counts since the start (events…, batches…, drops) and sizes now (the rest)."""

    broker: str
    origin: str
    uptime_seconds: float
    draining: bool
    connections: int
    sessions: int
    streams: int
    subscriptions: int
    batches_received: int
    events_received: int
    events_duplicate: int
    events_refused: int
    events_delivered: int
    outbox_events: int
    outbox_bytes: int
    outbox_bytes_max: int
    drops: dict[str, int]
    role: str
    brokers: int
    settled: bool
    scope: float
    peer_links: int
    peer_outbox_bytes: int
    keyed_items: int
    unconfirmed: int
    waiting_events: int
    events_forwarded: int
    events_relayed: int
    events_lost: int
    peer_reconnects: int

    def as_map(self) -> dict[str, Any]:
        """The same as a plain map."""
        return asdict(self)
