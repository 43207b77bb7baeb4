"""What will have come of something that was sent: nothing yet, a value, or an error.

One outcome may be shared by many events (those of one batch). A world that can wait for it (asyncio) extends `_wake`.
"""

from __future__ import annotations

from typing import Any

from ..errors import HeadgateError

__all__ = ["Outcome"]


class Outcome:
    """Settled once. `awaiters` counts who will be told of an error, out of `events` that it stands for."""

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
