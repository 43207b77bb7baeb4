"""A simulated subscriber of the stored stream: it wants all of it, everywhere, and asks again whenever it is cut off.

What it gets is looked at where it leaves a broker, by the checkers; here it is only taken, so that more may come.
"""

from __future__ import annotations

from typing import Any

from headgate.protocol.errors import HeadgateError
from headgate.protocol.messages import Credit, Deliver, Error, Goodbye, Hello, Message, Scope, Subscribe, Welcome

from ..engine import ClusterWorld, Connection
from .producer import STREAM

__all__ = ["Listener"]

_CREDIT = 10_000
_HEARTBEAT_SECONDS = 4.0
_AGAIN_SECONDS = 0.5


class Listener:
    """Subscribes to all of the stream, at one broker after the other."""

    def __init__(self, name: str, world: ClusterWorld) -> None:
        self.name = name
        self.heard = 0
        self._world = world
        self._connection: Connection | None = None
        self._received = self._request = 0

    def dial(self) -> None:
        """Connect to any broker, as a new session."""
        serving = self._world.serving()
        if not serving:
            self._world.after(_AGAIN_SECONDS, self.dial)
            return
        host = self._world.random.choice(serving).host
        assert host is not None
        self._received = 0
        self._connection = self._world.clients.dial(host, self)
        self._connection.client_send(Hello(name=self.name, credit=_CREDIT, heartbeat_seconds=_HEARTBEAT_SECONDS))

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """One read."""
        for message in messages if connection is self._connection else ():
            self._hear(connection, message)

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The connection is over."""
        if connection is self._connection:
            self._world.after(self._world.random.uniform(0.05, 1.0), self.dial)

    def _hear(self, connection: Connection, message: Any) -> None:
        if isinstance(message, Deliver):
            self.heard += message.portion.count
            self._received += message.portion.count
            connection.client_send(Credit(self._received + _CREDIT, self._received))
        elif isinstance(message, Welcome):
            self._subscribe(connection)
        elif isinstance(message, Error) and message.scope == Scope.REQUEST:
            self._world.after(_AGAIN_SECONDS, lambda: self._subscribe(connection))
        elif isinstance(message, Goodbye):
            connection.cut()

    def _subscribe(self, connection: Connection) -> None:
        if connection is self._connection:
            self._request += 1
            connection.client_send(Subscribe(self._request, 1, STREAM, "", {}))
