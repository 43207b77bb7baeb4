"""The network: connections between simulated clients and Hosts, with latency, cut and joined writes, and back-pressure.

A connection has two ends and a pipe each way. What an end says is appended to its pipe; every so often a random
part of what is under way arrives, so that frames are split and joined at every place there is. In checked mode
the ends are real Sessions and the pipes carry their bytes: aliasing, mutated messages and gaps of the codec show. In
fast mode the pipes carry the messages themselves.

A pipe whose reader has stopped fills up; over a bound the Host is told LinkPaused, as a socket would do it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from headgate.broker.core.inputs import LinkDown, LinkPaused, LinkResumed, Received
from headgate.protocol import Role, Session
from headgate.protocol.errors import ErrorCode, HeadgateError, ProtocolViolation
from headgate.protocol.messages import Error, Goodbye, Message, Scope

from ..limits import CLOSE_SECONDS_MAX
from .world import Host, World

__all__ = ["ClientEnd", "Connection", "Network", "NetworkOptions", "Pipe", "PlainSession"]


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """How the network behaves. `pipe_high` and `pipe_low` are bytes in checked mode and messages in fast mode."""

    checked: bool = True
    latency_seconds_min: float = 0.0005
    latency_seconds_max: float = 0.02
    whole_probability: float = 0.5
    pipe_high: int = 4096
    pipe_low: int = 512


class ClientEnd(Protocol):
    """Whoever dialled."""

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """One read brought messages."""

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The connection is over; said once."""


class Reads(Protocol):
    """What a pipe needs of a network's options."""

    @property
    def latency_seconds_min(self) -> float:
        """How soon a read may bring something."""

    @property
    def latency_seconds_max(self) -> float:
        """How late."""

    @property
    def whole_probability(self) -> float:
        """How often a read brings all that is under way."""


