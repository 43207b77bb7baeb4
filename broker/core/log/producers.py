"""Producers: who published what already, so that a batch that is sent again is recognised, whatever happened between.

A producer numbers its events from 0, through all its connections, brokers and epochs. A batch carries the number of its
first event; the broker knows the number that comes next. So

    number == next            new: appended, and next moves on; both in one transaction of the disk
    number + count <= next    sent again: acknowledged as soon as what it was taken for is safe, and not appended
    anything else             refused: something is missing, or the batch was cut in another way than before

An epoch of a producer shuts out clients that are still in an older one: a job that was given up, a task that another
one replaced. A client that wants to publish opens the producer first (`open_producer`); the answer is how far it has
come, and that all of it is safe. Every linked broker is asked, because the producer may have published there; from then
on it is open here and nowhere else, and rows of openings before this one are refused (`fences.py`), so late batches on
an old connection cannot slip in behind. What was acknowledged is on k disks, so one of them is heard when fewer than k
of the brokers that are known are missing; otherwise opening is refused.

A broker whose disk has lost something does not know how far a producer has come, not even one that it never heard of,
and lets the others say; only a broker that never met another has nothing but its own table. A disk with nothing on it
may be one that has lost everything: it does not count before all others were heard, and copies are whole again.

What was not acknowledged may be on the disk of a broker that is down, and again elsewhere: see `reconcile.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.data import LogName, Row
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.limits import CREDIT_MAX
from headgate.protocol.messages import Stamp

from ..clock import Clock
from ..cluster import Cluster
from ..deferred import Deferred
from ..effects import Append
from ..inputs import Opened
from ..limits import (
    OPENING_ROUNDS_MAX,
    PRODUCER_ENDS_MAX,
    PRODUCER_NAME_LENGTH_MAX,
    STORE_SECONDS_MAX,
    STRANGER_SECONDS,
)
from ..links import PeerInfo
from ..log_state import ProducerState
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .fences import NO_BALLOT, NO_FENCE, Ballot, Fence, Start, decode_fence, encode_fence
from .log import HeldLog, Log
from .messages import AskProducer, ToldProducer

__all__ = [
    "KnownProducer",
    "OPENINGS",
    "Opening",
    "Producers",
    "check_producer",
    "fenced",
    "job_of",
    "shortage",
]

OPENINGS = "openings"
"""Key of the timer: a client that opens a producer has waited long enough."""

# Shortage: why something is not on enough disks, in words for the client that waits: how many it takes, and which
# brokers are missing.

_NAMED_MAX = 4


def shortage(cluster: Cluster, log: Log, silent: Collection[int] = ()) -> str:
    """As in "stored means on 2 disks; bob at 10.0.0.2:7401 cannot be reached". `silent` were asked and say nothing."""
    copies = log.needed + 1
    parts = [f"stored means on {copies} disks" if copies > 1 else "stored means on this broker's disk"]
    known, linked = cluster.peers.by_identifier, cluster.linked()
    names = {info.address: f"{info.name} at {info.address}" for info in known.values()}
    unreached = [names.get(address, address) for address in cluster.unreached()]
    if unreached:
        parts.append(f"{_listed(unreached)} cannot be reached")
    deaf = [info.name for info in linked if info.identifier in silent]
    if deaf:
        parts.append(f"no answer from {_listed(deaf)}")
    crowded = [info.name for info in linked if info.identifier in log.crowded]
    if crowded:
        parts.append(f"no room on the disk of {_listed(crowded)}")
    return "; ".join(parts)


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


# What this broker knows of one producer: how far it has come, and from where that is known.

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
    fence: Fence = NO_FENCE
    fence_asked: Fence = NO_FENCE  # what the disk was asked to keep of that
    fence_kept: Fence = NO_FENCE
    held_to: bool = False  # whether its fence was told in this life
    newest: int = 0  # the newest generation that was heard of
    doubtful: bool = False  # our disk has lost something, perhaps of this one
    is_new: bool = False  # nothing but questions was heard of it
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
        self.is_new = False
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
        self.fence_asked = self.fence_kept
        self.ends = {held: min(end, held.next) for held, end in self.ends.items()}

    def take_back(self, number: int, time: int) -> ProducerState:
        """Its events from that number on are taken back. Copies here of earlier lives may have more of it."""
        self.next, self.digest = max((number, b""), self.copied)
        self.tail, self.is_open, self.doubtful = (0, b""), False, True
        self.fence = self.fence._replace(is_unsure=True)
        self.asked = self.epoch, self.next
        self.kept = self.state(self.next, self.digest, time)
        return self.kept

    def state(self, upcoming: int, digest: bytes, time: int, epoch: int | None = None) -> ProducerState:
        """What the disk is to keep: with its fence, when that has changed since the disk was asked last."""
        fence = b""
        if self.fence != self.fence_asked:
            self.fence_asked, fence = self.fence, encode_fence(self.fence)
        return ProducerState(self.name, self.epoch if epoch is None else epoch, upcoming, digest, time, fence)


@dataclass(slots=True)
class Opening:
    """A producer is being opened: the brokers we still wait for, and the furthest that any of them knew.

    `then` hears of the end: that it is open, or why not. `first` is set when no client has asked, but a follower
    refused a row: the number of the first event of it that too few disks have.
    """

    name: str
    epoch: int
    log_epoch: int
    then: Callable[[Opening, Refused | None, float], None]
    deadline: float
    first: int | None = None
    ballot: Ballot = NO_BALLOT
    asked: dict[int, None] = field(default_factory=dict)
    answered: int = 0
    heard: int = 0
    next: int = 0
    digest: bytes = b""
    known: int = 0
    newer: int = 0
    rounds: int = 0
    starts: dict[Start, None] = field(default_factory=dict)

    @property
    def is_renewal(self) -> bool:
        """Whether a follower caused it, and no client."""
        return self.first is not None


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
    """What a client that comes in an older epoch is told."""
    text = f"producer {name!r} goes on in epoch {known}: this one, {epoch}, is over, and must publish nothing more"
    return Refused(ErrorCode.FENCED, text)


class Producers:
    """Knows how far each producer has come, opens producers, and recognises batches that come again."""

    def __init__(
        self,
        log: Log,
        cluster: Cluster,
        copies: int,
        timers: Timers,
        clock: Clock,
        now: float,
    ) -> None:
        self._log = log
        self._copies = copies
        self.limit = log.limits.producers
        self._young_until = now + STRANGER_SECONDS
        self._cluster = cluster
        self._producers: dict[str, KnownProducer] = {}
        self._jobs: dict[str, dict[str, None]] = {}  # what names begin with, up to their last slash -> these names
        self._recovered: list[tuple[HeldLog, int]] = []
        self._openings: dict[int, Opening] = {}
        self._asking: dict[str, dict[int, Ballot]] = {}  # producer -> ballots that other brokers are asked to hold to
        self._request = 0
        self._blank = self._was_blank = self._lost = False
        self._has_place = False  # among the other brokers, once in this life
        self._owed: dict[LogName, int] = {}  # copies that an empty disk is given anew, and where they end
        self.clock = clock
        self._timers = timers
        self.duplicates = 0
        self.forgotten = 0
        cluster.take_controls({AskProducer: self._asked, ToldProducer: self._told})

    def __len__(self) -> int:
        return len(self._producers)

    def opened(self, happened: Opened) -> None:
        """What earlier lives knew. What their logs hold counts as known only when it is safe."""
        for state in happened.producers:
            self._kept(state)
            self._producers[state.name].undo()
            producer = self._producers[state.name]
            producer.fence = decode_fence(state.fence)
            producer.doubtful = bool(happened.damage) or producer.fence.is_unsure
            promised = producer.fence.promised
            producer.is_new = bool(not state.next and promised.generation and promised.broker != self._log.broker)
        has_any = happened.logs or any(state.next for state in happened.producers)
        self._blank, self._lost = not has_any, bool(happened.damage)
        self._was_blank = self._blank
        self._recovered = [(held, held.next) for held in self._log.own_logs()]

    def doubt(self) -> None:
        """Our disk turns out to be an old one: it knows too little of how far producers have come."""
        self._lost = True
        for producer in self._producers.values():
            producer.doubtful, producer.is_open, producer.held_to = True, False, False

    def missed(self) -> None:
        """Others have logs of ours that our disk does not know: who is unknown here need not be new."""
        self._lost = True

    def heard_all(self) -> None:
        """All brokers were heard in this life: whatever an empty disk may have had, others have it, and are here."""
        self._blank = False

    def owes(self, held: HeldLog, end: int, now: float) -> None:
        """A log that has so much is going to be copied here: in the place of what an empty disk may have had."""
        if self._was_blank and now < self._young_until and held.next < end:
            self._owed[held.name] = end

    def caught_up(self) -> None:
        """Copies have grown: whose copies are whole again knows again."""
        self._owed = {name: end for name, end in self._owed.items() if self._log.logs[name].next < end}

    # --- batches -----------------------------------------------------------------------------------------------------

    def judge(self, stamp: Stamp, count: int) -> Sequence[tuple[HeldLog, int]] | None:
        """None for a new batch; for one that came before, what has to be safe until it is acknowledged again.

        Raises Refused.
        """
        producer = self._producers.get(stamp.producer)
        known = 0 if producer is None else producer.epoch
        if stamp.epoch < known:
            raise fenced(stamp.producer, stamp.epoch, known)
        if producer is None or not producer.is_open or stamp.epoch > known:
            text = f"producer {stamp.producer!r} is not open here: open it, and go on where the answer says"
            raise Refused(ErrorCode.NOT_FOUND, text)
        if stamp.number == producer.next:
            return None
        if stamp.number < producer.next and Safeguard.DEDUPE_STORED not in self._cluster.safeguards:
            return None
        if stamp.number + count <= producer.next:
            self.duplicates += count
            return self._needs(producer)
        text = f"the next event of producer {stamp.producer!r} is its number {producer.next}; this batch holds "
        text += f"{stamp.number} to {stamp.number + count - 1}"
        raise Refused(ErrorCode.OUT_OF_SEQUENCE, text)

    def taken(self, stamp: Stamp, count: int, now: float) -> ProducerState:
        """A new batch of it is going to be appended: what its producer is then."""
        producer = self._producers[stamp.producer]
        producer.next += count
        producer.digest = stamp.digest
        producer.asked = producer.epoch, producer.next
        return producer.state(producer.next, producer.digest, self.clock.us(now))

    def ends_at(self, stamp: Stamp, held: HeldLog, end: int) -> None:
        """Its batch ends there."""
        ends = self._producers[stamp.producer].ends
        ends[held] = end
        if len(ends) > PRODUCER_ENDS_MAX:
            for one in [one for one in ends.items() if self._log.is_safe([one])]:
                del ends[one[0]]

    def copied(self, row: Row, start: Start) -> ProducerState | None:
        """What a row of another broker's log, now copied here, says of its producer; None when nothing."""
        if not row.producer:
            return None
        producer, end = self._producer(row.producer), row.number + row.count
        producer.saw_copy(row)
        if start.generation:
            producer.fence = producer.fence.learn((start,))
        if producer.asked < (row.epoch, end):
            producer.asked = row.epoch, end
            return producer.state(end, row.digest, row.time, row.epoch)
        if producer.fence == producer.fence_asked:
            return None
        return producer.state(producer.next, producer.digest, row.time)

    def landed(self, row: Row) -> None:
        """A row of another broker's log is on our disk."""
        producer = self._producers.get(row.producer)
        if producer is not None:
            producer.saw_landed(row)

    def in_tail(self, row: Row) -> None:
        """This row of ours is on our disk, whatever the disk says of its producer."""
        self._producer(row.producer).saw_tail(row)

    def moved(self, held: HeldLog, at: int, to: HeldLog, rows: Iterable[Append]) -> None:
        """A log of ours was ended there, and these rows of it go on in another one."""
        moved = [(one, min(end, at) if one is held else end) for one, end in self._recovered]
        self._recovered = [*moved, (to, to.next)] if moved else []
        for producer in self._producers.values():
            if held in producer.ends:
                producer.ends[held] = min(producer.ends[held], at)
        for row in rows:
            if row.producer is not None and row.producer.name in self._producers:
                self._producers[row.producer.name].ends[to] = row.first + row.count

    def taken_back(self, name: str, number: int, now: float) -> ProducerState:
        """Its events from that number on are taken back here: what is to be kept of it."""
        return self._producer(name).take_back(number, self.clock.us(now))

    def _needs(self, producer: KnownProducer) -> list[tuple[HeldLog, int]]:
        if Safeguard.SAFE_BEFORE_OPEN not in self._cluster.safeguards:
            return []
        if self._recovered and self._log.is_safe(self._recovered):
            self._recovered.clear()
        return [*self._recovered, *producer.ends.items()]

    def _kept(self, state: ProducerState) -> None:
        """The disk knows this. What is pending is further already, unless it is a copy's or an earlier life's."""
        producer = self._producer(state.name)
        producer.kept = state
        if state.fence:
            producer.fence_kept = decode_fence(state.fence)
        producer.asked = max(producer.asked, (state.epoch, state.next))
        if state.next > producer.next or state.epoch > producer.epoch:
            producer.is_open = producer.is_open and state.epoch == producer.epoch
            producer.epoch = max(producer.epoch, state.epoch)
            producer.next, producer.digest = state.next, state.digest

    def stored(self, state: ProducerState, reason: str) -> None:
        """The disk has this of a producer; or, for that reason, nothing that was pending of it."""
        if not reason:
            self._kept(state)
        elif state.name in self._producers and Safeguard.ROLLBACK in self._cluster.safeguards:
            self._producers[state.name].undo()

    def _keep(self, state: ProducerState) -> None:
        self._log.keep_producer(state, lambda reason, now: self.stored(state, reason))

    def _heard_of(self, name: str) -> KnownProducer:
        """Somebody asks about it."""
        is_new = name not in self._producers
        producer = self._producer(name)
        producer.is_new = producer.is_new or is_new
        return producer

    def _producer(self, name: str) -> KnownProducer:
        producer = self._producers.pop(name, None) or KnownProducer(name, doubtful=self._lost)
        self._producers[name] = producer  # the one that was used last comes last
        self._jobs.setdefault(job_of(name), {})[name] = None
        if len(self._producers) > self.limit:
            oldest = next(iter(self._producers))
            del self._producers[oldest]
            self.forgotten += 1
            names = self._jobs[job_of(oldest)]
            del names[oldest]
            if not names:
                del self._jobs[job_of(oldest)]
        return producer

    # --- jobs --------------------------------------------------------------------------------------------------------

    def of_job(self, job: str) -> list[KnownProducer]:
        """The producers whose names begin so, up to their last slash."""
        producers = [self._producers[name] for name in self._jobs.get(job, ())]
        return [producer for producer in producers if not producer.is_new]

    def forget(self, stream: str, now: float) -> int:
        """What is known of producers whose names begin with this stream holds no more: their rows are gone for good.

        Those named `*/...` wrote to several streams, and it is not known to which: the producer `STREAM/*/purged` keeps
        the newest epoch that they had, so that a client that asks is told that an earlier one may lack rows.
        """
        jobs = [job for job in self._jobs if job.partition("/")[0] == stream]
        names = [name for job in jobs for name in self._jobs[job] if "/" in name]
        for name in names:
            known = self._producers[name]
            forgotten = self._producers[name] = KnownProducer(name, fence=Fence(known.fence.promised))
            forgotten.fence_asked, forgotten.fence_kept = known.fence_asked, known.fence_kept
            self._keep(forgotten.state(0, b"", self.clock.us(now)))
        shared = [self._producers[name] for job in self._jobs if job.startswith("*/") for name in self._jobs[job]]
        mark = f"{stream}/*/purged"
        if shared and len(mark) <= PRODUCER_NAME_LENGTH_MAX:
            purged = self._producer(mark)
            purged.is_new = False
            purged.epoch = max(producer.epoch for producer in shared)
            self._keep(ProducerState(purged.name, purged.epoch, 0, b"", self.clock.us(now)))
        return len(names)

    # --- fences ------------------------------------------------------------------------------------------------------

    def start_of(self, name: str, log: LogName) -> tuple[int, int]:
        """Generation and first number of the opening under which rows of it go to followers of that log, if any."""
        producer = self._producers.get(name)
        if producer is None or not producer.fence.promised.is_of(log):
            return 0, 0
        start = producer.fence.start_of(producer.fence.promised)
        return (0, 0) if start is None else (producer.fence.promised.generation, start)

    def refuses(self, row: Row, log: LogName, generation: int) -> bool:
        """Whether this row of another broker's log is of another opening than the one that we hold to."""
        if not row.producer or Safeguard.FENCES not in self._cluster.safeguards:
            return False
        producer = self._producers.get(row.producer)
        if producer is None or (producer.doubtful and not producer.held_to):
            return True
        return self._promised(producer) != Ballot(generation, log.broker, log.epoch)

    def fence_of(self, name: str) -> Fence:
        """What is known here of its openings."""
        producer = self._producers.get(name)
        return NO_FENCE if producer is None else producer.fence

    def _promised(self, producer: KnownProducer) -> Ballot:
        """With what is asked of other brokers: that is held to as well, and kept when it has come to its end."""
        return max([producer.fence.promised, *self._asking.get(producer.name, {}).values()])

    # --- opening -----------------------------------------------------------------------------------------------------

    def open_producer(self, name: Any, epoch: Any, now: float) -> Deferred:
        """How far a producer has come; from now on it may publish here in this epoch, and in no older one anywhere.

        Raises Refused.
        """
        check_producer(name, epoch)
        self._log.check_room(0)
        known = self._producers.get(name)
        if known is not None and known.epoch > epoch:
            raise fenced(name, epoch, known.epoch)
        is_short = len(self._cluster.linked()) < self._copies - 1 and not self._cluster.address_book.nobody()
        if known is not None and is_short and not self._log.is_safe(self._needs(known)):
            text = f"what this producer published is not safe yet ({shortage(self._cluster, self._log)})"
            raise Refused(ErrorCode.UNAVAILABLE, f"{text}: start what is missing, or try again in a moment")
        deferred = Deferred()

        def ended(opening: Opening, refused: Refused | None, now: float) -> None:
            deferred.say(refused or {"next": opening.next, "digest": opening.digest, "epoch": epoch})

        if known is not None:
            known.is_open = False  # and no row of it is on its way when other brokers are asked
        self._begin(Opening(name, epoch, self._log.epoch, ended, now + STORE_SECONDS_MAX), now)
        return deferred

    def renew(
        self,
        name: str,
        log_epoch: int,
        first: int,
        then: Callable[[Opening, Refused | None, float], None],
        now: float,
    ) -> None:
        """Open it once more for our log of that epoch, where from `first` on its events are on too few disks."""
        opening = Opening(name, self._producer(name).epoch, log_epoch, then, now + STORE_SECONDS_MAX, first)
        self._begin(opening, now)

    def _begin(self, opening: Opening, now: float) -> None:
        self._request += 1
        request, producer = self._request, self._heard_of(opening.name)
        opening.asked[self._cluster.me] = None
        self._openings[request] = opening
        self._timers.by(OPENINGS, opening.deadline)

        def ready(refused: Refused | None, now: float) -> None:
            if refused is None and request in self._openings:
                self._ask(request, opening, now)

        self._log.wait([] if opening.is_renewal else self._needs(producer), ready, now)

    def _ask(self, request: int, opening: Opening, now: float) -> None:
        """Ask all brokers to hold to a newer opening than any before, and how far the producer has come."""
        name, producer = opening.name, self._producer(opening.name)
        generation = max(self._promised(producer).generation, producer.newest) + 1
        opening.ballot = Ballot(generation, self._log.broker, opening.log_epoch)
        opening.newer = opening.answered = opening.heard = 0
        opening.rounds += 1
        self._asking.setdefault(name, {})[request] = opening.ballot
        for info in self._cluster.linked():
            opening.asked[info.identifier] = None
            ask = AskProducer(request, name, opening.epoch, generation, opening.log_epoch, opening.is_renewal)
            self._cluster.tell(info, ask, now)
        starts = producer.fence.starts

        def tell(known: bool, after: int, digest: bytes, epoch: int, now: float) -> None:
            self._answered(request, self._cluster.me, known, after, digest, epoch, 0, starts, now)

        if opening.is_renewal:
            tell(self._is_known(name, self._log.broker), 0, b"", 0, now)
        else:
            self._when_safe(name, self._log.broker, tell, now)

    def _when_safe(
        self,
        name: str,
        asker: str,
        then: Callable[[bool, int, bytes, int, float], None],
        now: float,
        waited: bool = False,
    ) -> None:
        """Tell how far it has come here (whether that is known, next, digest, epoch) as soon as all of that is safe.

        What comes meanwhile is not told of. The client that asked waits no longer than it is going to take.
        """
        producer = self._producers.get(name)
        if producer is not None and producer.copies_wait and not waited:
            self._log.when_landed(lambda reason, now: self._when_safe(name, asker, then, now, waited=True), now)
            return
        after, digest = (0, b"") if producer is None else (producer.next, producer.digest)

        def told(refused: Refused | None, now: float) -> None:
            one = self._producers.get(name)
            if refused is not None:
                return
            known, epoch = self._is_known(name, asker), 0 if one is None else one.epoch
            if one is not None and self._has_company and one.doubtful:
                then(False, *one.rows_here, epoch, now)
            else:  # what is owed may have more of it, and takes nothing away from what this disk knows
                then(known, after, digest, epoch, now)

        self._log.wait([] if producer is None else self._needs(producer), told, now)

    def _is_known(self, name: str, asker: str) -> bool:
        """Whether this disk has all that it ever had of this producer, but for the logs of the broker that asks."""
        producer = self._producers.get(name)
        lost = self._lost or self._blank if producer is None or producer.is_new else producer.doubtful
        return not (self._has_company and (lost or any(log.broker != asker for log in self._owed)))

    def _asked(self, info: PeerInfo, asked: AskProducer, now: float) -> None:
        """Another broker opens it."""
        request, name = asked.request, asked.producer
        producer = self._heard_of(name)
        ballot, promised = Ballot(asked.generation, info.name, asked.log_epoch), self._promised(producer)
        is_newer = promised >= ballot
        newer = promised.generation if is_newer and promised[1:] != ballot[1:] else 0
        kept = [""]
        if not is_newer and (asked.renews or producer.epoch <= asked.epoch):
            producer.is_open = False  # it publishes there from now on
            producer.fence, producer.held_to = producer.fence._replace(promised=ballot), True
            if not asked.renews:
                producer.epoch = max(producer.epoch, asked.epoch)
            state = producer.state(producer.next, producer.digest, self.clock.us(now))

            def keep(reason: str, now: float) -> None:
                kept[0] = reason
                self.stored(state, reason)

            self._log.keep_producer(state, keep)
        starts = producer.fence.starts

        def tell(known: bool, after: int, digest: bytes, epoch: int, now: float) -> None:
            def landed(reason: str, now: float) -> None:
                is_known = known and not kept[0]
                self._cluster.tell(info, ToldProducer(request, is_known, after, digest, epoch, newer, starts), now)

            self._log.when_landed(landed, now)

        if asked.renews:
            here = max(producer.next, producer.copied[0])
            tell(self._is_known(name, info.name), here, b"", 0, now)
        else:
            self._when_safe(name, info.name, tell, now)

    def _told(self, info: PeerInfo, told: ToldProducer, now: float) -> None:
        knows = told.is_known, told.next, told.digest, told.epoch, told.newer, told.starts
        self._answered(told.request, info.identifier, *knows, now)

    def _answered(
        self,
        request: int,
        broker: int,
        known: bool,
        after: int,
        digest: bytes,
        epoch: int,
        newer: int,
        starts: tuple[Start, ...],
        now: float,
    ) -> None:
        opening = self._openings.get(request)
        if opening is None or broker not in opening.asked:
            return
        opening.answered += 1
        opening.heard += known
        opening.known = max(opening.known, epoch)
        opening.newer = max(opening.newer, newer)
        opening.starts.update(dict.fromkeys(starts))
        producer = self._producer(opening.name)
        producer.newest = max(producer.newest, newer)
        if newer and opening.is_renewal and opening.rounds < OPENING_ROUNDS_MAX:
            self._begin(self._end(request), now)
            return
        if (after, bool(digest)) > (opening.next, bool(opening.digest)):
            opening.next, opening.digest = after, digest
        self._not_waiting_for(request, broker, now)

    def _not_waiting_for(self, request: int, broker: int, now: float) -> None:
        opening = self._openings[request]
        opening.asked.pop(broker, None)
        if not opening.asked:
            self._open(self._end(request), now)

    def _end(self, request: int) -> Opening:
        opening = self._openings.pop(request)
        asking = self._asking.get(opening.name, {})
        asking.pop(request, None)
        if not asking:
            self._asking.pop(opening.name, None)
        self._set_timer()
        return opening

    def _open(self, opening: Opening, now: float) -> None:
        """All brokers that can have answered."""
        name, epoch, then, ballot = opening.name, opening.epoch, opening.then, opening.ballot
        if not self.is_enough(opening.heard, opening.answered, now):
            text = f"too few brokers can say what this producer published ({shortage(self._cluster, self._log)})"
            text += ": start what is missing, or try again in a moment"
            then(opening, Refused(ErrorCode.UNAVAILABLE, text), now)
            return
        producer = self._producer(name)
        known = max(opening.known, producer.epoch)
        if known > epoch and not opening.is_renewal:
            then(opening, fenced(name, epoch, known), now)
            return
        promised = producer.fence.promised
        if opening.newer or (promised > ballot and promised[1:] != ballot[1:]):
            if opening.rounds < OPENING_ROUNDS_MAX and opening.deadline > now:
                self._begin(opening, now)
            else:
                text = "other brokers open this producer as well: try again in a moment"
                then(opening, Refused(ErrorCode.UNAVAILABLE, text), now)
            return
        fence, start = producer.fence.learn(opening.starts), opening.next
        if opening.first is not None:
            older = fence.ballot_of(ballot, opening.first)
            is_beaten = any(one.ballot > older and not one.ballot.is_of(ballot) for one in fence.starts)
            start = max(opening.first, opening.next) if is_beaten else opening.first
        fence = fence.learn((Start(start, *ballot),))
        producer.fence, producer.held_to = fence._replace(promised=max(promised, ballot)), True
        doubtful = producer.doubtful
        if not opening.is_renewal:
            producer.epoch, producer.is_open = epoch, True
            if opening.next > producer.next or producer.doubtful:
                producer.next, producer.digest = opening.next, opening.digest
            producer.doubtful = producer.is_new = False
            producer.fence = producer.fence._replace(is_unsure=False)
        state = producer.state(producer.next, producer.digest, self.clock.us(now))

        def kept(reason: str, now: float) -> None:
            self.stored(state, reason)
            refused = None
            if reason:
                producer.is_open = False
                producer.doubtful = producer.doubtful or doubtful  # it is again what our disk says
                refused = Refused(ErrorCode.NOT_STORED, f"the disk does not keep it: {reason}")
            then(opening, refused, now)

        self._log.keep_producer(state, kept)

    @property
    def _has_company(self) -> bool:
        return self._copies > 1 and not self._cluster.address_book.nobody()

    @property
    def is_sure(self) -> bool:
        """Whether a producer that is unknown here has nothing on this disk, which has all that it ever had."""
        return not (self._has_company and (self._lost or self._blank or self._owed))

    def is_enough(self, heard: int, answered: int, now: float) -> bool:
        """Whether one of those who knew was heard wherever there is something to know: of k, fewer are missing."""
        # Who has had no place among the others yet does not know how many there are.
        self._has_place = self._has_place or self._cluster.knows_streams(now)
        if self._cluster.is_stranger or not self._has_place:
            return False
        brokers = self.brokers(now)
        return heard > brokers - self._copies or answered >= brokers  # else there is no broker more to hear

    def brokers(self, now: float) -> int:
        """How many brokers there are, as far as is known here; who has just come takes those of its former lives."""
        address_book = self._cluster.address_book
        former = address_book.contacts if now < self._young_until else ()
        return len({*address_book.known, *former} - {address_book.own}) + 1

    def link_down(self, info: PeerInfo, now: float) -> None:
        """It will not answer."""
        for request in [one for one, opening in self._openings.items() if info.identifier in opening.asked]:
            self._not_waiting_for(request, info.identifier, now)

    def give_up_late(self, now: float) -> None:
        """Who waited too long is told so; a row that was refused waits for no broker that says nothing."""
        for request in [one for one, opening in self._openings.items() if opening.deadline <= now]:
            opening = self._end(request)
            if opening.first is not None:
                self._open(opening, now)
                continue
            why = shortage(self._cluster, self._log, opening.asked)
            text = f"brokers do not answer, or what this producer published is not safe yet ({why})"
            opening.then(opening, Refused(ErrorCode.UNAVAILABLE, f"{text}: try again in a moment"), now)
        self._set_timer()

    def _set_timer(self) -> None:
        self._timers.at(OPENINGS, min([opening.deadline for opening in self._openings.values()], default=NEVER))

    def validate(self) -> None:
        """No producer is known to the disk in a later epoch than here, and jobs list every producer."""
        assert len(self._producers) <= self.limit
        for name, producer in self._producers.items():
            assert producer.name == name
            assert producer.kept is None or producer.kept.epoch <= producer.epoch
        assert all(opening.asked for opening in self._openings.values())
        assert sum(map(len, self._jobs.values())) == len(self._producers)
