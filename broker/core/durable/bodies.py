"""Bodies: the events at positions of a log, from the log or copy here, or from a broker that has one.

Batches of this broker that passed the high watermark a moment ago are kept in memory, so that an event that is handed
out at once is not read from the disk. What is elsewhere is asked of the broker that wrote the log, and of the others in
turn when it cannot be reached or does not have it.

An answer holds a beginning of what was asked for, so that neither memory nor a frame has to hold more than a chunk; who
wants the rest asks for it. A position before that rest which has no event is gone: retention took it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from headgate.protocol.data import LogKind, LogName, Portion, Row, cut_row, decode_row, encode_row, join_u32, row_batch
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.messages import Fetched

from ..cluster import Cluster
from ..effects import Effect, Send
from ..inputs import RowsRead
from ..links import PeerInfo
from ..log import Committed, HeldLog, Log
from ..timers import NEVER, Timers
from .limits import BODIES_GAP_BYTES, BODIES_OVERHEAD_BYTES, BODIES_READ_BYTES, BODIES_RECENT_BYTES, FETCH_SECONDS
from .messages import Fetch, Place
from .runs import Run, join_runs, split_runs

__all__ = ["BODIES", "Bodies", "Found", "Piece"]

BODIES = "durable-bodies"
"""Key of the timer: a broker that was asked for events has not answered."""

_SLACK_BYTES = 4096
"""Read beyond what events take on the average: rows begin and end elsewhere."""

_COMPACT = 1024
"""Batches let go of before the lists are cut."""


class Piece(NamedTuple):
    """Events of one row, and the position of each."""

    positions: Sequence[int]
    portion: Portion


class Found(NamedTuple):
    """What there is of a beginning of what was asked for, in order; `rest` was not looked for yet."""

    pieces: list[Piece]
    rest: list[Run]


Then: TypeAlias = Callable[[Found | Refused, float], None]
"""Told what there is; or that nobody who has the log can be reached."""


class _Read(NamedTuple):
    """A row that was read, and the places in it of the events that are wanted."""

    data: bytes
    row: Row
    wanted: Sequence[int]


class _Wanted:
    """Walks over the positions that are wanted, once, in ascending order."""

    __slots__ = ("_at", "_runs", "_start")

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._at = 0
        self._start = 0  # within the run that it is at

    def take(self, begin: int, end: int) -> Sequence[int]:
        """Those from `begin` to `end - 1`; those before it are passed over."""
        parts: list[range] = []
        while self._at < len(self._runs):
            start, stop = self._runs[self._at]
            start = max(start, self._start, begin)
            if start < stop:
                if start >= end:
                    self._start = start
                    break
                parts.append(range(start, min(stop, end)))
                if stop > end:
                    self._start = end
                    break
            self._at += 1
        return parts[0] if len(parts) == 1 else [*chain.from_iterable(parts)]

    @property
    def first(self) -> int | None:
        """The next one."""
        return max(self._runs[self._at][0], self._start) if self._at < len(self._runs) else None

    def rest(self) -> list[Run]:
        """Those that were not walked over."""
        rest = list(self._runs[self._at :])
        if rest:
            rest[0] = max(rest[0][0], self._start), rest[0][1]
        return rest


class _Memory:
    """The newest batches of a log of ours, without a hole between them; those before `_head` were let go of."""

    __slots__ = ("_batches", "_firsts", "_head", "end")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[Committed | None] = []
        self._head = 0
        self.end = 0

    def __len__(self) -> int:
        return len(self._firsts) - self._head

    def append(self, one: Committed) -> None:
        """Keep the next one."""
        self._firsts.append(one.first)
        self._batches.append(one)
        self.end = one.first + one.batch.count

    def let_go(self) -> int:
        """Forget the oldest; returns its size."""
        oldest, self._batches[self._head] = self._batches[self._head], None
        self._head += 1
        if self._head >= _COMPACT and 2 * self._head > len(self._firsts):
            del self._firsts[: self._head], self._batches[: self._head]
            self._head = 0
        assert oldest is not None
        return _size(oldest)

    def find(self, runs: Sequence[Run], origin: str) -> list[Piece] | None:
        """The events at these positions; None when not all of them are here."""
        at = bisect_right(self._firsts, runs[0][0], self._head) - 1
        if at < self._head or runs[-1][1] > self.end:
            return None
        wanted, pieces = _Wanted(runs), list[Piece]()
        while wanted.first is not None:
            at = bisect_right(self._firsts, wanted.first, at) - 1
            one = self._batches[at]
            assert one is not None
            positions = wanted.take(one.first, one.first + one.batch.count)
            portion = one.batch.portion(_places(positions, one.first), origin, one.base, one.time)
            pieces.append(Piece(positions, portion))
        return pieces


@dataclass(slots=True, eq=False)
class _Fetching:
    """Events that another broker was asked for."""

    number: int
    stream: str
    place: Place
    runs: list[Run]
    then: Then
    until: float
    asked: int = 0
    tried: dict[int, None] = field(default_factory=dict)


class Bodies:
    """Finds events by their positions."""

    def __init__(
        self,
        origin: str,
        effects: list[Effect],
        log: Log,
        cluster: Cluster,
        tell: Callable[[int, Any], None],
        timers: Timers,
    ) -> None:
        self._origin = origin
        self._effects = effects
        self._log = log
        self._cluster = cluster
        self._tell = tell
        self._timers = timers
        self._memories: dict[LogName, _Memory] = {}
        self._order: deque[_Memory] = deque()
        """Where each batch is that is kept, from the oldest on."""
        self._memory_bytes = 0
        self._fetching: dict[int, _Fetching] = {}
        self._numbers = 0
        self.from_memory = self.from_disk = self.from_far = 0

    # --- what was committed a moment ago -----------------------------------------------------------------------------

    def committed(self, committed: Iterable[Committed]) -> None:
        """Keep these for a while."""
        for one in committed:
            if one.log is None:
                continue
            memory = self._memories.get(one.log)
            if memory is None or not len(memory) or memory.end != one.first:
                memory = self._memories[one.log] = _Memory()
            memory.append(one)
            self._order.append(memory)
            self._memory_bytes += _size(one)
        while self._memory_bytes > BODIES_RECENT_BYTES:
            self._memory_bytes -= self._order.popleft().let_go()

    # --- asking ------------------------------------------------------------------------------------------------------

    def fetch(self, stream: str, place: Place, runs: Sequence[Run], then: Then, now: float) -> None:
        """Find these events, or the first of them, and tell."""
        name = LogName(place.broker, place.epoch, int(LogKind.EVENTS), stream)
        memory = self._memories.get(name)
        pieces = memory.find(runs, self._origin) if memory is not None and len(memory) else None
        if pieces is not None:
            self.from_memory += 1
            then(Found(pieces, []), now)
            return
        held = self._log.logs.get(name)
        if held is not None and runs[-1][1] <= held.readable and self._begins_here(held, runs[0][0]):
            self.from_disk += 1

            def came(read: list[_Read], rest: list[Run], now: float) -> None:
                then(Found([_piece(one.row, one.wanted) for one in read], rest), now)

            self._read(held, runs, came)
            return
        self.from_far += 1
        self._numbers += 1
        one = _Fetching(self._numbers, stream, place, list(runs), then, now + FETCH_SECONDS)
        self._fetching[one.number] = one
        self._ask(one, now)

    def _begins_here(self, held: HeldLog, position: int) -> bool:
        """Whether what is not here is nowhere: a copy may have been trimmed before the log that its writer has."""
        if held.own or held.orphan or held.first <= position:
            return True
        return all(info.name != held.name.broker for info in self._cluster.linked())

    def _ask(self, one: _Fetching, now: float) -> None:
        """The broker that wrote it, or the next one that was not asked yet."""
        linked = self._cluster.linked()
        linked.sort(key=lambda info: (info.name != one.place.broker, info.identifier))
        for info in linked:
            if info.identifier not in one.tried:
                one.tried[info.identifier] = None
                one.asked = info.identifier
                one.until = now + FETCH_SECONDS
                self._timers.by(BODIES, one.until)
                self._tell(info.identifier, Fetch(one.number, one.stream, one.place, join_runs(one.runs)))
                return
        del self._fetching[one.number]
        log = f"{one.place.broker}@{one.place.epoch}"
        text = f"no broker that can be reached has log {log} of stream {one.stream!r}"
        one.then(Refused(ErrorCode.UNAVAILABLE, text), now)

    def fetched(self, teller: int, message: Fetched, now: float) -> None:
        """Another broker's answer. Raises ProtocolViolation."""
        one = self._fetching.get(message.number)
        if one is None or one.asked != teller:
            return
        if message.code:
            self._ask(one, now)
            return
        wanted, pieces = _Wanted(one.runs), list[Piece]()
        for data in message.rows:
            row = decode_row(data)
            places = row.places()
            positions = wanted.take(row.first + places[0], row.first + places[-1] + 1)
            here = positions if not row.offsets else dict.fromkeys(positions)
            kept = [at for at, place in enumerate(places) if row.first + place in here]
            if kept:
                pieces.append(_piece(row, kept))
        del self._fetching[one.number]
        one.then(Found(pieces, wanted.rest() if message.rows else []), now)

    def go_on(self, now: float) -> None:
        """Who did not answer is not waited for."""
        for one in [one for one in self._fetching.values() if one.until <= now]:
            self._ask(one, now)
        self._timers.at(BODIES, min((one.until for one in self._fetching.values()), default=NEVER))

    def link_down(self, info: PeerInfo, now: float) -> None:
        """It will not answer."""
        for one in [one for one in self._fetching.values() if one.asked == info.identifier]:
            self._ask(one, now)

    # --- answering ---------------------------------------------------------------------------------------------------

    def asked(self, teller: int, message: Fetch, now: float) -> None:
        """Another broker asks."""
        runs = split_runs(message.runs)
        name = LogName(message.place.broker, message.place.epoch, int(LogKind.EVENTS), message.stream)
        held = self._log.logs.get(name)
        if held is None or not runs or runs[-1][1] > held.readable:
            self._answer(teller, Fetched(message.number, ErrorCode.NOT_FOUND, "this broker has not got that", []))
            return

        def came(read: list[_Read], rest: list[Run], now: float) -> None:
            rows = [
                one.data if len(one.wanted) == one.row.count else encode_row(cut_row(one.row, one.wanted))
                for one in read
            ]
            self._answer(teller, Fetched(message.number, 0, "", rows))

        self._read(held, runs, came)

    def _answer(self, teller: int, message: Fetched) -> None:
        info = self._cluster.peers.by_identifier.get(teller)
        if info is not None and info.link is not None:
            self._effects.append(Send(info.link, message))

    def _read(self, held: HeldLog, runs: Sequence[Run], then: Callable[[list[_Read], list[Run], float], None]) -> None:
        """Read rows of a log here that have these positions: a chunk in which some are, or none if there are none."""
        wanted = _Wanted(runs)

        def came(read: RowsRead, now: float) -> None:
            found: list[_Read] = []
            for data in read.rows:
                try:
                    row = decode_row(data)
                except ProtocolViolation:
                    continue  # it is damaged, and was told of when it was looked at
                positions = wanted.take(row.first, row.first + row.count)
                if positions:
                    found.append(_Read(data, row, _places(positions, row.first)))
                elif wanted.first is None:
                    break
            if not read.rows and not read.damage:
                then([], [], now)
                return
            beyond = max(read.next, runs[0][0] + 1)
            wanted.take(beyond, beyond)
            rest = wanted.rest()
            if found or not rest:
                then(found, rest, now)
            else:
                self._read(held, rest, then)

        self._log.read_rows(held.name, runs[0][0], _bytes_of(held, runs), came)

    def validate(self) -> None:
        """Bytes kept in memory add up, and every fetch has a timer."""
        assert len(self._order) >= sum(map(len, self._memories.values()))
        assert self._memory_bytes <= BODIES_RECENT_BYTES
        assert all(self._timers.when(BODIES) <= one.until for one in self._fetching.values())


