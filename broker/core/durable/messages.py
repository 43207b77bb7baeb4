"""What brokers say to each other about durable subscriptions.

Four talks: a coordinator and the brokers that keep its states (Keep, Collect); the home of a client and the coordinator
(Attach, HandOut, Settle); the coordinator and the brokers that hold logs (Feed, Fed); and whoever wants bodies and a
broker that has them (Fetch; the answer, FETCHED, is a message of the wire of its own, for it is as long as rows are).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from headgate.matching.structure import TwigError, parse_twig
from headgate.protocol.errors import ErrorCode, ProtocolViolation
from headgate.protocol.limits import CHECKS_MAX, CONDITION_LENGTH_MAX, TOPIC_LENGTH_MAX
from headgate.protocol.messages import AckVerb

from ..limits import POSITIONS_MAX
from ..messages import (
    CONTROLS,
    COUNTER,
    MAP,
    Counter,
    Field,
    Flag,
    Identifier,
    Name,
    Text,
    Unfit,
    binary,
    listed,
    nullable,
    record,
    text,
    whole,
)
from .limits import COLLECT_PAGE_STATES, PLACES_MAX, STATE_BYTES_MAX
from .runs import count_of, split_runs

__all__ = [
    "AskEnds",
    "Asks",
    "Attach",
    "Attached",
    "CollectStates",
    "Collected",
    "Compare",
    "Detach",
    "Detached",
    "EndFeed",
    "Fed",
    "Feed",
    "FeedPlace",
    "FeedSection",
    "Fetch",
    "HandOut",
    "KeepState",
    "Missed",
    "Place",
    "Settle",
    "Settled",
    "StateFenced",
    "StateKept",
    "ToldEnds",
]

RUNS_BYTES_MAX = 128 * 1024
SPANS_MAX = 8192

Position = Annotated[int, whole(POSITIONS_MAX)]
Code = Annotated[int, whole(max(ErrorCode))]
StateBytes = Annotated[bytes, binary(STATE_BYTES_MAX)]


def _runs(value: Any) -> bytes:
    if type(value) is not bytes or len(value) > RUNS_BYTES_MAX:
        raise Unfit
    try:
        split_runs(value)
    except ProtocolViolation:
        raise Unfit from None
    return value


RUNS = Field(f"pairs of u64 that ascend, at most {RUNS_BYTES_MAX} bytes", _runs, bound=RUNS_BYTES_MAX, label="runs")
Runs = Annotated[bytes, RUNS]
"""Positions as pairs of u64 little-endian, start and stop, ascending and apart."""
Condition = Annotated[str, text(CONDITION_LENGTH_MAX)]
Spans = Annotated[tuple[int, ...], listed(whole(2**53), SPANS_MAX)]


class Place(NamedTuple):
    """A log of a stream: who wrote it, and in which epoch."""

    broker: Name
    epoch: Counter


# --- States on disks --------------------------------------------------------------------------------------------------


@CONTROLS.message(50)
@dataclass(slots=True)
class KeepState:
    """The coordinator wants this state on another broker's disk."""

    name: Name
    generation: Counter
    number: Counter
    state: StateBytes


@CONTROLS.message(51)
@dataclass(slots=True)
class StateKept:
    """It is there; `state` is what was there before, of an older generation, for who takes it over (else empty)."""

    name: Name
    generation: Counter
    number: Counter
    state: StateBytes


@CONTROLS.message(52)
@dataclass(slots=True)
class StateFenced:
    """It is not kept: a coordinator of that generation is known, which is newer, or another one."""

    name: Name
    generation: Counter
    number: Counter


@CONTROLS.message(53)
@dataclass(slots=True)
class CollectStates:
    """Which states do you have whose keys are behind `start`, up to `end`; after that name."""

    number: Counter
    start: Identifier
    end: Identifier
    after: Name


@CONTROLS.message(54)
@dataclass(slots=True)
class Collected:
    """Some of them, by name; `more`: ask again after the last one."""

    number: Counter
    states: Annotated[tuple[bytes, ...], listed(binary(STATE_BYTES_MAX), COLLECT_PAGE_STATES)]
    more: Flag


# --- Clients ----------------------------------------------------------------------------------------------------------


@CONTROLS.message(55)
@dataclass(slots=True)
class Attach:
    """A client of the sender wants to take part in a durable subscription, which may be new; `number` is its home's."""

    number: Counter
    name: Name
    client: Text
    pattern: Annotated[str, text(TOPIC_LENGTH_MAX)]
    condition: Condition
    options: Annotated[dict[str, Any], MAP]


@CONTROLS.message(56)
@dataclass(slots=True)
class Attached:
    """It does (code 0), from now on; or why not."""

    number: Counter
    code: Code
    text: Text


@CONTROLS.message(57)
@dataclass(slots=True)
class Detach:
    """The client is gone."""

    number: Counter


@CONTROLS.message(58)
@dataclass(slots=True)
class Detached:
    """The coordinator lets go of the client, and why."""

    number: Counter
    code: Code
    text: Text


