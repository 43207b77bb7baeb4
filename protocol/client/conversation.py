"""Conversation: all that a client has going on with its broker, over however many connections it takes. Without I/O.

The two clients (asyncio, blocking) hold one each and differ only in how they wait:

    1. a connection opened:   session.send(conversation.hello())
    2. messages came:         conversation.handle(message) for each, WELCOME included
    3. then, and whenever something was published, asked or taken:
                              for message in conversation.outgoing(paused): session.send(message)
    4. the connection broke:  conversation.interrupted(reason), and dial again as `Retry` says
    5. it will not come back: conversation.abandon(reason)

After WELCOME the session was resumed or is a new one. Resumed: unanswered SUBSCRIBE and UNSUBSCRIBE are said again; if
the broker then calls one a duplicate, the first one had arrived. New: every subscription is made again under its own
number, with a gap of unknown size noted in it; what was published without an answer has an unknown outcome. That the
broker may be another one than before changes nothing but the words of the gap. Durable subscriptions are attached again
in both cases, because they end with each connection, and miss nothing. Producers are opened when they have
something to send and the broker does not know them: at their first batch, and in every new session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ConnectionLost, ErrorCode, EventsRefused, HeadgateError, LocalError, ProtocolViolation, Refused
from ..limits import (
    BATCH_EVENTS_MAX,
    CREDIT_BYTES_DEFAULT,
    CREDIT_DEFAULT,
    HEARTBEAT_SECONDS_DEFAULT,
    HEARTBEAT_SECONDS_MAX,
    HEARTBEAT_SECONDS_MIN,
    LINGER_EVENTS_DEFAULT,
    LINGER_SECONDS_DEFAULT,
)
from ..messages import (
    Ack,
    Acked,
    Answer,
    Ask,
    Deliver,
    Ended,
    Error,
    Gap,
    Goodbye,
    Handed,
    Hello,
    Interest,
    LogChunk,
    Message,
    Ping,
    Puback,
    ReadLog,
    Rejected,
    Scope,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)
from ..wire import decode, encode
from .dialling import check_seconds
from .durable import DurableInbox
from .limits import DEFAULT_LIMITS, ClientLimits
from .producing import Producer
from .publishing import Publications
from .receiving import Deliveries, Inbox
from .task import Outcome

__all__ = ["ClientOptions", "Conversation"]

_FATAL = frozenset(
    (
        ErrorCode.PROTOCOL,
        ErrorCode.VERSION,
        ErrorCode.UNAUTHORISED,
        ErrorCode.TOO_LARGE,
        ErrorCode.REPLACED,
    )
)
"""Ends that dialling again would only repeat."""

NEW_SESSION = "the session ended; events published since the connection was lost were not seen"
MOVED = "moved to another broker, {}; events published since the connection was lost may not have been seen"


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What a client tells its broker, how it batches, and as which producer it publishes what is to be stored."""

    name: str = ""
    credit: int = CREDIT_DEFAULT
    linger_seconds: float = LINGER_SECONDS_DEFAULT
    batch_events: int = LINGER_EVENTS_DEFAULT
    heartbeat_seconds: float = HEARTBEAT_SECONDS_DEFAULT
    producer: str = ""
    epoch: int = 0
    credit_bytes: int = CREDIT_BYTES_DEFAULT
    limits: ClientLimits = DEFAULT_LIMITS
    credentials: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for name in ("name", "producer"):
            if not isinstance(value := getattr(self, name), str):
                raise LocalError(f"{name} is a string, not {value!r}")
        for name in ("credit", "credit_bytes", "batch_events"):
            if type(value := getattr(self, name)) is not int:
                raise LocalError(f"{name} is a whole number, not {value!r}")
        for name in ("linger_seconds", "heartbeat_seconds"):
            check_seconds(name, getattr(self, name))
        if self.credit < 1:
            raise LocalError(f"credit is how many deliveries may be under way, at least 1, not {self.credit}")
        if self.credit_bytes < 1:
            raise LocalError(f"credit_bytes is how many bytes may be under way, at least 1, not {self.credit_bytes}")
        if not HEARTBEAT_SECONDS_MIN <= self.heartbeat_seconds <= HEARTBEAT_SECONDS_MAX:
            span = f"{HEARTBEAT_SECONDS_MIN:g} to {HEARTBEAT_SECONDS_MAX:g}"
            raise LocalError(f"heartbeat_seconds is {span}, not {self.heartbeat_seconds}")
        if self.producer:
            Producer(self.producer, self.epoch)
        seconds, size = self.heartbeat_seconds, self.credit_bytes
        _check(Hello(name=self.name, credit=self.credit, heartbeat_seconds=seconds, credit_bytes=size))


