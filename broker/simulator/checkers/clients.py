"""Checkers of what clients see: one class for each promise.

The first one that fails stops the run. A checker sees the steps of Hosts (`step`), what clients get (the rest), and
the quiet end of a run (`finish`). It compares with the history only, never with the broker's own idea of what is right.
Those that compare with the one broker that there is have a counterpart for a cluster, which knows what happened to
brokers.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Drain, Input, Received
from headgate.broker.core.limits import AMEND_SECONDS, AMEND_VERSIONS_MAX
from headgate.broker.core.placement import plan
from headgate.matching import deltas
from headgate.protocol.data import Portion
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Ask, Error, Gap, Goodbye, Message, Subscribe

from ..engine import Host, Violation
from ..workloads import Client, ClusterHistory, Delivery, History, SubscriptionLog
from .checker import Checker

__all__ = [
    "AcceptedOnce",
    "AllAnswered",
    "Answered",
    "BoundedOutboxes",
    "CHECKERS",
    "CLUSTER_CHECKERS",
    "CreditKept",
    "DeliveredOrAnnounced",
    "DeservedEndings",
    "NoDuplicates",
    "NothingLost",
    "NothingUnexpected",
    "OnlyAsked",
    "OnlyInForce",
    "OnlyMatching",
    "OrderOfOneAnchor",
    "PublishedOnce",
    "PublisherOrder",
    "SoundNode",
]


class OfClients(Checker):
    """A checker that compares what clients see with the history."""

    def __init__(self, history: History) -> None:
        self.history = history


class NothingUnexpected(OfClients):
    """D1: every delivered event was published, and is the same to the byte."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """Compare topic and record with those published."""
        event = self.history.events.get(delivery.name)
        if event is None:
            self.fail(f"{client.name} got an event that nobody published: {delivery.record!r}")
        elif (event.topic, event.record) != (delivery.topic, delivery.record):
            self.fail(f"{client.name} got {event.name} changed: {delivery.topic!r} {delivery.record!r}")


class OnlyMatching(OfClients):
    """D2: every delivered event is one that its subscription asks for, by the plain meaning."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """Evaluate the condition on the published event; that of before, or of behind the answer that amended it."""
        event = self.history.events.get(delivery.name)
        if log is None or event is None:
            return
        if not any(words.pattern and words.wants(event) for words in log.readings):
            wanted = " nor ".join(f"{words.pattern_text!r} {words.condition_text!r}" for words in log.readings)
            self.fail(f"{client.name} got {event.name}, which {wanted} does not want")


class OnlyAsked(OfClients):
    """Nothing comes for a subscription that was not asked for, or after its UNSUBACK. In a cluster it may come before
    SUBACK, which says that nothing is missed from then on, and waits for all brokers."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """The client must know the subscription."""
        if log is None:
            self.fail(f"{client.name} got something for subscription {delivery.number}, which it does not have")

    def gap(self, client: Client, log: SubscriptionLog | None, gap: Gap) -> None:
        """The same holds for a GAP."""
        if log is None and gap.subscription != 0:
            self.fail(f"{client.name} got a GAP for subscription {gap.subscription}, which it does not have")


class OnlyInForce(OnlyAsked):
    """D3: nothing comes for a subscription that was never in force, or after its UNSUBACK."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """Nothing comes before its SUBACK either."""
        super().delivered(client, log, delivery)
        if log is not None and not log.acknowledged and client.losses == 0:
            self.fail(f"{client.name} got something for subscription {delivery.number} before its SUBACK")


class NoDuplicates(OfClients):
    """L5: a subscription gets an event at most once; ephemeral subscriptions have no redelivery."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """The event must be new to the subscription."""
        event = self.history.events.get(delivery.name)
        if log is not None and event is not None:
            log.delivered[event.name] = log.delivered.get(event.name, 0) + 1
            if log.delivered[event.name] > 1:
                self.fail(f"{client.name} got {event.name} twice for subscription {delivery.number}")


class PublisherOrder(OfClients):
    """D4: what one publisher published reaches a subscription in that order."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._last: dict[tuple[SubscriptionLog, str], int] = {}

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """The ordinals of a publisher's events grow."""
        event = self.history.events.get(delivery.name)
        if log is None or event is None:
            return
        last = self._last.get((log, event.publisher), -1)
        if event.ordinal < last:
            self.fail(f"{client.name} got {event.name} after number {last} of the same publisher")
        self._last[log, event.publisher] = event.ordinal


