"""Encodes events: batches in columns, their records and match columns, and rows of logs.

**A batch** is events of one stream in columns: topics, records, and match columns by attribute. `make_batch` makes one
of topics, columns and bodies, `join_batches` puts several together, `JointBatch` shows several as one to what matches
them. `Batch.portion` gives the rows that go to one connection, a `Portion`, encoded once however many connections get
it; of a stored stream its `LogShift` says where the rows stand in their log. `join_u32` and `split_u32` carry lengths
and places as little-endian integers.

**A match column** is the values of one attribute for all events: `encode_column`, `decode_column`. `Columns` shows
those of a batch, each decoded when it is first asked for. Values are `Scalar`, of the types in `SCALAR_TYPES`.

A column whose name begins like one of `FILTER_COLUMNS` holds filters of documents, bins, and no attribute; one of
`STRUCTURE_COLUMNS` is left out where it `is_full`, and its event refused where it `is_saturated` (`saturated_text`).
One whose name begins like `LEVEL_COLUMNS` is a level of the topics: a batch derives it, whatever was sent.

**A record** is one event's attributes and body, encoded by its publisher (`pack_record`) and opened by its subscriber
(`decode_record`); brokers join records and do not open them. `flatten` makes dotted names of nested attributes.

**A row** (`Row`) is one batch with its place in a log, a `LogName` with a `LogKind`: `encode_row`, `decode_row`.
`row_batch` gives its batch back, `cut_row` some of its events.

**A plain value** is what brokers keep of their own: `pack_value`, `unpack_value`.

Whatever cannot be read raises ProtocolViolation; what cannot be written raises LocalError.

Order of reading: `batch`, `columns`, `records`, `log_rows`, `values`, `filters`.
"""

from .batch import Batch, Columns, JointBatch, LogShift, Portion, join_batches, join_u32, make_batch, split_u32
from .columns import FILTER_COLUMNS, LEVEL_COLUMNS, SCALAR_TYPES, Scalar, decode_column, encode_column
from .filters import STRUCTURE_COLUMNS, is_full, is_saturated, saturated_text
from .log_rows import LogKind, LogName, Row, cut_row, decode_row, encode_row, row_batch
from .records import decode_record, flatten, pack_record
from .values import pack_value, unpack_value

__all__ = [
    "Batch",
    "Columns",
    "FILTER_COLUMNS",
    "JointBatch",
    "LEVEL_COLUMNS",
    "LogKind",
    "LogName",
    "LogShift",
    "Portion",
    "Row",
    "SCALAR_TYPES",
    "STRUCTURE_COLUMNS",
    "Scalar",
    "cut_row",
    "decode_column",
    "decode_record",
    "decode_row",
    "encode_column",
    "encode_row",
    "flatten",
    "is_full",
    "is_saturated",
    "join_batches",
    "join_u32",
    "make_batch",
    "pack_record",
    "pack_value",
    "row_batch",
    "saturated_text",
    "split_u32",
    "unpack_value",
]
