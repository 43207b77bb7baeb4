"""Producers: who published what already, so that a batch that is sent again is recognised, whatever happened between.

A producer numbers its events from 0, through all its connections, brokers and epochs. A batch carries the number of its
first event; the broker knows the number that comes next. So

    number == next            new: appended, and next moves on; both in one transaction of the disk
    number + count <= next    sent again: acknowledged as soon as what it was taken for is safe, and not appended
    anything else             refused: something is missing, or the batch was cut in another way than before

An epoch of a producer shuts out clients that are still in an older one: a job that was given up, a task that another
one replaced. A client that wants to publish opens the producer first (`open_producer`); the answer is how far it has
come, and that all of it is safe. Every linked broker is asked, because the producer may have published there; from then
on it is open here and nowhere else, so late batches on an old connection cannot slip in behind. What was acknowledged
is on k disks, so one of them is heard when fewer than k of the brokers that are known are missing; otherwise opening is
refused.

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
from ..limits import PRODUCER_ENDS_MAX, PRODUCER_NAME_LENGTH_MAX, STORE_SECONDS_MAX, STRANGER_SECONDS
from ..links import PeerInfo
from ..log_state import ProducerState
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .log import HeldLog, Log
from .messages import AskProducer, ToldProducer

__all__ = [
    "KnownProducer",
    "OPENINGS",
    "Opening",
    "Producers",
    "Fences",
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
    """A producer is being opened: the brokers we still wait for, and the furthest that any of them knew."""

    name: str
    epoch: int
    deferred: Deferred
    deadline: float
    asked: dict[int, None]
    counted: dict[int, None]  # who is waited for, or has answered
    relied_on: dict[int, None] = field(default_factory=dict)  # another broker takes copies, for these will answer
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
    """What a client that comes in an older epoch is told."""
    text = f"producer {name!r} goes on in epoch {known}: this one, {epoch}, is over, and must publish nothing more"
    return Refused(ErrorCode.FENCED, text)


# Promises: what was said about producers to the brokers that opened them, and is kept to while they may build on it.
#
# A broker that opens a producer is told how far it has come on this disk. A row of it that comes here afterwards, as a
# copy from another broker, may by then be in the opener's own log as well. Only one of the two may come to be on k
# disks, so such a row is `contested`: the opener is asked first. It is believed for as long as there is a link to it;
# without one it can have nothing on two disks that this broker would not know of.


class Fences:
    """Remembers which brokers were told how far a producer has come here, and so may go on with it."""

    def __init__(self, cluster: Cluster, producers_max: int) -> None:
        self._cluster = cluster
        self._producers_max = producers_max
        self._made: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def make(self, name: str, opener: int, after: int) -> None:
        """This broker is told that the producer has come so far here."""
        self._made.pop(name, None)
        self._made[name] = opener, after
        if len(self._made) > self._producers_max:
            del self._made[next(iter(self._made))]

    def amend(self, name: str, opener: int, after: int) -> None:
        """It is told something else, unless another broker has asked since."""
        if self._made.get(name, (0, 0))[0] == opener:
            self.make(name, opener, after)

    def end(self, name: str) -> None:
        """This broker opens it itself."""
        self._made.pop(name, None)

    def release(self, name: str, opener: int) -> None:
        """It has no such row, and asks again before it takes one."""
        if self._made.get(name, (0, 0))[0] == opener:
            del self._made[name]

    def contested(self, row: Row, owner: int) -> PeerInfo | None:
        """The broker that may have this row of another broker's log in its own; None when none may."""
        opener, after = self._made.get(row.producer, (owner, 0))
        info = self._cluster.peers.by_identifier.get(opener)
        if Safeguard.FENCES not in self._cluster.safeguards:
            return None
        if opener == owner or row.number + row.count <= after or info is None or info.link is None:
            return None
        return info


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
        self.fences = Fences(cluster, self.limit)
        self._request = 0
        self._blank = self._was_blank = self._lost = False
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
            self._producers[state.name].doubtful = bool(happened.damage)
        self._blank, self._lost = not (happened.logs or happened.producers), bool(happened.damage)
        self._was_blank = self._blank
        self._recovered = [(held, held.next) for held in self._log.own_logs()]

    def doubt(self) -> None:
        """Our disk turns out to be an old one: it knows too little of how far producers have come."""
        self._lost = True
        for producer in self._producers.values():
            producer.doubtful, producer.is_open = True, False

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
        return ProducerState(producer.name, producer.epoch, producer.next, producer.digest, self.clock.us(now))

    def ends_at(self, stamp: Stamp, held: HeldLog, end: int) -> None:
        """Its batch ends there."""
        ends = self._producers[stamp.producer].ends
        ends[held] = end
        if len(ends) > PRODUCER_ENDS_MAX:
            for one in [one for one in ends.items() if self._log.is_safe([one])]:
                del ends[one[0]]

    def copied(self, row: Row) -> ProducerState | None:
        """What a row of another broker's log, now copied here, says of its producer; None when nothing."""
        if not row.producer:
            return None
        producer, end = self._producer(row.producer), row.number + row.count
        producer.saw_copy(row)
        if producer.asked >= (row.epoch, end):
            return None
        producer.asked = row.epoch, end
        return ProducerState(row.producer, row.epoch, end, row.digest, row.time)

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

    def taken_back(self, name: str, number: int, others: tuple[int, bytes], now: float) -> ProducerState:
        """Its events from that number on are taken back here: what is to be kept of it."""
        return self._producer(name).take_back(number, others, self.clock.us(now))

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
        return [self._producers[name] for name in self._jobs.get(job, ())]

    def forget(self, stream: str, now: float) -> int:
        """What is known of producers whose names begin with this stream holds no more: their rows are gone for good.

        Those named `*/...` wrote to several streams, and it is not known to which: the producer `STREAM/*/purged` keeps
        the newest epoch that they had, so that a client that asks is told that an earlier one may lack rows.
        """
        jobs = [job for job in self._jobs if job.partition("/")[0] == stream]
        names = [name for job in jobs for name in self._jobs[job] if "/" in name]
        for name in names:
            self._producers[name] = KnownProducer(name)
            self.fences.end(name)
            self._keep(ProducerState(name, 0, 0, b"", self.clock.us(now)))
        shared = [self._producers[name] for job in self._jobs if job.startswith("*/") for name in self._jobs[job]]
        mark = f"{stream}/*/purged"
        if shared and len(mark) <= PRODUCER_NAME_LENGTH_MAX:
            purged = self._producer(mark)
            purged.epoch = max(producer.epoch for producer in shared)
            self._keep(ProducerState(purged.name, purged.epoch, 0, b"", self.clock.us(now)))
        return len(names)

    def close(self, name: str, end: int, owner: str, now: float) -> int | None:
        """Another broker's log has events of it up to `end`: it has to be opened again before it goes on here.

        Unless that broker was asked, or all of them were known, when it was opened: then, the number it was opened at.
        """
        producer = self._producers.get(name)
        if producer is not None and producer.is_open and producer.opened_at >= end:
            return producer.opened_at
        if producer is not None:
            producer.is_open = False
        owners = [info.identifier for info in self._cluster.linked() if info.name == owner]
        openings = {request: opening for request, opening in self._openings.items() if opening.name == name}
        for request in [one for one, opening in openings.items() if not opening.counted.keys() & set(owners)]:
            text = "brokers have just found each other, and ask about this producer: try again in a moment"
            self._openings.pop(request).deferred.say(Refused(ErrorCode.UNAVAILABLE, text))
        self._set_timer()
        waiting = [opening for request, opening in openings.items() if request in self._openings]
        for opening in waiting:
            opening.relied_on.update(dict.fromkeys(owners))
        return end if waiting else None

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
        linked = self._cluster.linked()
        is_short = len(linked) < self._copies - 1 and not self._cluster.address_book.nobody()
        if known is not None and is_short and not self._log.is_safe(self._needs(known)):
            text = f"what this producer published is not safe yet ({shortage(self._cluster, self._log)})"
            raise Refused(ErrorCode.UNAVAILABLE, f"{text}: start what is missing, or try again in a moment")
        self._request += 1
        request = self._request
        asked = dict.fromkeys((self._cluster.me, *(info.identifier for info in linked)))
        opening = Opening(name, epoch, Deferred(), now + STORE_SECONDS_MAX, asked, dict(asked))
        self._openings[request] = opening
        self._timers.by(OPENINGS, opening.deadline)
        for info in linked:
            self._cluster.tell(info, AskProducer(request, name, epoch), now)
        self._when_safe(name, lambda *state: self._answered(request, self._cluster.me, *state), now)
        return opening.deferred

    def _when_safe(
        self, name: str, then: Callable[[bool, int, bytes, int, float], None], now: float, waited: bool = False
    ) -> None:
        """Tell how far it has come here (whether that is known, next, digest, epoch) as soon as all of that is safe.

        What comes meanwhile is not told of. The client that asked waits no longer than it is going to take.
        """
        producer = self._producers.get(name)
        if producer is not None and producer.copies_wait and not waited:
            self._log.when_landed(lambda reason, now: self._when_safe(name, then, now, waited=True), now)
            return
        after, digest = (0, b"") if producer is None else (producer.next, producer.digest)

        def told(refused: Refused | None, now: float) -> None:
            one = self._producers.get(name)
            if refused is not None:
                return
            has_company = self._has_company
            if has_company and (self._lost or self._blank if one is None else one.doubtful):
                then(False, *((0, b"", 0) if one is None else (*one.rows_here, one.epoch)), now)
            else:  # what is owed may have more of it, and takes nothing away from what this disk knows
                then(not (has_company and self._owed), after, digest, 0 if one is None else one.epoch, now)

        self._log.wait([] if producer is None else self._needs(producer), told, now)

    def _asked(self, info: PeerInfo, asked: AskProducer, now: float) -> None:
        request, name, epoch = asked.request, asked.producer, asked.epoch
        producer = self._producers.get(name)
        here = 0 if producer is None else max(producer.next, producer.copied[0])
        self.fences.make(name, info.identifier, here)
        if producer is not None and producer.epoch <= epoch:
            producer.is_open = False  # it publishes there from now on
            if producer.epoch < epoch:
                producer.epoch = epoch
                state = ProducerState(name, epoch, producer.next, producer.digest, self.clock.us(now))
                self._keep(state)

        def tell(known: bool, after: int, digest: bytes, epoch: int, now: float) -> None:
            self.fences.amend(name, info.identifier, after)
            self._cluster.tell(info, ToldProducer(request, known, after, digest, epoch), now)

        self._when_safe(name, tell, now)

    def _told(self, info: PeerInfo, told: ToldProducer, now: float) -> None:
        self._answered(told.request, info.identifier, told.is_known, told.next, told.digest, told.epoch, now)

    def _answered(
        self, request: int, broker: int, known: bool, after: int, digest: bytes, epoch: int, now: float
    ) -> None:
        opening = self._openings.get(request)
        if opening is None or broker not in opening.asked:
            return
        opening.answered += 1
        opening.heard += known
        opening.known = max(opening.known, epoch)
        if (after, bool(digest)) > (opening.next, bool(opening.digest)):
            opening.next, opening.digest = after, digest
        self._not_waiting_for(request, broker, now)

    def _not_waiting_for(self, request: int, broker: int, now: float) -> None:
        opening = self._openings[request]
        opening.asked.pop(broker, None)
        if not opening.asked:
            del self._openings[request]
            self._set_timer()
            self._open(opening, now)

    def _open(self, opening: Opening, now: float) -> None:
        """All brokers that can have answered."""
        name, epoch, deferred = opening.name, opening.epoch, opening.deferred
        if not self.is_enough(opening.heard, opening.answered, now):
            text = f"too few brokers can say what this producer published ({shortage(self._cluster, self._log)})"
            deferred.say(Refused(ErrorCode.UNAVAILABLE, f"{text}: start what is missing, or try again in a moment"))
            return
        producer = self._producer(name)
        self.fences.end(name)
        known = max(opening.known, producer.epoch)
        if known > epoch:
            deferred.say(fenced(name, epoch, known))
            return
        producer.epoch, producer.is_open, doubtful = epoch, True, producer.doubtful
        producer.opened_at = opening.next
        if opening.next > producer.next or producer.doubtful:
            producer.next, producer.digest = opening.next, opening.digest
            producer.doubtful = False
        state = ProducerState(name, epoch, producer.next, producer.digest, self.clock.us(now))
        answer = {"next": opening.next, "digest": opening.digest, "epoch": epoch}

        def kept(reason: str, now: float) -> None:
            self.stored(state, reason)
            producer.is_open = producer.is_open and not reason
            producer.doubtful = producer.doubtful or (doubtful and bool(reason))  # it is again what our disk says
            deferred.say(Refused(ErrorCode.NOT_STORED, f"the disk does not keep it: {reason}") if reason else answer)

        if producer.kept is not None and (producer.kept.epoch, producer.kept.next) == (epoch, state.next):
            deferred.say(answer)
        else:
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
        brokers = self.brokers(now)
        return heard > brokers - self._copies or answered >= brokers  # else there is no broker more to hear

    def brokers(self, now: float) -> int:
        """How many brokers there are, as far as is known here; who has just come takes those of its former lives."""
        address_book = self._cluster.address_book
        former = address_book.contacts if now < self._young_until else ()
        return len({*address_book.known, *former} - {address_book.own}) + 1

    def link_down(self, info: PeerInfo, now: float) -> None:
        """It will not answer."""
        for request, opening in list(self._openings.items()):
            if info.identifier in opening.asked:
                del opening.counted[info.identifier]
                if info.identifier in opening.relied_on:
                    text = f"{info.name} was asked about this producer, and its link broke: try again in a moment"
                    self._openings.pop(request).deferred.say(Refused(ErrorCode.UNAVAILABLE, text))
                    self._set_timer()
                    continue
            self._not_waiting_for(request, info.identifier, now)

    def give_up_late(self, now: float) -> None:
        """Who waited too long is told so."""
        for request, opening in list(self._openings.items()):
            if opening.deadline <= now:
                del self._openings[request]
                why = shortage(self._cluster, self._log, opening.asked)
                text = f"brokers do not answer, or what this producer published is not safe yet ({why})"
                opening.deferred.say(Refused(ErrorCode.UNAVAILABLE, f"{text}: try again in a moment"))
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