@dataclass(slots=True)
class _Request:
    """A message that wants an answer."""

    message: Subscribe | Unsubscribe | Ask | ReadLog
    outcome: Outcome
    inbox: Inbox | None = None
    sent: bool = False
    repeated: bool = False
    producer: Producer | None = None

    @property
    def perishable(self) -> bool:
        """It gets no answer when the connection breaks: another broker may know nothing of what it asks for."""
        return isinstance(self.message, Ask | ReadLog) and self.producer is None and self.inbox is None

    @property
    def amends(self) -> bool:
        """It is about what a subscription asks for."""
        return isinstance(self.message, Ask) and self.inbox is not None


def _check(message: Message) -> None:
    """Raises LocalError for what a broker would end the connection for, and everything else on it with that."""
    try:
        decode(encode(message))
    except ProtocolViolation as violation:
        raise LocalError(violation.text) from violation


class Conversation:
    """Holds the session with a broker over all its connections. `outcome` makes what publishes and requests return."""

    def __init__(self, options: ClientOptions, outcome: Callable[[int], Outcome]) -> None:
        self.limits = options.limits
        producer = self.producer(options.producer, options.epoch) if options.producer else None
        batch_events = options.batch_events if options.linger_seconds > 0 else 1
        self.publications = Publications(outcome, batch_events, producer, options.limits)
        self.deliveries = Deliveries(options.credit, options.credit_bytes)
        self.broker = ""
        self.fatal: HeadgateError | None = None
        self.sessions = 0
        self._options = options
        self._outcome = outcome
        self._session_key = b""
        self._requests: dict[int, _Request] = {}
        self._unsent: list[_Request] = []
        self._last_request = 0
        self._last_subscription = 0
        self._reading: dict[int, Inbox] = {}  # those that only read logs yet
        self._durables: dict[int, DurableInbox] = {}
        self._acking: dict[int, DurableInbox] = {}  # those whose acknowledgements are to be sent
        self._acks: dict[int, DurableInbox] = {}  # by request: those that wait for ACKED
        self._credit_due = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            Welcome: self._on_welcome,
            Puback: lambda message: self.publications.acknowledged(message.sequence),
            Deliver: self.deliveries.deliver,
            Gap: self._on_gap,
            Suback: self._on_suback,
            Unsuback: lambda message: self._answer(message.request, None),
            Answer: self._on_answer,
            LogChunk: lambda message: self._answer(message.request, message),
            Interest: self._on_interest,
            Error: self._on_error,
            Goodbye: self._on_goodbye,
            Ping: self._on_ping,
            Handed: self._on_handed,
            Acked: self._on_acked,
            Ended: self._on_ended,
            Rejected: self._on_rejected,
        }

    # --- Asking ------------------------------------------------------------------------------------------------------

    def inbox(self, pattern: str, condition: str, options: dict[str, Any]) -> Inbox:
        """An inbox for a subscription of which the broker is not told yet: `subscribe` or `unsubscribe` must follow.
        Raises LocalError for what is none.
        """
        self._last_subscription += 1
        message = Subscribe(self._next_request(), self._last_subscription, pattern, condition, options)
        _check(message)
        if "durable" in options:
            inbox: Inbox = DurableInbox(self.deliveries, message, self._outcome, self.acknowledge, self.limits)
        else:
            inbox = Inbox(self.deliveries, message, self._outcome(1))
        self._reading[message.subscription] = inbox
        return inbox

    def subscribe(self, inbox: Inbox) -> Outcome:
        """The answer to wait for. Nothing is in force before it."""
        self._reading.pop(inbox.number, None)
        if isinstance(inbox, DurableInbox):
            return self.attach(inbox)
        self.deliveries.inboxes[inbox.number] = inbox
        self.deliveries.relieve()
        return self._say(inbox.request, inbox)

    def unsubscribe(self, inbox: Inbox) -> Outcome:
        """End a subscription; what still waits in its inbox is thrown away."""
        if isinstance(inbox, DurableInbox):
            self.acknowledge(inbox)  # what was said of it goes before
        inbox.end(discard=True)
        self._reading.pop(inbox.number, None)
        if inbox not in self._inboxes():
            outcome = self._outcome(1)
            outcome.settle()
            return outcome
        return self._say(Unsubscribe(self._next_request(), inbox.number), inbox)

    def amend(self, inbox: Inbox, pattern: str, condition: str) -> Outcome:
        """Ask for something else, from the answer on. It is asked again until there is one. Raises LocalError."""
        options = {name: inbox.request.options.get(name, False) for name in ("exact", "ordered")}
        wish = {"subscription": inbox.number, "pattern": pattern, "where": condition, **options}
        message = Ask(self._next_request(), "amend", wish)
        _check(message)
        return self._say(message, inbox)

    def attach(self, inbox: DurableInbox) -> Outcome:
        """Ask for a durable subscription, which has rested long enough."""
        inbox.rest_until = None
        self._durables[inbox.number] = inbox
        return self._say(inbox.question(self._next_request), inbox)

    def acknowledge(self, inbox: DurableInbox | None = None) -> None:
        """What the application said of what was handed out, to one inbox or to all, goes with what is sent next."""
        for one in self._durables.values() if inbox is None else (inbox,):
            if one.has_said:
                self._acking[one.number] = one

    @property
    def acks_due(self) -> bool:
        """Some are to be sent."""
        return bool(self._acking)

    @property
    def flights(self) -> list[Outcome]:
        """What was said of what was handed out and has no answer."""
        return [flight.outcome for inbox in self._durables.values() for flight in inbox.flights]

    def ask(self, verb: str, arguments: dict[str, Any]) -> Outcome:
        """A question to the broker itself. Raises LocalError for what cannot be asked."""
        message = Ask(self._next_request(), verb, arguments)
        _check(message)
        return self._say(message)

    def read_log(self, message: ReadLog) -> Outcome:
        """A chunk of a log, as LOG_CHUNK; the request number is put in here. Raises LocalError for what is none."""
        message = replace(message, request=self._next_request())
        _check(message)
        return self._say(message)

    def producer(self, name: str, epoch: int, strict: bool = False) -> Producer:
        """A producer within the limits of this client. Raises LocalError for what is none."""
        return Producer(name, epoch, strict, self.limits)

    def open_producer(self, producer: Producer) -> None:
        """From now on this producer may publish here; it is opened at once, which it tells itself."""
        producer.eager = True
        self.publications.producers.append(producer)

    def close_producer(self, producer: Producer) -> None:
        """Nothing more comes from it."""
        self.publications.producers.remove(producer)

    # --- The host's steps --------------------------------------------------------------------------------------------

    def hello(self) -> Hello:
        """The first word on a connection."""
        options = self._options
        # What waits untaken counts against the window, and HOLD goes before CREDIT.
        self._credit_due = waiting = self.deliveries.waiting
        return Hello(
            name=options.name,
            session=self._session_key,
            received=self.deliveries.received,
            credit=0 if waiting else options.credit,
            heartbeat_seconds=options.heartbeat_seconds,
            credentials=options.credentials,
            credit_bytes=0 if waiting else options.credit_bytes,
        )

    def handle(self, message: Message) -> None:
        """Take in what the broker said."""
        self._handlers[type(message)](message)

    def outgoing(self, paused: bool = False) -> Iterator[Message]:
        """What may be sent now; each message that is taken counts as sent. Paused holds back what is published."""
        while self._credit_due or self.deliveries.credit_due:
            self._credit_due = False
            yield from self.deliveries.holds()
            yield self.deliveries.credit()
        if self._acking:
            yield from self._say_acks()
        for producer in self.publications.to_open():
            self._open(producer)
        while self._unsent:
            request = self._unsent.pop(0)
            request.sent = True
            yield request.message
        if not paused:
            yield from self.publications.release()

    def interrupted(self, reason: str) -> None:
        """The connection is gone. Questions that were sent get no answer; all else waits for the next connection."""
        self.deliveries.hindered()
        self._detach_all()
        for number, request in list(self._requests.items()):
            if request.perishable and request.sent:
                del self._requests[number]
                request.outcome.settle(error=ConnectionLost(reason))

    def abandon(self, reason: str) -> None:
        """No connection will come any more: everybody who waits is told."""
        error = self.fatal or ConnectionLost(reason)
        self.publications.abandon(error, reason)
        requests = list(self._requests.values())
        self._requests.clear()
        self._unsent.clear()
        for request in requests:
            request.outcome.settle(error=error)
        self._detach_all()
        for inbox in self._inboxes():
            inbox.end(error)

    def end_inboxes(self) -> None:
        """The application is about to close: its loops end, without an error. What it has not taken, it never takes."""
        self.deliveries.close()
        for inbox in self._inboxes():
            inbox.end(discard=True)

    def forsake(self, error: HeadgateError) -> None:
        """This is a copy in another process: nobody here is woken, and nothing comes any more."""
        for inbox in self._inboxes():
            inbox.forsake(error)
        for producer in self.publications.producers:
            producer.fail(error)

    def finish(self) -> None:
        """The application has closed."""
        self.end_inboxes()
        self.abandon("the client was closed")

    def last_words(self) -> Iterator[Message]:
        """What is said before GOODBYE: the broker is to know what the application took."""
        if self.deliveries.untold:
            yield self.deliveries.credit()

    # --- What the broker says ----------------------------------------------------------------------------------------

    def _on_ping(self, ping: Ping) -> None:
        self._credit_due = self._credit_due or self.deliveries.untold

    def _on_welcome(self, welcome: Welcome) -> None:
        reason = MOVED.format(welcome.broker) if self.broker not in ("", welcome.broker) else NEW_SESSION
        self.broker = welcome.broker
        self._session_key = welcome.session
        self.deliveries.hindered()
        if welcome.resumed:
            self.publications.resumed(welcome.accepted, welcome.window)
            self._credit_due = True
        else:
            self.sessions += 1
            self.publications.restarted(welcome.window, "the connection was lost and the session with it")
            self.deliveries.restarted()
            self._subscribe_again(reason)
        self._attach_again()
        self._unsent = list(self._requests.values())
        for request in self._unsent:
            request.repeated = request.sent and welcome.resumed and not isinstance(request.inbox, DurableInbox)

    def _subscribe_again(self, reason: str) -> None:
        waiting = {id(request.inbox) for request in self._requests.values() if isinstance(request.message, Subscribe)}
        for number, request in list(self._requests.items()):
            if isinstance(request.message, Unsubscribe):
                del self._requests[number]
                self._settle(request, None)
        for inbox in list(self.deliveries.inboxes.values()):
            if not inbox.ended and id(inbox) not in waiting:
                inbox.request = replace(inbox.request, request=self._next_request())
                self._requests[inbox.request.request] = _Request(inbox.request, self._outcome(1), inbox)
                inbox.unconfirm(self._outcome(1))
                inbox.gap(Gap(inbox.number, 0, reason))
        for number, request in list(self._requests.items()):
            if request.amends:  # behind the SUBSCRIBE of what it is to change
                self._requests[number] = self._requests.pop(number)

    def _attach_again(self) -> None:
        """Whatever the session, its connection has no durable subscription yet."""
        for number, request in list(self._requests.items()):
            if isinstance(request.message, Unsubscribe) and isinstance(request.inbox, DurableInbox):
                del self._requests[number]
                self._settle(request, None)
        waiting = {id(request.inbox) for request in self._requests.values()}
        for inbox in list(self._durables.values()):
            if not inbox.ended and id(inbox) not in waiting:
                self.attach(inbox)

    def _on_suback(self, message: Suback) -> None:
        request = self._requests.get(message.request)
        inbox: Inbox | None = None if request is None else request.inbox
        if request is None:  # of what goes on: these are its checks now
            inbox = self._durables.get(message.subscription) or self.deliveries.inboxes.get(message.subscription)
        if inbox is None or self._checks_with(inbox, request, message.checks):
            self._answer(message.request, None)

    def _on_answer(self, message: Answer) -> None:
        request = self._requests.get(message.request)
        if request is not None and request.amends and request.inbox is not None:
            checks = message.value.get("checks", ()) if isinstance(message.value, dict) else ()
            if not self._checks_with(request.inbox, request, checks):
                return
        self._answer(message.request, message.value)

    def _checks_with(self, inbox: Inbox, request: _Request | None, checks: Sequence[Any]) -> bool:
        """From now on it asks this of documents. Whether it can; else it ends, and whoever subscribes ends it there."""
        try:
            inbox.check_with(checks)
        except LocalError as error:
            inbox.end(error)
            if request is not None:
                del self._requests[request.message.request]
                request.outcome.settle(error=error)
            return False
        return True

    def _on_gap(self, gap: Gap) -> None:
        inbox = self._durables.get(gap.subscription)
        if inbox is None:
            self.deliveries.gap(gap)
        else:
            self.deliveries.lost += gap.count
            inbox.gap(gap)

    def _on_handed(self, message: Handed) -> None:
        inbox = self._durables.get(message.subscription)
        if inbox is not None and inbox.confirmed and not inbox.ended:  # else its end has crossed this on the way
            inbox.hand(message)

    def _on_acked(self, message: Acked) -> None:
        inbox = self._acks.pop(message.request, None)
        if inbox is not None:
            inbox.acked(message.request, message.stale)

    def _on_ended(self, message: Ended) -> None:
        error = Refused(message.code, message.text)
        plain = self.deliveries.inboxes.pop(message.subscription, None)
        if plain is not None:
            plain.end(error)
            return
        inbox = self._durables.get(message.subscription)
        if inbox is not None and inbox.confirmed and not inbox.ended:
            self._let_go(inbox, error, was_attached=True)

    def _on_rejected(self, message: Rejected) -> None:
        pairs = zip(message.spans[::2], message.spans[1::2], strict=True)
        rows = tuple(row for first, last in pairs for row in range(first, min(last, BATCH_EVENTS_MAX - 1) + 1))
        self.publications.rejected(message.sequence, EventsRefused(message.code, rows, message.text), message.kept)

    def _on_interest(self, message: Interest) -> None:
        self.publications.set_interest(message.stream, message.attributes)

    def _on_error(self, message: Error) -> None:
        error = Refused(message.code, message.text)
        if message.scope == Scope.PUBLISH:
            self.publications.refused(message.reference, error)
        elif message.scope == Scope.REQUEST:
            self._refuse(message.reference, error)
        elif message.code in _FATAL:
            self.fatal = ProtocolViolation(message.text, ErrorCode(message.code))

    def _on_goodbye(self, message: Goodbye) -> None:
        if message.code in _FATAL:
            self.fatal = ProtocolViolation(message.text, ErrorCode(message.code))

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _inboxes(self) -> list[Inbox]:
        return [*self._reading.values(), *self.deliveries.inboxes.values(), *self._durables.values()]

    def _say_acks(self) -> Iterator[Ack]:
        acking, self._acking = self._acking, {}
        for inbox in acking.values():
            for ack in inbox.acks(self._next_request):
                self._acks[ack.request] = inbox
                yield ack

    def _detach_all(self) -> None:
        self._acking.clear()
        self._acks.clear()
        for inbox in self._durables.values():
            inbox.detach()

    def _let_go(self, inbox: DurableInbox, error: Refused, was_attached: bool) -> None:
        inbox.let_go(error, was_attached)
        if inbox.ended:
            self._durables.pop(inbox.number, None)

    def _next_request(self) -> int:
        self._last_request += 1
        return self._last_request

    def _open(self, producer: Producer) -> None:
        message = Ask(self._next_request(), "producer.open", {"producer": producer.name, "epoch": producer.epoch})
        producer.asked()
        self._say(message)
        self._requests[message.request].producer = producer

    def _say(self, message: Subscribe | Unsubscribe | Ask | ReadLog, inbox: Inbox | None = None) -> Outcome:
        request = _Request(message, self._outcome(1), inbox)
        self._requests[message.request] = request
        self._unsent.append(request)
        return request.outcome

    def _answer(self, number: int, value: Any) -> None:
        request = self._requests.pop(number, None)
        if request is not None:
            self._settle(request, value)

    def _settle(self, request: _Request, value: Any) -> None:
        if request.producer is not None:
            try:
                request.producer.opened(value)
            except ProtocolViolation as violation:
                self.publications.not_opened(request.producer, violation)
        elif isinstance(request.message, Unsubscribe):
            self.deliveries.inboxes.pop(request.message.subscription, None)
            if (durable := self._durables.pop(request.message.subscription, None)) is not None:
                durable.detach()
        elif request.inbox is not None and isinstance(request.message, Ask):
            wish = request.message.arguments
            request.inbox.request = replace(request.inbox.request, pattern=wish["pattern"], condition=wish["where"])
        elif request.inbox is not None:
            request.inbox.confirm()
        request.outcome.settle(value)

    def _refuse(self, number: int, error: Refused) -> None:
        request = self._requests.pop(number, None)
        if request is None:
            return
        if request.amends:
            request.outcome.settle(error=error)
            return
        arrived = ErrorCode.DUPLICATE if isinstance(request.message, Subscribe) else ErrorCode.NOT_FOUND
        if request.producer is not None:
            self.publications.not_opened(request.producer, error)
        if request.repeated and error.code == arrived and request.inbox is not None:
            self._settle(request, None)
            return
        if isinstance(request.inbox, DurableInbox):
            if isinstance(request.message, Unsubscribe):  # the broker had ended it
                self._settle(request, None)
                return
            self._let_go(request.inbox, error, was_attached=False)
        elif request.inbox is not None:
            self.deliveries.inboxes.pop(request.inbox.number, None)
            request.inbox.end(error)
        request.outcome.settle(error=error)