def _size(one: Committed) -> int:
    return len(one.batch.records) + len(one.batch.topics) + BODIES_OVERHEAD_BYTES


def _places(positions: Sequence[int], first: int) -> Sequence[int]:
    """The same, counted from `first`."""
    if isinstance(positions, range):
        return range(positions.start - first, positions.stop - first)
    return [position - first for position in positions]


def _bytes_of(held: HeldLog, runs: Sequence[Run]) -> int:
    """How much to read for these positions, as large as events of this log are: where little is between two of them,
    both are read at once.
    """
    each = held.bytes // max(1, held.next - held.first) + 1
    (first, end), *others = runs
    for start, stop in others:
        if (start - end) * each > BODIES_GAP_BYTES or (end - first) * each > BODIES_READ_BYTES:
            break
        end = stop
    return min(BODIES_READ_BYTES, (end - first) * each * 5 // 4 + _SLACK_BYTES)


def _piece(row: Row, kept: Sequence[int]) -> Piece:
    """Some events of a row, by their places among those that it has. Raises ProtocolViolation."""
    portion = row_batch(row).portion(kept, row.origin, row.base, row.time)
    if not row.offsets:
        first, last = row.first + kept[0], row.first + kept[-1]
        follow = last - first + 1 == len(kept)
        return Piece(range(first, last + 1) if follow else [row.first + place for place in kept], portion)
    places = row.places()
    own = [places[at] for at in kept]
    portion.base = row.base + own[0]
    portion.offsets = b"" if own[-1] - own[0] + 1 == len(own) else join_u32(place - own[0] for place in own)
    return Piece([row.first + place for place in own], portion)
