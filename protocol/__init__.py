"""The wire: how two processes talk. This folder's root is pure; each world that does I/O is a folder below it.

Read in this order: `SPEC.md` (every byte), `messages` (the vocabulary; between brokers `peer_messages`, about logs
`log_messages`), `batch` (the unit), `codec`, `fields`, `peer_codec` and `log_codec` (message and bytes), `frames`
(bytes and frames), `session` (the machine that a host drives), `log_rows` (a batch in a log), `errors`, `limits`. Then
`aio` (asyncio: the client, and the connection that the daemon uses too) and `blocking` (threads, Spark tasks).

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
