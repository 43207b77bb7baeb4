"""Fences: which opening of a producer holds, and what it shut out.

A client's *epoch* is its own: it tells a job from the same job of before. A *generation* is the cluster's: every
opening of a producer raises it, also when the same client in the same epoch goes to another broker. An opening is known
by its ballot: the generation, and the log (broker and epoch) that its rows go to. No two openings that brokers hold to
have the same one.

What a disk knows of a producer is its fence:

    promised   the newest ballot that this broker was asked to hold to; rows of any other are refused from then on
    starts     of openings that were complete: from which number on the producer's events are theirs

A start is true for ever: when it was learnt, all rows of older ballots that k disks had ended at or before it, and none
will be on k disks after it. So a row is shut out by a start of a newer ballot that it reaches behind. Fences that tell
of starts can be joined in any order, and what is missing in one is never wrong. (Kafka's epochs and their first
offsets; Paxos' ballots, promised to N - k + 1 disks and accepted by k.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headgate.protocol.data import LogName, pack_value, unpack_value

from ..limits import FENCE_STARTS_MAX
from ..messages import Counter, Text

__all__ = ["NO_BALLOT", "NO_FENCE", "Ballot", "Fence", "Start", "decode_fence", "encode_fence"]


class Ballot(NamedTuple):
    """An opening of a producer; of two the larger is the newer. Generation 0 is none."""

    generation: int = 0
    broker: str = ""
    epoch: int = 0

    def is_of(self, log: LogName | Ballot) -> bool:
        """Whether rows of that log, or of the log of that ballot, are its rows."""
        return (self.broker, self.epoch) == (log.broker, log.epoch)


NO_BALLOT = Ballot()


class Start(NamedTuple):
    """From that number on the events of the producer are of this ballot, unless a newer one has a start."""

    number: Counter
    generation: Counter
    broker: Text
    epoch: Counter

    @property
    def ballot(self) -> Ballot:
        """Whose start."""
        return Ballot(*self[1:])


class Fence(NamedTuple):
    """What is known of one producer; never changed."""

    promised: Ballot = NO_BALLOT
    starts: tuple[Start, ...] = ()
    """The oldest ballot first."""
    is_unsure: bool = False
    """Whether rows of it were taken back here since it was opened here: how far it has come is not known exactly."""

    def learn(self, starts: Iterable[Start]) -> Fence:
        """The same with these; those that say nothing more are left out."""
        new = set(starts) - set(self.starts)
        if not new:
            return self
        kept: list[Start] = []
        for one in sorted(new.union(self.starts), key=lambda one: (one.ballot, one.number)):
            kept = [old for old in kept if not (one.number <= old.number and one.ballot.is_of(old.ballot))]
            kept.append(one)
        while len(kept) > FENCE_STARTS_MAX:
            del kept[_least(kept)]
        return self._replace(starts=tuple(kept))

    def start_of(self, ballot: Ballot) -> int | None:
        """From which number on events are of that ballot."""
        return next((one.number for one in self.starts if one.ballot == ballot), None)

    def ballot_of(self, log: LogName | Ballot, number: int) -> Ballot:
        """The newest opening of that log that the event of this number may be of."""
        ballots = [one.ballot for one in self.starts if one.number <= number and one.ballot.is_of(log)]
        return max(ballots, default=NO_BALLOT)

    def shuts_out(self, log: LogName, number: int, end: int) -> bool:
        """Whether a row of that log with events `number` to `end - 1` is on too few disks, and stays so."""
        ballot = self.ballot_of(log, number)
        return any(one.number < end and one.ballot > ballot and not one.ballot.is_of(log) for one in self.starts)


NO_FENCE = Fence()


def _least(starts: list[Start]) -> int:
    """The place of the one that is missed least: the first between two others of its log, or else the oldest."""
    for place, (before, one, after) in enumerate(zip(starts, starts[1:], starts[2:], strict=False), 1):
        if one.ballot.is_of(before.ballot) and one.ballot.is_of(after.ballot):
            return place
    return 0


def encode_fence(fence: Fence) -> bytes:
    """As a disk keeps it."""
    return pack_value(fence)


def decode_fence(data: bytes) -> Fence:
    """What `encode_fence` made; an empty fence from no bytes."""
    if not data:
        return NO_FENCE
    promised, starts, is_unsure = unpack_value(data, bytes_max=len(data), items_max=len(data))
    return Fence(Ballot(*promised), tuple(Start(*one) for one in starts), is_unsure)
