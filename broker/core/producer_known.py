"""What this broker knows of one producer: how far it has come, and from where that is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.limits import CREDIT_MAX
from headgate.protocol.log_rows import Row

from .later import Later
from .limits import PRODUCER_NAME_LENGTH_MAX
from .log_held import HeldLog
from .log_state import ProducerState

__all__ = ["KnownProducer", "Opening", "check_producer", "fenced", "job_of"]

Come = tuple[int, bytes]
"""How far it has come, and the digest that it gave with that."""


@dataclass(slots=True)
class KnownProducer:
    """`kept` is what the disk knows; what is pending is further."""

    name: str
    epoch: int = 0
    next: int = 0
    digest: bytes = b""
    is_open: bool = False
    opened_at: int = 0  # all before that number was known when it was opened
    doubtful: bool = False  # our disk has lost something, perhaps of this one
    kept: ProducerState | None = None
    asked: tuple[int, int] = (0, 0)  # the furthest epoch and next that the disk was asked to keep
    ends: dict[HeldLog, int] = field(default_factory=dict)  # where its newest rows end that were not safe yet
    copied: Come = (0, b"")  # so far it has come in copies that came here in this life
    landed: Come = (0, b"")  # and in those of them that are on our disk
    tail: Come = (0, b"")  # and in rows of our own that were not safe when brokers met

    @property
    def copies_wait(self) -> bool:
        """Whether copies of rows of it are on their way to our disk."""
        return self.copied[0] > (0 if self.kept is None else self.kept.next)

    @property
    def rows_here(self) -> Come:
        """So far it has come at least, whatever the disk says of it."""
        return max(self.tail, self.copied)

    def saw_copy(self, row: Row) -> None:
        """A row of another broker's log comes here."""
        self.copied = max(self.copied, (row.number + row.count, row.digest))

    def saw_landed(self, row: Row) -> None:
        """This copy is on our disk."""
        self.landed = max(self.landed, (row.number + row.count, row.digest))

    def saw_tail(self, row: Row) -> None:
        """This row of ours is on our disk."""
        self.tail = max(self.tail, (row.number + row.count, row.digest))

    def undo(self) -> None:
        """What was pending of it is not in the logs: it is where the disk says."""
        kept = self.kept
        self.asked = (kept.epoch, kept.next) if kept is not None else (0, 0)
        self.next, self.digest = (kept.next, kept.digest) if kept is not None else (0, b"")
        self.copied = self.landed
        self.ends = {held: min(end, held.next) for held, end in self.ends.items()}

    def take_back(self, number: int, others: Come, time: int) -> ProducerState:
        """Its events from that number on are taken back; `others`: so far it has come in others' logs on this disk.

        What we say of it from now on is what this disk has, no less and no more.
        """
        self.next, self.digest = max((number, b""), others, self.copied)
        self.tail, self.is_open = (0, b""), False
        self.asked = self.epoch, self.next
        self.kept = ProducerState(self.name, self.epoch, self.next, self.digest, time)
        return self.kept


@dataclass(slots=True)
class Opening:
    """Somebody opens a producer: whom we still wait for, and the furthest that anybody knew."""

    name: str
    epoch: int
    later: Later
    deadline: float
    asked: dict[int, None]
    counted: dict[int, None]  # who is waited for, or has answered
    answered: int = 0
    heard: int = 0
    next: int = 0
    digest: bytes = b""
    known: int = 0


def check_producer(name: Any, epoch: Any) -> None:
    """Raises Refused unless these are a producer's name and epoch."""
    if type(name) is not str or not 0 < len(name) <= PRODUCER_NAME_LENGTH_MAX:
        text = f"a producer has a name of 1 to {PRODUCER_NAME_LENGTH_MAX} characters"
        raise Refused(ErrorCode.BAD_REQUEST, text)
    if type(epoch) is not int or not 0 <= epoch <= CREDIT_MAX:
        raise Refused(ErrorCode.BAD_REQUEST, "a producer's epoch is a number from 0 to 2^53")


def job_of(name: str) -> str:
    """What the names of the producers of one job begin with: all up to the last slash."""
    return name.rpartition("/")[0]


def fenced(name: str, epoch: int, known: int) -> Refused:
    """What whoever comes in an older epoch is told."""
    text = f"producer {name!r} goes on in epoch {known}: this one, {epoch}, is over, and must publish nothing more"
    return Refused(ErrorCode.FENCED, text)
