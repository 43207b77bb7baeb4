"""Every message of the wire as a small slotted dataclass: the vocabulary of the system. SPEC.md tells the bytes.

A PUBLISH with a stamp has a type number of its own, PRODUCE, and is the same message.

Messages are never changed after they were made (the simulator passes them through the codec to see that).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from .data import Batch, LogShift, Portion, join_u32, split_u32
from .limits import CREDIT_DEFAULT, CREDIT_MAX, HEARTBEAT_SECONDS_DEFAULT

__all__ = [
    "Ack",
    "AckVerb",
    "Acked",
    "Answer",
    "Ask",
    "Control",
    "Copy",
    "Credit",
    "Deliver",
    "Ended",
    "Error",
    "Fetched",
    "Forward",
    "Gap",
    "Goodbye",
    "Handed",
    "Hello",
    "Hold",
    "Interest",
    "Letter",
    "LogChunk",
    "MESSAGE_TYPES",
    "Message",
    "Mode",
    "Peer",
    "Ping",
    "Pong",
    "Puback",
    "Publish",
    "ReadLog",
    "Rejected",
    "Scope",
    "Stamp",
    "Suback",
    "Subscribe",
    "Unsuback",
    "Unsubscribe",
    "PEER_VERSION",
    "VERSION",
    "Welcome",
    "wire_name",
]

# What brokers say to each other beside what they say to clients: a greeting, letters, control, forwarded events.
#
# LETTER and CONTROL are envelopes. This package carries their bodies and knows nothing of what they mean: `kind` is a
# number of the sender's vocabulary, `body` a list of lists, maps, integers, strings and bins within the limits of the
# codec. Their meaning, and whether they have any, is the core's to find out.


@dataclass(slots=True)
class Peer:
    """First word on a link between brokers, said by both: the dialler first, and the acceptor answers with its own.

    `address` is where other brokers dial, `client_address` where clients do. `cluster` is the name of its cluster,
    `founder` whether it was told to join no other and knows of none; `fingerprint` holds the settings that all brokers
    of a cluster share. Counts come behind it: the first CREDIT of each side says how many events came in from
    the other one in this life of both; the dialler's is at the same time its word that this link is the one to use.
    """

    version: int
    name: str
    life: int
    address: str
    client_address: str
    cluster: str
    founder: bool
    fingerprint: dict[str, Any]


@dataclass(slots=True)
class Letter:
    """Ring control. A place on the ring is [identifier, incarnation, padding, address]; nil: the broker there."""

    sender: Sequence[Any]
    recipient: Sequence[Any] | None
    kind: int
    body: Sequence[Any]


@dataclass(slots=True)
class Control:
    """Everything else between brokers that is small."""

    kind: int
    body: Sequence[Any]


@dataclass(slots=True)
class Forward:
    """Rows of a batch for the broker that matches them.

    `dimensions` is a list of [dimension, rows]: the dimension a list of scalars, the rows places in this batch,
    ascending. The batch itself may be rows of a larger one, which began at `base` in its broker's sequence: `offsets`
    has the place of each event after `base`, as in a portion, and `log` is that of a portion. `hops` counts the brokers
    that passed it on.
    """

    dimensions: list[Any]
    hops: int
    batch: Batch
    origin: str
    base: int
    offsets: bytes
    time: int
    log: LogShift | None = None

    @classmethod
    def make(
        cls,
        dimensions: list[Any],
        hops: int,
        batch: Batch,
        origin: str,
        base: int,
        places: Sequence[int],
        time: int,
        log: LogShift | None = None,
    ) -> Forward:
        """With the place of each event after `base` (ascending, as many as the batch has)."""
        first = places[0]
        if places[-1] - first == len(places) - 1:
            return cls(dimensions, hops, batch, origin, base + first, b"", time, log)
        return cls(dimensions, hops, batch, origin, base, join_u32(places), time, log)

    def places(self) -> Sequence[int]:
        """The place of each event after `base`."""
        return split_u32(self.offsets) if self.offsets else range(self.batch.count)


# The messages about logs: who published a batch, one chunk of a log asked for and given, a row for another's disk.
#
# Reading is by pull: one READ_LOG, one LOG_CHUNK, and a reader that wants more asks on from `next`. So a reader sets
# the pace and a broker holds nothing for it. What the rows are is told in `data/log_rows.py`; here they are bytes.


@dataclass(slots=True)
class Stamp:
    """Who published a batch and which of that producer's events it begins with.

    `number` counts the producer's events from 0, whatever its epoch; a newer epoch shuts out the older ones. `digest`
    is the producer's own word about what it wrote so far, `ids` a column with one string an event, or empty.
    """

    producer: str
    epoch: int
    number: int
    digest: bytes = b""
    ids: bytes = b""


@dataclass(slots=True)
class ReadLog:
    """Rows of a log from a position on; with a pattern or a condition only the events that match.

    `ago`: what was accepted more seconds ago may be passed over; the chunk then says where to go on. 0: nothing is.
    """

    request: int
    broker: str
    epoch: int
    kind: int
    stream: str
    position: int
    events: int = 0
    pattern: str = ""
    condition: str = ""
    ago: float = 0.0


@dataclass(slots=True)
class LogChunk:
    """What was there: encoded rows, where to ask on, and where the log begins and ends."""

    request: int
    first: int
    next: int
    end: int
    rows: list[bytes]


@dataclass(slots=True)
class Copy:
    """A row of the sender's log for the recipient's disk.

    Rows before `safe` are on enough disks. `generation` is that of the opening of its producer under which the row is
    sent, 0 when there is none, and `start` the number from which on events are of that opening.
    """

    broker: str
    epoch: int
    kind: int
    stream: str
    row: bytes
    safe: int = 0
    generation: int = 0
    start: int = 0


@dataclass(slots=True)
class Fetched:
    """Rows of a log that the recipient asked for by position; with a code other than 0, why it gets none."""

    number: int
    code: int
    text: str
    rows: list[bytes]


VERSION = 2
"""Of what clients and brokers say to each other."""

PEER_VERSION = 5
"""Of what brokers say to each other: PEER and all that follows it, the messages inside CONTROL too."""


class Scope(IntEnum):
    """What an ERROR is about, and what its `reference` names."""

    CONNECTION = 0
    REQUEST = 1
    PUBLISH = 2


class AckVerb(IntEnum):
    """What a client says of events that were handed out to it: done, again, I am still at it, never again; and that it
    is none of the subscription's, as the client alone can tell.
    """

    ACK = 0
    NAK = 1
    PROGRESS = 2
    TERM = 3
    SKIP = 4


class Mode(IntEnum):
    """What a publisher wants to hear: nothing, that the broker has it, that disks have it."""

    FIRE = 0
    ACCEPTED = 1
    STORED = 2


@dataclass(slots=True)
class Hello:
    """First word of a client. A session key asks to go on with that session; `received` is how far it got."""

    version: int = VERSION
    name: str = ""
    session: bytes = b""
    received: int = 0
    credit: int = CREDIT_DEFAULT
    heartbeat_seconds: float = HEARTBEAT_SECONDS_DEFAULT
    credentials: str = ""
    credit_bytes: int = CREDIT_MAX


@dataclass(slots=True)
class Welcome:
    """The broker's answer: the session, whether it was resumed, and the last publish sequence that it accepted."""

    version: int
    broker: str
    session: bytes
    resumed: bool
    accepted: int
    window: int
    heartbeat_seconds: float


