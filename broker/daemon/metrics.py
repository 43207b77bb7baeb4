"""Snapshots -> Prometheus. The core knows no metrics: a collector reads `statistics()` when somebody scrapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from headgate.broker.core import NodeStatistics

from .access import FETCHES, KINDS, Door, Issuer
from .driver import MATCH_BUCKETS_SECONDS, Driver
from .limits import DEFAULT_LIMITS, DaemonLimits
from .security import Certificates
from .server import Server

__all__ = ["METRICS", "BrokerCollector", "render", "render_detailed"]

_COUNTERS = {
    "headgate_batches_received_total": ("batches_received", "Batches accepted from publishers."),
    "headgate_events_received_total": ("events_received", "Events accepted from publishers."),
    "headgate_events_duplicate_total": ("events_duplicate", "Events of batches that were sent again and recognised."),
    "headgate_events_refused_total": ("events_refused", "Events of batches that were refused."),
    "headgate_publishers_slowed_total": (
        "publishers_slowed",
        "Times that a connection was not read for a while, its user publishing more than its roles allow.",
    ),
    "headgate_events_delivered_total": ("events_delivered", "Events sent to subscribers' connections."),
    "headgate_delta_delivered_events_total": ("delta_delivered", "Events delivered to subscriptions with DELTA."),
    "headgate_delta_suppressed_events_total": ("delta_suppressed", "Events that had not moved enough for one."),
    "headgate_delta_unread_events_total": ("delta_unread", "Events whose records could not be read for a DELTA."),
    "headgate_delta_widened_total": ("delta_widened", "How often a band grew because its subscriber was slow."),
    "headgate_delta_forgotten_references_total": (
        "delta_forgotten",
        "References given up, there being too many topics.",
    ),
    "headgate_forwarded_events_total": ("events_forwarded", "Events sent on to the brokers that serve their keys."),
    "headgate_relayed_events_total": ("events_relayed", "Events matched elsewhere for subscribers of this broker."),
    "headgate_structure_edges_local_total": (
        "structure_edges_local",
        "Edges of the cube that events went over inside this broker.",
    ),
    "headgate_structure_edges_remote_total": (
        "structure_edges_remote",
        "Edges of the cube over which events went on to another broker.",
    ),
    "headgate_structure_edges_pruned_total": (
        "structure_edges_pruned",
        "Edges of the cube that no subscription let an event over.",
    ),
    "headgate_peer_lost_events_total": ("events_lost", "Events lost on their way to another broker."),
    "headgate_peer_reconnects_total": ("peer_reconnects", "Links to other brokers that were made again."),
    "headgate_log_events_total": (
        "log_events",
        "Events, and lines of the audit, written to logs here, copies included.",
    ),
    "headgate_log_not_stored_events_total": ("log_events_failed", "Those that the disk did not take."),
    "headgate_log_late_total": ("log_late", "Batches that too few disks had in time: their publishers heard 112."),
    "headgate_log_copied_rows_total": ("log_rows_copied", "Rows sent to followers for their disks."),
    "headgate_log_trimmed_events_total": ("log_events_trimmed", "Events that retention took."),
    "headgate_log_chunks_read_total": ("log_chunks_read", "Chunks of logs given to readers."),
    "headgate_producer_duplicate_events_total": ("producer_duplicates", "Events of producers' batches sent again."),
    "headgate_producers_forgotten_total": ("producers_forgotten", "Producers forgotten, there being too many."),
    "headgate_audit_missing_lines_total": ("audit_missing", "Lines of the audit that are lost, the disk being full."),
    "headgate_durable_handed_out_events_total": (
        "durable_handed_out",
        "Events of durable subscriptions handed out to clients.",
    ),
    "headgate_durable_acknowledged_events_total": ("durable_settled", "Those that clients acknowledged."),
    "headgate_durable_stale_acks_total": (
        "durable_stale_acks",
        "Spans of acknowledgements that were refused, the events having been handed out anew.",
    ),
    "headgate_durable_dead_letters_total": ("durable_dead_letters", "Events given up: handed out too often."),
    "headgate_durable_missed_events_total": (
        "durable_missed",
        "Events that retention took before they were acknowledged.",
    ),
    "headgate_durable_takeovers_total": (
        "durable_takeovers",
        "Durable subscriptions taken over from another broker, or an earlier life.",
    ),
    "headgate_durable_states_written_total": ("durable_states_written", "States that enough disks confirmed."),
    "headgate_durable_facts_total": ("durable_facts", "Facts about logs here, told to coordinators."),
    "headgate_durable_sent_events_total": ("durable_sent", "Events of durable subscriptions sent to clients here."),
}
_GAUGES = {
    "headgate_sessions": ("sessions", "Client sessions, connected or in their grace."),
    "headgate_streams": ("streams", "Streams in use."),
    "headgate_subscriptions": ("subscriptions", "Subscriptions in force."),
    "headgate_delta_subscriptions": ("delta_subscriptions", "Subscriptions with DELTA."),
    "headgate_delta_references": ("delta_references", "What they were last sent: pairs of one of them and a topic."),
    "headgate_outbox_events": ("outbox_events", "Events that wait for slow subscribers."),
    "headgate_outbox_bytes": ("outbox_bytes", "Bytes that wait for slow subscribers."),
    "headgate_outbox_bytes_max": ("outbox_bytes_max", "The bound on that."),
    "headgate_peer_outbox_bytes": ("peer_outbox_bytes", "Bytes of events that wait for other brokers."),
    "headgate_keyed_items": ("keyed_items", "Items held, as owner or as copy: subscriptions, uses, schemas."),
    "headgate_keyed_unconfirmed": ("unconfirmed", "Writes that some copy has not confirmed yet."),
    "headgate_waiting_events": ("waiting_events", "Events that wait until somebody answers for their keys."),
    "headgate_logs": ("logs", "Logs held here, our own and copies."),
    "headgate_log_bytes": ("log_bytes", "Bytes of rows in them."),
    "headgate_log_pending_bytes": ("log_pending_bytes", "Bytes that wait for the disk."),
    "headgate_log_behind_events": ("log_behind", "Events of our own logs that too few disks have."),
    "headgate_producers": ("producers", "Producers that are remembered."),
    "headgate_producers_max": ("producers_max", "The bound on that."),
    "headgate_durable_subscriptions": ("durable_subscriptions", "Durable subscriptions coordinated here."),
    "headgate_durable_clients": ("durable_clients", "Clients that take part in them."),
    "headgate_durable_waiting_events": ("durable_waiting", "Events that wait to be handed out."),
    "headgate_durable_unacked_events": ("durable_unacked", "Events handed out and not acknowledged."),
    "headgate_durable_redelivered_events": (
        "durable_redelivered",
        "Those of both that were handed out before.",
    ),
    "headgate_durable_feeds": ("durable_feeds", "Feeds of durable subscriptions that logs here serve."),
    "headgate_uptime_seconds": ("uptime_seconds", "Seconds since the start."),
}
_OF_THE_CLUSTER: dict[str, tuple[Callable[[NodeStatistics], float], str]] = {
    "headgate_cluster_brokers": (
        lambda statistics: statistics.brokers,
        "Brokers that this one has links to, itself included.",
    ),
    "headgate_cluster_settled": (
        lambda statistics: statistics.settled,
        "1 when this broker answers for its own keys, else 0.",
    ),
    "headgate_cluster_ring": (
        lambda statistics: statistics.role == "ring",
        "1 when the brokers form a ring, 0 when they are a few that all know each other.",
    ),
    "headgate_cluster_scope_ratio": (
        lambda statistics: statistics.scope,
        "Share of the keys that this broker matches itself, 0 to 1.",
    ),
    "headgate_peer_links": (lambda statistics: statistics.peer_links, "Links to other brokers that are up now."),
    "headgate_peer_refusals": (
        lambda statistics: len(statistics.refused),
        "Brokers that do not let this one in, though it was told to join them.",
    ),
}
"""What is compared from broker to broker: with the name of the cluster as a label, for there may be several."""

_OF_A_DURABLE = {
    "headgate_durable_subscription_waiting_events": ("waiting", "Events that wait to be handed out."),
    "headgate_durable_subscription_unacked_events": ("unacked", "Events handed out and not acknowledged."),
    "headgate_durable_subscription_redelivered_events": ("redelivered", "Those that were handed out before."),
    "headgate_durable_subscription_clients": ("clients", "Clients that take part."),
    "headgate_durable_subscription_oldest_seconds": ("oldest_seconds", "How long the oldest event has waited."),
}
"""Of each durable subscription, with its name as a label."""

METRICS = (
    *_COUNTERS,
    *_GAUGES,
    *_OF_THE_CLUSTER,
    *_OF_A_DURABLE,
    "headgate_durable_fetches_total",
    "headgate_log_full",
    "headgate_records_unkept",
    "headgate_bytes_received_total",
    "headgate_bytes_sent_total",
    "headgate_connections",
    "headgate_connections_refused_total",
    "headgate_protocol_violations_total",
    "headgate_faults_total",
    "headgate_not_let_in_total",
    "headgate_web_keys_age_seconds",
    "headgate_web_keys_fetches_total",
    "headgate_tls_handshakes_failed_total",
    "headgate_events_dropped_total",
    "headgate_stream_events_received_total",
    "headgate_stream_events_delivered_total",
    "headgate_match_seconds",
)


class BrokerCollector(Collector):
    """Reads driver and server at scrape time."""

    def __init__(self, driver: Driver, server: Server, limits: DaemonLimits = DEFAULT_LIMITS) -> None:
        self._series_max = limits.stream_series
        self._durable_series_max = limits.durable_series
        self._driver = driver
        self._server = server
        self.certificates: Mapping[str, Certificates] = {}
        """By port, of those that speak TLS."""
        self.door: Door | None = None

    def collect(self) -> Iterator[Metric]:
        """Every metric, once."""
        statistics = self._driver.node.statistics(self._driver.clock())
        for name, (field, text) in _COUNTERS.items():
            yield CounterMetricFamily(name, text, value=getattr(statistics, field))
        for name, (field, text) in _GAUGES.items():
            yield GaugeMetricFamily(name, text, value=getattr(statistics, field))
        for name, (value_of, text) in _OF_THE_CLUSTER.items():
            gauge = GaugeMetricFamily(name, text, labels=["cluster"])
            gauge.add_metric([statistics.cluster], float(value_of(statistics)))
            yield gauge
        full = "1 while the disk takes no stored batches, as of the last one; else 0."
        yield GaugeMetricFamily("headgate_log_full", full, value=float(bool(statistics.log_full)))
        unkept = "1 while schemas that are put would be gone after a restart, for want of room; else 0."
        yield GaugeMetricFamily("headgate_records_unkept", unkept, value=float(bool(self._driver.records_obstacle)))
        yield from self._server_metrics()
        expiry = GaugeMetricFamily(
            "headgate_certificate_expiry_timestamp_seconds",
            "When the certificate of a port ends, in seconds since 1970.",
            labels=["port"],
        )
        for port, certificates in self.certificates.items():
            if port == "admin":  # it has that of the clients
                continue
            expiry.add_metric([port], certificates.expires)
        yield expiry
        handshakes = "TLS handshakes that failed, by port: certificates that are not good, or another protocol."
        failed = dict.fromkeys(("admin", "clients", "peers"), 0)
        failed |= {port: one.failures for port, one in self.certificates.items()}
        yield _by_label("headgate_tls_handshakes_failed_total", handshakes, "port", failed)
        refusals = "Clients and scrapers that were not let in, by reason."
        failures = {kind: 0 if self.door is None else self.door.failures[kind] for kind in KINDS}
        yield _by_label("headgate_not_let_in_total", refusals, "reason", failures)
        yield from self._issuer_metrics(None if self.door is None else self.door.keeper.issuer)
        yield _by_label("headgate_events_dropped_total", "Events not delivered, by reason.", "reason", statistics.drops)
        fetches = "Times that events of durable subscriptions were looked up for clients here, by where they were."
        yield _by_label("headgate_durable_fetches_total", fetches, "source", statistics.durable_fetches)
        coordinator = self._driver.node.durables.coordinator
        yield from self.of_durables(coordinator.busiest(self._durable_series_max))
        yield from self._stream_metrics()
        yield self._match_metric()

    def _issuer_metrics(self, issuer: Issuer | None) -> Iterator[Metric]:
        fetches = "Times that keys of web tokens were fetched from their issuer's address, by what came of it."
        outcomes = {kind: 0 if issuer is None else issuer.outcomes[kind] for kind in FETCHES}
        yield _by_label("headgate_web_keys_fetches_total", fetches, "outcome", outcomes)
        age = "Seconds since keys of web tokens were fetched, or since the start; 0 where they are at no address."
        seconds = 0.0 if issuer is None else issuer.age(self._driver.clock())
        yield GaugeMetricFamily("headgate_web_keys_age_seconds", age, value=seconds)

    def _server_metrics(self) -> Iterator[Metric]:
        server = self._server
        yield CounterMetricFamily("headgate_bytes_received_total", "Bytes from clients.", value=server.bytes_in)
        yield CounterMetricFamily("headgate_bytes_sent_total", "Bytes to clients.", value=server.bytes_out)
        yield GaugeMetricFamily("headgate_connections", "Sockets of clients open now.", value=server.connections)
        yield CounterMetricFamily(
            "headgate_connections_refused_total", "Sockets closed at once: too many.", value=server.refused
        )
        yield CounterMetricFamily(
            "headgate_protocol_violations_total",
            "Connections ended for breaking the protocol.",
            value=server.violations,
        )
        yield CounterMetricFamily(
            "headgate_faults_total",
            "Faults of the broker itself; each has a line in the log.",
            value=self._driver.faults,
        )

    def _stream_metrics(self) -> Iterator[Metric]:
        received = CounterMetricFamily(
            "headgate_stream_events_received_total", "Events accepted, by stream (the busiest).", labels=["stream"]
        )
        delivered = CounterMetricFamily(
            "headgate_stream_events_delivered_total", "Events sent, by stream (the busiest).", labels=["stream"]
        )
        streams = self._driver.node.streams.by_name.values()
        for stream in nlargest(self._series_max, streams, key=lambda stream: stream.events):
            received.add_metric([stream.name], stream.events)
            delivered.add_metric([stream.name], stream.deliveries)
        yield received
        yield delivered

    def of_durables(self, names: Sequence[str]) -> Iterator[Metric]:
        """What waits for these durable subscriptions, for those that are coordinated here; for a bounded number."""
        coordinator, now = self._driver.node.durables.coordinator, self._driver.clock()
        values: dict[str, dict[str, float]] = {}
        for name in list(dict.fromkeys(names))[: self._durable_series_max]:
            load = coordinator.load_of(name)
            if load is not None:
                values[name] = {**load._asdict(), "oldest_seconds": coordinator.oldest_seconds(name, now)}
        for metric, (field, text) in _OF_A_DURABLE.items():
            gauge = GaugeMetricFamily(metric, text, labels=["subscription"])
            for name, value in values.items():
                gauge.add_metric([name], value[field])
            yield gauge

    def _match_metric(self) -> Metric:
        bounds = [*map(str, MATCH_BUCKETS_SECONDS), "+Inf"]
        counts = accumulate(self._driver.match_counts)
        return HistogramMetricFamily(
            "headgate_match_seconds",
            "Time to match and route what one read brought.",
            buckets=[(bound, float(count)) for bound, count in zip(bounds, counts, strict=True)],
            sum_value=self._driver.match_seconds,
        )


class _Detailed(Collector):
    """Only what waits for some durable subscriptions."""

    def __init__(self, collector: BrokerCollector, names: Sequence[str]) -> None:
        self._collector = collector
        self._names = names

    def collect(self) -> Iterator[Metric]:
        """Every metric, once."""
        return self._collector.of_durables(self._names)


def render(collector: BrokerCollector) -> bytes:
    """The text that Prometheus scrapes."""
    return _text(collector)


def render_detailed(collector: BrokerCollector, names: Sequence[str]) -> bytes:
    """The same of these durable subscriptions alone."""
    return _text(_Detailed(collector, names))


def _text(collector: Collector) -> bytes:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry)


def _by_label(name: str, text: str, label: str, counts: dict[str, int]) -> Metric:
    counter = CounterMetricFamily(name, text, labels=[label])
    for value, count in sorted(counts.items()):
        counter.add_metric([value], count)
    return counter
