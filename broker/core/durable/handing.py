"""Handing: the home of a client sends it what the coordinator of a durable subscription hands out to it.

The coordinator names positions; here their events are found (`bodies.py`) and sent, in the order in which they were
handed out; a log that nobody has just now does not keep the others. What a client was sent and has not settled is
bounded in bytes here, in events by the coordinator; beyond that events wait as positions, which cost nothing.

Settlements go the other way, unseen: the coordinator alone knows which delivery numbers are current. What DELTA holds
back is settled here, at once (`moving.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

from headgate.matching import MatchingError
from headgate.matching.dynamic import Tally
from headgate.protocol.data import Batch, Portion, join_batches, join_u32, split_u32
from headgate.protocol.errors import Refused
from headgate.protocol.limits import BATCH_EVENTS_MAX
from headgate.protocol.messages import Ack, Acked, AckVerb, Ended, Gap, Handed, Message, Suback

from ..delivery import ClientSession, Streams, cut
from ..effects import Effect, Note, Send
from ..limits import ERROR_TEXT_LENGTH_MAX
from ..rights import Rights
from ..safeguards import SAFEGUARDS, Safeguard
from ..timers import NEVER, Timers
from .bodies import Bodies, Found
from .limits import (
    HANDED_BYTES,
    HANDED_EVENTS,
    HANDED_JOIN_BYTES,
    HANDED_JOIN_MICROSECONDS,
    HANDED_RUNS,
    HANDED_SECONDS,
    HANDING_PAUSE_SECONDS,
    HANDING_PAUSE_SECONDS_MAX,
)
from .messages import SPANS_MAX, Compare, Detach, Detached, HandOut, Missed, Place, Settle, Settled
from .moving import Moving
from .runs import Run, count_of, intersect, runs_of, split_runs, subtract
from .watch import DurableWatch

__all__ = ["HANDING", "Handing"]

_NOW = 0.0, 0.0
_start, _stop = itemgetter(0), itemgetter(1)

HANDING = "durable-handing"
"""Key of the timer: events that no broker had are looked for again."""


@dataclass(slots=True, eq=False)
class _Part:
    """What was handed out and not sent: runs of a log, the number of their first event, and its place in `counts`."""

    message: HandOut
    first: int
    at: int
    runs: list[Run]
    checks: list[Any]
    """What the client is to look for in these documents."""
    until: float
    """When the coordinator hands it out again, perhaps to another client; later if the client says something before."""

    @property
    def seconds(self) -> float:
        """In which it has to be acknowledged."""
        return self.message.milliseconds / 1000


@dataclass(slots=True)
class _Chunk:
    """What was sent in one message: its delivery numbers, and how many of them are not settled."""

    first: int
    last: int
    left: int
    bytes: int
    time: float


class _Late(NamedTuple):
    """Delivery numbers that were sent behind higher ones."""

    start: int
    stop: int
    highest: int
    """That had been sent before: who acknowledges that, or less, may not have had these yet."""


@dataclass(slots=True, eq=False)
class _Attachment:
    """A client's part in a durable subscription, as its home sees it."""

    number: int
    session: ClientSession
    subscription: int
    coordinator: int
    name: str
    queue: deque[_Part] = field(default_factory=deque)
    reached: int = 0
    """The highest delivery number that the client said something of."""
    fetching: bool = False
    busy: bool = False
    again_at: float = NEVER  # when there may be room again
    missing: dict[Place, tuple[float, float]] = field(default_factory=dict)
    """Logs that no broker had that can be reached: when to look again, and after which pause the next time."""
    sent: list[Run] = field(default_factory=list)
    """Delivery numbers that the client was sent and has not settled: what a cumulative acknowledgement is of."""
    late: list[_Late] = field(default_factory=list)
    """In the order of sending."""
    highest: int = 0
    """Of the numbers that it was sent."""
    chunks: list[_Chunk] = field(default_factory=list)
    bytes: int = 0
    moving: Moving | None = None
    """What its DELTA compares with."""
    checks: list[Any] = field(default_factory=list)
    """What it is to look for in documents that are handed out from now on."""
    told: list[Any] = field(default_factory=list)
    """What it was told to look for, in what it is sent from now on."""


