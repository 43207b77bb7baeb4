"""The dumb twin of a log store: every row ever appended in one list a log, every answer by looking at all of them."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.effects import Append, CutLog, FindIds, FindSize, FindTime, KeepDurable, LogWrite
from headgate.broker.core.log_state import LogState, ProducerState
from headgate.protocol.data import LogName

__all__ = ["StoreTwin"]


class StoreTwin:
    """Keeps every row in a list, and answers by looking at all of them."""

    def __init__(self) -> None:
        self.rows: dict[LogName, list[Append]] = {}
        self.ends: dict[LogName, int] = {}
        self.producers: dict[str, ProducerState] = {}
        self.safe: dict[LogName, int] = {}
        self.durables: dict[str, bytes] = {}

    def append(self, entries: Sequence[LogWrite]) -> None:
        """Without a disk there is nothing to fail."""
        for entry in entries:
            if isinstance(entry, CutLog):
                self._cut(entry)
                continue
            if isinstance(entry, KeepDurable):
                self.durables[entry.name] = entry.state
                continue
            if entry.producer is not None:
                self.producers[entry.producer.name] = entry.producer
            if isinstance(entry, Append):
                self.rows.setdefault(entry.log, []).append(entry)
                self.ends[entry.log] = entry.first + entry.count

    def _cut(self, cut: CutLog) -> None:
        at = max(cut.at, self.state(cut.log).first)
        self.rows[cut.log] = [row for row in self.rows[cut.log] if row.first < at]
        self.ends[cut.log] = at
        for row in cut.rows:
            self.rows.setdefault(row.log, []).append(row)
            self.ends[row.log] = row.first + row.count
        self.producers |= {state.name: state for state in cut.producers}

    def trim(self, log: LogName, below: int) -> LogState:
        self.rows[log] = [row for row in self.rows.get(log, []) if row.first + row.count > below]
        self.ends[log] = max(self.ends.get(log, below), below)
        return self.state(log)

    def state(self, log: LogName) -> LogState:
        """As the core is told. Times never go back in a log, whatever the rows say."""
        rows, end = self.rows[log], self.ends[log]
        safe = min(self.safe.get(log, 0), end)
        if not rows:
            return LogState(log, end, end, 0, 0, 0, safe)
        size = sum(len(row.row) for row in rows)
        return LogState(log, rows[0].first, end, size, rows[0].time, rows[-1].time, safe)

    def read(self, log: LogName, position: int, bytes_max: int) -> tuple[list[bytes], int]:
        found: list[bytes] = []
        after = position if self.rows.get(log) else max(position, self.ends.get(log, 0))
        for row in self.rows.get(log, []):
            if row.first + row.count <= position:
                continue
            if found and sum(map(len, found)) + len(row.row) > bytes_max:
                break
            found.append(row.row)
            after = row.first + row.count
            if sum(map(len, found)) >= bytes_max:
                break
        return found, after

    def find(self, question: FindTime | FindSize) -> int | None:
        if question.log not in self.rows:
            return None
        rows, end = self.rows[question.log], self.ends[question.log]
        if isinstance(question, FindTime):
            return min([row.first for row in rows if row.time >= question.time], default=end)
        fitting = [
            row.first
            for place, row in enumerate(rows)
            if sum(len(other.row) for other in rows[place:]) <= question.bytes
        ]
        return min(fitting, default=end)

    def ids(self, question: FindIds) -> list[bytes]:
        """All of them: who asks has to go on asking until there is nothing more."""
        every = [row for rows in self.rows.values() for row in rows if row.ids and row.producer is not None]
        named = [
            (row.producer.next, row.row) for row in every if row.producer and row.producer.name == question.producer
        ]
        return [row for end, row in sorted(named) if end > question.after]
