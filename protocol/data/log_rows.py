"""A row of a log: one batch with its place, its ids and who published it, as bytes and back.

A log is written by one broker, in one epoch of its data folder, for one kind of thing and one stream. Its positions
are dense and count events, not rows: the row behind this one begins at `first + count`. Rows are written once and never
changed, so a position is never given to anything else.

    events          what was accepted: topics, records and match columns as they came in a PUBLISH
    deliveries      what was handed on to subscribers; columns alone, one value a delivery
    subscriptions   who wanted what, from when to when; columns alone, one value a change

A reader who asks for some events only gets rows that have been cut down: `offsets` then says which events of the row
are left, so an event's position is `first + offset` as its number is `base + offset`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple

import msgpack

from ..errors import LocalError, ProtocolViolation
from ..limits import (
    ATTRIBUTE_NAME_LENGTH_MAX,
    BATCH_EVENTS_MAX,
    COLUMNS_MAX,
    CREDIT_MAX,
    DIGEST_LENGTH_MAX,
    FRAME_LENGTH_MAX,
)
from .batch import Batch, join_u32, split_u32

__all__ = ["LogKind", "LogName", "Row", "cut_row", "decode_row", "encode_row", "row_batch"]

_pack = msgpack.Packer(autoreset=True).pack
_FIELDS = 16
_COUNTERS, _NAMES = (0, 1, 2, 4, 12, 13), (3, 11)
_WANTED = (int, int, int, str, int, bytes, str, bytes, dict, bool, bytes, str, int, int, bytes, bytes)


class LogKind(IntEnum):
    """What a log tells of."""

    EVENTS = 0
    DELIVERIES = 1
    SUBSCRIPTIONS = 2


class LogName(NamedTuple):
    """One log of a cluster: who wrote it, in which epoch of its data folder, what of, and for which stream."""

    broker: str
    epoch: int
    kind: int
    stream: str

    @property
    def partition(self) -> str:
        """The log among those of one kind and stream, as people and Spark see it: `ann@1763492000`."""
        return f"{self.broker}@{self.epoch}"


@dataclass(slots=True)
class Row:
    """One batch in a log. Times are in microseconds since 1970 UTC."""

    first: int
    count: int
    time: int
    origin: str
    base: int
    offsets: bytes
    topics: str
    lengths: bytes
    columns: dict[str, bytes]
    complete: bool
    records: bytes
    producer: str = ""
    epoch: int = 0
    number: int = 0
    digest: bytes = b""
    ids: bytes = b""

    def places(self) -> Sequence[int]:
        """The place of each event in the row as it was written: its position is this after `first`."""
        return split_u32(self.offsets) if self.offsets else range(self.count)


def encode_row(row: Row) -> bytes:
    """The row as one msgpack array, its fields in order. Raises LocalError when a field cannot be written."""
    try:
        data: bytes = _pack([getattr(row, name) for name in Row.__slots__])
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"a row of a log cannot be encoded: {error}") from error
    return data


def decode_row(data: bytes | bytearray | memoryview) -> Row:
    """The row in these bytes. Raises ProtocolViolation, and nothing else, when they are none."""
    lists: deque[list[Any]] = deque(maxlen=1)  # what remains is the list that ended last, the outermost
    try:
        outer = msgpack.unpackb(
            data,
            list_hook=lists.append,
            object_pairs_hook=_columns,
            ext_hook=_no_extension,
            max_str_len=FRAME_LENGTH_MAX,
            max_bin_len=FRAME_LENGTH_MAX,
            max_array_len=_FIELDS,
            max_map_len=COLUMNS_MAX,
            max_ext_len=0,
        )
    except ProtocolViolation:
        raise
    except Exception as error:  # msgpack raises a dozen kinds; each means the same to us
        raise ProtocolViolation(f"not a row of a log: {type(error).__name__}: {error}"[:300]) from error
    if outer is not None or not lists:
        raise ProtocolViolation("a row of a log is an array")
    return _checked(lists[0])


def _checked(parts: list[Any]) -> Row:
    if len(parts) != _FIELDS:
        raise ProtocolViolation(f"a row of a log has {_FIELDS} fields, not {len(parts)}")
    if tuple(map(type, parts)) != _WANTED:
        raise ProtocolViolation(f"a row of a log is {', '.join(Row.__slots__)}")
    if not all(0 <= parts[place] <= CREDIT_MAX for place in _COUNTERS):
        raise ProtocolViolation("a row of a log: numbers are from 0 to 2^53")
    if not all(len(parts[place]) <= ATTRIBUTE_NAME_LENGTH_MAX for place in _NAMES):
        raise ProtocolViolation(f"a row of a log: names have at most {ATTRIBUTE_NAME_LENGTH_MAX} characters")
    row = Row(*parts)
    if not 0 < row.count <= BATCH_EVENTS_MAX:
        raise ProtocolViolation(f"a row of a log holds 1 to {BATCH_EVENTS_MAX} events, not {row.count}")
    for column in (row.offsets, row.lengths):
        if column and len(column) != 4 * row.count:
            raise ProtocolViolation(f"a row of {row.count} events has {row.count} lengths, and offsets or none")
    if len(row.digest) > DIGEST_LENGTH_MAX:
        raise ProtocolViolation(f"a digest has at most {DIGEST_LENGTH_MAX} bytes, not {len(row.digest)}")
    return row


def row_batch(row: Row) -> Batch:
    """The events of a row that has events. Raises ProtocolViolation when its parts do not fit one another."""
    batch = Batch(row.topics, row.count, row.lengths, row.records, row.columns, row.complete)
    batch.check()
    return batch


def cut_row(row: Row, kept: Sequence[int]) -> Row:
    """Some events of a row (ascending, at least one), which still say where they stood."""
    places = row.places()
    part = row_batch(row).portion(kept, row.origin, 0, row.time)
    return replace(
        row,
        count=len(kept),
        offsets=join_u32(places[at] for at in kept),
        topics=part.topics,
        lengths=part.lengths,
        columns={},
        complete=False,
        records=part.records,
        ids=b"",
    )


def _columns(pairs: list[tuple[Any, Any]]) -> dict[str, bytes]:
    columns = dict(pairs)
    if len(columns) != len(pairs):
        raise ProtocolViolation("a row of a log: an attribute has one column")
    for name, column in pairs:
        if type(name) is not str or type(column) is not bytes:
            raise ProtocolViolation("a row of a log: columns map attribute names to encoded columns")
    return columns


def _no_extension(code: int, _: bytes) -> Any:
    raise ProtocolViolation(f"extension type {code} has no meaning here")
