"""The log: what this broker keeps on disk of stored streams, its own and copies of others', and the requests that wait
for it.

A batch of a stored stream goes through these stages, and never back:

    appended    it has a place: position (broker, epoch, stream, number) and event ids; the disk was asked to keep it
    on disk     our own disk has it, synced: now followers get it (`leader.py`)
    safe        k disks have it, our own and those of k - 1 followers: now it is matched and delivered

PUBACK of a batch in mode `stored` goes out when it is safe; in mode `accepted` at once. So

    whatever was delivered stays in the log     nothing is delivered, or read, that could still be taken back
    whatever was acknowledged survives          any k - 1 of the disks that have it may be lost

What waits to be safe stands in the order of its log (`HeldLog.uncommitted`), and that is the order of delivery. It is
memory, so it counts as pending; when followers stay away for long, `check_room` refuses what comes. What an earlier
life left here is not delivered when it becomes safe: whoever wants it reads it.

The high watermark is written down now and then (`checkpoint`), so that the next life may have its rows read before any
follower is heard. It may stay behind and is never ahead: it is taken from `safe`.

There is one writer for each log, this broker, and positions are given out here, in the order of acceptance, without a
hole. The disk answers in that order too (`Stored(upto)`), so what is pending is a queue. When the disk is full all that
is pending has failed (`NotStored`): its positions are given again, its producers are where they were, and each client
that waits gets ERROR 112. The disk keeps nothing more until it is told, among all else that it is asked, that we know
(`WriteOn`): what we asked for meanwhile built on what failed. When the disk fails in any other way it is unknown what
it holds, and this broker stops (`Halt`): what it would say from then on could be wrong.

What is safe needs no vote: a log has one writer, copies only ever grow, and of two copies of one log the shorter is a
beginning of the longer. The broker that has the most has everything.

A request that waits (`wait`) waits for ends of logs to be safe, at most STORE_SECONDS_MAX. Then the answer is ERROR 112
as well, and it may be in the log all the same: to send it again with the same stamp is safe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from headgate.protocol.data import Batch, LogKind, LogName, LogShift, Row, encode_row
from headgate.protocol.errors import ErrorCode, Refused

from ..cause import Cause
from ..delivery import Stream
from ..effects import (
    Append,
    CutLog,
    Effect,
    FindIds,
    FindSize,
    FindTime,
    Halt,
    KeepDurable,
    KeepProducer,
    KeepWatermarks,
    Note,
    ReadRows,
    TrimLog,
    WriteOn,
)
from ..inputs import AsideRemoved, NotStored, Opened, RowsRead, Stored, Trimmed
from ..limits import CHECKPOINT_SECONDS, DEFAULT_LIMITS, LOG_COPIES_DEFAULT, STORE_SECONDS_MAX, Limits
from ..log_state import LogState, ProducerState
from ..safeguards import SAFEGUARDS, Safeguard
from ..timers import NEVER, Timers

__all__ = [
    "CHECKPOINT",
    "Committed",
    "HeldLog",
    "Log",
    "PENDING_OVERHEAD_BYTES",
    "Pending",
    "Then",
    "WAITERS",
]

WAITERS = "waiters"
"""Key of the timer: a request that waits for disks has waited long enough."""

CHECKPOINT = "checkpoint"
"""Key of the timer: high watermarks are written down."""


class Committed(NamedTuple):
    """A batch of ours, to be delivered when its row is before the high watermark; by then it has its place for good."""

    stream: Stream
    batch: Batch
    base: int
    time: int
    log: LogName | None = None
    first: int = 0
    shift: LogShift | None = None


class _Uncommitted(NamedTuple):
    """A row that our disk has, and that waits for the high watermark: where it ends, and what becomes of it then."""

    end: int
    size: int
    cause: str
    batch: Committed


# A log that is held here: what the disk has of it, how much of that is safe, and how much of it may be read.
#
#     first ......... safe ......... next ......... assigned
#           k disks         ours           asked of our disk
#
# Of a log of events of our own the rows behind `safe` may be taken back: a producer that did not hear that they are
# safe may have sent them again to another broker, and then those are the ones that count (`reconcile.py`). So they are
# neither delivered nor read before they are safe. `safe` says what was safe once: that does not end when a follower
# goes.


@dataclass(slots=True, eq=False)
class HeldLog:
    """One log that is held here, ours or a copy. Events `first` to `next - 1` are on disk; `assigned` comes next."""

    name: LogName
    own: bool
    first: int = 0
    next: int = 0
    assigned: int = 0
    bytes: int = 0
    first_time: int = 0
    last_time: int = 0
    opened: int = 0  # where it ended when this life began
    safe: int = 0
    doubted: bool = False  # whether it is being found out which of its rows are taken back: none goes to followers
    unproven: bool = False  # a copy that has rows before k disks have them, so what its owner says of that counts
    kept: int = 0  # the high watermark that the disk was asked to remember
    orphan: bool = False  # a copy of what the disk of the broker that wrote it has not got
    offered: int = 0  # a copy: up to where its owner had it when it offered it; some of that may be on its disk alone
    dead_end: int | None = None  # its followers take no rows behind it: those are not delivered
    uncommitted: deque[_Uncommitted] = field(default_factory=deque, repr=False)  # rows of this life behind `safe`
    waiters: deque[Any] = field(default_factory=deque, repr=False)
    confirmed: dict[int, int] = field(default_factory=dict, repr=False)
    """Sibling -> up to where its disk has this log of ours, as far as it has said so on the link that there is."""
    partition: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.partition = self.name.partition

    def is_now(self, state: LogState) -> None:
        """What the disk says of it."""
        self.first, self.next, self.bytes = state.first, state.next, state.bytes
        self.first_time, self.last_time = state.first_time, state.last_time
        self.assigned = max(self.assigned, self.next)
        self.kept = max(self.kept, state.safe)
        self.became_safe(max(self.first, state.safe))  # what is gone is not taken back

    def grew(self, first: int, count: int, size: int, time: int) -> None:
        """The disk has one row more."""
        self.next = first + count
        self.bytes += size
        self.first_time = self.first_time or time
        self.last_time = time

    def became_safe(self, end: int) -> None:
        """Enough disks have it up to there."""
        self.safe = max(self.safe, end)

    def ended_at(self, position: int, size: int) -> None:
        """What was behind, so many bytes, is put aside. Some of it may be gone by then, and that is not given back."""
        self.next = self.assigned = max(position, self.first)
        self.bytes -= size
        if self.next == self.first:
            self.bytes = self.first_time = self.last_time = 0

    @property
    def revocable(self) -> bool:
        """Whether rows of it may be taken back."""
        return (self.own or self.unproven) and self.name.kind == LogKind.EVENTS

    @property
    def known(self) -> int:
        """Up to where it goes, as far as is known here, wherever its rows are and whether they are safe or not."""
        return max(self.next, self.offered)

    @property
    def readable(self) -> int:
        """Up to where it may be read."""
        return min(self.safe, self.next) if self.revocable else self.next


# What the disk was asked to keep and has not answered for: in the order of the tickets, and so of the answers.

PENDING_OVERHEAD_BYTES = 600
"""What a pending row costs beside its bytes: the objects around it."""

Then: TypeAlias = Callable[[str, float], None]
"""Told when the disk has it (""), or why it has not."""


@dataclass(slots=True)
class Pending:
    """A row of a log, a word about a producer, the end of a log, or the state of a durable subscription (in `row`).

    `held` is the log that grows by it.
    """

    ticket: int
    then: Then | None
    held: HeldLog | None = None
    row: bytes = b""
    first: int = 0
    count: int = 0
    time: int = 0
    producer: ProducerState | None = None
    batch: Committed | None = None
    others: list[Then] | None = None
    cause: str = ""

    @property
    def size(self) -> int:
        """What it counts for among what may wait."""
        return len(self.row) + PENDING_OVERHEAD_BYTES

    def also(self, then: Then) -> None:
        """Tell this one as well, and last. Any number may ask for that, so they are a list and not one in another."""
        if self.others is None:
            self.others = []
        self.others.append(then)

    def tell(self, reason: str, now: float) -> None:
        """All that wait, in the order of asking."""
        if self.then is not None:
            self.then(reason, now)
        for then in self.others or ():
            then(reason, now)


Told: TypeAlias = Callable[[Refused | None, float], None]
"""Told when all of it is safe, or why that is not so."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """A request that waits for ends of logs to be safe, one after the other."""

    needs: deque[tuple[HeldLog, int]]
    tell: Told
    deadline: float
    batch: bool  # which was published, and has its acknowledgement when this is answered
    done: bool = False


class Landed(NamedTuple):
    """Our disk has this row of a log of ours: events `first` to `end - 1`."""

    held: HeldLog
    first: int
    end: int
    row: bytes
    producer: str = ""


class Log:
    """Asks the disk to keep rows, in order, and tells the requests that wait what came of it."""

    def __init__(
        self,
        broker: str,
        effects: list[Effect],
        timers: Timers,
        cause: Cause,
        safeguards: frozenset[Safeguard] = SAFEGUARDS,
        limits: Limits = DEFAULT_LIMITS,
        copies: int = LOG_COPIES_DEFAULT,
    ) -> None:
        self.limits = limits
        self.broker = broker
        self._copies = copies
        self._synced = Safeguard.SYNC_BEFORE_ACK in safeguards
        self._copied = Safeguard.COPIES_BEFORE_ACK in safeguards
        self._delivers_late = Safeguard.DELIVER_AT_HIGH_WATERMARK in safeguards
        self._effects = effects
        self._timers = timers
        self._cause = cause
        self.available = False
        self.damage: list[str] = []
        self.halted = ""
        self.full = ""
        """Why the disk took nothing when it was last asked to keep something; empty when it did."""
        self.closing = False
        self.epoch = 0
        self.recovered = True  # no broker can know more of our log than we do: it may be written to
        self.logs: dict[LogName, HeldLog] = {}
        self.pending_bytes = 0
        self.appended = self.failed = self.late = 0
        self.needed = 0
        """On how many other disks a row has to be; none while this broker never heard of any other."""
        self.crowded: dict[int, Any] = {}
        """Brokers whose disks had no room for a copy."""
        self.landed: list[Landed] = []
        """Rows of our own logs that our disk has, and that were not told to any other part yet."""
        self.committed: list[Committed] = []
        """Batches before the high watermark that were not delivered yet."""
        self.by_stream: dict[str, list[HeldLog]] = {}
        """Logs of events by their stream, in the order in which they were heard of."""
        self.changed: dict[LogName, None] = {}
        """Logs that are new, or begin or may be read up to another place than before, and were not told yet."""
        self._pending: deque[Pending] = deque()
        self._waiters: deque[_Waiter] = deque()
        self._batches = 0  # waiters that are
        self._held_back: deque[tuple[int, Callable[[float], None]]] = deque()
        self._ticket = 0
        self._lookups: dict[int, tuple[Callable[[Any, float], None], str]] = {}  # and why it is asked for
        self._lookup = 0

    # --- what is held ------------------------------------------------------------------------------------------------

    def opened(self, happened: Opened) -> None:
        """What earlier lives left here."""
        self.available = True
        self.epoch = happened.epoch
        for state in happened.logs:
            held = self.hold(state.name, state)
            held.opened = state.next
        self.damage = happened.damage
        for text in happened.damage:
            self._effects.append(Note("log damaged", {"damage": text}, alarming=True))

    def hold(self, name: LogName, state: LogState | None = None) -> HeldLog:
        """The log of that name, new when there was none."""
        held = self.logs.get(name)
        if held is None:
            own = name.broker == self.broker
            held = self.logs[name] = HeldLog(name, own)
            held.unproven = not own and self._copies > 2  # of two disks its owner's has it, and this one
            if name.kind == LogKind.EVENTS:
                self.by_stream.setdefault(name.stream, []).append(held)
                self.changed[name] = None
        if state is not None:
            self.changed[name] = None
            held.is_now(state)
        return held

    def own(self, kind: LogKind, stream: str) -> HeldLog:
        """The log that we write such things to."""
        return self.hold(LogName(self.broker, self.epoch, int(kind), stream))

    def own_logs(self) -> list[HeldLog]:
        """All that are ours, of former epochs too."""
        return [held for held in self.logs.values() if held.own]

    def begin_epoch(self, epoch: int) -> None:
        """Positions that we do not know were given out in this one: from now on we write under another."""
        assert epoch > self.epoch
        self.epoch = epoch

    def trimmed(self, happened: Trimmed) -> None:
        """The disk let go of old rows."""
        self.hold(happened.state.name, happened.state)

    def aside_removed(self, happened: AsideRemoved) -> None:
        """The disk let go of rows that were put aside."""
        self._effects.append(Note("rows put aside removed", {"rows": happened.rows, "bytes": happened.bytes}))

    # --- writing -----------------------------------------------------------------------------------------------------

    def check_room(self, size: int) -> None:
        """Raises Refused when so many bytes more may not wait for the disks."""
        if not self.available:
            text = "this broker keeps no log: publish to a stream whose durability is memory, or to another broker"
            raise Refused(ErrorCode.UNSUPPORTED, text)
        if self.closing:
            raise Refused(ErrorCode.UNAVAILABLE, "this broker is shutting down: publish to another one")
        if self.pending_bytes + size > self.limits.log_pending_bytes or self._batches >= self.limits.log_waiters:
            text = "the disk of this broker, or of its siblings, is behind: nothing was stored, try again in a moment"
            raise Refused(ErrorCode.NOT_STORED, text)

    def hold_back(self, size: int, write: Callable[[float], None]) -> None:
        """Do this as soon as the log may be written to."""
        self._held_back.append((size + PENDING_OVERHEAD_BYTES, write))
        self.pending_bytes += size + PENDING_OVERHEAD_BYTES

    def when_vouched(self, size: int, write: Callable[[float], None], now: float) -> None:
        """Do this now, or as soon as the log may be written to."""
        if self.recovered:
            write(now)
        else:
            self.hold_back(size, write)

    def vouch(self, now: float) -> None:
        """From now on the log may be written to."""
        self.recovered = True
        while self._held_back:
            size, write = self._held_back.popleft()
            self.pending_bytes -= size
            write(now)

    def append(
        self,
        held: HeldLog,
        row: Row,
        producer: ProducerState | None = None,
        then: Then | None = None,
        batch: Committed | None = None,
    ) -> int:
        """Put a row at the end of a log of ours; returns where it ends. `batch` is to be delivered when it is safe."""
        row.first = held.assigned
        self.append_bytes(held, encode_row(row), row, producer, then, batch)
        return held.assigned

    def append_bytes(
        self,
        held: HeldLog,
        data: bytes,
        row: Row,
        producer: ProducerState | None = None,
        then: Then | None = None,
        batch: Committed | None = None,
    ) -> None:
        """Put a row that is encoded already at the end of a log, which is where it belongs."""
        assert row.first == held.assigned
        held.assigned += row.count
        self.appended += row.count
        pending = Pending(self._next_ticket(), then, held, data, row.first, row.count, row.time, producer, batch)
        self._ask(pending)
        self._effects.append(
            Append(pending.ticket, held.name, data, row.first, row.count, row.time, producer, bool(row.ids))
        )

    def keep_producer(self, state: ProducerState, then: Then) -> None:
        """Remember this of a producer."""
        pending = Pending(self._next_ticket(), then, time=state.time, producer=state)
        self._ask(pending)
        self._effects.append(KeepProducer(pending.ticket, state))

    def keep_durable(self, name: str, state: bytes, then: Then) -> None:
        """Keep the state of a durable subscription on our disk; forget it when it is empty."""
        assert "\0" not in name
        pending = Pending(self._next_ticket(), then, row=state)
        self._ask(pending)
        self._effects.append(KeepDurable(pending.ticket, name, state))

    def cut(self, cut: CutLog, then: Then) -> None:
        """End a log of ours, its rows going on in another one; the caller has `moved` called when it is so."""
        cut.ticket = self._next_ticket()
        for row in cut.rows:
            row.ticket = cut.ticket
        self._ask(Pending(cut.ticket, then))
        self._effects.append(cut)

    def moved(self, held: HeldLog, at: int, size: int, to: HeldLog, rows: dict[int, Append], now: float) -> None:
        """It is cut. These rows, by where they ended in it, go on in another log; the others are never delivered.

        A client that waits for what was behind is told to send it again: with its stamp that is safe.
        """
        held.ended_at(at, size)
        for row in rows.values():
            to.assigned = row.first + row.count
            to.grew(row.first, row.count, len(row.row), row.time)
            producer = "" if row.producer is None else row.producer.name
            self.landed.append(Landed(to, row.first, to.assigned, row.row, producer))
        waiting, held.uncommitted = held.uncommitted, deque()
        for one in waiting:
            if one.end <= at:
                held.uncommitted.append(one)
            elif one.end in rows:
                row = rows[one.end]
                to.uncommitted.append(one._replace(end=row.first + row.count))
            else:
                self.pending_bytes -= one.size
        for waiter in list(self._waiters):
            if not waiter.done and any(one is held and end > at for one, end in waiter.needs):
                text = "the log was put in order after brokers had lost sight of each other: send it again"
                self._answer(waiter, Refused(ErrorCode.NOT_STORED, text), now)
        self.settle(to, now)

    def give_up(self, held: HeldLog, end: int, now: float) -> None:
        """Followers take no rows of it behind `end`: those are not delivered, and nobody waits for them any more."""
        if held.dead_end is not None and held.dead_end <= end:
            return
        held.dead_end, before = end, len(held.uncommitted)
        while held.uncommitted and held.uncommitted[-1].end > end:
            self.pending_bytes -= held.uncommitted.pop().size
        rows = before - len(held.uncommitted)
        if rows:
            facts = {"log": held.name.partition, "stream": held.name.stream, "from": end, "rows": rows}
            self._effects.append(Note("rows not delivered", facts, alarming=True))
        for waiter in list(self._waiters):
            if not waiter.done and any(one is held and upto > end for one, upto in waiter.needs):
                text = "no other disk takes more of this log; it is on that of this broker all the same: send it again"
                self._answer(waiter, Refused(ErrorCode.NOT_STORED, text), now)

    def when_landed(self, then: Then, now: float) -> None:
        """Tell when the disk has, or has not, all that it was asked for until now."""
        if not self._pending:
            then("", now)
        else:
            self._pending[-1].also(then)

    def _next_ticket(self) -> int:
        self._ticket += 1
        return self._ticket

    def _ask(self, pending: Pending) -> None:
        pending.cause = self._cause.text
        self._pending.append(pending)
        self.pending_bytes += pending.size

    # --- looking up --------------------------------------------------------------------------------------------------

    def read_rows(self, name: LogName, position: int, bytes_max: int, then: Callable[[RowsRead, float], None]) -> None:
        """The rows of a log from the one that holds this position on."""
        self._effects.append(ReadRows(self._next_lookup(then), name, position, bytes_max))

    def find_time(self, name: LogName, time: int, then: Callable[[Any, float], None]) -> None:
        """The first position of this time or later; None when there is no such log."""
        self._effects.append(FindTime(self._next_lookup(then), name, time))

    def find_size(self, name: LogName, size: int, then: Callable[[Any, float], None]) -> None:
        """The first position of the newest rows of so many bytes."""
        self._effects.append(FindSize(self._next_lookup(then), name, size))

    def find_ids(self, producer: str, after: int, then: Callable[[Any, float], None]) -> None:
        """Rows of a producer that have ids, and where to go on."""
        self._effects.append(FindIds(self._next_lookup(then), producer, after))

    def trim(self, name: LogName, below: int) -> None:
        """Let go of the rows before that position."""
        self._effects.append(TrimLog(name, below))

    def take_lookup(self, ticket: int) -> Callable[[Any, float], None]:
        """What is to be done with the answer to one of these."""
        then, cause = self._lookups.pop(ticket)
        self._cause.also(cause)
        return then

    def _next_lookup(self, then: Callable[[Any, float], None]) -> int:
        self._lookup += 1
        self._lookups[self._lookup] = then, self._cause.text
        return self._lookup

    # --- what the disk says ------------------------------------------------------------------------------------------

    def stored(self, happened: Stored, now: float) -> None:
        """All that was asked for up to there is on the disk."""
        self.full = ""
        grown: dict[LogName, HeldLog] = {}
        while self._pending and self._pending[0].ticket <= happened.upto:
            pending = self._pending.popleft()
            self._cause.also(pending.cause)
            held = pending.held
            if held is not None:
                grown[held.name] = held
                held.grew(pending.first, pending.count, len(pending.row), pending.time)
                if held.own:
                    producer = "" if pending.producer is None else pending.producer.name
                    self.landed.append(Landed(held, pending.first, held.next, pending.row, producer))
            if held is not None and pending.batch is not None and (held.dead_end is None or held.next <= held.dead_end):
                held.uncommitted.append(_Uncommitted(held.next, pending.size, pending.cause, pending.batch))
            else:
                self.pending_bytes -= pending.size
            pending.tell("", now)
        for held in grown.values():
            self.settle(held, now)

    def take_landed(self) -> list[Landed]:
        """Takes them out; the caller tells the other parts."""
        landed, self.landed = self.landed, []
        return landed

    def take_changed(self) -> list[LogName]:
        """Takes them out, as they came."""
        changed, self.changed = self.changed, {}
        return list(changed)

    def take_committed(self) -> list[Committed]:
        """Takes them out, those of one log in its order; the caller has them delivered."""
        committed, self.committed = self.committed, []
        return committed

    def checkpoint(self, now: float) -> None:
        """Have the disk remember the high watermarks that have moved."""
        self._timers.at(CHECKPOINT, NEVER)
        moved = [held for held in self.logs.values() if held.revocable and held.kept < held.readable]
        for held in moved:
            held.kept = held.readable
        if moved and self.available:
            self._effects.append(KeepWatermarks({held.name: held.kept for held in moved}))

    def not_stored(self, happened: NotStored, now: float) -> None:
        """Nothing of what is pending is in the logs."""
        if happened.fatal:
            self.halted = happened.reason
            self._effects.clear()
            self._effects += (
                Note("disk failed", {"reason": happened.reason}, alarming=True),
                Halt(happened.reason),
            )
            return
        self.full = happened.reason
        self._effects.append(WriteOn())  # before anything that is asked for because of this
        failed, self._pending = list(self._pending), deque()
        self.pending_bytes -= sum(pending.size for pending in failed)
        self._effects.append(Note("not stored", {"rows": len(failed), "reason": happened.reason}, alarming=True))
        for pending in failed:
            self._cause.also(pending.cause)
            self.failed += pending.count
            if pending.held is not None:
                pending.held.assigned = pending.held.next
        for waiter in list(self._waiters):
            if not waiter.done and any(end > held.assigned for held, end in waiter.needs):
                text = f"it is not stored ({happened.reason}): make room on the broker's disk, then send it again"
                self._answer(waiter, Refused(ErrorCode.NOT_STORED, text), now)
        for pending in failed:
            pending.tell(happened.reason, now)

    # --- who waits ---------------------------------------------------------------------------------------------------

    def wait(self, needs: Sequence[tuple[HeldLog, int]], tell: Told, now: float, batch: bool = False) -> None:
        """Tell when these logs are safe up to these ends; at once when they are. `batch`: whether one was published."""
        waiter = _Waiter(deque(needs), tell, now + STORE_SECONDS_MAX, batch)
        self._batches += batch
        self._waiters.append(waiter)
        self._timers.by(WAITERS, waiter.deadline)
        self._go_on(waiter, now)

    def safe_end(self, held: HeldLog) -> int:
        """Up to where enough disks have a log; of a copy it is ours that counts."""
        if not self._synced:
            return held.assigned
        if held.unproven and held.revocable:
            return held.readable
        if not self.needed or not held.own or not self._copied:
            return held.next
        if len(held.confirmed) < self.needed:
            return 0
        return min(held.next, sorted(held.confirmed.values(), reverse=True)[self.needed - 1])

    def told_safe(self, held: HeldLog, end: int, now: float) -> None:
        """The owner of this copy says up to where enough disks have it."""
        if held.unproven and end > held.safe:
            held.became_safe(end)
            self.settle(held, now)
            self._timers.by(CHECKPOINT, now + CHECKPOINT_SECONDS)

    def settle(self, held: HeldLog, now: float) -> None:
        """More of it may be safe than was."""
        safe = self.safe_end(held)
        held.became_safe(safe)
        self.changed[held.name] = None
        if held.own:
            self._commit(held, now)
        waiters = held.waiters
        while waiters and (waiters[0].done or waiters[0].needs[0][1] <= safe):
            waiter = waiters.popleft()
            if not waiter.done:
                self._go_on(waiter, now)

    def _commit(self, held: HeldLog, now: float) -> None:
        """What is before the high watermark may be delivered."""
        end, waiting = held.safe if self._delivers_late else held.next, held.uncommitted
        while waiting and waiting[0].end <= end:
            upto, size, cause, batch = waiting.popleft()
            self.pending_bytes -= size
            self._cause.also(cause)
            first = upto - batch.batch.count
            shift = LogShift(held.partition, first - batch.base)
            self.committed.append(batch._replace(log=held.name, first=first, shift=shift))
        if held.kept < held.safe:
            self._timers.by(CHECKPOINT, now + CHECKPOINT_SECONDS)

    def is_safe(self, needs: Iterable[tuple[HeldLog, int]]) -> bool:
        """Whether these logs are safe up to these ends."""
        return all(end <= self.safe_end(held) for held, end in needs)

    def _go_on(self, waiter: _Waiter, now: float) -> None:
        while waiter.needs:
            held, end = waiter.needs[0]
            if end > self.safe_end(held):
                held.waiters.append(waiter)
                return
            waiter.needs.popleft()
        self._answer(waiter, None, now)

    def _answer(self, waiter: _Waiter, refused: Refused | None, now: float) -> None:
        waiter.done = True
        self._batches -= waiter.batch
        queue = waiter.needs[0][0].waiters if waiter.needs else deque()
        while queue and queue[0].done:
            queue.popleft()
        while self._waiters and self._waiters[0].done:
            self._waiters.popleft()
        waiter.tell(refused, now)

    def give_up_late(self, shortage: str, now: float) -> None:
        """Answer requests that waited too long, and say why: on which disks it is not."""
        while self._waiters and self._waiters[0].deadline <= now:
            self.late += 1
            text = f"too few disks have it by now ({shortage}); it may be in the log all the same: "
            text += "send it again with the same stamp, or ask `headgate status` of the brokers"
            self._answer(self._waiters[0], Refused(ErrorCode.NOT_STORED, text), now)
        self._timers.at(WAITERS, self._waiters[0].deadline if self._waiters else NEVER)

    @property
    def idle(self) -> bool:
        """Whether nothing is asked of the disk, and nothing waits for it or for those of followers."""
        return not self.pending_bytes and not self._waiters

    def validate(self) -> None:
        """Positions have no hole, and what waits for the disk adds up."""
        held_back = sum(size for size, _ in self._held_back)
        uncommitted = sum(one.size for held in self.logs.values() for one in held.uncommitted)
        assert self.pending_bytes == held_back + uncommitted + sum(pending.size for pending in self._pending)
        assert not self.committed
        assert not (self.recovered and self._held_back)
        ends: dict[LogName, int] = {}
        for pending in self._pending:
            if pending.held is not None:
                name = pending.held.name
                assert pending.first == ends.get(name, pending.held.next), "positions have no hole"
                ends[name] = pending.first + pending.count
        for name, held in self.logs.items():
            assert held.name == name and held.own == (name.broker == self.broker)
            assert held.first <= held.next <= held.assigned == ends.get(name, held.next)
            places = [one.end for one in held.uncommitted]
            assert places == sorted(places) and (not places or places[-1] <= held.next)
            assert not places or held.dead_end is None or places[-1] <= held.dead_end
        assert not self._waiters or not self._waiters[0].done
        assert self._batches == sum(waiter.batch for waiter in self._waiters if not waiter.done)
        assert not self._waiters or self._timers.when(WAITERS) <= self._waiters[0].deadline
