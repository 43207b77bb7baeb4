"""P3: positions are dense, given out once and never rewritten; copies of one log agree byte for byte.

A position that was on two disks belongs to its bytes for ever, whatever is harmed or put back afterwards. What only its
owner's disk had was not acknowledged and could not be read, so when that disk is lost nobody knows of it: a disk with a
backup on it goes on where the backup ends. (It may not when somebody has more: that is the epoch's work.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.protocol.data import LogName, Row

from .cluster_world import Server
from .log_checkers import LogChecker
from .log_store import Entry

__all__ = ["PositionsStand"]


@dataclass(slots=True)
class _Known:
    """What was at a position, since when, and whose disks ever had it."""

    row: bytes
    since: float
    holders: dict[str, None] = field(default_factory=dict)


class PositionsStand(LogChecker):
    """See the head of this file."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]  # those of LogChecker
        self._rows: dict[tuple[LogName, int], _Known] = {}
        self.compared = 0

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """It is what it was anywhere else, and begins where the one before it ends."""
        known = self._rows.get((log, entry.first))
        if known is None or self._is_gone(log, known):
            known = self._rows[log, entry.first] = _Known(entry.row, self.world.now)
        known.holders[server.name] = None
        self.compared += known.row is not entry.row
        if known.row != entry.row:
            self.fail(f"{server.name} has another row at {log} {entry.first} than some disk had before")
        if (row.first, row.count) != (entry.first, entry.count):
            self.fail(f"{server.name} has a row of {row.first} at {log} {entry.first}")
        entries = server.disk.content.logs[log].entries
        place = next(place for place, one in enumerate(entries) if one is entry)
        if place and entries[place - 1].next != entry.first:
            self.fail(f"{server.name}: {log} has a hole before {entry.first}")

    def _is_gone(self, log: LogName, known: _Known) -> bool:
        """Whether the only disk that ever had it was lost since then."""
        return list(known.holders) == [log.broker] and self.history.harmed.get(log.broker, -1.0) >= known.since
