"""Producers: who published what already, so that a batch that is sent again is recognised, whatever happened between.

A producer numbers its events from 0, through all its connections, brokers and epochs. A batch carries the number of its
first event; the broker knows the number that comes next. So

    number == next            new: appended, and next moves on; both in one transaction of the disk
    number + count <= next    sent again: acknowledged as soon as what it was taken for is safe, and not appended
    anything else             refused: something is missing, or the batch was cut in another way than before

What a producer is in (`epoch`) shuts out who is still in an older one: a job that was given up, a task that another one
replaced. Who wants to publish opens the producer first (`open_producer`); the answer is how far it has come, and that
all of it is safe. Every linked broker is asked, because the producer may have published there; from then on it is open
here and nowhere else, so late batches on an old connection cannot slip in behind. What was acknowledged is on k disks,
so one of them is heard when fewer than k of the brokers that are known are missing; otherwise opening is refused.

Whose disk has lost something does not know how far a producer has come, and lets the others say; only who never had
company has nothing but his own table.

What was never acknowledged may be on the disk of a broker that is down, and is appended again elsewhere when it is sent
again there. Both rows say the same producer and number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from protocol.errors import ErrorCode, ProtocolViolation, Refused
from protocol.limits import CREDIT_MAX, DIGEST_LENGTH_MAX
from protocol.log_rows import Row
from protocol.messages import Control, Stamp

from .cluster import Cluster
from .inputs import Opened
from .later import Later
from .limits import (
    PRODUCER_ENDS_MAX,
    PRODUCER_NAME_LENGTH_MAX,
    PRODUCERS_MAX,
    STORE_SECONDS_MAX,
    STRANGER_SECONDS,
)
from .log import HeldLog, Log
from .log_state import ProducerState
from .peers import PeerInfo

__all__ = ["Producers"]

_ASKED, _TOLD = 20, 21
"""Kinds of Control: how far has this producer come; so far."""


@dataclass(slots=True)
class _Producer:
    """One producer as this broker knows it; `kept` is what the disk knows."""

    name: str
    epoch: int = 0
    next: int = 0
    digest: bytes = b""
    is_open: bool = False
    doubtful: bool = False  # our disk has lost something, perhaps of this one
    kept: ProducerState | None = None
    asked: tuple[int, int] = (0, 0)  # the furthest epoch and next that the disk was asked to keep
    ends: dict[HeldLog, int] = field(default_factory=dict)  # where its newest rows end that were not safe yet


@dataclass(slots=True)
class _Opening:
    """Somebody opens a producer: whom we still wait for, and the furthest that anybody knew."""

    name: str
    epoch: int
    later: Later
    deadline: float
    asked: dict[int, None]
    heard: int = 0
    next: int = 0
    digest: bytes = b""
    known: int = 0


class Producers:
    """See the head of this file."""

    def __init__(self, log: Log, cluster: Cluster, copies: int, now: float) -> None:
        self._log = log
        self._copies = copies
        self._young_until = now + STRANGER_SECONDS
        self._cluster = cluster
        self._producers: dict[str, _Producer] = {}
        self._recovered: list[tuple[HeldLog, int]] = []
        self._openings: dict[int, _Opening] = {}
        self._request = 0
        self.wall_us: Callable[[float], int] = lambda now: int(now * 1e6)
        self.deadline = float("inf")
        self.duplicates = 0
        log.kept, log.undone = self._kept, self._undone
        cluster.table_of_controls[_ASKED] = self._asked
        cluster.table_of_controls[_TOLD] = self._told

    def __len__(self) -> int:
        return len(self._producers)

    def opened(self, happened: Opened) -> None:
        """What earlier lives knew. What their logs hold counts as known only when it is safe."""
        for state in happened.producers:
            self._kept(state)
            self._undone([state.name])
            self._producers[state.name].doubtful = bool(happened.damage)
        self._recovered = [(held, held.next) for held in self._log.own_logs()]

    def doubt(self) -> None:
        """Our disk turns out to be an old one: of how far anybody has come it knows too little."""
        for producer in self._producers.values():
            producer.doubtful, producer.is_open = True, False

    # --- batches -----------------------------------------------------------------------------------------------------

    def judge(self, stamp: Stamp, count: int) -> Sequence[tuple[HeldLog, int]] | None:
        """None for a new batch; for one that came before, what has to be safe until it is acknowledged again.

        Raises Refused.
        """
        producer = self._producers.get(stamp.producer)
        known = 0 if producer is None else producer.epoch
        if stamp.epoch < known:
            raise _fenced(stamp.producer, stamp.epoch, known)
        if producer is None or not producer.is_open or stamp.epoch > known:
            text = f"producer {stamp.producer!r} is not open here: open it, and go on where the answer says"
            raise Refused(ErrorCode.NOT_FOUND, text)
        if stamp.number == producer.next:
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
        return ProducerState(producer.name, producer.epoch, producer.next, producer.digest, self.wall_us(now))

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
        if producer.asked >= (row.epoch, end):
            return None
        producer.asked = row.epoch, end
        return ProducerState(row.producer, row.epoch, end, row.digest, row.time)

    def _needs(self, producer: _Producer) -> list[tuple[HeldLog, int]]:
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

    def _undone(self, names: Iterable[str]) -> None:
        """What was pending of these is not in the logs: they are where the disk says."""
        for name in dict.fromkeys(names):
            producer = self._producers.get(name)
            if producer is not None:
                kept = producer.kept
                producer.asked = (kept.epoch, kept.next) if kept is not None else (0, 0)
                producer.next, producer.digest = (kept.next, kept.digest) if kept is not None else (0, b"")
                producer.ends = {held: min(end, held.next) for held, end in producer.ends.items()}

    def _producer(self, name: str) -> _Producer:
        producer = self._producers.pop(name, None) or _Producer(name)
        self._producers[name] = producer  # the one that was used last comes last
        if len(self._producers) > PRODUCERS_MAX:
            del self._producers[next(iter(self._producers))]
        return producer

    # --- opening -----------------------------------------------------------------------------------------------------

    def open_producer(self, name: Any, epoch: Any, now: float) -> Later:
        """How far a producer has come; from now on it may publish here in this epoch, and in no older one anywhere.

        Raises Refused.
        """
        _check_name(name, epoch)
        self._log.check_room(0)
        known = self._producers.get(name)
        if known is not None and known.epoch > epoch:
            raise _fenced(name, epoch, known.epoch)
        self._request += 1
        request, linked = self._request, self._cluster.linked()
        asked = dict.fromkeys((self._cluster.me, *(info.identifier for info in linked)))
        opening = _Opening(name, epoch, Later(), now + STORE_SECONDS_MAX, asked)
        self._openings[request] = opening
        self.deadline = min(self.deadline, opening.deadline)
        for info in linked:
            self._cluster.peers.tell(info.address, Control(_ASKED, [request, name, epoch]), now)
        self._when_safe(name, lambda *state: self._answered(request, self._cluster.me, *state), now)
        return opening.later

    def _when_safe(self, name: str, then: Callable[[bool, int, bytes, int, float], None], now: float) -> None:
        """Tell how far it has come here (whether that is known, next, digest, epoch) as soon as all of that is safe.

        What comes meanwhile is not told of. Whoever asked waits no longer than it is going to take.
        """
        producer = self._producers.get(name)
        after, digest = (0, b"") if producer is None else (producer.next, producer.digest)

        def told(refused: Refused | None, now: float) -> None:
            one = self._producers.get(name)
            if refused is not None:
                return
            if one is not None and one.doubtful and self._copies > 1 and not self._cluster.acquaintances.nobody():
                then(False, 0, b"", one.epoch, now)
            else:
                then(True, after, digest, 0 if one is None else one.epoch, now)

        self._log.wait([] if producer is None else self._needs(producer), told, now)

    def _asked(self, info: PeerInfo, body: list[Any], now: float) -> None:
        if len(body) != 3 or type(body[0]) is not int:
            raise ProtocolViolation("PRODUCER_ASKED is [request, producer, epoch]")
        request, name, epoch = body
        try:
            _check_name(name, epoch)
        except Refused as error:
            raise ProtocolViolation(error.text) from error
        producer = self._producers.get(name)
        if producer is not None and producer.epoch <= epoch:
            producer.is_open = False  # it publishes there from now on
            if producer.epoch < epoch:
                producer.epoch = epoch
                state = ProducerState(name, epoch, producer.next, producer.digest, self.wall_us(now))
                self._log.keep_producer(state, lambda reason, now: None)

        def tell(known: bool, after: int, digest: bytes, epoch: int, now: float) -> None:
            self._cluster.peers.tell(info.address, Control(_TOLD, [request, known, after, digest, epoch]), now)

        self._when_safe(name, tell, now)

    def _told(self, info: PeerInfo, body: list[Any], now: float) -> None:
        if tuple(map(type, body)) != (int, bool, int, bytes, int) or len(body[3]) > DIGEST_LENGTH_MAX:
            raise ProtocolViolation("PRODUCER_TOLD is [request, whether it is known, next, digest, epoch]")
        request, known, after, digest, epoch = body
        if not all(0 <= number <= CREDIT_MAX for number in (request, after, epoch)):
            raise ProtocolViolation("PRODUCER_TOLD: numbers are from 0 to 2^53")
        self._answered(request, info.identifier, known, after, digest, epoch, now)

    def _answered(
        self, request: int, broker: int, known: bool, after: int, digest: bytes, epoch: int, now: float
    ) -> None:
        opening = self._openings.get(request)
        if opening is None or broker not in opening.asked:
            return
        opening.heard += known
        opening.known = max(opening.known, epoch)
        if after > opening.next:
            opening.next, opening.digest = after, digest
        self._not_waiting_for(request, broker, now)

    def _not_waiting_for(self, request: int, broker: int, now: float) -> None:
        opening = self._openings[request]
        opening.asked.pop(broker, None)
        if not opening.asked:
            del self._openings[request]
            self._look_at_clock()
            self._open(opening, now)

    def _open(self, opening: _Opening, now: float) -> None:
        """Everybody who can has answered."""
        name, epoch, later = opening.name, opening.epoch, opening.later
        if opening.heard <= self.brokers(now) - self._copies:
            text = "too many brokers cannot be reached to know what this producer published: try again in a moment"
            later.say(Refused(ErrorCode.UNAVAILABLE, text))
            return
        producer = self._producer(name)
        known = max(opening.known, producer.epoch)
        if known > epoch:
            later.say(_fenced(name, epoch, known))
            return
        producer.epoch, producer.is_open = epoch, True
        if opening.next > producer.next or producer.doubtful:
            producer.next, producer.digest = opening.next, opening.digest
            producer.doubtful = False
        state = ProducerState(name, epoch, producer.next, producer.digest, self.wall_us(now))
        answer = {"next": opening.next, "digest": opening.digest, "epoch": epoch}

        def kept(reason: str, now: float) -> None:
            producer.is_open = producer.is_open and not reason
            later.say(Refused(ErrorCode.NOT_STORED, f"the disk does not keep it: {reason}") if reason else answer)

        if producer.kept is not None and (producer.kept.epoch, producer.kept.next) == (epoch, state.next):
            later.say(answer)
        else:
            self._log.keep_producer(state, kept)

    def brokers(self, now: float) -> int:
        """How many brokers there are, as far as is known here; who has just come takes those of its former lives."""
        acquaintances = self._cluster.acquaintances
        former = acquaintances.contacts if now < self._young_until else ()
        return len({*acquaintances.known, *former} - {acquaintances.own}) + 1

    def link_down(self, info: PeerInfo, now: float) -> None:
        """It will not answer."""
        for request in list(self._openings):
            self._not_waiting_for(request, info.identifier, now)

    def wake(self, now: float) -> None:
        """Who waited too long is told so."""
        for request, opening in list(self._openings.items()):
            if opening.deadline <= now:
                del self._openings[request]
                text = "brokers do not answer, or what this producer published is not safe yet: try again in a moment"
                opening.later.say(Refused(ErrorCode.UNAVAILABLE, text))
        self._look_at_clock()

    def _look_at_clock(self) -> None:
        self.deadline = min([opening.deadline for opening in self._openings.values()], default=float("inf"))

    def validate(self) -> None:
        """Asserts what must always hold."""
        assert len(self._producers) <= PRODUCERS_MAX
        for name, producer in self._producers.items():
            assert producer.name == name
            assert producer.kept is None or producer.kept.epoch <= producer.epoch
        assert all(opening.asked for opening in self._openings.values())


def _check_name(name: Any, epoch: Any) -> None:
    if type(name) is not str or not 0 < len(name) <= PRODUCER_NAME_LENGTH_MAX:
        text = f"a producer has a name of 1 to {PRODUCER_NAME_LENGTH_MAX} characters"
        raise Refused(ErrorCode.BAD_REQUEST, text)
    if type(epoch) is not int or not 0 <= epoch <= CREDIT_MAX:
        raise Refused(ErrorCode.BAD_REQUEST, "a producer's epoch is a number from 0 to 2^53")


def _fenced(name: str, epoch: int, known: int) -> Refused:
    text = f"producer {name!r} goes on in epoch {known}: this one, {epoch}, is over, and must publish nothing more"
    return Refused(ErrorCode.FENCED, text)
