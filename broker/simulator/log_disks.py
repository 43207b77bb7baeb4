"""What is on the disks of a simulated cluster: every row of every log, event by event, looked at as it comes.

The checkers of the log ask here; nothing of it is known to the brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.protocol.data import LogKind, LogName, Row, decode_record, decode_row, row_batch

from .cluster_world import ClusterWorld, Server
from .log_store import Entry, LogList

__all__ = ["Disks", "names_of"]


def names_of(row: Row) -> list[str]:
    """The names of the events in a row of events: their bodies."""
    return [decode_record(piece)[1].decode() for piece in row_batch(row).pieces()]


@dataclass(slots=True)
class _Seen:
    """How much of one log on one disk was looked at."""

    log: LogList
    entries: list[Entry]


class Disks:
    """See the head of this file. `found` hears of every row that is on a disk and was not before: whose, and where."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self.found: list[Callable[[Server, LogName, Entry, Row], None]] = []
        self.holders: dict[str, dict[tuple[str, LogName], None]] = {}
        """Event -> the brokers whose disks have it, and in which log."""
        self.had: dict[str, dict[str, None]] = {}
        """Event -> brokers whose disks ever had it, harmed or not."""
        self._seen: dict[tuple[str, LogName], _Seen] = {}
        self.rows = 0

    def look(self) -> None:
        """Take in what changed since the last time."""
        for server in self._world.servers.values():
            logs = server.disk.content.logs
            for key in [key for key in self._seen if key[0] == server.name]:
                seen = self._seen[key]
                log = logs.get(key[1])
                if log is not seen.log or not _goes_on(log, seen.entries):
                    self._forget(server, key)
            for name, log in logs.items():
                self._take_in(server, name, log)

    def _take_in(self, server: Server, name: LogName, log: LogList) -> None:
        seen = self._seen.setdefault((server.name, name), _Seen(log, []))
        for entry in log.entries[len(seen.entries) :]:
            seen.entries.append(entry)
            row = decode_row(entry.row)
            self.rows += 1
            if name.kind == LogKind.EVENTS:
                for event in names_of(row):
                    self.holders.setdefault(event, {})[server.name, name] = None
                    self.had.setdefault(event, {})[server.name] = None
            for hear in self.found:
                hear(server, name, entry, row)

    def _forget(self, server: Server, key: tuple[str, LogName]) -> None:
        """It is another disk, or lost some of it."""
        for entry in self._seen.pop(key).entries:
            if key[1].kind == LogKind.EVENTS:
                for event in names_of(decode_row(entry.row)):
                    self.holders.get(event, {}).pop(key, None)


def _goes_on(log: LogList | None, entries: list[Entry]) -> bool:
    return log is not None and len(log.entries) >= len(entries) and (not entries or log.entries[0] is entries[0])
