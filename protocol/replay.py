"""Replay: a subscription that begins in the past reads the logs of its stream, and goes over to what comes live.

    LIST ---> READ … READ ---> SUBSCRIBE ---> LIST ---> READ … READ ---> LIVE
              until near the ends                       up to the ends of that second list

Why nothing is missed: an event of a stored stream is on a disk before anybody is told of it. When SUBACK has come, it
is either in a log that the second list tells of, below its end, or it is delivered live.

Why nothing comes twice: a chunk tells, for each origin, the last event number that it has looked at (`covered`). In a
log the numbers of an origin ascend, so whatever is delivered live with a number up to that was in the log before the
end, and is left out. To know the number just before the place where somebody wants to begin, reading begins one
position earlier.

An event that is in two logs, because its publisher had to send it to another broker, is shown where it is read first:
rows carry the numbers of their producers (`spans.py`).

Order: within a log that of the log; of several logs, the one whose last event is the oldest is read next. The host does
what `step` says and tells what came of it; events are handed on as rows, so that they are opened where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from .errors import ErrorCode, LocalError, Refused
from .limits import REPLAY_NEAR_EVENTS
from .log_catalogue import Chunk, LogInfo
from .log_rows import LogName, Row, cut_row
from .spans import Spans

__all__ = ["Piece", "Replay", "Step", "begins_in_the_past", "parse_start"]

Start = str | int | dict[str, int]


class Step(Enum):
    """What the host has to do next."""

    LIST = "list"
    READ = "read"
    SUBSCRIBE = "subscribe"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one log; of their events only those from `position` on are wanted."""

    name: LogName
    position: int
    rows: list[Row]


@dataclass(slots=True)
class _Place:
    """How far a log has been read. `wanted` is the first position that is wanted, `read` where reading goes on."""

    wanted: int
    read: int
    end: int
    time: int


def begins_in_the_past(start: str | int | None) -> bool:
    """Whether this is more than a subscription to what comes."""
    return start is not None and start != "now"


def parse_start(start: str | int) -> Start:
    """`start`, a number, or a position by log, as in "ann@1763492000:120,bob@1763492007:7". Raises LocalError."""
    if start == "start":
        return start
    if isinstance(start, int):
        if isinstance(start, bool) or start < 0:
            raise LocalError(f"a position is a number from 0, not {start!r}")
        return start
    positions: dict[str, int] = {}
    for part in start.split(","):
        partition, _, number = part.strip().rpartition(":")
        if "@" not in partition or not (number.isascii() and number.isdigit() and len(number) < 17):
            advice = "say start, now, a number, or positions such as ann@1763492000:120 with commas between"
            raise LocalError(f"{part.strip()!r} is no place to begin: {advice}")
        positions[partition] = int(number)
    return positions


class Replay:
    """See the head of this file. `on_loss` is told how many events retention has taken, and from where."""

    def __init__(self, start: str | int, on_loss: Callable[[int, str], None]) -> None:
        self.step = Step.LIST
        self.covered: dict[str, int] = {}
        self.repeated = 0
        self._seen = Spans()
        self._start = parse_start(start)
        self._on_loss = on_loss
        self._places: dict[LogName, _Place] = {}
        self._subscribed = False

    @property
    def next_read(self) -> tuple[LogName, int]:
        """Which log to read, and from which position, when the step is READ."""
        behind = [name for name, place in self._places.items() if place.read < place.end]
        name = min(behind, key=lambda name: (self._places[name].time, name))
        return name, self._places[name].read

    def listed(self, logs: Iterable[LogInfo]) -> None:
        """Every log of the stream there is now. Raises Refused when the place to begin is not among them."""
        infos = sorted(logs, key=lambda info: info.name)
        if not self._subscribed:
            wanted = self._wanted(infos)
        for info in infos:
            place = self._places.get(info.name)
            if place is None:
                first = info.first if self._subscribed else wanted[info.name]
                begin = first - 1 if first > info.first else first
                self._places[info.name] = _Place(first, begin, info.next, info.first_time)
            else:
                place.end = max(place.end, info.next)
        self._go_on()

    def subscribed(self) -> None:
        """SUBACK came: whatever is accepted from now on comes live."""
        self._subscribed = True
        self.step = Step.LIST

    def taken(self, name: LogName, chunk: Chunk) -> Piece:
        """A chunk of `next_read` came: what is wanted of it."""
        place = self._places[name]
        asked = place.read
        if chunk.first > max(place.wanted, place.read):
            lost = chunk.first - max(place.wanted, place.read)
            self._on_loss(lost, f"retention took {lost} events of log {name.partition} before they were read")
        rows = [row for row in map(self._fresh, chunk.rows) if row is not None]
        piece = Piece(name, max(place.wanted, place.read), rows)
        place.read = max(chunk.next, chunk.first)
        if not self._subscribed:
            place.end = chunk.end
        if place.read <= asked:
            # There is nothing more, whatever was listed: a copy that ends earlier than what it was made of.
            place.end = min(place.end, place.read)
        if chunk.rows:
            place.time = chunk.rows[-1].time
        for origin, number in chunk.covered.items():
            self.covered[origin] = max(number, self.covered.get(origin, number))
        self._go_on()
        return piece

    def _fresh(self, row: Row) -> Row | None:
        """The row without the events that were read from another log before."""
        if not row.producer:
            return row
        places = row.places()
        start, stop = row.number, row.number + places[-1] + 1
        fresh = self._seen.take(row.producer, start, stop)
        if fresh == [(start, stop)]:
            return row
        kept = [at for at, place in enumerate(places) if any(a <= start + place < b for a, b in fresh)]
        self.repeated += row.count - len(kept)
        return cut_row(row, kept) if kept else None

    def _wanted(self, infos: list[LogInfo]) -> dict[LogName, int]:
        """Where to begin in each log."""
        start = self._start
        firsts = {info.name: info.first for info in infos}
        if start == "start":
            return firsts
        if isinstance(start, int):
            if len(infos) > 1:
                places = ",".join(f"{info.partition}:{info.first}" for info in infos)
                text = f"the stream has {len(infos)} logs: say where to begin in each, as in {places}"
                raise Refused(ErrorCode.BAD_REQUEST, text)
            start = {info.partition: start for info in infos}
        assert isinstance(start, dict), "parse_start makes one of three"
        known = {info.partition: info for info in infos}
        for partition, position in start.items():
            if partition not in known:
                has = ", ".join(known) or "none"
                raise Refused(ErrorCode.NOT_FOUND, f"the stream has no log {partition} within reach: it has {has}")
            if position > known[partition].next:
                text = f"log {partition} ends at {known[partition].next}, before {position}"
                raise Refused(ErrorCode.NOT_FOUND, text)
        return {info.name: start.get(info.partition, info.first) for info in infos}

    def _go_on(self) -> None:
        """What to do after a list or a chunk."""
        left = sum(max(0, place.end - place.read) for place in self._places.values())
        if left == 0:
            self.step = Step.LIVE if self._subscribed else Step.SUBSCRIBE
        elif not self._subscribed and self.step is Step.READ and left <= REPLAY_NEAR_EVENTS:
            self.step = Step.SUBSCRIBE
        else:
            self.step = Step.READ
