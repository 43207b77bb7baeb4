"""Client sessions: their subscriptions, credit, bounded outboxes, and what happens to a client that is too slow.

A session outlives its connection by a grace, so that a client that reconnects finds its subscriptions where they
were. Deliveries flow while the link is up and unpaused and credit is left; otherwise they wait in the session's
outbox. Two bounds hold the outbox, its own and the sum of all. Over a bound the policy decides:

    drop         the oldest deliveries go, counted by subscription; GAP says so before anything newer is sent. Of
                 subscriptions with the option `slow` = conflate, what a newer event of its topic has behind it
                 has gone long before that (`conflation.py`); with `slow` = widen the bands of DELTA grow as well,
                 until everything has gone out
    disconnect   the connection ends with SLOW_CONSUMER; the session has its grace, as after any lost connection

Credit is counted in events over the life of the session: `sent` may pass `allowed` by less than one portion, so that
a portion larger than the window still flows. The same is counted in bytes of records, over the life of a link. A
subscription of which its client says that it is full is **held**: what comes for it alone waits in a queue of its own,
within the bounds of the outbox, where it is the first to lose its oldest, and all others go on. (Two levels of flow
control, as in HTTP/2; but a subscription has no counter here, which every event would have to be counted against: its
client counts, and says stop and go.) What was sent on a link that broke and did not arrive is known from the
client's own count when it comes back, and is announced as a GAP of subscription 0: the session as a whole.

A GAP itself may be lost in the same way. It is remembered until a delivery sent after it is known to have come in,
and is otherwise said again: a count may be too high after a lost connection, and never too low.

A link that was given up (`closing`) carries nothing more, though it is still there until the host says LinkDown.

Invariant (`validate`): what is named by a queue of `held` goes through it, so that its order stays; an outbox holds
something only while its session cannot send, or until the next wake; its byte
and event counts are the sums over what it holds.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from headgate.matching import Pattern
from headgate.matching.dynamic import Tally
from headgate.protocol.data import Batch, Portion, join_u32
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import CREDIT_MAX
from headgate.protocol.messages import Credit, Deliver, Error, Gap, Goodbye, Rejected, Subscribe

from ..config import NodeConfig
from ..deferred import Deferred
from ..effects import Close, Effect, Note, Send
from ..limits import CONFLATED_EVENTS_MIN
from ..rights import Rights
from ..safeguards import Safeguard
from ..timers import AT_ONCE, NEVER, Timers
from .conflation import conflated

if TYPE_CHECKING:
    from .amending import Amendment
    from .dynamic import Carrier

__all__ = [
    "ClientSession",
    "DRAINING",
    "DeliveryWatch",
    "GRACE",
    "Subscribers",
    "Subscription",
    "cut",
    "effort_of",
    "only",
    "size_of",
    "without",
]

DRAINING, GRACE = "draining", "grace"
"""Keys of timers: outboxes go on when other inputs had their turn; the first session's grace is over."""

# Portions that wait for their connection: what they hold, what it takes to send them, and what is cut out of them.

_OVERHEAD_BYTES = 400
"""What a queued portion costs beside its columns: the objects around it."""

_NUMBER_BYTES = 64
"""Looking at one number of a route takes as long as sending so many bytes."""


def size_of(portion: Portion) -> int:
    """Memory that a waiting portion may hold: its records, and all else twice, for it may have been encoded as well."""
    columns = len(portion.topics) + len(portion.lengths) + len(portion.offsets)
    return len(portion.records) + 2 * columns + _OVERHEAD_BYTES


def effort_of(message: Deliver, withdrawn: bool) -> int:
    """What it takes to send a waiting portion, as bytes; looking through its numbers costs more than copying them."""
    effort = len(message.portion.records)
    if withdrawn:
        effort += sum(len(numbers) for numbers, _ in message.runs()) * _NUMBER_BYTES
    return effort


def without(message: Deliver, ended: Set[int]) -> Deliver | None:
    """The same without some subscriptions, and without the events that were for them alone; None for nothing left."""
    routes: list[Any] = []
    rows: list[int] = []
    first = 0
    for numbers, count in message.runs():
        left = [number for number in numbers if number not in ended]
        if left:
            routes += (left, count)
            rows += range(first, first + count)
        first += count
    return Deliver(routes, cut(message.portion, rows)) if rows else None


