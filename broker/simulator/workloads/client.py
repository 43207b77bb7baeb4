"""A simulated client: a small deterministic state machine that subscribes, publishes, loses its connection, comes back.

It keeps the rules of the wire as an application's library would: sequences without holes, everything unacknowledged
sent again after a resume, every unanswered request asked again, credit granted as deliveries are taken, false positives
of XPATH removed as the broker says. It knows nothing of what is right; it tells the checkers what it got. A
ClusterClient knows all brokers of a cluster, and goes to another one when its own does not answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from headgate.protocol.data import Batch, Portion, decode_record
from headgate.protocol.errors import ErrorCode, HeadgateError
from headgate.protocol.messages import (
    Answer,
    Ask,
    Credit,
    Deliver,
    Error,
    Gap,
    Goodbye,
    Hello,
    Interest,
    Message,
    Mode,
    Ping,
    Puback,
    Publish,
    Scope,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)
from headgate.protocol.structure import Check

from ..engine import ClusterWorld, Connection, Host, Network
from ..limits import UNACKNOWLEDGED_MAX
from .drawn import STREAMS, Traits, Workload, document_of, event_name, has
from .history import Amendment, ClusterHistory, History, SubscriptionLog, Words

__all__ = ["Client", "ClientWatcher", "ClusterClient", "Delivery"]

_HEARTBEAT_SECONDS = 4.0
_STAYS_AWAY_PROBABILITY = 0.1
_SAID_TWICE = (ErrorCode.DUPLICATE, ErrorCode.NOT_FOUND)
_CONFLATED = 4
"""Each subscription whose number this divides keeps the newest event of each topic when it is slow."""


@dataclass(slots=True)
class Delivery:
    """One event as one subscription received it."""

    number: int
    name: str
    topic: str
    record: bytes
    event_id: tuple[str, int]


class ClientWatcher(Protocol):
    """Observer of what clients receive."""

    def delivered(self, client: Client, log: SubscriptionLog | None, delivery: Delivery) -> None:
        """An event came for a subscription; `log` is None when the client knows no such subscription."""

    def portion(self, client: Client, portion: Portion) -> None:
        """A DELIVER came, before its events are counted."""

    def gap(self, client: Client, log: SubscriptionLog | None, gap: Gap) -> None:
        """A GAP came; `log` is None and the number 0 when it concerns the whole session."""

    def refused(self, client: Client, request: Message | None, error: Error) -> None:
        """A request was refused; None when the client asked nothing of that number."""

    def acknowledged(self, client: Client, sequence: int) -> None:
        """A PUBACK came."""

    def turned_away(self, client: Client, error: Error | Goodbye) -> None:
        """The broker ended the connection."""


class Client:
    """One client: it acts at random times, and answers what the broker sends."""

    def __init__(
        self,
        name: str,
        host: Host | None,
        network: Network,
        history: History,
        watchers: Iterable[ClientWatcher],
        workload: Workload,
        traits: Traits,
    ) -> None:
        self.name = name
        self.traits = traits
        self.active = True
        self.away = False
        self.connection: Connection | None = None
        self.open = False
        self.key = b""
        self.sessions = 0
        self.received = self.allowed = 0
        self.losses = 0
        self.session_gap = 0
        self.sequence = 0
        self.acknowledged = 0
        self.unacknowledged: deque[tuple[int, Batch]] = deque()
        self.pending: dict[int, Message] = {}
        self.resent: dict[int, None] = {}
        self.asked_twice: dict[int, None] = {}
        self.subscriptions: dict[int, SubscriptionLog] = {}
        self.over: list[SubscriptionLog] = []
        self.interest: dict[str, list[str] | None] = {}
        self.unknown_outcomes = 0
        self.dismissed = False
        self._host = host
        self._network = network
        self._world = network.world
        self._history = history
        self._watchers = tuple(watchers)
        self._workload = workload
        self._request = 0
        self._batches = 0
        self._table: dict[type, Callable[[Any], None]] = {
            Welcome: self._welcome,
            Deliver: self._deliver,
            Gap: self._gap,
            Suback: self._suback,
            Unsuback: self._unsuback,
            Puback: self._puback,
            Interest: self._interest,
            Answer: self._answer,
            Error: self._error,
            Goodbye: self._ended,
            Ping: lambda ping: None,  # WELCOME came on this connection
        }

    # --- What it does ------------------------------------------------------------------------------------------------

    def dial(self) -> None:
        """Connect, and resume the session if there is one."""
        if self.connection is None and not self.away and self._host is not None:
            self.connection = self._network.dial(self._host, self)
            self.allowed = self.received + self.traits.credit
            hello = Hello(
                name=self.name,
                session=self.key,
                received=self.received,
                credit=self.traits.credit,
                heartbeat_seconds=_HEARTBEAT_SECONDS,
            )
            self.connection.client_send(hello)

    def think(self) -> None:
        """Act at random times, until the quiet phase."""
        if self.active:
            self.act()
            self._world.after(self._world.random.expovariate(1.0 / self.traits.think_seconds), self.think)

    def act(self) -> None:
        """Do one random thing."""
        if not self.open:
            return
        draw, wanted = self._world.random.random(), len(self.subscriptions)
        if draw < 0.15 and wanted < self.traits.subscriptions_max:
            self.subscribe()
        elif draw < 0.22 and wanted:
            self.unsubscribe()
        elif draw < 0.25:
            self._ask_for("status")
        elif self.traits.publishes and len(self.unacknowledged) < UNACKNOWLEDGED_MAX:
            self.publish()

    def subscribe(self) -> None:
        """Subscribe. A number is used again as soon as it is free."""
        pattern, condition, exact, _ = self._workload.subscription(self.traits.bad_probability)
        number = next(one for one in range(1, len(self.subscriptions) + 2) if one not in self.subscriptions)
        self._subscribe_to(number, pattern, condition, exact)

    def unsubscribe(self) -> None:
        """Unsubscribe from a subscription that is in force."""
        ready = [log for log in self.subscriptions.values() if log.acknowledged and not log.over]
        if ready:
            log = self._world.random.choice(ready)
            log.over = True
            self._ask(Unsubscribe(self._next_request(), log.number))

    def publish(self) -> None:
        """Publish a batch, mostly with acknowledgement; some are spoiled."""
        random = self._world.random
        self._batches += 1
        name = self._workload.batch_name(self.name, self.sessions, self._batches)
        batch = self._workload.batch(name, self.traits, self.interest)
        spoiled = random.random() < self.traits.bad_probability
        if spoiled:
            spoiled_batch = self._workload.spoil(batch)
            self._history.published(self.name, spoiled_batch, True)
            self._publish(spoiled_batch)
        elif random.random() < 0.1:
            self._history.published(self.name, batch, False)
            self._say(Publish(0, Mode.FIRE, batch))
        else:
            self._history.published(self.name, batch, False)
            self._publish(batch)

    def leave(self) -> None:
        """Send GOODBYE, and do not come back."""
        self.active = False
        self.away = True
        self._say(Goodbye(ErrorCode.GOODBYE, ""))

    # --- What it hears -----------------------------------------------------------------------------------------------

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """Handle the messages of one read."""
        if connection is self.connection:
            for message in messages:
                self._table[type(message)](message)

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The connection ended: reconnect soon, or after the grace."""
        if connection is not self.connection:
            return
        self.connection = None
        self.open = False
        self.losses += 1
        random = self._world.random
        stays_away = self.active and random.random() < _STAYS_AWAY_PROBABILITY
        self._world.after(random.uniform(9.0, 14.0) if stays_away else random.uniform(0.01, 2.0), self.dial)

    def _welcome(self, welcome: Welcome) -> None:
        self.open = True
        if welcome.resumed:
            self._resume(welcome.accepted)
        else:
            self._begin(welcome.session)

    def _resume(self, accepted: int) -> None:
        if not self.traits.forgetful:
            while self.unacknowledged and self.unacknowledged[0][0] <= accepted:
                self.acknowledged = self.unacknowledged.popleft()[0]
        for sequence, batch in self.unacknowledged:
            self._say(Publish(sequence, Mode.ACCEPTED, batch))
        for request, message in list(self.pending.items()):
            self.resent[request] = self.asked_twice[request] = None
            self._say(message)
        for log in self.subscriptions.values():
            if log.amendment is not None:
                log.amendment.resent = True

    def _begin(self, key: bytes) -> None:
        """A new session began: what became of batches under way is unknown; every subscription is asked for again."""
        self.key = key
        self.sessions += 1
        self.received = 0
        self.allowed = self.traits.credit
        self.losses = self.session_gap = 0
        self.unknown_outcomes += len(self.unacknowledged)
        self.unacknowledged.clear()
        self.sequence = self.acknowledged = 0
        self.pending.clear()
        self.resent.clear()
        self.interest.clear()
        wanted = [log for log in self.subscriptions.values() if not log.over]
        for log in self.subscriptions.values():
            log.over = True
            self.over.append(log)
        self.subscriptions.clear()
        for log in wanted:
            self._subscribe_to(log.number, log.words.pattern_text, log.words.condition_text, log.words.exact)

    def _deliver(self, message: Deliver) -> None:
        portion, row = message.portion, 0
        for watcher in self._watchers:
            watcher.portion(self, portion)
        rows = _rows(portion)
        for numbers, count in message.runs():
            for topic, record, event_id in rows[row : row + count]:
                name = event_name(decode_record(record)[1])
                for number in numbers:
                    self._taken(Delivery(number, name, topic, record, event_id))
            row += count
        self.received += portion.count
        if self.allowed - self.received <= self.traits.credit // 2:
            if self.traits.grant_seconds and self.active:
                connection = self.connection
                self._world.after(self.traits.grant_seconds, lambda: self._grant(connection))
            else:
                self._grant(self.connection)

    def _taken(self, delivery: Delivery) -> None:
        """One event for one subscription; what it asks of documents is known from SUBACK on, and waited for."""
        log = self.subscriptions.get(delivery.number)
        if log is not None and not log.acknowledged and log.words.checks:
            log.held.append(partial(self._taken, delivery))
        elif log is not None and log.checks and not has(log.checks, document_of(decode_record(delivery.record)[1])):
            log.removed += 1
        else:
            for watcher in self._watchers:
                watcher.delivered(self, log, delivery)

    def _grant(self, connection: Connection | None) -> None:
        if self.open and connection is self.connection:
            self.allowed = max(self.allowed, self.received + self.traits.credit)
            self._say(Credit(self.allowed, self.received))

    def _gap(self, gap: Gap) -> None:
        if gap.subscription == 0:
            self.session_gap += gap.count
        log = self.subscriptions.get(gap.subscription)
        for watcher in self._watchers:
            watcher.gap(self, log, gap)

    def _suback(self, message: Suback) -> None:
        log = self.subscriptions[message.subscription]
        log.checks = _checks(message.checks)
        if message.request:
            self._answered(message.request)
            self._confirmed(log)

    @staticmethod
    def _confirmed(log: SubscriptionLog) -> None:
        log.acknowledged = True
        held, log.held = log.held, []
        for take in held:
            take()

    def _unsuback(self, message: Unsuback) -> None:
        self._answered(message.request)
        self._gone(message.subscription)

    def _gone(self, number: int) -> None:
        log = self.subscriptions.pop(number)
        log.over = True
        self.over.append(log)

    def _puback(self, message: Puback) -> None:
        for watcher in self._watchers:
            watcher.acknowledged(self, message.sequence)
        while self.unacknowledged and self.unacknowledged[0][0] <= message.sequence:
            self.acknowledged = self.unacknowledged.popleft()[0]

    def _interest(self, message: Interest) -> None:
        self.interest[message.stream] = message.attributes

    def _answer(self, answer: Answer) -> None:
        self._answered(answer.request)

    def _error(self, error: Error) -> None:
        if error.scope == Scope.CONNECTION:
            self._ended(error)
        elif error.scope == Scope.REQUEST:
            self._request_refused(error)

    def _request_refused(self, error: Error) -> None:
        resent = error.reference in self.resent
        request = self._answered(error.reference)
        if request is None and error.reference in self.asked_twice and error.code in _SAID_TWICE:
            return  # the answer to the first request crossed the second
        if isinstance(request, Subscribe) and resent and error.code == ErrorCode.DUPLICATE:
            self._confirmed(self.subscriptions[request.subscription])  # the SUBACK was lost, not the SUBSCRIBE
        elif isinstance(request, Unsubscribe) and resent and error.code == ErrorCode.NOT_FOUND:
            self._gone(request.subscription)
        else:
            for watcher in self._watchers:
                watcher.refused(self, request, error)
            if isinstance(request, Subscribe):
                self._gone(request.subscription)

    def _ended(self, message: Error | Goodbye) -> None:
        self.dismissed = self.open and message.code == ErrorCode.SHUTTING_DOWN
        self.open = False
        for watcher in self._watchers:
            watcher.turned_away(self, message)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _publish(self, batch: Batch) -> None:
        self.sequence += 1
        self.unacknowledged.append((self.sequence, batch))
        self._say(Publish(self.sequence, Mode.ACCEPTED, batch))

    def _subscribe_to(self, number: int, pattern: str, condition: str, exact: bool) -> None:
        options: dict[str, object] = {"exact": True} if exact else {}
        if number % _CONFLATED == 0:
            options["slow"] = "conflate"
        message = Subscribe(self._next_request(), number, pattern, condition, options)
        self.subscriptions[number] = self._history.subscribing(self.name, message)
        self._ask(message)

    def _ask_for(self, verb: str) -> None:
        self._ask(Ask(self._next_request(), verb, {}))

    def _next_request(self) -> int:
        self._request += 1
        return self._request

    def _ask(self, message: Any) -> None:
        self.pending[message.request] = message
        self._say(message)

    def _answered(self, request: int) -> Message | None:
        self.resent.pop(request, None)
        return self.pending.pop(request, None)

    def _say(self, message: Message) -> None:
        if self.connection is not None:
            self.connection.client_send(message)


