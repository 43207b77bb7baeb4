"""What the disk was asked to keep and has not answered for: in the order of the tickets, and so of the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .log_held import HeldLog
from .log_state import ProducerState

__all__ = ["PENDING_OVERHEAD_BYTES", "Pending", "Then"]

PENDING_OVERHEAD_BYTES = 600
"""What a pending row costs beside its bytes: the objects around it."""

Then: TypeAlias = Callable[[str, float], None]
"""Told when the disk has it (""), or why it has not."""


@dataclass(slots=True)
class Pending:
    """A row of a log, a word about a producer, or the end of a log; `held` is the log that grows by it."""

    ticket: int
    then: Then | None
    held: HeldLog | None = None
    row: bytes = b""
    first: int = 0
    count: int = 0
    time: int = 0
    producer: ProducerState | None = None
    others: list[Then] | None = None

    @property
    def size(self) -> int:
        """What it counts for among what may wait."""
        return len(self.row) + PENDING_OVERHEAD_BYTES

    def also(self, then: Then) -> None:
        """Tell this one as well, and last. Any number may ask for that, so they are a list and not one in another."""
        if self.others is None:
            self.others = []
        self.others.append(then)

    def tell(self, reason: str, now: float) -> None:
        """Everybody, in the order of asking."""
        if self.then is not None:
            self.then(reason, now)
        for then in self.others or ():
            then(reason, now)
