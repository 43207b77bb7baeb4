"""A simulated producer: it publishes in mode stored, with stamps, and sends again whatever has no answer.

It keeps the rules that a client library keeps: it opens its producer in every new session, continues where the answer
says, and takes all before as stored. It raises Violation when the cluster forgot what was acknowledged.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from headgate.protocol.data import Batch, make_batch
from headgate.protocol.errors import ErrorCode, HeadgateError
from headgate.protocol.messages import (
    Answer,
    Ask,
    Error,
    Goodbye,
    Hello,
    Message,
    Mode,
    Puback,
    Publish,
    Scope,
    Stamp,
    Welcome,
)

from ..engine import ClusterWorld, Connection, Server, Violation
from ..limits import UNACKNOWLEDGED_MAX
from .history import LogHistory

__all__ = ["Producer", "STREAM"]

STREAM = "ledger"

_HEARTBEAT_SECONDS = 4.0
_STAYS_PROBABILITY = 0.7
_AGAIN_SECONDS = 0.4
_SENDS_AGAIN_PROBABILITY = 0.5


@dataclass(slots=True)
class _Batch:
    number: int
    batch: Batch
    names: list[str]


class Producer:
    """A producer that publishes stamped batches in mode stored, and sends again what has no answer."""

    def __init__(self, name: str, world: ClusterWorld, history: LogHistory, think_seconds: float) -> None:
        self.name = name
        self.active = True
        self.numbers = 0
        self.unanswered: deque[_Batch] = deque()
        self._world = world
        self._history = history
        self._think_seconds = think_seconds
        self._server: Server | None = None
        self._connection: Connection | None = None
        self._key = b""
        self._open = False
        self._sequence = 0
        self._sent: dict[int, _Batch] = {}
        self._refused: dict[int, None] = {}
        self._request = 0

    # --- what it does ------------------------------------------------------------------------------------------------

    def dial(self) -> None:
        """Connect, mostly to the same broker as before."""
        random = self._world.random
        serving = self._world.serving()
        if self._connection is not None:
            return
        if not serving:
            self._world.after(_AGAIN_SECONDS, self.dial)
            return
        if self._server not in serving or random.random() > _STAYS_PROBABILITY:
            self._server = random.choice(serving)
        assert self._server is not None and self._server.host is not None
        self._connection = self._world.clients.dial(self._server.host, self)
        self._connection.client_send(Hello(name=self.name, session=self._key, heartbeat_seconds=_HEARTBEAT_SECONDS))

    def think(self) -> None:
        """Publish at random times."""
        if self.active:
            if len(self.unanswered) < UNACKNOWLEDGED_MAX:
                self.publish()
            self._world.after(self._world.random.expovariate(1.0 / self._think_seconds), self.think)

    def publish(self) -> None:
        """Publish one more batch."""
        count = self._world.random.choice((1, 1, 2, 5))
        names = [f"{self.name}:{number}" for number in range(self.numbers, self.numbers + count)]
        batch = _Batch(self.numbers, self.make(names), names)
        self.numbers += count
        self._history.published.update(dict.fromkeys(names, self._world.now))
        self.unanswered.append(batch)
        self._send(batch)

    def make(self, names: list[str]) -> Batch:
        """A batch of these events."""
        return make_batch([f"{STREAM}/x"], {}, [name.encode() for name in names])

    # --- what it hears -----------------------------------------------------------------------------------------------

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """Handle the messages of one read."""
        if connection is self._connection:
            for message in messages:
                self._hear(message)

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The connection ended."""
        if connection is self._connection:
            self._connection = None
            self._open = False
            self._world.after(self._world.random.uniform(0.05, 1.5), self.dial)

    def _hear(self, message: Any) -> None:
        if isinstance(message, Welcome):
            self._welcomed(message)
        elif isinstance(message, Answer):
            if message.request == self._request:  # an older answer may be behind later acknowledgements
                self._opened(message.value["next"])
        elif isinstance(message, Puback):
            self._acknowledged(message.sequence)
        elif isinstance(message, Error) and message.scope == Scope.PUBLISH and message.reference not in self._sent:
            return  # the producer was opened again since then
        elif isinstance(message, Error) and message.scope == Scope.PUBLISH:
            self._refused[message.reference] = None
            self._history.refused += 1
            if message.code == ErrorCode.NOT_STORED and self._world.random.random() < _SENDS_AGAIN_PROBABILITY:
                self._send_again_later()
            else:
                self._open_later()
        elif isinstance(message, Error) and message.scope == Scope.REQUEST:
            if message.code == ErrorCode.FENCED:
                raise Violation("Fenced", f"{self.name} was shut out, and there is no newer epoch of it")
            self._open_later()
        elif isinstance(message, Error | Goodbye):
            self._open = False
            if message.code == ErrorCode.SEQUENCE_GAP:  # a batch that it gave up was lost: start a new session
                self._key = b""

    def _welcomed(self, welcome: Welcome) -> None:
        if welcome.resumed:
            self._acknowledged(welcome.accepted)
            for sequence, batch in list(self._sent.items()):
                self._say(sequence, batch)
            if self._refused:
                self._open_later()
                return
            self._open = True
            under_way = [id(batch) for batch in self._sent.values()]
            for batch in self.unanswered:
                if id(batch) not in under_way:
                    self._send(batch)
            return
        self._key = welcome.session
        self._sequence = 0
        self._sent.clear()
        self._refused.clear()
        self._ask()

    def _acknowledged(self, sequence: int) -> None:
        for one in [one for one in self._sent if one <= sequence]:
            batch = self._sent.pop(one)
            if one not in self._refused:
                self._is_safe(batch)
            self._refused.pop(one, None)

    def _is_safe(self, batch: _Batch) -> None:
        for name in batch.names:
            self._history.acknowledged.setdefault(name, self._world.now)
        if batch in self.unanswered:
            self.unanswered.remove(batch)

    # --- opening -----------------------------------------------------------------------------------------------------

    def _open_later(self) -> None:
        self._open = False
        connection = self._connection
        self._world.after(_AGAIN_SECONDS, lambda: self._ask() if self._connection is connection else None)

    def _send_again_later(self) -> None:
        """A batch that was refused for want of disks may be stored all the same: its stamp allows sending it again."""
        connection = self._connection

        def send_again() -> None:
            if self._connection is connection and self._open:
                self._sent.clear()
                self._refused.clear()
                for batch in self.unanswered:
                    self._history.resent += 1
                    self._send(batch)

        self._world.after(_AGAIN_SECONDS, send_again)

    def _ask(self) -> None:
        if self._connection is not None and not self._open:
            self._request += 1
            question = Ask(self._request, "producer.open", {"producer": self.name, "epoch": 1})
            self._connection.client_send(question)

    def _opened(self, following: int) -> None:
        """All events before that number are stored; those after it are sent again."""
        if self._open:
            return
        self._history.opened += 1
        for batch in list(self.unanswered):
            if batch.number + len(batch.names) <= following:
                self._is_safe(batch)
            elif batch.number < following:
                raise Violation("WholeBatches", f"{self.name}: {following} is within a batch")
        first = self.unanswered[0].number if self.unanswered else self.numbers
        if following < first:
            raise Violation("Forgotten", f"{self.name} had its answer up to {first}, the cluster knows {following}")
        self._open = True
        self._sent.clear()
        self._refused.clear()
        for batch in self.unanswered:
            self._history.resent += 1
            self._send(batch)

    def _send(self, batch: _Batch) -> None:
        if self._open:
            self._sequence += 1
            self._sent[self._sequence] = batch
            self._say(self._sequence, batch)

    def _say(self, sequence: int, batch: _Batch) -> None:
        if self._connection is not None:
            stamp = Stamp(self.name, 1, batch.number, b"digest")
            self._connection.client_send(Publish(sequence, Mode.STORED, batch.batch, stamp))