class NothingLost(OfClients):
    """What was accepted after SUBACK is delivered or announced in a GAP; exactly so while no connection was lost."""

    def gap(self, client: Client, log: SubscriptionLog | None, gap: Gap) -> None:
        """Count the announced loss."""
        if log is not None:
            log.gap += gap.count

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """Compare what came with what had to come, for each subscription."""
        for client in clients:
            for log in client.subscriptions.values():
                missing = [name for name in log.expected if name not in log.delivered]
                about = f"{client.name}, subscription {log.number}: {len(missing)} missing, GAP says {log.gap}"
                if client.losses == 0 and len(missing) != log.gap:
                    self.fail(f"{about}: {missing[:5]}")
                elif len(missing) > log.gap + client.session_gap:
                    self.fail(f"{about} and {client.session_gap} for the session: {missing[:5]}")
                if not client.losses and not missing and list(log.delivered) != log.expected:
                    self.fail(f"{client.name}, subscription {log.number}: not what was expected")


class AcceptedOnce(OfClients):
    """P2: a batch that is sent again is recognised: an event never has two ids."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """An event has one id at all subscriptions."""
        event = self.history.events.get(delivery.name)
        if event is not None:
            if event.event_id is not None and event.event_id != delivery.event_id:
                self.fail(f"{event.name} was accepted twice, as {event.event_id} and {delivery.event_id}")
            event.event_id = delivery.event_id


class PublishedOnce(AcceptedOnce):
    """P2 with one broker: it counts as many events as the history."""

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Compare the two counts."""
        accepted = host.node.statistics(host.world.now).events_received
        if isinstance(happened, Received) and accepted != self.history.accepted_events:
            self.fail(f"the broker took {accepted} events, it should have taken {self.history.accepted_events}")


class CreditKept(OfClients):
    """Q2: a portion is sent only while credit is left, so credit is passed by less than one portion."""

    def portion(self, client: Client, portion: Portion) -> None:
        """Some credit must be left before a portion is counted."""
        if client.received >= client.allowed:
            self.fail(f"{client.name} allowed {client.allowed}, had {client.received}, and got {portion.count} more")


class BoundedOutboxes(OfClients):
    """Q1: each outbox stays within its bound, and all together within theirs."""

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Add up what waits in the outboxes."""
        config, total = host.node.config, 0
        for session in host.node.subscribers.by_key.values():
            size = sum(len(message.portion.records) for message in session.outbox)
            if size > config.outbox_bytes:
                self.fail(f"{size} bytes wait for {session.name}, {config.outbox_bytes} may")
            total += size
        if total > config.outbox_bytes_total:
            self.fail(f"{total} bytes wait in all, {config.outbox_bytes_total} may")


_HEARD_SECONDS = 1.0
"""A refusal reaches its client so soon."""


def is_amendment(request: Message | None) -> bool:
    """Whether a client asked to amend a subscription."""
    return isinstance(request, Ask) and request.verb == "amend"


class AllAnswered(OfClients):
    """L4: every publish and every request has its answer; refusals are deserved."""

    def refused(self, client: Client, request: Message | None, error: Error) -> None:
        """Only what does not parse or is not served may be refused."""
        codes = (ErrorCode.BAD_CONDITION, ErrorCode.BAD_PATTERN, ErrorCode.UNSUPPORTED)
        if not (isinstance(request, Subscribe) or is_amendment(request)) or error.code not in codes:
            self.fail(f"{client.name} was refused {request}: {error.text}")

    def acknowledged(self, client: Client, sequence: int) -> None:
        """Only what was sent can be acknowledged, and never less than before."""
        if not client.acknowledged <= sequence <= client.sequence:
            text = f"{client.name} got PUBACK {sequence} after {client.acknowledged}, having sent {client.sequence}"
            self.fail(text)

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """No valid batch is refused, and every session within its grace is known."""
        self.nothing_refused()

    def nothing_refused(self) -> None:
        """Ask the history whether the refusal was right."""
        if self.history.refused:
            self.fail(f"a good batch was refused: {self.history.refused[0]}")
        if self.history.broken_resumes:
            self.fail(self.history.broken_resumes[0])

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """No request and no batch waits for an answer."""
        for client in clients:
            if not client.open:
                self.fail(f"{client.name} has no connection")
            if client.pending or client.unacknowledged:
                waiting = f"{list(client.pending.values())} and {len(client.unacknowledged)} batches"
                self.fail(f"{client.name} waits for answers to {waiting}")


class DeservedEndings(OfClients):
    """The broker ends a connection only for silence, slowness, its own end, or a session resumed elsewhere."""

    _codes = (ErrorCode.TIMEOUT, ErrorCode.REPLACED, ErrorCode.SLOW_CONSUMER, ErrorCode.GOODBYE)
    _draining = False

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Note that the broker drains."""
        self._draining = self._draining or isinstance(happened, Drain)

    def turned_away(self, client: Client, error: Error | Goodbye) -> None:
        """The code must be one of those."""
        if error.code not in self._codes and not (self._draining and error.code == ErrorCode.SHUTTING_DOWN):
            self.fail(f"{client.name} was turned away: {error.code} {error.text}")