@dataclass(slots=True)
class Error:
    """A refusal of one request or one batch; with scope CONNECTION the connection ends after it."""

    code: int
    scope: int
    reference: int
    text: str


@dataclass(slots=True)
class Goodbye:
    """An orderly end; what was sent before it still counts."""

    code: int
    text: str


@dataclass(slots=True)
class Ping:
    """Are you there?"""

    token: int


@dataclass(slots=True)
class Pong:
    """I am."""

    token: int


@dataclass(slots=True)
class Credit:
    """Cumulative since the session began: deliveries that may be sent, deliveries that came in, and of those how many
    the application has without a hole; since HELLO: bytes that may be sent.
    """

    allowed: int
    received: int
    allowed_bytes: int = CREDIT_MAX
    taken: int = 0


@dataclass(slots=True)
class Hold:
    """Keep what comes for this subscription, or go on with it: it is full, or no longer."""

    subscription: int
    held: bool


@dataclass(slots=True)
class Subscribe:
    """FROM pattern WHERE condition; the subscriber numbers its own subscriptions."""

    request: int
    subscription: int
    pattern: str
    condition: str = ""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Suback:
    """In force: every event accepted after this is seen. `checks` has the XPath text and the items of each XPATH of
    its condition: what the subscriber asks of the documents that come.
    """

    request: int
    subscription: int
    checks: list[list[Any]] = field(default_factory=list)


@dataclass(slots=True)
class Unsubscribe:
    """No more of that subscription."""

    request: int
    subscription: int


@dataclass(slots=True)
class Unsuback:
    """Nothing of that subscription comes after this."""

    request: int
    subscription: int


@dataclass(slots=True)
class Publish:
    """A batch; `sequence` counts this session's acknowledged batches from 1 without holes, and is 0 with FIRE.

    With a stamp it is recognised when it comes again, whatever the session.
    """

    sequence: int
    mode: int
    batch: Batch
    stamp: Stamp | None = None


