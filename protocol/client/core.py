"""The core of a client: what the asyncio and the blocking client do alike, without I/O.

What has to wait is work for a task (`task.py`), which each of them drives in its own way. Publishing is not here: how
to wait for room, and when to send, is what the two differ in, and it must cost nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

from ..errors import HeadgateError, LocalError
from ..messages import AckVerb, Gap, LogChunk, ReadLog
from .conversation import ClientOptions, Conversation
from .dialling import LinkCore
from .durable import DurableInbox, HandedEvent, is_within
from .limits import ClientLimits
from .logs import Logs
from .moves import Moves, is_left_to_reader
from .receiving import Event, Inbox
from .replay import Replaying
from .task import Outcome, Pause, Settled, Work, settled

__all__ = ["Amended", "ClientCore", "Lock", "SubscriptionCore"]

_NOT_DURABLE = "only events of a durable subscription are acknowledged: name it in subscribe(..., durable='NAME')"


class Lock(Protocol):
    """What keeps other threads from a client, where there are any."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> Any: ...


Made = TypeVar("Made")


class Amended(NamedTuple):
    """How many places of the cluster were told that a subscription asks for something else, serve it as they are, and
    are told later that they serve it no more."""

    puts: int
    kept: int
    removed: int


class ClientCore:
    """What a client shows of itself, and asks its broker. Its world says how to `pump` and what guards it."""

    sharing: Lock

    def __init__(
        self, options: ClientOptions, conversation: Conversation, link: LinkCore, clock: Callable[[], float]
    ) -> None:
        self.clock = clock
        self.limits: ClientLimits = options.limits
        self._conversation = conversation
        self._publications = conversation.publications
        self._link = link
        self._name = options.name
        self._credentials = options.credentials
        self._logs: Logs | None = None
        self._closed = False

    # --- What it shows -----------------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """The address of the broker that it has, or had last, as given."""
        return self._link.addresses.last or self._link.addresses.text

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every broker that it may turn to."""
        return self._link.addresses.every

    @property
    def broker(self) -> str:
        """The broker's name, as it introduced itself."""
        return self._conversation.broker

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known; without one everything waits for the next."""
        return self._link.connected

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and found again."""
        return self._link.reconnects

    @property
    def failures(self) -> deque[HeadgateError]:
        """The last errors of publishes that nobody was waiting for."""
        return self._conversation.publications.failures

    @property
    def failure_count(self) -> int:
        """How many events those and all earlier ones concern."""
        return self._conversation.publications.failure_count

    @property
    def hindrance(self) -> HeadgateError | None:
        """Why what is to be stored has to be tried again, while it is; None when nothing has."""
        reasons = (producer.hindrance for producer in self._conversation.publications.producers)
        return next((reason for reason in reasons if reason is not None), None)

    @property
    def lost(self) -> int:
        """Deliveries that were dropped on the way to this client, all subscriptions together."""
        return self._conversation.deliveries.lost

    @property
    def malformed(self) -> int:
        """Events that were skipped because their publisher did not encode them properly."""
        return self._conversation.deliveries.malformed

    def interest(self, stream: str) -> list[str] | None:
        """The attributes of a stream that brokers filter on, as they said last; None when they did not."""
        return self._conversation.publications.interest.get(stream)

    # --- What it asks ------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what may be sent, in a world where nothing sends while the caller waits."""

    def check_usable(self) -> None:
        """Raises what ended this client."""
        if self._link.failure is not None:
            raise self._link.failure
        if self._closed:
            raise LocalError("this client is closed: connect again")

    def asking(self, verb: str, arguments: dict[str, Any]) -> Work[Any]:
        """Ask the broker itself. Raises Refused."""
        with self.sharing:
            self.check_usable()
            outcome = self._conversation.ask(verb, arguments)
            self.pump()
        yield Settled(self, outcome)
        return outcome.result()

    def dividing(self, inbox: Inbox, options: Mapping[str, Any]) -> Work[None]:
        """Ask which part of its condition is decided here; brokers are asked for the rest of it. With DELTA also for
        these options. Raises Refused.
        """
        request = inbox.request
        said = yield from self.asking("explain", {"pattern": request.pattern, "condition": request.condition})
        inbox.check_with(said.get("checks", ()))
        if said.get("moves"):
            inbox.moves, inbox.divided = Moves(said["moves"]), request.condition
            inbox.request = replace(request, condition=said["rest"], options={**request.options, **options})

    def amend(self, inbox: Inbox, pattern: str, condition: str) -> Outcome:
        """Ask for an amendment; for `SubscriptionCore`."""
        return self._conversation.amend(inbox, pattern, condition)

    def requesting_log(self, message: ReadLog) -> Work[LogChunk]:
        """A chunk of a log that this client's own broker has; `over_logs` asks the right one. Raises Refused."""
        with self.sharing:
            self.check_usable()
            outcome = self._conversation.read_log(message)
            self.pump()
        chunk: LogChunk = yield from settled(self, outcome)
        return chunk

    def over_logs(self) -> Logs:
        """The logs of the cluster."""
        with self.sharing:
            self.check_usable()
            if self._logs is None:
                self._logs = Logs(self)
            return self._logs

    def subscribing(
        self,
        pattern: str,
        where: str | None,
        options: dict[str, Any],
        start: str | int | None,
        event: type[Event],
        made: Callable[[Inbox, Replaying | None], Made],
    ) -> Work[Made]:
        """Subscribe, from the past on with `start`; what was made of its inbox. Raises Refused."""
        with self.sharing:
            self.check_usable()
            inbox = self._conversation.inbox(pattern, where or "", options)
            if isinstance(inbox, DurableInbox):
                inbox.client, inbox.retry = self, self._link.patience()
        try:
            if start is not None and not isinstance(inbox, DurableInbox):  # of which the broker knows the past
                replaying = Replaying(self, inbox, start)
                subscription = made(inbox, replaying)
                yield from replaying.begin(event)
            else:
                subscription = made(inbox, None)
                if is_left_to_reader(inbox.request.condition) and not isinstance(inbox, DurableInbox):
                    yield from self.dividing(inbox, {"ordered": True})
                yield from settled(self, self.say_subscribe(inbox))
        except BaseException:
            with self.sharing:
                self._conversation.unsubscribe(inbox)
                self.pump()
            raise
        return subscription

    def say_subscribe(self, inbox: Inbox) -> Outcome:
        """Subscribe, and do not wait for it."""
        with self.sharing:
            outcome = self._conversation.subscribe(inbox)
            self.pump()
        return outcome

    def confirming(self, inbox: Inbox) -> Work[None]:
        """Wait until the broker of the session that there is has this subscription. Raises what ended it."""
        while not inbox.ended:
            if inbox.confirmed:
                return
            if isinstance(inbox, DurableInbox) and inbox.rest_until is not None:
                yield Pause(self._link, inbox.rest_until)
                self.attach(inbox)
            else:
                yield from settled(self, inbox.confirmation)
        raise inbox.failure or LocalError("this subscription is closed: nothing comes any more")

    # --- Durable subscriptions ---------------------------------------------------------------------------------------

    def attach(self, inbox: DurableInbox) -> None:
        """Ask for a durable subscription again, if the broker let go of it and it has rested."""
        with self.sharing:
            if not inbox.ended and inbox.rest_until is not None and self.clock() >= inbox.rest_until:
                self._conversation.attach(inbox)
                self.pump()

    def say_acks(self, inbox: DurableInbox) -> None:
        """Send what the application said of events, as soon as it is likely to say no more."""
        raise NotImplementedError

    def settle(self, event: HandedEvent, verb: AckVerb, seconds: float | None, text: str) -> bool:
        """Say what became of an event that was handed out; whether that counts, as far as is known here."""
        inbox = event.inbox
        with self.sharing:
            is_current = inbox.say(event, verb, -1 if seconds is None else seconds, text)
            if is_current:
                self.say_acks(inbox)
        return is_current

    def settling(self, event: HandedEvent, verb: AckVerb, seconds: float | None, text: str) -> Work[bool]:
        """Say it, and wait until the broker has said whether it counts."""
        with self.sharing:
            is_current = event.inbox.say(event, verb, -1 if seconds is None else seconds, text)
            if is_current:
                self.say_acks(event.inbox)
        return is_current and (yield from self._counted(event))

    def settling_all(self, inbox: Inbox, event: Event, wait: bool) -> Work[bool]:
        """The same for everything that was handed out up to this event."""
        if not isinstance(inbox, DurableInbox) or not isinstance(event, HandedEvent) or event.inbox is not inbox:
            raise LocalError(_NOT_DURABLE if not isinstance(inbox, DurableInbox) else "an event of this subscription")
        with self.sharing:
            is_current = inbox.say_all(event)
            if is_current:
                self.say_acks(inbox)
        if not wait or not is_current:
            return is_current
        return (yield from self._counted(event))

    def _counted(self, event: HandedEvent) -> Work[bool]:
        """Wait until what was said of an event so far has its answer; whether that counts."""
        for flight in [event.flight] if event.flight is not None else event.inbox.flights:
            yield Settled(self, flight.outcome)
            stale = flight.outcome.result()
            if stale is None or is_within(event.delivery, stale):
                return False
        return True

    def settled_all(self, inbox: Inbox) -> Work[bool]:
        """Wait until all that was said of events so far has its answer; whether all since the last time counts."""
        if not isinstance(inbox, DurableInbox):
            raise LocalError(_NOT_DURABLE)
        with self.sharing:
            flights = inbox.flights
            if flights:
                self.say_acks(inbox)
        for flight in flights:
            yield Settled(self, flight.outcome)
        stale, inbox.stale_told = inbox.stale - inbox.stale_told, inbox.stale
        return not stale

    def settled_everywhere(self) -> Work[None]:
        """Wait until all that was said of events, of whatever subscription, has its answer."""
        with self.sharing:
            self._conversation.acknowledge()
            outcomes = self._conversation.flights
            self.pump()
        for outcome in outcomes:
            yield Settled(self, outcome)

    def unsubscribing(self, inbox: Inbox) -> Work[None]:
        """End a subscription."""
        with self.sharing:
            if self._closed or self._link.failure is not None:
                inbox.end(discard=True)
                return
            outcome = self._conversation.unsubscribe(inbox)
            self.pump()
        yield from settled(self, outcome)

    def forked(self, error: LocalError) -> None:
        """This is a child of the process that connected."""
        self._link.forsake(error)
        self._conversation.forsake(error)