class SoundNode(OfClients):
    """The Node's own invariants hold after every step."""

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Call `validate`."""
        try:
            host.node.validate()
        except AssertionError as error:
            raise Violation(type(self).__name__, f"after {type(happened).__name__}: {error}") from error


CHECKERS: tuple[type[OfClients], ...] = (
    NothingUnexpected,
    OnlyMatching,
    OnlyInForce,
    NoDuplicates,
    PublisherOrder,
    NothingLost,
    PublishedOnce,
    CreditKept,
    BoundedOutboxes,
    AllAnswered,
    DeservedEndings,
    SoundNode,
)
"""In the order in which they are called."""


class DeliveredOrAnnounced(NothingLost):
    """What any broker accepted after SUBACK is delivered or announced in a GAP, but for what an incident excuses."""

    history: ClusterHistory

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """Compare what came with what had to come, for each subscription."""
        incidents = self.history.incidents
        for client in clients:
            for log in client.subscriptions.values():
                if log.words.condition is not None and deltas(log.words.condition):
                    continue  # `delta.py` knows what had to come
                missing = [self.history.events[name] for name in log.expected if name not in log.delivered]
                counted = [event for event in missing if not incidents.excuse(event)]
                announced = log.gap + client.session_gap
                if len(counted) > announced:
                    first = counted[0]
                    words = f"{log.words.pattern_text} {log.words.condition_text!r}"
                    self.fail(
                        f"{client.name}, subscription {log.number} ({words}), in "
                        f"force since {log.in_force_at:.3f}, misses {len(counted)} of {len(log.expected)} and heard "
                        f"of {log.gap} and {client.session_gap}: first {first.name} at {first.accepted_at:.3f} by "
                        f"{first.broker}"
                    )


class OrderOfOneAnchor(PublisherOrder):
    """While nothing goes wrong, what one publisher published reaches a subscription that rests at one key in order."""

    history: ClusterHistory

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """Ordinals grow where the subscription rests at one key."""
        if log is None or log.words.pattern is None or self.history.incidents.any:
            return
        if log.words.pattern.stream in self.history.schemas:
            return  # then the subscription may rest on an arc
        event = self.history.events.get(delivery.name)
        if event is None or event.accepted_at <= log.two_ways_until:
            return
        segments = plan(log.words.pattern, log.words.condition, None).segments
        if len(segments) == 1 and segments[0].low == segments[0].high:
            super().delivered(client, log, delivery)


class Answered(AllAnswered):
    """Every publish and every request has its answer, when all is quiet; refusals are deserved, or no broker answers
    for what was asked, and connections end for a broker's end as well."""

    history: ClusterHistory

    def refused(self, client: Client, request: Message | None, error: Error) -> None:
        """As with one broker; but other brokers may be out of reach. An amendment may find its subscription ended, or
        come too soon after others."""
        if error.code == ErrorCode.UNAVAILABLE and self.history.incidents.any:
            return
        if is_amendment(request) and isinstance(request, Ask):
            log = client.subscriptions.get(request.arguments["subscription"])
            if error.code == ErrorCode.NOT_FOUND and (log is None or log.over):
                return
            lately = self.history.amended_since(self.history.now - AMEND_SECONDS - _HEARD_SECONDS, log)
            if error.code == ErrorCode.UNAVAILABLE and lately >= AMEND_VERSIONS_MAX - 1:
                return
        super().refused(client, request, error)

    def turned_away(self, client: Client, error: Error | Goodbye) -> None:
        """Connections end for silence, slowness, a broker's end, or a session resumed elsewhere."""
        codes = (ErrorCode.TIMEOUT, ErrorCode.REPLACED, ErrorCode.SLOW_CONSUMER, ErrorCode.GOODBYE)
        if error.code not in (*codes, ErrorCode.SHUTTING_DOWN):
            self.fail(f"{client.name} was turned away: {error.code} {error.text}")

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Keep the refusal: it is judged at the end, when the incidents are known."""

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """No request waits for an answer, and no valid batch was refused."""
        self.nothing_refused()
        super().finish(clients)


CLUSTER_CHECKERS: tuple[type[OfClients], ...] = (
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
"""In the order in which they are called."""
