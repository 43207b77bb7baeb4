"""A log that is held here: what the disk has of it, how much of that is safe, and how much of it may be read.

    first ......... safe ......... next ......... assigned
          k disks         ours           asked of our disk

Of a log of events of our own the rows behind `safe` may be taken back: a producer that did not hear that they are safe
may have sent them again to another broker, and then those are the ones that count (`log_tails.py`). So they are not
read before they are safe. Only rows with a stamp can be taken back, and what stands behind them; what stands before
the first of these may be read like the rest. `safe` says what was safe once: that does not end when a sibling goes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.log_rows import LogKind, LogName

from .log_state import LogState

__all__ = ["HeldLog"]


@dataclass(slots=True, eq=False)
class HeldLog:
    """See the head of this file. Events `first` to `next - 1` are on disk; `assigned` is what is given out next."""

    name: LogName
    own: bool
    first: int = 0
    next: int = 0
    assigned: int = 0
    bytes: int = 0
    first_time: int = 0
    last_time: int = 0
    opened: int = 0  # where it ended when this life began
    safe: int = 0
    doubted: bool = False  # whether it is being found out which of its rows are taken back: none goes to siblings
    unknown: int = 0  # up to here nobody has looked yet which rows have stamps
    stamped: deque[int] = field(default_factory=deque, repr=False)  # rows behind `safe` that have one
    waiters: deque[Any] = field(default_factory=deque, repr=False)

    def is_now(self, state: LogState) -> None:
        """What the disk says of it."""
        self.first, self.next, self.bytes = state.first, state.next, state.bytes
        self.first_time, self.last_time = state.first_time, state.last_time
        self.assigned = max(self.assigned, self.next)
        self.became_safe(self.first)  # what is gone is not taken back

    def grew(self, first: int, count: int, size: int, time: int, stamped: bool) -> None:
        """The disk has one row more."""
        self.next = first + count
        self.bytes += size
        self.first_time = self.first_time or time
        self.last_time = time
        if stamped and self.revocable:
            self.stamped.append(first)

    def became_safe(self, end: int) -> None:
        """Enough disks have it up to there."""
        if end > self.safe:
            self.safe = end
            while self.stamped and self.stamped[0] < end:
                self.stamped.popleft()

    def ended_at(self, position: int, size: int) -> None:
        """What was behind, so many bytes, is put aside. Some of it may be gone by then, and that is not given back."""
        self.next = self.assigned = max(position, self.first)
        self.bytes -= size
        if self.next == self.first:
            self.bytes = self.first_time = self.last_time = 0
        while self.stamped and self.stamped[-1] >= position:
            self.stamped.pop()
        self.unknown = min(self.unknown, position)

    @property
    def revocable(self) -> bool:
        """Whether rows of it may be taken back."""
        return self.own and self.name.kind == LogKind.EVENTS

    @property
    def readable(self) -> int:
        """Up to where it may be read."""
        if not self.revocable:
            return self.next
        if self.safe < self.unknown:
            return self.safe
        return self.stamped[0] if self.stamped else self.next
