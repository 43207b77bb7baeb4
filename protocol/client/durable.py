"""Durable subscriptions at the client: what was handed out, what the application says of it, and coming back.

A `DurableInbox` is attached to a subscription whose place the cluster keeps. What the broker hands out (HANDED) becomes
events that know their delivery number (`HandedEvent`); what the application says of them is collected, and goes as ACKs
with merged spans when its world says so: in the asyncio world once in a turn of the loop. What goes together is a
`Flight`: it is settled when ACKED has come for all of it.

    detached --SUBSCRIBE, SUBACK--> attached --the connection is lost--> detached, asks at the next WELCOME
       ^                               |
       '--- rests, then asks again <---'--ENDED, UNAVAILABLE

**Numbers belong to one attachment.** When it ends, all that was not handed to the application is dropped, because it is
handed out again under other numbers; what the application says of older events is stale, and it is told so.

A client that was attached asks with the name alone, so that nobody's change of the subscription stands in its way, and
without a takeover. While it is told that another client is attached, that may be itself over the connection that it has
lost: it asks on for as long as a broker may take to notice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..data import decode_record
from ..errors import ErrorCode, LocalError, ProtocolViolation, Refused
from ..limits import ACK_SPANS_MAX
from ..messages import Ack, AckVerb, Handed, Subscribe
from ..structure import Checks
from .dialling import Retry, check_seconds
from .limits import DEFAULT_LIMITS, ClientLimits
from .receiving import Deliveries, Event, Inbox, opened
from .task import Outcome

if TYPE_CHECKING:
    from .core import ClientCore

__all__ = ["DurableInbox", "Flight", "HandedEvent", "durable_options", "is_within", "spans_of"]

_ORDER = (AckVerb.PROGRESS, AckVerb.NAK, AckVerb.TERM, AckVerb.SKIP, AckVerb.ACK)
_UNREADABLE = "its record cannot be read"


def durable_options(durable: str | None, start: str | int | None, **settings: Any) -> dict[str, Any]:
    """The options of SUBSCRIBE for a durable subscription: those that were set. Raises LocalError for what is none."""
    given = {name: value for name, value in settings.items() if value is not None and value is not False}
    if durable is None:
        if given:
            raise LocalError(f"{next(iter(given))} is for durable subscriptions: say which with durable='NAME'")
        return {}
    if not isinstance(durable, str) or not durable:
        raise LocalError(f"durable is the name of a subscription, a string of 1 to 256 characters, not {durable!r}")
    if start is not None:
        if type(start) is int:
            start = str(start)
        if not isinstance(start, str):
            raise LocalError(
                f"a durable subscription starts at 'start', 'now' or 'ann@1763492000:120,…', not {start!r}"
            )
        given["from"] = start
    for name in ("max_deliver", "max_unacked", "window", "limit"):
        if name in given and (type(given[name]) is not int or given[name] < 0):
            raise LocalError(f"{name} is a whole number, 0 or more, not {given[name]!r}")
    if "ack_wait" in given:
        check_seconds("ack_wait", given["ack_wait"])
    if "backoff" in given:
        given["backoff"] = list(given["backoff"])
        for pause in given["backoff"]:
            check_seconds("backoff", pause)
    return {"durable": durable, **given}


def spans_of(numbers: Iterable[int]) -> list[int]:
    """Numbers as spans of those that follow one another: [first, last, first, last, …]."""
    spans: list[int] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1] == number - 1:
            spans[-1] = number
        else:
            spans += [number, number]
    return spans


def is_within(number: int, spans: Sequence[int]) -> bool:
    """Whether one of these spans has it."""
    return any(first <= number <= last for first, last in zip(spans[::2], spans[1::2], strict=True))


class HandedEvent(Event):
    """An event of a durable subscription, under this delivery number and for the so-many-th time."""

    __slots__ = ("_attachment", "_inbox", "_said", "delivery", "delivery_count", "flight")

    def hand_over(self, inbox: DurableInbox, attachment: int, number: int, count: int) -> None:
        """What it is handed out as."""
        self.delivery, self.delivery_count = number, count
        self._inbox, self._attachment = inbox, attachment
        self._said: AckVerb | None = None
        self.flight: Flight | None = None
        """With which the last that was said of it goes; None when nothing was, or of all up to it at once."""

    @property
    def inbox(self) -> DurableInbox:
        """Where it came from."""
        return self._inbox

    @property
    def attachment(self) -> int:
        """Which attachment of it this was."""
        return self._attachment

    @property
    def said(self) -> AckVerb | None:
        """How the application settled it; None: it did not yet."""
        if self._said is None and self.delivery <= self._inbox.settled_upto(self._attachment):
            return AckVerb.ACK
        return self._said

    def settled(self, verb: AckVerb) -> None:
        """The application has said so."""
        self._said = verb


class Flight:
    """What was said of events in a moment; settled with the spans that were stale, or None when nobody knows."""

    __slots__ = ("answers", "count", "outcome", "stale")

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.answers = 0  # that are to come
        self.count = 0
        self.stale: list[int] = []


class DurableInbox(Inbox):
    """One durable subscription's end of the wire. `due` is called when acknowledgements are to be sent with what is
    sent next; `on_drop` when what was taken and not given to the application has to be dropped too.
    """

    def __init__(
        self,
        deliveries: Deliveries,
        request: Subscribe,
        outcome: Callable[[int], Outcome],
        due: Callable[[DurableInbox], None],
        limits: ClientLimits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(deliveries, request, outcome(1))
        self.client: ClientCore
        self.retry: Retry
        self.on_drop: Callable[[], None] | None = None
        self.rest_until: float | None = None  # the broker let go of it, and it is asked for again then
        self.was_attached = False
        self.stale = 0
        self.stale_told = 0  # of these, to who waited for all
        self._outcome = outcome
        self._due = due
        self._limits = limits
        self._attachment = 0
        self._detached_at = 0.0
        self._handed: deque[tuple[Handed, Checks | None]] = deque()  # with what it asked of documents then
        self._pending: dict[tuple[AckVerb, float, str], list[int]] = {}
        self._settled_upto = self._pending_upto = 0
        self._collecting: Flight | None = None
        self._flights: dict[int, Flight] = {}  # by request

    @property
    def waiting(self) -> bool:
        """There is something to take."""
        return bool(self._handed)

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        name: str = self.request.options["durable"]
        return name

    # --- What comes --------------------------------------------------------------------------------------------------

    def hand(self, message: Handed) -> None:
        """The broker hands these out."""
        self._handed.append((message, self.checks))
        self.events_waiting += message.portion.count
        self.bytes_waiting += len(message.portion.records)
        self.changed()

    def take(self, event: type[Event] = HandedEvent) -> list[Event]:
        """The events of the oldest HANDED. One that cannot be read is given up, for it never can be."""
        assert issubclass(event, HandedEvent)
        if not self._handed:
            return []
        message, checks = self._handed.popleft()
        portion, counts = message.portion, message.count_list()
        self.events_waiting -= portion.count
        self.bytes_waiting -= len(portion.records)
        pieces, topics, rows = opened(portion)
        time, origin, base, subscription = portion.time / 1e6, portion.origin, portion.base, self.request.subscription
        one = topics[0] if len(topics) == 1 else ""
        attachment, number = self._attachment, message.first - 1
        events: list[Event] = []
        for place, piece in enumerate(pieces):
            number += 1
            try:
                attributes, body, content_type = decode_record(piece)
            except ProtocolViolation:
                self._deliveries.malformed += 1
                self._add(AckVerb.TERM, -1, _UNREADABLE, number)
                self._due(self)
                continue
            topic = one or topics[place]
            found = event(origin, base + rows[place], time, topic, attributes, body, content_type, subscription)
            found.hand_over(self, attachment, number, counts[place] if counts else 1)
            events.append(found)
        if checks is None:
            return events
        passed = self.checked(events, checks)
        kept = {one.delivery for one in passed}
        for made in events:
            if made.delivery not in kept:  # it is none of the subscription's, and is not to come again
                self._add(AckVerb.SKIP, -1, "", made.delivery)
                self._due(self)
        return passed

    # --- What the application says -----------------------------------------------------------------------------------

    def settled_upto(self, attachment: int) -> int:
        """The last number of that attachment up to which everything was acknowledged by the application at once."""
        return self._settled_upto if attachment == self._attachment else 0

    def say(self, event: HandedEvent, verb: AckVerb, seconds: float = -1, text: str = "") -> bool:
        """Say what became of an event; False when it is too late for that, as far as is known here."""
        said = event.said
        if self.ended or event.attachment != self._attachment or (said is not None and said is not verb):
            self.stale += 1
            return False
        if said is None:
            if verb is not AckVerb.PROGRESS:
                event.settled(verb)
            self._add(verb, seconds, text, event.delivery)
            event.flight = self._collecting
        return True

    def say_all(self, event: HandedEvent) -> bool:
        """Acknowledge everything that was handed out up to this event; False when it is too late for that."""
        if self.ended or event.attachment != self._attachment:
            self.stale += 1
            return False
        if event.delivery > self._settled_upto:
            self._settled_upto = self._pending_upto = event.delivery
            event.flight = self._flight()
            event.flight.count += 1
        return True

    def _add(self, verb: AckVerb, seconds: float, text: str, number: int) -> None:
        self._pending.setdefault((verb, seconds, text), []).append(number)
        self._flight().count += 1

    def _flight(self) -> Flight:
        if self._collecting is None:
            self._collecting = Flight(self._outcome(1))
        return self._collecting

    @property
    def has_said(self) -> bool:
        """Something was said that was not sent yet."""
        return self._collecting is not None

    @property
    def takes_acks(self) -> bool:
        """What was said may be sent: few ACKs have no answer, or it is the last word."""
        return len(self._flights) < self._limits.acks_open or self.ended

    @property
    def flights(self) -> list[Flight]:
        """What has no answer yet, in order, and what is not even sent behind it."""
        collecting = [self._collecting] if self._collecting is not None else []
        return [*dict.fromkeys(self._flights.values()), *collecting]

    def acks(self, next_request: Callable[[], int]) -> Iterator[Ack]:
        """What is to be sent now; nothing while too much of it has no answer. It is due again when one comes."""
        flight = self._collecting
        if flight is None or not self.takes_acks:
            return
        pending, self._pending, self._collecting = self._pending, {}, None
        if self._pending_upto:
            # Last, so that what was said of single events is not taken back by it.
            pending[AckVerb.ACK, -1, ""] = pending.pop((AckVerb.ACK, -1, ""), [])
        # A span from 0 takes what is still current, and who settles an event says no more of it: so ACK is the last.
        for (verb, seconds, text), numbers in sorted(pending.items(), key=lambda item: _ORDER.index(item[0][0])):
            spans: list[int] = []
            if verb is AckVerb.ACK and self._pending_upto:
                spans, self._pending_upto = [0, self._pending_upto], 0
                numbers = [number for number in numbers if number > spans[1]]
            spans += spans_of(numbers)
            for start in range(0, len(spans), 2 * ACK_SPANS_MAX):
                request = next_request()
                self._flights[request] = flight
                flight.answers += 1
                yield Ack(request, self.number, verb, spans[start : start + 2 * ACK_SPANS_MAX], seconds, text)

    def acked(self, request: int, stale: list[int]) -> None:
        """That has its answer."""
        flight = self._flights.pop(request, None)
        if flight is None:
            return
        flight.answers -= 1
        flight.stale += stale
        # A cumulative span is stale as a whole, whatever number of events it stands for.
        self.stale += sum(last - first + 1 if first else 1 for first, last in zip(stale[::2], stale[1::2], strict=True))
        if not flight.answers:
            flight.outcome.settle(flight.stale)
        if self.has_said:
            self._due(self)  # it may have waited for this answer
        self.changed()

    # --- Attached and detached ---------------------------------------------------------------------------------------

    def question(self, next_request: Callable[[], int]) -> Subscribe:
        """What the broker is asked for."""
        if not self.was_attached:
            return self.request
        options = {name: value for name, value in self.request.options.items() if name in ("durable", "window")}
        return Subscribe(next_request(), self.number, "", "", options)

    def confirm(self) -> None:
        """The broker has attached this client."""
        self.was_attached = True
        self.rest_until = None
        self.retry.connected(self.client.clock())
        super().confirm()

    def detach(self) -> None:
        """The attachment is over: what was handed out and not given to the application is handed out again."""
        if self.confirmed:
            self.unconfirm(self._outcome(1))
            self._detached_at = self.client.clock()
        self._attachment += 1
        self._handed.clear()
        self.events_waiting = self.bytes_waiting = 0
        flights = self.flights
        self._pending.clear()
        self._flights.clear()
        self._collecting = None
        self._settled_upto = self._pending_upto = 0
        for flight in flights:
            self.stale += flight.count
            flight.outcome.settle()
        if self.on_drop is not None:
            self.on_drop()

    def let_go(self, error: Refused, was_attached: bool) -> None:
        """The broker does not attach this client, or no longer: ask again after a pause, or this is its end."""
        self.detach()
        now = self.client.clock()
        is_recent = now < self._detached_at + self._limits.own_ghost_seconds
        is_own = error.code == ErrorCode.DUPLICATE and not was_attached and is_recent
        delay = None
        if self.was_attached and (error.code == ErrorCode.UNAVAILABLE or is_own):
            self.retry.lost(now)
            delay = self.retry.next_delay(now)
        if delay is None:
            self.end(error)
        else:
            self.rest_until = now + delay
            self.changed()

    def end(self, failure: Any = None, discard: bool = False) -> None:
        """Nothing comes any more, and nothing that is said from now on counts."""
        self.rest_until = None
        if discard:
            self._handed.clear()
            self.events_waiting = self.bytes_waiting = 0
        super().end(failure, discard)

    def forsake(self, failure: Any) -> None:
        """This is a copy in another process: end without a word to the broker, and hand out nothing more."""
        self._handed.clear()
        super().forsake(failure)
