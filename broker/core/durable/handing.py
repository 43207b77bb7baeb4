"""Handing: the home of a client sends it what the coordinator of a durable subscription hands out to it.

The coordinator names positions; here their events are found (`bodies.py`) and sent, in the order in which they were
handed out. What a client was sent and has not settled is bounded in bytes here, in events by the coordinator; beyond
that events wait as positions, which cost nothing.

Settlements go the other way, unseen: the coordinator alone knows which delivery numbers are current.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.data import Batch, Portion, join_u32, split_u32
from headgate.protocol.errors import Refused
from headgate.protocol.messages import Ack, Acked, AckVerb, Ended, Gap, Handed, Message

from ..delivery import ClientSession
from ..effects import Effect, Send
from ..limits import ERROR_TEXT_LENGTH_MAX
from ..timers import NEVER, Timers
from .bodies import Bodies, Piece
from .limits import HANDED_BYTES, HANDED_EVENTS, HANDED_SECONDS, HANDING_PAUSE_SECONDS
from .messages import Detach, Detached, HandOut, Missed, Settle, Settled
from .runs import Run, split_runs

__all__ = ["HANDING", "Handing"]

HANDING = "durable-handing"
"""Key of the timer: events that no broker had are looked for again."""


@dataclass(slots=True)
class _Chunk:
    """What was sent in one message: its delivery numbers, and how many of them are not settled."""

    first: int
    last: int
    left: int
    bytes: int
    time: float


@dataclass(slots=True, eq=False)
class _Attachment:
    """A client's part in a durable subscription, as its home sees it."""

    number: int
    session: ClientSession
    subscription: int
    coordinator: int
    queue: deque[tuple[HandOut, int, int, list[Run]]] = field(default_factory=deque)
    """What was handed out and not sent: the message, its first number that is left, its place in `counts`, runs."""
    fetching: bool = False
    busy: bool = False
    again_at: float = NEVER
    chunks: list[_Chunk] = field(default_factory=list)
    bytes: int = 0


