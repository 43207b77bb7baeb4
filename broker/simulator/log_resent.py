"""P2: a resend never makes a second position that anybody can read.

In one log an event that has a stamp is there once, whatever was sent again. A row of another broker's log may have it
as well, on that broker's disk alone; it is never read, and taken back when brokers meet again. So whatever was readable
at any moment, in any log at any broker, is readable in one place only; and what was acknowledged is not appended again.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Input
from headgate.protocol.data import LogKind, LogName, Row, decode_row

from .cluster_world import Server
from .log_checkers import LogChecker
from .log_disks import names_of
from .log_store import Entry
from .world import Host

__all__ = ["OnlyOnce"]


class OnlyOnce(LogChecker):
    """See the head of this file."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]  # those of LogChecker
        self._places: dict[str, list[tuple[LogName, int]]] = {}
        self._readable: dict[str, tuple[LogName, int]] = {}
        self._read_to: dict[tuple[str, LogName], int] = {}
        self.moved = 0
        self.read = 0

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
                if log.broker not in self.history.harmed and self._stays(server, log, other, number):
                    self.fail(f"{name} is at {other} {number} and at {log} {position[1]}")
                if name in self.history.acknowledged and self.history.acknowledged[name] < entry.time / 1e6 - _OFFSET:
                    self.fail(f"{name} was acknowledged, at {other} {number}, and is at {log} {position[1]} as well")
                self.moved += other.broker != log.broker
            places.append(position)

    def _stays(self, server: Server, log: LogName, other: LogName, number: int) -> bool:
        """Whether that is still there, where this broker wrote it before: it may have moved, not doubled."""
        if other.broker != log.broker or server.name != log.broker:
            return other == log
        return other in server.disk.content.logs and server.disk.content.logs[other].next > number

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Whoever reads now reads nothing that is somewhere else as well."""
        node = host.node
        disk = self.world.servers[node.config.name].disk.content
        for name, held in node.log.logs.items():
            key = (node.config.name, name)
            if name.kind != LogKind.EVENTS or held.readable <= self._read_to.get(key, 0) or name not in disk.logs:
                continue
            for entry in disk.logs[name].entries:
                if self._read_to.get(key, 0) <= entry.first and entry.next <= held.readable:
                    self._reads(node.config.name, name, decode_row(entry.row))
            self._read_to[key] = held.readable

    def _reads(self, broker: str, log: LogName, row: Row) -> None:
        if not row.producer:
            return
        for place, name in enumerate(names_of(row)):
            self.read += 1
            position = (log, row.first + place)
            known = self._readable.setdefault(name, position)
            if known != position:
                self.fail(f"{name} can be read at {log} {position[1]} of {broker}, and at {known[0]} {known[1]}")


_OFFSET = 1_700_000_000.0
"""Of the wall clock of the simulated brokers."""
