"""The history of a run: what was published, subscribed to, accepted by brokers and delivered to clients.

The broker's side is written by a simple model that reads the inputs of Hosts and only those effects that are answers.
It computes by the plain meaning alone what each subscription must be sent:

    History          one broker: a subscription is in force from the place of its SUBSCRIBE in the input, if SUBACK
                     followed; a batch counts if its sequence is the next one and no ERROR names it. (The broker keeps
                     the ERRORs for a client that is disconnected until its session is resumed; the model asks the
                     broker for these.)
    ClusterHistory   a cluster: a subscription is in force from the step in which its SUBACK went out until its
                     UNSUBSCRIBE comes in or its session ends. Whatever any broker accepts in between is expected.
                     Losses that no broker can know of are excused and counted: see Incidents
    LogHistory       a log: what was published, what of it was acknowledged, and which disks were harmed
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Input, LinkDown, Received
from headgate.broker.core.limits import AMEND_SECONDS
from headgate.matching import (
    MatchingError,
    Pattern,
    Tree,
    evaluate,
    parse_condition,
    parse_pattern,
)
from headgate.matching.structure import parse_twig
from headgate.matching.tree import twigs
from headgate.protocol.data import Batch, Scalar, decode_record
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import (
    Answer,
    Ask,
    Error,
    Goodbye,
    Hello,
    Mode,
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

from ..engine import Host
from ..limits import LOST_ON_THE_WAY_SECONDS, LOST_WITH_STUCK_SECONDS
from .drawn import document_of, event_name, has

__all__ = [
    "Amendment",
    "ClusterHistory",
    "Event",
    "History",
    "Incidents",
    "LogHistory",
    "SessionLog",
    "SubscriptionLog",
    "Words",
]


@dataclass(slots=True)
class Event:
    """One event as its publisher made it. `ordinal` counts the publisher's events."""

    name: str
    publisher: str
    ordinal: int
    topic: str
    record: bytes
    attributes: dict[str, Scalar]
    document: bytes = b""
    event_id: tuple[str, int] | None = None
    accepted_at: float = -1.0
    broker: str = ""


@lru_cache(1024)
def checks_of(condition: Tree) -> tuple[Check, ...]:
    """What a condition asks of documents: nothing, without XPATH."""
    found = [parse_twig(twig).check() for twig in twigs(condition)]
    return tuple(Check(str(xpath), tuple(items)) for xpath, items in found)


@dataclass(frozen=True, slots=True)
class Words:
    """What a subscription asks for, as a client writes it and by its meaning; without a pattern it means nothing."""

    pattern_text: str
    condition_text: str
    exact: bool
    pattern: Pattern | None = None
    condition: Tree | None = None

    @classmethod
    def of(cls, pattern_text: str, condition_text: str, exact: bool) -> Words:
        """Find out what is meant."""
        try:
            pattern = parse_pattern(pattern_text, exact=exact)
            condition = parse_condition(condition_text) if condition_text else None
        except MatchingError:
            return cls(pattern_text, condition_text, exact)
        return cls(pattern_text, condition_text, exact, pattern, condition)

    @property
    def checks(self) -> tuple[Check, ...]:
        """What the condition asks of documents."""
        return () if self.condition is None else checks_of(self.condition)

    def wants(self, event: Event) -> bool:
        """Whether the event is asked for, by the plain meaning of the condition."""
        assert self.pattern is not None
        if not self.pattern.matches(event.topic):
            return False
        if self.condition is not None and evaluate(self.condition, event.attributes) is not True:
            return False
        return not self.checks or has(self.checks, event.document)


@dataclass(slots=True, eq=False)
class Amendment:
    """A client wants one of its subscriptions to ask for something else."""

    log: SubscriptionLog
    words: Words
    heard_at: float = float("inf")
    """When its broker heard that first."""
    answered_at: float = float("inf")
    """When its broker said that the point is passed."""
    resent: bool = False
    """The client does not know whether the point is passed: the answer may have been lost with its connection."""


