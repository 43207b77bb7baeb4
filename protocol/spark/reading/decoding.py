"""Rows of a log -> Arrow batches, with the columns that Spark asks for and no others.

Spark does not tell a Python source which columns a query needs, but a user can, with `.schema("offset BIGINT, ...")`.
So each column has a maker of its own, and records are opened only if a column comes out of them, with those attributes
alone that it shows. Rows are decoded together, because a log may have one event a row, and an Arrow batch of one row
costs as much as one of a thousand: what differs by event is a numpy array, what a row says for all its events is
repeated by Arrow, and no object is made for an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headgate.protocol.data import LogName, Row, decode_column, row_batch

from ..errors import UnsupportedType
from .attributes import attribute_array, header_array, wanted_names
from .opening import Opened, TooWide, open_records

__all__ = ["Decoder", "Portion"]


class Portion:
    """The events of one row of a log that are wanted: those with positions from `start` up to `end`."""

    def __init__(self, name: LogName, rank: int, row: Row, start: int, end: int) -> None:
        import numpy as np

        places = np.frombuffer(row.offsets, "<u4").astype(np.int64) if row.offsets else np.arange(row.count)
        at = np.arange(row.count)
        if row.first < start or row.first + int(places[-1]) >= end:
            at = at[(places >= start - row.first) & (places < end - row.first)]
        self.name = name
        self.rank = rank
        self.row = row
        self.at = at
        """Where they stand among those of the row that came."""
        self.places = places[at]
        """Where they stood in the row as it was written."""


class _Events:
    """Events of some rows of a log, as arrays: from which row each comes, and where it stands there."""

    def __init__(
        self, portions: Sequence[Portion], rows: Any, at: Any, places: Any, names: frozenset[str] | None
    ) -> None:
        self.portions = portions
        self._rows = rows
        self._at = at
        self._places = places
        self._names = names
        self._opened: Opened | None = None

    @property
    def count(self) -> int:
        """How many."""
        return len(self._rows)

    def cut(self, start: int, end: int) -> _Events:
        """Some in a row."""
        part = slice(start, end)
        return _Events(self.portions, self._rows[part], self._at[part], self._places[part], self._names)

    def same(self, value: Callable[[Portion], Any], kind: Any) -> Any:
        """What a row says for all its events."""
        import pyarrow as pa

        values = pa.array(
            [value(portion) for portion in self.portions], pa.int64() if pa.types.is_timestamp(kind) else kind
        )
        return values.take(pa.array(self._rows)).cast(kind)

    def numbers(self, base: Callable[[Row], int]) -> Any:
        """A number of each event that counts on from one of its row."""
        import numpy as np

        return np.array([base(portion.row) for portion in self.portions], np.int64)[self._rows] + self._places

    def column(self, name: str, kind: Any) -> Any:
        """A column of the rows."""
        import numpy as np
        import pyarrow as pa

        values = [value for portion in self.portions for value in _column(portion, name)]
        whole = pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
        counts = np.array([portion.row.count for portion in self.portions])
        return whole.take(pa.array((np.cumsum(counts) - counts)[self._rows] + self._at))

    def topics(self, kind: Any) -> Any:
        """The topic of each event."""
        import numpy as np
        import pyarrow as pa

        names: list[str] = []
        starts, steps = [], []
        for portion in self.portions:
            topics = portion.row.topics.split("\n")
            starts.append(len(names))
            steps.append(0 if len(topics) == 1 else 1)
            names += topics
        places = np.array(starts)[self._rows] + np.array(steps)[self._rows] * self._at
        return pa.array(names, kind).take(pa.array(places))

    def opened(self) -> Opened:
        """Attributes and body of each event; what its publisher did not encode properly has no attributes and NULL.

        Raises TooWide.
        """
        if self._opened is None:
            import numpy as np

            used = np.unique(self._rows)
            rows = [self.portions[row].row for row in used.tolist()]
            for row in rows:
                row_batch(row)  # raises ProtocolViolation when its parts do not fit one another
            lengths = np.frombuffer(b"".join([row.lengths for row in rows]), "<u4")
            ends = np.cumsum(lengths, dtype=np.int64)
            counts = np.zeros(len(self.portions), np.int64)
            counts[used] = [row.count for row in rows]
            places = (np.cumsum(counts) - counts)[self._rows] + self._at
            data = rows[0].records if len(rows) == 1 else b"".join([row.records for row in rows])
            self._opened = open_records(data, (ends - lengths)[places], ends[places], self._names)
        return self._opened


def _column(portion: Portion, name: str) -> Sequence[Any]:
    encoded = portion.row.columns.get(name)
    return [None] * portion.row.count if encoded is None else decode_column(encoded, portion.row.count)


class Decoder:
    """Makes Arrow batches of one schema. Raises UnsupportedType for a column that the log does not have."""

    def __init__(self, kind: str, schema: Any, batch_rows: int) -> None:
        makers = _MAKERS[kind]
        for field in schema:
            if field.name not in makers:
                raise UnsupportedType(field.name, str(field.type), f"'{kind}' have the columns {', '.join(makers)}")
        self._makers = [(field, makers[field.name]) for field in schema]
        self._schema = schema
        self._batch_rows = batch_rows
        self._names = _names_of(schema)

    def batches(self, portions: Sequence[Portion]) -> Iterator[Any]:
        """The events of all these as record batches of at most so many rows."""
        import numpy as np

        if not portions:
            return
        rows = np.repeat(np.arange(len(portions)), [len(portion.at) for portion in portions])
        at = np.concatenate([portion.at for portion in portions])
        places = np.concatenate([portion.places for portion in portions])
        events = _Events(portions, rows, at, places, self._names)
        for start in range(0, events.count, self._batch_rows):
            yield from self._made(events.cut(start, start + self._batch_rows))

    def _made(self, events: _Events) -> Iterator[Any]:
        """One batch; several when its events have too many attributes to be open at once."""
        import pyarrow as pa

        if not self._makers:
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * events.count, pa.struct([])))
            return
        try:
            columns = [maker(events, field.type) for field, maker in self._makers]
        except TooWide:
            middle = events.count // 2
            yield from self._made(events.cut(0, middle))
            yield from self._made(events.cut(middle, events.count))
            return
        yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _names_of(schema: Any) -> frozenset[str] | None:
    """The attributes that the columns show; None: all."""
    if "headers" in schema.names:
        return None
    return wanted_names(schema.field("attributes").type) if "attributes" in schema.names else frozenset()


_Maker = Callable[[_Events, Any], Any]


def _same(value: Callable[[Portion], Any]) -> _Maker:
    return lambda events, kind: events.same(value, kind)


def _column_of(name: str) -> _Maker:
    return lambda events, kind: events.column(name, kind)


def _offsets(events: _Events, kind: Any) -> Any:
    import pyarrow as pa

    return pa.array(events.numbers(lambda row: row.first)).cast(kind)


def _sequences(events: _Events, kind: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pa.array(events.numbers(lambda row: row.number)).cast(kind)
    if all(portion.row.producer for portion in events.portions):
        return numbers
    return pc.if_else(
        events.same(lambda portion: bool(portion.row.producer), pa.bool_()), numbers, pa.scalar(None, kind)
    )


def _event_ids(events: _Events, kind: Any) -> Any:
    import pyarrow as pa

    numbers = pa.array(events.numbers(lambda row: row.base))
    return _joined(events.same(lambda portion: portion.row.origin, kind), ".", numbers)


def _delivered_ids(events: _Events, kind: Any) -> Any:
    import pyarrow as pa

    origins = events.same(lambda portion: portion.row.origin, kind)
    return _joined(origins, ".", events.column("sequence", pa.int64()))


def _subscription_ids(events: _Events, kind: Any) -> Any:
    import pyarrow as pa

    homes = events.same(lambda portion: portion.row.topics, kind)
    return _joined(homes, "-", events.column("subscription", pa.int64()))


def _acknowledged(events: _Events, kind: Any) -> Any:
    """When a delivery was acknowledged; 0 and no column at all mean that it was not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    moments = events.column("acked_at", pa.int64())
    return pc.if_else(pc.equal(moments, 0), pa.scalar(None, pa.int64()), moments).cast(kind)


