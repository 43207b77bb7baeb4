"""A batch of events of one stream, in columns: the unit on the wire, in the core and on disk.

    topics    one string: the topic of every event, or one topic a line when they differ
    lengths   u32 little-endian, one an event: where each record ends in
    records   all records joined, opaque, forwarded verbatim
    columns   match columns by attribute name, still encoded; decoded when a condition reads them

Why joined strings and not arrays: split, join and slice are single C calls, so a batch that goes to one place whole
costs the broker nothing per event, and one that is spread over many places costs a slice an event. A control
character cannot occur in a topic, which makes the line feed a safe separator.

A `Portion` is what a subscriber's connection gets of a batch: the rows that somebody there asked for. It is made once
and shared by every connection that gets the same rows, encoded bytes included.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import accumulate
from operator import itemgetter

from .columns import SCALAR_TYPES, Scalar, decode_column, encode_column
from .errors import LocalError, ProtocolViolation
from .limits import ATTRIBUTES_MAX, BATCH_EVENTS_MAX, RECORD_LENGTH_MAX
from .records import decode_record, encode_record, pack_record

__all__ = ["Batch", "Portion", "join_batches", "join_u32", "make_batch", "split_u32"]

_SWAP = sys.byteorder == "big"


def join_u32(values: Iterable[int]) -> bytes:
    """Integers as u32 little-endian."""
    words = array("I", values)
    if _SWAP:
        words.byteswap()
    return words.tobytes()


def split_u32(data: bytes) -> array[int]:
    """The integers of u32 little-endian bytes; raises ProtocolViolation on a broken length."""
    if len(data) % 4:
        raise ProtocolViolation(f"a column of 32-bit integers has a multiple of 4 bytes, not {len(data)}")
    words = array("I")
    words.frombytes(data)
    if _SWAP:
        words.byteswap()
    return words


@dataclass(slots=True)
class Portion:
    """The rows of one batch that go to one connection, and where the batch stands in its broker's sequence."""

    origin: str
    base: int
    time: int
    offsets: bytes
    topics: str
    lengths: bytes
    records: bytes
    count: int
    encoded: bytes = field(default=b"", repr=False, compare=False)

    def rows(self) -> Sequence[int]:
        """The place of each event after `base`; no offsets means that they follow one another."""
        return split_u32(self.offsets) if self.offsets else range(self.count)


@dataclass(slots=True)
class Batch:
    """Events of one stream; see the head of this file."""

    topics: str
    count: int
    lengths: bytes
    records: bytes
    columns: dict[str, bytes] = field(default_factory=dict)
    complete: bool = True
    _ends: list[int] | None = field(default=None, repr=False, compare=False)
    _pieces: list[bytes] | None = field(default=None, repr=False, compare=False)
    _topics: list[str] | None = field(default=None, repr=False, compare=False)
    _decoded: dict[str, Sequence[Scalar]] = field(default_factory=dict, repr=False, compare=False)
    _attributes: list[dict[str, Scalar]] | None = field(default=None, repr=False, compare=False)

    def check(self) -> None:
        """Raises ProtocolViolation unless the parts fit one another. Records themselves stay unopened."""
        lengths = split_u32(self.lengths)
        if not 0 < len(lengths) <= BATCH_EVENTS_MAX:
            raise ProtocolViolation(f"a batch holds 1 to {BATCH_EVENTS_MAX} events, not {len(lengths)}")
        if len(lengths) != self.count:
            raise ProtocolViolation(f"a batch of {self.count} events has {self.count} lengths, not {len(lengths)}")
        if len(self.records) > RECORD_LENGTH_MAX and max(lengths) > RECORD_LENGTH_MAX:
            raise ProtocolViolation(f"a record has at most {RECORD_LENGTH_MAX} bytes, not {max(lengths)}")
        if sum(lengths) != len(self.records):
            raise ProtocolViolation(f"the lengths add up to {sum(lengths)}, the records have {len(self.records)} bytes")
        lines = self.topics.count("\n") + 1
        if lines not in (1, self.count):
            raise ProtocolViolation(f"a batch of {self.count} events names 1 or {self.count} topics, not {lines}")
        if len(self.columns) > ATTRIBUTES_MAX:
            raise ProtocolViolation(f"a batch has at most {ATTRIBUTES_MAX} match columns")

    def topic_list(self) -> list[str]:
        """One topic an event, or a single one that all share."""
        if self._topics is None:
            self._topics = self.topics.split("\n")
        return self._topics

    def column(self, name: str) -> Sequence[Scalar] | None:
        """The values of one attribute; None when no event has it. Derived from the records when it was not sent."""
        values = self._decoded.get(name)
        if values is not None:
            return values
        encoded = self.columns.get(name)
        if encoded is not None:
            values = decode_column(encoded, self.count)
        elif self.complete:
            return None
        else:
            values = self.derived(name)
        self._decoded[name] = values
        return values

    def derived(self, name: str) -> Sequence[Scalar]:
        """The values of one attribute as the records themselves have them."""
        if self._attributes is None:
            self._attributes = [decode_record(piece)[0] for piece in self.pieces()]
        return [attributes.get(name) for attributes in self._attributes]

    def pieces(self) -> list[bytes]:
        """The records one by one."""
        if self._pieces is None:
            # Reading them off a stream is a C call each, less than half of what slicing costs.
            self._pieces = list(map(BytesIO(self.records).read, split_u32(self.lengths)))
        return self._pieces

    def portion(self, rows: Sequence[int], origin: str, base: int, time: int) -> Portion:
        """What a connection gets that wants these rows (ascending, at least one)."""
        count = len(rows)
        if count == self.count:
            return Portion(origin, base, time, b"", self.topics, self.lengths, self.records, count)
        first, last = rows[0], rows[-1] + 1
        topics = self.topic_list()
        if last - first == count:
            ends = self._all_ends()
            return Portion(
                origin,
                base + first,
                time,
                b"",
                topics[0] if len(topics) == 1 else topics[first] if count == 1 else "\n".join(topics[first:last]),
                self.lengths[4 * first : 4 * last],
                self.records[ends[first] : ends[last]],
                count,
            )
        # One getter for all columns: each application is a single C call, however many rows there are.
        chosen = itemgetter(*rows)
        pieces = chosen(self.pieces())
        return Portion(
            origin,
            base,
            time,
            join_u32(rows),
            topics[0] if len(topics) == 1 else "\n".join(chosen(topics)),
            join_u32(map(len, pieces)),
            b"".join(pieces),
            count,
        )

    def _all_ends(self) -> list[int]:
        """Where each record begins, and behind them where the last one ends."""
        if self._ends is None:
            self._ends = [0, *accumulate(split_u32(self.lengths))]
        return self._ends


