"""Publications: what a client publishes, from the open batch to the acknowledgement.

    add ---> open batch of the stream ---seal---> queue ---release---> sent ---acknowledged, refused---> settled
    add_columns ---------------------------------^  ^                    |
                                                    +- resumed, or again-+

* Events of one stream collect in its open batch. Order is kept within a stream; streams overtake one another.
* A batch gets its sequence number when it is released to the connection, not before: so the numbers have no holes,
  and a batch without a number has certainly not been sent.
* After a reconnect the session was either resumed (what is unacknowledged goes back to the head of the queue, numbers
  and all, and the broker knows duplicates by them) or is a new one (what has a number has an unknown outcome).
* What is to be stored belongs to a Producer (`producing.py`) and carries its stamp. It is never of unknown outcome
  while there is a broker: after a new session, and after a refusal that may pass, it goes out again under its old
  stamp and a new sequence number. While its producer is not open, it waits, and what came after it waits with it.

Bytes in the queue and under way are counted: above `queue_bytes` `full` is true and nothing more is taken.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..data import Batch, Scalar, encode_column, join_u32, make_batch, pack_record
from ..errors import ErrorCode, EventsRefused, HeadgateError, LocalError, Refused, UnknownOutcome
from ..limits import (
    BATCH_EVENTS_MAX,
    COLUMNS_MAX,
    ENTRY_OVERHEAD_BYTES,
    FAILURES_KEPT_MAX,
    LINGER_BYTES_MAX,
    PUBLISH_LENGTH_MAX,
    PUBLISH_WINDOW_DEFAULT,
)
from ..messages import Mode, Publish, Stamp
from ..structure import Document, filter_columns, filters_of_body, is_filter_name
from .limits import DEFAULT_LIMITS, ClientLimits
from .producing import Producer
from .task import Outcome
from .vocabulary import Vocabulary

__all__ = [
    "OpenBatch",
    "Publications",
    "cut_batches",
    "cut_columns",
    "encoded_size",
]

# Gathering: how events become batches. Events collect in the open batch of their stream, columns are cut into batches.
#
# Match columns are made here, for the attributes that brokers filter on.


class OpenBatch:
    """Events of one stream and mode that wait for company."""

    __slots__ = ("attributes", "filters", "mode", "outcome", "records", "size", "topics")

    def __init__(self, mode: int, outcome: Outcome) -> None:
        self.mode = mode
        self.outcome = outcome
        self.topics: list[str] = []
        self.records: list[bytes] = []
        self.attributes: list[Mapping[str, Scalar]] = []
        self.filters: dict[int, dict[str, bytes]] = {}  # by row; of the others nothing is known
        self.size = 0

    def batch(self, interest: Sequence[str] | None) -> Batch:
        """The columnar form; match columns for what brokers filter on."""
        topics, records = self.topics, self.records
        names = interest
        if interest and self.filters:
            names = [name for name in interest if not is_filter_name(name)]
        columns, complete = _match_columns(self.attributes, names)
        if self.filters:
            columns |= _filter_columns([self.filters.get(row, {}) for row in range(len(topics))])
        same = topics.count(topics[0]) == len(topics)
        joined = topics[0] if same else "\n".join(topics)
        return Batch(joined, len(records), join_u32(map(len, records)), b"".join(records), columns, complete)


def cut_batches(
    topics: Sequence[str],
    columns: Mapping[str, Sequence[Scalar]],
    bodies: Sequence[bytes],
    interest: Sequence[str] | None,
    content_type: str,
) -> Iterator[Batch]:
    """Batches that fit a PUBLISH each, halving what does not."""
    filter_names = [name for name in interest or () if is_filter_name(name)]
    names = [name for name in interest if not is_filter_name(name)] if interest and filter_names else interest
    # Large bodies would otherwise be encoded, found too large, halved and encoded again.
    share = len(bodies) * (PUBLISH_LENGTH_MAX // 4) // max(1, sum(map(len, bodies)))
    step = max(1, min(BATCH_EVENTS_MAX, share))
    pending = [(start, min(start + step, len(bodies))) for start in range(0, len(bodies), step)][::-1]
    while pending:
        start, stop = pending.pop()
        part = {name: values[start:stop] for name, values in columns.items()}
        some = topics if len(topics) == 1 else topics[start:stop]
        batch = make_batch(some, part, bodies[start:stop], names, content_type)
        if filter_names:
            cells = [filters_of_body(body, content_type, filter_names) for body in bodies[start:stop]]
            batch.columns.update(_filter_columns(cells))
        if encoded_size(batch) > PUBLISH_LENGTH_MAX - ENTRY_OVERHEAD_BYTES and stop - start > 1:
            middle = (start + stop) // 2
            pending += [(middle, stop), (start, middle)]
        else:
            yield batch


def cut_columns(
    stream_of: Callable[[str], str],
    topics: str | Sequence[str],
    columns: Mapping[str, Sequence[Scalar]],
    bodies: Sequence[bytes],
) -> Iterator[tuple[str, Sequence[str], Mapping[str, Sequence[Scalar]], Sequence[bytes]]]:
    """Columns by stream: (stream, topics, columns, bodies), rows in their order within each."""
    names = [topics] if isinstance(topics, str) else list(topics)
    if len(names) != 1 and len(names) != len(bodies):
        raise LocalError(f"{len(bodies)} bodies want 1 topic or {len(bodies)}, not {len(names)}")
    streams = {topic: stream_of(topic) for topic in dict.fromkeys(names)}
    if len(set(streams.values())) <= 1:
        if bodies:
            yield streams[names[0]], names, columns, bodies
        return
    rows: dict[str, list[int]] = {}
    for row, topic in enumerate(names):
        rows.setdefault(streams[topic], []).append(row)
    for stream, chosen in rows.items():
        part = {name: _pick(values, chosen) for name, values in columns.items()}
        yield stream, [names[row] for row in chosen], part, [bodies[row] for row in chosen]


def _pick(values: Sequence[Scalar], rows: Sequence[int]) -> Sequence[Scalar]:
    chosen = [values[row] for row in rows]
    return array(values.typecode, chosen) if isinstance(values, array) else chosen  # type: ignore[arg-type]


def encoded_size(batch: Batch) -> int:
    """What the batch takes in a frame, within a few bytes a column."""
    columns = sum(len(name) + len(column) + 16 for name, column in batch.columns.items())
    topics = len(batch.topics) if batch.topics.isascii() else len(batch.topics.encode())
    return len(batch.records) + len(batch.lengths) + topics + columns


def _filter_columns(cells: Sequence[Mapping[str, bytes]]) -> dict[str, bytes]:
    """Columns of filters; where nothing is known of a document there is none."""
    columns: dict[str, bytes] = {}
    for name in dict.fromkeys(chain.from_iterable(cells)):
        column: list[Any] = [cell.get(name) for cell in cells]
        columns[name] = encode_column(column)
    return columns


def _match_columns(
    attributes: Sequence[Mapping[str, Scalar]], interest: Sequence[str] | None
) -> tuple[dict[str, bytes], bool]:
    """The columns that brokers filter on, and whether they cover every attribute that occurs."""
    if interest is not None and not interest:
        return {}, not any(attributes)
    if interest is not None:
        columns = {name: [event.get(name) for event in attributes] for name in interest}
        absent = [name for name, values in columns.items() if values.count(None) == len(values)]
        occurring = dict.fromkeys(chain.from_iterable(attributes))
        complete = columns.keys() >= occurring.keys()
        # A column of nothing but nil says what `complete` would: that no event has it, so that nobody looks for it.
        for name in absent if complete else ():
            del columns[name]
    else:
        names = list(dict.fromkeys(chain.from_iterable(attributes)))
        complete = len(names) <= COLUMNS_MAX
        columns = {name: [event.get(name) for event in attributes] for name in names[:COLUMNS_MAX]}
    return {name: encode_column(values) for name, values in columns.items()}, complete


@dataclass(slots=True)
class _Entry:
    """A sealed batch; `sequence` is 0 until it is released. The rest is of those that belong to a producer."""

    batch: Batch
    mode: int
    outcome: Outcome
    size: int
    sequence: int = 0
    producer: Producer | None = None
    number: int | None = None
    digest: bytes = b""
    ids: bytes = b""
    refusals: int = 0
    again: bool = False
    unsure: bool = False  # it may be in the log although nobody said so
    rejected: EventsRefused | None = None  # what of it the broker will not have, once the rest is stored

    def message(self) -> Publish:
        """As it goes out."""
        producer = self.producer
        if producer is None or self.number is None:
            return Publish(self.sequence, self.mode, self.batch)
        stamp = Stamp(producer.name, producer.epoch, self.number, self.digest, self.ids)
        return Publish(self.sequence, self.mode, self.batch, stamp)


class Publications:
    """Holds every published event from its open batch until the broker has answered for it, within a window.

    `outcome` makes what `add` returns; events of one batch share it.

    `producer` is whose the events of mode STORED are; without one they are published like any other.
    """

    def __init__(
        self,
        outcome: Callable[[int], Outcome],
        batch_events: int,
        producer: Producer | None = None,
        limits: ClientLimits = DEFAULT_LIMITS,
    ) -> None:
        if not 1 <= batch_events <= BATCH_EVENTS_MAX:
            raise LocalError(f"batch_events is 1 to {BATCH_EVENTS_MAX}, not {batch_events}")
        self.batch_events = batch_events
        self._queue_bytes = limits.queue_bytes
        self.window = PUBLISH_WINDOW_DEFAULT
        self.interest: dict[str, list[str] | None] = {}
        self.filter_names: dict[str, tuple[str, ...]] = {}  # of interest: the filters of documents that are asked for
        self.bytes_waiting = 0
        self.failures: deque[HeadgateError] = deque(maxlen=FAILURES_KEPT_MAX)
        self.failure_count = 0
        self.producers: list[Producer] = [] if producer is None else [producer]
        self.clock: Callable[[], float] = lambda: 0.0  # set by whoever has one
        self._own = producer
        self._outcome = outcome
        self._vocabulary = Vocabulary()
        self._open: dict[str, OpenBatch] = {}
        self._queue: deque[_Entry] = deque()
        self._sent: deque[_Entry] = deque()
        self._again: deque[_Entry] = deque()
        self._last_sequence = 0
        self._unreported: deque[Outcome] = deque(maxlen=FAILURES_KEPT_MAX)

    def set_interest(self, stream: str, attributes: list[str] | None) -> None:
        """What brokers filter on, as they said last."""
        self.interest[stream] = attributes
        names = tuple(name for name in attributes or () if is_filter_name(name))
        if names:
            self.filter_names[stream] = names
        else:
            self.filter_names.pop(stream, None)

    # --- Taking in ---------------------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Nothing more is taken before some of it is acknowledged."""
        return self.bytes_waiting >= self._queue_bytes

    @property
    def roomy(self) -> bool:
        """Whoever waited because it was full may go on; well below the bound, so that they do not wait for each."""
        return self.bytes_waiting <= self._queue_bytes // 2

    @property
    def idle(self) -> bool:
        """Nothing is under way or waiting for its turn; open batches do not count."""
        return not self._sent and not self._queue and not self._again

    @property
    def events_waiting(self) -> int:
        """How many events have no answer yet; those of open batches do not count."""
        return sum(entry.batch.count for entry in chain(self._again, self._sent, self._queue))

    @property
    def collecting(self) -> bool:
        """Some batch is open."""
        return bool(self._open)

    @property
    def releasable(self) -> bool:
        """`release` would give something."""
        return bool(self._queue or self._again) and len(self._sent) < self.window

    def add(
        self,
        topic: str,
        attributes: Mapping[str, Any] | None,
        body: bytes,
        content_type: str,
        mode: int,
        document: Document | None = None,
    ) -> Outcome:
        """Take an event into its stream's open batch; `document` is what its body was read as. Raises LocalError for
        what no broker would take.
        """
        if mode == Mode.STORED:
            self._check_own()
        stream = self._vocabulary.stream_of(topic)
        # A copy: the caller may change its map before the batch is sealed.
        attributes = self._vocabulary.checked(attributes) if attributes else {}
        record = pack_record(attributes, body, content_type)
        size = len(record) + len(topic)
        filters = self._filters(stream, body, content_type, document) if self.filter_names else None
        batch = self._open.get(stream)
        if batch is not None and (batch.mode != mode or batch.size + size > LINGER_BYTES_MAX):
            self._seal(stream)
            batch = None
        if batch is None:
            batch = self._open[stream] = OpenBatch(mode, self._outcome(0))
        if filters is not None:
            batch.filters[len(batch.records)] = filters
        batch.topics.append(topic)
        batch.records.append(record)
        batch.attributes.append(attributes)
        batch.size += size
        outcome = batch.outcome
        outcome.events += 1
        if batch.size >= LINGER_BYTES_MAX or len(batch.records) >= self.batch_events:
            self._seal(stream)
        return outcome

    def _filters(
        self, stream: str, body: bytes, content_type: str, document: Document | None
    ) -> dict[str, bytes] | None:
        """The filters of an event, if brokers ask for some. Raises LocalError when its document would be refused."""
        names = self.filter_names.get(stream)
        if not names:
            return None
        if document is None:
            return filters_of_body(body, content_type, names)
        document.check_filters(names)
        return filter_columns(document, names)

    def add_columns(
        self,
        topics: str | Sequence[str],
        attributes: Mapping[str, Sequence[Scalar]] | None,
        bodies: Sequence[bytes],
        content_type: str,
        mode: int,
    ) -> Iterator[Outcome]:
        """Take columns of events; yields one outcome for each batch that it becomes, and makes the next one after."""
        if mode == Mode.STORED:
            self._check_own()
        columns = self._vocabulary.checked_columns(attributes or {}, len(bodies))
        for stream, names, part, part_bodies in cut_columns(self._vocabulary.stream_of, topics, columns, bodies):
            for batch in cut_batches(names, part, part_bodies, self.interest.get(stream), content_type):
                if stream in self._open:
                    self._seal(stream)
                outcome = self._outcome(batch.count)
                self._enqueue(batch, mode, outcome)
                yield outcome

    def add_produced(self, producer: Producer, batch: Batch, digest: bytes, ids: bytes) -> Outcome:
        """Take a batch of a producer as it is. Raises LocalError when it is none, or too large; or why it failed."""
        if producer.failure is not None:
            raise producer.failure
        batch.check()
        if encoded_size(batch) + len(ids) > PUBLISH_LENGTH_MAX - 2 * ENTRY_OVERHEAD_BYTES:
            raise LocalError(f"a batch has at most {PUBLISH_LENGTH_MAX} bytes: publish fewer events at a time")
        outcome = self._outcome(batch.count)
        # Its producer tells of errors.
        outcome.awaiters = batch.count
        entry = self._enqueue(batch, Mode.STORED, outcome, producer)
        entry.digest, entry.ids = digest, ids
        return outcome

    def seal_all(self) -> None:
        """Close every open batch: none of them waits for company any more."""
        for stream in list(self._open):
            self._seal(stream)

    # --- Sending, and what comes back --------------------------------------------------------------------------------

    def release(self) -> Iterator[Publish]:
        """The messages that may be sent now, within the window. Each that is taken counts as sent."""
        while len(self._sent) < self.window and (entry := self._next_entry()) is not None:
            if entry.mode == Mode.FIRE:
                self._settle(entry, None)
                yield Publish(0, entry.mode, entry.batch)
                continue
            if not entry.sequence:
                self._last_sequence += 1
                entry.sequence = self._last_sequence
            self._sent.append(entry)
            yield entry.message()

    def acknowledged(self, sequence: int) -> None:
        """The broker has answered every batch up to this one."""
        sent = self._sent
        while sent and sent[0].sequence <= sequence:
            self._answered(sent.popleft())

    def refused(self, sequence: int, error: HeadgateError) -> None:
        """The broker said no to one batch; its place in the window is freed by the acknowledgement that follows."""
        for entry in self._sent:
            if entry.sequence == sequence:
                self._refuse(entry, error)
                return
        # Nothing is kept of what was fired: its refusal has no receipt to go to.
        self._fail(self._outcome(len(error.rows) if isinstance(error, EventsRefused) else 1), error)

    def rejected(self, sequence: int, error: EventsRefused, kept: bool) -> None:
        """The broker said no to some events of a batch. Of a producer's it took none then: the others go out anew."""
        entry = next((one for one in self._sent if one.sequence == sequence), None)
        if kept or entry is None or entry.producer is None or entry.number is None or entry.producer.strict:
            self.refused(sequence, error)
        elif not entry.again:
            places = [row for row in range(entry.batch.count) if row not in error.rows]
            if not places:
                self.refused(sequence, error)
                return
            entry.producer.closed()
            entry.batch, entry.rejected, entry.again = entry.batch.select(places, entry.batch.columns), error, True

    def resumed(self, accepted: int, window: int) -> None:
        """The session goes on: what the broker has is done, the rest is sent again in order."""
        self.window = window
        self._queue.extendleft(reversed(self._sent))
        self._sent.clear()
        while self._queue and 0 < self._queue[0].sequence <= accepted:
            self._answered(self._queue.popleft())

    def restarted(self, window: int, reason: str) -> None:
        """A new session: numbers begin again, and only stamps can say what became of what was sent."""
        self.window = window
        self.interest.clear()
        self._last_sequence = 0
        entries = [*self._again, *self._sent, *self._queue]
        for waiting in (self._again, self._sent, self._queue):
            waiting.clear()
        for producer in self.producers:
            producer.under_way = 0
            producer.hindrance = None
            producer.closed()
        for entry in entries:
            if entry.producer is not None and not entry.outcome.settled:
                entry.unsure = entry.unsure or (entry.sequence > 0 and not entry.again)
                entry.sequence, entry.again = 0, False
                self._queue.append(entry)
            elif entry.sequence:
                self._settle(entry, UnknownOutcome(entry.batch.count, reason))
            else:
                self._queue.append(entry)

    def abandon(self, error: HeadgateError, reason: str) -> None:
        """The broker will not be reached again: nothing waits any longer."""
        self.seal_all()
        self.restarted(self.window, reason)
        while self._queue:
            entry = self._queue.popleft()
            self._settle(entry, UnknownOutcome(entry.batch.count, reason) if entry.unsure else error)

    def pending(self) -> list[Outcome]:
        """What is sealed and has no answer yet."""
        entries = chain(self._again, self._sent, self._queue)
        return [entry.outcome for entry in entries if not entry.outcome.settled]

    def take_unreported(self) -> HeadgateError | None:
        """The first failure since the last call that no awaiter was told of, then or later."""
        untold = [outcome.error for outcome in self._unreported if outcome.awaiters < outcome.events]
        self._unreported.clear()
        return untold[0] if untold else None

    # --- Producers ---------------------------------------------------------------------------------------------------

    def to_open(self) -> Iterator[Producer]:
        """The producers that have something to send, and must be opened before."""
        for producer in self.producers:
            if producer.wants_opening:
                producer.goes_out(self.clock())
                yield producer

    @property
    def pause_seconds(self) -> float | None:
        """How long producers rest before they are opened again; None when none does."""
        return max((producer.pause_seconds for producer in self.producers if producer.rests), default=None)

    def rested(self) -> None:
        """That time is over."""
        for producer in self.producers:
            producer.rests = False

    def not_opened(self, producer: Producer, error: HeadgateError) -> None:
        """The broker does not know this producer and will not: what waits for that has failed."""
        reason = producer.not_opened(error, self.clock())
        if reason is not None:
            self._drop(producer, reason)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _seal(self, stream: str) -> None:
        opened = self._open.pop(stream)
        self._enqueue(opened.batch(self.interest.get(stream)), opened.mode, opened.outcome)

    def _enqueue(self, batch: Batch, mode: int, outcome: Outcome, producer: Producer | None = None) -> _Entry:
        if mode == Mode.STORED and producer is None:
            producer = self._own
        size = encoded_size(batch) + ENTRY_OVERHEAD_BYTES
        self.bytes_waiting += size
        if producer is not None:
            producer.waiting += 1
        entry = _Entry(batch, mode, outcome, size, producer=producer)
        self._queue.append(entry)
        return entry

    def _check_own(self) -> None:
        if self._own is not None and self._own.failure is not None:
            raise self._own.failure

    def _next_entry(self) -> _Entry | None:
        """What goes out next. What has a sequence number comes first, because these have no holes."""
        queue = self._queue
        if self._again and not (queue and queue[0].sequence):
            queue = self._again
        if not queue:
            return None
        entry = queue[0]
        producer = entry.producer
        if producer is not None and not producer.admits(entry.number, entry.sequence):
            if producer.failure is not None:
                self._drop(producer, producer.failure)
                return self._next_entry()
            return None
        queue.popleft()
        if producer is not None and not entry.sequence:
            producer.under_way += 1
            producer.goes_out(self.clock())
            entry.number = producer.numbered(entry.number, entry.batch.count)
        return entry

    def _drop(self, producer: Producer, error: HeadgateError) -> None:
        """What a producer has not sent will not be sent; of what it did send nobody can say any more."""
        for waiting in (self._again, self._queue):
            for entry in [one for one in waiting if one.producer is producer and not one.sequence]:
                waiting.remove(entry)
                unknown = entry.unsure and producer.failure is None
                self._settle(entry, UnknownOutcome(entry.batch.count, str(error)) if unknown else error)

    def _refuse(self, entry: _Entry, error: HeadgateError) -> None:
        producer, number = entry.producer, entry.number
        if producer is None or number is None:
            self._fail(entry.outcome, error)
            return
        if entry.again:
            return  # said again after a lost connection
        entry.refusals += 1
        entry.unsure = entry.unsure or (isinstance(error, Refused) and error.code == ErrorCode.NOT_STORED)
        reason = producer.refused(error, number, entry.refusals, self.clock())
        entry.again = reason is None
        if reason is not None:
            unknown = entry.unsure and producer.failure is None
            self._fail(entry.outcome, UnknownOutcome(entry.batch.count, str(reason)) if unknown else reason)

    def _answered(self, entry: _Entry) -> None:
        """Its place in the window is free: it is done, or will be sent again."""
        producer = entry.producer
        if producer is None or entry.number is None:
            self._settle(entry, None)
            return
        producer.under_way -= 1
        if entry.again and producer.failure is None:
            entry.sequence, entry.again = 0, False
            self._again.append(entry)
        else:
            error = producer.failure if entry.again else None
            if error is None and not entry.outcome.settled:
                producer.stored(entry.number, entry.batch.count)
            self._settle(entry, error or entry.rejected)

    def _settle(self, entry: _Entry, error: HeadgateError | None) -> None:
        self.bytes_waiting -= entry.size
        if entry.producer is not None:
            entry.producer.waiting -= 1
            if error is not None and entry.producer.strict:
                entry.producer.fail(error)
        if error is not None and not entry.outcome.settled:
            self._fail(entry.outcome, error)
        entry.outcome.settle()

    def _fail(self, outcome: Outcome, error: HeadgateError) -> None:
        # A refusal is said again after a lost connection; it is one failure all the same.
        if outcome.awaiters < outcome.events and not outcome.settled:
            self.failures.append(error)
            events = outcome.events - outcome.awaiters
            self.failure_count += min(events, len(error.rows)) if isinstance(error, EventsRefused) else events
            self._unreported.append(outcome)
        outcome.settle(error=error)
