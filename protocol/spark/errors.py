"""The errors of the Spark source: each begins with a stable code, names the option or column, and says what to do.

    HeadgateError
    +-- ConnectorError
        +-- MissingOption           an option that is needed was not set
        +-- UnknownOption           an option that nobody knows
        +-- BadOption               an option's value is none of those allowed
        +-- BadOffsets              offsets that name no position of a log
        +-- UnsupportedMode         a save mode, or an operation, that a log cannot do
        +-- UnsupportedType         a column of a type that no event can hold
        +-- BadRow                  a row that can be no event
        +-- NoBroker                no broker answered at these addresses
        +-- RefusedByBroker         the broker said no, and why
        +-- DataLoss                positions that were asked for are gone
        +-- LogsUnreachable         brokers that alone have some of the logs do not answer
        +-- NotKept                 a stream that keeps no log of that kind
        +-- NondeterministicInput   a retried task has other rows than the attempt before it
        +-- OtherWrite              what the log has of this job was written in another way
        +-- IdsUnknown              the ids of what the log has of this job cannot all be had
        +-- ProducerFenced          a newer attempt of the same task has taken over

Spark carries errors between its processes, by pickle or as text. So the fields are the arguments, unchanged, and the
text is computed from them when somebody reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import ClassVar

from headgate.protocol.errors import HeadgateError

__all__ = [
    "BadOffsets",
    "BadOption",
    "BadRow",
    "ConnectorError",
    "DataLoss",
    "IdsUnknown",
    "LogsUnreachable",
    "MissingOption",
    "NoBroker",
    "NondeterministicInput",
    "NotKept",
    "OtherWrite",
    "ProducerFenced",
    "RefusedByBroker",
    "UnknownOption",
    "UnsupportedMode",
    "UnsupportedType",
]


class ConnectorError(HeadgateError):
    """Anything the Spark source raises on purpose."""

    code: ClassVar[str] = "HEADGATE_ERROR"

    @property
    def text(self) -> str:
        """What happened and what to do, without the code."""
        return " ".join(map(str, self.args))

    def __str__(self) -> str:
        return f"[{self.code}] {self.text}"


class MissingOption(ConnectorError):
    """An option that is needed was not set."""

    code = "HEADGATE_MISSING_OPTION"

    def __init__(self, option: str, cure: str) -> None:
        super().__init__(option, cure)
        self.option = option
        self.cure = cure

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return f"option {self.option!r} is needed: {self.cure}"


class UnknownOption(ConnectorError):
    """An option that nobody knows."""

    code = "HEADGATE_UNKNOWN_OPTION"

    def __init__(self, option: str, known: Sequence[str], instead: str = "") -> None:
        super().__init__(option, known, instead)
        self.option = option
        self.known = known
        self.instead = instead

    @property
    def text(self) -> str:
        """See ConnectorError."""
        spelt = {name.lower(): name for name in self.known}
        near = get_close_matches(self.option.lower(), spelt, 1)
        hint = f"did you mean {spelt[near[0]]!r}? " if near else ""
        hint = f"what Kafka's source calls so is {self.instead} here; " if self.instead else hint
        return f"there is no option {self.option!r}; {hint}known are {', '.join(self.known)}"


class BadOption(ConnectorError):
    """An option's value is none of those allowed."""

    code = "HEADGATE_BAD_OPTION"

    def __init__(self, option: str, value: str, allowed: str) -> None:
        super().__init__(option, value, allowed)
        self.option = option
        self.value = value
        self.allowed = allowed

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return f"option {self.option!r} is {self.value!r}; it may be {self.allowed}"


class BadOffsets(ConnectorError):
    """Offsets that name no position of a log."""

    code = "HEADGATE_BAD_OFFSETS"

    def __init__(self, option: str, value: str, reason: str) -> None:
        super().__init__(option, value, reason)
        self.option = option
        self.value = value
        self.reason = reason

    @property
    def text(self) -> str:
        """See ConnectorError."""
        form = '"earliest", "latest" or JSON such as {"ann@1763492000": 23}, where -2 is earliest and -1 is latest'
        return f"option {self.option!r} is {self.value!r}: {self.reason}; write {form}"


class UnsupportedMode(ConnectorError):
    """A save mode, or an operation, that a log cannot do."""

    code = "HEADGATE_UNSUPPORTED_MODE"

    def __init__(self, mode: str, cure: str) -> None:
        super().__init__(mode, cure)
        self.mode = mode
        self.cure = cure

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return f"{self.mode}: {self.cure}"


class UnsupportedType(ConnectorError):
    """A column of a type that no event can hold."""

    code = "HEADGATE_UNSUPPORTED_TYPE"

    def __init__(self, column: str, kind: str, cure: str) -> None:
        super().__init__(column, kind, cure)
        self.column = column
        self.kind = kind
        self.cure = cure

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return f"column {self.column!r} is of type {self.kind}: {self.cure}"