def _joined(texts: Any, mark: str, numbers: Any) -> Any:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(texts, numbers.cast(texts.type), mark)


_COMMON: dict[str, _Maker] = {
    "partition": _same(lambda portion: portion.rank),
    "offset": _offsets,
    "timestamp": _same(lambda portion: portion.row.time),
}
_AUDIT: dict[str, _Maker] = {
    "node": _same(lambda portion: portion.name.broker),
    "stream": _same(lambda portion: portion.name.stream),
    "subscription_id": _subscription_ids,
}

_MAKERS: dict[str, dict[str, _Maker]] = {
    "events": {
        **_COMMON,
        "topic": lambda events, kind: events.topics(kind),
        "event_id": _event_ids,
        "producer_id": _same(lambda portion: portion.row.producer or None),
        "sequence": _sequences,
        "attributes": lambda events, kind: attribute_array(events.opened(), kind),
        "headers": lambda events, kind: header_array(events.opened(), kind),
        "value": lambda events, kind: events.opened().bodies().cast(kind),
        "content_type": lambda events, kind: events.opened().types().cast(kind),
    },
    "deliveries": {
        **_COMMON,
        **_AUDIT,
        "event_id": _delivered_ids,
        "subscriber_id": _same(lambda portion: None),
        "published_at": _column_of("published_at"),
        "delivered_at": _column_of("sent_at"),
        "acked_at": _acknowledged,
        "attempt": _same(lambda portion: 1),
        "outcome": _column_of("outcome"),
    },
    "subscriptions": {
        **_COMMON,
        **_AUDIT,
        "subscriber_id": _column_of("subscriber"),
        "pattern": _column_of("pattern"),
        "exact": _column_of("exact"),
        "filter": _column_of("condition"),
        "spark": _column_of("spark"),
        "action": _column_of("action"),
        "effective_at": _column_of("effective_at"),
        "reason": _column_of("reason"),
    },
}
