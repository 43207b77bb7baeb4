"""What is waited for: outcomes of what was sent, and tasks, which go on when those are settled.

An **outcome** is nothing yet, a value, or an error; one may be shared by many events (those of one batch). A **task**
runs work, a generator that the driver of a world moves on. Work yields what it waits for and is given what comes of it;
how to wait is the driver's business, whether it awaits or reads a socket in a thread:

    def asking(client, verb):
        outcome = ...                      # asked, and not waited for
        yield Settled(client, outcome)
        return outcome.result()

A driver may leave a task where it waits, because its caller was cancelled or has no more time, and go on with it later.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import HeadgateError

if TYPE_CHECKING:
    from .core import ClientCore
    from .dialling import Attempt, LinkCore

__all__ = ["Close", "Connect", "Dial", "Outcome", "Pause", "Settled", "Task", "Wanted", "Work", "settled"]


class Outcome:
    """Is settled once. `awaiters` counts who will be told of an error, out of `events` that it stands for. A world that
    can wait for it extends `_wake`.
    """

    __slots__ = ("awaiters", "error", "events", "settled", "value")

    def __init__(self, events: int = 1) -> None:
        self.events = events
        self.awaiters = 0
        self.settled = False
        self.value: Any = None
        self.error: HeadgateError | None = None

    def settle(self, value: Any = None, error: HeadgateError | None = None) -> None:
        """Decide it. Only the first decision counts."""
        if not self.settled:
            self.settled = True
            self.value = value
            self.error = error
            self._wake()

    def result(self) -> Any:
        """The value of a settled outcome; raises its error."""
        assert self.settled, "asked for the result of what is still open"
        if self.error is not None:
            raise self.error
        return self.value

    def _wake(self) -> None:
        """Tell whoever waits."""


@dataclass(slots=True, eq=False)
class Settled:
    """Wait until an outcome is settled that this client will hear of."""

    client: ClientCore
    outcome: Outcome


@dataclass(slots=True, eq=False)
class Dial:
    """Give the client in `others` of that name, or connect one like `client` to that address, once for all who want it.

    Raises CannotConnect.
    """

    client: ClientCore
    others: dict[str, ClientCore]
    name: str
    address: str


@dataclass(slots=True, eq=False)
class Close:
    """Close a client."""

    client: ClientCore


@dataclass(slots=True, eq=False)
class Pause:
    """Wait until that time of the link's clock."""

    link: LinkCore
    until: float


@dataclass(slots=True, eq=False)
class Connect:
    """Give the link a connection, handshake included. Raises OSError, or a HeadgateError."""

    link: LinkCore
    attempt: Attempt


Result = TypeVar("Result")
Wanted = Settled | Dial | Close | Pause | Connect
Work = Generator[Wanted, Any, Result]


def settled(client: ClientCore, outcome: Outcome) -> Work[Any]:
    """Wait for an outcome; its value. Raises its error."""
    yield Settled(client, outcome)
    return outcome.result()


class Task(Generic[Result]):
    """Moves work on from one thing that it waits for to the next. Each step raises what the work raises."""

    def __init__(self, work: Work[Result]) -> None:
        self.result: Result  # at its end
        self._work = work
        self._wanted: Wanted | None = None
        self._has_begun = False

    def begin(self) -> Wanted | None:
        """What it waits for now, None at its end; it begins, unless it was begun before."""
        if self._has_begun:
            return self._wanted
        self._has_begun = True
        return self.give(None)

    def give(self, value: Any) -> Wanted | None:
        """This came of what it waited for; what it waits for next."""
        return self._go_on(self._work.send, value)

    def fail(self, error: Exception) -> Wanted | None:
        """What it waited for failed; what it waits for next."""
        return self._go_on(self._work.throw, error)

    def close(self) -> None:
        """It is not gone on with."""
        self._wanted = None
        self._work.close()

    def _go_on(self, resume: Callable[[Any], Wanted], value: Any) -> Wanted | None:
        self._wanted = None
        try:
            self._wanted = resume(value)
        except StopIteration as end:
            self.result = end.value
        return self._wanted
