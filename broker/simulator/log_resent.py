"""P2: a resend never makes a second position.

In the logs of one broker an event that has a stamp is there once, whatever was sent again. What was acknowledged before
is not appended again by any broker; what was not may be on the disk of one that was down when its producer moved.
"""

from __future__ import annotations

from protocol.log_rows import LogKind, LogName, Row

from .cluster_world import Server
from .log_checkers import LogChecker
from .log_disks import names_of
from .log_store import Entry

__all__ = ["OnlyOnce"]


class OnlyOnce(LogChecker):
    """See the head of this file."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]  # those of LogChecker
        self._places: dict[str, list[tuple[LogName, int]]] = {}
        self.moved = 0

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """Each of its events is where it was, or was nowhere before."""
        if log.kind != LogKind.EVENTS or not row.producer:
            return
        for place, name in enumerate(names_of(row)):
            position = (log, row.first + place)
            places = self._places.setdefault(name, [])
            if position in places:
                continue
            for other, number in places:
                if other.broker == log.broker and log.broker not in self.history.harmed:
                    self.fail(f"{name} is at {other} {number} and at {log} {position[1]}")
                if name in self.history.acknowledged and self.history.acknowledged[name] < entry.time / 1e6 - _OFFSET:
                    self.fail(f"{name} was acknowledged, at {other} {number}, and is at {log} {position[1]} as well")
                self.moved += 1
            places.append(position)


_OFFSET = 1_700_000_000.0
"""Of the wall clock of the simulated brokers."""
