"""Bodies: the events at positions of a log, from the log or copy here, or from a broker that has one.

Batches of this broker that passed the high watermark a moment ago are kept in memory, so that an event that is handed
out at once is not read from the disk. What is elsewhere is asked of the broker that wrote the log, and of the others in
turn when it cannot be reached or does not have it. An answer holds a beginning of what was asked for; the rest is asked
for again.

A position that no answer has is gone: retention took it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from headgate.protocol.data import (
    Batch,
    LogKind,
    LogName,
    Portion,
    Row,
    cut_row,
    decode_row,
    encode_row,
    join_u32,
    row_batch,
)
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.messages import Fetched

from ..cluster import Cluster
from ..effects import Effect, Send
from ..inputs import RowsRead
from ..links import PeerInfo
from ..log import Committed, Log
from ..timers import NEVER, Timers
from .limits import (
    BODIES_READ_BYTES,
    BODIES_RECENT_BYTES,
    FETCH_EVENT_BYTES,
    FETCH_SECONDS,
)
from .messages import Fetch, Place
from .runs import Run, join_runs, split_runs

__all__ = ["BODIES", "Bodies", "Piece"]

BODIES = "durable-bodies"
"""Key of the timer: a broker that was asked for events has not answered."""


class Piece(NamedTuple):
    """Events of one row, and the position of each."""

    positions: Sequence[int]
    portion: Portion


Then: TypeAlias = Callable[[list[Piece] | Refused, float], None]
"""Told what there is of what was asked for, in order; or that nobody who has the log can be reached."""


class _Recent(NamedTuple):
    """A batch of ours that was committed a moment ago."""

    first: int
    base: int
    time: int
    batch: Batch


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
    pieces: list[Piece] = field(default_factory=list)


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
        self._recent: dict[LogName, deque[_Recent]] = {}
        self._recent_order: deque[LogName] = deque()
        self._recent_bytes = 0
        self._fetching: dict[int, _Fetching] = {}
        self._numbers = 0
        self.from_memory = self.from_disk = self.fetched_far = 0

    # --- what was committed a moment ago -----------------------------------------------------------------------------

    def committed(self, committed: Iterable[Committed]) -> None:
        """Keep these for a while."""
        for one in committed:
            if one.log is None:
                continue
            recent = self._recent.get(one.log)
            if recent is None:
                recent = self._recent[one.log] = deque()
            if recent and recent[-1].first + recent[-1].batch.count != one.first:
                continue  # it does not follow what is kept: the disk has it
            recent.append(_Recent(one.first, one.base, one.time, one.batch))
            self._recent_order.append(one.log)
            self._recent_bytes += len(one.batch.records)
        while self._recent_bytes > BODIES_RECENT_BYTES:
            name = self._recent_order.popleft()
            recent = self._recent[name]
            self._recent_bytes -= len(recent.popleft().batch.records)
            if not recent:
                del self._recent[name]

    def _remembered(self, name: LogName, runs: Sequence[Run]) -> list[Piece] | None:
        """All of them, when all are kept in memory."""
        recent = self._recent.get(name)
        if not recent or runs[0][0] < recent[0].first or runs[-1][1] > recent[-1].first + recent[-1].batch.count:
            return None
        firsts = [one.first for one in recent]
        pieces: list[Piece] = []
        at = bisect_right(firsts, runs[0][0]) - 1
        left = list(runs)
        while left:
            one = recent[at]
            end = one.first + one.batch.count
            rows: list[int] = []
            while left and left[0][0] < end:
                start, stop = left[0]
                cut = min(stop, end)
                rows += range(start - one.first, cut - one.first)
                if cut == stop:
                    left.pop(0)
                else:
                    left[0] = (cut, stop)
            if rows:
                portion = one.batch.portion(rows, self._origin, one.base, one.time)
                pieces.append(Piece([one.first + row for row in rows], portion))
            at += 1
        return pieces

    # --- asking ------------------------------------------------------------------------------------------------------

    def fetch(self, stream: str, place: Place, runs: Sequence[Run], then: Then, now: float) -> None:
        """Find these events, and tell."""
        name = LogName(place.broker, place.epoch, int(LogKind.EVENTS), stream)
        pieces = self._remembered(name, runs)
        if pieces is not None:
            self.from_memory += 1
            then(pieces, now)
            return
        held = self._log.logs.get(name)
        if held is not None and runs[-1][1] <= held.readable:
            self.from_disk += 1
            self._read(name, list(runs), [], lambda rows, rest, now: then([_piece(*row) for row in rows], now), now)
            return
        self._numbers += 1
        one = _Fetching(self._numbers, stream, place, list(runs), then, now + FETCH_SECONDS)
        self._fetching[one.number] = one
        self._ask(one, now)

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
        if one.pieces:
            one.then(one.pieces, now)
            return
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
        upto = 0
        for data in message.rows:
            row = decode_row(data)
            wanted = _wanted(row, one.runs)
            if wanted:
                one.pieces.append(_piece(row, wanted))
            places = row.places()
            upto = row.first + places[-1] + 1
        self.fetched_far += len(message.rows)
        one.runs = [(max(start, upto), stop) for start, stop in one.runs if stop > upto] if upto else []
        if one.runs:
            one.tried.pop(teller, None)
            self._ask(one, now)
            return
        del self._fetching[one.number]
        one.then(one.pieces, now)

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

        def read(rows: list[tuple[Row, list[int]]], rest: list[Run], now: float) -> None:
            cut = [encode_row(cut_row(row, kept) if len(kept) < row.count else row) for row, kept in rows]
            self._answer(teller, Fetched(message.number, 0, "", cut))

        self._read(name, runs, [], read, now, once=True)

    def _answer(self, teller: int, message: Fetched) -> None:
        info = self._cluster.peers.by_identifier.get(teller)
        if info is not None and info.link is not None:
            self._effects.append(Send(info.link, message))

    def _read(
        self,
        name: LogName,
        runs: list[Run],
        found: list[tuple[Row, list[int]]],
        then: Callable[[list[tuple[Row, list[int]]], list[Run], float], None],
        now: float,
        once: bool = False,
    ) -> None:
        """Read rows of a log here that have these positions. `once`: a part of them is enough, if it is not empty."""
        first, last = runs[0]

        def came(read: RowsRead, now: float) -> None:
            left = runs
            for data in read.rows:
                try:
                    row = decode_row(data)
                except ProtocolViolation:
                    continue  # it is damaged, and was told of when it was looked at
                wanted = _wanted(row, left)
                if wanted:
                    found.append((row, wanted))
                upto = row.first + row.count
                left = [(max(start, upto), stop) for start, stop in left if stop > upto]
                if not left:
                    break
            beyond = max(read.next, first + 1)
            left = [(max(start, beyond), stop) for start, stop in left if stop > beyond] if left else []
            if not left or (once and found) or not (read.rows or read.damage):
                then(found, left, now)
            else:
                self._read(name, left, found, then, now, once)

        size = min(BODIES_READ_BYTES, (last - first) * FETCH_EVENT_BYTES)
        self._log.read_rows(name, first, size, came)

    def validate(self) -> None:
        """What is kept adds up, and whoever waits has a timer."""
        kept = [one for recent in self._recent.values() for one in recent]
        assert self._recent_bytes == sum(len(one.batch.records) for one in kept)
        assert len(self._recent_order) == len(kept)
        assert all(self._timers.when(BODIES) <= one.until for one in self._fetching.values())


def _wanted(row: Row, runs: Sequence[Run]) -> list[int]:
    """Which events of a row are at these positions: their places among those that it has."""
    places = row.places()
    if not row.offsets:
        end = row.first + row.count
        found: list[int] = []
        for start, stop in runs:
            if start >= end:
                break
            found += range(max(start, row.first) - row.first, max(min(stop, end), row.first) - row.first)
        return found
    return [at for at, place in enumerate(places) if any(start <= row.first + place < stop for start, stop in runs)]


def _piece(row: Row, kept: Sequence[int]) -> Piece:
    """Some events of a row as a portion. Raises ProtocolViolation."""
    places = row.places()
    own = [places[at] for at in kept]
    portion = row_batch(row).portion(kept, row.origin, 0, row.time)
    portion.base = row.base + own[0]
    portion.offsets = b"" if own[-1] - own[0] + 1 == len(own) else join_u32(place - own[0] for place in own)
    return Piece([row.first + place for place in own], portion)
