"""Deliveries: what a client receives, from the DELIVER message to the application's hands, and the credit it gives.

A `Parcel` is one DELIVER, opened once however many subscriptions share it. Each run of its rows goes as a `Slice` into
the `Inbox` of every subscription named for it. Records are decoded when the application takes them, so that what
nobody reads costs no more than its bytes. (Measured against decoding at once, 128-byte bodies and three attributes:
a third of the memory while they wait, and a tenth less time.) A record that is none is skipped and counted: one
hostile publisher must not end anybody's loop.

Credit is one window for the whole connection, counted in events since the session began. An event counts as received
when it came, and as consumed when the first subscription named for it handed it over. The broker is told anew when
half of the window was consumed. So what waits here is at most a window; and one subscription that is not read from
holds up all others of its client once it has filled that window. A silence after that says nothing (`is_quiet`).

Where a subscription can read again what it missed (`replay.py`), a gap is told of in its place among the events: `take`
stops before it until `close_gap` was called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from .batch import Portion, split_u32
from .columns import Scalar
from .errors import HeadgateError, ProtocolViolation
from .heard import Heard
from .limits import CREDIT_MAX, GAPS_KEPT_MAX
from .messages import Credit, Deliver, Gap, Subscribe
from .records import decode_record
from .replay import Piece

__all__ = ["Deliveries", "Event", "Inbox"]


class Event:
    """One event as a subscriber gets it. `subscription` is the number of the subscription that it came for.

    `position` is its place in a log, as in "ann@1763492000:120", when it was read from there, and otherwise empty.
    """

    __slots__ = (
        "attributes",
        "body",
        "content_type",
        "origin",
        "position",
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
    ) -> None:
        self.origin = origin
        self.sequence = sequence
        self.time = time
        self.topic = topic
        self.attributes = attributes
        self.body = body
        self.content_type = content_type
        self.subscription = subscription
        self.position = ""

    @property
    def id(self) -> str:
        """Its name in the cluster, given by the broker that accepted it."""
        return f"{self.origin}.{self.sequence}"

    @property
    def text(self) -> str:
        """The body as UTF-8 text; bytes that are none become U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"Event(id={self.id!r}, topic={self.topic!r}, attributes={self.attributes!r}, {len(self.body)} bytes)"


