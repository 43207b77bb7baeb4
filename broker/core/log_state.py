"""What a store knows of a log and of a producer: told when it opens, and kept in step from then on."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.protocol.data import LogName

__all__ = ["LogState", "ProducerState"]


@dataclass(slots=True)
class LogState:
    """One log: it holds the events at `first` to `next - 1`, in so many bytes of rows.

    Times are those of its oldest and newest row, in microseconds since 1970; 0 when it holds none. `safe` is the high
    watermark that was written down last, 0 when none was.
    """

    name: LogName
    first: int
    next: int
    bytes: int
    first_time: int
    last_time: int
    safe: int = 0


@dataclass(slots=True)
class ProducerState:
    """How far a producer has come: `next` events of its own are in the logs, in this epoch of it.

    `digest` is what it gave with the newest of them, `time` when that was, in microseconds since 1970. `fence` is which
    opening of it holds, encoded; empty when that is as the store has it.
    """

    name: str
    epoch: int
    next: int
    digest: bytes
    time: int
    fence: bytes = b""