@CONTROLS.message(59)
@dataclass(slots=True)
class HandOut:
    """These positions of a log go to the client, numbered from `first`; `counts` as in HANDED.

    It has so many milliseconds to acknowledge them: what was not sent by then goes to somebody else.
    """

    number: Counter
    first: Counter
    counts: Annotated[bytes, binary(RUNS_BYTES_MAX)]
    stream: Name
    place: Annotated[Place, record(Place)]
    runs: Runs
    milliseconds: Counter = 86_400_000

    def check(self) -> str:
        """Something is handed out, and each event has a count or none has."""
        count = count_of(split_runs(self.runs))
        return "" if count and len(self.counts) in (0, 4 * count) else f"{len(self.counts)} bytes count {count} events"


@CONTROLS.message(60)
@dataclass(slots=True)
class Settle:
    """The client acknowledges, refuses, works on or gives up deliveries; as ACK says, in milliseconds."""

    number: Counter
    request: Counter
    verb: Annotated[int, whole(max(AckVerb))]
    spans: Spans
    milliseconds: Annotated[int | None, nullable(COUNTER)]
    text: Text


@CONTROLS.message(61)
@dataclass(slots=True)
class Settled:
    """That is on enough disks, but for these delivery numbers, which were not current."""

    number: Counter
    request: Counter
    stale: Spans


@CONTROLS.message(62)
@dataclass(slots=True)
class Missed:
    """So many events were lost to the subscription, and why."""

    number: Counter
    count: Counter
    reason: Text


@CONTROLS.message(71)
@dataclass(slots=True)
class Compare:
    """From now on the client is sent what moves by the DELTAs of this condition, or all when it has none."""

    number: Counter
    stream: Name
    condition: Condition


# --- Logs -------------------------------------------------------------------------------------------------------------


class FeedPlace(NamedTuple):
    """From which position of a log on."""

    broker: Name
    epoch: Counter
    position: Position


class FeedSection(NamedTuple):
    """Positions before these ends have to match this condition as well."""

    condition: Condition
    ends: Annotated[tuple[FeedPlace, ...], listed(record(FeedPlace), PLACES_MAX)]


@CONTROLS.message(63)
@dataclass(slots=True)
class Feed:
    """Tell which events of a stream match, in every log of it that you wrote, and in copies of others' logs, but for
    those of brokers that are `present`.

    From these places on; logs that are not named begin where rows are of time `since` (microseconds) or later. `key`:
    tell a hash of this attribute's value as well; empty for none. A feed of a number that there is begins anew.
    """

    number: Counter
    stream: Name
    pattern: Annotated[str, text(TOPIC_LENGTH_MAX)]
    exact: Flag
    condition: Condition
    sections: Annotated[tuple[FeedSection, ...], listed(record(FeedSection), 64)]
    key: Name
    since: Counter
    places: Annotated[tuple[FeedPlace, ...], listed(record(FeedPlace), PLACES_MAX)]
    present: Annotated[tuple[str, ...], listed(text(256), 1024)]


@CONTROLS.message(64)
@dataclass(slots=True)
class Fed:
    """Of the positions `start` to `upto - 1` of a log, those in `runs` match, and no other.

    `first` is where the log begins by now, `time` that of the first one that matches (0: none), `keys` hashes as u32.
    """

    number: Counter
    place: Annotated[Place, record(Place)]
    first: Position
    start: Position
    upto: Position
    runs: Runs
    keys: Annotated[bytes, binary(RUNS_BYTES_MAX)]
    time: Counter

    def check(self) -> str:
        """What matches is among what was looked at."""
        runs = split_runs(self.runs)
        within = self.start <= self.upto and (not runs or (self.start <= runs[0][0] and runs[-1][1] <= self.upto))
        return "" if within and len(self.keys) % 4 == 0 else "positions that match are among those looked at"


@CONTROLS.message(65)
@dataclass(slots=True)
class EndFeed:
    """No more of that."""

    number: Counter


@CONTROLS.message(66)
@dataclass(slots=True)
class Fetch:
    """The events at these positions of a log, please; FETCHED answers."""

    number: Counter
    stream: Name
    place: Annotated[Place, record(Place)]
    runs: Runs


@CONTROLS.message(67)
@dataclass(slots=True)
class AskEnds:
    """Where do the logs of this stream end that you hold? With `begins`: where do they begin, as retention has it?"""

    number: Counter
    stream: Name
    begins: Flag


@CONTROLS.message(68)
@dataclass(slots=True)
class ToldEnds:
    """There, as far as is known here; `broker` is who tells."""

    number: Counter
    broker: Name
    places: Annotated[tuple[FeedPlace, ...], listed(record(FeedPlace), PLACES_MAX)]


@CONTROLS.message(72)
@dataclass(slots=True)
class Asks:
    """What the durable subscription of a client asks of documents: said before Attached, and when it is changed.

    The client decides whether a document has it. An empty list: nothing is asked.
    """

    number: Counter
    twigs: Annotated[tuple[str, ...], listed(text(CONDITION_LENGTH_MAX), CHECKS_MAX)]

    def check(self) -> str:
        """What is wrong with it."""
        try:
            for twig in self.twigs:
                parse_twig(twig)
        except TwigError as error:
            return str(error)
        return ""
