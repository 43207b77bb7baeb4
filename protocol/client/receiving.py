"""Deliveries: what a client receives, from the DELIVER message to the application's hands, and the credit it gives.

A `Parcel` is one DELIVER, opened once however many subscriptions share it. Each run of its rows goes as a `Slice` into
the `Inbox` of every subscription named for it. Records are decoded when the application takes them, so that what
nobody reads costs no more than its bytes. (Measured against decoding at once, 128-byte bodies and three attributes:
a third of the memory while they wait, and a tenth less time.) A record that is none is skipped and counted: one
hostile publisher must not end anybody's loop.

Credit is one window for the whole client, counted in events since the session began and in bytes of records since the
connection did; what waits from before uses it up as well. An event counts as received when it came, and as consumed
when the first subscription that it is for handed it over; a portion's bytes when all of its events are. The broker is
told anew when half of the window was consumed. So a client with one subscription has at most a window waiting here, the
rest waits at the broker.

One of several subscriptions that is not taken from would fill that window and stop the others. So when the window is
used up while another inbox is empty, the fullest is **held**: the broker is told to keep what comes for it, what it has
counts as consumed, and the others go on. It goes on when half of what it had was taken:

    the window used up, another inbox empty --HOLD--> held --half of what waits was taken--> not held

So is one with more than a window, which comes of events for several subscriptions of which another one takes. With what
was under way an inbox has at most two windows. It is charged with whole portions, for one event of a portion keeps all
of its bytes. While an inbox is held, or the window is used up, a silence
says nothing (`is_quiet`).

Events of a subscription with XPATH are **checked** when they are taken: a broker compares filters, which let some
through that have no such document. Those are counted and handed to nobody, and use up no more credit than others.
One that begins in the past decides DELTA as well (`moves.py`): events are opened in the order in which they are handed
out.

Where a subscription can read again what it missed (`replay.py`), a gap is told of in its place among the events: `take`
stops before it until `close_gap` was called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ..data import LogShift, Portion, Scalar, decode_record, split_u32
from ..errors import HeadgateError, ProtocolViolation
from ..limits import CREDIT_BYTES_DEFAULT, CREDIT_MAX, GAPS_KEPT_MAX
from ..messages import Credit, Deliver, Gap, Hold, Subscribe
from ..structure import Check, Checks, Finding
from .delivered import DeliveredSet
from .findings import Findings
from .merging import Piece
from .moves import Moves
from .task import Outcome

__all__ = ["Deliveries", "Event", "Inbox", "opened"]


class Event:
    """One event as a subscriber gets it. `subscription` is the number of the subscription that it came for.

    `log` says where it stands in a log of its stream; None when the stream is not stored, or a durable subscription
    handed it out: then `delivery` is its delivery number, handed out for the `delivery_count`-th time.
    """

    delivery = 0
    delivery_count = 1

    __slots__ = (
        "attributes",
        "body",
        "content_type",
        "log",
        "origin",
        "sequence",
        "subscription",
        "time",
        "topic",
    )

    def __init__(
        self,
        origin: str,
        sequence: int,
        time: float,
        topic: str,
        attributes: dict[str, Scalar],
        body: bytes,
        content_type: str,
        subscription: int,
        log: LogShift | None = None,
    ) -> None:
        self.origin = origin
        self.sequence = sequence
        self.time = time
        self.topic = topic
        self.attributes = attributes
        self.body = body
        self.content_type = content_type
        self.subscription = subscription
        self.log = log

    @property
    def id(self) -> str:
        """Its name in the cluster, given by the broker that accepted it."""
        return f"{self.origin}.{self.sequence}"

    @property
    def position(self) -> str:
        """Its place in a log, as in "ann@1763492000:120"; empty when it is in none, or that is not known."""
        return f"{self.log.partition}:{self.sequence + self.log.shift}" if self.log is not None else ""

    @property
    def redelivered(self) -> bool:
        """Whether it was handed out before, to this client or another one, and not acknowledged."""
        return self.delivery_count > 1

    @property
    def text(self) -> str:
        """The body as UTF-8 text; bytes that are none become U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"Event(id={self.id!r}, topic={self.topic!r}, attributes={self.attributes!r}, {len(self.body)} bytes)"


