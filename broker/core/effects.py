"""Everything a Node can ask of its host. Effects are carried out in order; none has an answer but a later input.

What is asked of the disk carries a ticket. What changes it (`LogWrite`) shares one series, 1, 2, 3 and so on, because
one number answers all of it (Stored); what is looked up has tickets of any numbers, and each gets its own answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.protocol.data import LogName
from headgate.protocol.messages import Message

from .log_state import ProducerState

__all__ = [
    "Append",
    "Close",
    "CutLog",
    "Dial",
    "Effect",
    "FindIds",
    "FindSize",
    "FindTime",
    "Halt",
    "KeepDurable",
    "KeepProducer",
    "KeepWatermarks",
    "LogEffect",
    "LogWrite",
    "Mute",
    "Note",
    "ReadRows",
    "Send",
    "Store",
    "TrimLog",
    "WriteOn",
]


@dataclass(slots=True)
class Send:
    """Say this on that link. The link may be gone by now; then nothing happens."""

    link: int
    message: Message


@dataclass(slots=True)
class Close:
    """Give the link up; what was sent on it may go out first, for a moment."""

    link: int


@dataclass(slots=True)
class Mute:
    """Read nothing from that link until it is said otherwise (`on` is False); what it sends waits in the socket."""

    link: int
    on: bool


@dataclass(slots=True)
class Dial:
    """Connect to the broker at this address: PeerUp or DialFailed answers."""

    address: str


@dataclass(slots=True)
class Store:
    """Keep a small record over restarts; None forgets it."""

    key: str
    value: Any


@dataclass(slots=True)
class Note:
    """Something an operator may want to read, with its facts; `routine` ones are for those who look closely, and
    `alarming` ones for those who read only warnings.

    The core never logs; a host does.
    """

    event: str
    facts: dict[str, Any]
    routine: bool = False
    alarming: bool = False


@dataclass(slots=True)
class Append:
    """Put a row at the end of a log, our own or a copy, and what it makes of its producer: Stored or NotStored answers.

    `first` is where the log ends; only a log that is new here, or empty, may begin anywhere. A larger epoch of our own
    is begun by appending to it. `ids`: the row has ids of its events, which FindIds finds by the producer's name.
    """

    ticket: int
    log: LogName
    row: bytes
    first: int
    count: int
    time: int
    producer: ProducerState | None = None
    ids: bool = False


@dataclass(slots=True)
class KeepProducer:
    """Remember this of a producer without a row: that an epoch is over. Stored or NotStored answers."""

    ticket: int
    producer: ProducerState


@dataclass(slots=True)
class KeepDurable:
    """Keep the state of a durable subscription in place of the one before; an empty one: forget it.

    Stored or NotStored answers. To the host it is bytes. The name is any text that UTF-8 can write, without NUL.
    """

    ticket: int
    name: str
    state: bytes


@dataclass(slots=True)
class CutLog:
    """End a log of our own at a position: the rows from there on are put aside, and `rows` are appended to another one.
    When the log begins behind that position by now, for it was trimmed, it ends where it begins.

    They carry the same ticket. All of it, what it makes of `producers`, and that `epoch` has begun, is one transaction:
    Stored or NotStored answers. The stamps of `rows` change no producer.
    """

    ticket: int
    log: LogName
    at: int
    epoch: int
    rows: list[Append]
    producers: list[ProducerState]


@dataclass(slots=True)
class WriteOn:
    """What was asked to be kept before this, and not told Stored, is not in the logs, as NotStored said.

    It goes the way of all that is asked of the disk, so it stands exactly between what was asked without knowing of
    the failure and what was asked after it.
    """


@dataclass(slots=True)
class ReadRows:
    """The rows of a log from the one that holds this position on, so many bytes of them or one: RowsRead answers."""

    ticket: int
    log: LogName
    position: int
    bytes_max: int


@dataclass(slots=True)
class TrimLog:
    """Let go of the rows that end at or before `below`: Trimmed answers, with what is left.

    A row that goes on behind it stays whole. Where the log ends before `below` it is empty then, and ends there: this
    is how a copy skips what its owner has no more.
    """

    log: LogName
    below: int


@dataclass(slots=True)
class KeepWatermarks:
    """Remember how far logs of our own are on enough disks: Opened tells it to the next life. Nothing answers.

    It is never more than the disk has. When it is lost, the next life has to ask others.
    """

    logs: dict[LogName, int]


@dataclass(slots=True)
class FindTime:
    """The first position whose row is of this time (microseconds since 1970) or later: Found answers, with a number."""

    ticket: int
    log: LogName
    time: int


@dataclass(slots=True)
class FindSize:
    """The first position of the newest rows that together have at most so many bytes: Found answers, with a number."""

    ticket: int
    log: LogName
    bytes: int


@dataclass(slots=True)
class FindIds:
    """Rows of a producer that have ids, in its own order, from the one with its event `after` on: Found answers.

    The value is (rows, next): a few rows, and what to say as `after` for more, or None when that was all.
    """

    ticket: int
    producer: str
    after: int


@dataclass(slots=True)
class Halt:
    """This broker must stop at once and answer no more: what its disk holds is not known."""

    reason: str


LogWrite = Append | KeepProducer | KeepDurable | CutLog
"""What Stored and NotStored answer."""

LogEffect = LogWrite | WriteOn | ReadRows | TrimLog | KeepWatermarks | FindTime | FindSize | FindIds
"""What a host hands on to its store; those of one kind that change it are carried out in order."""

Effect = Send | Close | Mute | Dial | Store | Note | Halt | LogEffect
