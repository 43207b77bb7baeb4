"""The audit log: what was handed on to our clients, and what they wanted when, for streams that are audited.

Both go into logs of this broker, because it is their home. One value a delivery, in columns:

    subscription, sequence, sent_at, published_at, outcome     sequence and the row's origin are the event's id
    outcome    0 sent     1 dropped, its subscriber was too slow or went     2 lost on the way to the client
               3 acknowledged, at acked_at: by its CREDIT the client has taken it

To be sent is to be handed to a socket. So what was sent has a second line for what became of it, 2 or 3; what of a
session was under way when it ended for good has none: it is unknown. A client gives CREDIT when half of its window was
taken, which may be never; so one that has something unacknowledged for a while is asked by a PING. A change of what is
wanted is a line of its own:

    asked         not in force yet, but events begin to come: only written when that happens
    subscribe     in force since `effective_at`, which is when SUBACK went out, or when the audit began
    unsubscribe   over since then; `reason` says why, unless its client asked for it
    gap           some events may be missing before that moment, unknown which: `reason` begins with how many
    restarted     a life before this one wrote lines, and what it had gathered and not written is missing
    damaged       lines that this broker wrote before that moment may be missing: `reason` says what was found

A durable subscription has no home: its lines have DURABLE in place of one, and as its number what its name hashes to.
Its coordinator writes what it wants: `subscribe` at its beginning, after a takeover and a change of its condition,
`unsubscribe` when it is removed, and both when it goes on from another place. The homes of its clients write what they
hand out, with outcome 4 in place of 0 where the client was told that it may have come before, and 3 when a client
acknowledges it.

A life that ended without a word left its subscriptions open; the next one finds them in the log and ends them.

Lines are gathered for a moment and written as rows. What the disk does not take is kept and written again, within a
bound; beyond it the audit has a hole, which is said with alarm.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from headgate.matching import MatchingError, parse_condition, to_spark
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.protocol.data import LogKind, Row, decode_column, decode_row, encode_column
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import LOG_CHUNK_BYTES_MAX, RECORD_LENGTH_MAX, TEXT_LENGTH_MAX
from headgate.protocol.messages import AckVerb, Credit, Deliver, Handed, Ping

from ..clock import Clock
from ..delivery import ClientSession, Streams, Subscribers, Subscription
from ..durable import DurableState
from ..effects import Effect, Note, Send
from ..inputs import RowsRead
from ..keyspace import hash_identifier
from ..limits import AUDIT_ACK_SECONDS, AUDIT_SECONDS, Limits
from ..log import HeldLog, Log
from ..timers import NEVER, Timers

__all__ = [
    "ACKNOWLEDGED",
    "AUDIT_ACKS",
    "AUDIT_LINES",
    "AuditLog",
    "DROPPED",
    "DURABLE",
    "LOST",
    "Left",
    "SENT",
    "SENT_AGAIN",
    "open_subscriptions",
]

AUDIT_LINES, AUDIT_ACKS = "audit lines", "audit acknowledgements"
"""Keys of timers: gathered lines are written; clients are asked what they have taken."""

# Audit history: which subscriptions the log of them leaves open, read chunk by chunk after a start.

Left: TypeAlias = dict[tuple[str, int], tuple[Any, ...]]
"""(origin of its home, identity) of a subscription -> its line in the log."""

DURABLE = "durable"
"""In place of the origin of a home."""

_COLUMNS = ("subscription", "subscriber", "pattern", "exact", "condition", "spark", "action")


def open_subscriptions(log: Log, held: HeldLog, tell: Callable[[HeldLog, Left], None]) -> None:
    """Read that log of subscriptions to where it ends now, and tell which have no end in it."""
    left: Left = {}
    end = held.next

    def came(read: RowsRead, now: float) -> None:
        for data in read.rows:
            try:
                _follow(left, decode_row(data))
            except ProtocolViolation:
                continue  # a damaged line: what it said is unknown, and the rest still counts
        if (read.rows or read.damage) and read.next < end:
            log.read_rows(held.name, read.next, LOG_CHUNK_BYTES_MAX, came)
        else:
            tell(held, left)

    log.read_rows(held.name, held.first, LOG_CHUNK_BYTES_MAX, came)


def _follow(left: Left, row: Row) -> None:
    """What a row changes. Raises ProtocolViolation."""
    if row.topics == DURABLE:
        return  # they outlive brokers
    columns = [decode_column(row.columns.get(name, b""), row.count) for name in _COLUMNS]
    for line in zip(*columns, strict=True):
        identity, action = line[0], line[6]
        if action == "subscribe" and type(identity) is int:
            left[row.topics, identity] = line[:6]
        elif action == "unsubscribe":
            left.pop((row.topics, identity), None)


SENT, DROPPED, LOST, ACKNOWLEDGED, SENT_AGAIN = 0, 1, 2, 3, 4

_CHANGES = ("subscription", "subscriber", "pattern", "exact", "condition", "spark", "action", "effective_at", "reason")


def _numbers() -> array[int]:
    return array("q")


@dataclass(slots=True)
class _Lines:
    """Deliveries of one stream whose events are of one origin, column by column."""

    subscription: array[int] = field(default_factory=_numbers)
    sequence: array[int] = field(default_factory=_numbers)
    sent_at: array[int] = field(default_factory=_numbers)
    published_at: array[int] = field(default_factory=_numbers)
    outcome: array[int] = field(default_factory=_numbers)
    acked_at: array[int] = field(default_factory=_numbers)
    """0 of what was not acknowledged."""


@dataclass(slots=True)
class _Flight:
    """What was sent in one DELIVER, and when: up to which delivery of its session it reaches."""

    position: int
    sent: float
    stream: str
    origin: str
    published_at: int
    subscriptions: array[int]
    sequences: array[int]
    home: str = ""
    """When it is not this broker."""


@dataclass(slots=True)
class _HandedOut:
    """Events of one HANDED that its client has not answered; the i-th has the delivery number `first` + i."""

    first: int
    flight: _Flight


class AuditLog:
    """Writes deliveries and changes of subscriptions to logs. `now` is told before anything happens."""

    def __init__(
        self,
        origin: str,
        effects: list[Effect],
        log: Log,
        streams: Streams,
        subscribers: Subscribers,
        timers: Timers,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._limits = limits
        self._origin = origin
        self._effects = effects
        self._log = log
        self._streams = streams
        self._subscribers = subscribers
        self._lines: dict[tuple[str, str, str], _Lines] = {}
        self._changes: dict[tuple[str, str], list[tuple[int | str | bool, ...]]] = {}
        self._flights: dict[bytes, deque[_Flight]] = {}
        self._flying = 0
        self._handed: dict[int, list[_HandedOut]] = {}
        self._asked: dict[int, None] = {}
        self._again: deque[tuple[LogKind, str, Row]] = deque()
        self._streams_audited: dict[str, None] = {}
        self._holes: dict[str, str] = {}
        self._timers = timers
        self._alive = False
        self.now = 0.0
        self.clock = clock
        self.missing = 0

    # --- which streams -----------------------------------------------------------------------------------------------

    def begin(self, stream: str) -> None:
        """It is audited from now on."""
        self._streams_audited[stream] = None
        self._subscribers.watch = self
        self._subscriptions_of(stream, "subscribe", "")

    def end(self, stream: str) -> None:
        """It is audited no more."""
        self._subscriptions_of(stream, "unsubscribe", "the stream is not audited any more")
        self._streams_audited.pop(stream, None)
        if not self._streams_audited:
            self._subscribers.watch = None
            self._flights.clear()
            self._flying = 0
            self._timers.at(AUDIT_ACKS, NEVER)

    def _subscriptions_of(self, stream: str, action: str, reason: str) -> None:
        for session in self._subscribers.by_key.values():
            for number, subscription in session.subscriptions.items():
                if subscription.stream == stream and number not in session.placing:
                    self._change(subscription, action, reason)

    # --- what was wanted ---------------------------------------------------------------------------------------------

    def subscribed(self, subscription: Subscription) -> None:
        """It is in force."""
        self._asked.pop(subscription.identity, None)
        if subscription.stream in self._streams_audited:
            self._change(subscription, "subscribe", "")

    def unsubscribed(self, subscription: Subscription, reason: str = "") -> None:
        """It is over."""
        if subscription.stream in self._streams_audited:
            self._change(subscription, "unsubscribe", reason)

    def missed(self, session: ClientSession, number: int, stream: str, count: int, reason: str) -> None:
        """Events may be missing with one subscription of a session, or with all (0), of a stream or of all ("")."""
        for subscription in session.subscriptions.values():
            if (
                number in (0, subscription.number)
                and stream in ("", subscription.stream)
                and subscription.stream in self._streams_audited
            ):
                self._change(subscription, "gap", f"{count} lost: {reason}")

    def begin_life(self) -> None:
        """The wall clock is known, so that what former lives left open can be ended. Their logs say what that is."""
        if self._alive or not self._log.available:
            return
        self._alive = True
        audited = (LogKind.SUBSCRIPTIONS, LogKind.DELIVERIES)
        for stream in dict.fromkeys(held.name.stream for held in self._log.own_logs() if held.name.kind in audited):
            self._tell_of_itself(stream, "restarted", "")
        for held in self._log.own_logs():
            if held.name.kind == LogKind.SUBSCRIPTIONS:
                open_subscriptions(self._log, held, self._end_former)
                for text in self._log.damage:
                    stream = held.name.stream
                    if not text.startswith("positions ") or f" {stream!r} in " in text:  # which names another one
                        self._tell_hole(stream, text)

    def _end_former(self, held: HeldLog, left: dict[tuple[str, int], tuple[int | str | bool, ...]]) -> None:
        for (origin, _), line in left.items():
            ended = (*line[:6], "unsubscribe", self.clock.us(self.now), "broker restarted")
            self._changes.setdefault((held.name.stream, origin), []).append(ended)
            self._is_due()

    def _tell_hole(self, stream: str, text: str) -> None:
        """Lines of the audit are missing."""
        self._tell_of_itself(stream, "damaged", text)

    def _tell_of_itself(self, stream: str, action: str, reason: str) -> None:
        line = (0, "", "", False, "", "", action, self.clock.us(self.now), reason)
        self._changes.setdefault((stream, self._origin), []).append(line)
        self._is_due()

    def _change(self, subscription: Subscription, action: str, reason: str) -> None:
        line: tuple[int | str | bool, ...] = (
            subscription.identity,
            subscription.session.name,
            str(subscription.pattern),
            subscription.pattern.exact,
            subscription.condition,
            _spark(subscription.condition),
            action,
            self.clock.us(self.now),
            reason,
        )
        self._changes.setdefault((subscription.stream, self._origin), []).append(line)
        self._is_due()

    # --- what was delivered ------------------------------------------------------------------------------------------

    def sent(self, session: ClientSession, message: Deliver) -> None:
        """It went out on the session's link."""
        flight = self._flight(session, message)
        if flight is None:
            return
        self._write(flight, SENT)
        flights = self._flights.setdefault(session.key, deque())
        flights.append(flight)
        self._flying += len(flight.sequences)
        while flights and self._flying > self._limits.audit_flight_events:
            self._flying -= len(flights.popleft().sequences)
        self._timers.by(AUDIT_ACKS, self.now + AUDIT_ACK_SECONDS)

    def acknowledged(self, session: ClientSession, credit: Credit) -> None:
        """The client's application has taken so many deliveries: those before may be written down as acknowledged."""
        flights = self._flights.get(session.key)
        taken = min(credit.received, credit.taken)
        while flights and flights[0].position <= taken:
            flight = flights.popleft()
            self._flying -= len(flight.sequences)
            self._write(flight, ACKNOWLEDGED)
        if flights is not None and not flights:
            del self._flights[session.key]

    def ask_back(self, now: float) -> None:
        """Ask clients to acknowledge that have not done so for a while."""
        oldest = float("inf")
        for key, flights in self._flights.items():
            session = self._subscribers.by_key[key]
            if session.link is None or session.closing or not flights:
                continue
            if flights[0].sent + AUDIT_ACK_SECONDS <= self.now:
                self._effects.append(Send(session.link, Ping(0)))
            oldest = min(oldest, max(flights[0].sent, self.now) + AUDIT_ACK_SECONDS)
        self._timers.at(AUDIT_ACKS, oldest)

    def dropped(self, session: ClientSession, message: Deliver) -> None:
        """It will never go out."""
        flight = self._flight(session, message)
        if flight is not None:
            self._write(flight, DROPPED)

    def lost(self, session: ClientSession, received: int) -> None:
        """The client is back and has so many of the deliveries that were sent."""
        flights = self._flights.pop(session.key, deque())
        kept = deque(flight for flight in flights if flight.position <= received)
        if kept:
            self._flights[session.key] = kept
            self._timers.by(AUDIT_ACKS, self.now + AUDIT_ACK_SECONDS)
        for flight in list(flights)[len(kept) :]:
            self._flying -= len(flight.sequences)
            self._write(flight, LOST)

    def forget(self, session: ClientSession) -> None:
        """It ended."""
        for subscription in session.subscriptions.values():
            self._asked.pop(subscription.identity, None)
        for flight in self._flights.pop(session.key, ()):
            self._flying -= len(flight.sequences)

    def _flight(self, session: ClientSession, message: Deliver) -> _Flight | None:
        portion = message.portion
        stream = _stream_of(portion.topics)
        if stream not in self._streams_audited or session.key not in self._subscribers.by_key:
            return None  # the home of another broker's clients writes its own
        flight = _Flight(session.sent, self.now, stream, portion.origin, portion.time, _numbers(), _numbers())
        places, at = portion.rows(), 0
        for numbers, count in message.runs():
            sequences = [portion.base + place for place in places[at : at + count]]
            at += count
            for number in numbers:
                subscription = session.subscriptions.get(number)
                if subscription is not None:
                    if number in session.placing and subscription.identity not in self._asked:
                        self._asked[subscription.identity] = None
                        self._change(subscription, "asked", "")
                    flight.subscriptions.extend([subscription.identity] * count)
                    flight.sequences.extend(sequences)
        return flight if flight.sequences else None

    def _write(self, flight: _Flight, outcome: int) -> None:
        if flight.stream not in self._streams_audited:
            return
        lines = self._lines.setdefault((flight.stream, flight.origin, flight.home or self._origin), _Lines())
        count = len(flight.sequences)
        lines.subscription += flight.subscriptions
        lines.sequence += flight.sequences
        lines.sent_at.extend([self.clock.us(flight.sent)] * count)
        lines.published_at.extend([flight.published_at] * count)
        lines.outcome.extend([outcome] * count)
        lines.acked_at.extend([self.clock.us(self.now) if outcome == ACKNOWLEDGED else 0] * count)
        self._is_due()

    # --- durable subscriptions ---------------------------------------------------------------------------------------

    def wanted(self, state: DurableState, action: str, reason: str = "") -> None:
        """At its coordinator: it is in force as it is now, or over, or lost events to retention."""
        if state.stream not in self._streams_audited:
            return
        wish = (state.name, state.pattern, state.exact, state.condition, _spark(state.condition))
        line = (_durable_identity(state.name), *wish, action, self.clock.us(self.now), reason)
        self._changes.setdefault((state.stream, DURABLE), []).append(line)
        self._is_due()

    def handed(self, number: int, name: str, message: Handed) -> None:
        """At the home of a client: these events went out."""
        portion = message.portion
        stream = _stream_of(portion.topics)
        if stream not in self._streams_audited:
            return
        sequences = array("q", [portion.base + place for place in portion.rows()])
        identities = array("q", [_durable_identity(name)]) * len(sequences)
        flight = _Flight(0, self.now, stream, portion.origin, portion.time, identities, sequences, DURABLE)
        counts = message.count_list()
        if counts:
            for place, count in enumerate(counts):
                self._write(_part_of(flight, place, place + 1), SENT_AGAIN if count > 1 else SENT)
        else:
            self._write(flight, SENT)
        kept = self._handed.setdefault(number, [])
        kept.append(_HandedOut(message.first, flight))
        while len(kept) > 1 and kept[0].first + self._limits.audit_flight_events < message.first:
            del kept[0]  # the coordinator has handed it out to another client since

    def answered(self, number: int, verb: int, spans: Sequence[int]) -> None:
        """At its home: what the client acknowledges is written down, and what else it settles is forgotten."""
        kept = self._handed.get(number)
        if kept is None or verb == AckVerb.PROGRESS:
            return
        for first, last in zip(spans[::2], spans[1::2], strict=True):
            low = max(0, bisect_right(kept, first, key=_first_of) - 1)
            high = bisect_right(kept, last, key=_first_of)
            kept[low:high] = [part for one in kept[low:high] for part in self._rest_of(one, verb, first, last)]
        if not kept:
            del self._handed[number]

    def _rest_of(self, one: _HandedOut, verb: int, first: int, last: int) -> Iterable[_HandedOut]:
        flight, count = one.flight, len(one.flight.sequences)
        low, high = max(0, first - one.first), min(count, last + 1 - one.first)
        if low >= high:
            yield one
            return
        if verb in (AckVerb.ACK, AckVerb.SKIP):
            self._write(_part_of(flight, low, high), ACKNOWLEDGED)
        if low:
            yield _HandedOut(one.first, _part_of(flight, 0, low))
        if high < count:
            yield _HandedOut(one.first + high, _part_of(flight, high, count))

    def left(self, number: int) -> None:
        """At its home: the client takes part no more."""
        self._handed.pop(number, None)

    # --- to the log --------------------------------------------------------------------------------------------------

    def _is_due(self) -> None:
        self._timers.by(AUDIT_LINES, self.now + AUDIT_SECONDS)

    def flush(self, now: float) -> None:
        """Write what was gathered, behind what the disk did not take."""
        self._timers.at(AUDIT_LINES, NEVER)
        if not self._log.available:
            self._lines.clear()
            self._changes.clear()
            return
        rows = list(self._again)
        self._again.clear()
        time_us, events = self.clock.us(now), self._limits.batch_events
        for (stream, origin), changes in self._changes.items():
            rows += [(LogKind.SUBSCRIPTIONS, stream, row) for row in _rows_of_changes(changes, origin, time_us, events)]
        for (stream, origin, home), lines in self._lines.items():
            made = _rows_of_lines(lines, origin, home, time_us, events)
            rows += [(LogKind.DELIVERIES, stream, row) for row in made]
        self._lines.clear()
        self._changes.clear()
        for kind, stream, row in rows:
            self._append(kind, stream, row, now)

    def _append(self, kind: LogKind, stream: str, row: Row, now: float) -> None:
        def write(now: float) -> None:
            self._log.append(self._log.own(kind, stream), row, None, on_disk)

        def on_disk(reason: str, now: float) -> None:
            if reason and len(self._again) < self._limits.audit_rows_kept:
                self._again.append((kind, stream, row))
                self._is_due()
            elif reason:
                self.missing += row.count
                self._holes[stream] = f"lines of the audit could not be written: {reason}"
                facts = {"stream": stream, "lines": row.count, "reason": reason}
                self._effects.append(Note("audit incomplete", facts, alarming=True))
            elif stream in self._holes:  # the disk takes something again
                self._tell_hole(stream, self._holes.pop(stream))

        self._log.when_vouched(sum(map(len, row.columns.values())), write, now)

    def validate(self) -> None:
        """Deliveries under way add up, and whatever was gathered will be written."""
        assert self._flying == sum(len(one.sequences) for some in self._flights.values() for one in some)
        assert self._flights.keys() <= self._subscribers.by_key.keys()
        assert (self._subscribers.watch is self) == bool(self._streams_audited)
        assert self._timers.when(AUDIT_LINES) < NEVER or not (self._lines or self._changes or self._again)


