"""Accepts clients: a connection exists, bytes arrive, messages go to the driver. THE WALK begins here.

The body of a connection is `protocol/aio/connection.py`. This file numbers links, holds the bound on sockets, and
turns what connections live through into inputs.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from headgate.broker.core.inputs import Admitted, LinkDown, LinkPaused, LinkResumed, Received
from headgate.protocol.aio import READ_BYTES, Connection
from headgate.protocol.errors import ErrorCode, HeadgateError, ProtocolViolation
from headgate.protocol.messages import Error, Hello, Message, Scope
from headgate.protocol.wire import Role, Session, State

from .access import Door, Guest, NotLetIn
from .driver import Driver
from .limits import BACKLOG, DEFAULT_LIMITS, DaemonLimits
from .security import Certificates, proved_by

__all__ = ["Server"]


class Server:
    """The client listener; it is the handler of every connection it accepts. `role` is that of our side."""

    role = Role.BROKER
    guest = "client"

    def __init__(self, driver: Driver, connections_max: int, limits: DaemonLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self.close_seconds = limits.close_seconds
        self._driver = driver
        self._connections_max = connections_max
        self._link_of: dict[Connection, int] = {}
        self._listener: asyncio.Server | None = None
        self.buffer = memoryview(bytearray(READ_BYTES))  # where all connections read
        self._log = structlog.get_logger()
        self._closed_bytes_in = 0
        self._closed_bytes_out = 0
        self.refused = 0
        self.violations = 0
        self.address = ""
        self.security: Certificates | None = None
        """Set before it listens, where that is over TLS."""
        self.door: Door | None = None
        """Set before it listens, where clients are asked who they are."""
        self._strangers: dict[Connection, None] = {}

    async def listen(self, host: str, port: int) -> None:
        """Accept from now on; `address` tells where (port 0 takes a free one). Raises OSError."""
        loop = asyncio.get_running_loop()
        more: dict[str, Any] = {}
        if self.security is not None:
            more = {"ssl": self.security.listening, "ssl_handshake_timeout": self._limits.session.handshake_seconds}
        self._listener = await loop.create_server(self._accept, host, port, backlog=BACKLOG, **more)
        name = self._listener.sockets[0].getsockname()
        self.address = f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"

    def stop_accepting(self) -> None:
        """Nobody new; connections stay."""
        if self._listener is not None:
            self._listener.close()

    def dismiss_strangers(self) -> None:
        """Goodbye to connections that are still without a handshake: the Node does not know them."""
        for connection in list(self._link_of):
            if connection.session.state is State.OPENING:
                connection.close(ErrorCode.SHUTTING_DOWN, "the broker is shutting down")

    def give_time_to_close(self, seconds: float) -> None:
        """How long a connection that is closing may take to read what it was sent."""
        for connection in self._link_of:
            connection.close_seconds = seconds

    def abort_all(self) -> None:
        """Cut what did not close by itself."""
        for connection in list(self._link_of):
            connection.abort("the broker stopped")

    @property
    def connections(self) -> int:
        """Sockets open now, handshake done or not."""
        return len(self._link_of)

    @property
    def bytes_in(self) -> int:
        """Bytes received from clients since the start."""
        return self._closed_bytes_in + sum(connection.bytes_in for connection in self._link_of)

    @property
    def bytes_out(self) -> int:
        """Bytes sent to clients since the start."""
        return self._closed_bytes_out + sum(connection.bytes_out for connection in self._link_of)

    def on_opened(self, connection: Connection) -> None:
        """A socket was accepted."""
        connection.close_seconds = self.close_seconds
        link = next(self._driver.numbers)
        self._link_of[connection] = link
        self._driver.links[link] = connection
        if self.door is not None:
            self._strangers[connection] = None
            if not self.door.knock(connection.peer):
                self.refused += 1
                connection.abort("too many connections of this address that have not said who they are")
                return
        if len(self._link_of) > self._connections_max:
            self._turn_away(connection)

    def _turn_away(self, connection: Connection) -> None:
        """Over the bound: say so to the first few, and keep nothing of the rest."""
        self.refused += 1
        self._log.warning("too many connections", peer=connection.peer, connections_max=self._connections_max)
        if len(self._link_of) > self._connections_max + self._limits.refusals_told:
            connection.abort("too many connections")
            return
        text = f"this broker has its {self._connections_max} connections already: try again in a moment"
        connection.send(Error(ErrorCode.TOO_MANY, Scope.CONNECTION, 0, text))
        connection.flush()

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """One read brought messages."""
        link = self._link_of.get(connection)
        if self._strangers and self.door is not None and connection in self._strangers:
            if link is not None and isinstance(messages[0], Hello):
                hello = messages[0]
                proved = proved_by(connection.certificate)
                bare = replace(hello, credentials="")
                self.door.verify(
                    hello.credentials, proved, connection.peer, partial(self._verified, connection, link, bare)
                )
            return
        if link is not None:
            self._driver.feed(Received(link, messages, connection.peer), connection.read_bytes)

    def _verified(self, connection: Connection, link: int, hello: Hello, found: Guest | NotLetIn) -> None:
        """It is known who said HELLO, or why that one is not let in."""
        if connection.closed or connection not in self._strangers:
            return
        if isinstance(found, NotLetIn):
            self._log.warning("client not let in", peer=connection.peer, client=hello.name, reason=found.kind)
            code = ErrorCode.TOO_MANY if found.busy else ErrorCode.UNAUTHORISED
            connection.send(Error(code, Scope.CONNECTION, 0, found.text))
            connection.flush()
            return
        self._known(connection)
        self._driver.feed(Admitted(link, found.user, found.credential, found.roles, found.ends))
        self._driver.feed(Received(link, [hello], connection.peer))

    def _known(self, connection: Connection) -> None:
        """It is no stranger any more, or gone."""
        if connection in self._strangers and self.door is not None:
            del self._strangers[connection]
            self.door.forget(connection.peer)

    def on_paused(self, connection: Connection) -> None:
        """The client reads too slowly: until it does, nothing that it asks for could be answered."""
        connection.pause_reading()
        link = self._link_of.get(connection)
        if link is not None:
            self._driver.feed(LinkPaused(link))

    def on_resumed(self, connection: Connection) -> None:
        """It caught up."""
        connection.resume_reading()
        link = self._link_of.get(connection)
        if link is not None:
            self._driver.feed(LinkResumed(link))

    def on_closed(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The socket is gone."""
        link = self._link_of.pop(connection)
        self._known(connection)
        self._driver.links.pop(link, None)
        self._closed_bytes_in += connection.bytes_in
        self._closed_bytes_out += connection.bytes_out
        if isinstance(failure, ProtocolViolation) and failure.code == ErrorCode.TIMEOUT:
            # Asleep, or stopped: that is no rule broken.
            self._log.warning(f"{self.guest} did not answer in time", peer=connection.peer, reason=str(failure))
        elif connection.session.violated:
            self.violations += 1
            self._log.warning(f"{self.guest} broke the protocol", peer=connection.peer, reason=str(failure))
        self._driver.feed(LinkDown(link, str(failure) if failure else "goodbye"))

    def _accept(self) -> Connection:
        return Connection(
            Session(self.role, self._driver.clock(), limits=self._limits.session), self, self._driver.clock, self.buffer
        )
