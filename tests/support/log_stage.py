"""A stage for the checkers of the log: servers with disks and no brokers, and hands that write rows to them."""

from __future__ import annotations

from typing import Any

from headgate.broker.simulator.checkers import Disks, LogChecker
from headgate.broker.simulator.engine import ClusterWorld, Entry, LogList, Server, Topology
from headgate.broker.simulator.workloads import LogHistory
from headgate.protocol.data import LogKind, LogName, Row, encode_row, make_batch

__all__ = ["LogStage"]

WALL = 1_700_000_000_000_000


class LogStage:
    """Three servers that never start."""

    def __init__(self) -> None:
        self.world = ClusterWorld(1, Topology(), (), lambda side, failure: None)
        self.servers = [self.world.add() for _ in range(3)]
        self.history = LogHistory()
        self.disks = Disks(self.world)

    def checker(self, kind: type[LogChecker]) -> Any:
        """One that hears of every row."""
        checker = kind(self.world, self.history, self.disks)
        self.disks.found.append(checker.found)
        return checker

    def name(self, owner: int = 0, epoch: int = 1, kind: LogKind = LogKind.EVENTS) -> LogName:
        """A log of that server."""
        return LogName(self.servers[owner].name, epoch, int(kind), "ledger")

    def write(self, server: int, first: int, *names: str, **more: Any) -> Entry:
        """A row on that server's disk, of the log of `owner`; `epoch` of the log, `producer`, `origin` may be given."""
        log = self.name(more.get("owner", 0), more.get("epoch", 1))
        batch = make_batch(["ledger/x"], {}, [name.encode() for name in names])
        row = Row(
            first,
            len(names),
            WALL,
            more.get("origin", "o"),
            first,
            b"",
            batch.topics,
            batch.lengths,
            {},
            False,
            batch.records,
        )
        row.producer, row.epoch = more.get("producer", "p"), 1
        entry = Entry(first, len(names), WALL, encode_row(row))
        self.disk(server).setdefault(log, LogList(log)).entries.append(entry)
        return entry

    def disk(self, server: int) -> dict[LogName, LogList]:
        """What a server has."""
        return self.servers[server].disk.content.logs

    def server(self, number: int) -> Server:
        """One of them."""
        return self.servers[number]