def _durable_identity(name: str) -> int:
    """The number of a durable subscription in the logs of the audit."""
    return hash_identifier(f"{DURABLE}/{name}") >> 1


def _first_of(one: _HandedOut) -> int:
    return one.first


def _part_of(flight: _Flight, low: int, high: int) -> _Flight:
    return replace(flight, subscriptions=flight.subscriptions[low:high], sequences=flight.sequences[low:high])


def _stream_of(topics: str) -> str:
    """The first level of the first topic, without looking through all of them."""
    ends = [end for end in (topics.find("/"), topics.find("\n")) if end >= 0]
    return topics[: min(ends)] if ends else topics


def _spark(condition: str) -> str:
    """The condition in the words of Spark SQL, for people; empty when it has none, or is a book of its own."""
    try:
        text = to_spark(parse_condition(condition, CANONICAL_BYTES_MAX)) if condition else ""
    except MatchingError:
        return ""
    return text if len(text) <= TEXT_LENGTH_MAX else ""


def _rows_of_lines(lines: _Lines, origin: str, home: str, time_us: int, events: int) -> Iterable[Row]:
    for first in range(0, len(lines.sequence), events):
        columns = {name: getattr(lines, name)[first : first + events] for name in _Lines.__slots__}
        if not any(columns["acked_at"]):
            del columns["acked_at"]
        yield _row(columns, origin, home, time_us)


def _rows_of_changes(
    changes: Sequence[tuple[int | str | bool, ...]], home: str, time_us: int, events: int
) -> Iterable[Row]:
    part: list[tuple[int | str | bool, ...]] = []
    length = 0
    for place, change in enumerate(changes, 1):
        part.append(change)
        length += sum(len(value) for value in change if isinstance(value, str))
        if length >= RECORD_LENGTH_MAX or len(part) >= events // 16 or place == len(changes):
            yield _row(dict(zip(_CHANGES, zip(*part, strict=True), strict=True)), "", home, time_us)
            part, length = [], 0


def _row(columns: dict[str, Sequence[int | str | bool]], origin: str, home: str, time_us: int) -> Row:
    count = len(columns["subscription"])
    encoded = {name: encode_column(values) for name, values in columns.items()}
    return Row(0, count, time_us, origin, 0, b"", home, b"", encoded, False, b"")