class Handing:
    """Sends events of durable subscriptions to this broker's clients, and tells coordinators what became of them."""

    def __init__(
        self,
        effects: list[Effect],
        bodies: Bodies,
        tell: Callable[[int, Any], None],
        timers: Timers,
        streams: Streams,
        references_max: int,
        safeguards: frozenset[Safeguard] = SAFEGUARDS,
    ) -> None:
        self._streams = streams
        self._references_max = references_max
        self._effects = effects
        self._looks_again = Safeguard.RIGHTS_AT_READING in safeguards
        self._bodies = bodies
        self._tell = tell
        self._timers = timers
        self._attachments: dict[int, _Attachment] = {}
        self._of: dict[bytes, dict[int, _Attachment]] = {}
        self._numbers = 0
        self.events = 0
        """Sent to clients here."""
        self.references = Tally()
        self.moved = self.suppressed = 0
        """Of events that were handed out to clients with DELTA: those that were sent, and those that were not."""
        self.withheld = 0
        """Not sent, because rights were taken away since they matched."""
        self.watch: DurableWatch | None = None

    # --- who takes part ----------------------------------------------------------------------------------------------

    def begin(self, session: ClientSession, subscription: int, coordinator: int, name: str = "") -> int:
        """A client is brought to a coordinator; the number that both will say."""
        self._numbers += 1
        one = _Attachment(self._numbers, session, subscription, coordinator, name)
        self._attachments[one.number] = one
        self._of.setdefault(session.key, {})[subscription] = one
        session.durables[subscription] = None
        return one.number

    def coordinators(self) -> list[tuple[int, int]]:
        """Each attachment, and where its coordinator is."""
        return [(one.number, one.coordinator) for one in self._attachments.values()]

    def end(self, session: ClientSession, subscription: int | None) -> None:
        """It takes part no more, in this or in any."""
        for number, one in list(self._of.get(session.key, {}).items()):
            if subscription in (None, number):
                self.end_number(one.number)

    def names_of(self, session: ClientSession) -> list[tuple[int, str]]:
        """Its attachments, each with the name of the durable subscription."""
        return [(one.number, one.name) for one in self._of.get(session.key, {}).values()]

    def end_with(self, number: int, refused: Refused) -> None:
        """The client takes part no more, and is told why."""
        one = self._attachments.get(number)
        if one is not None:
            self.end_number(number)
            self._say(one, Ended(one.subscription, refused.code, refused.text[:ERROR_TEXT_LENGTH_MAX]))

    def end_number(self, number: int) -> None:
        """The same, by the number of the attachment."""
        one = self._attachments.get(number)
        if one is not None:
            self.forget(number)
            self._tell(one.coordinator, Detach(number))

    def forget(self, number: int) -> None:
        """The coordinator has let go of it already."""
        one = self._attachments.pop(number, None)
        if one is not None:
            self._end_moving(one)
            own = self._of[one.session.key]
            if own.get(one.subscription) is one:
                del own[one.subscription]
                del one.session.durables[one.subscription]
            if not own:
                del self._of[one.session.key]
            if self.watch is not None:
                self.watch.left(number)

    # --- what the coordinator says -----------------------------------------------------------------------------------

    def hand_out(self, message: HandOut, now: float) -> None:
        """Send these, when it is their turn."""
        one = self._attachments.get(message.number)
        if one is not None:
            part = _Part(message, message.first, 0, split_runs(message.runs), one.checks, now)
            part.until += part.seconds
            one.queue.append(part)
            self._go_on_with(one, now)

    def compare(self, message: Compare) -> None:
        """What is sent from now on is compared with what was sent since."""
        one = self._attachments.get(message.number)
        if one is not None:
            self._end_moving(one)
            one.moving = None
            try:
                moving = Moving(message.condition, self._streams.schemas.get(message.stream), self.references)
            except MatchingError as error:  # it is sent more than it wants
                facts = {"name": one.name, "reason": str(error)}
                self._effects.append(Note("condition not understood", facts, alarming=True))
                return
            if moving.triggers.attributes:
                one.moving = moving

    def _end_moving(self, one: _Attachment) -> None:
        if one.moving is not None:
            one.moving.end()

    def settled(self, message: Settled, now: float) -> None:
        """What the client said is on enough disks."""
        one = self._attachments.get(message.number)
        if one is not None and message.request:
            self._say(one, Acked(message.request, list(message.stale)))

    def missed(self, message: Missed, now: float) -> None:
        """Events were lost to the subscription."""
        one = self._attachments.get(message.number)
        if one is not None:
            self._say(one, Gap(one.subscription, message.count, message.reason[:ERROR_TEXT_LENGTH_MAX]))

    def look_for(self, number: int, checks: list[Any]) -> None:
        """What is handed out from now on was selected by this; what waits here, by what was said before."""
        one = self._attachments.get(number)
        if one is not None:
            one.checks = checks

    def told(self, number: int) -> list[Any]:
        """What the client is told to look for, as it is let in."""
        one = self._attachments.get(number)
        if one is None:
            return []
        one.told = one.checks
        return one.told

    def detached(self, message: Detached, now: float) -> None:
        """The coordinator let go of the client, or is gone."""
        one = self._attachments.get(message.number)
        if one is not None:
            self.forget(message.number)
            self._say(one, Ended(one.subscription, message.code, message.text[:ERROR_TEXT_LENGTH_MAX]))

    # --- what the client says ----------------------------------------------------------------------------------------

    def settle(self, session: ClientSession, message: Ack, now: float) -> None:
        """It acknowledges, or refuses."""
        one = self._of.get(session.key, {}).get(message.subscription)
        if one is None:
            if message.request and session.link is not None:
                self._effects.append(Send(session.link, Acked(message.request, list(message.spans))))
            return
        milliseconds = None if message.seconds < 0 else int(message.seconds * 1000)
        spans = tuple(message.spans)
        had: tuple[int, ...] = ()
        if spans and not spans[0]:
            # All that the client had: what is on its way to it, or was never sent, has lower numbers now and then.
            had = tuple(number for start, stop in _upto(one, spans[1]) for number in (start, stop - 1))
            self._reach(one, spans[1], now)
            spans = spans[2:]
            for place in range(0, len(had), SPANS_MAX):
                part = had[place : place + SPANS_MAX]
                self._tell(one.coordinator, Settle(one.number, 0, message.verb, part, milliseconds, message.text))
        self._tell(
            one.coordinator, Settle(one.number, message.request, message.verb, spans, milliseconds, message.text)
        )
        if spans:
            self._reach(one, max(spans[1::2]), now)
        spans = had + spans
        if self.watch is not None:
            self.watch.answered(one.number, message.verb, spans)
        if message.verb != AckVerb.PROGRESS:
            for first, last in zip(spans[::2], spans[1::2], strict=True):
                for start, stop in _take(one.sent, first, last + 1):
                    _count_out(one, start, stop - 1)
                    if one.moving is not None and message.verb in (AckVerb.ACK, AckVerb.TERM):
                        for number in range(start, stop):
                            one.moving.settled(number)
            self._go_on_with(one, now)

    def _reach(self, one: _Attachment, number: int, now: float) -> None:
        """As the coordinator has it: the time of what is behind that begins now."""
        if number > one.reached:
            one.reached = number
            for later in one.queue:
                if later.until > now:
                    later.until = max(later.until, now + later.seconds)

    def resumed(self, session: ClientSession, now: float) -> None:
        """Its connection takes bytes again."""
        for one in list(self._of.get(session.key, {}).values()):
            self._go_on_with(one, now)

    # --- sending -----------------------------------------------------------------------------------------------------

    def _go_on_with(self, one: _Attachment, now: float) -> None:
        """Send what there is, as far as the client has room; one part is looked for at a time, so that order stays."""
        if one.busy:
            return
        while one.queue and one.queue[0].until <= now and not one.fetching:
            one.queue.popleft()
        one.busy = True
        while one.queue and not one.fetching and self._has_room(one, now):
            part = next((part for part in one.queue if one.missing.get(part.message.place, _NOW)[0] <= now), None)
            if part is None:
                break
            one.fetching = True
            asked, later = _split(part.runs, HANDED_EVENTS)

            def came(
                found: Found | Refused,
                now: float,
                part: _Part = part,
                asked: list[Run] = asked,
                later: list[Run] = later,
            ) -> None:
                self._came(one, part, asked, later, found, now)

            self._bodies.fetch(part.message.stream, part.message.place, asked, came, now)
        one.busy = False

    def _has_room(self, one: _Attachment, now: float) -> bool:
        if one.session.paused or one.session.link is None:
            return False
        if one.bytes >= HANDED_BYTES:
            _forget_old(one, now)
        if one.bytes >= HANDED_BYTES:
            one.again_at = now + HANDED_SECONDS / 4
            self._timers.by(HANDING, one.again_at)
            return False
        return True

    def _came(
        self,
        one: _Attachment,
        part: _Part,
        asked: list[Run],
        later: list[Run],
        found: Found | Refused,
        now: float,
    ) -> None:
        one.fetching = False
        if self._attachments.get(one.number) is not one:
            return
        place = part.message.place
        if isinstance(found, Refused):
            self._keep_waiting(one, place, now)
        else:
            one.missing.pop(place, None)
            self._send(one, part, asked, found, now)
            count = count_of(asked) - count_of(found.rest)
            part.first += count
            part.at += count
            part.runs = found.rest + later
            if not part.runs:
                one.queue.remove(part)
        self._go_on_with(one, now)

    def _keep_waiting(self, one: _Attachment, place: Place, now: float) -> None:
        """Nobody has it. It is not the client's fault: the coordinator is told that it is worked on."""
        _, pause = one.missing.get(place, (0.0, HANDING_PAUSE_SECONDS))
        one.missing[place] = now + pause, min(2 * pause, HANDING_PAUSE_SECONDS_MAX)
        self._timers.by(HANDING, now + pause)
        parts = [part for part in one.queue if part.message.place == place]
        for part in parts:
            part.until = now + part.seconds
        spans = [number for part in parts for number in (part.first, part.first + count_of(part.runs) - 1)]
        for at in range(0, len(spans), SPANS_MAX):
            some = tuple(spans[at : at + SPANS_MAX])
            self._tell(one.coordinator, Settle(one.number, 0, AckVerb.PROGRESS, some, None, ""))

    def _send(self, one: _Attachment, part: _Part, runs: list[Run], found: Found, now: float) -> None:
        """Send these events, several rows in one message where that is cheap."""
        counts = split_u32(part.message.counts) if part.message.counts else None
        pieces: Iterable[tuple[int, Portion]] = _numbered(runs, found)
        if one.moving is not None:
            pieces = self._moved(one, one.moving, part, runs, found, now)
        if one.session.rights is not None and self._looks_again:
            pieces = self._allowed(one, part, pieces, one.session.rights, now)
        for first, portion in _joined(pieces):
            if part.checks != one.told:
                one.told = part.checks
                self._say(one, Suback(0, one.subscription, part.checks))
            begin = part.at + first
            some = b"" if counts is None else join_u32(counts[begin : begin + portion.count])
            self._say_handed(one, part.first + first, some, portion, now)

    def _moved(
        self, one: _Attachment, moving: Moving, part: _Part, runs: list[Run], found: Found, now: float
    ) -> list[tuple[int, Portion]]:
        """What moves, as `_numbered` has it; the coordinator is told that the rest is settled."""
        kept: list[tuple[int, Portion]] = []
        spans: list[int] = []
        for (at, portion), piece in zip(_numbered(runs, found), found.pieces, strict=True):
            first = part.first + at
            passing = moving.passing(portion, part.message.place, piece.positions, first)
            kept += [(at + start, cut(portion, list(range(start, stop)))) for start, stop in runs_of(passing)]
            others = subtract([(first, first + portion.count)], runs_of([first + row for row in passing]))
            spans += [number for start, stop in others for number in (start, stop - 1)]
            self.moved += len(passing)
            self.suppressed += portion.count - len(passing)
        while self.references.references > self._references_max and moving.triggers.forget_oldest():
            pass
        for place in range(0, len(spans), SPANS_MAX):
            some = tuple(spans[place : place + SPANS_MAX])
            self._tell(one.coordinator, Settle(one.number, 0, AckVerb.ACK, some, None, ""))
        if spans:
            self._reach(one, spans[-1], now)
        return kept

    def _allowed(
        self, one: _Attachment, part: _Part, pieces: Iterable[tuple[int, Portion]], rights: Rights, now: float
    ) -> Iterator[tuple[int, Portion]]:
        """What of it the client may be given now: what matched was allowed when it was matched. The rest is settled."""
        for first, portion in pieces:
            batch = Batch(portion.topics, portion.count, portion.lengths, portion.records, {}, complete=False)
            withheld = rights.unreadable(batch)
            if not withheld:
                yield first, portion
                continue
            self.withheld += len(withheld)
            number = part.first + first
            spans = tuple(end for start, stop in runs_of(withheld) for end in (number + start, number + stop - 1))
            for at in range(0, len(spans), SPANS_MAX):
                some = spans[at : at + SPANS_MAX]
                self._tell(one.coordinator, Settle(one.number, 0, AckVerb.ACK, some, None, ""))
            self._reach(one, spans[-1], now)
            for start, stop in subtract([(0, portion.count)], runs_of(withheld)):
                yield first + start, cut(portion, list(range(start, stop)))

    def _say_handed(self, one: _Attachment, first: int, counts: bytes, portion: Portion, now: float) -> None:
        message = Handed(one.subscription, first, counts, portion)
        self._say(one, message)
        if self.watch is not None:
            self.watch.handed(one.number, one.name, message)
        self.events += portion.count
        size = len(portion.records)
        stop = first + portion.count
        _put(one.sent, first, stop)
        if stop <= one.highest:  # its log was missing
            one.late.append(_Late(first, stop, one.highest))
            if len(one.late) > HANDED_RUNS:
                del one.late[0]
        one.highest = max(one.highest, stop - 1)
        chunk = _Chunk(first, first + portion.count - 1, portion.count, size, now)
        insort(one.chunks, chunk, key=lambda one: one.first)  # a log that was missing may be late
        one.bytes += size

    def go_on(self, now: float) -> None:
        """Look again for what no broker had, and for room."""
        due = NEVER
        for one in list(self._attachments.values()):
            if one.again_at <= now:
                one.again_at = NEVER
            if one.queue:
                self._go_on_with(one, now)
            due = min([due, one.again_at, *(at for at, _ in one.missing.values() if at > now)])
        self._timers.at(HANDING, due)

    def _say(self, one: _Attachment, message: Message) -> None:
        if one.session.link is not None and not one.session.closing:
            self._effects.append(Send(one.session.link, message))

    def validate(self) -> None:
        """Attachments are found by their numbers and by their sessions, and their bytes add up."""
        for number, one in self._attachments.items():
            assert one.number == number and self._of[one.session.key][one.subscription] is one
            assert one.bytes == sum(chunk.bytes for chunk in one.chunks)
            assert one.again_at == NEVER or self._timers.when(HANDING) <= one.again_at
        assert sum(map(len, self._of.values())) == len(self._attachments)
        kept = [one.moving.triggers for one in self._attachments.values() if one.moving is not None]
        assert self.references.references == sum(one.references for one in kept)


