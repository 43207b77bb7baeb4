"""The errors of the wire: what each code means, and which side is to blame.

    HeadgateError
    +-- LocalError            we broke the rules ourselves: a bug on this side, raised to the caller
    +-- ProtocolViolation     the other side broke the rules; the connection closes at the first one
    +-- Refused               the broker understood and said no; the connection stays
    |   +-- EventsRefused     some events of a batch: the others were taken
    |   +-- Fenced            a newer epoch of this producer is at work: this one must stop
    |   +-- OutOfSequence     the log has not what came before this batch: nothing more of this producer is taken
    +-- CannotConnect         no broker answered, or the handshake failed
    |   +-- Unauthorised      the broker wants to know who this is, or will not have it
    +-- ConnectionLost        the connection ended while something was asked of it
    +-- UnknownOutcome        it was sent, and it is unknown whether it was accepted

Each class keeps what it knows in fields and makes its text from them. All of them can be pickled and copied, so that
they reach whoever waits in another process.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

__all__ = [
    "CannotConnect",
    "ConnectionLost",
    "ErrorCode",
    "EventsRefused",
    "Fenced",
    "HeadgateError",
    "LocalError",
    "OutOfSequence",
    "ProtocolViolation",
    "Refused",
    "Unauthorised",
    "UnknownOutcome",
]


class ErrorCode(IntEnum):
    """Wire codes. Below 100: the connection is over. From 100 on: one request or one batch was refused."""

    GOODBYE = 0
    PROTOCOL = 1
    VERSION = 2
    UNAUTHORISED = 3
    TOO_LARGE = 4
    TIMEOUT = 5
    SLOW_CONSUMER = 6
    SHUTTING_DOWN = 7
    TOO_MANY = 8
    REPLACED = 9
    MISMATCH = 10
    OTHER_CLUSTER = 11

    BAD_CONDITION = 100
    BAD_PATTERN = 101
    BAD_TOPIC = 102
    BAD_BATCH = 103
    BAD_REQUEST = 104
    LIMIT = 105
    UNSUPPORTED = 106
    NOT_FOUND = 107
    DUPLICATE = 108
    SEQUENCE_GAP = 109
    UNAVAILABLE = 110
    FENCED = 111
    NOT_STORED = 112
    OUT_OF_SEQUENCE = 113
    FORBIDDEN = 114


class HeadgateError(Exception):
    """Anything this project raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the class with the text, which is not what its __init__ takes.
        return _rebuilt, (type(self), self.args, self.__dict__)


class LocalError(HeadgateError):
    """We asked for something the protocol forbids (a message in the wrong state, a body over the limit)."""


class ProtocolViolation(HeadgateError):
    """The other side sent what the protocol does not allow."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.PROTOCOL) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class Refused(HeadgateError):
    """The broker refused one request or one batch and said why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class EventsRefused(Refused):
    """The broker refused some events of a batch; all others of it were taken. `rows` are their places in it, from 0."""

    def __init__(self, code: int, rows: tuple[int, ...], text: str) -> None:
        super().__init__(code, text)
        self.rows = rows


class Fenced(Refused):
    """Somebody opened this producer with a newer epoch: whoever did that goes on where this one stopped."""

    def __init__(self, producer: str, epoch: int, text: str) -> None:
        super().__init__(ErrorCode.FENCED, f"producer {producer!r}, epoch {epoch}, was replaced by a newer one: {text}")
        self.producer = producer
        self.epoch = epoch


class OutOfSequence(Refused):
    """The cluster does not have the events before this batch, or has some of the batch already."""

    def __init__(self, producer: str, number: int, text: str) -> None:
        super().__init__(ErrorCode.OUT_OF_SEQUENCE, f"producer {producer!r} is out of sequence at {number}: {text}")
        self.producer = producer
        self.number = number


class CannotConnect(HeadgateError):
    """No broker at that address, or none that would talk to us."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


class Unauthorised(CannotConnect):
    """There is a broker, and it does not let this client in."""


class ConnectionLost(HeadgateError):
    """The connection ended before the answer came."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"connection lost: {reason}")
        self.reason = reason


class UnknownOutcome(HeadgateError):
    """The batch was sent and no acknowledgement came back: it may or may not have been accepted.

    Publishing it again may duplicate it. The broker that took it may be asked, or the caller's own keys may
    tell; the library will not guess.
    """

    def __init__(self, events: int, reason: str) -> None:
        super().__init__(f"the outcome of {events} event(s) is unknown: {reason}")
        self.events = events
        self.reason = reason


def _rebuilt(kind: type[HeadgateError], args: tuple[Any, ...], fields: dict[str, Any]) -> HeadgateError:
    """An error as it was: its class, text and fields."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error
