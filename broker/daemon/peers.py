"""Links to other brokers: accepts them, dials them, and lets messages through. Which link is used is the Node's affair.

Reading never stops here, as it does for a client that does not take what it is sent: two brokers that both waited for
the other to read would wait for ever. What may be sent is bounded by credit.
"""

from __future__ import annotations

import asyncio

from headgate.broker.core.inputs import DialFailed, LinkPaused, LinkResumed, PeerUp
from headgate.protocol.aio import Connection, Tasks
from headgate.protocol.errors import HeadgateError
from headgate.protocol.messages import Message
from headgate.protocol.wire import Role, Session

from .driver import Driver
from .limits import DEFAULT_LIMITS, DIALS_UNTOLD, PEER_CLOSE_SECONDS, PEER_CONNECTIONS_MAX, DaemonLimits
from .security import names_of
from .server import Server
from .settings import split_address

__all__ = ["PeerServer"]

_WORDLESS = "it ended the connection without a word; do both speak TLS, and does each trust the other's --peer-tls-ca?"


class PeerServer(Server):
    """The peer listener and the dialler; both sides of a link are handled alike."""

    role = Role.PEER
    guest = "broker"

    def __init__(
        self, driver: Driver, connections_max: int = PEER_CONNECTIONS_MAX, limits: DaemonLimits = DEFAULT_LIMITS
    ) -> None:
        super().__init__(driver, connections_max, limits)
        self.close_seconds = PEER_CLOSE_SECONDS
        self._dialled: dict[Connection, str] = {}
        self._unheard: dict[Connection, str] = {}  # it answered, and has not said a word
        self._failures: dict[str, int] = {}  # by address, since it last said something
        self._tasks = Tasks()
        driver.dial = self.dial

    def dial(self, address: str) -> None:
        """Connect to a broker; PeerUp or DialFailed tells how it went."""
        if len(self._tasks) >= self._limits.dials:
            # In a turn of its own: the caller is still busy asking.
            asyncio.get_running_loop().call_soon(self._driver.feed, DialFailed(address))
        else:
            self._tasks.start(self._connect(address), f"dial {address}")

    async def close(self) -> None:
        """Dial no more, and cut what is left."""
        self.stop_accepting()
        self.abort_all()
        await self._tasks.stop()

    def on_opened(self, connection: Connection) -> None:
        """A socket was accepted, or answered."""
        super().on_opened(connection)
        address = self._dialled.pop(connection, "")
        if address:
            self._unheard[connection] = address
        if not connection.closed:
            names = None if self.security is None else names_of(connection.certificate)
            self._driver.feed(PeerUp(self._link_of[connection], address, names))
        elif address:
            self._driver.feed(DialFailed(address))

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """One read brought messages."""
        if (address := self._unheard.pop(connection, "")) != "":
            self._failures.pop(address, None)
        super().on_messages(connection, messages)

    def on_closed(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The socket is gone."""
        if (address := self._unheard.pop(connection, "")) != "":
            self._tell_failure(address, _WORDLESS)
        super().on_closed(connection, failure)

    def on_paused(self, connection: Connection) -> None:
        """It reads more slowly than we write."""
        link = self._link_of.get(connection)
        if link is not None:
            self._driver.feed(LinkPaused(link))

    def on_resumed(self, connection: Connection) -> None:
        """It caught up."""
        link = self._link_of.get(connection)
        if link is not None:
            self._driver.feed(LinkResumed(link))

    async def _connect(self, address: str) -> None:
        connection = Connection(
            Session(Role.PEER, self._driver.clock(), limits=self._limits.session), self, self._driver.clock, self.buffer
        )
        self._dialled[connection] = address
        reason = ""
        try:
            async with asyncio.timeout(self._limits.dial_seconds):
                host, port = split_address(address)
                await asyncio.get_running_loop().create_connection(
                    lambda: connection, host, port, ssl=None if self.security is None else self.security.dialling
                )
        except TimeoutError:
            reason = f"no answer within {self._limits.dial_seconds:g} seconds"
        except (OSError, ValueError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
        if self._dialled.pop(connection, None) is not None:
            self._tell_failure(address, reason)
            self._driver.feed(DialFailed(address))

    def _tell_failure(self, address: str, reason: str) -> None:
        """Once, and not for a broker that only starts a little later than this one."""
        while len(self._failures) >= self._limits.dials and address not in self._failures:
            del self._failures[next(iter(self._failures))]
        failures = self._failures[address] = self._failures.get(address, 0) + 1
        log = self._log.warning if failures == DIALS_UNTOLD + 1 else self._log.debug
        log("broker not reached", address=address, reason=reason, advice="it is tried again and again")