def _is_plain(attributes: Mapping[str, Sequence[Scalar]], bodies: Sequence[bytes]) -> bool:
    """Whether nothing but names, scalars and bytes is in these columns."""
    if not 0 < len(attributes) <= ATTRIBUTES_MAX or not all(type(name) is str and name for name in attributes):
        return False
    columns = [values for values in attributes.values() if not isinstance(values, array)]
    return all(SCALAR_TYPES.issuperset(map(type, values)) for values in columns) and {bytes}.issuperset(
        map(type, bodies)
    )


def join_batches(batches: Sequence[Batch]) -> Batch:
    """Several batches as one, without their match columns."""
    topics = batches[0].topics
    names: list[str] | None = None
    if "\n" in topics or any(batch.topics != topics for batch in batches):
        lists = [(batch.topic_list(), batch.count) for batch in batches]
        names = [topic for own, count in lists for topic in (own if len(own) > 1 else own * count)]
    joined = Batch(
        topics if names is None else "\n".join(names),
        sum([batch.count for batch in batches]),
        b"".join([batch.lengths for batch in batches]),
        b"".join([batch.records for batch in batches]),
        complete=False,
    )
    joined._topics = names
    return joined


def make_batch(
    topics: Sequence[str],
    attributes: Mapping[str, Sequence[Scalar]],
    bodies: Sequence[bytes],
    interest: Iterable[str] | None = None,
    content_type: str = "",
) -> Batch:
    """A batch from columns: one topic for all or one an event, attribute columns, bodies.

    `interest` names the attributes that brokers filter on; None sends a match column for each.
    """
    count = len(bodies)
    if not 0 < count <= BATCH_EVENTS_MAX:
        raise LocalError(f"a batch holds 1 to {BATCH_EVENTS_MAX} events, not {count}")
    if len(topics) not in (1, count):
        raise LocalError(f"{count} bodies want 1 topic or {count}, not {len(topics)}")
    for name, values in attributes.items():
        if len(values) != count:
            raise LocalError(f"{count} bodies want {count} values of {name!r}, not {len(values)}")
    if attributes:
        names = list(attributes)
        rows: Iterable[tuple[Scalar, ...]] = zip(*attributes.values(), strict=True)
        # Columns are checked as columns, which spares a check for each event.
        encode = pack_record if _is_plain(attributes, bodies) else encode_record
        records = [
            encode(dict(zip(names, row, strict=True)), body, content_type)
            for row, body in zip(rows, bodies, strict=True)
        ]
    else:
        records = [encode_record(None, body, content_type) for body in bodies]
    wanted = list(attributes) if interest is None else [name for name in interest if name in attributes]
    columns = {name: encode_column(attributes[name]) for name in wanted}
    complete = len(columns) == len(attributes)
    if interest is not None and not complete:
        # A column of nil says that no event has it; without one the broker would open every record to see.
        columns |= {name: encode_column([None] * count) for name in interest if name not in attributes}
    same = len(topics) == 1 or topics.count(topics[0]) == count
    joined = topics[0] if same else "\n".join(topics)
    if joined.count("\n") != (0 if same else count - 1):
        raise LocalError("a topic has no line feed")
    return Batch(
        joined,
        count,
        join_u32(map(len, records)),
        b"".join(records),
        columns,
        complete,
    )
