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
    publishers_slowed: int
    events_delivered: int
    delta_subscriptions: int
    delta_delivered: int
    """Of events that match all of a condition but its DELTA; each counts for each such subscription."""
    delta_suppressed: int
    delta_unread: int
    delta_references: int
    delta_forgotten: int
    delta_widened: int
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
    structure_edges_local: int
    structure_edges_remote: int
    structure_edges_pruned: int
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
    durable_subscriptions: int
    """Those that this broker coordinates; so are the events that wait, and what became of those handed out."""
    durable_clients: int
    durable_waiting: int
    durable_unacked: int
    durable_redelivered: int
    durable_handed_out: int
    durable_settled: int
    durable_stale_acks: int
    durable_dead_letters: int
    durable_missed: int
    """Events that retention took before they were acknowledged."""
    durable_takeovers: int
    durable_states_written: int
    durable_feeds: int
    """Those that logs of this broker serve, whoever coordinates; so are facts."""
    durable_facts: int
    durable_sent: int
    """Events sent to clients of this broker, whoever coordinates; so are fetches."""
    durable_fetches: dict[str, int]
    certificate_days: dict[str, float]
    """How long the certificate of each port that speaks TLS is still good."""

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
        **_of_durables(node),
        sessions=len(subscribers.by_key),
        streams=len(node.streams.by_name),
        subscriptions=sum(len(session.subscriptions) for session in subscribers.by_key.values()),
        batches_received=node.publishers.batches,
        events_received=node.publishers.events,
        events_duplicate=node.publishers.duplicates,
        events_refused=node.publishers.refused,
        publishers_slowed=node.paces.mutes,
        events_delivered=subscribers.deliveries,
        **_of_delta(node),
        outbox_events=sum(session.outbox_events for session in subscribers.by_key.values()),
        outbox_bytes=subscribers.outbox_bytes,
        outbox_bytes_max=node.config.outbox_bytes_total,
        drops=dict(subscribers.drops),
        certificate_days={port: (end - now - node.clock.offset) / 86_400 for port, end in node.certificates.items()},
    )


def _of_delta(node: Node) -> dict[str, Any]:
    suppression, handing = node.dissemination.suppression, node.durables.handing
    return {
        "delta_subscriptions": sum(len(carrier.members) for carrier in suppression.carriers.values()),
        "delta_delivered": suppression.delivered + handing.moved,
        "delta_suppressed": suppression.suppressed + handing.suppressed,
        "delta_unread": suppression.unread,
        "delta_references": suppression.tally.references + handing.references.references,
        "delta_widened": node.subscribers.widened,
        "delta_forgotten": suppression.tally.forgotten + handing.references.forgotten,
    }


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
        "structure_edges_local": forwarding.edges_local,
        "structure_edges_remote": forwarding.edges_remote,
        "structure_edges_pruned": forwarding.edges_pruned,
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


def _of_durables(node: Node) -> dict[str, Any]:
    durables = node.durables
    coordinator, bodies = durables.coordinator, durables.bodies
    load = coordinator.tally.all()
    return {
        "durable_subscriptions": len(coordinator.held),
        "durable_clients": load.clients,
        "durable_waiting": load.waiting,
        "durable_unacked": load.unacked,
        "durable_redelivered": load.redelivered,
        "durable_handed_out": coordinator.handed_out,
        "durable_settled": coordinator.settled,
        "durable_stale_acks": coordinator.stale,
        "durable_dead_letters": coordinator.dead,
        "durable_missed": coordinator.missed,
        "durable_takeovers": coordinator.takeovers,
        "durable_states_written": durables.keeping.states_written,
        "durable_feeds": durables.feeding.count,
        "durable_facts": durables.feeding.facts,
        "durable_sent": durables.handing.events,
        "durable_fetches": {"memory": bodies.from_memory, "disk": bodies.from_disk, "broker": bodies.from_far},
    }
