"""An immutable snapshot of what a Node has done and holds; metrics and `status` read it, the core knows neither."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .node import Node

__all__ = ["NodeStatistics", "statistics_of"]


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """Counts since the start (events…, batches…, drops) and sizes now (the rest)."""

    broker: str
    cluster: str
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
    refused: dict[str, str]
    peer_outbox_bytes: int
    keyed_items: int
    unconfirmed: int
    waiting_events: int
    events_forwarded: int
    events_relayed: int
    events_lost: int
    peer_reconnects: int
    logs: int
    log_bytes: int
    log_events: int
    log_pending_bytes: int
    log_events_failed: int
    log_late: int
    log_behind: int
    log_full: str
    """Why this broker's disk took nothing when it was last asked; empty when it did."""
    log_rows_copied: int
    log_events_trimmed: int
    log_chunks_read: int
    producers: int
    producers_max: int
    producers_forgotten: int
    producer_duplicates: int
    audit_missing: int

    def as_map(self) -> dict[str, Any]:
        """The same as a plain map."""
        return asdict(self)


def statistics_of(node: Node, now: float) -> NodeStatistics:
    """A snapshot of this Node."""
    subscribers = node.subscribers
    return NodeStatistics(
        broker=node.config.name,
        cluster=node.config.cluster,
        origin=node.config.origin,
        uptime_seconds=now - node.started,
        draining=node.clients.draining,
        connections=len(subscribers.by_link),
        **_of_cluster(node, now),
        **_of_log(node),
        sessions=len(subscribers.by_key),
        streams=len(node.streams.by_name),
        subscriptions=sum(len(session.subscriptions) for session in subscribers.by_key.values()),
        batches_received=node.publishers.batches,
        events_received=node.publishers.events,
        events_duplicate=node.publishers.duplicates,
        events_refused=node.publishers.refused,
        events_delivered=subscribers.deliveries,
        outbox_events=sum(session.outbox_events for session in subscribers.by_key.values()),
        outbox_bytes=subscribers.outbox_bytes,
        outbox_bytes_max=node.config.outbox_bytes_total,
        drops=dict(subscribers.drops),
    )


def _of_cluster(node: Node, now: float) -> dict[str, Any]:
    cluster, forwarding = node.cluster, node.forwarding
    chord = cluster.chord
    links = len(cluster.linked())
    return {
        "role": "mesh" if chord is None or chord.ring is None else "ring",
        "brokers": links + 1,
        "settled": cluster.settled(now),
        "scope": cluster.scope_share(now),
        "peer_links": links,
        "refused": cluster.refusals(now),
        "peer_outbox_bytes": node.peers.outbox_bytes,
        "keyed_items": len(cluster.kv.items),
        "unconfirmed": cluster.kv.statistics().puts_unconfirmed,
        "waiting_events": forwarding.waiting_events,
        "events_forwarded": forwarding.forwarded,
        "events_relayed": forwarding.relayed,
        "events_lost": forwarding.losses.events,
        "peer_reconnects": cluster.reconnects,
    }


def _of_log(node: Node) -> dict[str, Any]:
    log = node.log
    return {
        "logs": len(log.logs),
        "log_bytes": sum(held.bytes for held in log.logs.values()),
        "log_events": log.appended - log.failed,
        "log_pending_bytes": log.pending_bytes,
        "log_events_failed": log.failed,
        "log_late": log.late,
        "log_behind": node.leader.behind(),
        "log_full": log.full,
        "log_rows_copied": node.leader.rows_copied,
        "log_events_trimmed": node.retention.trimmed,
        "log_chunks_read": node.log_reading.chunks,
        "producers": len(node.producers),
        "producers_max": node.producers.limit,
        "producers_forgotten": node.producers.forgotten,
        "producer_duplicates": node.producers.duplicates,
        "audit_missing": node.audit.missing,
    }