def _split(runs: list[Run], most: int) -> tuple[list[Run], list[Run]]:
    """The first so many positions, and the others."""
    part: list[Run] = []
    for place, (start, stop) in enumerate(runs):
        if stop - start > most:
            if most:
                part.append((start, start + most))
            return part, [(start + most, stop), *runs[place + 1 :]]
        part.append((start, stop))
        most -= stop - start
    return part, []


def _numbered(runs: list[Run], found: Found) -> Iterator[tuple[int, Portion]]:
    """The portions of what was found, each with the place of its first event among all positions of these runs.

    Rows are whole, so what is missing is between two of them: delivery numbers follow one another in each.
    """
    starts = [start for start, _ in runs]
    before = [0, *accumulate(stop - start for start, stop in runs)]
    for positions, portion in found.pieces:
        run = bisect_right(starts, positions[0]) - 1
        yield before[run] + positions[0] - starts[run], portion


def _joined(parts: Iterable[tuple[int, Portion]]) -> Iterator[tuple[int, Portion]]:
    """The same with those as one that follow one another, are of one time, and are small."""
    group: list[Portion] = []
    first = end = size = last = 0
    for at, portion in parts:
        begin = portion.base
        size += len(portion.records)
        if (
            not group
            or at != end
            or size > HANDED_JOIN_BYTES
            or portion.origin != group[0].origin
            or not last < begin < group[0].base + 2**32 - BATCH_EVENTS_MAX
            or not 0 <= portion.time - group[0].time <= HANDED_JOIN_MICROSECONDS
        ):
            if group:
                yield first, _join(group)
            group, first, size = [], at, len(portion.records)
        group.append(portion)
        end = at + portion.count
        last = begin + portion.rows()[-1]
    if group:
        yield first, _join(group)


