"""A batch of events of one stream, in columns: the unit on the wire, in the core and on disk.

    topics    one string: the topic of every event, or one topic a line when they differ
    lengths   u32 little-endian, one an event: where each record ends in
    records   all records joined, opaque, forwarded verbatim
    columns   match columns by attribute name, still encoded; decoded when a condition reads them

Why joined strings and not arrays: split, join and slice are single C calls, so a batch that goes to one place whole
costs the broker nothing per event, and one that is spread over many places costs a slice an event. A control
character cannot occur in a topic, which makes the line feed a safe separator.

A `Portion` is what a subscriber's connection gets of a batch: the rows that somebody there asked for. It is made once
and shared by every connection that gets the same rows, encoded bytes included. When a batch is spread over many
connections, its columns are put into their order once, and each portion is a slice of them.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from itertools import accumulate
from operator import itemgetter
from struct import Struct
from typing import NamedTuple

from ..errors import LocalError, ProtocolViolation
from ..limits import ATTRIBUTES_MAX, BATCH_EVENTS_MAX, COLUMNS_MAX, RECORD_LENGTH_MAX, TOPIC_LEVELS_MAX
from .columns import FILTER_COLUMNS, LEVEL_COLUMNS, SCALAR_TYPES, Scalar, decode_column, encode_column
from .records import attributes_at_once, decode_record, encode_record, pack_record

__all__ = [
    "Batch",
    "Columns",
    "JointBatch",
    "LogShift",
    "Portion",
    "join_batches",
    "join_u32",
    "make_batch",
    "split_u32",
]

_SWAP = sys.byteorder == "big"

_BULK = 4
"""Rows that are cut in bulk, as a multiple of the batch: that much is copied once more than it has to be."""

_AT_ONCE_MIN = 32
"""Records that are opened together; the set-up of that is worth some fifteen."""

_RUN = 64
"""Records of one length that are taken apart in one call; a layout of so many is remembered by length."""

_RUN_MIN = 8
"""The same at the end of a batch: fewer are cut one by one, and no layout is made for them."""


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


class LogShift(NamedTuple):
    """Where events of a stored batch stand: in this log of their stream, each at its number and `shift`.

    Numbers and positions of one row run in parallel, so every part of it has the same shift.
    """

    partition: str
    shift: int


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
    log: LogShift | None = None  # of a stored stream
    encoded: bytes = field(default=b"", repr=False, compare=False)  # all but the records, which are not copied

    def rows(self) -> Sequence[int]:
        """The place of each event after `base`; no offsets means that they follow one another."""
        return split_u32(self.offsets) if self.offsets else range(self.count)


@dataclass(slots=True)
class Batch:
    """Events of one stream, in columns."""

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
        if self._is_lone():
            return
        if len(self.lengths) % 4 or not 0 < len(self.lengths) <= 4 * BATCH_EVENTS_MAX:
            lengths = split_u32(self.lengths)
            raise ProtocolViolation(f"a batch holds 1 to {BATCH_EVENTS_MAX} events, not {len(lengths)}")
        if len(self.lengths) != 4 * self.count:
            count = len(self.lengths) // 4
            raise ProtocolViolation(f"a batch of {self.count} events has {self.count} lengths, not {count}")
        self._check_lengths()
        if (self.topics.count("\n") + 1 if self._topics is None else len(self._topics)) not in (1, self.count):
            lines = self.topics.count("\n") + 1
            raise ProtocolViolation(f"a batch of {self.count} events names 1 or {self.count} topics, not {lines}")
        if len(self.columns) > COLUMNS_MAX:
            raise ProtocolViolation(f"a batch has at most {COLUMNS_MAX} match columns")

    def _check_lengths(self) -> None:
        """Records of one length are common, and need not be added up one by one."""
        size = len(self.records)
        common = self._common_length()
        longest, total = common, common * self.count
        if not common:
            lengths = split_u32(self.lengths)
            total = sum(lengths)
            longest = max(lengths) if size > RECORD_LENGTH_MAX else 0
        if longest > RECORD_LENGTH_MAX:
            raise ProtocolViolation(f"a record has at most {RECORD_LENGTH_MAX} bytes, not {longest}")
        if total != size:
            raise ProtocolViolation(f"the lengths add up to {total}, the records have {size} bytes")

    def _is_lone(self) -> bool:
        """Whether this is one event and nothing is wrong with it: what comes alone, every microsecond counts."""
        size = len(self.records)
        return (
            self.count == 1
            and size <= RECORD_LENGTH_MAX
            and self.lengths == size.to_bytes(4, "little")
            and "\n" not in self.topics
            and len(self.columns) <= COLUMNS_MAX
        )

    def split_topics(self) -> None:
        """Do what `topic_list` does now, so that `check` need not count; no further than it takes to see what fits."""
        self._topics = self.topics.split("\n", min(self.count, BATCH_EVENTS_MAX))

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
        if name.startswith(LEVEL_COLUMNS):
            values = self._levels(name)
        elif encoded is not None:
            values = decode_column(encoded, self.count)
        elif self.complete:
            return None
        else:
            values = self.derived(name)
        self._decoded[name] = values
        return values

    def _levels(self, name: str) -> Sequence[Scalar]:
        """One level of each topic, nil where it has fewer, whatever the publisher sent or wrote into the records."""
        number = name.removeprefix(LEVEL_COLUMNS)
        place = int(number) if number.isascii() and number.isdigit() and len(number) < 3 else TOPIC_LEVELS_MAX
        found = [topic.split("/", place + 1)[place : place + 1] for topic in self.topic_list()]
        values = [level[0] if level else None for level in found]
        return values if len(values) == self.count else values * self.count

    def derived(self, name: str) -> Sequence[Scalar]:
        """The values of one attribute as the records themselves have them; no record has a filter of its document."""
        if name.startswith(LEVEL_COLUMNS):
            return self._levels(name)
        if name.startswith(FILTER_COLUMNS):
            return [None] * self.count
        if self._attributes is None:
            if self.count >= _AT_ONCE_MIN:
                self._attributes = attributes_at_once(self.records, self._all_ends()[1:])
            if self._attributes is None:
                self._attributes = [decode_record(piece)[0] for piece in self.pieces()]
        return [attributes.get(name) for attributes in self._attributes]

    def with_columns(self, columns: dict[str, bytes]) -> Batch:
        """The same events with no match columns but these; what was opened of their records stays open."""
        same = Batch(self.topics, self.count, self.lengths, self.records, columns, complete=False)
        same._ends, same._pieces, same._topics, same._attributes = (
            self._ends,
            self._pieces,
            self._topics,
            self._attributes,
        )
        return same

    def pieces(self) -> list[bytes]:
        """The records one by one."""
        if self._pieces is None:
            length = self._common_length()
            if length:
                self._pieces = _cut(self.records, length)
            else:
                # Reading them off a stream is a C call each, less than half of what slicing costs.
                self._pieces = list(map(BytesIO(self.records).read, split_u32(self.lengths)))
        return self._pieces

    def select(self, rows: Sequence[int], names: Iterable[str]) -> Batch:
        """Some rows (ascending, at least one) as a batch of their own, with the match columns of these names.

        Raises ProtocolViolation when such a column cannot be read.
        """
        part = self.portion(rows, "", 0, 0)
        columns: dict[str, bytes] = {}
        for name in names:
            values = self.column(name) if name in self.columns else None
            if values is not None:
                columns[name] = encode_column([values[row] for row in rows])
        complete = self.complete and columns.keys() == self.columns.keys()
        return Batch(part.topics, part.count, part.lengths, part.records, columns, complete)

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

    def portions(
        self, rows: Sequence[int], ends: Sequence[int], origin: str, base: int, time: int, may_share: bool = True
    ) -> list[Portion]:
        """The portions of many connections: `rows` are those of one after the other, and each has its end in `ends`.

        Whoever gets the same rows shares the portion, unless no row is there twice anyway.
        """
        if len(rows) == 1 or len(rows) > _BULK * self.count:
            return self._portions_one_by_one(rows, ends, origin, base, time)
        chosen = itemgetter(*rows)
        offsets, topics, pieces = join_u32(rows), self.topic_list(), chosen(self.pieces())
        topic = topics[0]
        names = chosen(topics) if len(topics) > 1 else ()
        records = b"".join(pieces)
        length = self._common_length()
        sizes = () if length else [0, *accumulate(map(len, pieces))]
        lengths = self.lengths if length else join_u32(map(len, pieces))
        made: dict[bytes, Portion] = {}
        portions: list[Portion] = []
        start = 0
        for end in ends:
            places = offsets[4 * start : 4 * end]
            portion = made.get(places) if may_share else None
            if portion is None:
                first, count = rows[start], end - start
                in_a_row = rows[end - 1] - first == count - 1
                portion = Portion(
                    origin,
                    base + first if in_a_row else base,
                    time,
                    b"" if in_a_row else places,
                    "\n".join(names[start:end]) if names else topic,
                    lengths[: 4 * count] if length else lengths[4 * start : 4 * end],
                    records[start * length : end * length] if length else records[sizes[start] : sizes[end]],
                    count,
                )
                if may_share:
                    made[places] = portion
            portions.append(portion)
            start = end
        return portions

    def _portions_one_by_one(
        self, rows: Sequence[int], ends: Sequence[int], origin: str, base: int, time: int
    ) -> list[Portion]:
        made: dict[tuple[int, ...], Portion] = {}
        portions: list[Portion] = []
        start = 0
        for end in ends:
            chosen = tuple(rows[start:end])
            portion = made.get(chosen)
            if portion is None:
                portion = made[chosen] = self.portion(chosen, origin, base, time)
            portions.append(portion)
            start = end
        return portions

    def _common_length(self) -> int:
        """The length of each record when all have the same; 0 when they differ, or are empty."""
        first = self.lengths[:4]
        return int.from_bytes(first, "little") if first * self.count == self.lengths else 0

    def _all_ends(self) -> list[int]:
        """Where each record begins, and behind them where the last one ends."""
        if self._ends is None:
            self._ends = [0, *accumulate(split_u32(self.lengths))]
        return self._ends


def _cut(records: bytes, length: int) -> list[bytes]:
    """Records of one length, one by one."""
    runs, left = divmod(len(records) // length, _RUN)
    whole = runs * _RUN * length
    pieces: list[bytes] = []
    for run in _layout(length, _RUN).iter_unpack(memoryview(records)[:whole]) if runs else ():
        pieces += run
    if left >= _RUN_MIN:
        pieces += _layout(length, left).unpack_from(records, whole)
    else:
        pieces += [records[at : at + length] for at in range(whole, len(records), length)]
    return pieces


@lru_cache(512)
def _layout(length: int, count: int) -> Struct:
    """So many records of one length, side by side."""
    return Struct(f"{length}s" * count)


def _is_plain(attributes: Mapping[str, Sequence[Scalar]], bodies: Sequence[bytes]) -> bool:
    """Whether nothing but names, scalars and bytes is in these columns."""
    if not 0 < len(attributes) <= ATTRIBUTES_MAX or not all(type(name) is str and name for name in attributes):
        return False
    columns = [values for values in attributes.values() if not isinstance(values, array)]
    return all(SCALAR_TYPES.issuperset(map(type, values)) for values in columns) and {bytes}.issuperset(
        map(type, bodies)
    )


class JointBatch:
    """Several batches of one stream seen as one, as far as matching looks at them."""

    __slots__ = ("_batches", "_topics", "columns", "count")

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self.count = sum([batch.count for batch in batches])
        self.columns = dict.fromkeys([name for batch in batches for name in batch.columns])
        topics: list[str] = []
        for batch in batches:
            own = batch.topic_list()
            topics += own if len(own) == batch.count else own * batch.count
        self._topics = topics[:1] if topics.count(topics[0]) == self.count else topics

    def topic_list(self) -> list[str]:
        """One topic an event, or a single one that all share."""
        return self._topics

    def column(self, name: str) -> Sequence[Scalar] | None:
        """The values of one attribute; None when no event has it."""
        values: list[Scalar] = []
        is_there = False
        for batch in self._batches:
            own = batch.column(name)
            is_there = is_there or own is not None
            values += [None] * batch.count if own is None else own
        return values if is_there else None


class Columns(Mapping[str, Sequence[Scalar]]):
    """Shows the match columns of a batch, each decoded when it is first asked for."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch | JointBatch) -> None:
        self._batch = batch

    def __getitem__(self, name: str) -> Sequence[Scalar]:
        column = self._batch.column(name)
        if column is None:
            raise KeyError(name)
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.columns)

    def __len__(self) -> int:
        return len(self._batch.columns)