class PlainSession:
    """Stands in for a Session in fast mode: messages are their own encoding."""

    def __init__(self) -> None:
        self.closed = False
        self.failure: HeadgateError | None = None
        self._outgoing: list[Message] = []

    def send(self, message: Message) -> None:
        """Queue a message."""
        self._outgoing.append(message)
        self.closed = self.closed or _ends(message)

    def take(self) -> list[Message]:
        """What was queued."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def receive(self, data: list[Message], now: float) -> list[Message]:
        """What came, up to the message that ends the connection."""
        taken: list[Message] = []
        for message in data:
            if self.closed:
                break
            taken.append(message)
            self.closed = _ends(message)
        return taken

    def lost(self, reason: str) -> None:
        """The other side is gone."""
        if not self.closed:
            self.closed = True
            self.failure = ProtocolViolation(reason)

    def next_deadline(self) -> float:
        """Nothing is ever due: heartbeats belong to real sessions."""
        return float("inf")

    def wake(self, now: float) -> None:
        """Nothing is due."""


def _ends(message: Message) -> bool:
    return type(message) is Goodbye or (type(message) is Error and message.scope == Scope.CONNECTION)


class Pipe:
    """One direction: what is under way, in order."""

    def __init__(self, world: World, options: Reads, empty: Any, arrive: Callable[[Any], None]) -> None:
        self.waiting = empty
        self.stopped = False
        self.delay_seconds = 0.0
        self._empty = empty
        self._world = world
        self._options = options
        self._arrive = arrive
        self._moving = False

    def write(self, what: Any) -> None:
        """Append to what is under way."""
        self.waiting = self.waiting + what
        self.go_on()

    def go_on(self) -> None:
        """Let something arrive after a while, unless it is on its way already or nobody reads."""
        if self.waiting and not self._moving and not self.stopped:
            self._moving = True
            options = self._options
            latency = self._world.random.uniform(options.latency_seconds_min, options.latency_seconds_max)
            self._world.after(latency + self.delay_seconds, self._move)

    def clear(self) -> None:
        """What is under way is lost."""
        self.waiting = self._empty

    def _move(self) -> None:
        self._moving = False
        if self.stopped or not self.waiting:
            return
        random, size = self._world.random, len(self.waiting)
        count = size if random.random() < self._options.whole_probability else random.randint(1, size)
        part, self.waiting = self.waiting[:count], self.waiting[count:]
        self._arrive(part)
        self.go_on()


class Connection:
    """One connection of a client with a Host."""

    def __init__(self, network: Network, host: Host, client: ClientEnd, link: int) -> None:
        world, options = network.world, network.options
        self.link = link
        self.open = True
        self.paused = False
        self._network = network
        self._host = host
        self._client = client
        empty: Any = b"" if options.checked else []
        self._ends: dict[str, Any] = {
            "client": Session(Role.CLIENT, world.now) if options.checked else PlainSession(),
            "broker": Session(Role.BROKER, world.now) if options.checked else PlainSession(),
        }
        self._up = Pipe(world, options, empty, self._arrived_at_broker)
        self._down = Pipe(world, options, empty, self._arrived_at_client)
        self._timers = {"client": float("inf"), "broker": float("inf")}
        self._closing = False
        host.links[link] = self
        self._arm("client")
        self._arm("broker")

    # --- What the two owners say -------------------------------------------------------------------------------------

    def client_send(self, message: Message) -> None:
        """The client says something; nothing happens when the connection is over."""
        self._say("client", message)

    def broker_send(self, message: Message) -> None:
        """The broker says something; nothing happens when the connection is over."""
        self._say("broker", message)

    def broker_close(self) -> None:
        """The broker gives the connection up; what was said before may still arrive."""
        if not self._ends["broker"].closed:
            self._say("broker", Goodbye(ErrorCode.GOODBYE, ""))
        self._close_soon()

    def client_stops_reading(self) -> None:
        """Nothing arrives at the client from now on."""
        self._down.stopped = True

    def client_reads_again(self) -> None:
        """What waited arrives."""
        self._down.stopped = False
        self._down.go_on()

    def cut(self) -> None:
        """The connection breaks: what is under way is lost, and each side finds out in its own time."""
        if not self.open:
            return
        self.open = False
        random = self._network.world.random
        self._up.clear()
        self._down.clear()
        self._network.world.after(random.uniform(0.0, 0.5), self._broker_learns)
        self._network.world.after(random.uniform(0.0, 0.5), self._client_learns)

    def host_stands_still(self, still: bool) -> None:
        """What the client says waits, and the broker's clocks do too."""
        self._up.stopped = still
        if not still:
            self._up.go_on()
            self._timers["broker"] = float("inf")
            self._arm("broker")

    def host_died(self) -> None:
        """The client finds out in its own time."""
        self.cut()

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _say(self, side: str, message: Message) -> None:
        end = self._ends[side]
        if self.open and not end.closed:
            end.send(message)
            self._flush(side)

    def _flush(self, side: str) -> None:
        taken = self._ends[side].take()
        if taken and self.open:
            pipe = self._up if side == "client" else self._down
            pipe.write(b"".join(taken) if self._network.options.checked else taken)
            if side == "broker":
                self._watch_pressure()
        if self._ends[side].closed:
            self._close_soon()
        self._arm(side)

    def _arrived_at_broker(self, data: Any) -> None:
        messages = self._receive("broker", data)
        if messages:
            self._host.feed(Received(self.link, messages))
        self._flush("broker")

    def _arrived_at_client(self, data: Any) -> None:
        messages = self._receive("client", data)
        if messages:
            self._client.on_messages(self, messages)
        self._flush("client")
        self._watch_pressure()

    def _receive(self, side: str, data: Any) -> list[Message]:
        end = self._ends[side]
        was_closed = end.closed
        messages: list[Message] = end.receive(data, self._network.world.now)
        if end.failure is not None and not was_closed:
            self._network.failed(side, end.failure)
        return messages

    def _watch_pressure(self) -> None:
        """Tell the Host, in a turn of its own, when the pipe to the client is full or nearly empty again."""
        options, waiting = self._network.options, len(self._down.waiting)
        if not self.paused and waiting > options.pipe_high:
            self.paused = True
            self._network.world.after(0.0, lambda: self._tell(LinkPaused(self.link)))
        elif self.paused and waiting <= options.pipe_low:
            self.paused = False
            self._network.world.after(0.0, lambda: self._tell(LinkResumed(self.link)))

    def _tell(self, happened: LinkPaused | LinkResumed) -> None:
        if self.link in self._host.links:
            self._host.feed(happened)

    def _close_soon(self) -> None:
        if not self._closing:
            self._closing = True
            self._network.world.after(CLOSE_SECONDS_MAX, self._end)

    def _end(self) -> None:
        self.open = False
        self._up.clear()
        self._down.clear()
        self._broker_learns()
        self._client_learns()

    def _broker_learns(self) -> None:
        if self._host.links.pop(self.link, None) is not None:
            self._ends["broker"].lost("the connection was lost")
            self._host.feed(LinkDown(self.link, str(self._ends["broker"].failure or "goodbye")))

    def _client_learns(self) -> None:
        if self._network.connections.pop(self.link, None) is not None:
            self._ends["client"].lost("the connection was lost")
            self._client.on_lost(self, self._ends["client"].failure)

    def _arm(self, side: str) -> None:
        """One timer a side, for the session's deadline; when it comes too early it is armed anew."""
        world, deadline = self._network.world, self._ends[side].next_deadline()
        if deadline < self._timers[side]:
            self._timers[side] = deadline
            world.after(max(0.0, deadline - world.now), lambda: self._timer(side, deadline))

    def _timer(self, side: str, deadline: float) -> None:
        if self._timers[side] != deadline or not self.open or (side == "broker" and self._host.paused):
            return
        self._timers[side] = float("inf")
        end, now = self._ends[side], self._network.world.now
        if now < end.next_deadline() <= now + 1e-9:
            now = end.next_deadline()  # the sum of two floats came out a little early
        end.wake(now)
        self._flush(side)


class Network:
    """All connections of a world. `failed` hears of every failure that a session reports while it reads."""

    def __init__(self, world: World, options: NetworkOptions, failed: Callable[[str, HeadgateError], None]) -> None:
        self.world = world
        self.options = options
        self.failed = failed
        self.connections: dict[int, Connection] = {}
        self._links = 0

    def dial(self, host: Host, client: ClientEnd) -> Connection:
        """A new connection; links are numbered and a number is never used again."""
        link = self.next_link()
        connection = self.connections[link] = Connection(self, host, client, link)
        return connection

    def any_connection(self, random: Random) -> Connection | None:
        """One of those that are there."""
        connections = list(self.connections.values())
        return random.choice(connections) if connections else None

    def next_link(self) -> int:
        """A number for a link."""
        self._links += 1
        return self._links