def only(message: Deliver, number: int) -> Deliver:
    """What of it is for this subscription, which is named in it."""
    rows: list[int] = []
    first = 0
    for numbers, count in message.runs():
        if number in numbers:
            rows += range(first, first + count)
        first += count
    return Deliver([number, len(rows)], cut(message.portion, rows))


def cut(portion: Portion, rows: list[int]) -> Portion:
    """Some rows of a portion (ascending, at least one), at their places in the broker's sequence."""
    if len(rows) == portion.count:
        return portion
    batch = Batch(portion.topics, portion.count, portion.lengths, portion.records)
    part = batch.portion(rows, portion.origin, 0, portion.time)
    part.log = portion.log
    places = portion.rows()
    first, last = places[rows[0]], places[rows[-1]]
    part.base = portion.base + first
    in_a_row = last - first + 1 == len(rows)
    part.offsets = b"" if in_a_row else join_u32([places[row] - first for row in rows])
    return part


_SLOW = "slow consumer"
_CONFLATED = "conflated: a newer event of the same topic took the place of each"


@dataclass(slots=True, eq=False)
class Subscription:
    """One standing request of a session. `number` is the client's, `identity` the broker's."""

    identity: int
    number: int
    session: ClientSession
    stream: str
    pattern: Pattern
    condition: str
    delivered: int = 0
    dropped: int = 0
    carrier: Carrier | None = None
    """Whose member it is: what its DELTA was sent last."""
    asked: Subscribe | None = None
    """As its client asked for it; pattern and condition are what of that its rights allow."""


@dataclass(slots=True, eq=False)
class _Held:
    """What waits for one subscription alone; when it is `released`, until that has gone out."""

    queue: deque[Deliver] = field(default_factory=deque)
    bytes: int = 0
    events: int = 0
    released: bool = False
    conflate_at: int = CONFLATED_EVENTS_MIN
    taken: int = 0  # portions that ever left the queue
    marks: deque[tuple[int, Deferred]] = field(default_factory=deque)  # (portions taken by then, what is said then)