def join_batches(batches: Sequence[Batch]) -> Batch:
    """Several batches as one, without their match columns."""
    topics = batches[0].topics
    names: list[str] = []
    if "\n" in topics or any(batch.topics != topics for batch in batches):
        lists = [batch.topic_list() if "\n" in batch.topics else [batch.topics] * batch.count for batch in batches]
        for own in lists:
            names += own
        pairs = zip(batches, lists, strict=True)
        topics = "\n".join([batch.topics if "\n" in batch.topics else "\n".join(own) for batch, own in pairs])
    joined = Batch(
        topics,
        sum([batch.count for batch in batches]),
        b"".join([batch.lengths for batch in batches]),
        b"".join([batch.records for batch in batches]),
        complete=False,
    )
    joined._topics = names or None
    return joined


def make_batch(
    topics: Sequence[str],
    attributes: Mapping[str, Sequence[Scalar]],
    bodies: Sequence[bytes],
    interest: Iterable[str] | None = None,
    content_type: str = "",
) -> Batch:
    """A batch from columns: one topic for all or one an event, attribute columns, bodies.

    `interest` names the attributes that brokers filter on; None sends a match column for each, up to COLUMNS_MAX.
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
    wanted = list(attributes)[:COLUMNS_MAX] if interest is None else [name for name in interest if name in attributes]
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
