"""Reconciliation: which rows of our own logs stay that too few disks have, after brokers could not see each other.

A client whose broker died, or cannot be reached, opens its producer at another one and sends again what had no answer.
So a batch can be in two logs: in that of its former broker, where too few disks have it, and in that of the new one.
Only one of them may ever be on k disks, and so delivered, read or acknowledged.

**The rule** is that of Paxos with two sizes of quorums (Flexible Paxos): a row is accepted by k disks, an opening is
promised by N - k + 1, and any k disks have one of those among them.

    opening   a broker asks all others to hold to a new ballot, larger than any they know of. Each writes that down,
              refuses rows of other openings from then on, and says how far the producer has come. When N - k + 1 of
              them have, all rows that k disks had are known, and no other row of an older ballot will be on k disks.
              What was known then is the start of the opening, and it is told with each of its rows.
    row       a follower takes it if k disks have it already (it is before the high watermark that comes with it), or
              if it is of the opening that the follower holds to. It refuses any other (RowFenced).
    renewal   the leader whose row is refused opens the producer again, for the log that it has the row in; no client
              is asked. The answers hold the starts of all openings that were complete. Then a row is

    taken back   if the start of a newer opening of another log is before its end. The log ends before this row. It is
                 put aside on the disk, with all that its producer sent behind it and sends again; what others sent
                 goes on in a log of a new epoch, under the same event ids
    kept         if there is none. It is sent again, of the new opening now

Why nothing that was acknowledged is taken back. Such a row is on k disks. One of them answered the newer opening; it
had taken the row before, since afterwards it would have refused it; so the opening began behind the row.

Why nothing is kept twice. Of two rows with one number the older one would have to be on k disks, and one of these
promised the newer opening. It had not taken the row by then, or the newer opening would begin behind it; and it does
not take it afterwards, unless its owner renews: then the quorum of the renewal has the start of the newer opening among
its answers if a row of that is on k disks, for a follower writes the start down with the row.

A broker that was away knows old ballots: whoever it sends rows to refuses them, and it learns why. A disk that has lost
something refuses what it does not know, since only an equal ballot will do, and its answers do not count. A backup is
an old log: openings are of one epoch of a log, so rows that went on in a later epoch shut out those of before. With
k = 1, or in a cluster of one, there is no follower to refuse anything. Brokers of two that cannot see each other both
open a producer, and neither gets a row of it to a second disk before they meet; then the larger ballot wins.

A broker that is linked and says nothing is waited for STORE_SECONDS_MAX, and then not counted. While too few answer,
nothing of that log goes to followers, and it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headgate.protocol.data import Row, decode_row, encode_row
from headgate.protocol.errors import Refused

from ..cluster import Cluster
from ..effects import Append, CutLog, Effect, Note
from ..inputs import RowsRead
from ..limits import COPY_RETRY_SECONDS
from ..log_state import ProducerState
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .log import HeldLog, Log
from .producers import Opening, Producers

__all__ = ["RECONCILE", "Reconciler"]

RECONCILE = "reconcile"
"""Key of the timer: what could not be done is tried again."""

Done = Callable[[float], None]


@dataclass(slots=True)
class _Cut:
    """What becomes of the tail of one log."""

    at: int
    size: int = 0
    count: int = 0
    rows: dict[int, Row] = field(default_factory=dict)  # those that go on in another log, by where they ended in this
    taken: dict[str, int] = field(default_factory=dict)  # producer -> the first of its numbers that are taken back


class Reconciler:
    """Renews openings of producers whose rows were refused, and takes back rows that are shut out."""

    def __init__(self, effects: list[Effect], log: Log, cluster: Cluster, producers: Producers, timers: Timers) -> None:
        self._effects = effects
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._timers = timers
        self._doubted: dict[HeldLog, Done] = {}
        self._retry: Done | None = None
        self.is_cutting = False
        self.taken_back = 0

    def doubt(self, held: HeldLog, done: Done, now: float) -> None:
        """A follower refused a row of it: none goes to any follower until it is known which stay; then tell."""
        if held.doubted:
            return
        held.doubted = True
        self._doubted[held] = done
        if len(self._doubted) == 1:
            self._begin(held, now)

    def go_on(self, now: float) -> None:
        """Try again."""
        self._timers.at(RECONCILE, NEVER)
        retry, self._retry = self._retry, None
        if retry is not None:
            retry(now)

    def _try_again(self, retry: Done, now: float) -> None:
        self._retry = retry
        self._timers.at(RECONCILE, now + COPY_RETRY_SECONDS)

    # --- renewing ----------------------------------------------------------------------------------------------------

    def _begin(self, held: HeldLog, now: float) -> None:
        """Read its tail for producers, and open each of them again.

        They may write to other streams in turn, so the first of their numbers may be in another tail of the same epoch.
        """
        firsts: dict[str, int] = {}
        size = 0
        others = [one for one in self._log.own_logs() if one.revocable and one.safe < one.next and one is not held]
        others = [one for one in others if one.name.epoch == held.name.epoch]

        def each_other(row: Row, data: bytes) -> bool:
            if row.producer in firsts:
                firsts[row.producer] = min(firsts[row.producer], row.number)
            return True

        def read_others(now: float) -> None:
            if others and firsts:
                other = others.pop()
                self._read(other, other.safe, each_other, read_others)
            else:
                read(now)

        def each(row: Row, data: bytes) -> bool:
            nonlocal size
            size += len(data)
            if row.producer:
                firsts.setdefault(row.producer, row.number)
                self._producers.in_tail(row)
            return True

        def read(now: float) -> None:
            waiting, failed = dict.fromkeys(firsts), False

            def ended(opening: Opening, refused: Refused | None, now: float) -> None:
                nonlocal failed
                del waiting[opening.name]
                failed = failed or refused is not None
                if not waiting:
                    after(now)

            def after(now: float) -> None:
                if failed:
                    self._try_again(lambda now: self._begin(held, now), now)
                elif size > self._log.limits.tail_bytes:
                    facts = {"log": held.name.partition, "stream": held.name.stream, "bytes": size}
                    self._effects.append(Note("tail too long to be looked into", facts, alarming=True))
                    self._end(held, now)
                else:
                    self._look(held, now)

            for name, first in firsts.items():
                self._producers.renew(name, held.name.epoch, first, ended, now)
            if not firsts:
                after(now)

        self._read(held, held.safe, each, read_others)

    def _read(self, held: HeldLog, position: int, each: Callable[[Row, bytes], bool], then: Done) -> None:
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

    # --- taking back -------------------------------------------------------------------------------------------------

    def _has_to_go(self, held: HeldLog, row: Row) -> bool:
        if not row.producer or Safeguard.RECONCILE not in self._cluster.safeguards:
            return False
        return self._producers.fence_of(row.producer).shuts_out(held.name, row.number, row.number + row.count)

    def _look(self, held: HeldLog, now: float) -> None:
        """Find the first row that has to go."""
        found: list[int] = []

        def each(row: Row, data: bytes) -> bool:
            if self._has_to_go(held, row):
                found.append(row.first)
            return not found

        def read(now: float) -> None:
            if not found:
                self._end(held, now)
                return
            self.is_cutting, self._log.recovered = True, False
            self._log.when_landed(lambda reason, now: self._take_back(held, found[0], now), now)

        self._read(held, held.safe, each, read)

    def _take_back(self, held: HeldLog, at: int, now: float) -> None:
        """All that there is of it is on the disk, and nothing more comes."""
        cut = _Cut(at)

        def each(row: Row, data: bytes) -> bool:
            cut.size += len(data)
            if row.producer and (row.producer in cut.taken or self._has_to_go(held, row)):
                cut.taken.setdefault(row.producer, row.number)
                cut.count += row.count
            else:
                cut.rows[row.first + row.count] = row
            return True

        self._read(held, at, each, lambda now: self._write(held, cut, now))

    def _write(self, held: HeldLog, cut: _Cut, now: float) -> None:
        epoch = self._log.epoch
        if cut.rows or held.name.epoch == epoch:  # a new one, so that logs stay in the order of event ids
            epoch = max(epoch + 1, self._producers.clock.us(now) // 1_000_000)
        to = self._log.hold(held.name._replace(epoch=epoch)) if cut.rows else held
        rows: dict[int, Append] = {}
        begin = end = to.assigned
        for ended, row in cut.rows.items():
            row.first = end
            state = ProducerState(row.producer, row.epoch, row.number + row.count, row.digest, row.time)
            producer = state if row.producer else None
            rows[ended] = Append(0, to.name, encode_row(row), end, row.count, row.time, producer, bool(row.ids))
            end += row.count
        states = [self._producers.taken_back(name, number, now) for name, number in cut.taken.items()]

        def written(reason: str, now: float) -> None:
            if reason:
                self._try_again(lambda now: self._write(held, cut, now), now)
                return
            if epoch > self._log.epoch:
                self._log.begin_epoch(epoch)
            self._log.moved(held, cut.at, cut.size, to, rows, now)
            self._producers.moved(held, cut.at, to, rows.values())
            self.taken_back += cut.count
            facts = {"log": held.name.partition, "stream": held.name.stream, "from": cut.at, "events": cut.count}
            self._effects.append(Note("log rows taken back", facts | {"moved": end - begin}))
            self._end(held, now)

        self._log.cut(CutLog(0, held.name, max(cut.at, held.first), epoch, list(rows.values()), states), written)

    def _end(self, held: HeldLog, now: float) -> None:
        if self.is_cutting:
            self.is_cutting = False
            self._log.vouch(now)
        held.doubted = False
        done = self._doubted.pop(held)
        done(now)
        if self._doubted:
            self._begin(next(iter(self._doubted)), now)