class Handing:
    """Sends events of durable subscriptions to this broker's clients, and tells coordinators what became of them."""

    def __init__(self, effects: list[Effect], bodies: Bodies, tell: Callable[[int, Any], None], timers: Timers) -> None:
        self._effects = effects
        self._bodies = bodies
        self._tell = tell
        self._timers = timers
        self._attachments: dict[int, _Attachment] = {}
        self._of: dict[bytes, dict[int, _Attachment]] = {}
        self._numbers = 0
        self.events = 0

    # --- who takes part ----------------------------------------------------------------------------------------------

    def begin(self, session: ClientSession, subscription: int, coordinator: int) -> int:
        """A client is brought to a coordinator; the number that both will say."""
        self._numbers += 1
        one = _Attachment(self._numbers, session, subscription, coordinator)
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
            own = self._of[one.session.key]
            if own.get(one.subscription) is one:
                del own[one.subscription]
                del one.session.durables[one.subscription]
            if not own:
                del self._of[one.session.key]

    # --- what the coordinator says -----------------------------------------------------------------------------------

    def hand_out(self, message: HandOut, now: float) -> None:
        """Send these, when it is their turn."""
        one = self._attachments.get(message.number)
        if one is not None:
            one.queue.append((message, message.first, 0, split_runs(message.runs)))
            self._go_on_with(one, now)

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
        self._tell(
            one.coordinator,
            Settle(one.number, message.request, message.verb, spans, milliseconds, message.text),
        )
        if message.verb != AckVerb.PROGRESS:
            for first, last in zip(spans[::2], spans[1::2], strict=True):
                _count_out(one, first, last)
            self._go_on_with(one, now)

    def resumed(self, session: ClientSession, now: float) -> None:
        """Its connection takes bytes again."""
        for one in list(self._of.get(session.key, {}).values()):
            self._go_on_with(one, now)

    # --- sending -----------------------------------------------------------------------------------------------------

    def _go_on_with(self, one: _Attachment, now: float) -> None:
        """Send what there is, as far as the client has room; one part is looked for at a time, so that order stays."""
        while (
            one.queue
            and not one.fetching
            and one.again_at == NEVER
            and not one.session.paused
            and one.session.link is not None
        ):
            if one.bytes >= HANDED_BYTES:
                _forget_old(one, now)
                if one.bytes >= HANDED_BYTES:
                    one.again_at = now + HANDED_SECONDS / 4
                    self._timers.by(HANDING, one.again_at)
                    return
            message, _, _, runs = one.queue[0]
            part, rest = _split(runs, HANDED_EVENTS)
            one.fetching = True

            def came(found: list[Piece] | Refused, now: float, part: list[Run] = part, rest: list[Run] = rest) -> None:
                self._came(one, found, part, rest, now)

            one.busy = True
            self._bodies.fetch(message.stream, message.place, part, came, now)
            one.busy = False

    def _came(
        self, one: _Attachment, found: list[Piece] | Refused, part: list[Run], rest: list[Run], now: float
    ) -> None:
        one.fetching = False
        if self._attachments.get(one.number) is not one:
            return
        if isinstance(found, Refused):
            one.again_at = now + HANDING_PAUSE_SECONDS
            self._timers.by(HANDING, one.again_at)
            return
        message, first, at, _ = one.queue.popleft()
        self._send(one, message, first, at, part, found, now)
        count = sum(stop - start for start, stop in part)
        if rest:
            one.queue.appendleft((message, first + count, at + count, rest))
        if not one.busy:
            self._go_on_with(one, now)

    def _send(
        self,
        one: _Attachment,
        message: HandOut,
        first: int,
        at: int,
        runs: list[Run],
        pieces: list[Piece],
        now: float,
    ) -> None:
        counts = split_u32(message.counts) if message.counts else None
        starts = [start for start, _ in runs]
        before: list[int] = []
        total = 0
        for start, stop in runs:
            before.append(total)
            total += stop - start
        for positions, portion in pieces:
            low = 0
            while low < len(positions):
                run = bisect_left(starts, positions[low] + 1) - 1
                index = before[run] + positions[low] - starts[run]
                high = low + 1
                # As long as positions follow those that were handed out, numbers do.
                while high < len(positions):
                    if positions[high] < runs[run][1]:
                        if positions[high] != positions[high - 1] + 1:
                            break
                    elif (
                        positions[high - 1] + 1 == runs[run][1]
                        and run + 1 < len(runs)
                        and positions[high] == runs[run + 1][0]
                    ):
                        run += 1
                    else:
                        break
                    high += 1
                own = portion if high - low == len(positions) else _cut(portion, low, high)
                some = b"" if counts is None else join_u32(counts[at + index : at + index + high - low])
                self._say_handed(one, first + index, some, own, now)
                low = high

    def _say_handed(self, one: _Attachment, first: int, counts: bytes, portion: Portion, now: float) -> None:
        self._say(one, Handed(one.subscription, first, counts, portion))
        self.events += portion.count
        size = len(portion.records)
        one.chunks.append(_Chunk(first, first + portion.count - 1, portion.count, size, now))
        one.bytes += size

    def go_on(self, now: float) -> None:
        """Look again for what no broker had, and for room."""
        for one in list(self._attachments.values()):
            if one.again_at <= now:
                one.again_at = NEVER
                self._go_on_with(one, now)
        self._timers.at(HANDING, min((one.again_at for one in self._attachments.values()), default=NEVER))

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


def _cut(portion: Portion, low: int, high: int) -> Portion:
    """Some events of a portion that follow one another in it."""
    batch = Batch(portion.topics, portion.count, portion.lengths, portion.records)
    places = portion.rows()
    part = batch.portion(range(low, high), portion.origin, 0, portion.time)
    part.base = portion.base + places[low]
    own = [places[at] - places[low] for at in range(low, high)]
    part.offsets = b"" if own[-1] == len(own) - 1 else join_u32(own)
    return part


def _count_out(one: _Attachment, first: int, last: int) -> None:
    """These delivery numbers were settled."""
    at = bisect_left(one.chunks, first, key=lambda chunk: chunk.last)
    done = False
    for chunk in one.chunks[at:]:
        if chunk.first > last:
            break
        chunk.left -= min(last, chunk.last) - max(first, chunk.first) + 1
        done = done or chunk.left <= 0
    if done:
        one.bytes -= sum(chunk.bytes for chunk in one.chunks if chunk.left <= 0)
        one.chunks = [chunk for chunk in one.chunks if chunk.left > 0]
    if one.again_at != NEVER and one.bytes < HANDED_BYTES and not one.fetching:
        one.again_at = NEVER


def _forget_old(one: _Attachment, now: float) -> None:
    """What was sent long ago was handed out again since, under other numbers."""
    one.bytes -= sum(chunk.bytes for chunk in one.chunks if chunk.time + HANDED_SECONDS <= now)
    one.chunks = [chunk for chunk in one.chunks if chunk.time + HANDED_SECONDS > now]