class SubscriptionCore:
    """What a subscription shows of itself."""

    def __init__(self, inbox: Inbox, replaying: Replaying | None) -> None:
        self._inbox = inbox
        self._replaying = replaying
        self._durable = inbox if isinstance(inbox, DurableInbox) else None

    @property
    def number(self) -> int:
        """What its events carry as `subscription`."""
        return self._inbox.number

    @property
    def pattern(self) -> str:
        """FROM."""
        return self._inbox.request.pattern

    @property
    def where(self) -> str:
        """WHERE."""
        return self._inbox.divided or self._inbox.request.condition

    @property
    def lost(self) -> int:
        """Deliveries of this subscription that the broker had to drop."""
        return self._inbox.lost

    @property
    def gaps(self) -> deque[Gap]:
        """The last gaps, each with count and reason; those with subscription 0 concern the whole client."""
        return self._inbox.gaps

    @property
    def full(self) -> bool:
        """Whether so much waits here untaken that the broker keeps what follows, and goes on with the others."""
        return self._inbox.held

    @property
    def stalls(self) -> int:
        """How often it was full."""
        return self._inbox.stalls

    @property
    def false_positives(self) -> dict[str, int]:
        """Events of a subscription with XPATH that brokers let through and nobody was given, by why: `hash` (a bit that
        was set by chance), `structure` (all names and pairs are there, elsewhere) and `no document`.
        """
        return dict(self._inbox.findings.by_why)

    @property
    def false_positives_by_topic(self) -> dict[str, dict[str, int]]:
        """The same for each topic, the one with most of them first; `*`: all that are not among those named. A delivery
        does not say who published it.
        """
        return self._inbox.findings.by_topic

    @property
    def confirmed(self) -> bool:
        """Whether the broker has it; not so from the gap that tells of a new session until it has it again."""
        return self._inbox.confirmed

    @property
    def begins(self) -> dict[str, int]:
        """Where it began in each log that it reads: position by log, as in "ann@1763492000". Empty without `start`."""
        return self._replaying.begins if self._replaying is not None else {}

    @property
    def durable(self) -> str:
        """The name of the durable subscription; empty for any other."""
        return self._durable.name if self._durable is not None else ""

    @property
    def stale(self) -> int:
        """How many acknowledgements came too late, or went with a connection: these events may come again."""
        return self._durable.stale if self._durable is not None else 0

    def _amending(self, client: ClientCore, where: str | None, pattern: str | None) -> Work[Amended]:
        """Ask for something else from now on. Raises Refused, and then all is as before."""
        inbox = self._inbox
        if self._durable is not None:
            raise LocalError("a durable subscription is changed by `headgate durable set`, for all of its clients")
        if self._replaying is not None:
            raise LocalError("a subscription that reads the past cannot be amended: subscribe anew")
        if inbox.moves is not None:
            raise LocalError("DELTA is not amended: subscribe anew")
        for name, text in (("where", where), ("pattern", pattern)):
            if text is not None and not isinstance(text, str):
                raise LocalError(f"{name} is a string, not {text!r}")
        with client.sharing:
            client.check_usable()
            if inbox.ended:
                raise inbox.failure or LocalError("this subscription is closed")
            request = inbox.request
            outcome = client.amend(
                inbox, request.pattern if pattern is None else pattern, request.condition if where is None else where
            )
            client.pump()
        yield Settled(client, outcome)
        told = outcome.result()
        return Amended(*(int(told.get(name, 0)) for name in Amended._fields))

    def _confirming(self, client: ClientCore) -> Work[None]:
        if self._replaying is not None and not self._inbox.ended:
            self._replaying.hasten()
        yield from client.confirming(self._inbox)
