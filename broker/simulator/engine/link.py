"""One side of a link, of a client's connection or between brokers: a session, and a pipe of what is on its way to it.

What one side says is appended to the pipe of the other; every so often a random part of it arrives, so that frames are
split and joined at every place there is. In checked mode sessions are real and pipes carry their bytes: aliasing,
mutated messages and gaps of the codec show. In fast mode pipes carry the messages themselves.

A pipe whose reader has stopped fills up; over a bound the Host that writes is told LinkPaused, as a socket would do it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.broker.core.inputs import LinkPaused, LinkResumed
from headgate.protocol.errors import HeadgateError, ProtocolViolation
from headgate.protocol.messages import Error, Goodbye, Message, Scope

from .world import World

__all__ = ["End", "LinkOptions", "Links", "Pipe", "PlainSession"]


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How links behave. `pipe_high` and `pipe_low` are bytes in checked mode and messages in fast mode."""

    latency_seconds_min: float
    latency_seconds_max: float
    whole_probability: float
    pipe_high: int
    pipe_low: int


class PlainSession:
    """Replaces a Session in fast mode: it passes message objects instead of bytes."""

    def __init__(self) -> None:
        self.closed = False
        self.failure: HeadgateError | None = None
        self._outgoing: list[Message] = []

    def send(self, message: Message) -> None:
        """Queue a message."""
        self._outgoing.append(message)
        self.closed = self.closed or _ends(message)

    def take(self) -> list[Message]:
        """Take all messages that were queued."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def receive(self, data: list[Message], now: float) -> list[Message]:
        """The messages that arrived, up to the one that ends the connection."""
        taken: list[Message] = []
        for message in data:
            if self.closed:
                break
            taken.append(message)
            self.closed = _ends(message)
        return taken

    def lost(self, reason: str) -> None:
        """The other side closed the link."""
        if not self.closed:
            self.closed = True
            self.failure = ProtocolViolation(reason)

    def next_deadline(self) -> float:
        """Never: only real sessions have heartbeats."""
        return float("inf")

    def wake(self, now: float) -> None:
        """Do nothing: there is no deadline."""


def _ends(message: Message) -> bool:
    return type(message) is Goodbye or (type(message) is Error and message.scope == Scope.CONNECTION)


class Pipe:
    """One direction of a link: the data under way, in order."""

    def __init__(self, world: World, options: LinkOptions, empty: Any, arrive: Callable[[Any], None]) -> None:
        self.waiting = empty
        self.stopped = False
        self.delay_seconds = 0.0
        self._empty = empty
        self._world = world
        self._options = options
        self._arrive = arrive
        self._moving = False

    def write(self, what: Any) -> None:
        """Append data to the pipe."""
        self.waiting = self.waiting + what
        self.go_on()

    def go_on(self) -> None:
        """Schedule an arrival, unless one is scheduled already or the reader is paused."""
        if self.waiting and not self._moving and not self.stopped:
            self._moving = True
            options = self._options
            latency = self._world.random.uniform(options.latency_seconds_min, options.latency_seconds_max)
            self._world.after(latency + self.delay_seconds, self._move)

    def clear(self) -> None:
        """Drop all data under way."""
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


class Links:
    """All links of one kind. `failed` hears of every failure that a session reports while it reads."""

    options: LinkOptions

    def __init__(self, world: World, failed: Callable[[str, HeadgateError], None]) -> None:
        self.world = world
        self.failed = failed


class End:
    """One side of a link. Subclasses handle arrivals and decide when the side is over."""

    def __init__(self, links: Links, session: Any, side: str, empty: Any = b"") -> None:
        self.links = links
        self.session = session
        self.side = side
        self.paused = False
        """Whether the Host of this side was told LinkPaused."""
        self.incoming = Pipe(links.world, links.options, empty, self.arrived)
        self._timer_at = float("inf")

    def arrived(self, part: Any) -> None:
        """Handle what one read returned."""
        raise NotImplementedError

    def flush(self) -> None:
        """Move the output of the session into the pipe."""
        raise NotImplementedError

    def tell(self, happened: LinkPaused | LinkResumed) -> None:
        """Tell the Host of this side, if it has one."""
        raise NotImplementedError

    def is_over(self) -> bool:
        """Whether this side has no deadlines any more."""
        raise NotImplementedError

    def stands_still(self) -> bool:
        """Whether the process of this side is paused: it reads nothing and fires no timer."""
        raise NotImplementedError

    def receive(self, part: Any) -> list[Message]:
        """Decode the messages in it; reports what the session refuses."""
        was_closed = self.session.closed
        messages: list[Message] = self.session.receive(part, self.links.world.now)
        if self.session.failure is not None and not was_closed:
            self.links.failed(self.side, self.session.failure)
        return messages

    def watch_pressure(self, number: int, waiting: int) -> None:
        """Tell the Host in a separate turn when this link's pipe becomes full, or has room again."""
        options = self.links.options
        if not self.paused and waiting > options.pipe_high:
            self.paused = True
            self.links.world.after(0.0, lambda: self.tell(LinkPaused(number)))
        elif self.paused and waiting <= options.pipe_low:
            self.paused = False
            self.links.world.after(0.0, lambda: self.tell(LinkResumed(number)))

    def arm(self, anew: bool = False) -> None:
        """Arm the one timer for the session's deadline; a timer that fires too early is armed again."""
        if anew:
            self._timer_at = float("inf")
        world, deadline = self.links.world, self.session.next_deadline()
        if deadline < self._timer_at and not self.is_over():
            self._timer_at = deadline
            world.at(deadline, lambda: self._timer(deadline))

    def _timer(self, deadline: float) -> None:
        if self._timer_at != deadline or self.is_over() or self.stands_still():
            return
        self._timer_at = float("inf")
        self.session.wake(self.links.world.now)
        self.flush()
