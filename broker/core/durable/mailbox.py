"""The mailbox of one durable subscription, at its coordinator: what waits, what is handed out, and to whom.

A position of a log takes this way:

    fed -> waiting -> unacknowledged (of one client, with a delivery number) -> settled
                           |    ^
                           v    |
                      to be handed out again: at once, or after a delay

and, when it was handed out too often or the client gave it up, it becomes a dead letter, which settles it too. What is
unacknowledged or to be handed out again is *owed*; the cursor of a log is the first position that waits, and what is
owed before it. A mailbox that is made of a state reads the logs from the first owed position on: owed positions are
handed out again as the feed reaches them, and what comes behind the cursor waits.

A client takes what it is handed one after the other. So the time in which an event has to be acknowledged begins when
it is handed out, or when the client last said something of one before it: a client that is slow, and takes more than
it can do in that time, goes on, where it would be told for ever that all it does is too late.

Positions are kept as runs, so that a thousand events which follow one another cost as much as one.

Nothing is handed out for the first time at or behind the mark of its log (`handed`) that k disks have: so whoever takes
over knows which positions never went out, and flags all others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import chain, repeat
from math import inf
from typing import NamedTuple

from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.messages import AckVerb

from ..clock import Clock
from ..keyspace import hash_identifier
from ..limits import POSITIONS_MAX
from .limits import DEFAULT_LIMITS, DELAY_SECONDS_MAX, REASON_LENGTH_MAX, DurableLimits
from .messages import Place
from .runs import Run, Waiting, count_of, intersect, subtract, union
from .state import Cursor, DeadLetter, DurableState, key_attribute, newest_dead, with_record

__all__ = ["HandedOut", "Mailbox"]

_MIX = 0x9E3779B97F4A7C15
_WORD = 2**64 - 1
_SECOND_US = 1_000_000
_UNLIMITED = 2**62


class HandedOut(NamedTuple):
    """Positions of a log that go to a client: the i-th has the delivery number `first + i`.

    `counts` says how often each was handed out, this time included; empty when all are for the first time.
    """

    client: Hashable
    first: int
    counts: tuple[int, ...]
    place: Place
    runs: list[Run]


_Piece = tuple[int, int, int, int]
"""Positions to be handed out: start, stop, how often with this time, key."""


class _Again(NamedTuple):
    """Positions that are to be handed out again, or for the first time when `delivered` is 0."""

    start: int
    stop: int
    delivered: int
    key: int


class _Entry:
    """Positions in a row that a client has not acknowledged, with delivery numbers in a row."""

    __slots__ = ("count", "delivered", "due", "first", "key", "log", "start")

    def __init__(self, first: int, log: _Log, start: int, count: int, delivered: int, key: int, due: float) -> None:
        self.first = first
        self.log = log
        self.start = start
        self.count = count
        self.delivered = delivered
        self.key = key
        self.due = due


class _Client:
    """A client, what it may take, and what it has not acknowledged, in order of delivery numbers."""

    __slots__ = (
        *("entries", "id", "label", "left", "numbers", "reached", "reached_at", "seed", "serial", "unacked", "window"),
    )

    def __init__(self, client: Hashable, label: str, serial: int, seed: int, window: int, limit: int) -> None:
        self.id = client
        self.label = label
        self.serial = serial
        self.seed = seed
        self.window = window
        self.left = limit or _UNLIMITED
        self.numbers: list[int] = []
        self.entries: list[_Entry] = []
        self.unacked = 0
        self.reached, self.reached_at = 0, -inf

    def reaches(self, number: int, now: float, ack_wait: float) -> None:
        """It said something of this number: it has not begun with those behind it, so their time begins now."""
        if number <= self.reached:
            return
        for entry in self.entries[bisect_right(self.numbers, self.reached) : bisect_right(self.numbers, number)]:
            entry.due = max(entry.due, self.reached_at + ack_wait)
        self.reached, self.reached_at = number, now

    def due(self, entry: _Entry, ack_wait: float) -> float:
        """When that is late."""
        return entry.due if entry.first <= self.reached else max(entry.due, self.reached_at + ack_wait)


class _Log:
    """One log: how far it is fed, what waits, and what is to be handed out again."""

    __slots__ = (
        *("again", "confirmed", "counts", "fed", "first", "flagged", "key_head", "keys", "mark_head", "mark_positions"),
        *("mark_times", "matched", "place", "reserve_at", "reserved", "seen", "served", "unfed", "upto", "waiting"),
    )

    def __init__(self, place: Place, cursor: Cursor, fed: int, handed: int, counts: Mapping[int, int]) -> None:
        self.place = place
        self.upto = cursor.upto
        self.fed = fed
        self.first = 0
        self.unfed: list[Run] = list(cursor.owed)
        self.counts = dict(counts)
        self.flagged = self.reserved = self.confirmed = handed
        self.reserve_at = 0
        self.seen = self.matched = 0
        self.waiting = Waiting()
        self.again: list[_Again] = []
        self.served = 0
        self.keys = array("I")
        self.key_head = 0
        self.mark_positions = array("Q")
        self.mark_times = array("Q")
        self.mark_head = 0

    @property
    def front(self) -> int:
        """The first position that was never handed out and may match."""
        first = self.waiting.first
        return max(self.upto, self.fed) if first is None else first

    @property
    def time(self) -> int:
        """When the first event that waits was stored, a second or less too early; 0 when that is not known."""
        first, head, positions = self.waiting.first, self.mark_head, self.mark_positions
        if first is None:
            return 0
        while head + 1 < len(positions) and positions[head + 1] <= first:
            head += 1
        if head > 1024 and 2 * head > len(positions):
            del self.mark_positions[:head], self.mark_times[:head]
            head = 0
        self.mark_head = head
        return self.mark_times[head] if head < len(positions) else 0

    def note_time(self, position: int, time_us: int) -> None:
        if time_us and (not self.mark_times or time_us >= self.mark_times[-1] + _SECOND_US):
            self.mark_positions.append(position)
            self.mark_times.append(time_us)

    def take_keys(self, count: int) -> Sequence[int]:
        keys = self.keys[self.key_head : self.key_head + count]
        self.drop_keys(count)
        return keys

    def drop_keys(self, count: int) -> None:
        self.key_head += count
        if self.key_head >= 1024 and 2 * self.key_head > len(self.keys):
            del self.keys[: self.key_head]
            self.key_head = 0

    def forget_waiting(self) -> None:
        """Nothing waits: feeding goes on at the front."""
        if self.fed > self.upto:
            self.upto = self.fed = self.front
        self.waiting.clear()
        self.keys, self.key_head = array("I"), 0
        self.mark_positions, self.mark_times, self.mark_head = array("Q"), array("Q"), 0


class Mailbox:
    """What one durable subscription has to hand out, and what its clients have not acknowledged.

    Tell it facts with `fed`, then ask in turn: `reserve` (when it says so, write a `snapshot`, and say `written`),
    `hand_out`, `take_dead`, `next_deadline`. `dirty` says that something has to be on disks before it is confirmed.
    """

    __slots__ = (
        *("_again_count", "_again_runs", "_bound", "_chosen", "_clients", "_clock", "_dead", "_delayed", "_delays"),
        *("_key", "_limits", "_logs", "_missed", "_newly_dead", "_next_due", "_number", "_redelivered", "_serial"),
        *("_turn", "dirty", "is_full", "settled", "state"),
    )

    def __init__(
        self, state: DurableState, now: float, limits: DurableLimits = DEFAULT_LIMITS, clock: Clock | None = None
    ) -> None:
        """A new coordinator's mailbox: it may know what other disks have, and has a generation of its own."""
        self.state = state
        self.dirty = False
        self.is_full = False
        self.settled = 0
        """Events that clients acknowledged here."""
        self._limits = limits
        self._clock = clock or Clock()
        self._key = key_attribute(state.sharing)
        self._clients: dict[Hashable, _Client] = {}
        self._serial = 0
        self._turn = 0
        self._number = state.generation << 32
        self._next_due = inf
        self._delayed: list[tuple[float, int, _Log, _Again]] = []
        self._delays = 0
        self._bound: dict[int, list[int]] = {}  # key -> serial of the client that has some of it, how many
        self._chosen: dict[int, _Client] = {}
        self._dead = list(state.dead)
        self._newly_dead: list[DeadLetter] = []
        self._missed = 0
        self._again_count = 0
        self._again_runs = 0
        self._redelivered = 0
        self._logs: dict[Place, _Log] = {}
        for place in sorted({*state.cursors, *state.starts, *state.handed}):
            cursor = state.cursors.get(place)
            if cursor is None:
                if place not in state.starts:
                    continue
                cursor = Cursor(state.starts[place])
            self._add_log(place, cursor)

    def _add_log(self, place: Place, cursor: Cursor) -> _Log:
        fed = cursor.owed[0][0] if cursor.owed else cursor.upto
        log = _Log(place, cursor, fed, self.state.handed.get(place, 0), self.state.counts.get(place, {}))
        self._logs[place] = log
        self._again_count += count_of(log.unfed)
        self._again_runs += len(log.unfed)
        self._redelivered += count_of(intersect(log.unfed, [(0, log.flagged)]))
        return log

    # --- Feeding ------------------------------------------------------------------------------------------------------

    def place_of(self, place: Place) -> int | None:
        """The position from which feeding of that log has to go on; None when it was never heard of."""
        log = self._logs.get(place)
        return None if log is None else max(log.fed, log.first)

    def places(self) -> dict[Place, int]:
        """The logs that are known, and where feeding of each goes on."""
        return {place: max(log.fed, log.first) for place, log in self._logs.items()}

    @property
    def wants_feed(self) -> bool:
        """Whether there is room: after `is_full` half of what waited has to be handed out before."""
        if (
            self.is_full
            and 2 * self._waiting_runs() <= self._limits.waiting_runs
            and 2 * self._waiting_keys() <= (self._limits.waiting_keys)
        ):
            self.is_full = False
        return not self.is_full

    def fed(
        self,
        place: Place,
        first: int,
        start: int,
        upto: int,
        runs: Sequence[Run],
        keys: Sequence[int],
        time_us: int,
        now: float,
    ) -> int:
        """Learn that of the positions from `start` up to `upto` of a log, which begins at `first`, these match.

        What does not go on where the last fact ended, and what comes while the mailbox is full, is not taken. `keys`
        has the hash of each event's key, when events of one key stay together. Returns how many events retention took
        that were owed, waited, or were never looked at, the latter at most.
        """
        if self._key and len(keys) != count_of(runs):
            raise ProtocolViolation(f"{count_of(runs)} events have as many keys, not {len(keys)}")
        log = self._logs.get(place)
        if log is None:
            # From the start of all logs, which are known: one that was not there then begins with its first event.
            is_new = bool(self.state.starts) and not self.state.created
            log = self._add_log(place, Cursor(0 if is_new else max(start, first)))
        missed = self._trim(log, first)
        known = max(log.fed, log.first)
        if start > known or upto <= known or not self.wants_feed:
            return missed
        if start < known:
            cut = intersect(runs, [(known, upto)])
            keys = keys[count_of(runs) - count_of(cut) :] if self._key else ()
            runs = cut
        if known < log.upto:
            runs, keys = self._fed_owed(log, known, min(upto, log.upto), runs, keys)
        log.seen += upto - known
        log.matched += count_of(runs)
        log.fed = upto
        if runs:
            log.note_time(runs[0][0], time_us)
            log.waiting.append(runs)
            if self._key:
                log.keys.extend(keys)
            self.is_full = (
                self._waiting_runs() >= self._limits.waiting_runs or self._waiting_keys() >= self._limits.waiting_keys
            )
        return missed

    def _fed_owed(
        self, log: _Log, start: int, upto: int, runs: Sequence[Run], keys: Sequence[int]
    ) -> tuple[Sequence[Run], Sequence[int]]:
        """What of these was owed is handed out again, the rest before the cursor is settled; returns what is behind."""
        before = intersect(runs, [(start, upto)])
        behind = subtract(runs, [(start, upto)])
        count = count_of(before)
        owed = intersect(log.unfed, before)
        key_of = dict(zip(_positions(before), keys[:count], strict=True)) if self._key and owed else {}
        parts = [again for run in owed for again in self._counted(log, run, key_of)]
        self._forget_unfed(log, start, upto)
        for again in parts:
            self._put_again(log, again)
        return behind, keys[count:]

    def _counted(self, log: _Log, run: Run, key_of: Mapping[int, int]) -> Iterator[_Again]:
        """A run of owed positions in parts that were handed out equally often and have one key."""
        for start, stop, known in _cut(*run, log.flagged):
            if not (log.counts or key_of):
                yield _Again(start, stop, known, 0)
                continue
            for position in range(start, stop):
                delivered = log.counts.get(position, known)
                yield _Again(position, position + 1, delivered, key_of.get(position, 0))

    def _forget_unfed(self, log: _Log, start: int, upto: int) -> int:
        """What is owed there is not any more; returns how much it was."""
        gone = intersect(log.unfed, [(start, upto)])
        rest = subtract(log.unfed, gone)
        count = count_of(gone)
        self._again_count -= count
        self._again_runs += len(rest) - len(log.unfed)
        self._redelivered -= count_of(intersect(gone, [(0, log.flagged)]))
        log.unfed = rest
        for position in [position for position in log.counts if start <= position < upto]:
            del log.counts[position]
        return count

    def _trim(self, log: _Log, first: int) -> int:
        """The log begins there by now; returns how many events are lost by that."""
        if first <= log.first:
            return 0
        known = max(log.fed, log.first)
        log.first = first
        missed = self._forget_unfed(log, 0, first)
        missed += max(0, first - max(known, log.upto))
        dropped = log.waiting.drop(first)
        log.drop_keys(dropped if self._key else 0)
        missed += dropped
        for again in self._take_again(log, lambda one: one.start < first):
            missed += min(again.stop, first) - again.start
            if again.stop > first:
                self._put_again(log, again._replace(start=first))
        late = [one for one in self._delayed if one[2] is log and one[3].start < first]
        if late:
            self._delayed = [one for one in self._delayed if one[2] is not log or one[3].start >= first]
            heapify(self._delayed)
            for due, _, _, again in late:
                self._count_again(again, -1)
                missed += min(again.stop, first) - again.start
                if again.stop > first:
                    self._put_delayed(due, log, again._replace(start=first))
        log.fed = max(log.fed, first)
        self.dirty = self.dirty or missed > 0
        return missed

    def take_missed(self) -> int:
        """How many events retention had taken when they were to be handed out again."""
        missed, self._missed = self._missed, 0
        return missed

    def _waiting_runs(self) -> int:
        return sum(len(log.waiting) for log in self._logs.values())

    def _waiting_keys(self) -> int:
        return sum(len(log.keys) - log.key_head for log in self._logs.values())

    # --- Clients ------------------------------------------------------------------------------------------------------

    def attach(
        self, client: Hashable, window: int, now: float, takeover: bool = False, label: str = "", limit: int = 0
    ) -> list[Hashable]:
        """A client takes part; returns those that it replaces. `label` is what people call it, and what keys go by.
        It is handed at most `limit` events in all, if that is not 0.

        Raises Refused when the subscription is exclusive and somebody has it.
        """
        replaced: list[Hashable] = []
        if client in self._clients:
            self.detach(client, now)
        if self.state.sharing == "exclusive" and self._clients:
            if not takeover:
                other = next(iter(self._clients.values()))
                raise Refused(
                    ErrorCode.DUPLICATE,
                    f"durable subscription {self.state.name!r} is exclusive, and client {other.label} has it: "
                    "take it over (--takeover), wait until it is free, or begin one that is shared (--sharing shared)",
                )
            replaced = list(self._clients)
            for other_client in replaced:
                self.detach(other_client, now)
        if len(self._clients) >= self._limits.clients:
            raise Refused(
                ErrorCode.LIMIT, f"durable subscription {self.state.name!r} has {self._limits.clients} clients already"
            )
        label = label or str(client)
        same = sum(one.label == label for one in self._clients.values())
        self._serial += 1
        seed = hash_identifier(f"{label}/{same}")
        self._clients[client] = _Client(client, label, self._serial, seed, max(1, window), limit)
        self._chosen.clear()
        return replaced

    def detach(self, client: Hashable, now: float) -> None:
        """A client is gone: what it has not acknowledged goes out again.

        It takes one event after the other. So the first one behind those that it has said something of may be what it
        died of; those behind that it has not begun with, and for them this was no attempt, though they are flagged.
        """
        gone = self._clients.pop(client, None)
        if gone is None:
            return
        self._chosen.clear()
        first = bisect_right(gone.numbers, gone.reached)
        begun = self._split_at(gone, gone.numbers[first] + 1) if first < len(gone.numbers) else first
        entries = gone.entries
        gone.entries, gone.numbers = [], []
        for entry in entries:
            self._let_go(gone, entry)
        for entry in entries[begun:]:
            entry.delivered = max(1, entry.delivered - 1)
        self._fail_all(entries, now, "the client left")

    def _room(self, client: _Client) -> int:
        return min(min(client.window, self.state.max_unacked) - client.unacked, client.left)

    # --- Handing out --------------------------------------------------------------------------------------------------

    def hand_out(self, now: float) -> list[HandedOut]:
        """What goes to clients now, as their windows allow: what goes out again first, then what waits."""
        self._wake_delayed(now)
        if not self._clients:
            return []
        out: list[HandedOut] = []
        if self._key:
            self._hand_out_by_key(now, out)
        elif self.state.sharing == "shared":
            self._hand_out_to(list(self._clients.values()), now, out)
        else:
            self._hand_out_to([next(iter(self._clients.values()))], now, out)
        return out

    def _hand_out_to(self, clients: list[_Client], now: float, out: list[HandedOut]) -> None:
        """To any of these: what there is goes in even parts to those with the most room."""
        taking = self._with_room(clients)
        for log in self._logs.values():
            while log.again and log.again[0].stop <= log.confirmed and taking:
                count = sum(one.stop - one.start for one in log.again[: self._limits.hand_out_events])
                share = self._share(count, taking)
                self._give(taking.pop(), log, self._pop_again(log, share), now, out)
                taking = taking or self._with_room(clients)
        while taking:
            log_or_none = self._next_log()
            if log_or_none is None:
                return
            log = log_or_none
            count = min(self._share(log.waiting.count, taking), self._limits.owed_events - self._owed_events())
            runs = log.waiting.pop(count, log.confirmed)
            self._served(log)
            pieces: list[_Piece] = [(start, stop, 1, 0) for start, stop in runs]
            if runs[0][0] < log.flagged:
                pieces = [(start, stop, known + 1, 0) for run in runs for start, stop, known in _cut(*run, log.flagged)]
            self._give(taking.pop(), log, pieces, now, out)
            taking = taking or self._with_room(clients)

    def _with_room(self, clients: list[_Client]) -> list[_Client]:
        """Those of them that have room, the most at the end."""
        return sorted((one for one in clients if self._room(one) > 0), key=lambda one: (self._room(one), -one.serial))

    def _share(self, count: int, clients: list[_Client]) -> int:
        """How many of so many events the last of these clients gets."""
        return min(self._room(clients[-1]), -(-count // len(clients)), self._limits.hand_out_events)

    def _next_log(self) -> _Log | None:
        """The log whose first waiting event is the oldest; those of unknown or equal time take turns."""
        if self._owed_runs() >= self._limits.owed_runs or self._owed_events() >= self._limits.owed_events:
            return None
        ready = [log for log in self._logs.values() if log.waiting.count and log.front < log.confirmed]
        return min(ready, key=lambda log: (log.time, log.served), default=None) if len(ready) != 1 else ready[0]

    def _served(self, log: _Log) -> None:
        self._turn += 1
        log.served = self._turn

    def _hand_out_by_key(self, now: float, out: list[HandedOut]) -> None:
        """To the client of each event's key; who has no room is passed over, and his events are held."""
        room = {client.serial: self._room(client) for client in self._clients.values()}
        free = sum(left for left in room.values() if left > 0)
        held = 0
        for log in self._logs.values():
            if not free:
                return
            pieces: dict[int, list[_Again]] = {}
            again = log.again
            log.again = []
            for one in again:
                client = self._client_of(one.key)
                count = min(one.stop - one.start, max(0, room[client.serial])) if one.stop <= log.confirmed else 0
                if count:
                    room[client.serial] -= count
                    free -= count
                    taken = one._replace(stop=one.start + count)
                    self._count_again(taken, -1, whole=count == one.stop - one.start)
                    self._bind(one.key, client, count)
                    pieces.setdefault(client.serial, []).append(_again_once_more(taken))
                if count < one.stop - one.start:
                    log.again.append(one._replace(start=one.start + count))
            held += len(log.again)
            self._give_pieces(log, pieces, now, out)
        while free and held < self._limits.held:
            log_or_none = self._next_log()
            if log_or_none is None:
                return
            log = log_or_none
            pieces = {}
            taken_runs = log.waiting.pop(min(free, self._limits.hand_out_events), log.confirmed)
            self._served(log)
            positions = list(_positions(taken_runs))
            for position, key in zip(positions, log.take_keys(len(positions)), strict=True):
                client = self._client_of(key)
                delivered = 1 if position < log.flagged else 0
                one = _Again(position, position + 1, delivered, key)
                if room[client.serial] > 0:
                    room[client.serial] -= 1
                    free -= 1
                    self._bind(key, client, 1)
                    pieces.setdefault(client.serial, []).append(_again_once_more(one))
                else:
                    self._put_again(log, one)
                    held += 1
            self._give_pieces(log, pieces, now, out)

    def _give_pieces(self, log: _Log, pieces: Mapping[int, list[_Again]], now: float, out: list[HandedOut]) -> None:
        for client in list(self._clients.values()) if pieces else ():
            for part in _parts(pieces.get(client.serial, []), self._limits.hand_out_events):
                self._give(client, log, part, now, out)

    def _client_of(self, key: int) -> _Client:
        """Who gets the events of a key: who has some of it, or else the one of the highest hash with it."""
        bound = self._bound.get(key)
        client = self._chosen.get(key)
        if client is None or (bound is not None and client.serial != bound[0]):
            clients = self._clients.values()
            if bound is not None:
                client = next(one for one in clients if one.serial == bound[0])
            else:
                client = max(clients, key=lambda one: (_mixed(key, one.seed), -one.serial))
            if len(self._chosen) >= self._limits.keys_remembered:
                self._chosen.clear()
            if bound is None:
                self._chosen[key] = client
        return client

    def _bind(self, key: int, client: _Client, count: int) -> None:
        bound = self._bound.get(key)
        if bound is None:
            self._bound[key] = [client.serial, count]
        else:
            assert bound[0] == client.serial, "a key is with one client"
            bound[1] += count

    def _pop_again(self, log: _Log, count: int) -> list[_Again]:
        """Take so many events from those that go out again."""
        pieces: list[_Again] = []
        at = 0
        while count and at < len(log.again) and log.again[at].stop <= log.confirmed:
            one = log.again[at]
            if one.stop - one.start > count:
                taken = one._replace(stop=one.start + count)
                log.again[at] = one._replace(start=taken.stop)
                self._count_again(taken, -1, whole=False)
                pieces.append(_again_once_more(taken))
                break
            self._count_again(one, -1)
            pieces.append(_again_once_more(one))
            count -= one.stop - one.start
            at += 1
        del log.again[:at]
        return pieces

    def _give(self, client: _Client, log: _Log, pieces: Sequence[_Piece], now: float, out: list[HandedOut]) -> None:
        """Hand these out; `delivered` of each includes this time."""
        if not pieces:
            return
        due = now + self.state.ack_wait
        self._next_due = min(self._next_due, due)
        number = first = self._number + 1
        runs: list[Run] = []
        entry: _Entry | None = None
        repeated = False
        for start, stop, delivered, key in pieces:
            count = stop - start
            if delivered > 1:
                repeated = True
                self._redelivered += count
            follows = bool(runs) and runs[-1][1] == start
            if follows:
                runs[-1] = (runs[-1][0], stop)
            else:
                runs.append((start, stop))
            if follows and entry is not None and entry.delivered == delivered and entry.key == key:
                entry.count += count
            else:
                entry = _Entry(number, log, start, count, delivered, key, due)
                client.entries.append(entry)
                client.numbers.append(number)
            number += count
        client.unacked += number - first
        client.left -= number - first
        self._number = number - 1
        self.dirty = self.dirty or repeated
        counts = (
            tuple(chain.from_iterable(repeat(piece[2], piece[1] - piece[0]) for piece in pieces)) if repeated else ()
        )
        out.append(HandedOut(client.id, first, counts, log.place, runs))

    # --- Settling -----------------------------------------------------------------------------------------------------

    def settle(
        self, client: Hashable, verb: int, spans: Sequence[int], delay: float | None, reason: str, now: float
    ) -> list[int]:
        """A client says what became of the delivery numbers in these spans (first, last, first, last ...).

        A span from 0 takes all that the client has up to its end. Returns the spans of numbers that are not its.
        """
        owner = self._clients.get(client)
        stale: list[int] = []
        taken: list[_Entry] = []
        for first, last in zip(spans[::2], spans[1::2], strict=False):
            if owner is None:
                found: list[_Entry] = []
            elif verb == AckVerb.PROGRESS:
                found = self._prolong(owner, first, last, now + self.state.ack_wait)
            else:
                found = self._cut_out(owner, first, last)
                taken += found
            if first:
                _add_gaps(stale, first, last, found)
        if owner is not None and spans:
            owner.reaches(min(max(spans[1::2]), self._number), now, self.state.ack_wait)
        if owner is None or verb == AckVerb.PROGRESS or not taken:
            return stale
        for entry in taken:
            self._let_go(owner, entry)
        self.dirty = True
        if verb in (AckVerb.ACK, AckVerb.SKIP):
            count = sum(entry.count for entry in taken)
            self.settled += count
            owner.left += count if verb == AckVerb.SKIP else 0
        elif verb == AckVerb.TERM:
            for entry in taken:
                self._bury(entry, entry.start, reason, now)
        elif verb == AckVerb.NAK:
            self._fail_all(taken, now, "refused by the client", delay)
        return stale

    def _cut_out(self, client: _Client, first: int, last: int) -> list[_Entry]:
        """Take the entries of these numbers out of a client's, cut where the span ends within one."""
        low, high = self._split(client, first, last)
        found = client.entries[low:high]
        del client.entries[low:high], client.numbers[low:high]
        return found

    def _prolong(self, client: _Client, first: int, last: int, due: float) -> list[_Entry]:
        low, high = self._split(client, first, last)
        found = client.entries[low:high]
        for entry in found:
            entry.due = due
        return found

    def _split(self, client: _Client, first: int, last: int) -> tuple[int, int]:
        """Where the entries of these numbers stand, cut so that none is only partly within."""
        low = self._split_at(client, first)
        return low, max(low, self._split_at(client, last + 1))

    def _split_at(self, client: _Client, number: int) -> int:
        """Where the entry that begins with this number stands, or the next one; cut at it if it is within one."""
        at = bisect_left(client.numbers, number)
        if at:
            entry = client.entries[at - 1]
            left = number - entry.first
            if left < entry.count:
                rest = _Entry(
                    number, entry.log, entry.start + left, entry.count - left, entry.delivered, entry.key, entry.due
                )
                entry.count = left
                client.entries.insert(at, rest)
                client.numbers.insert(at, number)
        return at

    def _let_go(self, client: _Client, entry: _Entry) -> None:
        """The client does not have that any more."""
        client.unacked -= entry.count
        if entry.delivered > 1:
            self._redelivered -= entry.count
        if self._bound:
            bound = self._bound.get(entry.key)
            if bound is not None and bound[0] == client.serial:
                bound[1] -= entry.count
                if bound[1] <= 0:
                    del self._bound[entry.key]

    def _fail_all(self, entries: Iterable[_Entry], now: float, why: str, delay: float | None = None) -> None:
        """These deliveries came to nothing: they are handed out again, or given up when it was the last time."""
        state = self.state
        for entry in entries:
            log, start, stop = entry.log, entry.start, entry.start + entry.count
            if start < log.first:
                self._missed += min(stop, log.first) - start
                start = min(stop, log.first)
                self.dirty = True
                if start == stop:
                    continue
            if state.max_deliver and entry.delivered >= state.max_deliver:
                self._bury(entry, start, f"handed out {entry.delivered} times: {why}", now)
                continue
            pause = delay
            if pause is None or pause < 0:
                pause = state.backoff[min(entry.delivered, len(state.backoff)) - 1] if state.backoff else 0.0
            again = _Again(start, stop, entry.delivered, entry.key)
            if pause > 0:
                self._put_delayed(now + min(pause, DELAY_SECONDS_MAX), log, again)
            else:
                self._put_again(log, again)

    def _bury(self, entry: _Entry, start: int, reason: str, now: float) -> None:
        """From there on these are dead letters."""
        time, text, stop = self._clock.us(now), reason[:REASON_LENGTH_MAX], entry.start + entry.count
        letters = [
            DeadLetter(entry.log.place, position, entry.delivered, text, time, entry.key)
            for position in range(start, stop)
        ]
        self._newly_dead += letters
        self._dead += letters
        if len(self._dead) > 2 * self._limits.dead:
            self._dead = list(newest_dead(self._dead, self._limits.dead))
        self.dirty = True

    def take_dead(self) -> list[DeadLetter]:
        """What was given up since the last time, for the dead-letter topic."""
        dead, self._newly_dead = self._newly_dead, []
        return dead

    def replay_dead(self, chosen: Callable[[DeadLetter], bool]) -> int:
        """Hand out again the dead letters for which `chosen` says so; returns how many.

        They count as handed out once, and go to the client of their key.
        """
        back = [letter for letter in newest_dead(self._dead, self._limits.dead) if chosen(letter)]
        if not back:
            return 0
        gone = set(back)
        self._dead = [letter for letter in newest_dead(self._dead, self._limits.dead) if letter not in gone]
        count = 0
        owed = self._owed()
        for letter in back:
            log = self._logs.get(letter.place)
            if log is None or not log.first <= letter.position < log.front:
                continue
            if intersect(owed.get(letter.place, ()), [(letter.position, letter.position + 1)]):
                continue  # after a seek
            count += 1
            self._put_again(log, _Again(letter.position, letter.position + 1, 1, letter.key))
        self._rewind()
        return count

    # --- Time ---------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> float:
        """When `wake` is to be called at the latest; it may turn out that there was nothing to do."""
        return min(self._next_due, self._delayed[0][0] if self._delayed else inf)

    def wake(self, now: float) -> None:
        """What was not acknowledged in time, and what was put off until now, goes out again."""
        self._wake_delayed(now)
        if now < self._next_due:
            return
        self._next_due, ack_wait = inf, self.state.ack_wait
        for client in self._clients.values():
            late = [entry for entry in client.entries if client.due(entry, ack_wait) <= now]
            if late:
                client.entries = [entry for entry in client.entries if client.due(entry, ack_wait) > now]
                client.numbers = [entry.first for entry in client.entries]
                for entry in late:
                    self._let_go(client, entry)
                self._fail_all(late, now, f"not acknowledged within {self.state.ack_wait:g} s")
            first = min((client.due(entry, ack_wait) for entry in client.entries), default=inf)
            self._next_due = min(self._next_due, first)

    def _wake_delayed(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            _, _, log, again = heappop(self._delayed)
            self._count_again(again, -1)
            self._put_again(log, again)

    # --- What goes out again ------------------------------------------------------------------------------------------

    def _put_again(self, log: _Log, again: _Again) -> None:
        if log.again and again < log.again[-1]:
            insort(log.again, again)
        else:
            log.again.append(again)
        self._count_again(again, 1)

    def _put_delayed(self, due: float, log: _Log, again: _Again) -> None:
        self._delays += 1
        heappush(self._delayed, (due, self._delays, log, again))
        self._count_again(again, 1)

    def _take_again(self, log: _Log, chosen: Callable[[_Again], bool]) -> list[_Again]:
        taken = [one for one in log.again if chosen(one)]
        if taken:
            log.again = [one for one in log.again if not chosen(one)]
            for one in taken:
                self._count_again(one, -1)
        return taken

    def _count_again(self, again: _Again, sign: int, whole: bool = True) -> None:
        count = again.stop - again.start
        self._again_count += sign * count
        self._again_runs += sign if whole else 0
        if again.delivered:
            self._redelivered += sign * count

    def _owed_runs(self) -> int:
        return self._again_runs + sum(len(client.entries) for client in self._clients.values())

    def _owed_events(self) -> int:
        return self._again_count + self.unacked

    # --- Changes ------------------------------------------------------------------------------------------------------

    def amended(
        self,
        state: DurableState,
        added: Mapping[Place, Sequence[Run]],
        keys: Mapping[Place, Sequence[int]] | None = None,
    ) -> None:
        """Somebody changed the record: what waits is fed anew, what is owed stays, what is `added` is owed from now on.

        `keys` are those of the added events. What is added at or behind the cursor of its log comes with the feed.
        After an earlier amendment what is added is flagged: a former condition may have matched it. After a takeover
        too: the former coordinator may have handed it out, and then not been able to write what it had changed.
        """
        delivered = 1 if self.state.version > 1 or self.state.generation > 1 else 0
        self.state = with_record(self.state, state)
        self._key = key_attribute(state.sharing)
        self._bound.clear()
        self._chosen.clear()
        if self._key:
            self._bind_all()
        self.is_full = False
        self.dirty = True
        owed = self._owed()
        for log in self._logs.values():
            log.forget_waiting()
            runs = list(added.get(log.place, ()))
            new = subtract(intersect(runs, [(log.first, log.upto)]), owed.get(log.place, ()))
            key_of = dict(zip(_positions(runs), keys[log.place], strict=True)) if keys and log.place in keys else {}
            for run in new:
                for start, stop in [(at, at + 1) for at in range(*run)] if key_of else [run]:
                    self._put_again(log, _Again(start, stop, delivered, key_of.get(start, 0)))
        if added:
            self._rewind()

    def _bind_all(self) -> None:
        """Keys of what is handed out already are with whoever has most of it first."""
        for client in self._clients.values():
            for entry in client.entries:
                bound = self._bound.setdefault(entry.key, [client.serial, 0])
                if bound[0] == client.serial:
                    bound[1] += entry.count

    def seek(self, cursors: Mapping[Place, int]) -> None:
        """Go on at these positions: what is handed out in these logs is let go of, and what was settled may come again.

        What was handed out before is flagged when it comes again.
        """
        for client in self._clients.values():
            gone = [entry for entry in client.entries if entry.log.place in cursors]
            client.entries = [entry for entry in client.entries if entry.log.place not in cursors]
            client.numbers = [entry.first for entry in client.entries]
            for entry in gone:
                self._let_go(client, entry)
        for one in [one for one in self._delayed if one[2].place in cursors]:
            self._count_again(one[3], -1)
        self._delayed = [one for one in self._delayed if one[2].place not in cursors]
        heapify(self._delayed)
        for place, position in sorted(cursors.items()):
            log = self._logs.get(place)
            if log is None:
                self._add_log(place, Cursor(position))
                continue
            self._take_again(log, lambda _: True)
            self._forget_unfed(log, 0, log.upto)
            log.counts.clear()
            log.flagged = log.reserved
            log.forget_waiting()
            log.upto = log.fed = position
        self.is_full = False
        self._rewind()

    def _rewind(self) -> None:
        self.state = replace(self.state, rewinds=self.state.rewinds + 1)
        self.dirty = True

    # --- Disks --------------------------------------------------------------------------------------------------------

    def reserve(self) -> bool:
        """Mark positions as handed out where they soon will be; whether a snapshot has to be written for that."""
        raised = False
        for log in self._logs.values() if self._clients else ():
            first = log.waiting.first
            if first is not None and (first >= log.reserve_at or first >= log.reserved):
                self._reserve(log)
                raised = True
            if log.again and log.again[-1].stop > log.reserved:
                log.reserved = log.again[-1].stop
                raised = True
        self.dirty = self.dirty or raised
        return raised

    def _reserve(self, log: _Log) -> None:
        """Mark the next events, and when too few wait, where as many are to be expected."""
        ahead, waiting = self._limits.handed_ahead, log.waiting
        last = waiting.last
        assert last is not None, "something waits"
        gap = max(1, log.seen // max(1, log.matched))
        more = last + 1 - gap * (waiting.count - 1)
        middle, end = waiting.nth(ahead // 2), waiting.nth(ahead)
        log.reserve_at = more + gap * (ahead // 2) if middle is None else middle
        log.reserved = max(log.reserved, min(more + gap * ahead if end is None else end, POSITIONS_MAX))

    def snapshot(self) -> DurableState:
        """The state as it is now, to be written to k disks; nobody may change it."""
        owed = self._owed()
        self.state = replace(
            self.state,
            cursors={log.place: Cursor(log.front, tuple(owed.get(log.place, ()))) for log in self._in_order()},
            handed={log.place: log.reserved for log in self._in_order() if log.reserved},
            counts=self._counts(),
            dead=newest_dead(self._dead, self._limits.dead),
        )
        self.dirty = False
        return self.state

    def written(self, snapshot: DurableState) -> None:
        """That is on k disks: what it marks as handed out may be handed out."""
        for place, mark in snapshot.handed.items():
            log = self._logs.get(place)
            if log is not None:
                log.confirmed = max(log.confirmed, min(mark, log.reserved))

    def _in_order(self) -> list[_Log]:
        return [self._logs[place] for place in sorted(self._logs)]

    def _owed_parts(self) -> Iterator[tuple[_Log, _Again]]:
        """All that is owed, in any order; what is not fed yet as often handed out as it is known to have been."""
        for client in self._clients.values():
            for entry in client.entries:
                yield entry.log, _Again(entry.start, entry.start + entry.count, entry.delivered, entry.key)
        for _, _, log, again in self._delayed:
            yield log, again
        for log in self._logs.values():
            for again in log.again:
                yield log, again
            for start, stop in log.unfed:
                yield log, _Again(start, stop, 0, 0)

    def _owed(self) -> dict[Place, list[Run]]:
        runs: dict[Place, list[Run]] = {}
        for log, (start, stop, _, _) in self._owed_parts():
            runs.setdefault(log.place, []).append((start, stop))
        return {place: union(some) for place, some in runs.items()}

    def _counts(self) -> dict[Place, dict[int, int]]:
        counts = {log.place: dict(log.counts) for log in self._logs.values() if log.counts}
        for log, (start, stop, delivered, _) in self._owed_parts():
            if delivered > 1:
                counts.setdefault(log.place, {}).update(dict.fromkeys(range(start, stop), delivered))
        return counts

    # --- Looking ------------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many events are to be handed out, for the first time or again."""
        return self._again_count + sum(log.waiting.count for log in self._logs.values())

    @property
    def unacked(self) -> int:
        """How many events are handed out and not settled."""
        return sum(client.unacked for client in self._clients.values())

    @property
    def redelivered(self) -> int:
        """How many of all these were handed out before, or may have been."""
        return self._redelivered

    @property
    def clients(self) -> int:
        """How many clients take part."""
        return len(self._clients)

    def oldest_seconds(self, now_us: int) -> float:
        """The age of the oldest event that waits to be handed out for the first time, up to a second too much."""
        times = [log.time for log in self._logs.values() if log.waiting.count]
        oldest = min((time for time in times if time), default=now_us)
        return max(0.0, (now_us - oldest) / 1e6)

    def position(self) -> dict[Place, int]:
        """The position of each log before which everything is settled."""
        owed = self._owed()
        return {
            log.place: min(log.front, owed[log.place][0][0] if log.place in owed else log.front)
            for log in self._in_order()
        }

    def validate(self) -> None:
        """Everything is counted, each position is in one place, and each key with one client."""
        seen: dict[Place, list[Run]] = {}
        for log, again in self._owed_parts():
            seen.setdefault(log.place, []).append(again[:2])
        for log in self._logs.values():
            log.waiting.validate()
            runs = seen.get(log.place, [])
            assert count_of(union(runs)) == count_of(runs), f"a position of {log.place} is owed once"
            assert not runs or max(runs)[1] <= log.front, f"what is owed of {log.place} is before what waits"
            assert not self._key or len(log.keys) - log.key_head == log.waiting.count, "each event has a key"
            assert log.again == sorted(log.again), "what goes out again is in order"
            assert log.confirmed <= log.reserved, "what holds was reserved"
        parts = [one for log in self._logs.values() for one in log.again] + [one[3] for one in self._delayed]
        unfed = [(log, run) for log in self._logs.values() for run in log.unfed]
        assert self._again_count == count_of(one[:2] for one in parts) + count_of(run for _, run in unfed)
        assert self._again_runs == len(parts) + len(unfed)
        entries = [entry for client in self._clients.values() for entry in client.entries]
        repeated = sum(entry.count for entry in entries if entry.delivered > 1)
        repeated += count_of(one[:2] for one in parts if one.delivered)
        repeated += sum(count_of(intersect([run], [(0, log.flagged)])) for log, run in unfed)
        assert self._redelivered == repeated, f"{self._redelivered} are counted as redelivered, not {repeated}"
        for client in self._clients.values():
            assert client.unacked == sum(entry.count for entry in client.entries)
            assert client.numbers == [entry.first for entry in client.entries] == sorted(client.numbers)
        for client in self._clients.values():
            dues = (client.due(entry, self.state.ack_wait) for entry in client.entries)
            assert self._next_due <= min(dues, default=inf), "nothing is late unnoticed"


def _positions(runs: Iterable[Run]) -> Iterator[int]:
    return chain.from_iterable(range(start, stop) for start, stop in runs)


def _cut(start: int, stop: int, flagged: int) -> Iterator[tuple[int, int, int]]:
    """A run in two where it is cut by the mark, with how often each part was handed out, for all that is known."""
    if start < flagged:
        yield start, min(stop, flagged), 1
    if stop > flagged:
        yield max(start, flagged), stop, 0


def _again_once_more(one: _Again) -> _Again:
    return _Again(one.start, one.stop, one.delivered + 1, one.key)


def _parts(pieces: list[_Again], most: int) -> Iterator[list[_Again]]:
    """The pieces in groups of so many events at most."""
    part: list[_Again] = []
    left = most
    for piece in pieces:
        while piece.stop - piece.start > left:
            part.append(piece._replace(stop=piece.start + left))
            piece = piece._replace(start=piece.start + left)
            yield part
            part, left = [], most
        part.append(piece)
        left -= piece.stop - piece.start
        if not left:
            yield part
            part, left = [], most
    if part:
        yield part


def _mixed(key: int, seed: int) -> int:
    """A hash of a key and a client: splitmix64 of both."""
    word = (seed ^ (key * _MIX)) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


def _add_gaps(stale: list[int], first: int, last: int, found: Sequence[_Entry]) -> None:
    """The numbers of a span that no entry has."""
    for entry in found:
        if first < entry.first:
            stale += (first, entry.first - 1)
        first = entry.first + entry.count
    if first <= last:
        stale += (first, last)
