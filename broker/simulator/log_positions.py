"""P3: positions are dense, given out once and never rewritten; copies of one log agree byte for byte.

A position that was on any disk belongs to its bytes for ever, whatever is harmed or put back afterwards.
"""

from __future__ import annotations

from protocol.log_rows import LogName, Row

from .cluster_world import Server
from .log_checkers import LogChecker
from .log_store import Entry

__all__ = ["PositionsStand"]


class PositionsStand(LogChecker):
    """See the head of this file."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]  # those of LogChecker
        self._rows: dict[tuple[LogName, int], bytes] = {}
        self.compared = 0

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """It is what it was anywhere else, and begins where the one before it ends."""
        known = self._rows.setdefault((log, entry.first), entry.row)
        self.compared += known is not entry.row
        if known != entry.row:
            self.fail(f"{server.name} has another row at {log} {entry.first} than some disk had before")
        if (row.first, row.count) != (entry.first, entry.count):
            self.fail(f"{server.name} has a row of {row.first} at {log} {entry.first}")
        entries = server.disk.content.logs[log].entries
        place = next(place for place, one in enumerate(entries) if one is entry)
        if place and entries[place - 1].next != entry.first:
            self.fail(f"{server.name}: {log} has a hole before {entry.first}")
