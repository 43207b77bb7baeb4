"""A producer: whose events these are, how many of them the cluster has, and whether more may be sent.

Batches of a producer carry a stamp, its name and the number of their first event, so that a broker knows one that comes
again. That is what makes it safe to send it again, over whatever session, until it is stored:

    CLOSED --ask `producer.open`--> ASKED --the number that comes next--> OPEN --a refusal, a new session--> CLOSED

* While it is not OPEN none of its batches goes out. It is opened again when all that was under way has its answer, so
  that nothing of it can still arrive and the number is the last word. A cluster that is being repaired cannot say,
  and a disk may be full; then it rests for a moment, which is for the host to measure, and asks again. What waits has
  failed when nothing was stored for `store_try_seconds`, or after so many attempts.
* A batch has no number before it goes out for the first time. From then on it keeps it, because it may be in the log;
  unless the producer was opened since and comes to a smaller one: then it is not there, for a batch before it was
  refused for good, and it is numbered anew.
* A **strict** producer numbers nothing anew and leaves nothing out: whoever counts its events elsewhere, as a Spark
  task does, has to know. Whatever is refused for good is its end.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..errors import ErrorCode, Fenced, HeadgateError, LocalError, OutOfSequence, ProtocolViolation, Refused
from ..limits import (
    ATTRIBUTE_NAME_LENGTH_MAX,
    CREDIT_MAX,
    OPEN_ATTEMPTS_MAX,
    RETRY_DELAY_SECONDS_MAX,
    RETRY_DELAY_SECONDS_MIN,
    STORE_ATTEMPTS_MAX,
)
from .limits import DEFAULT_LIMITS, ClientLimits

__all__ = ["PASSING", "Producer", "ProducerState"]

PASSING = frozenset((ErrorCode.NOT_FOUND, ErrorCode.OUT_OF_SEQUENCE, ErrorCode.NOT_STORED))
"""Refusals after which the same batch may be taken."""


class ProducerState(Enum):
    """Whether the broker that we have knows it."""

    CLOSED = "closed"
    ASKED = "asked"
    OPEN = "open"


class Producer:
    """Numbers the batches of one producer and says when they may go out: an idempotent producer, as Kafka calls it.

    `waiting` batches have no outcome yet; `under_way` are sent and not answered.
    """

    __slots__ = (
        "acknowledged",
        "digest",
        "eager",
        "epoch",
        "failure",
        "hindrance",
        "limits",
        "name",
        "next",
        "refusals",
        "rests",
        "setbacks",
        "since",
        "state",
        "strict",
        "under_way",
        "waiting",
    )

    def __init__(self, name: str, epoch: int, strict: bool = False, limits: ClientLimits = DEFAULT_LIMITS) -> None:
        try:
            length = len(name.encode())
        except UnicodeEncodeError as error:
            raise LocalError(f"a producer's name must be valid Unicode: {error.reason}") from error
        if not 0 < length <= ATTRIBUTE_NAME_LENGTH_MAX:
            raise LocalError(f"a producer's name has 1 to {ATTRIBUTE_NAME_LENGTH_MAX} bytes, not {length}")
        if not 0 <= epoch <= CREDIT_MAX:
            raise LocalError(f"the epoch of a producer is a number from 0 to {CREDIT_MAX}, not {epoch}")
        self.name = name
        self.epoch = epoch
        self.strict = strict
        self.limits = limits
        self.state = ProducerState.CLOSED
        self.next = 0
        self.digest = b""
        self.acknowledged = 0
        self.waiting = 0
        self.under_way = 0
        self.refusals = 0  # of `producer.open`, in a row
        self.setbacks = 0  # batches that were not stored, one in a row counted
        self.since = 0.0  # when something went out last before there was a hindrance
        self.rests = False
        self.eager = False  # it is to be opened although it has nothing to send yet
        self.failure: HeadgateError | None = None
        self.hindrance: HeadgateError | None = None  # why it has to try again, until something is stored

    @property
    def wants_opening(self) -> bool:
        """It is time to ask."""
        if self.state is not ProducerState.CLOSED or self.rests or self.failure is not None:
            return False
        return (self.waiting > 0 or self.eager) and self.under_way == 0

    @property
    def pause_seconds(self) -> float:
        """How long it rests."""
        return min(RETRY_DELAY_SECONDS_MAX, RETRY_DELAY_SECONDS_MIN * 2.0 ** max(self.refusals, self.setbacks))

    def goes_out(self, now: float) -> None:
        """Something of it is sent: how long it takes counts from here, while nothing is in its way."""
        if self.hindrance is None:
            self.since = now

    def asked(self) -> None:
        """The question is on its way."""
        self.state = ProducerState.ASKED

    def opened(self, answer: Any) -> None:
        """The broker says how many of its events there are. Raises ProtocolViolation when it says something else."""
        upcoming = answer.get("next") if isinstance(answer, dict) else None
        digest = answer.get("digest", b"") if isinstance(answer, dict) else None
        if type(upcoming) is not int or upcoming < 0 or type(digest) is not bytes:
            raise ProtocolViolation("the answer to producer.open has `next`, a number, and `digest`, a bin")
        if self.strict and upcoming < self.acknowledged:
            self.fail(OutOfSequence(self.name, upcoming, f"{self.acknowledged} of its events had been acknowledged"))
        self.state = ProducerState.OPEN
        self.next = upcoming
        self.digest = digest
        self.refusals = 0
        self.eager = False

    def not_opened(self, error: HeadgateError, now: float = 0.0) -> HeadgateError | None:
        """The broker said no: why its batches must fail, or None when it may be asked again."""
        self.state = ProducerState.CLOSED
        self.refusals += 1
        code = error.code if isinstance(error, Refused) else None
        if code == ErrorCode.FENCED:
            return self.fail(Fenced(self.name, self.epoch, str(error)))
        passing = code in (ErrorCode.UNAVAILABLE, ErrorCode.NOT_STORED) and self.refusals < OPEN_ATTEMPTS_MAX
        if passing and now - self.since < self.limits.store_try_seconds:
            self.rests = True
            self.hindrance = error
            return None
        self.refusals = 0
        self.eager = False
        return self.fail(error) if self.strict else error

    def closed(self) -> None:
        """The broker that we have may not know it any more."""
        if self.state is ProducerState.OPEN:
            self.state = ProducerState.CLOSED

    def admits(self, number: int | None, sequence: int) -> bool:
        """Whether a batch may go out now. One with a sequence number must: the session would have a hole without it."""
        if sequence:
            return True
        if self.failure is not None or self.state is not ProducerState.OPEN:
            return False
        if self.strict and number is not None and number > self.next:
            self.fail(OutOfSequence(self.name, number, f"the cluster has {self.next} of its events"))
            return False
        return True

    def numbered(self, number: int | None, count: int) -> int:
        """The number of a batch that goes out now, which may have one from before."""
        if number is None or number > self.next:
            number = self.next
        self.next = max(self.next, number + count)
        return number

    def stored(self, number: int, count: int) -> None:
        """That batch is where it shall be."""
        self.setbacks = 0
        self.acknowledged = max(self.acknowledged, number + count)
        self.hindrance = None

    def refused(self, error: HeadgateError, number: int, refusals: int, now: float = 0.0) -> HeadgateError | None:
        """A batch was refused so many times: why it failed, or None when it shall be sent again."""
        was_open = self.state is ProducerState.OPEN
        self.closed()
        code = error.code if isinstance(error, Refused) else None
        if code == ErrorCode.FENCED:
            return self.fail(Fenced(self.name, self.epoch, str(error)))
        # Behind a batch that was refused, all others are out of sequence; a strict producer has no other reason.
        is_late = code != ErrorCode.OUT_OF_SEQUENCE or not self.strict or not was_open
        lasts = refusals >= STORE_ATTEMPTS_MAX or now - self.since >= self.limits.store_try_seconds
        if code in PASSING and not lasts and is_late:
            if code == ErrorCode.NOT_STORED:  # the others are what follows from one that was refused
                self.hindrance = error
                self.setbacks += not self.rests
                self.rests = True
            return None
        if code == ErrorCode.OUT_OF_SEQUENCE:
            error = OutOfSequence(self.name, number, str(error))
        return self.fail(error) if self.strict else error

    def fail(self, error: HeadgateError) -> HeadgateError:
        """Its end: nothing of it is sent any more."""
        self.eager = False
        if self.failure is None:
            self.failure = error
        return self.failure
