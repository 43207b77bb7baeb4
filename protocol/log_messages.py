"""The messages about logs: who published a batch, one chunk of a log asked for and given, a row for another's disk.

Reading is by pull: one READ_LOG, one LOG_CHUNK, and whoever wants more asks on from `next`. So a reader sets the pace
and a broker holds nothing for it. What the rows are is told in `log_rows.py`; here they are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Copy", "LogChunk", "ReadLog", "Stamp"]


@dataclass(slots=True)
class Stamp:
    """Who published a batch and which of that producer's events it begins with.

    `number` counts the producer's events from 0, whatever its epoch; a newer epoch shuts out the older ones. `digest`
    is the producer's own word about what it wrote so far, `ids` a column with one string an event, or empty.
    """

    producer: str
    epoch: int
    number: int
    digest: bytes = b""
    ids: bytes = b""


@dataclass(slots=True)
class ReadLog:
    """Rows of a log from a position on; with a pattern or a condition only the events that match."""

    request: int
    broker: str
    epoch: int
    kind: int
    stream: str
    position: int
    events: int = 0
    pattern: str = ""
    condition: str = ""


@dataclass(slots=True)
class LogChunk:
    """What was there: encoded rows, where to ask on, and where the log begins and ends.

    `covered` has, for each origin, the last event number among what was looked at, matching or not.
    """

    request: int
    first: int
    next: int
    end: int
    covered: dict[str, int]
    rows: list[bytes]


@dataclass(slots=True)
class Copy:
    """A row of the sender's log, or of one that it has a copy of, for the recipient's disk."""

    broker: str
    epoch: int
    kind: int
    stream: str
    row: bytes
