"""Arrow batches -> frames of events of one stream each, small enough for a PUBLISH.

The order of frames depends on nothing but the rows and where Spark cuts its Arrow batches: a retried task makes the
same frames of the same rows, which is what a producer's numbers rest on.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.protocol.client import Vocabulary
from headgate.protocol.data import Batch, encode_column
from headgate.protocol.errors import LocalError
from headgate.protocol.limits import BATCH_EVENTS_MAX, COLUMNS_MAX, RECORD_LENGTH_MAX
from headgate.protocol.structure import Document, DocumentError, filter_columns, is_filter_name, read_document

from ..errors import BadRow
from ..layout import Layout, unpacked
from ..limits import EXCERPT_CHARACTERS, FILTERED_BYTES_MAX
from .records import Mixed, encode_records

__all__ = ["Encoder", "Frame"]


@dataclass(slots=True)
class Frame:
    """Events of one stream that go out together; `records` and `columns` are Arrow arrays. `documents` are what their
    bodies were read as, None for one without; empty: none is a document, and None: nobody has read them.
    """

    topics: str
    count: int
    records: Any
    columns: dict[str, Any]
    ids: Any = None
    documents: Sequence[Document | None] | None = ()

    def slice(self, start: int, count: int) -> Frame:
        """Some events in a row."""
        topics = self.topics
        if "\n" in topics:
            topics = "\n".join(topics.split("\n")[start : start + count])
        columns = {name: column.slice(start, count) for name, column in self.columns.items()}
        ids = None if self.ids is None else self.ids.slice(start, count)
        documents = self.documents and self.documents[start : start + count]
        return Frame(topics, count, self.records.slice(start, count), columns, ids, documents)

    def lengths(self) -> bytes:
        """The length of each record, u32 little-endian."""
        import pyarrow.compute as pc

        lengths = pc.binary_length(self.records)
        words = array("i", memoryview(lengths.buffers()[1]).cast("B")[: 4 * self.count].cast("i"))
        if sys.byteorder == "big":
            words.byteswap()
        return words.tobytes()

    def data(self) -> memoryview:
        """All records, joined."""
        _, offsets, data = self.records.buffers()
        place = self.records.offset
        ends = memoryview(offsets).cast("B")[4 * place : 4 * (place + self.count + 1)].cast("i")
        return memoryview(data).cast("B")[ends[0] : ends[self.count]]

    def batch(self, interest: Iterable[str] | None) -> Batch:
        """As it goes over the wire, with a match column for each attribute of some condition; None: for all. Filters
        of documents are made when somebody asks for them.
        """
        every = list(self.columns)
        names = every[:COLUMNS_MAX] if interest is None else [name for name in interest if name in self.columns]
        columns = {name: _match_column(self.columns[name]) for name in names}
        if interest is not None:
            filters = self._filters([name for name in interest if is_filter_name(name)])
            if len(self.data()) + sum(map(len, filters.values())) <= FILTERED_BYTES_MAX:
                columns |= filters
            # A column of nil says that no event has it; without one the broker would open every record to see.
            columns |= {name: encode_column([None] * self.count) for name in interest if name not in columns}
        complete = len(names) == len(every)
        return Batch(self.topics, self.count, self.lengths(), bytes(self.data()), columns, complete)

    def _filters(self, names: Sequence[str]) -> dict[str, bytes]:
        """The match columns of the filters of these names."""
        if not names or self.documents is None:
            return {}
        cells: list[Any] = [filter_columns(one, names) for one in self.documents or [None] * self.count]
        return {name: encode_column([cell.get(name) for cell in cells]) for name in names}


class Encoder:
    """Makes frames of the record batches of one partition."""

    def __init__(self, layout: Layout, frame_bytes: int) -> None:
        self._layout = layout
        self._frame_bytes = frame_bytes
        self._vocabulary = Vocabulary()

    def frames(self, rows: Any) -> Iterator[Frame]:
        """The frames of one pyarrow.RecordBatch, in the order of its rows; rows of one stream stay in order."""
        rows = unpacked(rows, self._layout)
        for start in range(0, rows.num_rows, BATCH_EVENTS_MAX):
            for part, topics in self._streams(rows.slice(start, BATCH_EVENTS_MAX)):
                yield from self._cut(self._encode(part, topics))

    def _streams(self, rows: Any) -> Iterator[tuple[Any, Any]]:
        """The rows of one stream each, with their topics; None for the one that all share."""
        if self._layout.topic:
            yield rows, None
            return
        import pyarrow as pa
        import pyarrow.compute as pc

        topics = rows.column("topic")
        names = pc.unique(topics).to_pylist()
        streams = {name: self._stream(name) for name in names}
        distinct = list(dict.fromkeys(streams.values()))
        if len(distinct) == 1:
            yield rows, topics
            return
        for stream in distinct:
            mine = pc.is_in(topics, pa.array([name for name in names if streams[name] == stream], topics.type))
            part = rows.filter(mine)
            yield part, part.column("topic")

    def _stream(self, topic: str | None) -> str:
        if topic is None:
            raise BadRow("topic", "is NULL in a row; filter such rows out, or set option 'topic'")
        try:
            return self._vocabulary.stream_of(topic)
        except LocalError as error:
            raise BadRow("topic", str(error)) from error

    def _encode(self, rows: Any, topics: Any) -> Frame:
        import pyarrow.compute as pc

        records, columns = encode_records(rows, self._layout)
        longest = pc.max(pc.binary_length(records)).as_py()
        if longest > RECORD_LENGTH_MAX:
            raise BadRow("value", f"an event of {longest} bytes is over the limit of {RECORD_LENGTH_MAX}")
        ids = rows.column(self._layout.id_column) if self._layout.id_column else None
        return Frame(self._joined(topics), rows.num_rows, records, columns, ids, self._documents(rows))

    def _documents(self, rows: Any) -> list[Document | None] | None:
        """The documents of the rows. Raises BadRow for the first that is none, asked for or not."""
        name, content_type = self._layout.body, self._layout.content_type
        if not content_type:
            return None if self._layout.types else []
        found: list[Document | None] = []
        for body in rows.column(name).to_pylist():
            text = body.encode() if isinstance(body, str) else body
            try:
                found.append(None if text is None else read_document(text, content_type))
            except DocumentError as error:
                reason = (
                    f"holds {body[:EXCERPT_CHARACTERS]!r} in a row: {error}; filter such rows out, or make them NULL"
                )
                raise BadRow(name, reason) from error
        return found

    def _joined(self, topics: Any) -> str:
        if topics is None:
            return self._layout.topic
        names = topics.to_pylist()
        return names[0] if names.count(names[0]) == len(names) else "\n".join(names)

    def _cut(self, frame: Frame) -> Iterator[Frame]:
        """Pieces with at most so many bytes of records, or one record."""
        if len(frame.data()) <= self._frame_bytes:
            yield frame
            return
        _, offsets, _ = frame.records.buffers()
        place = frame.records.offset
        ends = memoryview(offsets).cast("B")[4 * place : 4 * (place + frame.count + 1)].cast("i").tolist()
        start = 0
        while start < frame.count:
            end = max(start + 1, bisect_right(ends, ends[start] + self._frame_bytes) - 1)
            yield frame.slice(start, min(end, frame.count) - start)
            start = end


def _match_column(column: Any) -> bytes:
    """An attribute as a match column: numbers that are all there as they lie in memory, everything else one by one."""
    if isinstance(column, Mixed):
        return encode_column(column.values)
    kind = {"int64": "q", "double": "d"}.get(str(column.type))
    if kind is None or column.null_count:
        return encode_column(column.to_pylist())
    words = array(kind)
    start = 8 * column.offset
    words.frombytes(memoryview(column.buffers()[1]).cast("B")[start : start + 8 * len(column)])
    return encode_column(words)