def _join(group: list[Portion]) -> Portion:
    head = group[0]
    if len(group) == 1:
        return head
    whole = join_batches([Batch(one.topics, one.count, one.lengths, one.records) for one in group])
    places = [one.base - head.base + row for one in group for row in one.rows()]
    offsets = b"" if places[-1] == len(places) - 1 else join_u32(places)
    return Portion(head.origin, head.base, head.time, offsets, whole.topics, whole.lengths, whole.records, whole.count)


def _put(sent: list[Run], start: int, stop: int) -> None:
    """These numbers are sent; usually they are the highest."""
    if sent and sent[-1][1] == start:
        sent[-1] = sent[-1][0], stop
    else:
        insort(sent, (start, stop))
    if len(sent) > HANDED_RUNS:
        del sent[0]


def _upto(one: _Attachment, last: int) -> list[Run]:
    """Those up to that number that were sent before it: a client that has the number has those."""
    sent = intersect(one.sent[: bisect_left(one.sent, last + 1, key=_start)], [(0, last + 1)])
    if not one.late:
        return sent
    while one.late and not intersect(one.sent, [(one.late[0].start, one.late[0].stop)]):
        del one.late[0]
    at = next((at for at, late in enumerate(one.late) if late.start <= last < late.stop), None)
    behind = one.late[at + 1 :] if at is not None else [late for late in one.late if late.highest >= last]
    return subtract(sent, sorted((late.start, late.stop) for late in behind))


