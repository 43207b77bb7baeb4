"""Replay: a subscription that begins in the past reads the logs of its stream, goes over to what comes live, and reads
again what it missed.

    LIST ---> READ … READ ---> SUBSCRIBE ---> LIST ---> READ … READ ---> LIVE
              until near the ends    ^                  up to the ends     |
                                     |                  of that list       |
                                     '-------- something was lost ---------'

Why nothing is missed: an event of a stored stream is on a disk before anybody is told of it. When SUBACK has come, it
is either in a log that the next list tells of, below its end, or it is delivered live. When a delivery was lost, it was
on a disk before that, so the list that is made after the loss tells of it.

Why nothing comes twice: a chunk tells, for each origin, the last event number that it has looked at (`covered`). In a
log the numbers of an origin ascend, so whatever is delivered live with a number up to that was in the log before the
end, and is left out. To know the number just before the place where somebody wants to begin, reading begins one
position earlier. And what was handed out live is left out of what is read later: `delivered.py` knows it.

Where to go on after a loss: behind what is settled, which nobody knows the position of, for a delivery carries none. So
it is SOUGHT, by halving, before the first READ: (life, number) ascends in every log.

An event that is in two logs, because its publisher had to send it to another broker, is shown where it is read first:
rows carry the numbers of their producers (`ProducerRanges`). Live deliveries carry none.

Logs that cannot be read now: those who list name the brokers that did not answer. Whoever asks is told when they are as
many as keep an event; and the next lists tell of their logs again when they are back.

Order: within a log that of the log; of several logs, the one whose last event is the oldest is read next, and what was
read is merged (`merging.py`), so that a publisher that moved between brokers is read in its own order. The host does
what `step` says, tells what came of it, and takes what `drain` gives; events are handed on as rows, so that they are
opened where they are used.

`Replaying` is that host for one inbox, as work for a task (`task.py`). While it is live there is nothing to do, but for
a look at the logs now and then, until a gap comes next in its inbox. Whoever waits for events may be cancelled, or have
no time to see the end of a step: what was begun goes on with whoever waits next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ..data import LogName, Row, cut_row
from ..errors import CannotConnect, ConnectionLost, ErrorCode, HeadgateError, LocalError, Refused
from ..limits import (
    REPLAY_POLL_SECONDS,
    REPLAY_POLL_SECONDS_MAX,
)
from ..messages import Gap
from .delivered import DeliveredSet, source_of
from .limits import DEFAULT_LIMITS, ClientLimits
from .logs import Chunk, LogInfo
from .merging import Merge, Piece
from .receiving import Event, Inbox
from .task import Outcome, Task, Work, settled

if TYPE_CHECKING:
    from .core import ClientCore

__all__ = [
    "PollSchedule",
    "Replay",
    "Replaying",
    "ProducerRanges",
    "Step",
    "begins_in_the_past",
    "parse_start",
]

_DOUBLINGS_MAX = 20
"""More would make no pause longer."""


class PollSchedule:
    """Says when a live replay asks again what logs there are, and where they end: exponential backoff.

    Brokers that are away may be on their way here, as after a restart of all, so the first looks for them are soon and
    each later one is less so. When no broker is away a look only marks where the logs end, once in a while.
    """

    def __init__(self, limits: ClientLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._in_vain = 0  # in a row

    def pause(self, is_anybody_away: bool, took: float) -> float:
        """Seconds until the next one, when this one took so many: they are kept from what comes live."""
        if not is_anybody_away:
            self._in_vain = 0
            return self._limits.replay_mark_seconds
        doublings = min(self._in_vain, _DOUBLINGS_MAX)
        self._in_vain += 1
        pause = min(self._limits.replay_poll_seconds * 2.0**doublings, REPLAY_POLL_SECONDS)
        return min(pause + 3 * took, REPLAY_POLL_SECONDS_MAX)


Span = tuple[int, int]


class ProducerRanges:
    """Remembers which numbers of a producer were seen, as a few intervals: an event that is in two logs is shown once.

    It is in two when its broker wrote it, died before another had a copy, and its publisher, which had no answer, sent
    it to another one. Numbers mostly follow one another, so a producer costs one interval; both counts are bounded, and
    what is forgotten is what is oldest.
    """

    def __init__(self, limits: ClientLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._seen: dict[str, list[Span]] = {}

    def take(self, producer: str, start: int, stop: int) -> list[Span]:
        """Those of these numbers that were not seen before, as spans. From now on all are seen."""
        spans = self._seen.get(producer)
        if spans is None:
            if len(self._seen) >= self._limits.producers_known:
                del self._seen[next(iter(self._seen))]
            spans = self._seen[producer] = []
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], stop)
            return [(start, stop)]
        fresh = _gaps(spans, start, stop)
        self._seen[producer] = _joined([*spans, (start, stop)])[-self._limits.producer_spans :]
        return fresh


def _gaps(spans: list[Span], start: int, stop: int) -> list[Span]:
    """What of it lies between these spans, which ascend."""
    fresh: list[Span] = []
    for first, last in spans:
        if first >= stop:
            break
        if start < first:
            fresh.append((start, first))
        start = max(start, last)
    if start < stop:
        fresh.append((start, stop))
    return fresh


def _joined(spans: list[Span]) -> list[Span]:
    """The same numbers in ascending spans that do not touch."""
    joined: list[Span] = []
    for start, stop in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


Start = str | int | dict[str, int]

_EVENT_ID = re.compile(r"[0-9a-f]{16}-[0-9a-f]{1,13}\.[0-9]{1,16}", re.ASCII)


class Step(Enum):
    """What the host has to do next."""

    LIST = "list"
    SEEK = "seek"
    READ = "read"
    SUBSCRIBE = "subscribe"
    LIVE = "live"


@dataclass(slots=True)
class _Place:
    """How far a log has been read. `wanted` is the first position that is wanted, `read` where reading goes on.

    While that is being sought: it is from `read` to `high`, and a look at `probe` tells more. `mark` is where the log
    ended when it was listed last and nothing was missing: all before it has come when there is silence after that.
    `missed`: reading stopped at `end` because no broker could say more, and no list told of more since then.
    """

    wanted: int
    read: int
    end: int
    time: int
    is_sought: bool = False
    probe: int = 0
    high: int = 0
    mark: int = 0
    missed: bool = False


def begins_in_the_past(start: str | int | None) -> bool:
    """Whether this is more than a subscription to what comes."""
    return start is not None and start != "now"


def parse_start(start: str | int) -> Start:
    """`start`, `now`, a number, or places: a position by log, the number of an event by its origin.

    As in "ann@1763492000:120,bob@1763492007:7,90ab12cd34ef5678-691c.41". Raises LocalError.
    """
    if start in ("start", "now"):
        return start
    if isinstance(start, int):
        if isinstance(start, bool) or start < 0:
            raise LocalError(f"a position is a number from 0, not {start!r}")
        return start
    places: dict[str, int] = {}
    for part in map(str.strip, start.split(",")):
        partition, _, number = part.rpartition(":")
        if "@" in partition and number.isascii() and number.isdigit() and len(number) < 17:
            places[partition] = int(number)
        elif _EVENT_ID.fullmatch(part):
            origin, _, number = part.rpartition(".")
            places[origin] = max(int(number), places.get(origin, 0))
        else:
            advice = "say start, now, a number, or positions such as ann@1763492000:120 and ids of events, with commas"
            raise LocalError(f"{part!r} is no place to begin: {advice} between")
    return places


class Replay:
    """Says which log to read next, from which position, and what of it is new: the steps, without the waiting.

    `on_loss` is told how many events cannot be had (0: nobody knows), and why.
    """

    def __init__(
        self, start: str | int, on_loss: Callable[[int, str], None], limits: ClientLimits = DEFAULT_LIMITS
    ) -> None:
        self.step = Step.LIST
        self.covered: dict[str, int] = {}
        self.delivered = DeliveredSet()
        self.repeated = 0
        self.is_subscribed = False
        self.away: tuple[str, ...] = ()  # brokers whose logs could not be had
        self._told: set[str] = set()
        self._seen = ProducerRanges(limits)
        self._merge = Merge()
        self._start = parse_start(start)
        self._unmet: dict[str, str] = {}  # brokers whose events were named, and no log of theirs was seen
        self._on_loss = on_loss
        self._near_events = limits.replay_near_events
        self._places: dict[LogName, _Place] = {}
        self._was_live = False
        self._is_whole = True  # every log is wanted up to its end, not only those that are back
        self._skipped: tuple[str, ...] = ()  # brokers that were away when it was to begin now

    @property
    def begins(self) -> dict[str, int]:
        """Where each log begins that is known, by the name of the log."""
        return {name.partition: place.wanted for name, place in self._places.items()}

    @property
    def next_read(self) -> tuple[LogName, int]:
        """Which log to read, and from which position, when the step is READ."""
        behind = [name for name, place in self._places.items() if place.read < place.end]
        name = min(behind, key=lambda name: (self._places[name].time, name))
        return name, self._places[name].read

    @property
    def next_look(self) -> tuple[LogName, int]:
        """Which log to look into, and at which position, when the step is SEEK: one event will do, whatever it is."""
        name = next(name for name, place in self._places.items() if place.is_sought)
        return name, self._places[name].probe

    def listed(self, logs: Iterable[LogInfo], away: Iterable[str] = (), copies: int = 1, mark: bool = False) -> None:
        """Every log of the stream that can be had now, the brokers that could not be asked, and how many disks have
        what was acknowledged. `mark` where the logs end: nothing came for a while, so all that was there before came.

        Raises Refused when the place to begin is not among them.
        """
        infos = sorted(logs, key=lambda info: info.name)
        were_away, self.away = self.away, tuple(sorted(away))
        if not self.is_subscribed:
            wanted = self._wanted(infos)
        for info in infos:
            place = self._places.get(info.name)
            if place is None:
                first = self._first(info) if self.is_subscribed else wanted[info.name]
                begin = first - 1 if first > info.first else first
                place = self._places[info.name] = _Place(first, begin, info.next, info.first_time)
            elif self._is_whole or place.missed or info.name.broker in were_away:
                place.missed = place.missed and info.next <= place.end
                place.end = max(place.end, info.next)
            elif mark:
                place.read = place.end = max(place.read, place.mark)
                place.mark = info.next
            self._seek(place)
        self.delivered.keeps_old = bool(self.away) or any(place.missed for place in self._places.values())
        self._tell_who_is_away(copies)
        self._go_on()

    def subscribed(self) -> None:
        """SUBACK came: whatever is accepted from now on comes live."""
        self.is_subscribed = True
        self.step = Step.LIST

    def lost(self) -> None:
        """While it was LIVE, deliveries were lost, and all that came before that was handed out."""
        assert self.step is Step.LIVE
        self._is_whole = True
        self.step = Step.SUBSCRIBE

    def look_again(self) -> None:
        """While it was LIVE: brokers may be back, or logs have grown."""
        assert self.step is Step.LIVE
        self.step = Step.LIST

    def looked(self, name: LogName, chunk: Chunk) -> None:
        """A row of `next_look` came, or none. Raises Refused when no log has events of a broker that was named."""
        place = self._places[name]
        row = chunk.rows[0] if chunk.rows else None
        if row is not None:
            self._unmet.pop(source_of(row.origin)[0], None)
        if row is not None and self.delivered.settled(row.origin, row.base + row.count - 1):
            place.read = row.first + row.count
        else:
            place.high = place.probe
            if row is not None:
                # It may begin before the place that was looked at, and what is settled end within it.
                place.high = min(place.high, max(row.first, place.read))
        place.probe = (place.read + place.high) // 2
        place.is_sought = place.read < place.high
        self._go_on()

    def drain(self) -> Iterator[Piece]:
        """What was read and comes next, in order; the rest waits for logs that may have something older."""
        return self._merge.drain({name: place.time for name, place in self._places.items() if place.read < place.end})

    def taken(self, name: LogName, chunk: Chunk) -> None:
        """A chunk of `next_read` came; `drain` has what is wanted of it, when it is its turn."""
        place = self._places[name]
        asked = place.read
        lost = chunk.first - max(place.wanted, place.read)
        if lost > 0 and not self._was_live:
            self._on_loss(lost, f"retention took {lost} events of log {name.partition} before they were read")
        elif lost > 0 and not (chunk.rows and self._is_known_before(chunk.rows[0])):
            text = f"retention took events of log {name.partition} before they were read: some may have come, some not"
            self._on_loss(0, text)
        rows = [row for row in map(self._unheard, map(self._fresh, chunk.rows)) if row is not None]
        self._merge.add(Piece(name, max(place.wanted, place.read), rows))
        place.read = max(chunk.next, chunk.first)
        if not self.is_subscribed:
            place.end = chunk.end
        if place.read <= asked < place.end:
            # There is nothing more, whatever was listed: a copy that ends earlier than what it was made of.
            self._do_without(name)
        if chunk.rows:
            place.time = chunk.rows[-1].time
        for origin, number in chunk.covered.items():
            self.covered[origin] = max(number, self.covered.get(origin, number))
        self._go_on()

    def unreadable(self, name: LogName, reason: str, is_early: bool = False) -> None:
        """No broker could say what `next_read` or `next_look` wants: for now, all is done without it.

        `is_early`: what is behind that position is not on enough disks yet to be read; what is before may be.
        """
        if is_early and self.step is Step.SEEK:
            self._miss(name.broker)
            self.looked(name, Chunk([], 0, 0, 0, {}))
            return
        self._do_without(name)
        if name.broker not in self._told:
            self._told.add(name.broker)
            self._on_loss(0, f"log {name.partition} cannot be read, it is tried again every few seconds: {reason}")
        self._go_on()

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _seek(self, place: _Place) -> None:
        """Look for where to go on, if there is something behind it and reading has not gone there by itself."""
        place.is_sought = place.read < place.end and not self.delivered.is_complete
        place.probe, place.high = place.read, place.end

    def _is_known_before(self, row: Row) -> bool:
        """Whether all of its broker that is before this row was read or handed out live, or told of."""
        if self.delivered.settled(row.origin, row.base - 1):
            return True
        covered = self.covered.get(row.origin)
        return covered is not None and self.delivered.has_all(row.origin, covered + 1, row.base)

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

    def _unheard(self, row: Row | None) -> Row | None:
        """The row without the events that were handed out live."""
        if row is None:
            return None
        kept = self.delivered.unheard(row.origin, [row.base + place for place in row.places()])
        if len(kept) == row.count:
            return row
        return cut_row(row, kept) if kept else None

    def _wanted(self, infos: list[LogInfo]) -> dict[LogName, int]:
        """Where to begin in each log."""
        start = self._start
        firsts = {info.name: info.first for info in infos}
        if start == "start":
            return firsts
        if start == "now":
            self._skipped = self.away
            return {info.name: info.next for info in infos}
        if isinstance(start, int):
            if len(infos) > 1:
                places = ",".join(f"{info.partition}:{info.first}" for info in infos)
                text = f"the stream has {len(infos)} logs: say where to begin in each, as in {places}"
                raise Refused(ErrorCode.BAD_REQUEST, text)
            start = {info.partition: start for info in infos}
        assert isinstance(start, dict), "parse_start makes one of four"
        known = {info.partition: info for info in infos}
        for partition, position in start.items():
            if "@" not in partition:
                self.delivered.settle(partition, position)
                self._unmet[source_of(partition)[0]] = f"{partition}.{position}"
            elif partition not in known and not self.away:
                text = f"the stream has no log {partition} within reach: it has {', '.join(known) or 'none'}"
                raise Refused(ErrorCode.NOT_FOUND, text)
            elif not self.away and position > known[partition].next:
                text = f"log {partition} ends at {known[partition].next}, before {position}"
                raise Refused(ErrorCode.NOT_FOUND, text)
        return {info.name: start.get(info.partition, info.first) for info in infos}

    def _first(self, info: LogInfo) -> int:
        """Where to begin in a log that was not there, or not within reach, when this began."""
        if info.name.broker in self._skipped:
            return info.next
        return self._start.get(info.partition, info.first) if isinstance(self._start, dict) else info.first

    def _do_without(self, name: LogName) -> None:
        """For now; it is read again when a list tells of more, from a broker that has it then."""
        place = self._places[name]
        place.end, place.is_sought, place.missed = min(place.end, place.read), False, True
        self._miss(name.broker)

    def _miss(self, broker: str) -> None:
        self.away = tuple(sorted({*self.away, broker}))
        self.delivered.keeps_old = True

    def _tell_who_is_away(self, copies: int) -> None:
        """Fewer than that, and a broker within reach has whatever was acknowledged."""
        if len(self.away) >= copies and not self._told.issuperset(self.away):
            self._told.update(self.away)
            brokers = f"broker{'s' if len(self.away) > 1 else ''} {', '.join(self.away)}"
            text = f"{brokers} cannot be reached: what is in their logs alone comes when they are back"
            self._on_loss(0, text)

    def _go_on(self) -> None:
        """What to do after a list or a chunk."""
        if any(place.is_sought for place in self._places.values()):
            self.step = Step.SEEK
            return
        self._check_met()
        left = sum(max(0, place.end - place.read) for place in self._places.values())
        if left == 0:
            self.step = Step.LIVE if self.is_subscribed else Step.SUBSCRIBE
            self._was_live |= self.is_subscribed
            self._is_whole = not self.is_subscribed
            self._told &= set(self.away)
        elif not self.is_subscribed and self.step is Step.READ and left <= self._near_events:
            self.step = Step.SUBSCRIBE
        else:
            self.step = Step.READ

    def _check_met(self) -> None:
        """Raises Refused when an event was named, and no log is that of its broker."""
        for event in self._unmet.values():
            if not self.away and all(place.read < place.end for place in self._places.values()):
                self._unmet.clear()
                text = f"the stream has no log with event {event}, or later ones of its broker, within reach"
                raise Refused(ErrorCode.NOT_FOUND, text)
        self._unmet.clear()


_PASSING = (ErrorCode.NOT_FOUND, ErrorCode.NOT_STORED, ErrorCode.UNAVAILABLE)
"""Why a log cannot be read now: no broker within reach has it, or it is not on enough disks yet."""


class Replaying:
    """Reads the logs for one inbox, and has it subscribed when it is time."""

    def __init__(self, client: ClientCore, inbox: Inbox, start: str | int) -> None:
        limits = client.limits
        self._client = client
        self._inbox = inbox
        self._clock = client.clock
        self._subscribed: Outcome | None = None
        self._replay = Replay(start, lambda count, reason: inbox.tell(Gap(inbox.number, count, reason)), limits)
        self._events: list[Event] = []
        self._said: list[Gap] = []
        self._is_stored = True
        self._task: Task[list[Event]] | None = None
        self._began_at = self._rests_until = 0.0
        self._polls = PollSchedule(limits)
        self._quiet_seconds = limits.replay_quiet_seconds
        self._was_quiet = self._may_mark = False
        inbox.covered, inbox.delivered = self._replay.covered, self._replay.delivered

    @property
    def begins(self) -> dict[str, int]:
        """Where each log begins that is read."""
        return self._replay.begins

    @property
    def rest_seconds(self) -> float:
        """How long nothing has to be done unless something comes."""
        return max(0.0, self._rests_until - self._clock())

    @property
    def is_late(self) -> bool:
        """Whether there was no time to finish what has to be done before anything else."""
        return self._task is not None

    def rested(self, seconds: float) -> None:
        """Nothing came for so long since the inbox listened, though whoever waited could have had it."""
        self._was_quiet = seconds >= self._quiet_seconds

    def hasten(self) -> Outcome:
        """Subscribe now, without waiting for it: what comes until it was read up to there waits in the inbox."""
        if self._subscribed is None:
            self._client.check_usable()
            self._subscribed = self._client.say_subscribe(self._inbox)
        return self._subscribed

    def begin(self, event: type[Event]) -> Work[None]:
        """Go so far that a place, pattern or condition that is none was refused. Raises Refused."""
        self._began_at = self._clock()
        request = self._inbox.request
        if "xpath" in request.condition.lower():
            # What is read from logs before SUBACK is checked as well.
            said = yield from self._client.asking(
                "explain", {"pattern": request.pattern, "condition": request.condition}
            )
            self._inbox.check_with(said.get("checks", ()))
        while self._replay.step in (Step.LIST, Step.SEEK):
            yield from self._go(event)
        yield from self._go(event)

    def take(self, event: type[Event]) -> Task[list[Event]]:
        """The next events from the logs; none while what comes next was delivered, or is to come.

        The same task until it has come to its end, or the inbox has.
        """
        if self._task is not None and self._inbox.ended:
            self._task.close()
            self._task = None
        if self._task is None:
            self._task = Task(self._take(event))
        return self._task

    def _take(self, event: type[Event]) -> Work[list[Event]]:
        inbox, replay = self._inbox, self._replay
        self._may_mark, self._was_quiet = self._was_quiet and inbox.is_quiet, False
        try:
            while not self._events:
                if inbox.ended:
                    self._give_up()
                    break
                if replay.step is Step.LIVE:
                    if inbox.at_gap:
                        self._close_gap()
                        replay.lost()
                    elif self.rest_seconds:
                        break
                    elif not self._client.connected:
                        # No broker can be asked now, and what was delivered need not wait for it.
                        self._began_at = self._clock()
                        self._rest()
                        break
                    else:
                        replay.look_again()
                    self._began_at = self._clock()
                try:
                    yield from self._go(event)
                except HeadgateError:
                    if not inbox.ended:
                        raise
                    # What its end broke off says nothing: the inbox knows why it ended, if there is a why.
        finally:
            self._task = None
        events, self._events = self._events, []
        return events

    def _go(self, event: type[Event]) -> Work[None]:
        request, replay = self._inbox.request, self._replay
        if replay.step is Step.LIST:
            yield from self._list(request.pattern.split("/")[0])
        elif replay.step is Step.SEEK:
            name, position = replay.next_look
            chunk = yield from self._chunk(name, position, 1, "", "")
            if chunk is not None:
                replay.looked(name, chunk)
        elif replay.step is Step.READ:
            name, position = replay.next_read
            chunk = yield from self._chunk(name, position, 0, request.pattern, request.condition)
            if chunk is not None:
                replay.taken(name, chunk)
        elif replay.step is Step.SUBSCRIBE:
            if replay.is_subscribed:
                yield from self._client.confirming(self._inbox)
            else:
                yield from settled(self._client, self.hasten())
            replay.subscribed()
        for piece in replay.drain():
            self._events += self._inbox.read(piece, event)
        if replay.step is Step.LIVE:
            self._rest()
            self._judge()

    def _rest(self) -> None:
        """Until the next look."""
        now = self._clock()
        self._rests_until = now + self._polls.pause(bool(self._replay.away), now - self._began_at)

    def _list(self, stream: str) -> Work[None]:
        try:
            survey = yield from self._client.over_logs().survey(stream)
        except (CannotConnect, ConnectionLost):
            self._client.check_usable()
            return  # the client finds another broker, and that one is asked
        self._is_stored = survey.stored
        self._replay.listed(survey.logs, survey.away, survey.copies, self._may_mark and self._inbox.is_quiet)

    def _chunk(self, name: LogName, position: int, events: int, pattern: str, condition: str) -> Work[Chunk | None]:
        """Of a log, or nothing when no broker can be asked: its time will come."""
        try:
            return (yield from self._client.over_logs().read(name, position, events, pattern, condition))
        except (CannotConnect, ConnectionLost, Refused) as error:
            self._client.check_usable()
            if isinstance(error, Refused) and error.code not in _PASSING:
                raise
            self._replay.unreadable(name, str(error), isinstance(error, Refused) and error.code == ErrorCode.NOT_STORED)
        return None

    def _close_gap(self) -> None:
        with self._client.sharing:
            self._said += self._inbox.close_gap()

    def _judge(self) -> None:
        """What was missing has been read, if it was kept at all."""
        said, self._said = self._said, []
        if not self._is_stored:
            for gap in said:
                self._inbox.tell(gap)

    def _give_up(self) -> None:
        """Nothing is read any more: what was missing is missing."""
        while self._inbox.at_gap:
            self._close_gap()
        said, self._said = self._said, []
        for gap in said:
            self._inbox.tell(gap)
