"""Replay: a subscription that begins in the past reads the logs of its stream, goes over to what comes live, and reads
again what it missed.

    SURVEY ---> READ … READ ---> SUBSCRIBE ---> SURVEY ---> READ … READ ---> LIVE
              until near the ends    ^               up to the ends of       |
                                     |               that survey             |
                                     '-------- something was lost -----------'

Each log has a cursor, a position before which all was handed out, and a set of what came live behind it
(`delivered.py`); for a delivery says where its event stands. Reading goes on from the cursor and leaves out the set.

Why nothing is missed: an event of a stored stream can be read before anybody is told of it. When SUBACK has come, it
either stands in a log before the end that the next survey tells of, or it is delivered live. When a delivery was lost,
it could be read before that, so the survey that is made after the loss tells of it.

Why nothing comes twice: an event can be read in one log alone, under one position. What was read is left out of what
comes live, and what came live of what is read.

Logs that cannot be read now: a survey names the brokers that did not answer. Whoever asks is told when they are as many
as keep an event; and the next surveys tell of their logs again when they are back.

Order: within a log that of the log; of several logs, the one whose last event is the oldest is read next, and what was
read is merged (`merging.py`), so that a publisher that moved between brokers is read in its own order. The host does
what `step` says, tells what came of it, and takes what `drain` gives; events are handed on as rows, so that they are
opened where they are used.

DELTA compares an event with what was handed out before it, so it is decided here, for what is read and for what comes
live alike (`moves.py`): brokers are asked for the rest of the condition.

`Replaying` is that host for one inbox, as work for a task (`task.py`). While it is live there is nothing to do until a
gap comes next in its inbox, but for a look whether brokers are back. A silence is worth noting: all that was accepted a
while before it has come, and after a loss need not be looked through (`ago` in READ_LOG). Whoever waits for events may
be cancelled, or have no time to see the end of a step: what was begun goes on with whoever waits next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ..data import LogName, Row, cut_row
from ..errors import CannotConnect, ConnectionLost, ErrorCode, HeadgateError, LocalError, Refused
from ..limits import READ_AGO_SECONDS_MAX, REPLAY_POLL_SECONDS, REPLAY_POLL_SECONDS_MAX, REPLAY_SURE_SECONDS
from ..messages import Gap
from .delivered import DeliveredOfLog, DeliveredSet
from .limits import DEFAULT_LIMITS, ClientLimits
from .logs import Chunk, LogInfo, Survey
from .merging import Merge, Piece
from .receiving import Event, Inbox
from .task import Outcome, Task, Work, settled

if TYPE_CHECKING:
    from .core import ClientCore

__all__ = ["PollSchedule", "Replay", "Replaying", "Step", "begins_in_the_past", "parse_start"]

_DOUBLINGS_MAX = 20
"""More would make no pause longer."""


class PollSchedule:
    """Says when a live replay asks again whether brokers are back: exponential backoff.

    They may be on their way, as after a restart of all, so the first looks are soon and each later one is less so.
    """

    def __init__(self, limits: ClientLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._in_vain = 0  # in a row

    def pause(self, is_anybody_away: bool, took: float) -> float:
        """Seconds until the next one, when this one took so many; with nobody away longer than a silence."""
        if not is_anybody_away:
            self._in_vain = 0
            return 2 * self._limits.replay_quiet_seconds
        doublings = min(self._in_vain, _DOUBLINGS_MAX)
        self._in_vain += 1
        pause = min(self._limits.replay_poll_seconds * 2.0**doublings, REPLAY_POLL_SECONDS)
        return min(pause + 3 * took, REPLAY_POLL_SECONDS_MAX)


Start = str | int | dict[str, int]


class Step(Enum):
    """What the host has to do next."""

    SURVEY = "survey"
    READ = "read"
    SUBSCRIBE = "subscribe"
    LIVE = "live"


@dataclass(slots=True)
class _Log:
    """A log that is read up to `end`, from `wanted` on; up to `time` it was read.

    `missed`: reading stopped at `end` because no broker could say more, and no survey told of more since then.
    `is_well`: all that it had was read, or came live, when a silence was noted.
    """

    wanted: int
    delivered: DeliveredOfLog
    end: int
    time: int
    missed: bool = False
    is_well: bool = False

    @property
    def left(self) -> int:
        """How much of it is to be read."""
        return max(0, self.end - self.delivered.cursor)


def begins_in_the_past(start: str | int | None) -> bool:
    """Whether this is more than a subscription to what comes."""
    return start is not None and start != "now"


def parse_start(start: str | int) -> Start:
    """`start`, `now`, a number, or positions by log, as in "ann@1763492000:120,bob@1763492007:7". Raises LocalError."""
    if start in ("start", "now"):
        return start
    if isinstance(start, int):
        if isinstance(start, bool) or start < 0:
            raise LocalError(f"a position is a number from 0, not {start!r}")
        return start
    places: dict[str, int] = {}
    for part in map(str.strip, start.split(",")):
        partition, _, number = part.rpartition(":")
        if "@" not in partition or not (number.isascii() and number.isdigit() and len(number) < 17):
            advice = "say start, now, a number, or positions as events and `headgate logs` have them, such as"
            advice += " ann@1763492000:120 and bob@1763492007:7, with commas between"
            raise LocalError(f"{part!r} is no place to begin: {advice}")
        places[partition] = int(number)
    return places


class Replay:
    """Says which log to read next, from which position, and what of it is new: the steps, without the waiting.

    `on_loss` is told how many events cannot be had (0: nobody knows), and why.
    """

    def __init__(
        self, start: str | int, on_loss: Callable[[int, str], None], limits: ClientLimits = DEFAULT_LIMITS
    ) -> None:
        self.step = Step.SURVEY
        self.delivered = DeliveredSet()
        self.is_subscribed = False
        self.away: tuple[str, ...] = ()  # brokers whose logs could not be had
        self._told: set[str] = set()
        self._merge = Merge()
        self._start = parse_start(start)
        self._on_loss = on_loss
        self._near_events = limits.replay_near_events
        self._logs: dict[LogName, _Log] = {}
        self._was_live = False
        self._is_whole = True  # every log is wanted up to its end, not only those that are back
        self._skipped: tuple[str, ...] = ()  # brokers that were away when it was to begin now

    @property
    def begins(self) -> dict[str, int]:
        """Where each log begins that is known, by what people call it."""
        return {name.partition: log.wanted for name, log in self._logs.items()}

    @property
    def next_read(self) -> tuple[LogName, int, bool]:
        """Which log to read, from which position, and whether what came before the last silence may be passed over,
        when the step is READ."""
        name = min((name for name, log in self._logs.items() if log.left), key=lambda one: (self._logs[one].time, one))
        return name, self._logs[name].delivered.cursor, self._logs[name].is_well

    def surveyed(self, survey: Survey) -> None:
        """What there is now. Raises Refused when the place to begin is not among it."""
        infos = sorted(survey.logs, key=lambda info: info.name)
        were_away, self.away = self.away, tuple(sorted(survey.away))
        if not self.is_subscribed:
            wanted = self._wanted(infos)
        for info in infos:
            log = self._logs.get(info.name)
            if log is None:
                first = self._first(info) if self.is_subscribed else wanted[info.name]
                log = _Log(first, self.delivered.of(info.partition), info.next, info.first_time)
                log.delivered.read_to(first)
                self._logs[info.name] = log
            elif self._is_whole or log.missed or info.name.broker in were_away:
                log.missed = log.missed and info.next <= log.end
                log.end = max(log.end, info.next)
        self._remember()
        self._tell_who_is_away(survey.copies)
        self._go_on()

    def subscribed(self) -> None:
        """SUBACK came: whatever is accepted from now on comes live."""
        self.is_subscribed = True
        self.step = Step.SURVEY

    def lost(self) -> None:
        """While it was LIVE, deliveries were lost, and all that came before that was handed out."""
        assert self.step is Step.LIVE
        self._is_whole = True
        self.step = Step.SUBSCRIBE

    def look_again(self) -> None:
        """While it was LIVE: brokers may be back."""
        assert self.step is Step.LIVE
        self.step = Step.SURVEY

    def was_quiet(self) -> bool:
        """There was a silence; whether it says that all came that was accepted a while before."""
        if self.step is not Step.LIVE or self.delivered.keeps_old:
            return False
        for log in self._logs.values():
            log.is_well = True
        return True

    def drain(self) -> Iterator[Piece]:
        """What was read and comes next, in order; the rest waits for logs that may have something older."""
        return self._merge.drain({name: log.time for name, log in self._logs.items() if log.left})

    def taken(self, name: LogName, chunk: Chunk, passes: bool = False) -> None:
        """A chunk of `next_read` came; `drain` has what is wanted of it, when it is its turn.

        `passes`: what came before the last silence was to be passed over, be it still there or not.
        """
        log = self._logs[name]
        asked = log.delivered.cursor
        is_passed = passes and not chunk.rows and chunk.next > chunk.first
        lost = 0 if is_passed else log.delivered.holes(chunk.first)
        if lost and not self._was_live:
            self._on_loss(lost, f"retention took {lost} events of log {name.partition} before they were read")
        elif lost:
            text = f"retention took events of log {name.partition} before they were read: some may have come, some not"
            self._on_loss(0, text)
        rows = [_missing(row, log.delivered) for row in chunk.rows]
        self._merge.add(Piece(name, [row for row in rows if row is not None]))
        log.delivered.read_to(max(chunk.next, chunk.first))
        if not self.is_subscribed:
            log.end = chunk.end
        if log.left and log.delivered.cursor <= asked:
            # There is nothing more, whatever was told: a copy that ends earlier than what it was made of.
            self._do_without(name)
        if chunk.rows:
            log.time = chunk.rows[-1].time
        self._go_on()

    def unreadable(self, name: LogName, reason: str) -> None:
        """No broker could say what `next_read` wants: for now, all is done without it."""
        self._do_without(name)
        if name.broker not in self._told:
            self._told.add(name.broker)
            self._on_loss(0, f"log {name.partition} cannot be read, it is tried again every few seconds: {reason}")
        self._go_on()

    # --- Inside ------------------------------------------------------------------------------------------------------

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
            if partition not in known and not self.away:
                text = f"the stream has no log {partition} within reach: it has {', '.join(known) or 'none'}"
                raise Refused(ErrorCode.NOT_FOUND, text)
            if not self.away and position > known[partition].next:
                text = f"log {partition} ends at {known[partition].next}, before {position}"
                raise Refused(ErrorCode.NOT_FOUND, text)
        return {info.name: start.get(info.partition, info.first) for info in infos}

    def _first(self, info: LogInfo) -> int:
        """Where to begin in a log that was not there, or not within reach, when this began."""
        if info.name.broker in self._skipped:
            return info.next
        return self._start.get(info.partition, info.first) if isinstance(self._start, dict) else info.first

    def _do_without(self, name: LogName) -> None:
        """For now; it is read again when a survey tells of more, from a broker that has it then."""
        log = self._logs[name]
        log.end, log.missed = log.delivered.cursor, True
        self.away = tuple(sorted({*self.away, name.broker}))
        self._remember()

    def _remember(self) -> None:
        self.delivered.keeps_old = bool(self.away) or any(log.missed for log in self._logs.values())

    def _tell_who_is_away(self, copies: int) -> None:
        """Fewer than that, and a broker within reach has whatever was acknowledged."""
        if len(self.away) >= copies and not self._told.issuperset(self.away):
            self._told.update(self.away)
            brokers = f"broker{'s' if len(self.away) > 1 else ''} {', '.join(self.away)}"
            text = f"{brokers} cannot be reached: what is in their logs alone comes when they are back"
            self._on_loss(0, text)

    def _go_on(self) -> None:
        """What to do after a survey or a chunk."""
        left = sum(log.left for log in self._logs.values())
        if left == 0:
            self.step = Step.LIVE if self.is_subscribed else Step.SUBSCRIBE
            self._was_live |= self.is_subscribed
            self._is_whole = not self.is_subscribed
            self._told &= set(self.away)
        elif not self.is_subscribed and self.step is Step.READ and left <= self._near_events:
            self.step = Step.SUBSCRIBE
        else:
            self.step = Step.READ


def _missing(row: Row, delivered: DeliveredOfLog) -> Row | None:
    """The events of a row that are to be handed out."""
    kept = delivered.missing([row.first + place for place in row.places()])
    if len(kept) == row.count:
        return row
    return cut_row(row, kept) if kept else None


_PASSING = (ErrorCode.NOT_FOUND, ErrorCode.NOT_STORED, ErrorCode.UNAVAILABLE)
"""Why a log cannot be read now: no broker within reach has it, or it is not on enough disks yet."""


_DECIDED_HERE = ("xpath", "delta", "rise", "fall")
"""A condition with one of these words may ask what brokers cannot say of a log."""


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
        self._quiet_at = 0.0  # when a silence was noted
        inbox.delivered = self._replay.delivered

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
        is_quiet = seconds >= self._quiet_seconds and self._client.connected and self._inbox.is_quiet
        if is_quiet and self._replay.was_quiet():
            self._quiet_at = self._clock()

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
        if any(word in request.condition.lower() for word in _DECIDED_HERE):
            # What is read from logs before SUBACK is checked as well.
            yield from self._client.dividing(self._inbox, {})
        while self._replay.step is Step.SURVEY:
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
                    elif not replay.away or not self._client.connected:
                        # No broker is to be asked, or none can be: what was delivered need not wait for it.
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
        if replay.step is Step.SURVEY:
            yield from self._survey(request.pattern.split("/")[0])
        elif replay.step is Step.READ:
            yield from self._read(request.pattern, request.condition)
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

    def _survey(self, stream: str) -> Work[None]:
        try:
            survey = yield from self._client.over_logs().survey(stream)
        except (CannotConnect, ConnectionLost):
            self._client.check_usable()
            return  # the client finds another broker, and that one is asked
        self._is_stored = survey.stored
        self._replay.surveyed(survey)

    def _read(self, pattern: str, condition: str) -> Work[None]:
        """A chunk of a log, or nothing when no broker can be asked: its time will come."""
        name, position, is_well = self._replay.next_read
        ago = self._clock() - self._quiet_at + REPLAY_SURE_SECONDS if is_well else 0.0
        if ago > READ_AGO_SECONDS_MAX:
            ago = 0.0
        try:
            chunk = yield from self._client.over_logs().read(name, position, 0, pattern, condition, ago)
        except (CannotConnect, ConnectionLost, Refused) as error:
            self._client.check_usable()
            if isinstance(error, Refused) and error.code not in _PASSING:
                raise
            self._replay.unreadable(name, str(error))
        else:
            self._replay.taken(name, chunk, ago > 0)

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