def opened(portion: Portion) -> tuple[list[bytes], list[str], Sequence[int]]:
    """The records of a portion, its topics, and the place of each event after its base."""
    ends = list(accumulate(split_u32(portion.lengths)))
    records = portion.records
    pieces = [records[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return pieces, portion.topics.split("\n"), portion.rows()


class _Parcel:
    """A portion that is opened when its first row is wanted. `charged` of its rows use up credit; `position` says how
    many deliveries of its session came before it.
    """

    __slots__ = ("_pieces", "_rows", "_topics", "charged", "portion", "position", "session", "size")

    def __init__(self, portion: Portion, session: int = 0, position: int = 0) -> None:
        self.portion = portion
        self.session, self.position = session, position
        self.size = len(portion.records)
        self.charged = 0
        self._pieces: list[bytes] = []
        self._topics: list[str] = []
        self._rows: Any = ()

    def events(self, start: int, stop: int, event: type[Event], subscription: int) -> list[Event]:
        """The events of these rows; fewer when a record is malformed."""
        portion = self.portion
        if not self._pieces:
            self._open()
        time, origin, base, log = portion.time / 1e6, portion.origin, portion.base, portion.log
        rows, topics = self._rows, self._topics
        one = topics[0] if len(topics) == 1 else ""
        events = []
        for place in range(start, stop):
            try:
                attributes, body, content_type = decode_record(self._pieces[place])
            except ProtocolViolation:
                continue
            topic = one or topics[place]
            found = event(origin, base + rows[place], time, topic, attributes, body, content_type, subscription, log)
            events.append(found)
        return events

    def _open(self) -> None:
        self._pieces, self._topics, self._rows = opened(self.portion)


@dataclass(slots=True, eq=False)
class _Slice:
    """Rows of a parcel in one inbox. They use up credit if they are `charged`, or `carrier` is, the slice of the same
    rows in another inbox. `bytes` is what the inbox is charged with: all of the parcel, with its first slice there.
    """

    parcel: _Parcel
    start: int
    stop: int
    carrier: _Slice | None = None
    charged: bool = False
    bytes: int = 0
    former: tuple[Checks | None] | None = None
    """What its subscription asked of documents when it came; None: it asks for it still."""


@dataclass(slots=True)
class _Gaps:
    """A place in an inbox where something is missing, and what was said of it."""

    said: deque[Gap]
    parcel: None = None


class Inbox:
    """One subscription's end of the wire. Whoever waits for it sets `on_change`.

    With `delivered`, what was read from a log before is left out, what is handed out is noted there, and gaps are kept
    where they are.
    """

    def __init__(self, deliveries: Deliveries, request: Subscribe, confirmation: Outcome) -> None:
        self.request = request
        self.confirmation = confirmation  # settled when it is confirmed, or ends
        self.on_change: Callable[[], None] | None = None
        self.on_gap: Callable[[Gap], None] | None = None
        self.confirmed = False  # by the broker, in the session that there is now
        self.lost = 0
        self.gaps: deque[Gap] = deque(maxlen=GAPS_KEPT_MAX)
        self.failure: HeadgateError | None = None
        self.ended = False
        self.delivered: DeliveredSet | None = None
        self.checks: Checks | None = None
        self.moves: Moves | None = None
        self.divided = ""  # what was asked for, where `moves` decide a part of it
        self.findings = Findings()  # of events that were handed to nobody
        self.events_waiting = self.bytes_waiting = 0
        self.held = False
        self.stalls = 0  # how often it was held
        self._goes_on_at = (0, 0)  # events and bytes
        self._deliveries = deliveries
        self._listens: int | None = None
        self._slices: deque[_Slice | _Gaps] = deque()

    @property
    def number(self) -> int:
        """What its events carry as `subscription`."""
        return self.request.subscription

    @property
    def waiting(self) -> bool:
        """There is something to take, or a gap to be closed."""
        return bool(self._slices)

    @property
    def at_gap(self) -> bool:
        """Whether what comes next is a gap."""
        return bool(self._slices) and isinstance(self._slices[0], _Gaps)

    def listen(self) -> None:
        """Perhaps a silence begins."""
        self._listens = self._deliveries.unhindered

    @property
    def is_quiet(self) -> bool:
        """Nothing waits, and since `listen` was called the broker could deliver whatever it had."""
        if self._slices or self.held:
            return False
        return self._listens is not None and self._listens == self._deliveries.unhindered

    def take(self, event: type[Event] = Event) -> list[Event]:
        """The events of the oldest slice, what is left of it; empty when nothing waits, or a gap comes next."""
        if not self._slices:
            return []
        piece = self._slices[0]
        if isinstance(piece, _Gaps):
            return []
        self._slices.popleft()
        count = piece.stop - piece.start
        events = piece.parcel.events(piece.start, piece.stop, event, self.request.subscription)
        self._deliveries.malformed += count - len(events)
        self._taken(piece)
        log = piece.parcel.portion.log
        if self.delivered is not None and log is not None and events:
            positions = [one.sequence + log.shift for one in events]
            fresh = self.delivered.fresh(log.partition, piece.parcel.portion.time, positions)
            events = events[len(events) - len(fresh) :]  # they ascend
        return self._wanted(events, self.checks if piece.former is None else piece.former[0])

    def check_with(self, checks: Sequence[Any]) -> None:
        """What the documents of events must have that come from now on, as the broker says it. Raises LocalError
        without lxml.
        """
        for piece in self._slices if self.confirmed else ():  # what came before it was amended
            if isinstance(piece, _Slice) and piece.former is None:
                piece.former = (self.checks,)
        self.checks = Checks(Check(xpath, tuple(items)) for xpath, items in checks) if checks else None

    def _wanted(self, events: list[Event], checks: Checks | None) -> list[Event]:
        """Those of these events, which come next, that the application gets."""
        events = self.checked(events, checks)
        return events if self.moves is None else self.moves.passed(events)

    def checked(self, events: list[Event], checks: Checks | None) -> list[Event]:
        """Those of these events whose documents have what is asked for; the others are counted."""
        if checks is None:
            return events
        passed = []
        for one in events:
            finding = checks.find(one.body, one.content_type)
            if finding is Finding.TRUE:
                passed.append(one)
            else:
                self.findings.count(one.topic, finding)
        return passed

    def close_gap(self) -> list[Gap]:
        """Go on behind the gap that comes next; what was said of it."""
        piece = self._slices.popleft()
        assert isinstance(piece, _Gaps), "`at_gap` says when"
        return list(piece.said)

    def read(self, piece: Piece, event: type[Event] = Event) -> list[Event]:
        """The events of some rows of a log that this subscription wants."""
        request = self.request
        levels = request.pattern.count("/") if request.options.get("exact") else None
        wanted: list[Event] = []
        for row in piece.rows:
            parts = (row.origin, row.base, row.time, row.offsets, row.topics, row.lengths, row.records, row.count)
            portion = Portion(*parts, LogShift(piece.name.partition, row.first - row.base))
            events = _Parcel(portion).events(0, row.count, event, request.subscription)
            self._deliveries.malformed += row.count - len(events)
            wanted += [one for one in events if levels in (None, one.topic.count("/"))]
        return self._wanted(wanted, self.checks)

    def confirm(self) -> None:
        """The broker has it."""
        self.confirmed = True
        self.confirmation.settle()
        self.changed()

    def unconfirm(self, confirmation: Outcome) -> None:
        """The broker of a new session is told of it."""
        self.confirmed, self.confirmation = False, confirmation

    def put(self, piece: _Slice) -> None:
        """A slice came in."""
        slices = self._slices
        begins = not slices or slices[-1].parcel is not piece.parcel
        slices.append(piece)
        self.events_waiting += piece.stop - piece.start
        if begins:
            piece.bytes = piece.parcel.size
            self.bytes_waiting += piece.bytes
            self._deliveries.grown(self)
        if self.on_change is not None:
            self.on_change()

    def hold(self) -> None:
        """The broker keeps what comes; what is here uses up no credit any more."""
        self.held = True
        self.stalls += 1
        self._goes_on_at = self.events_waiting // 2, self.bytes_waiting // 2
        for piece in self._slices:
            if isinstance(piece, _Slice):
                self._deliveries.consume(piece)

    def gap(self, gap: Gap) -> None:
        """Events of this subscription, or of the session as a whole, did not arrive."""
        if self.delivered is None or self.ended:
            self.tell(gap)
            return
        last = self._slices[-1] if self._slices else None
        if isinstance(last, _Gaps):
            last.said.append(gap)
        else:
            self._slices.append(_Gaps(deque([gap], GAPS_KEPT_MAX)))
        self.changed()

    def tell(self, gap: Gap) -> None:
        """The application is told that these did not arrive."""
        if gap.subscription:
            self.lost += gap.count
        self.gaps.append(gap)
        if self.on_gap is not None:
            self.on_gap(gap)

    def end(self, failure: HeadgateError | None = None, discard: bool = False) -> None:
        """Nothing comes any more. What waits may still be taken, unless it is discarded."""
        if not self.ended:
            self.ended = True
            self.failure = failure
            self.confirmation.settle()
        while discard and self._slices:
            piece = self._slices.popleft()
            if isinstance(piece, _Slice):
                self._taken(piece)
        self.changed()

    def forsake(self, failure: HeadgateError) -> None:
        """This is a copy in another process: end without a word to the broker, and hand out nothing more."""
        self.ended, self.failure = True, failure
        self._slices.clear()

    def first_waiting(self, session: int) -> int | None:
        """How many deliveries of that session came before the first that waits here; None when none does."""
        for piece in self._slices:
            if isinstance(piece, _Slice) and piece.parcel.session == session:
                return piece.parcel.position + piece.start
        return None

    def _taken(self, piece: _Slice) -> None:
        """This slice has left."""
        self.events_waiting -= piece.stop - piece.start
        self.bytes_waiting -= piece.bytes
        self._deliveries.consume(piece)
        if self.held and (self.events_waiting, self.bytes_waiting) <= self._goes_on_at:
            self._deliveries.release(self)
        if not self._slices:
            self._deliveries.relieve()

    def changed(self) -> None:
        """Wake whoever waits."""
        if self.on_change is not None:
            self.on_change()


class Deliveries:
    """Every inbox of a client, and the credit of its session."""

    def __init__(self, window: int, window_bytes: int = CREDIT_BYTES_DEFAULT) -> None:
        self.window = window
        self.window_bytes = window_bytes
        self.on_full: Callable[[Inbox], None] | None = None
        self.inboxes: dict[int, Inbox] = {}
        self.received = 0
        self.lost = 0
        self.malformed = 0
        self._session = 0
        self._taken_at_close: int | None = None
        self._consumed = 0
        self._told = 0
        self._received_bytes = self._consumed_bytes = self._told_bytes = 0
        self._told_taken = 0
        self._hindrances = 0
        self._holds: dict[int, bool] = {}  # what the broker is to be told

    def deliver(self, message: Deliver) -> None:
        """Sort the rows of a DELIVER into the inboxes that they are for."""
        portion = message.portion
        position = self.received
        self.received += portion.count
        if self.unhindered is None:
            self._hindrances += 1
        parcel = _Parcel(portion, self._session, position)
        self._received_bytes += parcel.size
        parcel.charged = 1  # until all of it was sorted: what is taken meanwhile is not all of it
        start = 0
        for numbers, count in message.runs():
            stop = start + count
            carrier: _Slice | None = None
            for number in numbers:
                inbox = self.inboxes.get(number)
                if inbox is not None and not inbox.ended:
                    piece = _Slice(parcel, start, stop, carrier)
                    if carrier is None and not inbox.held:
                        piece.charged = True
                        carrier = piece
                        parcel.charged += count
                    inbox.put(piece)
            if carrier is None:
                # Whoever wants it is full, and is not charged; or an UNSUBSCRIBE has crossed it on the way.
                self._consumed += count
            start = stop
        parcel.charged -= 1
        if not parcel.charged:
            self._consumed_bytes += parcel.size
        self.relieve()

    def gap(self, gap: Gap) -> None:
        """Tell the subscription concerned; all of them when it is the session."""
        self.lost += gap.count
        for inbox in self.inboxes.values() if gap.subscription == 0 else self._named(gap.subscription):
            inbox.gap(gap)

    def consume(self, piece: _Slice) -> None:
        """The application has these, or they are not to use up credit any more."""
        carrier = piece if piece.carrier is None else piece.carrier
        if not carrier.charged or self._taken_at_close is not None:
            return
        carrier.charged = False
        parcel, count = carrier.parcel, carrier.stop - carrier.start
        parcel.charged -= count
        self._consumed += count
        if not parcel.charged:
            self._consumed_bytes += parcel.size

    def relieve(self) -> None:
        """While the broker may send nothing more, and somebody has nothing to take, hold the fullest."""
        if not self._is_stalled or len(self.inboxes) < 2:
            return
        inboxes = [one for one in self.inboxes.values() if not one.ended]
        if all(one.waiting for one in inboxes):
            return  # nobody waits for the others: the application as a whole is slow
        full = [one for one in inboxes if one.events_waiting and not one.held]
        for fullest in sorted(full, key=self._share, reverse=True):
            self._hold(fullest)
            if not self._is_stalled:
                return

    def grown(self, inbox: Inbox) -> None:
        """Another portion came into it. When more than a window waits there, others took and gave credit for what came
        for them as well.
        """
        is_over = inbox.events_waiting > self.window or inbox.bytes_waiting > self.window_bytes
        if is_over and not inbox.held and len(self.inboxes) > 1:
            self._hold(inbox)

    def _hold(self, inbox: Inbox) -> None:
        inbox.hold()
        self._say_hold(inbox, True)
        if self.on_full is not None:
            self.on_full(inbox)

    @property
    def _is_stalled(self) -> bool:
        """A window is used up, and not so much of it was taken that CREDIT is due."""
        window, size = self.window, self.window_bytes
        return (self.received >= self._told + window and self._consumed - self._told < max(1, window // 2)) or (
            self._received_bytes >= self._told_bytes + size
            and self._consumed_bytes - self._told_bytes < max(1, size // 2)
        )

    def _share(self, inbox: Inbox) -> float:
        return inbox.events_waiting / self.window + inbox.bytes_waiting / self.window_bytes

    def release(self, inbox: Inbox) -> None:
        """It goes on."""
        inbox.held = False
        self._say_hold(inbox, False)

    def holds(self) -> Iterator[Hold]:
        """What the broker has to be told before CREDIT."""
        while self._holds:
            number = next(iter(self._holds))
            yield Hold(number, self._holds.pop(number))

    def _say_hold(self, inbox: Inbox, held: bool) -> None:
        if self._taken_at_close is not None:
            return
        # What the broker was not told yet, and is no longer true, it need not hear at all.
        if self._holds.get(inbox.number) is not held and self._holds.pop(inbox.number, None) is None:
            self._holds[inbox.number] = held

    @property
    def unhindered(self) -> int | None:
        """The same number for as long as the broker may deliver whatever it has; None while it may not."""
        may_deliver = (
            self.received < self._told + self.window and self._received_bytes < self._told_bytes + self.window_bytes
        )
        return self._hindrances if may_deliver else None

    def hindered(self) -> None:
        """The connection was lost, or is a new one: bytes count from its beginning, and it holds nothing yet."""
        self._hindrances += 1
        self._consumed_bytes -= self._received_bytes  # what waits uses up credit of the new one
        self._told_bytes, self._received_bytes = self._consumed_bytes, 0
        self._holds = {number: True for number, inbox in self.inboxes.items() if inbox.held}

    @property
    def waiting(self) -> bool:
        """Something of it all was not taken: credit is less than the windows."""
        return any(inbox.waiting for inbox in self.inboxes.values())

    @property
    def credit_due(self) -> bool:
        """Half of a window was consumed since the last CREDIT, or a subscription is full or no longer."""
        return (
            self._consumed - self._told >= max(1, self.window // 2)
            or self._consumed_bytes - self._told_bytes >= max(1, self.window_bytes // 2)
            or bool(self._holds)
        )

    @property
    def taken(self) -> int:
        """The deliveries of this session before the first one that still waits in some inbox, full ones included."""
        if self._taken_at_close is not None:
            return self._taken_at_close
        waiting = (inbox.first_waiting(self._session) for inbox in self.inboxes.values())
        return min((position for position in waiting if position is not None), default=self.received)

    def close(self) -> None:
        """What is discarded from now on was taken by nobody."""
        if self._taken_at_close is None:
            self._taken_at_close = self.taken

    @property
    def untold(self) -> bool:
        """Something was consumed or taken since the last CREDIT."""
        return self._consumed != self._told or self.taken != self._told_taken

    def credit(self) -> Credit:
        """The CREDIT that is true now."""
        self._told = self._consumed
        self._told_bytes = self._consumed_bytes
        allowed = max(0, min(self._consumed + self.window, CREDIT_MAX))
        allowed_bytes = max(0, min(self._consumed_bytes + self.window_bytes, CREDIT_MAX))
        self._told_taken = self.taken
        credit = Credit(allowed, self.received, allowed_bytes, self._told_taken)
        self.relieve()
        return credit

    def restarted(self) -> None:
        """A new session counts from the beginning; what waits here uses up its credit."""
        self._holds.clear()
        for inbox in self.inboxes.values():
            inbox.held = False
        self._consumed -= self.received
        self._told, self.received = self._consumed, 0
        self._told_taken = 0
        self._session += 1
        if self._taken_at_close is not None:
            self._taken_at_close = 0

    def _named(self, number: int) -> list[Inbox]:
        inbox = self.inboxes.get(number)
        return [inbox] if inbox is not None else []
