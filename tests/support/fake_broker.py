"""A broker for tests of the clients: the real session and connection, exact topics, and a script of misfortunes.

It knows sessions (with resume), subscriptions, acknowledgements and duplicates; it has no conditions, no credit and no
bounds. What it does wrong it does when told:

    fake.drop()                 cut every connection now, sessions stay
    fake.forget()               lose every session
    fake.acknowledging = False  take batches and stay silent (`fake.acknowledge()` makes up for it)
    fake.refusals[topic] = …    refuse batches of that topic, or subscriptions to that pattern
    fake.silent = True          take connections and never answer HELLO
    fake.hand(1, 7, ["a"])      hand out events of durable subscription 1 from delivery number 7 on
    fake.stale = {8}            delivery numbers that are not current; `fake.acks` has what came
    fake.answering = False      take ACKs and stay silent (`fake.answer()` makes up for it)
    fake.log                    what was stored, and its own misfortunes (`fake_broker_log.py`)
    fake.others.append(other)   another broker of its cluster; while that one is closed it is away, as are `fake.away`
    fake.stored = False         whether streams are, as it says; `fake.copies` on how many disks
    await fake.close()          stop listening; `await fake.listen()` comes back on the same port

`await fake.until(predicate)` waits for something to be true, and looks whenever anything came in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.aio import Connection
from headgate.protocol.data import Batch, make_batch
from headgate.protocol.errors import ErrorCode, HeadgateError, Refused
from headgate.protocol.messages import (
    VERSION,
    Ack,
    Acked,
    Answer,
    Ask,
    Credit,
    Deliver,
    Error,
    Goodbye,
    Handed,
    Hello,
    Hold,
    Message,
    Mode,
    Puback,
    Publish,
    ReadLog,
    Scope,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)
from headgate.protocol.wire import Role, Session
from tests.support.fake_broker_log import FakeBrokerLog

__all__ = ["FakeBroker", "FakeSession", "fake_broker"]


@dataclass
class FakeSession:
    """What a client has here."""

    key: bytes
    connection: Connection | None
    accepted: int = 0
    subscriptions: dict[int, Subscribe] = field(default_factory=dict)
    credits: list[Credit] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)


class FakeBroker:
    """Speaks as a broker to clients, and goes wrong when it is told to."""

    def __init__(self, name: str = "fake") -> None:
        self.name = name
        self.sessions: dict[bytes, FakeSession] = {}
        self.connections: dict[Connection, FakeSession | None] = {}
        self.hellos: list[Hello] = []
        self.published: list[Publish] = []
        self.batches: list[Batch] = []
        self.goodbyes = 0
        self.asked: list[str] = []
        self.events = 0
        self.acknowledging = True
        self.keeping = True
        self.silent = False
        self.refusals: dict[str, ErrorCode] = {}
        self.answers: dict[str, Any] = {"status": {"name": "fake"}}
        self.acks: list[Ack] = []
        self.answering = True
        self.stale: set[int] = set()
        self.log = FakeBrokerLog(name)
        self.others: list[FakeBroker] = []
        self.away: list[str] = []
        self.stored = True
        self.copies = 1
        self.window = 256
        self.port = 0
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self._handlers: dict[type, Callable[[FakeSession, Any], None]] = {
            Publish: self._publish,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Ask: self._ask,
            ReadLog: self._read_log,
            Credit: lambda session, message: session.credits.append(message),
            Hold: lambda session, message: session.holds.append(message),
            Goodbye: self._goodbye,
            Error: lambda session, message: None,
            Ack: self._ack,
        }

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def session(self) -> FakeSession:
        """The only session."""
        (session,) = self.sessions.values()
        return session

    @property
    def is_up(self) -> bool:
        """Whether others reach it."""
        return self._server is not None

    # --- The script --------------------------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Accept connections, on the same port as before."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.drop()
        await self.until(lambda: not self.connections)

    def drop(self) -> None:
        """Cut every connection."""
        for connection in list(self.connections):
            connection.abort("dropped by the script")

    def forget(self) -> None:
        """Lose every session."""
        self.sessions.clear()

    def say(self, *messages: Message) -> None:
        """Send to every client."""
        for connection in self.connections:
            for message in messages:
                connection.send(message)

    def acknowledge(self) -> None:
        """Acknowledge what came in, from now on at once."""
        self.acknowledging = True
        for session in self.sessions.values():
            if session.connection is not None and not session.connection.closed:
                session.connection.send(Puback(session.accepted))

    def hand(self, number: int, first: int, bodies: list[str], counts: bytes = b"") -> None:
        """Hand out events of a durable subscription, to every client."""
        batch = make_batch(["a"], {}, [body.encode() for body in bodies])
        self.say(Handed(number, first, counts, batch.portion(range(batch.count), self.name, 100 + first, 1_000_000)))

    def answer(self) -> None:
        """Answer the ACKs that came in, from now on at once."""
        self.answering = True
        for ack in self.acks:
            self.say(Acked(ack.request, self._stale(ack)))

    async def until(self, predicate: Callable[[], object]) -> None:
        """Wait until it holds."""
        async with asyncio.timeout(10):
            while not predicate():
                self._changed.clear()
                await self._changed.wait()

    # --- As the handler of connections -------------------------------------------------------------------------------

    def on_opened(self, connection: Connection) -> None:
        """A client dialled."""
        self.connections[connection] = None
        self._changed.set()

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """A client spoke."""
        for message in messages:
            session = self.connections[connection]
            if isinstance(message, Hello):
                self._hello(connection, message)
            elif connection.closed and isinstance(message, Subscribe | Unsubscribe | Ask | ReadLog):
                continue  # a goodbye came with it: nobody waits for the answer
            elif session is not None:
                self._handlers[type(message)](session, message)
        self._changed.set()

    def on_paused(self, connection: Connection) -> None:
        """Nothing waits here."""

    def on_resumed(self, connection: Connection) -> None:
        """Nothing waits here."""

    def on_closed(self, connection: Connection, failure: HeadgateError | None) -> None:
        """A client is gone."""
        session = self.connections.pop(connection)
        if session is not None and session.connection is connection:
            session.connection = None
            for number, subscription in list(session.subscriptions.items()):
                if "durable" in subscription.options:
                    del session.subscriptions[number]
        self._changed.set()

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _accept(self) -> Connection:
        return Connection(Session(Role.BROKER, time.monotonic()), self, time.monotonic)

    def _hello(self, connection: Connection, hello: Hello) -> None:
        self.hellos.append(hello)
        if self.silent:
            return
        session = self.sessions.get(hello.session)
        resumed = session is not None
        if session is None:
            session = FakeSession(f"{self.name} {len(self.hellos)}".encode(), connection)
            self.sessions[session.key] = session
        session.connection = connection
        self.connections[connection] = session
        seconds = hello.heartbeat_seconds
        connection.send(Welcome(VERSION, self.name, session.key, resumed, session.accepted, self.window, seconds))

    def _publish(self, session: FakeSession, publish: Publish) -> None:
        self.events += publish.batch.count
        if self.keeping:
            self.published.append(publish)
        if publish.mode != Mode.FIRE:
            if publish.sequence <= session.accepted:
                return
            assert publish.sequence == session.accepted + 1, "sequences have no holes"
            session.accepted = publish.sequence
        base = sum(one.count for one in self.batches) + 1 if self.keeping else 1
        refusal = next((self.refusals[one] for one in publish.batch.topic_list() if one in self.refusals), None)
        connection = session.connection
        assert connection is not None
        error = None if refusal is None else Refused(refusal, "refused by the script")
        fresh = True
        if error is None and publish.mode == Mode.STORED:
            try:
                fresh = self.log.take(publish, base)
            except Refused as no:
                error = no
        if error is not None:
            connection.send(Error(error.code, Scope.PUBLISH, publish.sequence, error.text))
        elif fresh:
            self._route(publish.batch, base, publish.mode == Mode.STORED)
        if self.acknowledging and publish.mode != Mode.FIRE:
            connection.send(Puback(session.accepted))

    def _route(self, batch: Batch, base: int, is_stored: bool = False) -> None:
        if self.keeping:
            self.batches.append(batch)
        topics = batch.topic_list() if len(batch.topic_list()) == batch.count else batch.topic_list() * batch.count
        for session in self.sessions.values():
            wanted: dict[str, list[int]] = {}
            for number, subscription in session.subscriptions.items():
                wanted.setdefault(subscription.pattern, []).append(number)
            rows = [row for row, topic in enumerate(topics) if topic in wanted]
            if rows and session.connection is not None and not session.connection.closed:
                routes: list[Any] = []
                for row in rows:
                    routes += [wanted[topics[row]], 1]
                portion = batch.portion(rows, self.name, base, 1_000_000)
                portion.log = self.log.shift_of(batch, base) if is_stored else None
                session.connection.send(Deliver(routes, portion))

    def _subscribe(self, session: FakeSession, message: Subscribe) -> None:
        assert session.connection is not None
        refusal = self.refusals.get(message.options.get("durable", message.pattern))
        if refusal is None and message.subscription in session.subscriptions:
            refusal = ErrorCode.DUPLICATE
        if refusal is not None:
            error = Error(refusal, Scope.REQUEST, message.request, "refused by the script")
            session.connection.send(error)
            return
        session.subscriptions[message.subscription] = message
        if self.acknowledging:
            session.connection.send(Suback(message.request, message.subscription))

    def _ack(self, session: FakeSession, message: Ack) -> None:
        assert session.connection is not None
        self.acks.append(message)
        if self.answering and message.request:
            session.connection.send(Acked(message.request, self._stale(message)))

    def _stale(self, message: Ack) -> list[int]:
        spans = list(zip(message.spans[::2], message.spans[1::2], strict=True))
        numbers = sorted(number for number in self.stale if any(first <= number <= last for first, last in spans))
        return [number for number in numbers for _ in range(2)]

    def _unsubscribe(self, session: FakeSession, message: Unsubscribe) -> None:
        assert session.connection is not None
        found = session.subscriptions.pop(message.subscription, None)
        if not self.acknowledging:
            return
        if found is None:
            session.connection.send(Error(ErrorCode.NOT_FOUND, Scope.REQUEST, message.request, "no such subscription"))
        else:
            session.connection.send(Unsuback(message.request, message.subscription))

    def _ask(self, session: FakeSession, message: Ask) -> None:
        assert session.connection is not None
        self.asked.append(message.verb)
        if message.verb == "silence":
            return
        about_logs: dict[str, Callable[[dict[str, Any]], Any]] = {"survey": self._survey, "logs": self.log.describe}
        about_logs |= {"producer.open": self.log.open, "log.at": self.log.at}
        if message.verb in about_logs:
            try:
                session.connection.send(Answer(message.request, about_logs[message.verb](message.arguments)))
            except Refused as no:
                session.connection.send(Error(no.code, Scope.REQUEST, message.request, no.text))
        elif message.verb in self.answers:
            session.connection.send(Answer(message.request, self.answers[message.verb]))
        else:
            error = Error(ErrorCode.BAD_REQUEST, Scope.REQUEST, message.request, f"no verb {message.verb}")
            session.connection.send(error)

    def _survey(self, arguments: dict[str, Any]) -> dict[str, Any]:
        known = [self, *self.others]
        up = [one for one in known if one.is_up]
        about = {name: value for name, value in arguments.items() if name != "after"}
        rows = [row | {"holder": one.name} for one in up for row in one.log.describe(about)]
        return {
            "stored": self.stored,
            "copies": self.copies,
            "away": self.away + [one.name for one in known if not one.is_up],
            "brokers": {one.name: one.address for one in up},
            "total": len(rows),
            "logs": rows[arguments["after"] :],
        }

    def _read_log(self, session: FakeSession, message: ReadLog) -> None:
        assert session.connection is not None
        try:
            session.connection.send(self.log.read(message))
        except Refused as no:
            session.connection.send(Error(no.code, Scope.REQUEST, message.request, no.text))

    def _goodbye(self, session: FakeSession, message: Goodbye) -> None:
        self.goodbyes += 1
        self.sessions.pop(session.key, None)


@asynccontextmanager
async def fake_broker(name: str = "fake") -> AsyncIterator[FakeBroker]:
    """A fake broker that listens, and ends with its block."""
    fake = FakeBroker(name)
    await fake.listen()
    try:
        yield fake
    finally:
        await fake.close()
