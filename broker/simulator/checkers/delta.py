"""Checker of DELTA: after each event, what the subscriber has is within c of what the source said.

A topic is the walk of one publisher's session, so there is an order. An event that matches all but DELTA, and did not
come, must be within the band around what the subscriber had; or within that around another that did not come, if a GAP
was heard after it was accepted: the broker that had put that one into an outbox could not know yet that it never
arrives. Everything else is missing, and every missing event has to be counted in a GAP.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.matching import deltas
from headgate.matching.dynamic import band_of, moved, reading
from headgate.protocol.messages import Gap

from ..workloads import Client, ClusterHistory, Delivery, Event, SubscriptionLog
from .checker import Checker

__all__ = ["BoundKept"]

_CLOCK_SECONDS = 0.01
"""The time of an event is that of its broker's clock, and a little later than its batch came in."""


class BoundKept(Checker):
    """The bound of every DELTA subscription, topic by topic. Counts deliveries that need not have come."""

    def __init__(self, history: ClusterHistory) -> None:
        self.history = history
        self.extra = self.suppressed = self.wanted = 0
        self._heard: dict[object, float] = {}
        """When the last GAP came, of a subscription or of a client's session."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """What is no number is not delivered."""
        event = self.history.events.get(delivery.name)
        if log is None or log.words.condition is None or event is None:
            return
        for one in deltas(log.words.condition):
            if reading(event.attributes.get(one.attribute)) is None:
                self.fail(f"{client.name} got {event.name}, whose {one.attribute} is no number")

    def gap(self, client: Client, log: SubscriptionLog | None, gap: Gap) -> None:
        """Note when it was heard."""
        self._heard[client if log is None else log] = self.history.now

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """Walk through the topics of every subscription that is still there."""
        for client in clients:
            for log in client.subscriptions.values():
                if log.words.condition is not None and deltas(log.words.condition):
                    self._judge(client, log)

    def _judge(self, client: Client, log: SubscriptionLog) -> None:
        heard = max(self._heard.get(log, -1.0), self._heard.get(client, -1.0))
        expected = dict.fromkeys(log.expected)
        topics: dict[str, list[Event]] = {}
        for event in self.history.events.values():
            if event.name in expected or event.name in log.delivered:
                topics.setdefault(event.topic, []).append(event)
        missing: list[Event] = []
        for events in topics.values():
            missing += self._missing(log, sorted(events, key=lambda one: one.ordinal), heard)
        counted = [event for event in missing if not self.history.incidents.excuse(event)]
        if len(counted) > log.gap + client.session_gap or any(event.accepted_at > heard for event in counted):
            first = max(counted, key=lambda one: one.accepted_at)
            about = f"{client.name}, subscription {log.number} ({log.words.pattern_text} {log.words.condition_text!r})"
            about += f", in force since {log.in_force_at:.3f}, misses {len(counted)} and heard of {log.gap} and "
            about += f"{client.session_gap}, last at {heard:.3f}: {first.name} of {first.topic}, "
            self.fail(f"{about}{first.attributes['price']} at {first.accepted_at:.3f} by {first.broker}")

    def _missing(self, log: SubscriptionLog, events: Sequence[Event], heard: float) -> list[Event]:
        """Of the events of one topic, in order, those that are missing."""
        missing: list[Event] = []
        has: Event | None = None
        unheard: list[Event] = []  # that did not come since `has` did
        for event in events:
            if not _is_number(log, event):
                continue
            if event.name in log.delivered:
                self.wanted += 1
                self.extra += has is not None and not unheard and not _wants(log, event, has, -_CLOCK_SECONDS)
                has, unheard = event, []
                continue
            around = [has] if has is not None else []
            if event.accepted_at <= heard or self.history.incidents.excuse(event):
                around += unheard
            if any(not _wants(log, event, one, _CLOCK_SECONDS) for one in around):
                self.suppressed += 1
                continue
            missing.append(event)
            unheard.append(event)
        return missing


def _is_number(log: SubscriptionLog, event: Event) -> bool:
    assert log.words.condition is not None
    return all(reading(event.attributes.get(one.attribute)) is not None for one in deltas(log.words.condition))


def _wants(log: SubscriptionLog, event: Event, reference: Event, patience: float) -> bool:
    """Whether the event is to be delivered after the other one, with so much patience for a heartbeat."""
    assert log.words.condition is not None
    for delta in deltas(log.words.condition):
        band = band_of(delta)
        value, before = (reading(one.attributes.get(delta.attribute)) for one in (event, reference))
        assert value is not None and before is not None
        silent = band.heartbeat_seconds is not None and (
            event.accepted_at >= reference.accepted_at + band.heartbeat_seconds + patience
        )
        if not silent and not moved(value, before, band):
            return False
    return True
