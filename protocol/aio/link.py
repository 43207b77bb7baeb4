"""The link of a client to its broker: it dials, shakes hands, and dials again, or the next one, when that is lost.

What is said over it belongs to the Conversation; this file carries its messages and nothing else. At most one task
runs here, the one that reconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..addresses import Addresses
from ..client import Attempt, Conversation, Dialling, Retry, Telling, reason_of
from ..errors import CannotConnect, ConnectionLost, HeadgateError
from ..messages import Message, Welcome
from ..wire import Role, Session
from .connection import Connection
from .tasks import Tasks

__all__ = ["Link"]


class Link:
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
        self.addresses = addresses
        self.failure: HeadgateError | None = None
        self.reconnects = 0
        self._conversation = conversation
        self._retry = retry
        self._clock = conversation.publications.clock = clock
        self._on_change = on_change
        self._telling = telling or Telling()
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
        patience = Retry(wait_seconds, self._retry.jitter)
        patience.lost(self._clock())
        dialling = Dialling(self.addresses, patience, self._conversation.limits, at_once=True)
        if (error := await self._search(dialling)) is not None:
            raise CannotConnect(self.addresses.text, dialling.reason) from error

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

    def bound(self, seconds: float) -> None:
        """Look for a broker no longer than that from now on."""
        self._retry.bound(seconds)

    def forsake(self, error: HeadgateError) -> None:
        """This connection is another process's: end without a word on it."""
        self.failure = error
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
                self._retry.connected(self._clock())
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
        self._conversation.interrupted(reason)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if self._welcome is not None:
            if not self._welcome.done():
                self._welcome.set_exception(failure or ConnectionLost(reason))
        elif not self._closing:
            self._retry.lost(self._clock())
            self._telling.disconnected(self.addresses.last or self.addresses.text, reason, self._retry.budget_seconds)
            self._tasks.start(self._reconnect(reason), "headgate reconnect")
        self._on_change()

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _rested(self) -> None:
        self._resting = None
        self._conversation.publications.rested()
        self.pump()

    async def _search(self, dialling: Dialling) -> Exception | None:
        """Try until there is a connection, or nothing more to try: then the last error."""
        last: Exception | None = None
        while self._conversation.fatal is None:
            attempt = dialling.next(self._clock())
            if attempt is None:
                break
            if attempt.pause:
                await asyncio.sleep(attempt.pause)
            try:
                await self._dial(attempt)
            except (OSError, HeadgateError) as error:
                dialling.failed(attempt.address, error)
                self._telling.failed(attempt.address, reason_of(error))
                last = error
            else:
                dialling.reached(attempt.address)
                return None
        return last or ConnectionLost("there was no time to try")

    async def _dial(self, attempt: Attempt) -> None:
        loop = asyncio.get_running_loop()
        session = Session(Role.CLIENT, self._clock())
        connection = self._connection = Connection(session, self, self._clock)
        welcome = self._welcome = loop.create_future()
        try:
            async with asyncio.timeout(attempt.seconds):
                await loop.create_connection(lambda: connection, *attempt.target)
                await welcome
        except TimeoutError as error:
            raise ConnectionLost(f"no answer within {attempt.seconds:g} seconds") from error
        finally:
            if self._welcome is not None:
                # Not welcomed: what this connection may still say concerns nobody.
                self._welcome = self._connection = None
                welcome.cancel()
                connection.abort("the handshake failed")

    async def _reconnect(self, reason: str) -> None:
        dialling, sessions = (
            Dialling(self.addresses, self._retry, self._conversation.limits),
            self._conversation.sessions,
        )
        if await self._search(dialling) is None:
            self.reconnects += 1
            resumed = self._conversation.sessions == sessions
            self._telling.reconnected(self.addresses.last or "", self._conversation.broker, resumed)
            return
        self.failure = self._conversation.fatal or ConnectionLost(dialling.reason or reason)
        self._telling.ended(self.addresses.text, reason_of(self.failure))
        self._conversation.abandon(dialling.reason or reason)
        self._on_change()
