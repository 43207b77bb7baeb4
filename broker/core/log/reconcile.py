"""Tails: rows of our own logs that no other disk has, after a time in which brokers could not see each other.

A client whose broker died, or cannot be reached, opens its producer at another one and sends again what had no answer.
So a batch can be in two logs: in that of its former broker, where no other disk has it, and in that of the new one.
Only one of them may ever be read.

Which one. A batch that was acknowledged is on k disks, so the broker that opened the producer afterwards heard of it:
there is no second one. So of two, the row that is on its owner's disk alone was not acknowledged, and it is the one to
go. When both are alone, the older one goes: its producer had left.

The rule for a row with a stamp of ours behind `safe`, when brokers see each other again:

    doubted      nothing of its log goes to followers until this is settled
    asked        every broker that there is a link to says whether another log has events of it (`Claims` below), and
                 closes the producer: from then on it cannot go on there before we were asked as well
    taken back   one has: the log ends before this row. It is put aside on the disk, with all that its producer sent
                 behind it and sends again; what others sent goes on in a log of a new epoch, under the same event ids
    kept         none has: copies go on as if nothing had been

A log of ours that others have and our disk does not know counts like another broker's: our disk is an older one, and
these rows may have gone on there in a life that it has forgotten.

A row that another log has was not acknowledged here, whichever brokers cannot be reached: k disks have what was, at
most k - 1 brokers are missing when a producer is opened elsewhere, and its owner was one of them. So it goes, also when
a broker that is not there may have been sent a copy of it; what that one has behind the new end is closed when it is
back.

Nothing behind `safe` is read or delivered, so no client ever sees an event under two ids.

Links come back one by one, so a broker that cannot be reached is waited for, VOUCH_SECONDS_MAX and no longer. It may
have the other row; when it is back, it asks about its own tail. Where no row of the tail has a stamp, nobody is waited
for. A tail of more than `tail_bytes` is not looked into: that is a log whose copies were lost, and not what was under
way in a moment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from headgate.protocol.data import LogKind, LogName, Row, decode_row, encode_row
from headgate.protocol.errors import ProtocolViolation

from ..cluster import Cluster
from ..effects import Append, CutLog, Effect, Note
from ..inputs import RowsRead
from ..limits import (
    CLAIM_EPOCHS_MAX,
    CLAIM_PRODUCERS_MAX,
    CLAIMS_KEPT_MAX,
    CLOCKS_APART_SECONDS,
    COPY_RETRY_SECONDS,
    STORE_SECONDS_MAX,
    VOUCH_SECONDS_MAX,
)
from ..links import PeerInfo
from ..log_state import ProducerState
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .log import HeldLog, Log
from .messages import Claim, Claimed, ClaimedSpan, OpenAt
from .messages import Wanted as WantedEvents
from .producers import Producers

__all__ = [
    "Claims",
    "GatheredSpans",
    "Owner",
    "RECONCILE",
    "Span",
    "Spans",
    "Reconciler",
    "Wanted",
]

RECONCILE = "reconcile"
"""Key of the timer: who has not answered is not waited for, or what could not be done is tried again."""

# Spans: which events of a producer are in rows of other logs, and whether a row of ours shares one with them.
#
# Rows of many producers stand mixed in a log, and a producer may write to several streams in turn. So a row goes on
# the last span of its own producer in that log, and where its numbers leave one out a new span begins: what stands
# between may be elsewhere, acknowledged, and a span that covered it would take that back. Rows that are doubted are
# spans of their own, for each is compared by its time.
#
# There may be as many spans as rows, so what shares an event with a row is found by halving.


@dataclass(slots=True)
class Span:
    """Events `start` to `end - 1` of a producer are in rows of one log of that broker, the first one of this time."""

    producer: str
    start: int
    end: int
    time: int
    doubted: bool
    broker: str
    digest: bytes = b""
    here: bool = False


class GatheredSpans:
    """What rows make, as they come in the order of their logs."""

    def __init__(self) -> None:
        self.all: list[Span] = []
        self._last: dict[tuple[str, LogName], Span] = {}

    def take(self, name: LogName, row: Row, doubted: bool) -> None:
        """A row of that log."""
        end, last = row.number + row.count, self._last.get((row.producer, name))
        if last is not None and last.end == row.number and not (doubted or last.doubted):
            last.end, last.digest = end, row.digest
            return
        span = Span(row.producer, row.number, end, row.time, doubted, name.broker, row.digest)
        self.all.append(span)
        self._last[row.producer, name] = span


class Spans:
    """All that was found, to be looked into."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._of: dict[str, dict[str, _Ascending]] = {}
        of: dict[tuple[str, str], list[Span]] = {}
        for span in spans:
            of.setdefault((span.producer, span.broker), []).append(span)
        for (producer, broker), some in of.items():
            self._of.setdefault(producer, {})[broker] = _Ascending(some)

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, producer: str) -> Iterator[Span]:
        """All of that producer."""
        for some in self._of.get(producer, {}).values():
            yield from some.spans

    def sharing(self, producer: str, start: int, end: int) -> Iterator[Span]:
        """Those that have one of these events of a producer."""
        for some in self._of.get(producer, {}).values():
            yield from some.sharing(start, end)