class BadRow(ConnectorError):
    """A row that can be no event."""

    code = "HEADGATE_BAD_ROW"

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(column, reason)
        self.column = column
        self.reason = reason

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return f"column {self.column!r}: {self.reason}"


class NoBroker(ConnectorError):
    """No broker answered at these addresses."""

    code = "HEADGATE_CANNOT_CONNECT"

    def __init__(self, servers: str, reason: str) -> None:
        super().__init__(servers, reason)
        self.servers = servers
        self.reason = reason

    @property
    def text(self) -> str:
        """See ConnectorError."""
        cure = "is 'headgate serve' running there, and can this machine reach it?"
        return f"option 'headgate.bootstrap.servers' is {self.servers!r}: {self.reason}; {cure}"


class RefusedByBroker(ConnectorError):
    """The broker said no, and why."""

    code = "HEADGATE_REFUSED"

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(number, reason)
        self.number = number
        self.reason = reason

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return f"the broker refused ({self.number}): {self.reason}"


class DataLoss(ConnectorError):
    """Positions that were asked for are gone."""

    code = "HEADGATE_DATA_LOSS"

    def __init__(self, log: str, wanted: int, found: int) -> None:
        super().__init__(log, wanted, found)
        self.log = log
        self.wanted = wanted
        self.found = found

    @property
    def text(self) -> str:
        """See ConnectorError."""
        cure = "keep the stream for longer, or set option 'failOnDataLoss' to 'false' to go on with what is left"
        return f"log {self.log} has no positions {self.wanted} to {self.found - 1} any more: {cure}"


class LogsUnreachable(ConnectorError):
    """Brokers do not answer that may have events in their logs alone."""

    code = "HEADGATE_LOGS_UNREACHABLE"

    def __init__(self, brokers: Sequence[str]) -> None:
        super().__init__(tuple(brokers))
        self.brokers = tuple(brokers)

    @property
    def text(self) -> str:
        """See ConnectorError."""
        cure = "start them, or set option 'failOnDataLoss' to 'false' to read what is within reach"
        return f"{', '.join(self.brokers)} cannot be reached, and some events may be in their logs alone: {cure}"


class NotKept(ConnectorError):
    """A stream that keeps no log of that kind."""

    code = "HEADGATE_NOT_KEPT"

    def __init__(self, stream: str, kind: str) -> None:
        super().__init__(stream, kind)
        self.stream = stream
        self.kind = kind

    @property
    def text(self) -> str:
        """See ConnectorError."""
        setting = '"durability": "stored"' if self.kind == "events" else '"audit": true'
        what = "is unknown or in memory" if self.kind == "events" else f"keeps no {self.kind}"
        return f"stream {self.stream!r} {what}: check its name, or headgate schema put {self.stream} '{{{setting}}}'"


class NondeterministicInput(ConnectorError):
    """A retried task has other rows than the attempt before it."""

    code = "HEADGATE_NONDETERMINISTIC_INPUT"

    def __init__(self, producer: str, accepted: int, reason: str) -> None:
        super().__init__(producer, accepted, reason)
        self.producer = producer
        self.accepted = accepted
        self.reason = reason

    @property
    def text(self) -> str:
        """See ConnectorError."""
        cure = (
            "this attempt has published nothing. Sort within partitions by a unique key before the write, or give "
            "every row an id and set option 'eventIdColumn'"
        )
        return f"producer {self.producer} has {self.accepted} events in the log, and {self.reason}; {cure}"


class OtherWrite(ConnectorError):
    """What the log has of this job was written in another way."""

    code = "HEADGATE_OTHER_WRITE"

    def __init__(self, job: str, reason: str, cure: str) -> None:
        super().__init__(job, reason, cure)
        self.job = job
        self.reason = reason
        self.cure = cure

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return f"job {self.job}: {self.reason}. This attempt has published nothing: {self.cure}"


class IdsUnknown(ConnectorError):
    """The ids of what the log has of this job cannot all be had."""

    code = "HEADGATE_IDS_UNKNOWN"

    def __init__(self, producer: str, reason: str) -> None:
        super().__init__(producer, reason)
        self.producer = producer
        self.reason = reason

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return (
            f"producer {self.producer}: {self.reason}, so nobody can say which rows are in the log already. This "
            "attempt has published nothing"
        )


class ProducerFenced(ConnectorError):
    """A newer attempt of the same task has taken over."""

    code = "HEADGATE_PRODUCER_FENCED"

    def __init__(self, producer: str, epoch: int) -> None:
        super().__init__(producer, epoch)
        self.producer = producer
        self.epoch = epoch

    @property
    def text(self) -> str:
        """See ConnectorError."""
        return (
            f"a newer attempt than {self.epoch} publishes as {self.producer}: this one stops. With two jobs of one "
            "'producerId' at a time, give each its own"
        )
