"""FACE of data."""

from .batch import Batch, Portion, join_batches, join_u32, make_batch, split_u32
from .columns import SCALAR_TYPES, Scalar, decode_column, encode_column
from .log_rows import LogKind, LogName, Row, cut_row, decode_row, encode_row, row_batch
from .records import decode_record, flatten, pack_record

__all__ = [
    "Batch",
    "LogKind",
    "LogName",
    "Portion",
    "Row",
    "SCALAR_TYPES",
    "Scalar",
    "cut_row",
    "decode_column",
    "decode_record",
    "decode_row",
    "encode_column",
    "encode_row",
    "flatten",
    "join_batches",
    "join_u32",
    "make_batch",
    "pack_record",
    "row_batch",
    "split_u32",
]