def _rows(portion: Portion) -> list[tuple[str, bytes, tuple[str, int]]]:
    """(topic, record, event id) of every event of a portion."""
    batch = Batch(portion.topics, portion.count, portion.lengths, portion.records)
    topics, pieces, rows = batch.topic_list(), batch.pieces(), portion.rows()
    if len(topics) == 1:
        topics = topics * portion.count
    ids = [(portion.origin, portion.base + row) for row in rows]
    return list(zip(topics, pieces, ids, strict=True))


def _checks(said: Iterable[Sequence[Any]]) -> tuple[Check, ...]:
    return tuple(Check(xpath, tuple(items)) for xpath, items in said)


_AMEND_SECONDS = 0.5
"""How often a client amends one of its subscriptions, on the average."""
_WIDENED_MAX = 200
"""Characters of a condition that is made longer."""
_COMES_BACK_PROBABILITY = 0.5
_AGAIN_SECONDS = 0.5
_SCHEMA_PROBABILITY = 0.02

_COUNTED = {"symbol": {"type": "string"}, "live": {"type": "bool"}, "body.order.qty": {"type": "float"}}
"""Attributes that a schema declares for streams with the placement counting, beside those with bounds."""


class ClusterClient(Client):
    """A client that connects to any broker of a cluster, and sometimes declares the attributes of a stream."""

    def __init__(
        self,
        name: str,
        world: ClusterWorld,
        history: ClusterHistory,
        watchers: Iterable[ClientWatcher],
        workload: Workload,
        traits: Traits,
        placement: str = "anchored",
        structure: str = "",
        amender: Workload | None = None,
    ) -> None:
        super().__init__(name, None, world.clients, history, watchers, workload, traits)
        self._placement = placement
        self._amender = amender
        """Draws what subscriptions are amended to; with chance of its own, so that the rest of a run keeps its."""
        self._structure = structure
        self._undeclared = list(STREAMS) if placement == "counting" or structure else []
        self._cluster = world
        self._history: ClusterHistory = history

    def act(self) -> None:
        """As any client; now and then it declares the attributes of a stream, so that ranges rest on arcs, and with
        another placement than is usual before it does anything else."""
        if self.open and self._undeclared:
            self.declare(self._undeclared.pop())
        elif self.open and self._world.random.random() < _SCHEMA_PROBABILITY:
            self.declare()
        else:
            super().act()

    def think_again(self) -> None:
        """Amend subscriptions at random times, until the quiet phase."""
        if self.active and self._amender is not None:
            if self.open:
                self.amend(self._amender)
            self._world.after(self._amender.random.expovariate(1.0 / _AMEND_SECONDS), self.think_again)

    def amend(self, amender: Workload) -> None:
        """Ask for something else by one of the subscriptions, be it in force or not yet: mostly for a part of the
        topics or values that it asks for already."""
        ready = [log for log in self.subscriptions.values() if not log.over and log.amendment is None]
        if not ready:
            return
        random = amender.random
        log = random.choice(ready)
        pattern, condition, exact, _ = amender.subscription(self.traits.bad_probability)
        if random.random() < 0.5:
            pattern, exact = log.words.pattern_text, log.words.exact
        if 0 < len(log.words.condition_text) < _WIDENED_MAX and random.random() < 0.4:
            word = random.choice(("AND", "OR"))
            condition = f"({log.words.condition_text}) {word} ({condition or amender.condition()})"
        wish = {"subscription": log.number, "pattern": pattern, "where": condition, "exact": exact}
        message = Ask(self._next_request(), "amend", wish)
        self._history.amending(self.name, message.request, Amendment(log, Words.of(pattern, condition, exact)))
        self._ask(message)

    def _answer(self, answer: Answer) -> None:
        checks = answer.value.get("checks", ()) if isinstance(answer.value, dict) else ()
        self._amended(answer.request, True, _checks(checks))
        super()._answer(answer)

    def _request_refused(self, error: Error) -> None:
        self._amended(error.reference, False)
        if error.reference in self.pending or (self.name, error.reference) not in self._history.amendments:
            super()._request_refused(error)  # else it was asked twice, or of a subscription that is gone

    def _gone(self, number: int) -> None:
        """The number may be another subscription's soon: what was asked of this one is not asked again."""
        super()._gone(number)
        for request, message in list(self.pending.items()):
            if isinstance(message, Ask) and message.arguments.get("subscription") == number:
                del self.pending[request]

    def _amended(self, request: int, done: bool, checks: tuple[Check, ...] = ()) -> None:
        """The answer stands at the point: what comes behind it is by the new words."""
        amendment = self._history.amendments.get((self.name, request))
        if amendment is None or amendment.log.amendment is not amendment:
            return
        amendment.log.amendment = None
        if done:
            amendment.log.words, amendment.log.checks = amendment.words, checks

    def declare(self, stream: str = "") -> None:
        """Write the schema of this stream, or of any, with one of several domains."""
        random = self._world.random
        stream = stream or random.choice(STREAMS)
        low, high = random.choice(((-1, 10), (0, 9), (8, 9)))
        attributes: dict[str, dict[str, object]] = {
            "price": {"type": "float", "min": low, "max": high, "precision": random.choice((0.01, 0.5))},
            "volume": {"type": "int", "min": -2, "max": 20},
        }
        schema: dict[str, object] = {"attributes": attributes}
        if self._placement == "counting":
            schema = {"attributes": attributes | _COUNTED, "placement": self._placement}
        if self._structure:
            schema["structure.routing"] = self._structure
        self._history.schemas[stream] = None
        self._ask(Ask(self._next_request(), "schema.put", {"stream": stream, "schema": schema}))

    def dial(self) -> None:
        """Connect to the same broker as before, or to any other that runs."""
        if self.connection is not None or self.away:
            return
        random, living = self._cluster.random, [one for one in self._cluster.living() if not one.leaving]
        hosts = [server.host for server in living]
        if not hosts:
            self._cluster.after(_AGAIN_SECONDS, self.dial)
            return
        if self._host not in hosts or random.random() >= _COMES_BACK_PROBABILITY:
            self._host = random.choice(hosts)
        super().dial()
