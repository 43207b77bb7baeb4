"""Logs in memory to be read: what the readers of the Spark source are tested against without a broker."""

from __future__ import annotations

from headgate.protocol.client import Chunk, LogInfo, Survey
from headgate.protocol.data import LogKind, LogName, Row, make_batch

__all__ = ["FakeLogs"]


class FakeLogs:
    """Logs of the stream `q`, filled by `append`; every chunk has at most `chunk_rows` rows."""

    def __init__(self, chunk_rows: int = 2) -> None:
        self.rows: dict[LogName, list[Row]] = {}
        self.first: dict[LogName, int] = {}
        self.reads: list[tuple[str, int, int, str, str]] = []
        self.chunk_rows = chunk_rows
        self.away: tuple[str, ...] = ()
        self.copies = 1
        self.stored = True

    def append(self, broker: str, epoch: int, count: int, time: int = 0) -> LogName:
        """A row of so many events, whose attribute `n` is their position."""
        name = LogName(broker, epoch, LogKind.EVENTS, "q")
        first = self.next(name)
        numbers = list(range(first, first + count))
        batch = make_batch(["q/a"], {"n": numbers}, [b""] * count)
        row = Row(first, count, time, broker, 0, b"", batch.topics, batch.lengths, batch.columns, True, batch.records)
        self.rows.setdefault(name, []).append(row)
        return name

    def next(self, name: LogName) -> int:
        """Where a log ends."""
        return sum(row.count for row in self.rows.get(name, []))

    def trim(self, name: LogName, below: int) -> None:
        """Retention."""
        self.first[name] = below

    # --- What a client offers ----------------------------------------------------------------------------------------

    def survey_logs(self, stream: str, kind: str | int = "events") -> Survey:
        """The logs there are, but for those of brokers that are away when none keeps copies."""
        assert (stream, kind) == ("q", "events")
        reached = [name for name in self.rows if self.copies > 1 or name.broker not in self.away]
        logs = [LogInfo(name, self.first.get(name, 0), self.next(name), 0, 0, 0, ("x",)) for name in reached]
        return Survey(logs, self.away, self.copies, self.stored)

    def log_at(self, name: LogName, time: int) -> int:
        """The first position at or after a time."""
        return next((row.first for row in self.rows[name] if row.time >= time), self.next(name))

    def read_log(self, name: LogName, position: int, events: int = 0, pattern: str = "", where: str = "") -> Chunk:
        """Whole rows from the one with this position on."""
        self.reads.append((name.partition, position, events, pattern, where))
        first = self.first.get(name, 0)
        position = max(position, first)
        rows = [row for row in self.rows.get(name, []) if row.first + row.count > position][: self.chunk_rows]
        after = rows[-1].first + rows[-1].count if rows else position
        return Chunk(rows, first, after, self.next(name))
