"""The wire: how two processes talk. This folder's root is pure; each world that does I/O is a folder below it.

Order of reading: `SPEC.md` (every byte), `messages` (the vocabulary), `errors`, `limits`, `addresses`. Then the rooms,
from the ground up, each with a manual in its `__init__`:

    data        batches in columns, records, match columns, rows of logs
    wire        frames, the codec of messages, and the session that a host drives
    client      what a client does, without I/O
    aio         the client on an event loop, and the connection that the daemon uses too
    blocking    the client for threads and Spark tasks
    spark       the PySpark data source

Re-exported here: Batch, Portion, make_batch, Session, Role, State, ErrorCode, HeadgateError, LocalError,
ProtocolViolation, Refused, Fenced, OutOfSequence, CannotConnect, ConnectionLost, UnknownOutcome, VERSION. Nothing here
loads an event loop.
"""

from .data import Batch, Portion, make_batch
from .errors import (
    CannotConnect,
    ConnectionLost,
    ErrorCode,
    Fenced,
    HeadgateError,
    LocalError,
    OutOfSequence,
    ProtocolViolation,
    Refused,
    UnknownOutcome,
)
from .messages import VERSION
from .wire import Role, Session, State

__all__ = [
    "VERSION",
    "Batch",
    "CannotConnect",
    "ConnectionLost",
    "ErrorCode",
    "Fenced",
    "HeadgateError",
    "LocalError",
    "OutOfSequence",
    "Portion",
    "ProtocolViolation",
    "Refused",
    "Role",
    "Session",
    "State",
    "UnknownOutcome",
    "make_batch",
]
