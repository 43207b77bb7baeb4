"""Copies of logs: k - 1 followers have on their disks what ours has, before a batch is acknowledged as stored.

For each log of ours, and each of its followers (the nearest brokers on the ring that we have a link to and whose disks
have room; they need not be the siblings of any key):

    leader    COPY_OFFER   we have this log from here to there
    follower  COPY_FROM    go on from here: where its copy ends, or where ours begins if that is later
    leader    COPY ...     row by row, each when our own disk has it, so that a copy is never longer than the original
    follower  COPIED       my disk has it up to there

A row that just landed is sent on at once to each follower that has all before it; a follower that is behind gets rows
read from our disk, within a window, until it has caught up. A copy holds everything from where the log begins: a broker
that has an acknowledged event has all before it, so when the leader is gone any holder of the longest copy answers for
all of it, read only. A broker that takes the place of a follower has to catch up before it counts; the old follower is
let go only then.

A follower whose disk is full says so (CannotCopy), and the next broker takes its place. After a while it is tried
again, one row at a time until one is stored; when it has all, it is back. Where there is no other broker it is just
tried.

Who holds what when PUBACK goes out: our disk, and k - 1 others whose COPIED came on a link that is still up. A broker
that never met another has none to ask, and k is 1 for it.

Why this needs no vote. A log has one writer; positions are given out once; a copy only grows, and only by what the
writer's disk has. So of two copies one is the beginning of the other, and the longer one is right. What could break
that is a writer that forgot: its folder was put back from a backup, or its disk lost what it had synced. Then a copy
is longer than the original. So on every new link each side says which logs of the other one it holds, and where they
end (HeldCopies), and a broker that comes back appends nothing (`recovered`) before a follower with copies, or else
all brokers, have said so, or none could for VOUCH_SECONDS_MAX. A longer copy ends the epoch: what is appended from then
on has another name, and the copy stays what it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from headgate.protocol.data import LogKind, LogName, decode_row
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Copy

from ..cluster import Cluster
from ..config import NodeConfig
from ..effects import Effect, Note
from ..inputs import RowsRead
from ..keyspace import distance
from ..limits import (
    COPY_FULL_SECONDS_MAX,
    COPY_FULL_SECONDS_MIN,
    COPY_RETRY_SECONDS,
    COPY_STUCK_SECONDS,
    VOUCH_SECONDS_MAX,
    WATERMARK_SECONDS,
)
from ..links import PeerInfo
from ..safeguards import Safeguard
from ..timers import Timers
from .log import HeldLog, Landed, Log
from .messages import (
    CannotCopy,
    Copied,
    CopyFrom,
    CopyOffer,
    CopyPlace,
    HeldCopies,
    HighWatermark,
    LostLog,
    LostLogs,
    RowFenced,
)
from .producers import Producers
from .reconcile import Reconciler

__all__ = [
    "Leader",
    "REPLICATION",
]

REPLICATION = "replication"
"""Key of the timer: followers that did not answer are asked again."""


@dataclass(slots=True, eq=False)
class _Progress:
    """One log of ours at one follower. `known`: it has said what it has; `sent` is an end, as is what
    it has confirmed, which the log itself knows."""

    held: HeldLog
    known: bool = False
    closed: bool = False  # it must get no more of it
    sent: int = 0
    told: int = 0  # the high watermark that it knows
    reading: bool = False
    under_way: deque[tuple[int, int]] = field(default_factory=deque)  # (end, bytes) of rows without their COPIED
    moved_at: float = 0.0


@dataclass(slots=True, eq=False)
class _Follower:
    """A broker that has our copies, or is getting them."""

    info: PeerInfo
    logs: dict[LogName, _Progress] = field(default_factory=dict)
    under_way_bytes: int = 0


@dataclass(slots=True)
class _Full:
    """A broker whose disk was full when we heard of it last, and had stored nothing since: when it is tried again."""

    until: float
    pause: float


class Leader:
    """Sends rows of our logs to followers, and counts how far each of them has come."""

    def __init__(
        self,
        config: NodeConfig,
        effects: list[Effect],
        log: Log,
        cluster: Cluster,
        producers: Producers,
        reconciler: Reconciler,
        timers: Timers,
    ) -> None:
        self._me = config.identifier
        self._name = config.name
        self._others = config.log_copies - 1
        self._effects = effects
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._reconciler = reconciler
        self._followers: dict[int, _Follower] = {}
        self._ever_sent: dict[tuple[int, LogName], int] = {}  # in this life
        self._told: dict[int, dict[LogName, tuple[int, int]]] = {}
        self._full: dict[int, _Full] = log.crowded
        self._vouch_at = float("inf")
        self._timers = timers
        self.rows_copied = 0
        self._vouchers: dict[int, None] = {}
        cluster.take_controls({Copied: self._copied, CopyFrom: self._from, HeldCopies: self._held_there})
        cluster.take_controls({RowFenced: self._fenced, CannotCopy: self._cannot})

    @property
    def needed(self) -> int:
        """How many other disks a batch has to be on; none while this broker never heard of any other."""
        return self._log.needed

    def _look_for_company(self) -> None:
        self._log.needed = 0 if self._cluster.address_book.nobody() else self._others

    def behind(self) -> int:
        """Events of ours that too few disks have."""
        return sum(max(0, held.next - self._log.safe_end(held)) for held in self._log.own_logs())

    # --- after a start -----------------------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """What earlier lives left is known: whether other brokers have to be asked before it is gone on with."""
        self._look_for_company()
        if not self._log.needed:
            for held in self._log.own_logs():
                held.became_safe(held.next)
        elif self._log.available and Safeguard.EPOCH_CHECK in self._cluster.safeguards:
            self._log.recovered = False
            self._vouch_at = now + VOUCH_SECONDS_MAX
            self._is_due(self._vouch_at)

    def _held_there(self, info: PeerInfo, told_of: HeldCopies, now: float) -> None:
        """Another broker says which logs of ours it holds, before anything else about copies."""
        is_all = told_of.is_all
        held = [(LogName(self._name, *one[:3]), one.next, one.end) for one in told_of.logs]
        for name, _, end in held:
            ours = self._log.logs.get(name)
            if ours is None and end:
                self._producers.missed()
            if end > self._may_have(info, name, ours):
                self._copy_is_longer(name, info, end, now)
        told = self._told.setdefault(info.identifier, {})
        told.update((name, (stored, end)) for name, stored, end in held)
        if is_all:
            self._vouchers[info.identifier] = None
            self._all_told(info, self._told.pop(info.identifier), now)
        everybody = len(self._vouchers) >= self._producers.brokers(now) - 1
        if everybody:
            self._producers.heard_all()
        if self._vouch_at != float("inf") and (everybody or any(name.epoch == self._log.epoch for name, *_ in held)):
            self._go_on(now)

    def _all_told(self, info: PeerInfo, told: dict[LogName, tuple[int, int]], now: float) -> None:
        """That is all it has of our logs."""
        lost: list[LostLog] = []
        for name, (stored, end) in told.items():
            ours = self._log.logs.get(name)
            here = 0 if ours is None else ours.next
            if name.kind == LogKind.EVENTS and name.epoch < self._log.epoch and here < end:
                lost.append(LostLog(name.epoch, name.stream))
            if ours is not None and self._others == 1:
                ours.became_safe(min(stored, self._may_have(info, name, ours), ours.next))
                self._log.settle(ours, now)
        if lost:
            self._cluster.tell(info, LostLogs(tuple(lost)), now)

    def _go_on(self, now: float) -> None:
        self._vouch_at = float("inf")
        if not self._reconciler.is_cutting:  # else it does that when it has written what it cuts
            self._log.vouch(now)
        self._retarget(now)
        self.pump_all(now)

    def pump_all(self, now: float) -> None:
        """Send on whatever may be sent."""
        for follower in list(self._followers.values()):
            for progress in list(follower.logs.values()):
                self._pump(follower, progress, now)

    def _may_have(self, info: PeerInfo, name: LogName, held: HeldLog | None) -> int:
        """Up to there it may have a log of ours although our disk has forgotten nothing: that had as much when this
        life began, or it was sent it, or it begins where ours begins by now, as retention has it.
        """
        sent = self._ever_sent.get((info.identifier, name), 0)
        return sent if held is None else max(sent, held.opened, held.first)

    def _copy_is_longer(self, name: LogName, info: PeerInfo, end: int, now: float) -> None:
        """Events of ours are there that our disk does not know: this log must not be written to any more."""
        if name.epoch == self._log.epoch and Safeguard.EPOCH_CHECK in self._cluster.safeguards:
            ours = self._log.logs.get(name)
            facts = {"log": name.partition, "stream": name.stream, "ours": 0 if ours is None else ours.next}
            facts |= {"copy": end, "broker": info.name}
            self._effects.append(Note("log is older than its copy", facts, alarming=True))
            self._log.begin_epoch(max(self._log.epoch + 1, self._producers.clock.us(now) // 1_000_000))
            self._producers.doubt()
            self._go_on(now)

    # --- who has copies ----------------------------------------------------------------------------------------------

    def peer_up(self, info: PeerInfo, now: float) -> None:
        """There is a link to this broker."""
        self._look_for_company()
        self._retarget(now)

    def peer_down(self, info: PeerInfo, now: float) -> None:
        """There is none any more: what it has is not counted on."""
        self._let_go(info.identifier)
        self._full.pop(info.identifier, None)
        self._retarget(now)

    def _wanted(self, now: float) -> list[PeerInfo]:
        """The nearest ones; whose disk is full, where there are not enough others."""
        linked = sorted(self._cluster.linked(), key=lambda info: distance(self._me, info.identifier))
        return sorted(linked, key=lambda info: self._is_full(info, now))[: self._others]

    def _is_full(self, info: PeerInfo, now: float) -> bool:
        full = self._full.get(info.identifier)
        return full is not None and now < full.until

    def _retarget(self, now: float) -> None:
        if not self._log.available:
            return
        wanted = self._wanted(now)
        for info in wanted:
            if info.identifier not in self._followers:
                follower = self._followers[info.identifier] = _Follower(info)
                for held in self._log.own_logs():
                    self._offer(follower, held, now)
        names = {info.identifier for info in wanted}
        if names and all(self._is_even(self._followers[name]) for name in sorted(names)):
            for name in [name for name in self._followers if name not in names]:
                self._let_go(name)
            for held in self._log.own_logs():
                self._look_for_dead_end(held, now)

    def _let_go(self, identifier: int) -> None:
        """It has our copies no more, or perhaps not: what it has does not count."""
        follower = self._followers.pop(identifier, None)
        for progress in () if follower is None else follower.logs.values():
            progress.held.confirmed.pop(identifier, None)

    def _is_even(self, follower: _Follower) -> bool:
        """Whether it has all that we have."""
        held = self._log.own_logs()
        logs, me = follower.logs, follower.info.identifier
        return all(one.name in logs and (logs[one.name].closed or one.confirmed[me] >= one.next) for one in held)

    # --- to a follower -----------------------------------------------------------------------------------------------

    def _offer(self, follower: _Follower, held: HeldLog, now: float) -> None:
        progress = follower.logs.get(held.name)
        if progress is None:
            progress = follower.logs[held.name] = _Progress(held)
            held.confirmed[follower.info.identifier] = 0
        progress.moved_at = now
        self._cluster.tell(follower.info, CopyOffer(*held.name, held.first, held.next), now)
        self._is_due(now + COPY_RETRY_SECONDS)

    def landed(self, rows: Iterable[Landed], now: float) -> None:
        """Our disk has these rows of our logs: followers that have all before a row get it at once."""
        for held, first, end, row, producer in rows:
            for follower in self._followers.values():
                progress = follower.logs.get(held.name)
                if progress is None:
                    self._offer(follower, held, now)
                elif progress.sent == first and self._may_go_on(progress) and self._has_room(follower):
                    self._send(follower, progress, row, end, producer, now)
                else:
                    self._is_due(now + COPY_RETRY_SECONDS)

    def _may_go_on(self, progress: _Progress) -> bool:
        held_up = progress.closed or progress.reading or progress.held.doubted
        return progress.known and self._log.recovered and not held_up

    def _has_room(self, follower: _Follower) -> bool:
        window = 1 if follower.info.identifier in self._full else self._log.limits.copy_window_bytes
        return follower.under_way_bytes < window and not follower.info.session.paused

    def _send(self, follower: _Follower, progress: _Progress, row: bytes, end: int, producer: str, now: float) -> None:
        name, safe = progress.held.name, progress.held.safe
        opening = self._producers.start_of(producer, name) if producer else (0, 0)
        copy = Copy(name.broker, name.epoch, name.kind, name.stream, row, safe, *opening)
        self._cluster.peers.tell(follower.info.address, copy, now)
        progress.told = safe
        self.rows_copied += 1
        progress.sent = end
        self._ever_sent[follower.info.identifier, name] = end
        if not progress.under_way:
            progress.moved_at = now
        progress.under_way.append((end, len(row)))
        follower.under_way_bytes += len(row)
        self._is_due(now + COPY_RETRY_SECONDS)

    def _pump(self, follower: _Follower, progress: _Progress, now: float) -> None:
        """Send on what our disk has and it has not."""
        held = progress.held
        is_gone = progress.sent < held.first and not progress.closed  # retention took what comes next
        if progress.known and (is_gone or progress.sent > held.next):  # or what it was sent has been taken back
            progress.known = False
            self._offer(follower, held, now)
        if progress.sent >= held.next or not self._may_go_on(progress):
            return
        if not self._has_room(follower):
            self._is_due(now + COPY_RETRY_SECONDS)
            return
        progress.reading = True

        def came(read: RowsRead, now: float) -> None:
            progress.reading = False
            if self._followers.get(follower.info.identifier) is not follower or not self._may_go_on(progress):
                return
            if read.damage:
                self._cannot_copy(held, read.damage, now)
                return
            for data in read.rows:
                row = decode_row(data)
                if row.first == progress.sent and self._has_room(follower):
                    self._send(follower, progress, data, row.first + row.count, row.producer, now)
            if read.rows:
                self._pump(follower, progress, now)

        self._log.read_rows(held.name, progress.sent, self._log.limits.copy_chunk_bytes, came)

    def _cannot_copy(self, held: HeldLog, damage: str, now: float) -> None:
        """Our own disk cannot give what it should have: followers get no more of this log, so another one begins."""
        facts = {"log": held.name.partition, "stream": held.name.stream, "damage": damage}
        self._effects.append(Note("log cannot be copied", facts, alarming=True))
        for follower in self._followers.values():
            progress = follower.logs.get(held.name)
            if progress is not None:
                progress.closed = True
        if held.name.epoch == self._log.epoch:
            self._log.begin_epoch(max(self._log.epoch + 1, self._producers.clock.us(now) // 1_000_000))
        self._look_for_dead_end(held, now)

    def _look_for_dead_end(self, held: HeldLog, now: float) -> None:
        """Whether too few of its followers take more of a log."""
        known = [follower.logs[held.name] for follower in self._followers.values() if held.name in follower.logs]
        if sum(progress.closed for progress in known) > len(known) - self.needed >= 0:
            ends = sorted((one.sent if one.closed else float("inf") for one in known), reverse=True)
            self._log.give_up(held, max(held.safe, int(ends[self.needed - 1])), now)

    def _from(self, info: PeerInfo, place: CopyPlace, now: float) -> None:
        """A follower says from where to go on."""
        name, end = place.name, place.end
        follower, held = self._followers.get(info.identifier), self._log.logs.get(name)
        progress = None if follower is None else follower.logs.get(name)
        if follower is None or held is None or progress is None:
            return
        if end > self._may_have(info, name, held):
            self._copy_is_longer(name, info, end, now)
            progress.closed, end = True, held.opened  # up to there it is the same
        if end > held.next:  # it has what we took back, and was not there to say so
            progress.closed, end = True, held.next
        progress.known = True
        progress.sent = held.confirmed[info.identifier] = end
        follower.under_way_bytes -= sum(size for _, size in progress.under_way)
        progress.under_way.clear()
        progress.moved_at = now
        self._log.settle(held, now)
        if progress.closed:
            self._look_for_dead_end(held, now)
        self._pump(follower, progress, now)

    def _fenced(self, info: PeerInfo, place: RowFenced, now: float) -> None:
        """A follower does not take a row, for it holds to another opening of its producer."""
        held = self._log.logs.get(place.name)
        if held is not None and held.own:
            self._reconciler.doubt(held, self.pump_all, now)
        self._from(info, place, now)

    def _cannot(self, info: PeerInfo, place: CannotCopy, now: float) -> None:
        """A follower's disk has no room: another broker is to have the copies, as far as there is one."""
        if Safeguard.OTHER_FOLLOWER not in self._cluster.safeguards:
            self._from(info, place, now)
            return
        follower, known = self._followers.get(info.identifier), self._full.get(info.identifier)
        if known is None:
            self._effects.append(Note("no room for copies", {"broker": info.name}, alarming=True))
        if not self._is_full(info, now):  # else it is the same word, for another log
            pause = COPY_FULL_SECONDS_MIN if known is None else min(COPY_FULL_SECONDS_MAX, 2 * known.pause)
            self._full[info.identifier] = _Full(now + pause, pause)
        for progress in () if follower is None else follower.logs.values():
            progress.known = False  # what is on its way is not taken: it is offered again when it is time
            progress.under_way.clear()
        if follower is not None:
            follower.under_way_bytes = 0
        self._is_due(self._full[info.identifier].until)
        self._retarget(now)

    def _copied(self, info: PeerInfo, place: Copied, now: float) -> None:
        """A follower's disk has more of a log of ours."""
        name, end = place.name, place.end
        follower = self._followers.get(info.identifier)
        progress = None if follower is None else follower.logs.get(name)
        if follower is None or progress is None or not progress.known:
            return
        if end > progress.sent:
            raise ProtocolViolation(f"Copied: {end} is more than the {progress.sent} that were sent")
        confirmed = progress.held.confirmed[info.identifier]
        if end > confirmed and self._full.pop(info.identifier, None) is not None:
            self._effects.append(Note("room for copies again", {"broker": info.name}))
        progress.held.confirmed[info.identifier] = max(confirmed, end)
        while progress.under_way and progress.under_way[0][0] <= end:
            follower.under_way_bytes -= progress.under_way.popleft()[1]
        progress.moved_at = now
        self._log.settle(progress.held, now)
        if self._others > 1:  # else a copy is the second disk, whatever it is told
            self._is_due(now + WATERMARK_SECONDS)
        if len(self._followers) > self._others:
            self._retarget(now)
        self._pump(follower, progress, now)

    # --- time --------------------------------------------------------------------------------------------------------

    def _is_due(self, at: float) -> None:
        self._timers.by(REPLICATION, at)

    def ask_again(self, now: float) -> None:
        """Ask again the brokers that did not answer, and go on where there was no room."""
        self._is_due(self._vouch_at)
        if self._vouch_at <= now:
            self._effects.append(Note("log not vouched for", {"seconds": VOUCH_SECONDS_MAX}))
            self._go_on(now)
        if self._full:
            self._retarget(now)
        for follower in list(self._followers.values()):
            full = self._full.get(follower.info.identifier)
            if full is not None and now < full.until:
                self._is_due(full.until)
                continue
            for progress in list(follower.logs.values()):
                self._look_after(follower, progress, now)
        for full in self._full.values():
            if now < full.until:
                self._is_due(full.until)

    def _tell_watermark(self, follower: _Follower, progress: _Progress, now: float) -> None:
        held = progress.held
        if self._others > 1 and progress.known and progress.told < held.safe:
            progress.told = held.safe
            place = HighWatermark(*held.name, min(held.first, held.safe), held.safe)
            self._cluster.tell(follower.info, place, now)

    def _look_after(self, follower: _Follower, progress: _Progress, now: float) -> None:
        self._tell_watermark(follower, progress, now)
        if progress.closed:
            return
        if not progress.known:
            if progress.moved_at + COPY_RETRY_SECONDS <= now:
                self._offer(follower, progress.held, now)
        elif progress.under_way and progress.moved_at + COPY_STUCK_SECONDS <= now:
            progress.known = False
            self._offer(follower, progress.held, now)
        else:
            self._pump(follower, progress, now)
        confirmed = progress.held.confirmed[follower.info.identifier]
        if not progress.known or progress.under_way or confirmed < progress.held.next:
            self._is_due(now + COPY_RETRY_SECONDS)

    def validate(self) -> None:
        """Bytes under way and confirmed ends add up, and every follower has a link."""
        for identifier, follower in self._followers.items():
            assert follower.info.identifier == identifier and follower.info.link is not None
            sizes = [size for one in follower.logs.values() for _, size in one.under_way]
            assert follower.under_way_bytes == sum(sizes)
            for name, progress in follower.logs.items():
                assert progress.held is self._log.logs[name] and progress.held.own
                # Who does not know how far a follower is looks at nothing that it was sent before.
                assert not progress.known or progress.held.confirmed[identifier] <= progress.sent <= progress.held.next
        for held in self._log.own_logs():
            assert all(held.name in self._followers[one].logs for one in held.confirmed)
        assert self._log.needed == (0 if self._cluster.address_book.nobody() else self._others)