@dataclass(slots=True)
class Puback:
    """Every batch up to this sequence has its answer; refused ones were named by an ERROR before."""

    sequence: int


@dataclass(slots=True)
class Deliver:
    """A portion of a batch, and for each run of its events the subscriptions that it is for.

    `routes` alternates subscriptions and a number of events; one subscription is the bare number, several are a list.
    Or, when each event is for one subscription of its own, it is these numbers as u32, one an event.
    """

    routes: list[Any] | bytes
    portion: Portion

    def runs(self) -> Iterator[tuple[list[int], int]]:
        """The routes as (subscriptions, events)."""
        if type(self.routes) is bytes:
            for number in split_u32(self.routes):
                yield [number], 1
            return
        for numbers, count in zip(self.routes[::2], self.routes[1::2], strict=True):
            yield ([numbers] if type(numbers) is int else numbers), count


@dataclass(slots=True)
class Gap:
    """So many deliveries of a subscription were lost, and why."""

    subscription: int
    count: int
    reason: str


@dataclass(slots=True)
class Interest:
    """The attributes of a stream that somebody filters on: send a match column for each; None: for all there are."""

    stream: str
    attributes: list[str] | None


@dataclass(slots=True)
class Ask:
    """A question to the broker itself: status, streams, subscriptions, schemas, an explanation."""

    request: int
    verb: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class Answer:
    """What the broker says to it."""

    request: int
    value: Any


# Durable subscriptions: what is handed out, and what the client says of it.


@dataclass(slots=True)
class Handed:
    """Events of a durable subscription; they are handed out again unless the client acknowledges them in time.

    Event i has the delivery number `first` + i, and was handed out `counts[i]` times (u32; empty: all once).
    """

    subscription: int
    first: int
    counts: bytes
    portion: Portion

    def count_list(self) -> Sequence[int]:
        """How often each event was handed out by now, from 1; empty when this is the first time for all of them."""
        return split_u32(self.counts) if self.counts else ()


@dataclass(slots=True)
class Ack:
    """What became of events that were handed out: `spans` of their delivery numbers, [first, last, first, last, …].

    A span from 0 is cumulative: everything that this client was handed and did not settle, up to its last number.
    `seconds` is for NAK: hand them out again after so long; -1: as the subscription's backoff has it. `text` is the
    reason of a TERM. With a request ACKED answers, with 0 nothing does.
    """

    request: int
    subscription: int
    verb: int
    spans: list[int]
    seconds: float = -1
    text: str = ""


@dataclass(slots=True)
class Acked:
    """That is on disks and survives; `stale` are spans of numbers that were not current any more: nothing was done."""

    request: int
    stale: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Ended:
    """The broker takes no part in that durable subscription for this client any more: with UNAVAILABLE, ask again."""

    subscription: int
    code: int
    text: str


@dataclass(slots=True)
class Rejected:
    """Some events of a batch are refused, the others are not: `spans` of their places in it, [first, last, …] from 0.

    `kept`: the others were taken. Else they were not, because a producer's numbers count all of a batch: its client
    sends them again without the refused ones.
    """

    sequence: int
    code: int
    spans: list[int]
    kept: bool
    text: str


Message = (
    Hello
    | Welcome
    | Error
    | Goodbye
    | Ping
    | Pong
    | Credit
    | Subscribe
    | Suback
    | Unsubscribe
    | Unsuback
    | Publish
    | Puback
    | Deliver
    | Gap
    | Interest
    | Ask
    | Answer
    | ReadLog
    | LogChunk
    | Hold
    | Handed
    | Ack
    | Acked
    | Ended
    | Rejected
    | Peer
    | Letter
    | Control
    | Forward
    | Copy
    | Fetched
)

MESSAGE_TYPES: dict[int, type[Any]] = {
    1: Hello,
    2: Welcome,
    3: Error,
    4: Goodbye,
    5: Ping,
    6: Pong,
    7: Credit,
    8: Subscribe,
    9: Suback,
    10: Unsubscribe,
    11: Unsuback,
    12: Publish,
    13: Puback,
    14: Deliver,
    15: Gap,
    16: Interest,
    17: Ask,
    18: Answer,
    19: Publish,
    20: ReadLog,
    21: LogChunk,
    22: Hold,
    23: Handed,
    24: Ack,
    25: Acked,
    26: Ended,
    27: Rejected,
    32: Peer,
    33: Letter,
    34: Control,
    35: Forward,
    36: Copy,
    37: Fetched,
}


def wire_name(kind: type[Any]) -> str:
    """A kind of message as SPEC.md writes it: READ_LOG, PUBACK."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__).upper()