class _Parcel:
    """A portion that is opened when its first row is wanted."""

    __slots__ = ("_pieces", "_rows", "_topics", "portion")

    def __init__(self, portion: Portion) -> None:
        self.portion = portion
        self._pieces: list[bytes] = []
        self._topics: list[str] = []
        self._rows: Any = ()

    def events(self, start: int, stop: int, event: type[Event], subscription: int) -> list[Event]:
        """The events of these rows; fewer when a record is malformed."""
        portion = self.portion
        if not self._pieces:
            self._open()
        time, origin, base = portion.time / 1e6, portion.origin, portion.base
        rows, topics = self._rows, self._topics
        one = topics[0] if len(topics) == 1 else ""
        events = []
        for place in range(start, stop):
            try:
                attributes, body, content_type = decode_record(self._pieces[place])
            except ProtocolViolation:
                continue
            topic = one or topics[place]
            found = event(origin, base + rows[place], time, topic, attributes, body, content_type, subscription)
            events.append(found)
        return events

    def _open(self) -> None:
        portion = self.portion
        ends = list(accumulate(split_u32(portion.lengths)))
        records = portion.records
        self._pieces = [records[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        self._topics = portion.topics.split("\n")
        self._rows = portion.rows()


@dataclass(slots=True)
class _Slice:
    """Rows of a parcel in one inbox; `session` counts them as consumed when they are taken, 0 does not."""

    parcel: _Parcel
    start: int
    stop: int
    session: int


@dataclass(slots=True)
class _Gaps:
    """A place in an inbox where something is missing, and what was said of it."""

    said: deque[Gap]


class Inbox:
    """One subscription's end of the wire. Whoever waits for it sets `on_change`.

    What is delivered with a number up to that of its origin in `covered` was read from a log before, and is left out.
    With `heard`, what is handed out is noted there, and gaps are kept where they are.
    """

    def __init__(self, deliveries: Deliveries, request: Subscribe) -> None:
        self.request = request
        self.on_change: Callable[[], None] | None = None
        self.on_gap: Callable[[Gap], None] | None = None
        self.confirmed = False  # by the broker, in the session that there is now
        self.lost = 0
        self.gaps: deque[Gap] = deque(maxlen=GAPS_KEPT_MAX)
        self.failure: HeadgateError | None = None
        self.ended = False
        self.covered: dict[str, int] = {}
        self.heard: Heard | None = None
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
        return not self._slices and self._listens is not None and self._listens == self._deliveries.unhindered

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
        self._deliveries.consume(piece.session, count)
        if self.covered:
            events = [one for one in events if one.sequence > self.covered.get(one.origin, -1)]
        if self.heard is not None:
            portion = piece.parcel.portion
            self.heard.add(portion.origin, portion.time, [one.sequence for one in events])
        return events

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
            portion = Portion(
                row.origin, row.base, row.time, row.offsets, row.topics, row.lengths, row.records, row.count
            )
            events = _Parcel(portion).events(0, row.count, event, request.subscription)
            self._deliveries.malformed += row.count - len(events)
            for one in events:
                position = row.first + one.sequence - row.base
                if position >= piece.position and levels in (None, one.topic.count("/")):
                    one.position = f"{piece.name.partition}:{position}"
                    wanted.append(one)
        return wanted

    def put(self, piece: _Slice) -> None:
        """A slice came in."""
        self._slices.append(piece)
        self.changed()

    def gap(self, gap: Gap) -> None:
        """Events of this subscription, or of the session as a whole, did not arrive."""
        if self.heard is None or self.ended:
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
        while discard and self._slices:
            piece = self._slices.popleft()
            if isinstance(piece, _Slice):
                self._deliveries.consume(piece.session, piece.stop - piece.start)
        self.changed()

    def changed(self) -> None:
        """Wake whoever waits."""
        if self.on_change is not None:
            self.on_change()


class Deliveries:
    """Every inbox of a client, and the credit of its session."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.inboxes: dict[int, Inbox] = {}
        self.received = 0
        self.lost = 0
        self.malformed = 0
        self.closed = False  # what is discarded now was not taken
        self._consumed = 0
        self._told = 0
        self._session = 1
        self._hindrances = 0

    def deliver(self, message: Deliver) -> None:
        """Sort the rows of a DELIVER into the inboxes that they are for."""
        portion = message.portion
        self.received += portion.count
        if self.unhindered is None:
            self._hindrances += 1
        parcel = _Parcel(portion)
        start = 0
        for numbers, count in message.runs():
            stop = start + count
            session = self._session
            for number in numbers:
                inbox = self.inboxes.get(number)
                if inbox is not None and not inbox.ended:
                    inbox.put(_Slice(parcel, start, stop, session))
                    session = 0
            # Nobody here wants it any more: an UNSUBSCRIBE has crossed it on the way.
            self.consume(session, count)
            start = stop

    def gap(self, gap: Gap) -> None:
        """Tell the subscription concerned; all of them when it is the session."""
        self.lost += gap.count
        for inbox in self.inboxes.values() if gap.subscription == 0 else self._named(gap.subscription):
            inbox.gap(gap)

    def consume(self, session: int, count: int) -> None:
        """The application has these; those of an earlier session are no credit in this one."""
        if session == self._session and not self.closed:
            self._consumed += count

    @property
    def unhindered(self) -> int | None:
        """The same number for as long as the broker may deliver whatever it has; None while it may not."""
        return self._hindrances if self.received < self._told + self.window else None

    def hindered(self) -> None:
        """The connection was lost, or is a new one."""
        self._hindrances += 1

    @property
    def credit_due(self) -> bool:
        """Half of the window was consumed since the last CREDIT."""
        return self._consumed - self._told >= max(1, self.window // 2)

    @property
    def untold(self) -> bool:
        """Something was consumed since the last CREDIT."""
        return self._consumed != self._told

    def credit(self) -> Credit:
        """The CREDIT that is true now."""
        self._told = self._consumed
        return Credit(min(self._consumed + self.window, CREDIT_MAX), self.received)

    def restarted(self) -> None:
        """A new session counts from the beginning; what waits here still counts as nothing in it."""
        self._session += 1
        self.received = self._consumed = self._told = 0

    def _named(self, number: int) -> list[Inbox]:
        inbox = self.inboxes.get(number)
        return [inbox] if inbox is not None else []