@dataclass(slots=True, eq=False)
class ClientSession:
    """One client, connected or in its grace."""

    key: bytes
    name: str
    link: int | None
    allowed: int
    window: int
    address: str = ""  # where it speaks from, or did last
    user: str = ""
    credential: str = ""  # what it has shown, by a name
    rights: Rights | None = None  # None: nobody is named here
    roles: tuple[str, ...] | None = None  # those that its token names; None: those of its user
    ends: float = float("inf")  # when its token ends, in seconds since 1970
    sent: int = 0
    room_bytes: int = CREDIT_MAX  # of records, on this link: what is left of those allowed
    paused: bool = False
    outbox: deque[Deliver] = field(default_factory=deque)
    held: dict[int, _Held] = field(default_factory=dict)  # subscription -> what waits for it alone
    allowed_bytes: int = CREDIT_MAX
    received: int = 0
    accepted: int = 0
    closing: bool = False  # which also pauses it
    expires: float = float("inf")
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    placing: dict[int, Subscribe] = field(default_factory=dict)  # what is not yet in force, as it was asked last
    checks: dict[int, list[Any]] = field(default_factory=dict)  # what subscriptions ask of documents, as said last
    durables: dict[int, None] = field(default_factory=dict)  # numbers of its parts in durable subscriptions
    refusals: dict[int, Error | Rejected] = field(default_factory=dict)
    unstored: dict[int, None] = field(default_factory=dict)  # batches that wait for disks, in order
    unheard: dict[int, None] = field(default_factory=dict)  # refused ones, until it is known that their ERROR was heard
    publishes: dict[str, None] = field(default_factory=dict)
    untold: dict[str, None] = field(default_factory=dict)  # streams whose interest changed while it was paused
    outbox_bytes: int = 0
    outbox_events: int = 0
    pushed: int = 0  # portions that ever waited
    withdrawn: dict[int, int] = field(default_factory=dict)  # subscription -> portions pushed before its end
    gaps: dict[int, int] = field(default_factory=dict)
    announced: dict[int, tuple[int, int]] = field(default_factory=dict)  # subscription -> (sent before it, count)
    drops: int = 0
    conflating: dict[int, str] = field(default_factory=dict)  # subscriptions of which the newest is enough: of what
    widening: dict[int, float] = field(default_factory=dict)  # those whose bands may grow, and how far
    widened: dict[int, str] = field(default_factory=dict)  # those whose bands have grown, in words
    conflate_at: int = CONFLATED_EVENTS_MIN  # events in the outbox at which it is gone through
    conflated: dict[int, int] = field(default_factory=dict)  # of what `gaps` counts, what gave way to newer events
    asking: int = 0  # questions that wait for their answers
    amends: list[tuple[dict[str, Any], Deferred]] = field(default_factory=list)  # of what is not in force yet
    marks: deque[tuple[int, int, Deferred]] = field(
        default_factory=deque
    )  # (portions pushed before, subscription, what)
    rows: list[int] = field(default_factory=list)  # its share of what is spread at this moment

    @property
    def pace(self) -> str:
        """Whether this client keeps up, in a word: ok, or what the events for it wait for."""
        if self.link is None:
            return "away"
        if not self.may_send:
            return "no credit"
        if self.paused:
            return "blocked"
        if not all(held.released for held in self.held.values()):
            return "full"
        return "behind" if self.waits else "ok"

    def pace_of(self, number: int) -> str:
        """The same of one subscription: others of its client may be full, and it is not harmed."""
        pace, held = self.pace, self.held.get(number)
        if pace != "full" or (held is not None and not held.released):
            return pace
        return "behind" if self.outbox or held is not None else "ok"

    def waiting_of(self, number: int) -> tuple[int, int]:
        """Events and bytes that wait for one subscription: by itself, or among those of its client's others."""
        if number in self.held:
            return self.held[number].events, self.held[number].bytes
        events = self.outbox_events - sum(held.events for held in self.held.values())
        return events, self.outbox_bytes - sum(held.bytes for held in self.held.values())

    @property
    def may_send(self) -> bool:
        """As far as credit goes."""
        return self.sent < self.allowed and self.room_bytes > 0

    @property
    def waits(self) -> bool:
        """Something would go out if it could."""
        return bool(self.outbox) or any(held.released for held in self.held.values())

    def close(self) -> None:
        """Its link was given up: nothing more may be sent before it has another one."""
        self.closing = self.paused = True


class DeliveryWatch(Protocol):
    """Watches what becomes of deliveries while their stream is audited."""

    def sent(self, session: ClientSession, message: Deliver) -> None:
        """A delivery went out on the session's link."""

    def acknowledged(self, session: ClientSession, credit: Credit) -> None:
        """The client's application has taken so many deliveries."""

    def dropped(self, session: ClientSession, message: Deliver) -> None:
        """A delivery will never go out."""

    def missed(self, session: ClientSession, number: int, stream: str, count: int, reason: str) -> None:
        """Events of one stream are lost to one subscription, and it is told so."""

    def lost(self, session: ClientSession, received: int) -> None:
        """The client is back and has only so many of the deliveries that were sent."""

    def forget(self, session: ClientSession) -> None:
        """The session ended."""


