"""The link of a client to its broker: it dials, shakes hands, and dials again, or the next one, when that is lost.

What is said over it belongs to the Conversation; this file carries its messages and nothing else. At most one task
runs here, the one that reconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..addresses import Addresses
from ..client import Attempt, Conversation, LinkCore, Retry, Task, Telling, reason_of
from ..errors import ConnectionLost, HeadgateError
from ..messages import Message, Welcome
from ..wire import Role, Session
from .connection import Connection
from .driver import drive, run
from .tasks import Tasks

__all__ = ["Link"]


class Link(LinkCore):
    """Handler of the client's connections, one at a time. `on_change` is called after anything came in or ended."""

    def __init__(
        self,
        addresses: Addresses,
        conversation: Conversation,
        retry: Retry,
        clock: Callable[[], float],
        on_change: Callable[[], None],
        telling: Telling | None = None,
    ) -> None:
        super().__init__(addresses, conversation, retry, clock, telling)
        self._on_change = on_change
        self._connection: Connection | None = None
        self._welcome: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None
        self._closing = False
        self._resting: asyncio.Handle | None = None
        self._tasks = Tasks()

    @property
    def connected(self) -> bool:
        """The handshake is done and nobody said goodbye."""
        return self._connection is not None and self._welcome is None and not self._connection.closed

    async def open(self, wait_seconds: float) -> None:
        """Connect for the first time; raises CannotConnect when that fails until `wait_seconds` are over."""
        await run(self.opening(wait_seconds))

    def pump(self) -> None:
        """Send what may be sent."""
        connection = self._connection
        if connection is None or self._welcome is not None or connection.closed:
            return
        for message in self._conversation.outgoing(connection.write_paused):
            connection.send(message)

    def flush(self) -> None:
        """Write what was sent now rather than at the end of the loop's turn."""
        if self._connection is not None:
            self._connection.flush()

    def forsake(self, error: HeadgateError) -> None:
        """This connection is another process's: end without a word on it."""
        super().forsake(error)
        self._connection = self._welcome = None
        self._closing = True

    async def close(self) -> None:
        """Say goodbye and wait until the socket is gone."""
        self._closing = True
        if self._resting is not None:
            self._resting.cancel()
        await self._tasks.stop()
        connection = self._connection
        if connection is not None:
            self._gone = asyncio.get_running_loop().create_future()
            if self.connected:
                for message in self._conversation.last_words():
                    connection.send(message)
            connection.close()
            await self._gone

    # --- What the connection says ------------------------------------------------------------------------------------

    def on_opened(self, connection: Connection) -> None:
        """The socket is there: speak first."""
        connection.send(self._conversation.hello())
        connection.flush()

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """The broker spoke."""
        if connection is not self._connection:
            return
        handle = self._conversation.handle
        for message in messages:
            handle(message)
            if self._welcome is not None and type(message) is Welcome:
                if not self._welcome.done():
                    self._welcome.set_result(None)
                self._welcome = None
                self._retry.connected(self.clock())
        pause = self._conversation.publications.pause_seconds
        if pause is not None and self._resting is None and not self._closing:
            self._resting = asyncio.get_running_loop().call_later(pause, self._rested)
        self.pump()
        self._on_change()

    def on_paused(self, connection: Connection) -> None:
        """The broker reads more slowly than we write: `pump` sees it."""

    def on_resumed(self, connection: Connection) -> None:
        """It caught up."""
        self.pump()

    def on_closed(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The socket is gone."""
        if connection is not self._connection:
            return
        self._connection = None
        reason = reason_of(failure) if failure is not None else "the broker said goodbye"
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if self._welcome is None and not self._closing:
            task = Task(self.reconnecting(reason))
            task.begin()  # at once, for whoever is told
            self._tasks.start(self._reconnect(task), "headgate reconnect")
        else:
            self._conversation.interrupted(reason)
            if self._welcome is not None and not self._welcome.done():
                self._welcome.set_exception(failure or ConnectionLost(reason))
        self._on_change()

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _rested(self) -> None:
        self._resting = None
        self._conversation.publications.rested()
        self.pump()

    async def connect(self, attempt: Attempt) -> None:
        """Make one attempt. Raises OSError, or a HeadgateError."""
        loop = asyncio.get_running_loop()
        session = Session(Role.CLIENT, self.clock())
        connection = self._connection = Connection(session, self, self.clock)
        welcome = self._welcome = loop.create_future()
        try:
            async with asyncio.timeout(attempt.seconds):
                await loop.create_connection(lambda: connection, *attempt.target, ssl=attempt.security())
                await welcome
        except TimeoutError as error:
            raise ConnectionLost(f"no answer within {attempt.seconds:g} seconds") from error
        finally:
            if self._welcome is not None:
                # Not welcomed: what this connection may still say concerns nobody.
                self._welcome = self._connection = None
                welcome.cancel()
                connection.abort("the handshake failed")

    async def _reconnect(self, task: Task[None]) -> None:
        await drive(task)
        if self.failure is not None:
            self._on_change()
