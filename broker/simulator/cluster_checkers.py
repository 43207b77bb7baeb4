"""Checkers of a cluster: what clients must see of it, whatever happens to its brokers.

The checkers of one broker that speak of what a client gets hold here as they are. These take the place of those that
compare with the one broker that there was.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.placement import plan
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Gap, Goodbye, Message, Subscribe

from .checkers import Checker, CreditKept, NoDuplicates, NothingUnexpected, OnlyMatching
from .client import Client, Delivery
from .cluster_history import ClusterHistory
from .history import SubscriptionLog

__all__ = [
    "CLUSTER_CHECKERS",
    "AcceptedOnce",
    "Answered",
    "ClusterChecker",
    "DeliveredOrAnnounced",
    "OnlyAsked",
    "OrderOfOneAnchor",
]


class ClusterChecker(Checker):
    """One that knows what happened to brokers."""

    history: ClusterHistory


class DeliveredOrAnnounced(ClusterChecker):
    """What any broker accepted after SUBACK is delivered or announced in a GAP; without incidents, and without lost
    connections, it is exactly what was delivered."""

    def gap(self, client: Client, log: SubscriptionLog | None, gap: Gap) -> None:
        """Add up."""
        if log is not None:
            log.gap += gap.count

    def finish(self, clients: Sequence[Client]) -> None:
        """Compare what came with what had to come."""
        incidents = self.history.incidents
        for client in clients:
            for log in client.subscriptions.values():
                missing = [self.history.events[name] for name in log.expected if name not in log.delivered]
                counted = [event for event in missing if not incidents.excuse(event)]
                announced = log.gap + client.session_gap
                if len(counted) > announced:
                    first = counted[0]
                    self.fail(
                        f"{client.name}, subscription {log.number} ({log.pattern_text} {log.condition_text!r}), in "
                        f"force since {log.in_force_at:.3f}, misses {len(counted)} of {len(log.expected)} and heard "
                        f"of {log.gap} and {client.session_gap}: first {first.name} at {first.accepted_at:.3f} by "
                        f"{first.broker}"
                    )


class OnlyAsked(ClusterChecker):
    """Nothing comes for a subscription that was not asked for, or after its UNSUBACK. It may come before SUBACK, which
    says that nothing is missed from then on, and waits for all brokers."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """The client must know it."""
        if log is None:
            self.fail(f"{client.name} got something for subscription {delivery.number}, which it does not have")

    def gap(self, client: Client, log: SubscriptionLog | None, gap: Gap) -> None:
        """And so for gaps."""
        if log is None and gap.subscription != 0:
            self.fail(f"{client.name} got a GAP for subscription {gap.subscription}, which it does not have")


class OrderOfOneAnchor(ClusterChecker):
    """While nothing goes wrong, what one publisher published reaches a subscription that rests at one key in order."""

    def __init__(self, history: ClusterHistory) -> None:
        super().__init__(history)
        self._last: dict[tuple[SubscriptionLog, str], tuple[float, int]] = {}

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """Ordinals grow."""
        event = self.history.events.get(delivery.name)
        if log is None or event is None or log.pattern is None or self.history.incidents.any:
            return
        if log.pattern.stream in self.history.schemas:
            return  # then it may rest on an arc
        anchor = plan(log.pattern, log.condition, None)
        if len(anchor.segments) != 1 or anchor.segments[0].low != anchor.segments[0].high:
            return
        _, last = self._last.get((log, event.publisher), (0.0, -1))
        if event.ordinal < last:
            self.fail(f"{client.name} got {event.name} after number {last} of the same publisher")
        self._last[log, event.publisher] = (event.accepted_at, event.ordinal)


class AcceptedOnce(ClusterChecker):
    """A batch that is sent again is recognised: an event never has two ids."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """Remember the first id."""
        event = self.history.events.get(delivery.name)
        if event is not None:
            if event.event_id is not None and event.event_id != delivery.event_id:
                self.fail(f"{event.name} was accepted twice, as {event.event_id} and {delivery.event_id}")
            event.event_id = delivery.event_id


class Answered(ClusterChecker):
    """Every publish and every request has its answer; refusals are deserved."""

    def refused(self, client: Client, request: Message | None, error: Error) -> None:
        """Only what does not parse or is not served may be refused, or what no broker answers for."""
        codes = (ErrorCode.BAD_CONDITION, ErrorCode.BAD_PATTERN, ErrorCode.UNSUPPORTED)
        unavailable = error.code == ErrorCode.UNAVAILABLE and self.history.incidents.any
        if not unavailable and (not isinstance(request, Subscribe) or error.code not in codes):
            self.fail(f"{client.name} was refused {request}: {error.text}")

    def acknowledged(self, client: Client, sequence: int) -> None:
        """Only what was sent can be acknowledged, and never less than before."""
        if not client.acknowledged <= sequence <= client.sequence:
            text = f"{client.name} got PUBACK {sequence} after {client.acknowledged}, having sent {client.sequence}"
            self.fail(text)

    def turned_away(self, client: Client, error: Error | Goodbye) -> None:
        """Connections end for silence, slowness, a broker's end, or a session that goes on elsewhere."""
        codes = (ErrorCode.TIMEOUT, ErrorCode.REPLACED, ErrorCode.SLOW_CONSUMER, ErrorCode.GOODBYE)
        if error.code not in (*codes, ErrorCode.SHUTTING_DOWN):
            self.fail(f"{client.name} was turned away: {error.code} {error.text}")

    def finish(self, clients: Sequence[Client]) -> None:
        """Nothing is open, and no good batch was refused."""
        if self.history.refused:
            self.fail(f"a good batch was refused: {self.history.refused[0]}")
        if self.history.broken_resumes:
            self.fail(self.history.broken_resumes[0])
        for client in clients:
            if not client.open:
                self.fail(f"{client.name} has no connection")
            if client.pending or client.unacknowledged:
                waiting = f"{list(client.pending.values())} and {len(client.unacknowledged)} batches"
                self.fail(f"{client.name} waits for answers to {waiting}")


CLUSTER_CHECKERS: tuple[type[Checker], ...] = (
    NothingUnexpected,
    OnlyMatching,
    OnlyAsked,
    NoDuplicates,
    OrderOfOneAnchor,
    AcceptedOnce,
    CreditKept,
    DeliveredOrAnnounced,
    Answered,
)
"""In the order in which they look."""
