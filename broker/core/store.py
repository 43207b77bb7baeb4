"""The store of a host, as the core thinks of it: seven calls, of one caller at a time, and two ways to fail.

    open      what is there, damage found and put aside; before anything else
    append    all of these, in one transaction that is on the disk when this returns; or none of them, and it raises.
              One of them may end a log of our own: what was behind is put aside. Of several states of one durable
              subscription, or of one producer, the last one counts
    read      rows of a log; one that cannot be read any more is told, not skipped in silence
    trim      let go of the oldest rows
    mark      remember how far logs are on enough disks; the next `open` tells it
    find      a position by time or by size, a producer's rows that have ids
    close     in order, so that the next open has nothing to repair

A daemon has a file behind them and a thread of its own that calls them; the simulator has lists, with crashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from headgate.protocol.data import LogName

from .effects import FindIds, FindSize, FindTime, LogWrite
from .inputs import Opened
from .log_state import LogState

__all__ = ["LogStore", "LogStoreError", "StoreFailed", "StoreFull"]


class LogStoreError(Exception):
    """The store could not do what it was asked for; `reason` is fit for an operator."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StoreFull(LogStoreError):
    """Nothing of this was written, for want of room; it may work once there is some."""


class StoreFailed(LogStoreError):
    """The disk failed. Whether this was written is not known, and nothing may be written after it."""


class LogStore(Protocol):
    """Keeps rows on disk: what the core asks of the store of a host."""

    def open(self) -> Opened:
        """What the store holds."""

    def append(self, entries: Sequence[LogWrite]) -> None:
        """All of it on the disk. Raises StoreFull or StoreFailed."""

    def read(self, log: LogName, position: int, bytes_max: int) -> tuple[list[bytes], int, str]:
        """Rows from the one that holds the position on, where the next begin, and what cannot be read: see RowsRead."""

    def trim(self, log: LogName, below: int) -> LogState:
        """The log, without the rows that end at or before `below`. Raises StoreFull or StoreFailed."""

    def mark(self, ends: Mapping[LogName, int]) -> None:
        """Remember these high watermarks. Raises StoreFull or StoreFailed."""

    def find(self, question: FindTime | FindSize | FindIds) -> Any:
        """The value of the Found that answers."""

    def close(self) -> None:
        """Nothing more will be asked."""
