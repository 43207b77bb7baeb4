"""Tails: rows of our own logs that no other disk has, after a time in which brokers could not see each other.

A producer whose broker died, or cannot be reached, opens itself at another one and sends again what had no answer. So
a batch can be in two logs: in that of its former broker, where nobody else has it, and in that of the new one. Only
one of them may ever be read.

Which one. A batch that was acknowledged is on k disks, so whoever opened the producer afterwards heard of it: there is
no second one. So of two, the row that is on its owner's disk alone was not acknowledged, and it is the one to go. When
both are alone, the older one goes: its producer had left.

The rule for a row with a stamp of ours behind `safe`, when brokers see each other again:

    doubted      nothing of its log goes to siblings, and nothing behind `safe` is read, until this is settled
    asked        every broker that there is a link to says whether another log has events of it (`log_claims.py`), and
                 closes the producer: from then on it cannot go on there before we were asked as well
    taken back   one has: the log ends before this row. It is put aside on the disk, with all that its producer sent
                 behind it and sends again; what others sent goes on in a log of a new epoch, under the same event ids
    kept         nobody has: copies go on as if nothing had been

A log of ours that others have and our disk does not know counts like another broker's: our disk is an older one, and
these rows may have gone on there in a life that it has forgotten.

A row that another log has was not acknowledged here, whoever cannot be reached: k disks have what was, at most k - 1
brokers are missing when a producer is opened elsewhere, and its owner was one of them. So it goes, also when a broker
that is not there may have been sent a copy of it; what that one has behind the new end is closed when it is back.

So no event is in two logs where anybody can read it. Subscribers may have been sent both, under two ids, for what is
delivered at once is not held back for this.

Links come back one by one, so whoever cannot be reached is waited for, VOUCH_SECONDS_MAX and no longer. He may have the
other row; when he is back, he asks about his own tail. A tail of more than TAIL_BYTES_MAX is not looked into: that is a
log whose copies were lost, and not what was under way in a moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from headgate.protocol.log_rows import LogKind, Row, decode_row, encode_row

from .cluster import Cluster
from .effects import Append, CutLog, Effect, Note
from .inputs import RowsRead
from .limits import (
    CLAIM_EPOCHS_MAX,
    CLAIM_PRODUCERS_MAX,
    COPY_CHUNK_BYTES,
    COPY_RETRY_SECONDS,
    STORE_SECONDS_MAX,
    TAIL_BYTES_MAX,
    VOUCH_SECONDS_MAX,
)
from .log import HeldLog, Log
from .log_claims import Claims, Owner
from .log_spans import Span, Spans
from .log_state import ProducerState
from .producers import Producers

__all__ = ["Tails"]


@dataclass(slots=True)
class _Round:
    """One settling: what is asked about, who has not answered, and what there is elsewhere."""

    done: Callable[[float], None]
    patient_until: float
    waits_until: float  # for who cannot be reached
    wanted: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)  # of each stream
    since: dict[str, int] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    open: int = 1  # questions without their answers
    told: dict[str, list[Span]] = field(default_factory=dict)
    spans: dict[str, Spans] = field(default_factory=dict)  # the same, when all have told
    again: bool = False  # somebody came after the others were asked
    epoch: int = 0  # that what is moved goes on in: a new one, so that logs stay in the order of event ids


@dataclass(slots=True)
class _Cut:
    """What becomes of the tail of one log."""

    at: int = -1
    size: int = 0
    count: int = 0
    rows: list[Row] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)  # producer -> the first of its numbers that are taken back


class Tails:
    """See the head of this file. `sent_to` says up to where anybody may have a log of ours, whom nobody can ask now."""

    def __init__(
        self, name: str, effects: list[Effect], log: Log, cluster: Cluster, producers: Producers, claims: Claims
    ) -> None:
        self._name = name
        self._effects = effects
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._claims = claims
        self._round: _Round | None = None
        self._retry: Callable[[float], None] | None = None
        self.sent_to: Callable[[HeldLog], int] = lambda held: 0
        self.taken_back = 0
        self.deadline = float("inf")

    # --- when ---------------------------------------------------------------------------------------------------------

    def has_any(self) -> bool:
        """Whether there are rows that may have to be taken back."""
        return any(_has_tail(held) for held in self._log.own_logs())

    def settle(self, done: Callable[[float], None], now: float, patient: bool = True) -> None:
        """Find out about all tails; tell when that is done. `patient`: wait a while for who is not here yet."""
        if self._round is not None:
            self._round.again = True
            return
        tails = [held for held in self._log.own_logs() if _has_tail(held)]
        if not tails:
            done(now)
            return
        patient_until = now + VOUCH_SECONDS_MAX
        self._round = _Round(done, patient_until, patient_until if patient else now)
        for held in tails:
            held.doubted = True
        self._gather(now)

    def wake(self, now: float) -> None:
        """Whoever has not answered by now is not waited for; a disk that was full may have room."""
        if now < self.deadline:
            return
        self.deadline = float("inf")
        if self._retry is not None:
            retry, self._retry = self._retry, None
            retry(now)
        elif self._round is not None:
            self._claims.give_up(self._round.asked, now)

    def _gather(self, now: float) -> None:
        """After a partition links come back one by one, and the first broker may be the one that has seen nothing."""
        assert self._round is not None
        if self._cluster.unreached() and now < self._round.waits_until:
            self._retry, self.deadline = self._gather, now + COPY_RETRY_SECONDS
        else:
            self._look([held for held in self._log.own_logs() if held.doubted], now)

    # --- what is there -----------------------------------------------------------------------------------------------

    def _look(self, tails: list[HeldLog], now: float) -> None:
        """Read them, one after the other, for what has stamps; then ask."""
        if not tails:
            self._ask(now)
            return
        held, known = tails[0], max(tails[0].unknown, tails[0].safe)
        stamped: list[int] = []

        def each(row: Row, data: bytes) -> bool:
            if row.producer:
                self._want(held.name.stream, row)
                self._producers.in_tail(row)
                if row.first < known:
                    stamped.append(row.first)
            return True

        def read(now: float) -> None:
            if held.unknown:
                held.stamped.extendleft(reversed([one for one in stamped if one >= held.safe]))
                held.unknown = 0
            self._look(tails[1:], now)

        self._read(held, held.safe, each, read)

    def _want(self, stream: str, row: Row) -> None:
        assert self._round is not None
        wanted = self._round.wanted.setdefault(stream, {})
        start, end = wanted.get(row.producer, (row.number, 0))
        wanted[row.producer] = min(start, row.number), max(end, row.number + row.count)
        self._round.since[stream] = min(self._round.since.get(stream, row.time), row.time)

    def _read(
        self, held: HeldLog, position: int, each: Callable[[Row, bytes], bool], then: Callable[[float], None]
    ) -> None:
        """Row by row from there to the end; less when there is damage, or when that is enough."""

        def came(read: RowsRead, now: float) -> None:
            for data in read.rows:
                if not each(decode_row(data), data):
                    then(now)
                    return
            if read.rows and read.next < held.next:
                self._log.read_rows(held.name, read.next, COPY_CHUNK_BYTES, came)
            else:
                then(now)

        self._log.read_rows(held.name, position, COPY_CHUNK_BYTES, came)

    # --- asking ------------------------------------------------------------------------------------------------------

    def _ask(self, now: float) -> None:
        """Everybody, ourselves among them, who may have copies of others' logs."""
        going = self._round
        assert going is not None
        going.open, going.again = 1, False
        self.deadline = now + STORE_SECONDS_MAX
        for stream, all_wanted in going.wanted.items():
            owner = Owner(self._name, self._epochs(stream))
            producers = list(all_wanted.items())
            for place in range(0, len(producers), CLAIM_PRODUCERS_MAX):
                wanted = dict(producers[place : place + CLAIM_PRODUCERS_MAX])
                for info in self._cluster.linked():
                    going.open += 1
                    then = partial(self._heard, going, stream, False)
                    going.asked.append(self._claims.ask(info, owner, stream, going.since[stream], wanted, then, now))
                going.open += 1
                then = partial(self._heard, going, stream, True)
                self._claims.look(stream, going.since[stream], wanted, owner, then, now)
        going.open -= 1
        self._go_on(going, now)

    def _epochs(self, stream: str) -> tuple[int, ...]:
        """Of which this disk has logs of our own, the newest ones, the oldest of them first."""
        names = [held.name for held in self._log.own_logs()]
        epochs = sorted(name.epoch for name in names if (name.stream, name.kind) == (stream, LogKind.EVENTS))
        return tuple(epochs[-CLAIM_EPOCHS_MAX:])

    def _heard(self, going: _Round, stream: str, here: bool, spans: list[Span], now: float) -> None:
        going.open -= 1
        going.told.setdefault(stream, []).extend(replace(span, here=here) for span in spans)
        self._go_on(going, now)

    def _go_on(self, going: _Round, now: float) -> None:
        if going is self._round and not going.open:
            going.open = -1
            self.deadline = float("inf")
            if self._cluster.unreached() and now < going.waits_until:
                self._anew(now)  # who is gone took his answer along
                return
            going.spans = {stream: Spans(told) for stream, told in going.told.items() if told}
            own = self._log.own_logs()
            self._cut([held for held in own if held.doubted and held.name.stream in going.spans], now)

    # --- taking back -------------------------------------------------------------------------------------------------

    def _cut(self, doubted: list[HeldLog], now: float) -> None:
        """Those of which another log may have something, one after the other, each when the disk has answered."""
        going = self._round
        assert going is not None
        if not doubted:
            self._end(now)
            return
        held, spans = doubted[0], self._spans(doubted[0])
        found: list[int] = []

        def each(row: Row, data: bytes) -> bool:
            if self._has_to_go(row, spans):
                found.append(row.first)
            return not found

        def read(now: float) -> None:
            if found and found[0] < self.sent_to(held) and now < going.patient_until:  # it may be safe: let them say
                self._retry, self.deadline = self._anew, now + COPY_RETRY_SECONDS
                return
            if not found:
                self._cut(doubted[1:], now)
                return
            self._log.vouched = False
            self._log.when_landed(lambda reason, now: self._take_back(doubted, found[0], now), now)

        self._read(held, held.safe, each, read)

    def _anew(self, now: float) -> None:
        """Somebody may have it, and will say so in a moment."""
        assert self._round is not None
        self._round = _Round(self._round.done, self._round.patient_until, self._round.waits_until)
        self._gather(now)

    def _has_to_go(self, row: Row, spans: Spans) -> bool:
        """Whether another log has some of it that stays."""
        others = spans.sharing(row.producer, row.number, row.number + row.count)
        return any(not span.doubted or (row.time, self._name) < (span.time, span.broker) for span in others)

    def _take_back(self, doubted: list[HeldLog], at: int, now: float) -> None:
        """All that there is of it is on the disk, and nothing more comes."""
        held, cut = doubted[0], _Cut(at)
        spans = self._spans(held)

        def each(row: Row, data: bytes) -> bool:
            cut.size += len(data)
            if row.producer and (row.producer in cut.taken or self._has_to_go(row, spans)):
                cut.taken.setdefault(row.producer, row.number)
                cut.count += row.count
            else:
                cut.rows.append(row)
            return True

        def read(now: float) -> None:
            self._write(doubted, cut, now)

        self._read(held, at, each, read)

    def _write(self, doubted: list[HeldLog], cut: _Cut, now: float) -> None:
        going, held = self._round, doubted[0]
        assert going is not None
        if not going.epoch and (cut.rows or held.name.epoch == self._log.epoch):
            going.epoch = max(self._log.epoch + 1, self._producers.wall_us(now) // 1_000_000)
        epoch = going.epoch or self._log.epoch
        to = self._log.hold(held.name._replace(epoch=epoch)) if cut.rows else held
        rows: list[Append] = []
        end = to.assigned
        for row in cut.rows:
            row.first = end
            state = ProducerState(row.producer, row.epoch, row.number + row.count, row.digest, row.time)
            producer = state if row.producer else None
            rows.append(Append(0, to.name, encode_row(row), end, row.count, row.time, producer, bool(row.ids)))
            end += row.count
        states = [
            self._producers.taken_back(name, number, self._here(held, name), now) for name, number in cut.taken.items()
        ]

        def written(reason: str, now: float) -> None:
            if reason:
                self._retry = lambda now: self._write(doubted, cut, now)
                self.deadline = now + COPY_RETRY_SECONDS
                return
            if epoch > self._log.epoch:
                self._log.begin_epoch(epoch)
            self._log.moved(held, cut.at, cut.size, to, rows, now)
            self._producers.moved(held, cut.at, to, rows)
            self.taken_back += cut.count
            facts = {"log": held.name.partition, "stream": held.name.stream, "from": cut.at, "events": cut.count}
            self._effects.append(Note("log rows taken back", facts | {"moved": end - (rows[0].first if rows else end)}))
            self._cut(doubted[1:], now)

        self._log.cut(CutLog(0, held.name, max(cut.at, held.first), epoch, rows, states), written)

    def _spans(self, held: HeldLog) -> Spans:
        assert self._round is not None
        return self._round.spans[held.name.stream]

    def _here(self, held: HeldLog, producer: str) -> tuple[int, bytes]:
        """How far it has come in others' logs on this disk."""
        ends = [(one.end, one.digest) for one in self._spans(held).of(producer) if one.here]
        return max(ends, default=(0, b""))

    def _end(self, now: float) -> None:
        going, self._round = self._round, None
        assert going is not None
        for held in self._log.own_logs():
            held.doubted = False
        if going.again and self.has_any():
            self.settle(going.done, now, patient=False)
        else:
            going.done(now)


def _has_tail(held: HeldLog) -> bool:
    """Whether rows of it may have to be taken back."""
    if not held.revocable or held.safe >= held.next:
        return False
    size = held.bytes * (held.next - held.safe) // (held.next - held.first)
    return size <= TAIL_BYTES_MAX and bool(held.stamped or held.safe < held.unknown)