class _Ascending:
    """Spans of one producer that one broker told of. Few of them share an event, so few are looked at."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = sorted(spans, key=lambda span: span.start)
        self._starts = [span.start for span in self.spans]
        self._ends = list(accumulate((span.end for span in self.spans), max))  # the largest up to there

    def sharing(self, start: int, end: int) -> Iterator[Span]:
        place = bisect_left(self._starts, end) - 1
        while place >= 0 and self._ends[place] > start:
            if self.spans[place].end > start:
                yield self.spans[place]
            place -= 1


# Claims: whether events of producers are in logs that this disk has, asked by a broker that alone has them in its own.
#
#     Claim    are these events of a broker's log in any other log? None is older than `since` (microseconds).
#              `epochs`: of which that broker knows logs of its own; they are not meant, or none is when none is named
#     Claimed  these are, in rows of this time; `doubted`: it is being found out whether that row of ours stays. Before
#              them, producers that stay open here: the brokers that opened them knew of all events before that number.
#              `is_all`: what there is more comes in another Claimed, for what is not told counts as not there
#
# A broker that is asked closes the producers: a client that wants to go on here has to open its producer again, and
# then every linked broker is asked, so also the one that asks now. From then on the producer cannot go on behind
# its back.
#
# Logs of the asking broker that it does not know itself: its disk is an older one (a backup that was put back), and it
# may have taken these rows into a later epoch in a life that it has forgotten.
#
# A broker that is told less than there is keeps a row that another log has. So an answer is never cut short, and
# `Spans` makes as few spans of it as may be.
#
# The answer comes from the disk, row by row from `since` on, because what was said in earlier lives counts as well.
# This is asked once after a start or a partition, about what was under way at that moment.


class Owner(NamedTuple):
    """Whose rows are asked about, and of which epochs it knows logs of its own; when none is named, of all."""

    name: str
    epochs: tuple[int, ...] = ()

    def knows(self, name: LogName) -> bool:
        """Whether that is a log of its own in which the rows are looked for in vain."""
        return name.broker == self.name and (
            not self.epochs or name.epoch in self.epochs or name.epoch < self.epochs[0]
        )


Told = Callable[[list[Span], float], None]

Wanted = Mapping[str, tuple[int, int]]
"""Producer -> the first of its events that are asked about, and where they end."""


@dataclass(slots=True)
class _Asked:
    """A question, and what was heard so far."""

    identifier: int
    then: Told
    spans: list[Span] = field(default_factory=list)


class Claims:
    """Asks other brokers whether their logs have events of ours, and answers when they ask."""

    def __init__(self, name: str, log: Log, cluster: Cluster, producers: Producers) -> None:
        self._name = name
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._request = 0
        self._asked: dict[int, _Asked] = {}
        self._heard: dict[tuple[str, str, int, str], Span] = {}  # what others told, for the next broker that asks
        cluster.take_controls({Claim: self._claim, Claimed: self._claimed})

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, info: PeerInfo, owner: Owner, stream: str, since: int, wanted: Wanted, then: Told, now: float) -> int:
        """Ask another broker; no answer on this link is nothing."""
        self._request += 1
        self._asked[self._request] = _Asked(info.identifier, then)
        events = tuple(WantedEvents(producer, *span) for producer, span in wanted.items())
        self._cluster.tell(info, Claim(self._request, owner.name, owner.epochs, stream, since, events), now)
        return self._request

    def give_up(self, requests: Iterable[int], now: float) -> None:
        """They are not waited for any more."""
        for request in [request for request in requests if request in self._asked]:
            asked = self._asked.pop(request)
            asked.then(asked.spans, now)

    def link_down(self, info: PeerInfo, now: float) -> None:
        """It will not answer."""
        self.give_up([one for one, asked in self._asked.items() if asked.identifier == info.identifier], now)

    def _claimed(self, info: PeerInfo, told: Claimed, now: float) -> None:
        asked = self._asked.get(told.request)
        if asked is None or asked.identifier != info.identifier:
            return
        for producer, number in told.open:
            self._producers.fences.amend(producer, info.identifier, number)
        asked.spans += [Span(*one, info.name) for one in told.spans]
        most = self._log.limits.claim_answer_spans
        if len(asked.spans) > most:
            raise ProtocolViolation(f"Claimed: what there is, is at most {most} spans in all")
        if told.is_all:
            self.give_up([told.request], now)

    # --- answering ---------------------------------------------------------------------------------------------------

    def remember(self, stream: str, spans: Iterable[Span]) -> None:
        """Another broker has these, and the next one that asks may not reach it."""
        for span in spans:
            self._heard[stream, span.producer, span.start, span.broker] = span
            if len(self._heard) > CLAIMS_KEPT_MAX:
                del self._heard[next(iter(self._heard))]

    def _claim(self, info: PeerInfo, claim: Claim, now: float) -> None:
        owner, stream, since = Owner(claim.owner, claim.epochs), claim.stream, claim.since
        wanted = {one.producer: (one.start, one.end) for one in claim.wanted}
        open_at: dict[str, int] = {}
        for producer, (_, end) in wanted.items():
            number = self._producers.close(producer, end, owner.name, now)
            if number is not None:
                open_at[producer] = number

        def tell(spans: list[Span], now: float) -> None:
            open_ones = tuple(OpenAt(*one) for one in open_at.items())
            most = self._log.limits.claim_spans
            for at in range(0, max(1, len(spans)), most):
                some = spans[at : at + most]
                words = tuple(ClaimedSpan(one.producer, one.start, one.end, one.time, one.doubted) for one in some)
                is_all = at + most >= len(spans)
                self._cluster.tell(info, Claimed(claim.request, is_all, () if at else open_ones, words), now)

        def tell_all(spans: list[Span], now: float) -> None:
            heard = [span for key, span in self._heard.items() if key[0] == stream and span.broker != owner.name]
            tell(spans + [span for span in heard if span.producer in wanted], now)

        if owner.name != info.name and open_at.keys() == wanted.keys():
            tell([], now)  # what all brokers knew when they were opened is nowhere else
        else:
            self.look(stream, since, wanted, owner, tell_all, now)

    def look(
        self,
        stream: str,
        since: int,
        wanted: Wanted,
        owner: Owner,
        then: Told,
        now: float,
    ) -> None:
        """Tell what of these this disk has in logs of that stream, those that `owner` knows as its own aside."""
        found = GatheredSpans()
        since = max(0, since - int(CLOCKS_APART_SECONDS * 1e6))

        def landed(reason: str, now: float) -> None:
            logs = [held for name, held in self._log.logs.items() if _may_have(held, stream, owner)]
            self._look_into(logs, since, wanted, found, then, now)

        self._log.when_landed(landed, now)

    def _look_into(
        self,
        logs: Sequence[HeldLog],
        since: int,
        wanted: Wanted,
        found: GatheredSpans,
        then: Told,
        now: float,
    ) -> None:
        """One log after the other."""
        if not logs:
            then(found.all, now)
            return
        held, end = logs[0], logs[0].next

        def begins(position: Any, now: float) -> None:
            read(held.first if position is None else max(position, held.first))

        def read(position: int) -> None:
            self._log.read_rows(held.name, position, self._log.limits.copy_chunk_bytes, came)

        def came(rows: RowsRead, now: float) -> None:
            for data in rows.rows:
                _take(found, held, decode_row(data), wanted)
            if rows.next < end and (rows.rows or rows.damage):
                read(rows.next)
            else:
                self._look_into(logs[1:], since, wanted, found, then, now)

        self._log.find_time(held.name, since, begins)


def _may_have(held: HeldLog, stream: str, owner: Owner) -> bool:
    name = held.name
    return name.kind == LogKind.EVENTS and name.stream == stream and not owner.knows(name) and held.first < held.next


def _take(found: GatheredSpans, held: HeldLog, row: Row, wanted: Wanted) -> None:
    if row.producer not in wanted:
        return
    start, end = wanted[row.producer]
    if row.number < end and row.number + row.count > start:
        found.take(held.name, row, held.doubted and row.first >= held.safe)


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
    again: bool = False  # a broker came after the others were asked
    epoch: int = 0  # that what is moved goes on in: a new one, so that logs stay in the order of event ids


@dataclass(slots=True)
class _Cut:
    """What becomes of the tail of one log."""

    at: int = -1
    size: int = 0
    count: int = 0
    rows: dict[int, Row] = field(default_factory=dict)  # those that go on in another log, by where they ended in this
    taken: dict[str, int] = field(default_factory=dict)  # producer -> the first of its numbers that are taken back


class Reconciler:
    """Finds out which rows behind the high watermark stay, and takes the others back."""

    def __init__(
        self,
        name: str,
        effects: list[Effect],
        log: Log,
        cluster: Cluster,
        producers: Producers,
        claims: Claims,
        timers: Timers,
    ) -> None:
        self._name = name
        self._effects = effects
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._claims = claims
        self._round: _Round | None = None
        self._retry: Callable[[float], None] | None = None
        self.taken_back = 0
        self._timers = timers

    # --- when ---------------------------------------------------------------------------------------------------------

    def has_any(self) -> bool:
        """Whether there are rows that may have to be taken back."""
        return any(_has_tail(held, self._log.limits.tail_bytes) for held in self._log.own_logs())

    def settle(self, done: Callable[[float], None], now: float, patient: bool = True) -> None:
        """Find out about all tails; tell when that is done. `patient`: wait a while for who is not here yet."""
        if self._round is not None:
            self._round.again = True
            return
        reconciler = [held for held in self._log.own_logs() if _has_tail(held, self._log.limits.tail_bytes)]
        if not reconciler or Safeguard.RECONCILE not in self._cluster.safeguards:
            done(now)
            return
        patient_until = now + VOUCH_SECONDS_MAX
        self._round = _Round(done, patient_until, patient_until if patient else now)
        for held in reconciler:
            held.doubted = True
        self._gather(now)

    def go_on(self, now: float) -> None:
        """A broker that has not answered by now is not waited for; a disk that was full may have room."""
        if self._retry is not None:
            retry, self._retry = self._retry, None
            retry(now)
        elif self._round is not None:
            self._claims.give_up(self._round.asked, now)

    def _try_again(self, retry: Callable[[float], None], now: float) -> None:
        self._retry = retry
        self._timers.at(RECONCILE, now + COPY_RETRY_SECONDS)

    def _gather(self, now: float) -> None:
        self._look([held for held in self._log.own_logs() if held.doubted], now)

    def _waits(self, going: _Round, now: float) -> bool:
        """After a partition links come back one by one, and the first broker may be the one that has seen nothing.

        Rows without a stamp are in no other log: where there are no others, nobody is waited for.
        """
        return bool(going.wanted and self._cluster.unreached()) and now < going.waits_until

    # --- what is there -----------------------------------------------------------------------------------------------

    def _look(self, reconciler: list[HeldLog], now: float) -> None:
        """Read them, one after the other, for what has stamps; then ask."""
        if not reconciler:
            self._ask(now)
            return
        held = reconciler[0]

        def each(row: Row, data: bytes) -> bool:
            if row.producer:
                self._want(held.name.stream, row)
                self._producers.in_tail(row)
            return True

        self._read(held, held.safe, each, lambda now: self._look(reconciler[1:], now))

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
                self._log.read_rows(held.name, read.next, self._log.limits.copy_chunk_bytes, came)
            else:
                then(now)

        self._log.read_rows(held.name, position, self._log.limits.copy_chunk_bytes, came)

    # --- asking ------------------------------------------------------------------------------------------------------

    def _ask(self, now: float) -> None:
        """All brokers, ourselves among them, that may have copies of others' logs."""
        going = self._round
        assert going is not None
        if self._waits(going, now):
            self._try_again(self._anew, now)
            return
        going.open, going.again = 1, False
        self._timers.at(RECONCILE, now + STORE_SECONDS_MAX)
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
            self._timers.at(RECONCILE, NEVER)
            if self._waits(going, now):
                self._anew(now)  # a broker that is gone took its answer along
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
            if found and found[0] < self._log.sent_to(held) and now < going.patient_until:
                self._try_again(self._anew, now)
                return
            if not found:
                self._cut(doubted[1:], now)
                return
            self._log.recovered = False
            self._log.when_landed(lambda reason, now: self._take_back(doubted, found[0], now), now)

        self._read(held, held.safe, each, read)

    def _anew(self, now: float) -> None:
        """A broker may have it, and will say so in a moment."""
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
                cut.rows[row.first + row.count] = row
            return True

        def read(now: float) -> None:
            self._write(doubted, cut, now)

        self._read(held, at, each, read)

    def _write(self, doubted: list[HeldLog], cut: _Cut, now: float) -> None:
        going, held = self._round, doubted[0]
        assert going is not None
        if not going.epoch and (cut.rows or held.name.epoch == self._log.epoch):
            going.epoch = max(self._log.epoch + 1, self._producers.clock.us(now) // 1_000_000)
        epoch = going.epoch or self._log.epoch
        to = self._log.hold(held.name._replace(epoch=epoch)) if cut.rows else held
        rows: dict[int, Append] = {}
        begin = end = to.assigned
        for ended, row in cut.rows.items():
            row.first = end
            state = ProducerState(row.producer, row.epoch, row.number + row.count, row.digest, row.time)
            producer = state if row.producer else None
            rows[ended] = Append(0, to.name, encode_row(row), end, row.count, row.time, producer, bool(row.ids))
            end += row.count
        states = [
            self._producers.taken_back(name, number, self._here(held, name), now) for name, number in cut.taken.items()
        ]

        def written(reason: str, now: float) -> None:
            if reason:
                self._try_again(lambda now: self._write(doubted, cut, now), now)
                return
            if epoch > self._log.epoch:
                self._log.begin_epoch(epoch)
            self._log.moved(held, cut.at, cut.size, to, rows, now)
            self._producers.moved(held, cut.at, to, rows.values())
            self.taken_back += cut.count
            facts = {"log": held.name.partition, "stream": held.name.stream, "from": cut.at, "events": cut.count}
            self._effects.append(Note("log rows taken back", facts | {"moved": end - begin}))
            self._cut(doubted[1:], now)

        self._log.cut(CutLog(0, held.name, max(cut.at, held.first), epoch, list(rows.values()), states), written)

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


def _has_tail(held: HeldLog, bytes_max: int) -> bool:
    """Whether rows of it may have to be taken back."""
    if not held.revocable or held.safe >= held.next:
        return False
    return held.bytes * (held.next - held.safe) // (held.next - held.first) <= bytes_max
