"""Rows of a log -> Arrow batches, with the columns that Spark asks for and no others.

Spark does not tell a Python source which columns a query needs, but a user can, with `.schema("offset BIGINT, ...")`.
So each column has a maker of its own, and records are opened only if a column comes out of them. Rows are decoded
together, because a log may have one event a row, and an Arrow batch of one row costs as much as one of a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..columns import decode_column
from ..errors import ProtocolViolation
from ..log_rows import LogName, Row, row_batch
from ..records import decode_record
from .attributes import attribute_array, header_array
from .errors import UnsupportedType

__all__ = ["Decoder", "Portion"]


class Portion:
    """The events of one row of a log that are wanted: those with positions from `start` up to `end`."""

    def __init__(self, name: LogName, rank: int, row: Row, start: int, end: int) -> None:
        places = row.places()
        self.name = name
        self.rank = rank
        self.row = row
        self.wanted = [at for at, place in enumerate(places) if start <= row.first + place < end]
        self.places = [places[at] for at in self.wanted]
        self._opened: list[tuple[dict[str, Any], bytes | None]] | None = None

    @property
    def count(self) -> int:
        """How many events."""
        return len(self.wanted)

    def constant(self, value: Any) -> list[Any]:
        """The same for each event."""
        return [value] * self.count

    def chosen(self, values: Sequence[Any]) -> list[Any]:
        """Those of the row's values that are wanted."""
        return list(values) if len(self.wanted) == len(values) else [values[at] for at in self.wanted]

    def column(self, name: str) -> list[Any]:
        """A column of the row."""
        encoded = self.row.columns.get(name)
        return self.constant(None) if encoded is None else self.chosen(decode_column(encoded, self.row.count))

    def topics(self) -> list[str]:
        """The topic of each event."""
        names = self.row.topics.split("\n")
        return names * self.count if len(names) == 1 else self.chosen(names)

    def opened(self) -> list[tuple[dict[str, Any], bytes | None]]:
        """Attributes and body of each event; what its publisher did not encode properly has no attributes and None."""
        if self._opened is None:
            self._opened = [_open(piece) for piece in self.chosen(row_batch(self.row).pieces())]
        return self._opened


def _open(record: bytes) -> tuple[dict[str, Any], bytes | None]:
    try:
        attributes, body, _ = decode_record(record)
    except ProtocolViolation:
        return {}, None
    return attributes, body


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

    def batches(self, portions: Sequence[Portion]) -> Iterator[Any]:
        """The events of all these as record batches of at most so many rows."""
        import pyarrow as pa

        count = sum(portion.count for portion in portions)
        if not count:
            return
        columns = [
            _BUILDERS.get(field.name, _array)([value for portion in portions for value in maker(portion)], field.type)
            for field, maker in self._makers
        ]
        if columns:
            whole = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        else:
            whole = pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        for start in range(0, count, self._batch_rows):
            yield whole.slice(start, self._batch_rows)


def _array(values: list[Any], kind: Any) -> Any:
    """An array of exactly this type: Spark accepts no other. Times are microseconds, which Arrow takes as they are."""
    import pyarrow as pa

    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


def _event_ids(portion: Portion) -> list[str]:
    row = portion.row
    return [f"{row.origin}.{row.base + place}" for place in portion.places]


def _delivered_ids(portion: Portion) -> list[str]:
    origin = portion.row.origin
    return [f"{origin}.{number}" for number in portion.column("sequence")]


def _subscription_ids(portion: Portion) -> list[str]:
    home = portion.row.topics
    return [f"{home}-{number}" for number in portion.column("subscription")]


def _acknowledged(portion: Portion) -> list[Any]:
    return [moment or None for moment in portion.column("acked_at")]


def _sequences(portion: Portion) -> list[Any]:
    row = portion.row
    return [row.number + place for place in portion.places] if row.producer else portion.constant(None)


def _attributes(portion: Portion) -> list[Any]:
    return [attributes for attributes, _ in portion.opened()]


_Maker = Callable[[Portion], list[Any]]

_BUILDERS: dict[str, Callable[[list[Any], Any], Any]] = {"attributes": attribute_array, "headers": header_array}
"""Columns whose values are not yet what Arrow takes."""

_COMMON: dict[str, _Maker] = {
    "partition": lambda portion: portion.constant(portion.rank),
    "offset": lambda portion: [portion.row.first + place for place in portion.places],
    "timestamp": lambda portion: portion.constant(portion.row.time),
}
_AUDIT: dict[str, _Maker] = {
    "node": lambda portion: portion.constant(portion.name.broker),
    "stream": lambda portion: portion.constant(portion.name.stream),
    "subscription_id": _subscription_ids,
}

_MAKERS: dict[str, dict[str, _Maker]] = {
    "events": {
        **_COMMON,
        "topic": Portion.topics,
        "event_id": _event_ids,
        "producer_id": lambda portion: portion.constant(portion.row.producer or None),
        "sequence": _sequences,
        "attributes": _attributes,
        "headers": _attributes,
        "value": lambda portion: [body for _, body in portion.opened()],
    },
    "deliveries": {
        **_COMMON,
        **_AUDIT,
        "event_id": _delivered_ids,
        "subscriber_id": lambda portion: portion.constant(None),
        "published_at": lambda portion: portion.column("published_at"),
        "delivered_at": lambda portion: portion.column("sent_at"),
        "acked_at": _acknowledged,
        "attempt": lambda portion: portion.constant(1),
        "outcome": lambda portion: portion.column("outcome"),
    },
    "subscriptions": {
        **_COMMON,
        **_AUDIT,
        "subscriber_id": lambda portion: portion.column("subscriber"),
        "pattern": lambda portion: portion.column("pattern"),
        "exact": lambda portion: portion.column("exact"),
        "filter": lambda portion: portion.column("condition"),
        "spark": lambda portion: portion.column("spark"),
        "action": lambda portion: portion.column("action"),
        "effective_at": lambda portion: portion.column("effective_at"),
        "reason": lambda portion: portion.column("reason"),
    },
}