@dataclass(slots=True, eq=False)
class SubscriptionLog:
    """Record of one subscription of one client, from its request to its last delivery.

    Between the moment when its broker says that it is amended and that when its client reads so it has two meanings:
    `words`, by which its client reads, and `owed`, by which its broker delivers what is accepted from now on.
    """

    client: str
    request: int
    number: int
    words: Words
    in_force: bool = False
    in_force_at: float = float("inf")
    acknowledged: bool = False
    over: bool = False
    expected: list[str] = field(default_factory=list)
    delivered: dict[str, int] = field(default_factory=dict)
    gap: int = 0
    at: int = 0
    owed: Words = field(init=False)
    checks: tuple[Check, ...] = ()
    """What its client asks of documents, as its broker said it last."""
    held: list[Callable[[], None]] = field(default_factory=list)
    """Deliveries that came before SUBACK said so: its client takes them then."""
    removed: int = 0
    """Events that came and did not have it: false positives."""
    amendment: Amendment | None = None
    """The one that has no answer yet."""
    two_ways_until: float = float("-inf")
    """Until when events come by two ways, of what it asked for before and of what it asks for now."""

    def __post_init__(self) -> None:
        self.owed = self.words

    @property
    def readings(self) -> list[Words]:
        """By which words what comes now may be meant: those before the answer, and behind it the new ones."""
        one = self.amendment
        return [self.words, one.words] if one is not None and one.resent else [self.words]


@dataclass(slots=True, eq=False)
class SessionLog:
    """Record of one session, as the broker's side of the history has it."""

    client: str
    accepted: int = 0
    link: int | None = None
    detached: float = 0.0
    broker: str = ""
    life: int = 0
    over: bool = False
    subscriptions: dict[int, SubscriptionLog] = field(default_factory=dict)
    unanswered: dict[int, list[str]] = field(default_factory=dict)
    """Sequence -> the events of a batch that a broker has taken and neither confirmed nor refused."""


