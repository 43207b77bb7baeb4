"""Simulated services with durable subscriptions: they attach, acknowledge, refuse, leave without a word, come back.

DurableProducer   publishes events with attributes, some of them poison
DurableName       one durable subscription as people made it: its options, and the conditions it has had
Consumer          one client of it: what it is handed goes into the history, and it acknowledges by its own moods
Changer           changes the condition of a subscription while it runs, and asks again until that is confirmed
Mover             goes on from the start of the logs or from now, or removes the subscription, and asks until it is done
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.data import Batch, decode_record, make_batch
from headgate.protocol.errors import ErrorCode, HeadgateError
from headgate.protocol.messages import (
    Ack,
    Acked,
    AckVerb,
    Answer,
    Ask,
    Ended,
    Error,
    Gap,
    Goodbye,
    Handed,
    Hello,
    Message,
    Scope,
    Suback,
    Subscribe,
    Welcome,
)

from ..engine import ClusterWorld, Connection
from .producer import STREAM, Producer

__all__ = [
    "CONDITIONS",
    "SHARINGS",
    "Change",
    "Changer",
    "Consumer",
    "DurableName",
    "DurableProducer",
    "Move",
    "Mover",
    "Receipt",
    "color_of",
    "is_poison",
    "lane_of",
]

_HEARTBEAT_SECONDS = 4.0
_AGAIN_SECONDS = 0.4
_COLORS = 3
_LANES = 4
_POISON_EVERY = 29

CONDITIONS: dict[str, Callable[[int], bool]] = {
    "": lambda color: True,
    "color = 0": lambda color: color == 0,
    "color > 0": lambda color: color > 0,
    "color < 2": lambda color: color < 2,
}
"""Conditions in use, and what each means."""

SHARINGS = ("exclusive", "failover", "shared", "key:lane")


def _number(event: str) -> int:
    return int(event.rpartition(":")[2])


def color_of(event: str) -> int:
    """The value of its attribute `color`."""
    return _number(event) % _COLORS


def lane_of(event: str) -> int:
    """The value of its attribute `lane`."""
    return _number(event) // _COLORS % _LANES


def is_poison(event: str) -> bool:
    """Whether no consumer gets done with it."""
    return _number(event) % _POISON_EVERY == _POISON_EVERY - 1


class DurableProducer(Producer):
    """A producer whose events have attributes."""

    def make(self, names: list[str]) -> Batch:
        """A batch of these events."""
        columns = {"color": [color_of(name) for name in names], "lane": [lane_of(name) for name in names]}
        return make_batch([f"{STREAM}/x"], columns, [name.encode() for name in names])


@dataclass(slots=True)
class Receipt:
    """An event that a client was handed: under which number, for which time, and when."""

    event: str
    number: int
    count: int
    at: float
    consumer: str
    acked_at: float | None = None
    """When the client acknowledged it, or gave it up; None when it did not, or when nobody says whether in time."""
    confirmed: bool = False
    """Whether the broker said that this is on disks."""
    settled: bool = False
    """Whether the client said so in any way."""


@dataclass(slots=True)
class Change:
    """Another condition from some moment between asking and answer on."""

    condition: str
    start: str
    asked_at: float
    done_at: float = float("inf")


@dataclass(slots=True)
class Move:
    """The place of a subscription is another one from some moment between asking and answer on."""

    to: str
    """`start`, `now`, or `removed`: then it begins anew, for whoever makes it again."""
    asked_at: float
    done_at: float = float("inf")
    asks: int = 0
    """How often it was asked for: one whose answer was lost may have been done, and takes away what was made anew."""


@dataclass(slots=True)
class DurableName:
    """One durable subscription: its options, and all that is known of it from outside."""

    name: str
    sharing: str
    start: str
    ack_wait: float
    max_deliver: int
    max_unacked: int
    changes: list[Change]
    registered: float = float("inf")
    """When the first SUBACK came."""
    receipts: list[Receipt] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    is_gone: bool = False
    """A client was told that there is no such subscription, and none was told since that there is."""
    gaps: list[str] = field(default_factory=list)
    done: dict[str, None] = field(default_factory=dict)
    """Events whose acknowledgement, of any kind, was confirmed."""
    stale: int = 0

    def options(self) -> dict[str, Any]:
        """As SUBSCRIBE has them."""
        wanted: dict[str, Any] = {"durable": self.name, "from": self.start, "sharing": self.sharing}
        wanted |= {"ack_wait": self.ack_wait, "max_deliver": self.max_deliver, "max_unacked": self.max_unacked}
        return wanted


class Consumer:
    """One client of a durable subscription, at one broker after the other."""

    def __init__(self, name: str, world: ClusterWorld, durable: DurableName) -> None:
        self.name = name
        self.good = False
        """From now on it stays, and acknowledges everything but poison at once."""
        self.is_prompt = False
        """Whether nothing delays what brokers and clients say: then its cumulative acknowledgements are in time."""
        self.attached = 0
        self._world = world
        self.durable = durable
        self._connection: Connection | None = None
        self._key = b""
        self._request = 0
        self._subscribed_at = 0.0
        self._held: list[Receipt] = []
        self._asked: dict[int, list[Receipt]] = {}

    # --- coming and going --------------------------------------------------------------------------------------------

    def dial(self) -> None:
        """Connect to any broker, sometimes as the session of before."""
        serving = self._world.serving()
        if self._connection is not None:
            return
        if not serving:
            self._world.after(_AGAIN_SECONDS, self.dial)
            return
        host = self._world.random.choice(serving).host
        assert host is not None
        self._held.clear()
        self._asked.clear()
        self._connection = self._world.clients.dial(host, self)
        self._connection.client_send(Hello(name=self.name, session=self._key, heartbeat_seconds=_HEARTBEAT_SECONDS))
        if not self.good:
            connection = self._connection
            self._world.after(self._world.random.expovariate(0.2), lambda: self._leave(connection))

    def _leave(self, connection: Connection) -> None:
        """Go without a word, for a while."""
        if self._connection is connection and not self.good:
            connection.cut()

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """One read."""
        for message in messages if connection is self._connection else ():
            self._hear(connection, message)

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The connection is over."""
        if connection is self._connection:
            self._connection = None
            self._world.after(self._world.random.uniform(0.05, 0.5 if self.good else 3.0), self.dial)

    # --- what it hears -----------------------------------------------------------------------------------------------

    def _hear(self, connection: Connection, message: Any) -> None:
        if isinstance(message, Handed):
            self._handed(connection, message)
        elif isinstance(message, Acked):
            self._acked(message)
        elif isinstance(message, Welcome):
            self._key = message.session if self._world.random.random() < 0.5 else b""
            self._subscribe(connection)
        elif isinstance(message, Suback):
            self.attached += 1
            self._registered()
        elif isinstance(message, Gap) and message.subscription:
            self.durable.gaps.append(f"{message.count}: {message.reason}")
        elif isinstance(message, Ended) or (isinstance(message, Error) and message.scope == Scope.REQUEST):
            self._held.clear()
            self.durable.is_gone = message.code == ErrorCode.NOT_FOUND
            self._world.after(_AGAIN_SECONDS, lambda: self._subscribe(connection))
        elif isinstance(message, Goodbye):
            connection.cut()

    def _registered(self) -> None:
        self.durable.is_gone = False
        if all(move.done_at <= self._subscribed_at for move in self.durable.moves if move.to == "removed"):
            self.durable.registered = min(self.durable.registered, self._world.now)

    def _subscribe(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        self._request += 1
        self._subscribed_at = self._world.now
        known = self.durable.registered < float("inf") and not self.durable.is_gone
        first = self.durable.changes[-1 if self.durable.moves else 0].condition
        options = self.durable.options()
        if self.durable.sharing == "exclusive" and self._world.random.random() < 0.2:
            options["takeover"] = True
        pattern, condition = ("", "") if known else (STREAM, first)
        connection.client_send(Subscribe(self._request, 1, pattern, condition, options))

    def _handed(self, connection: Connection, message: Handed) -> None:
        portion, at, counts = message.portion, 0, message.count_list()
        new: list[Receipt] = []
        for place in range(portion.count):
            length = int.from_bytes(portion.lengths[4 * place : 4 * place + 4], "little")
            event = decode_record(portion.records[at : at + length])[1].decode()
            at += length
            count = counts[place] if counts else 1
            new.append(Receipt(event, message.first + place, count, self._world.now, self.name))
        self.durable.receipts += new
        self._held += new
        seconds = 0.0 if self.good else self._world.random.choice((0.0, 0.05, 0.3, self.durable.ack_wait * 1.5))
        self._world.after(seconds, lambda: self._answer(connection, new))

    def _answer(self, connection: Connection, receipts: list[Receipt]) -> None:
        """What it makes of them: all acknowledged, some refused, nothing said."""
        if connection is not self._connection:
            return
        random = self._world.random
        receipts = [one for one in receipts if one in self._held]  # what was answered once is not current any more
        poison = [one for one in receipts if is_poison(one.event) and self.durable.max_deliver]
        sound = [one for one in receipts if one not in poison]
        if poison and random.random() < 0.7:
            self._say(connection, poison, AckVerb.NAK, 0.05)
        if not sound:
            return
        mood = 1.0 if self.good else random.random()
        if mood < 0.1:
            return
        if mood < 0.2:
            self._say(connection, sound, AckVerb.NAK, random.choice((-1.0, 0.0, 0.3)))
        elif mood < 0.25:
            self._say(connection, sound[:1], AckVerb.TERM)
        elif mood < 0.3:
            self._say(connection, sound, AckVerb.PROGRESS)
            self._world.after(self.durable.ack_wait / 2, lambda: self._answer(connection, receipts))
        elif mood < 0.5 and not poison and sound[-1] in self._held:
            for one in sound if self.is_prompt else sound[-1:]:
                upto = self._held[: self._held.index(one) + 1]
                self._confirmed_later(connection, upto, AckVerb.ACK, [0, one.number], cumulative=True)
        elif mood < 0.65:
            for one in sound:
                self._say(connection, [one], AckVerb.ACK)
        else:
            self._say(connection, sound, AckVerb.ACK)

    def _say(self, connection: Connection, receipts: list[Receipt], verb: AckVerb, seconds: float = -1) -> None:
        spans: list[int] = []
        for one in sorted(receipts, key=lambda one: one.number):
            if spans and spans[-1] == one.number - 1:
                spans[-1] = one.number
            else:
                spans += [one.number, one.number]
        if verb in (AckVerb.ACK, AckVerb.TERM):
            self._confirmed_later(connection, receipts, verb, spans)
        else:
            if verb == AckVerb.NAK:
                self._held = [one for one in self._held if one not in receipts]
            connection.client_send(Ack(0, 1, int(verb), spans, seconds))

    def _confirmed_later(
        self, connection: Connection, receipts: list[Receipt], verb: AckVerb, spans: list[int], cumulative: bool = False
    ) -> None:
        self._request += 1
        for one in receipts:
            one.settled = True
            in_time = self.is_prompt and self._world.now < one.at + self.durable.ack_wait / 2
            one.acked_at = self._world.now if in_time or not cumulative else None
            if one in self._held:
                self._held.remove(one)
        self._asked[self._request] = receipts
        connection.client_send(Ack(self._request, 1, int(verb), spans, text="enough"[: 6 * (verb == AckVerb.TERM)]))

    def _acked(self, message: Acked) -> None:
        receipts = self._asked.pop(message.request, [])
        stale = list(zip(message.stale[::2], message.stale[1::2], strict=True))
        for one in receipts:
            if any(first <= one.number <= last for first, last in stale):
                self.durable.stale += 1
                one.acked_at, one.settled = None, False
            elif one.acked_at is not None:
                one.confirmed = True
                self.durable.done[one.event] = None
            elif not any(other.event == one.event and other.number > one.number for other in self.durable.receipts):
                self.durable.done[one.event] = None


class _Operator:
    """Asks one question about a subscription at a time, of any broker, until it has an answer."""

    refusals: tuple[int, ...] = (ErrorCode.UNAVAILABLE, ErrorCode.NOT_FOUND)
    """After these it asks again."""

    def __init__(self, world: ClusterWorld, durable: DurableName) -> None:
        self.active = True
        self.answered = 0
        self._world = world
        self.durable = durable
        self._connection: Connection | None = None
        self._request = 0

    def question(self) -> tuple[str, dict[str, Any]]:
        """What to ask now."""
        raise NotImplementedError

    def done(self) -> None:
        """It is confirmed."""
        raise NotImplementedError

    def dial(self) -> None:
        """Ask it, at any broker."""
        serving = self._world.serving()
        if not serving:
            self._world.after(_AGAIN_SECONDS, self.dial)
            return
        host = self._world.random.choice(serving).host
        assert host is not None
        self._connection = self._world.clients.dial(host, self)
        self._connection.client_send(Hello(name="operator", heartbeat_seconds=_HEARTBEAT_SECONDS))

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """One read."""
        for message in messages if connection is self._connection else ():
            if isinstance(message, Welcome):
                self._ask(connection)
            elif isinstance(message, Answer):
                self._confirmed(connection)
                return
            elif isinstance(message, Error) and message.scope == Scope.REQUEST:
                if message.code not in self.refusals:
                    raise AssertionError(f"{self.question()} was refused: {message.text}")
                if self.is_done(message):
                    self._confirmed(connection)
                    return
                self._world.after(_AGAIN_SECONDS, lambda: self._ask(connection))

    def is_done(self, refusal: Error) -> bool:
        """Whether this refusal says that it was done before."""
        return False

    def _confirmed(self, connection: Connection) -> None:
        self.answered += 1
        self._connection = None
        self.done()
        connection.cut()

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The connection is over: what came of it is not known, so it is asked for again."""
        if connection is self._connection:
            self._connection = None
            self._world.after(_AGAIN_SECONDS, self.dial)

    def _ask(self, connection: Connection) -> None:
        if connection is self._connection:
            self._request += 1
            connection.client_send(Ask(self._request, *self.question()))


class Changer(_Operator):
    """Changes the condition of a durable subscription now and then."""

    @property
    def waits(self) -> bool:
        """Whether a change was asked for and not confirmed."""
        return self.durable.changes[-1].done_at == float("inf")

    def think(self) -> None:
        """Change it, some time later."""
        random = self._world.random
        if self.active:
            self._world.after(random.expovariate(0.15), self.think)
            if not self.waits and self.durable.registered < float("inf"):
                condition = random.choice([one for one in CONDITIONS if one != self.durable.changes[-1].condition])
                change = Change(condition, random.choice(("ack", "now")), self._world.now)
                self.durable.changes.append(change)
                self.dial()

    def question(self) -> tuple[str, dict[str, Any]]:
        """What to ask now."""
        change = self.durable.changes[-1]
        return "durable_set", {"name": self.durable.name, "where": change.condition, "from": change.start}

    def done(self) -> None:
        """It is confirmed."""
        self.durable.changes[-1].done_at = self._world.now


class Mover(_Operator):
    """Goes on from another place, or removes the subscription, now and then."""

    def __init__(self, world: ClusterWorld, durable: DurableName, kinds: Sequence[str]) -> None:
        super().__init__(world, durable)
        self._kinds = kinds

    @property
    def waits(self) -> bool:
        """Whether a move was asked for and not confirmed."""
        return bool(self.durable.moves) and self.durable.moves[-1].done_at == float("inf")

    def think(self) -> None:
        """Move it, some time later."""
        random = self._world.random
        if self.active:
            self._world.after(random.expovariate(0.06), self.think)
            if not self.waits and self.durable.registered < float("inf"):
                to = "removed" if random.choice(self._kinds) == "remove" else random.choice(("start", "now"))
                self.durable.moves.append(Move(to, self._world.now))
                self.dial()

    def question(self) -> tuple[str, dict[str, Any]]:
        """What to ask now."""
        move, name = self.durable.moves[-1], self.durable.name
        move.asks += 1
        return (
            ("durable_rm", {"name": name}) if move.to == "removed" else ("durable_seek", {"name": name, "to": move.to})
        )

    def is_done(self, refusal: Error) -> bool:
        """Whether this refusal says that it was done before."""
        return self.durable.moves[-1].to == "removed" and refusal.code == ErrorCode.NOT_FOUND

    def done(self) -> None:
        """It is confirmed."""
        move = self.durable.moves[-1]
        move.done_at = self._world.now
        if move.to == "removed":
            self.durable.registered = float("inf")
