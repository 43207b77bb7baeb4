"""Publications: what a client publishes, from the open batch to the acknowledgement.

    add ---> open batch of the stream ---seal---> queue ---release---> sent ---acknowledged, refused---> settled
    add_batch -----------------------------------^  ^                    |
                                                    +------ resumed -----+

* Events of one stream collect in its open batch. Order is kept within a stream; streams overtake one another.
* A batch gets its sequence number when it is released to the connection, not before: so the numbers have no holes,
  and a batch without a number has certainly not been sent.
* After a reconnect the session was either resumed (what is unacknowledged goes back to the head of the queue, numbers
  and all, and the broker knows duplicates by them) or is a new one (what has a number has an unknown outcome).

Bytes in the queue and under way are counted: above QUEUE_BYTES_MAX `full` is true and nothing more is taken.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from .batch import Batch, join_u32, make_batch
from .columns import Scalar, encode_column
from .errors import HeadgateError, LocalError, UnknownOutcome
from .limits import (
    ATTRIBUTES_MAX,
    BATCH_EVENTS_MAX,
    ENTRY_OVERHEAD_BYTES,
    FAILURES_KEPT_MAX,
    LINGER_BYTES_MAX,
    PUBLISH_LENGTH_MAX,
    PUBLISH_WINDOW_DEFAULT,
    QUEUE_BYTES_MAX,
)
from .messages import Mode, Publish
from .outcome import Outcome
from .records import pack_record
from .vocabulary import Vocabulary

__all__ = ["Publications", "cut_columns"]


class _OpenBatch:
    """Events of one stream and mode that wait for company."""

    __slots__ = ("attributes", "mode", "outcome", "records", "size", "topics")

    def __init__(self, mode: int, outcome: Outcome) -> None:
        self.mode = mode
        self.outcome = outcome
        self.topics: list[str] = []
        self.records: list[bytes] = []
        self.attributes: list[Mapping[str, Scalar]] = []
        self.size = 0

    def batch(self, interest: Sequence[str] | None) -> Batch:
        """The columnar form; match columns for what brokers filter on."""
        topics, records = self.topics, self.records
        columns, complete = _match_columns(self.attributes, interest)
        same = topics.count(topics[0]) == len(topics)
        joined = topics[0] if same else "\n".join(topics)
        return Batch(joined, len(records), join_u32(map(len, records)), b"".join(records), columns, complete)


@dataclass(slots=True)
class _Entry:
    """A sealed batch; `sequence` is 0 until it is released."""

    batch: Batch
    mode: int
    outcome: Outcome
    size: int
    sequence: int = 0


class Publications:
    """See the head of this file. `outcome` makes what `add` returns; events of one batch share it."""

    def __init__(self, outcome: Callable[[int], Outcome], batch_events: int) -> None:
        if not 1 <= batch_events <= BATCH_EVENTS_MAX:
            raise LocalError(f"batch_events is 1 to {BATCH_EVENTS_MAX}, not {batch_events}")
        self.batch_events = batch_events
        self.window = PUBLISH_WINDOW_DEFAULT
        self.interest: dict[str, list[str] | None] = {}
        self.bytes_waiting = 0
        self.failures: deque[HeadgateError] = deque(maxlen=FAILURES_KEPT_MAX)
        self.failure_count = 0
        self._outcome = outcome
        self._vocabulary = Vocabulary()
        self._open: dict[str, _OpenBatch] = {}
        self._queue: deque[_Entry] = deque()
        self._sent: deque[_Entry] = deque()
        self._last_sequence = 0
        self._unreported: deque[Outcome] = deque(maxlen=FAILURES_KEPT_MAX)

    # --- Taking in ---------------------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Nothing more is taken before some of it is acknowledged."""
        return self.bytes_waiting >= QUEUE_BYTES_MAX

    @property
    def roomy(self) -> bool:
        """Whoever waited because it was full may go on; well below the bound, so that they do not wait for each."""
        return self.bytes_waiting <= QUEUE_BYTES_MAX // 2

    @property
    def idle(self) -> bool:
        """Nothing is under way or waiting for its turn; open batches do not count."""
        return not self._sent and not self._queue

    @property
    def collecting(self) -> bool:
        """Some batch is open."""
        return bool(self._open)

    @property
    def releasable(self) -> bool:
        """`release` would give something."""
        return bool(self._queue) and len(self._sent) < self.window

    def add(
        self, topic: str, attributes: Mapping[str, Any] | None, body: bytes, content_type: str, mode: int
    ) -> Outcome:
        """Take an event into its stream's open batch. Raises LocalError for what no broker would take."""
        stream = self._vocabulary.stream_of(topic)
        # A copy: the caller may change its map before the batch is sealed.
        attributes = self._vocabulary.checked(attributes) if attributes else {}
        record = pack_record(attributes, body, content_type)
        size = len(record) + len(topic)
        batch = self._open.get(stream)
        if batch is not None and (batch.mode != mode or batch.size + size > LINGER_BYTES_MAX):
            self._seal(stream)
            batch = None
        if batch is None:
            batch = self._open[stream] = _OpenBatch(mode, self._outcome(0))
        batch.topics.append(topic)
        batch.records.append(record)
        batch.attributes.append(attributes)
        batch.size += size
        outcome = batch.outcome
        outcome.events += 1
        if batch.size >= LINGER_BYTES_MAX or len(batch.records) >= self.batch_events:
            self._seal(stream)
        return outcome

    def add_columns(
        self,
        topics: str | Sequence[str],
        attributes: Mapping[str, Sequence[Scalar]] | None,
        bodies: Sequence[bytes],
        content_type: str,
        mode: int,
    ) -> Iterator[Outcome]:
        """Take columns of events; yields one outcome for each batch that it becomes, and makes the next one after."""
        columns = self._vocabulary.checked_columns(attributes or {}, len(bodies))
        for stream, names, part, part_bodies in cut_columns(self._vocabulary.stream_of, topics, columns, bodies):
            for batch in self._batches(names, part, part_bodies, self.interest.get(stream), content_type):
                if stream in self._open:
                    self._seal(stream)
                outcome = self._outcome(batch.count)
                self._enqueue(batch, mode, outcome)
                yield outcome

    def seal_all(self) -> None:
        """Close every open batch: none of them waits for company any more."""
        for stream in list(self._open):
            self._seal(stream)

    # --- Sending, and what comes back --------------------------------------------------------------------------------

    def release(self) -> Iterator[Publish]:
        """The messages that may be sent now, within the window. Each that is taken counts as sent."""
        while self._queue and len(self._sent) < self.window:
            entry = self._queue.popleft()
            if entry.mode == Mode.FIRE:
                self._settle(entry, None)
                yield Publish(0, entry.mode, entry.batch)
                continue
            if not entry.sequence:
                self._last_sequence += 1
                entry.sequence = self._last_sequence
            self._sent.append(entry)
            yield Publish(entry.sequence, entry.mode, entry.batch)

    def acknowledged(self, sequence: int) -> None:
        """The broker has answered every batch up to this one."""
        sent = self._sent
        while sent and sent[0].sequence <= sequence:
            self._settle(sent.popleft(), None)

    def refused(self, sequence: int, error: HeadgateError) -> None:
        """The broker said no to one batch; its place in the window is freed by the acknowledgement that follows."""
        for entry in self._sent:
            if entry.sequence == sequence:
                self._fail(entry.outcome, error)
                return
        # Nothing is kept of what was fired: its refusal has no receipt to go to.
        self._fail(self._outcome(1), error)

    def resumed(self, accepted: int, window: int) -> None:
        """The session goes on: what the broker has is done, the rest is sent again in order."""
        self.window = window
        self._queue.extendleft(reversed(self._sent))
        self._sent.clear()
        while self._queue and 0 < self._queue[0].sequence <= accepted:
            self._settle(self._queue.popleft(), None)

    def restarted(self, window: int, reason: str) -> None:
        """A new session: numbers begin again, and nobody can say what became of what was sent."""
        self.window = window
        self.interest.clear()
        self._last_sequence = 0
        entries = [*self._sent, *self._queue]
        self._sent.clear()
        self._queue.clear()
        for entry in entries:
            if entry.sequence:
                self._settle(entry, UnknownOutcome(entry.batch.count, reason))
            else:
                self._queue.append(entry)

    def abandon(self, error: HeadgateError, reason: str) -> None:
        """The broker will not be reached again: nothing waits any longer."""
        self.seal_all()
        self.restarted(self.window, reason)
        while self._queue:
            self._settle(self._queue.popleft(), error)

    def pending(self) -> list[Outcome]:
        """What is sealed and has no answer yet."""
        return [entry.outcome for entry in chain(self._sent, self._queue) if not entry.outcome.settled]

    def take_unreported(self) -> HeadgateError | None:
        """The first failure since the last call that no awaiter was told of, then or later."""
        untold = [outcome.error for outcome in self._unreported if outcome.awaiters < outcome.events]
        self._unreported.clear()
        return untold[0] if untold else None

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _seal(self, stream: str) -> None:
        opened = self._open.pop(stream)
        self._enqueue(opened.batch(self.interest.get(stream)), opened.mode, opened.outcome)

    def _enqueue(self, batch: Batch, mode: int, outcome: Outcome) -> None:
        size = _encoded_size(batch) + ENTRY_OVERHEAD_BYTES
        self.bytes_waiting += size
        self._queue.append(_Entry(batch, mode, outcome, size))

    def _settle(self, entry: _Entry, error: HeadgateError | None) -> None:
        self.bytes_waiting -= entry.size
        if error is not None and not entry.outcome.settled:
            self._fail(entry.outcome, error)
        entry.outcome.settle()

    def _fail(self, outcome: Outcome, error: HeadgateError) -> None:
        # A refusal is said again after a lost connection; it is one failure all the same.
        if outcome.awaiters < outcome.events and not outcome.settled:
            self.failures.append(error)
            self.failure_count += outcome.events - outcome.awaiters
            self._unreported.append(outcome)
        outcome.settle(error=error)

    def _batches(
        self,
        topics: Sequence[str],
        columns: Mapping[str, Sequence[Scalar]],
        bodies: Sequence[bytes],
        interest: Sequence[str] | None,
        content_type: str,
    ) -> Iterator[Batch]:
        """Batches that fit a PUBLISH each, halving what does not."""
        # Large bodies would otherwise be encoded, found too large, halved and encoded again.
        share = len(bodies) * (PUBLISH_LENGTH_MAX // 4) // max(1, sum(map(len, bodies)))
        step = max(1, min(BATCH_EVENTS_MAX, share))
        pending = [(start, min(start + step, len(bodies))) for start in range(0, len(bodies), step)][::-1]
        while pending:
            start, stop = pending.pop()
            part = {name: values[start:stop] for name, values in columns.items()}
            some = topics if len(topics) == 1 else topics[start:stop]
            batch = make_batch(some, part, bodies[start:stop], interest, content_type)
            if _encoded_size(batch) > PUBLISH_LENGTH_MAX - ENTRY_OVERHEAD_BYTES and stop - start > 1:
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


def _encoded_size(batch: Batch) -> int:
    """What the batch takes in a frame, within a few bytes a column."""
    columns = sum(len(name) + len(column) + 16 for name, column in batch.columns.items())
    topics = len(batch.topics) if batch.topics.isascii() else len(batch.topics.encode())
    return len(batch.records) + len(batch.lengths) + topics + columns


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
        complete = len(names) <= ATTRIBUTES_MAX
        columns = {name: [event.get(name) for event in attributes] for name in names[:ATTRIBUTES_MAX]}
    return {name: encode_column(values) for name, values in columns.items()}, complete