class History:
    """Record of a run with one broker: everything that the checkers compare."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.spoiled: dict[tuple[str, str], None] = {}
        self.requested: dict[tuple[str, int], SubscriptionLog] = {}
        self.sessions: dict[bytes, SessionLog] = {}
        self.refused: list[str] = []
        self.broken_resumes: list[str] = []
        self.accepted_events = 0
        self._published: dict[str, int] = {}
        self._by_link: dict[int, SessionLog] = {}

    # --- Told by clients ---------------------------------------------------------------------------------------------

    def published(self, publisher: str, batch: Batch, spoiled: bool) -> None:
        """A client is about to publish this batch."""
        topics = batch.topic_list()
        for row, record in enumerate(batch.pieces()):
            attributes, body, _ = decode_record(record)
            name, ordinal = event_name(body), self._published.get(publisher, 0)
            self._published[publisher] = ordinal + 1
            topic = topics[row if len(topics) > 1 else 0]
            self.events[name] = Event(name, publisher, ordinal, topic, record, attributes, document_of(body))
            if spoiled:
                self.spoiled[publisher, name] = None

    def subscribing(self, client: str, message: Subscribe) -> SubscriptionLog:
        """A client is about to subscribe."""
        words = Words.of(message.pattern, message.condition, message.options.get("exact", False))
        log = SubscriptionLog(client, message.request, message.subscription, words)
        self.requested[client, message.request] = log
        return log

    # --- Seen at the broker ------------------------------------------------------------------------------------------

    def __call__(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """A Host handled one input."""
        now = host.world.now
        if isinstance(happened, Received):
            sent = [effect for effect in effects if isinstance(effect, Send) and effect.link == happened.link]
            answers = [effect.message for effect in sent]
            for message in happened.messages:
                if isinstance(message, Hello):
                    self._hello(host, happened.link, message, answers)
                elif happened.link in self._by_link:
                    self._said(host, self._by_link[happened.link], message, answers)
        elif isinstance(happened, LinkDown):
            self._detached(happened.link, now)

    def _hello(self, host: Host, link: int, hello: Hello, answers: Sequence[object]) -> None:
        welcome = next((answer for answer in answers if isinstance(answer, Welcome)), None)
        if welcome is None:
            return
        known = self.sessions.get(hello.session)
        now, grace = host.world.now, host.node.config.grace_seconds
        if not welcome.resumed:
            if known is not None and not known.over and (known.link is not None or now < known.detached + grace):
                self.broken_resumes.append(f"{known.client} came back within its grace and was a stranger")
            if known is not None:
                known.over = True
            known = self.sessions[welcome.session] = SessionLog(hello.name)
        assert known is not None
        if known.link is not None:
            self._detached(known.link, now)
        known.link = link
        self._by_link[link] = known

    def _detached(self, link: int, now: float) -> None:
        session = self._by_link.pop(link, None)
        if session is not None:
            session.link = None
            session.detached = now

    def _said(self, host: Host, session: SessionLog, message: object, answers: Sequence[object]) -> None:
        if isinstance(message, Publish):
            self._publish(session, message, [*answers, *_kept_answers(host, session)])
        elif isinstance(message, Subscribe):
            if Suback(message.request, message.subscription) in answers:
                log = self.requested[session.client, message.request]
                log.in_force = True
                session.subscriptions[message.subscription] = log
        elif isinstance(message, Unsubscribe):
            if Unsuback(message.request, message.subscription) in answers:
                session.subscriptions.pop(message.subscription).in_force = False
        elif isinstance(message, Goodbye):
            session.over = True
            session.subscriptions.clear()

    def _publish(self, session: SessionLog, message: Publish, answers: Sequence[object]) -> None:
        if message.mode != Mode.FIRE:
            if message.sequence != session.accepted + 1:
                return
            session.accepted = message.sequence
        names = [event_name(decode_record(record)[1]) for record in message.batch.pieces()]
        for answer in answers:
            if isinstance(answer, Error) and answer.scope == Scope.PUBLISH and answer.reference == message.sequence:
                if (session.client, names[0]) not in self.spoiled:
                    self.refused.append(f"{names[0]}: {ErrorCode(answer.code).name}: {answer.text}")
                return
        self.accepted_events += len(names)
        for name in names:
            event = self.events[name]
            for log in session_subscriptions(self.sessions):
                if log.words.wants(event):
                    log.expected.append(name)


def _kept_answers(host: Host, session: SessionLog) -> list[Error]:
    """The ERRORs that the broker keeps for this session until it comes back; none while it is connected."""
    known = None if session.link is None else host.node.subscribers.by_link.get(session.link)
    return (
        [one for one in known.refusals.values() if isinstance(one, Error)]
        if known is not None and known.closing
        else []
    )


def session_subscriptions(sessions: dict[bytes, SessionLog]) -> list[SubscriptionLog]:
    """The subscriptions in force, of all sessions that have not ended."""
    return [log for session in sessions.values() if not session.over for log in session.subscriptions.values()]


@dataclass(frozen=True, slots=True)
class _Incident:
    since: float
    until: float


class Incidents:
    """Times in which accepted events may be lost without a GAP, because the broker that could have counted them died.

    When a broker dies, events may be lost that it had accepted and not yet handed on, or matched and not yet delivered.
    All others are delivered or announced.
    """

    def __init__(self) -> None:
        self._all: list[_Incident] = []
        self.apart_until = float("-inf")
        self.any = False
        """Whether any fault ever happened."""

    def crashed(self, since: float, now: float) -> None:
        """A broker died; the oldest event that it still had to hand on or deliver was accepted then."""
        self._all.append(_Incident(since, now))

    def parted(self) -> None:
        """Brokers were cut off from each other: nothing is promised until `apart` says for which time."""
        self.apart_until = float("inf")

    def apart(self, since: float, until: float) -> None:
        """Brokers could not reach each other in that time: nothing is promised for it."""
        self.apart_until = until
        self._all.append(_Incident(since, until))

    def is_apart(self, now: float) -> bool:
        """Whether brokers cannot reach each other, or could not a while ago."""
        return now < self.apart_until

    def excuse(self, event: Event) -> bool:
        """Whether this event may be missing without a GAP."""
        return any(one.since <= event.accepted_at <= one.until for one in self._all)


def _oldest_in_hand(host: Host) -> float:
    """About when the oldest event was accepted that this broker has not yet handed on or delivered."""
    node, now = host.node, host.world.now
    stuck = any(info.forwards for info in node.peers.by_identifier.values())
    if stuck or any(session.outbox for session in node.peers.sessions.values()):
        return now - LOST_WITH_STUCK_SECONDS
    waiting = (*node.forwarding._waiting, *node.forwarding.gathering)
    return min((task.since for task in waiting), default=now) - LOST_ON_THE_WAY_SECONDS


class ClusterHistory(History):
    """Record of a run with a cluster: what was accepted where and when, and which subscriptions were in force then."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.incidents = Incidents()
        self.schemas: dict[str, None] = {}
        """Streams for which a schema was ever written."""
        self.asked: dict[tuple[str, int, int], SubscriptionLog] = {}
        self.in_force: dict[SubscriptionLog, None] = {}
        self.amendments: dict[tuple[str, int], Amendment] = {}

    def amending(self, client: str, request: int, amendment: Amendment) -> None:
        """A client is about to ask for this by this request."""
        self.amendments[client, request] = amendment
        amendment.log.amendment = amendment

    def subscribing(self, client: str, message: Subscribe) -> SubscriptionLog:
        """A client is about to subscribe."""
        log = super().subscribing(client, message)
        self.asked[client, message.request, message.subscription] = log
        return log

    def __call__(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """A Host handled one input."""
        self.now = host.world.now
        if isinstance(happened, Received):
            answers = [one.message for one in effects if isinstance(one, Send) and one.link == happened.link]
            for message in happened.messages:
                if isinstance(message, Hello):
                    self._hello(host, happened.link, message, answers)
                elif happened.link in self._by_link:
                    self._heard(host, self._by_link[happened.link], message, answers)
        elif isinstance(happened, LinkDown):
            self._detached(happened.link, host.world.now)
        for effect in effects:
            if isinstance(effect, Send) and effect.link in self._by_link:
                self._answered(self._by_link[effect.link], effect.message, host.world.now)

    def died(self, host: Host) -> None:
        """This Host died, and its sessions with it."""
        self.left(host)
        self.incidents.crashed(_oldest_in_hand(host), host.world.now)

    def left(self, host: Host) -> None:
        """This Host is about to stop in order: it hands on what it accepted, then its sessions end."""
        name, life = host.node.config.name, host.node.config.incarnation
        for session in self.sessions.values():
            if (session.broker, session.life) == (name, life):
                self._over(session)

    def _hello(self, host: Host, link: int, hello: Hello, answers: Sequence[object]) -> None:
        before = self.sessions.get(hello.session)
        here = (host.node.config.name, host.node.config.incarnation)
        super()._hello(host, link, hello, answers)
        if before is not None and (before.broker, before.life) != here:
            self.broken_resumes.clear()  # another broker has the session
        for session in self.sessions.values():
            if session.over and session.subscriptions:
                self._over(session)
        known = self._by_link.get(link)
        if known is not None:
            known.broker, known.life = here

    def _heard(self, host: Host, session: SessionLog, message: object, answers: Sequence[object]) -> None:
        if isinstance(message, Publish):
            self._accepted(host, session, message, answers)
        elif isinstance(message, Unsubscribe):
            log = session.subscriptions.pop(message.subscription, None)
            if log is not None:
                self._ended(log)
        elif isinstance(message, Ask):
            amendment = self.amendments.get((session.client, message.request))
            if amendment is not None:
                amendment.heard_at = min(amendment.heard_at, host.world.now)
                amendment.log.two_ways_until = float("inf")
        elif isinstance(message, Goodbye):
            self._over(session)

    def _answered(self, session: SessionLog, message: object, now: float) -> None:
        if isinstance(message, Suback):
            self._placed(session, message, now)
        elif isinstance(message, Answer):
            self._amended(self.amendments.get((session.client, message.request)), now)
        elif isinstance(message, Puback):
            for sequence in [one for one in session.unanswered if one <= message.sequence]:
                del session.unanswered[sequence]
        elif isinstance(message, Error) and message.scope == Scope.REQUEST:
            refused = self.amendments.get((session.client, message.reference))
            if refused is not None:
                refused.log.two_ways_until = now + AMEND_SECONDS
        elif isinstance(message, Error) and message.scope == Scope.PUBLISH:
            names = session.unanswered.pop(message.reference, None)
            if names is not None:
                self._taken_back(session, names, message)

    def _taken_back(self, session: SessionLog, names: list[str], error: Error) -> None:
        """A batch that waited until its broker knew its stream, and was refused then: nobody is owed it."""
        self._judge_refusal(session, names, error)
        self.accepted_events -= len(names)
        for name in names:
            self.events[name].accepted_at, self.events[name].broker = -1.0, ""
            for log in self.asked.values():
                if name in log.expected:
                    log.expected.remove(name)

    def _judge_refusal(self, session: SessionLog, names: list[str], error: Error) -> None:
        if (session.client, names[0]) not in self.spoiled and error.code != ErrorCode.UNAVAILABLE:
            self.refused.append(f"{names[0]}: {ErrorCode(error.code).name}: {error.text}")

    def _placed(self, session: SessionLog, message: Suback, now: float) -> None:
        log = self.asked.get((session.client, message.request, message.subscription))
        if log is not None and not log.in_force and not log.over:
            log.in_force, log.in_force_at = True, now
            session.subscriptions[message.subscription] = log
            self.in_force[log] = None

    def _amended(self, amendment: Amendment | None, now: float) -> None:
        """Its broker says that the point is passed. What both words want is owed all along, and what only the new ones
        want from now on; what only the old ones want, unless it may have been undecided at the point: accepted since
        the broker heard of the amendment, or so shortly before that it was still on its way."""
        if amendment is None or amendment.answered_at <= now:
            return
        amendment.answered_at, log = now, amendment.log
        on_its_way = LOST_WITH_STUCK_SECONDS if self.incidents.any else LOST_ON_THE_WAY_SECONDS
        decided_until = amendment.heard_at - on_its_way
        log.expected = [
            name
            for name in log.expected
            if self.events[name].accepted_at < decided_until or amendment.words.wants(self.events[name])
        ]
        log.owed, log.two_ways_until = amendment.words, now + AMEND_SECONDS

    def amended_since(self, since: float, log: SubscriptionLog | None = None) -> int:
        """How often this subscription was amended; without one, all of them together."""
        times = [one.answered_at for one in self.amendments.values() if log is None or one.log is log]
        return sum(since <= at < float("inf") for at in times)

    def _ended(self, log: SubscriptionLog) -> None:
        log.in_force = False
        self.in_force.pop(log, None)

    def _over(self, session: SessionLog) -> None:
        session.over = True
        for log in session.subscriptions.values():
            self._ended(log)
        session.subscriptions.clear()

    def _accepted(self, host: Host, session: SessionLog, message: Publish, answers: Sequence[object]) -> None:
        if message.mode != Mode.FIRE:
            if message.sequence != session.accepted + 1:
                return
            session.accepted = message.sequence
        names = [event_name(decode_record(record)[1]) for record in message.batch.pieces()]
        for answer in answers:
            if isinstance(answer, Error) and answer.scope == Scope.PUBLISH and answer.reference == message.sequence:
                self._judge_refusal(session, names, answer)
                return
        if message.mode != Mode.FIRE:
            session.unanswered[message.sequence] = names
        self.accepted_events += len(names)
        now = host.world.now
        for name in names:
            event = self.events[name]
            event.accepted_at, event.broker = now, host.node.config.name
            for log in self.in_force:
                if log.in_force_at < now and log.owed.wants(event):
                    log.expected.append(name)


@dataclass(slots=True)
class LogHistory:
    """Record of a run with logs. Events are known by their names, which are never used twice."""

    published: dict[str, float] = field(default_factory=dict)
    acknowledged: dict[str, float] = field(default_factory=dict)
    harmed: dict[str, float] = field(default_factory=dict)
    """Broker -> when its disk last lost something that it had confirmed."""
    refused: int = 0
    opened: int = 0
    resent: int = 0
