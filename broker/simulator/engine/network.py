"""Connections between clients and Hosts: two ends, with a pipe in each direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from headgate.broker.core.inputs import LinkDown, LinkPaused, LinkResumed, Received
from headgate.protocol import Role, Session
from headgate.protocol.errors import ErrorCode, HeadgateError
from headgate.protocol.messages import Goodbye, Message

from ..limits import CLOSE_SECONDS_MAX
from .link import End, LinkOptions, Links, PlainSession
from .world import Host, World

__all__ = ["ClientEnd", "Connection", "Network", "NetworkOptions"]


@dataclass(frozen=True, slots=True)
class NetworkOptions(LinkOptions):
    """How connections of clients behave."""

    latency_seconds_min: float = 0.0005
    latency_seconds_max: float = 0.02
    whole_probability: float = 0.5
    pipe_high: int = 4096
    pipe_low: int = 512
    checked: bool = True


class ClientEnd(Protocol):
    """The client at the other end of a connection."""

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """One read returned these messages."""

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The connection ended; called once."""


class _Side(End):
    """One side of a connection: the client's or the broker's."""

    def __init__(self, connection: Connection, side: str, role: Role) -> None:
        network = connection.network
        checked = network.options.checked
        session = Session(role, network.world.now) if checked else PlainSession()
        super().__init__(network, session, side, b"" if checked else [])
        self._connection = connection
        self._checked = checked

    def say(self, message: Message) -> None:
        """Send a message to the other side; does nothing when the connection is over."""
        if self._connection.open and not self.session.closed:
            self.session.send(message)
            self.flush()

    def flush(self) -> None:
        """Move the output of the session into the pipe."""
        taken = self.session.take()
        if taken and self._connection.open:
            self._connection.other(self).incoming.write(b"".join(taken) if self._checked else taken)
            self._connection.watch_pressure()
        if self.session.closed:
            self._connection.close_soon()
        self.arm()

    def arrived(self, part: Any) -> None:
        """Handle what one read returned."""
        messages = self.receive(part)
        if messages:
            self._connection.heard(self, messages)
        self.flush()
        self._connection.watch_pressure()

    def tell(self, happened: LinkPaused | LinkResumed) -> None:
        """Pass an input to the Host."""
        if self._connection.link in self._connection.host.links:
            self._connection.host.feed(happened)

    def is_over(self) -> bool:
        """Whether the connection is over, which it is for both sides at once."""
        return not self._connection.open

    def stands_still(self) -> bool:
        """Whether the broker's process is paused; a client's never is."""
        return self._connection.broker is self and self._connection.host.paused


class Connection:
    """One connection between a client and a Host."""

    def __init__(self, network: Network, host: Host, client: ClientEnd, link: int) -> None:
        self.link = link
        self.open = True
        self.network = network
        self.host = host
        self._owner = client
        self.client = _Side(self, "client", Role.CLIENT)
        self.broker = _Side(self, "broker", Role.BROKER)
        self._closing = False
        host.links[link] = self
        self.client.arm()
        self.broker.arm()

    def other(self, side: _Side) -> _Side:
        """The opposite side."""
        return self.broker if side is self.client else self.client

    # --- What the two owners say -------------------------------------------------------------------------------------

    def client_send(self, message: Message) -> None:
        """Send a message of the client."""
        self.client.say(message)

    def broker_send(self, message: Message) -> None:
        """Send a message of the broker."""
        self.broker.say(message)

    def broker_close(self) -> None:
        """Close the connection at the broker; what it sent before may still arrive."""
        self.broker.say(Goodbye(ErrorCode.GOODBYE, ""))
        self.close_soon()

    def client_stops_reading(self) -> None:
        """Let nothing arrive at the client from now on."""
        self.client.incoming.stopped = True

    def client_reads_again(self) -> None:
        """Let data arrive at the client again."""
        self.client.incoming.stopped = False
        self.client.incoming.go_on()

    def cut(self) -> None:
        """Break the connection: data under way is lost, and each side finds out after a delay of its own."""
        if not self.open:
            return
        self.open = False
        random = self.network.world.random
        self._clear()
        self.network.world.after(random.uniform(0.0, 0.5), self._broker_learns)
        self.network.world.after(random.uniform(0.0, 0.5), self._client_learns)

    def host_stands_still(self, still: bool) -> None:
        """Pause or resume the broker's side: what the client sends waits, and timers of the session do not fire."""
        self.broker.incoming.stopped = still
        if not still:
            self.broker.incoming.go_on()
            self.broker.arm(anew=True)

    def host_died(self) -> None:
        """Close the broker's side; the client finds out after a delay."""
        self.cut()

    # --- What the sides tell -----------------------------------------------------------------------------------------

    def heard(self, side: _Side, messages: list[Message]) -> None:
        """Handle one read of one side."""
        if side is self.broker:
            turns = self.network.world.turns
            self.host.feed(Received(self.link, messages, more=turns is not None and turns.random() < 0.5))
        else:
            self._owner.on_messages(self, messages)

    def watch_pressure(self) -> None:
        """Tell the Host that its output piles up."""
        self.broker.watch_pressure(self.link, len(self.client.incoming.waiting))

    def close_soon(self) -> None:
        """Give the last messages some time to arrive, then end the connection."""
        if not self._closing:
            self._closing = True
            self.network.world.after(CLOSE_SECONDS_MAX, self._end)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self.open = False
        self._clear()
        self._broker_learns()
        self._client_learns()

    def _clear(self) -> None:
        self.client.incoming.clear()
        self.broker.incoming.clear()

    def _broker_learns(self) -> None:
        if self.host.links.pop(self.link, None) is not None:
            self.broker.session.lost("the connection was lost")
            self.host.feed(LinkDown(self.link, str(self.broker.session.failure or "goodbye")))

    def _client_learns(self) -> None:
        if self.network.connections.pop(self.link, None) is not None:
            self.client.session.lost("the connection was lost")
            self._owner.on_lost(self, self.client.session.failure)


class Network(Links):
    """All connections of clients in a world, by number."""

    options: NetworkOptions

    def __init__(self, world: World, options: NetworkOptions, failed: Callable[[str, HeadgateError], None]) -> None:
        super().__init__(world, failed)
        self.options = options
        self.connections: dict[int, Connection] = {}
        self._links = 0

    def dial(self, host: Host, client: ClientEnd) -> Connection:
        """Open a connection. Links are numbered, and no number is used twice."""
        link = self.next_link()
        connection = self.connections[link] = Connection(self, host, client, link)
        return connection

    def any_connection(self, random: Random) -> Connection | None:
        """A random open connection, or None."""
        connections = list(self.connections.values())
        return random.choice(connections) if connections else None

    def next_link(self) -> int:
        """The number of the next link."""
        self._links += 1
        return self._links
