"""What brokers say to each other about logs and their producers.

A *place* names a log, from where it goes, and to where: the form of everything about copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from headgate.protocol.data import LogKind, LogName
from headgate.protocol.limits import DIGEST_LENGTH_MAX, LIST_LENGTH_MAX

from ..limits import FENCE_STARTS_MAX, POSITIONS_MAX, PRODUCER_NAME_LENGTH_MAX, PRODUCERS_LISTED_MAX
from ..messages import CONTROLS, Counter, Flag, Text, binary, choice, listed, record, text, whole
from .fences import Start

__all__ = [
    "AskProducer",
    "CannotCopy",
    "Copied",
    "CopyFrom",
    "CopyOffer",
    "CopyPlace",
    "ForgetProducers",
    "HeldCopies",
    "HighWatermark",
    "LostLogs",
    "HeldPlace",
    "ListProducers",
    "ListedProducers",
    "ProducerKnown",
    "RowFenced",
    "ToldProducer",
]

Position = Annotated[int, whole(POSITIONS_MAX)]
Kind = Annotated[int, choice(LogKind)]
Digest = Annotated[bytes, binary(DIGEST_LENGTH_MAX)]
ProducerName = Annotated[str, text(PRODUCER_NAME_LENGTH_MAX, 1)]
ProducerText = Annotated[str, text(PRODUCER_NAME_LENGTH_MAX)]
DigestPart = Annotated[bytes, binary(PRODUCER_NAME_LENGTH_MAX)]


# --- Copies -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class CopyPlace:
    """A log, its first position and the one after its last: the fields of every message about a copy."""

    broker: Text
    epoch: Counter
    kind: Kind
    stream: Text
    first: Position
    end: Position

    @property
    def name(self) -> LogName:
        """The log."""
        return LogName(self.broker, self.epoch, self.kind, self.stream)

    def check(self) -> str:
        """A log begins before it ends."""
        return "" if self.first <= self.end else "first is behind end"


@CONTROLS.message(17)
@dataclass(slots=True)
class Copied(CopyPlace):
    """A follower's disk has the copy up to there."""


@CONTROLS.message(18)
@dataclass(slots=True)
class CopyFrom(CopyPlace):
    """The answer to an offer: go on from there."""


@CONTROLS.message(19)
@dataclass(slots=True)
class CopyOffer(CopyPlace):
    """A leader offers a log for copying."""


@CONTROLS.message(28)
@dataclass(slots=True)
class RowFenced(CopyPlace):
    """The row that begins where the copy ends is not of the opening that the follower holds to."""


@CONTROLS.message(32)
@dataclass(slots=True)
class CannotCopy(CopyPlace):
    """The follower's disk is full, and the copy ends there."""


@CONTROLS.message(34)
@dataclass(slots=True)
class HighWatermark(CopyPlace):
    """Rows before `end` are on enough disks; a leader tells its followers when no row goes to them that says so."""


class HeldPlace(NamedTuple):
    """A log of the one who is told: up to where it is on disk, and where it ends when what was asked for is there."""

    epoch: Counter
    kind: Kind
    stream: Text
    next: Position
    end: Position


@CONTROLS.message(22)
@dataclass(slots=True)
class HeldCopies:
    """Which logs of the other broker are held here; before anything else about copies is said on a link."""

    is_all: Flag
    logs: Annotated[tuple[HeldPlace, ...], listed(record(HeldPlace, lambda one: one.next <= one.end), LIST_LENGTH_MAX)]


class LostLog(NamedTuple):
    """A log of the one who tells."""

    epoch: Counter
    stream: Text


@CONTROLS.message(33)
@dataclass(slots=True)
class LostLogs:
    """Of these logs of ours you hold events that our disk has not: they are to be read from you, also while we live."""

    logs: Annotated[tuple[LostLog, ...], listed(record(LostLog), LIST_LENGTH_MAX)]


# --- Producers --------------------------------------------------------------------------------------------------------


@CONTROLS.message(20)
@dataclass(slots=True)
class AskProducer:
    """A broker opens a producer in this epoch, for its log of `log_epoch`, and asks how far it has come.

    `generation` is that of the opening: rows of older ones are to be refused from now on. `renews`: no client has
    asked for this, but a row that a follower refused; so the answer does not wait for what is on its way to k disks.
    """

    request: Counter
    producer: ProducerName
    epoch: Counter
    generation: Counter
    log_epoch: Counter
    renews: Flag


@CONTROLS.message(21)
@dataclass(slots=True)
class ToldProducer:
    """The answer: whether that is known, the number after its last event, its digest and its epoch.

    `newer` is the generation that it holds to instead of the asked one, 0 when it holds to that from now on; `starts`
    are the openings that it knows of.
    """

    request: Counter
    is_known: Flag
    next: Counter
    digest: Digest
    epoch: Counter
    newer: Counter
    starts: Annotated[tuple[Start, ...], listed(record(Start), FENCE_STARTS_MAX)]


@CONTROLS.message(44)
@dataclass(slots=True)
class ListProducers:
    """What is known of the producers of a job behind a name, whose digest begins so, and not so?"""

    request: Counter
    job: ProducerName
    after: ProducerText
    begins: DigestPart
    unless: DigestPart


class ProducerKnown(NamedTuple):
    """A producer: its epoch, the number after its last event, its digest."""

    name: ProducerName
    epoch: Counter
    next: Counter
    digest: Digest


@CONTROLS.message(45)
@dataclass(slots=True)
class ListedProducers:
    """The answer: whether this broker can be sure, whether there are more, and these, by name."""

    request: Counter
    is_sure: Flag
    has_more: Flag
    producers: Annotated[tuple[ProducerKnown, ...], listed(record(ProducerKnown), PRODUCERS_LISTED_MAX)]

    def check(self) -> str:
        """To go on, ask behind the last name."""
        return "there are more, and yet none" if self.has_more and not self.producers else ""


@CONTROLS.message(46)
@dataclass(slots=True)
class ForgetProducers:
    """A stream was purged: forget what wrote to it."""

    stream: ProducerName