def _take(sent: list[Run], start: int, stop: int) -> list[Run]:
    """Take these numbers out, as far as they are among them."""
    low, high = bisect_right(sent, start, key=_stop), bisect_left(sent, stop, key=_start)
    touched = sent[low:high]
    if touched:
        sent[low:high] = subtract(touched, [(start, stop)])
    return intersect(touched, [(start, stop)])


def _count_out(one: _Attachment, first: int, last: int) -> None:
    """These delivery numbers were settled, all of them for the first time."""
    chunks = one.chunks
    at = bisect_left(chunks, first, key=lambda chunk: chunk.last)
    while at < len(chunks) and chunks[at].first <= last:
        chunk = chunks[at]
        chunk.left -= min(last, chunk.last) - max(first, chunk.first) + 1
        if chunk.left <= 0:
            one.bytes -= chunk.bytes
            del chunks[at]
        else:
            at += 1
    if one.bytes < HANDED_BYTES:
        one.again_at = NEVER


def _forget_old(one: _Attachment, now: float) -> None:
    """What was sent long ago was handed out again since, under other numbers."""
    one.bytes -= sum(chunk.bytes for chunk in one.chunks if chunk.time + HANDED_SECONDS <= now)
    one.chunks = [chunk for chunk in one.chunks if chunk.time + HANDED_SECONDS > now]
