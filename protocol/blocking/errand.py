"""An errand: work that asks brokers, and of which whoever waits may see a part now and the rest with his next call.

The work is a generator. It yields what it waits for, a client and when that has it, and goes on when it has come:

    def asking(client, verb):
        outcome = ...                                # asked, and not waited for
        yield client, lambda: outcome.settled
        return outcome.result()

So a call that has to keep a time leaves the work where it is. A call that has none left still reads once what has come,
so that calls without any come to an end as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Generic, Protocol, TypeVar

from ..client import Outcome

__all__ = ["Errand", "Work", "settled"]


class Waiter(Protocol):
    """A client, as far as it matters here."""

    def wait(self, done: Callable[[], bool], seconds: float | None = None) -> bool: ...


Result = TypeVar("Result")
Waited = tuple[Waiter, Callable[[], bool]]
Work = Generator[Waited, None, Result]


def settled(client: Waiter, outcome: Outcome) -> Work[Any]:
    """Wait for an outcome; its value. Raises its error."""
    yield client, lambda: outcome.settled
    return outcome.result()


class Errand(Generic[Result]):
    """See the head of this file."""

    def __init__(self, work: Work[Result]) -> None:
        self.result: Result
        self._work = work
        self._waited: Waited | None = None

    def advance(self, deadline: float | None = None) -> bool:
        """Carry on to the end, or to that time of the monotonic clock; tells which. Raises what the work raises."""
        while True:
            if self._waited is None:
                try:
                    self._waited = next(self._work)
                except StopIteration as end:
                    self.result = end.value
                    return True
            client, has_come = self._waited
            seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not client.wait(has_come, seconds):
                return False
            self._waited = None

    def run(self) -> Result:
        """Carry on to the end, whatever time it takes."""
        self.advance()
        return self.result