class Subscribers:
    """Every session of this broker, and the one way in which deliveries leave it."""

    def __init__(self, config: NodeConfig, effects: list[Effect], timers: Timers) -> None:
        self._config = config
        self._limits = config.limits
        self._safeguards = config.safeguards
        self._is_credited = Safeguard.CREDIT in config.safeguards
        self._keeps_when_paused = Safeguard.PAUSE in config.safeguards
        self._is_ordered = Safeguard.ORDER in config.safeguards
        self._effects = effects
        self._timers = timers
        self.by_key: dict[bytes, ClientSession] = {}
        self.by_link: dict[int, ClientSession] = {}
        self.by_identity: dict[int, Subscription] = {}
        self.carriers: dict[int, Carrier] = {}
        """Those of the subscriptions that are this broker's own, for members with DELTA."""
        self.amendments: dict[int, Amendment] = {}
        """By identity of each of its versions: subscriptions that ask for something else, or did so a moment ago."""
        self.references = Tally()
        """What their members were last sent of each topic."""
        self.identities = itertools.count(1)
        """The next one is a number that no subscription of this broker had before."""
        self.grace: dict[bytes, ClientSession] = {}
        self.draining: dict[bytes, ClientSession] = {}
        self.outbox_bytes = 0
        self.deliveries = 0
        self.watch: DeliveryWatch | None = None  # while a stream is audited
        self.widened = 0
        """How often the band of a subscription grew, because its client did not keep up."""
        self.drops: dict[str, int] = {"slow": 0, "lost": 0, "expired": 0, "gone": 0, "shutdown": 0, "conflated": 0}

    def deliver(self, session: ClientSession, routes: list[Any] | bytes, portion: Portion) -> None:
        """Send a portion, or queue it within the bounds."""
        message = Deliver(routes, portion)
        link = session.link
        if (
            link is not None
            and session.sent < session.allowed
            and session.room_bytes > 0
            and not session.paused
            and not session.outbox
        ):
            if not session.held:
                session.sent += portion.count
                session.room_bytes -= len(portion.records)
                self.deliveries += portion.count
                self._effects.append(Send(link, message))
                if self.watch is not None:
                    self.watch.sent(session, message)
                return
            rest = self._divert(session, message)
            if rest is not None:
                self._send(session, link, rest)
        elif self._is_credited or link is None or session.paused:
            self._push(session, message)
        else:
            self._send(session, link, message)
        if session.outbox_bytes > self._config.outbox_bytes or self.outbox_bytes > self._config.outbox_bytes_total:
            self._relieve(session)

    def pump(self, session: ClientSession) -> None:
        """Send what waits, as far as link and credit allow, a step's worth; the rest at the next wake."""
        if session.link is None or session.paused:
            return
        self.announce(session)
        budget = self._limits.drain_step_bytes
        for number, held in list(session.held.items()) if session.held else ():
            while held.released and held.queue and session.may_send and budget > 0:
                budget -= effort_of(held.queue[0], False)
                self._send(session, session.link, self._pop_held(session, held))
                self._pass_held_marks(held)
            if held.released and not held.queue:
                del session.held[number]
        while session.outbox and session.may_send and budget > 0:
            budget -= effort_of(session.outbox[0], bool(session.withdrawn or session.held))
            message = self._pop(session)
            if message is not None and session.held:
                message = self._divert(session, message)
            if message is not None:
                self._send(session, session.link, message)
            if session.marks:
                self._pass_marks(session)
        if session.held and self._is_over(session):
            self._relieve(session)  # what is put aside takes more room than what it was taken from
        if session.widened and not session.outbox and not session.held:
            self._narrow(session)
        if session.may_send and session.waits and not session.paused:
            self.draining[session.key] = session
            self._timers.at(DRAINING, AT_ONCE)
        else:
            self.stop_draining(session)

    def mark(self, session: ClientSession, number: int, answer: Deferred) -> None:
        """Say that this is known behind all that waits for the subscription now, and before what comes for it later."""
        session.marks.append((session.pushed, number, answer))
        self._pass_marks(session)

    def _pass_marks(self, session: ClientSession) -> None:
        """Those that nothing of the outbox is before any more. It may have been put aside: then they wait there."""
        while session.marks and session.marks[0][0] <= session.pushed - len(session.outbox):
            _, number, answer = session.marks.popleft()
            held = session.held.get(number)
            if held is not None and held.queue:
                held.marks.append((held.taken + len(held.queue), answer))
            else:
                answer.say(None)

    @staticmethod
    def _pass_held_marks(held: _Held) -> None:
        while held.marks and held.marks[0][0] <= held.taken:
            held.marks.popleft()[1].say(None)

    def stop_draining(self, session: ClientSession) -> None:
        """Nothing of it goes out before something else happens: a timer that is due until then would spin the host."""
        if self.draining.pop(session.key, None) is not None and not self.draining:
            self._timers.at(DRAINING, NEVER)

    def drain(self, now: float) -> None:
        """Other inputs had their turn: send on what waits, a step's worth of each session."""
        for session in list(self.draining.values()):
            self.pump(session)

    def hold(self, session: ClientSession, number: int) -> None:
        """This subscription is full: what comes for it waits by itself, and what waits among others joins it."""
        session.held.setdefault(number, _Held()).released = False

    def release(self, session: ClientSession, number: int) -> None:
        """It goes on, with what waited first."""
        if number in session.held:
            session.held[number].released = True
            self.pump(session)

    def release_all(self, session: ClientSession) -> None:
        """Its client is back, and says anew which are full."""
        for held in session.held.values():
            held.released = True

    def attach(self, session: ClientSession, link: int) -> None:
        """The session has this link from now on."""
        session.link = link
        session.paused = session.closing = False
        session.expires = float("inf")
        self._end_grace(session)
        self.by_link[link] = session

    def detach(self, session: ClientSession, now: float) -> None:
        """The session lost its link and waits for its client to come back."""
        if session.link is not None:
            self.by_link.pop(session.link, None)
        while session.outbox and Safeguard.OUTBOX not in self._safeguards:
            self._pop(session)
        session.link = None
        # To nobody: its client asks again.
        marks, session.marks = session.marks, deque()
        for _, _, answer in marks:
            answer.say(None)
        for held in session.held.values():
            while held.marks:
                held.marks.popleft()[1].say(None)
        session.expires = now + self._config.grace_seconds
        self.stop_draining(session)
        self.grace[session.key] = session
        self._timers.by(GRACE, session.expires)

    def _end_grace(self, session: ClientSession) -> None:
        self.grace.pop(session.key, None)
        self._set_timer()

    def _set_timer(self) -> None:
        """`grace` is in order of expiry: its length never varies."""
        first = next(iter(self.grace.values()), None)
        self._timers.at(GRACE, NEVER if first is None else first.expires)

    def lost_in_flight(self, session: ClientSession, received: int) -> None:
        """The client came back and has so many deliveries; what else was sent is gone."""
        if Safeguard.IN_FLIGHT not in self._safeguards:
            session.sent = session.received = received
            return
        if Safeguard.SECOND_GAP not in self._safeguards:
            session.announced.clear()
        if self.watch is not None:
            self.watch.lost(session, received)
        lost = session.sent - received
        if lost > 0:
            self.drops["lost"] += lost
            session.gaps[0] = session.gaps.get(0, 0) + lost
            self._forget_references(session)
        for number, (position, count) in session.announced.items():
            if position >= received:
                session.gaps[number] = session.gaps.get(number, 0) + count
        session.announced.clear()
        session.sent = session.received = received

    def _forget_references(self, session: ClientSession) -> None:
        """It is not known which deliveries did not come in: each of its DELTA subscriptions gets the next event."""
        for subscription in session.subscriptions.values():
            if subscription.carrier is not None and Safeguard.FORGOTTEN_AFTER_LOSS in self._safeguards:
                subscription.carrier.triggers.forget_all(subscription.identity)

    def heard(self, session: ClientSession) -> None:
        """The client counted what it has: a GAP that went before some of it came in as well."""
        for number, (position, _) in list(session.announced.items()):
            if position < session.received:
                del session.announced[number]

    def forget(self, session: ClientSession, reason: str) -> list[Subscription]:
        """End a session; returns its subscriptions, whose index entries the caller removes."""
        self.drops[reason] += session.outbox_events
        for message in self._emptied(session):
            if self.watch is not None:
                self.watch.dropped(session, message)
        if self.watch is not None:
            self.watch.forget(session)
        session.withdrawn.clear()
        session.held.clear()
        if session.link is not None:
            self.by_link.pop(session.link, None)
            session.link = None
        self.by_key.pop(session.key, None)
        self.stop_draining(session)
        self._end_grace(session)
        subscriptions = list(session.subscriptions.values())
        session.subscriptions.clear()
        for subscription in subscriptions:
            del self.by_identity[subscription.identity]
        return subscriptions

    def expired(self, now: float) -> list[ClientSession]:
        """The sessions whose grace is over, oldest first; each is told once."""
        over: list[ClientSession] = []
        for session in self.grace.values():
            if session.expires > now:
                break
            over.append(session)
        for session in over:
            del self.grace[session.key]
        self._set_timer()
        return over

    def withdraw(self, session: ClientSession, number: int) -> None:
        """Nothing of this subscription may leave the outbox any more: it is cut out of each portion that leaves.

        Not here: an outbox is long, and a client may end sixteen thousand subscriptions in one breath.
        """
        if Safeguard.WITHDRAW not in self._safeguards:
            return
        session.gaps.pop(number, None)
        session.conflated.pop(number, None)
        for one in (session.conflating, session.widening, session.widened):
            one.pop(number, None)
        session.announced.pop(number, None)
        held = session.held.pop(number, None)
        while held is not None and held.queue:
            self._pop_held(session, held)
        if held is not None:
            self._pass_held_marks(held)
        if session.outbox:
            session.withdrawn[number] = session.pushed
            if len(session.withdrawn) > self._limits.withdrawn:
                self.discard(session, "slow")

    def validate(self) -> None:
        """Outboxes add up and are within their bounds, and who may send is draining."""
        total = 0
        for key, session in self.by_key.items():
            assert session.key == key
            assert not session.marks or session.marks[0][0] > session.pushed - len(session.outbox)
            waiting = [*session.outbox, *(message for held in session.held.values() for message in held.queue)]
            assert session.outbox_events == sum(message.portion.count for message in waiting)
            size = sum(size_of(message.portion) for message in waiting)
            assert session.outbox_bytes == size <= self._config.outbox_bytes
            may_send = session.link is not None and not session.paused and session.may_send
            assert not (session.waits and may_send) or key in self.draining
            assert session.held.keys() <= session.subscriptions.keys()
            for held in session.held.values():
                assert held.bytes == sum(size_of(message.portion) for message in held.queue)
                assert held.events == sum(message.portion.count for message in held.queue)
                assert not held.marks or held.marks[0][0] > held.taken
            assert session.paused or not session.closing
            assert not session.rows
            assert session.received <= session.sent
            assert (session.link is None) == (session.expires < float("inf"))
            assert (session.link is None) == (key in self.grace)
            assert session.link is None or self.by_link[session.link] is session
            for number, subscription in session.subscriptions.items():
                assert subscription.number == number
                assert self.by_identity[subscription.identity] is subscription
            total += size
        assert total <= self.outbox_bytes <= self._config.outbox_bytes_total  # the rest waits for other brokers
        assert bool(self.draining) == (self._timers.when(DRAINING) == AT_ONCE)
        assert self._timers.when(GRACE) == min((one.expires for one in self.grace.values()), default=NEVER)
        for session in self.by_key.values():
            assert session.placing.keys() <= session.subscriptions.keys()
        assert len(self.by_identity) >= sum(len(session.subscriptions) for session in self.by_key.values())

    def _relieve(self, session: ClientSession) -> None:
        """The outbox is over a bound: drop the oldest, or the session."""
        if Safeguard.BOUND not in self._safeguards:
            return
        if self._config.slow_consumer == "disconnect" and session.key in self.by_key:  # brokers are not sent away
            self._effects.append(Note("slow consumer disconnected", {"session": session.name}, alarming=True))
            self.discard(session, "slow")
            if session.link is not None and not session.closing:
                text = "this subscriber is too slow for what it asked for, and the broker keeps no more for it"
                self._effects.append(Send(session.link, Goodbye(ErrorCode.SLOW_CONSUMER, text)))
                self._effects.append(Close(session.link))
                session.close()
                self.stop_draining(session)
            return
        if not session.gaps:
            self._effects.append(Note("slow consumer drops", {"session": session.name}, alarming=True))
        while session.held and self._is_over(session):
            # Who is full pays first, and who holds most before the others.
            held = max(session.held.values(), key=lambda one: one.bytes)
            if not held.queue:
                break
            while held.queue and self._is_over(session):
                self._drop(session, self._pop_held(session, held), "slow")
            self._pass_held_marks(held)
        while session.outbox and self._is_over(session):
            self._drop(session, self._pop(session), "slow")
        self._pass_marks(session)

    def _is_over(self, session: ClientSession) -> bool:
        config = self._config
        return session.outbox_bytes > config.outbox_bytes or self.outbox_bytes > config.outbox_bytes_total

    def interrupted(self, session: ClientSession, number: int, reason: str) -> None:
        """Its deliveries have a hole of unknown size."""
        session.gaps[number] = session.gaps.get(number, 0)
        if not session.paused:
            self.announce(session, reason)

    def lost_on_the_way(self, subscription: Subscription | None, count: int) -> None:
        """Deliveries were lost between brokers: of this subscription, or of an unknown one."""
        if subscription is not None:
            subscription.dropped += count
            self._owe_gap(subscription.session, subscription.number, count)
            return
        for session in self.by_key.values():
            if session.subscriptions:
                self._owe_gap(session, 0, count)

    def lost_in_stream(self, stream: str, count: int) -> None:
        """So many events of a stream were lost between brokers, or fewer: each session that subscribes to any of it is
        told.
        """
        for session in self.by_key.values():
            if any(subscription.stream == stream for subscription in session.subscriptions.values()):
                self._owe_gap(session, 0, count, stream)

    def _owe_gap(self, session: ClientSession, number: int, count: int, stream: str = "") -> None:
        session.gaps[number] = session.gaps.get(number, 0) + count
        reason = "a broker or a link between brokers failed"
        if self.watch is not None:
            self.watch.missed(session, number, stream, count, reason)
        if not session.paused:
            self.announce(session, reason)

    def discard(self, session: ClientSession, reason: str) -> None:
        """Empty an outbox, counting what it held."""
        for message in self._emptied(session):
            self._drop(session, message, reason)
        for held in session.held.values():
            self._pass_held_marks(held)
        self._pass_marks(session)

    def _emptied(self, session: ClientSession) -> Iterator[Deliver]:
        """Everything that waits, as it is taken out."""
        for held in session.held.values():
            while held.queue:
                yield self._pop_held(session, held)
        while session.outbox:
            message = self._pop(session)
            if message is not None:
                yield message

    def _send(self, session: ClientSession, link: int, message: Deliver) -> None:
        session.sent += message.portion.count
        session.room_bytes -= len(message.portion.records)
        self.deliveries += message.portion.count
        self._effects.append(Send(link, message))
        if self.watch is not None:
            self.watch.sent(session, message)

    def _divert(self, session: ClientSession, message: Deliver) -> Deliver | None:
        """Put aside what is for subscriptions that are held; the rest, None when there is none."""
        held = session.held
        named = {number: None for numbers, _ in message.runs() for number in numbers if number in held}
        for number in named:
            part = only(message, number)
            size = size_of(part.portion)
            held[number].queue.append(part)
            held[number].bytes += size
            held[number].events += part.portion.count
            session.outbox_bytes += size
            session.outbox_events += part.portion.count
            self.outbox_bytes += size
            conflates = number in session.conflating and not held[number].marks
            if conflates and held[number].events >= held[number].conflate_at:
                self._conflate_held(session, number, held[number])
        return without(message, named.keys()) if named else message

    def _pop_held(self, session: ClientSession, held: _Held) -> Deliver:
        message = held.queue.popleft()
        size = size_of(message.portion)
        held.taken += 1
        held.bytes -= size
        held.events -= message.portion.count
        session.outbox_bytes -= size
        session.outbox_events -= message.portion.count
        self.outbox_bytes -= size
        return message

    def _drop(self, session: ClientSession, message: Deliver | None, reason: str) -> None:
        if message is None:
            return
        if self.watch is not None:
            self.watch.dropped(session, message)
        self.drops[reason] += message.portion.count
        session.drops += message.portion.count
        forgets = Safeguard.FORGOTTEN_AFTER_DROP in self._safeguards
        row = 0
        for numbers, count in message.runs():
            for number in numbers:
                subscription = session.subscriptions.get(number)
                if subscription is not None:
                    session.gaps[number] = session.gaps.get(number, 0) + count
                    subscription.dropped += count
                    if subscription.carrier is not None and forgets:
                        subscription.carrier.forget(subscription.identity, message.portion, row, count)
                elif session.key not in self.by_key:  # another broker's: one that is counted rests on lists, not here
                    session.gaps[number] = session.gaps.get(number, 0) + count
            row += count
        if Safeguard.GAP not in self._safeguards:
            session.gaps.clear()

    def announce(self, session: ClientSession, reason: str = _SLOW) -> None:
        """Say what was dropped since it was last said."""
        if session.gaps and session.link is not None and not session.closing:
            for number, count in session.gaps.items():
                text = reason if reason != _SLOW or number else "the connection was lost"
                if session.conflated.get(number) == count:
                    text = _CONFLATED
                if number in session.widened:
                    text += f"; until this subscriber keeps up, {session.widened[number]}"
                self._effects.append(Send(session.link, Gap(number, count, text)))
                before = session.announced.get(number)
                session.announced[number] = (session.sent, count + (before[1] if before else 0))
            session.gaps.clear()
            session.conflated.clear()

    def _push(self, session: ClientSession, message: Deliver) -> None:
        if session.paused and not self._keeps_when_paused:
            return
        size = size_of(message.portion)
        session.pushed += 1
        if self._is_ordered:
            session.outbox.append(message)
        else:
            session.outbox.appendleft(message)
        session.outbox_bytes += size
        session.outbox_events += message.portion.count
        self.outbox_bytes += size
        if session.conflating and not session.marks:  # else an answer has a place among what waits
            if len(session.outbox) == 1:
                session.conflate_at = CONFLATED_EVENTS_MIN
            elif session.outbox_events >= session.conflate_at:
                self._conflate(session)

    def _conflate(self, session: ClientSession) -> None:
        """Take out of the outbox what newer events of the same topics have behind them."""
        waiting: deque[Deliver] = deque()
        while session.outbox:
            message = self._pop(session)  # without what was withdrawn since
            if message is not None:
                waiting.append(message)
        session.outbox, gone = conflated(waiting, session.conflating, cut)
        for message in session.outbox:
            self._counted_in(session, message)
        session.conflate_at = max(CONFLATED_EVENTS_MIN, 2 * session.outbox_events)
        self._gave_way(session, gone)
        for number in session.widening:
            self._widen(session, number)

    def _widen(self, session: ClientSession, number: int) -> None:
        """It does not keep up: its bands grow to twice what they are, as far as its client lets them."""
        subscription = session.subscriptions[number]
        if subscription.carrier is not None:
            bands = subscription.carrier.triggers.widen(subscription.identity, session.widening[number])
            if bands:
                session.widened[number] = bands
                self.widened += 1

    def _narrow(self, session: ClientSession) -> None:
        """It keeps up again: what it asked for holds, and the next event of each topic is delivered."""
        for number in session.widened:
            subscription = session.subscriptions[number]
            if subscription.carrier is not None:
                subscription.carrier.triggers.narrow(subscription.identity)
        session.widened.clear()

    def _conflate_held(self, session: ClientSession, number: int, held: _Held) -> None:
        """The same of what waits for one subscription alone."""
        waiting = deque(iter(lambda: self._pop_held(session, held) if held.queue else None, None))
        held.queue, gone = conflated(waiting, session.conflating, cut)
        for message in held.queue:
            self._counted_in(session, message)
            held.bytes += size_of(message.portion)
            held.events += message.portion.count
        held.conflate_at = max(CONFLATED_EVENTS_MIN, 2 * held.events)
        self._gave_way(session, gone)
        if number in session.widening:
            self._widen(session, number)

    def _counted_in(self, session: ClientSession, message: Deliver) -> None:
        size = size_of(message.portion)
        session.outbox_bytes += size
        session.outbox_events += message.portion.count
        self.outbox_bytes += size

    def _gave_way(self, session: ClientSession, gone: list[Deliver]) -> None:
        """Count what newer events took the place of; what DELTA refers to is among those, and stays."""
        for message in gone:
            if self.watch is not None:
                self.watch.dropped(session, message)
            for numbers, count in message.runs():
                for number in numbers:
                    session.gaps[number] = session.gaps.get(number, 0) + count
                    session.conflated[number] = session.conflated.get(number, 0) + count
                    session.subscriptions[number].dropped += count
                    self.drops["conflated"] += count

    def _pop(self, session: ClientSession) -> Deliver | None:
        """The oldest, without what was withdrawn since it was pushed; None when that was all."""
        place = session.pushed - len(session.outbox)
        message = session.outbox.popleft()
        size = size_of(message.portion)
        session.outbox_bytes -= size
        session.outbox_events -= message.portion.count
        self.outbox_bytes -= size
        withdrawn = session.withdrawn
        if not withdrawn:
            return message
        ended = {number for numbers, _ in message.runs() for number in numbers if withdrawn.get(number, 0) > place}
        if not session.outbox:
            withdrawn.clear()
        return without(message, ended) if ended else message
