"""Several Nodes with disks: a disk answers half a millisecond after it was asked, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from headgate.broker.core.effects import Effect, LogEffect
from headgate.broker.core.inputs import Input, WallClock
from headgate.protocol.data import LogKind, LogName, Row
from headgate.protocol.messages import Answer, Ask, Error, Mode, Puback
from tests.support.builders import make_publish, quote_batch
from tests.support.log_disk import EPOCH, Disk
from tests.support.node_cluster import Client, Host, NodeCluster

__all__ = ["LogCluster"]

DISK_SECONDS = 0.0005


class LogCluster(NodeCluster):
    """Stream `quotes` is stored everywhere. `slow`, `full` and `fails` are names of brokers whose disks are."""

    def __init__(self, brokers: int = 0, schema: Any = None, **config: Any) -> None:
        self.disks: dict[str, Disk] = {}
        self.slow: dict[str, None] = {}
        self.full: dict[str, None] = {}
        self.schema = schema or {"durability": "stored"}
        super().__init__(brokers, **config)

    def begin_life(self, host: Host) -> None:
        disk = self.disks.setdefault(host.name, Disk(host.name))
        self.feed(host, disk.opened())
        self.feed(host, WallClock(1e6))
        host.node.streams.declare("quotes", self.schema)

    def old_backup(self) -> Disk:
        """The disk of b0 between `a` and `b`, which are stored by it and by its follower."""
        client = self.connect("b0")
        self.store(client, "a")
        self.run(0.1)
        backup = self.disks["b0"].copy()
        self.store(client, "b")
        self.run(0.1)
        return backup

    def answer(self, name: str) -> None:
        """The disk does what it was asked, now."""
        disk, host = self.disks[name], self.hosts.get(name)
        if host is not None and disk.asked:
            self._tell(host, disk.refuse() if name in self.full else [])
            self._tell(host, disk.answer())

    def _tell(self, host: Host, said: Iterable[Input]) -> None:
        for happened in said:
            self.feed(host, happened)

    def _carry_out(self, host: Host, effect: Effect) -> None:
        if not isinstance(effect, get_args(LogEffect)):
            super()._carry_out(host, effect)
            return
        disk = self.disks[host.name]
        if not disk.asked:
            self.after(DISK_SECONDS, lambda: self._answer_unless_slow(host))
        disk.ask([effect])

    def _answer_unless_slow(self, host: Host) -> None:
        if host.alive and host.name not in self.slow:
            self.answer(host.name)

    # --- what tests say ----------------------------------------------------------------------------------------------

    def store(self, client: Client, *bodies: str, mode: Mode = Mode.STORED) -> None:
        """One batch."""
        client.sequence += 1
        client.send(make_publish(client.sequence, quote_batch(bodies=bodies), mode))

    def ask(self, client: Client, verb: str, **arguments: Any) -> Any:
        """A question, and its answer, or the ERROR."""
        client.take()
        client.send(Ask(77, verb, arguments))
        self.until(lambda: bool(client.of(Answer) or client.of(Error)), 20.0)
        found = [*client.of(Answer), *client.of(Error)][0]
        return found.value if isinstance(found, Answer) else found

    def acknowledged(self, client: Client) -> int:
        """The last PUBACK that came and was not taken."""
        return max([message.sequence for message in client.of(Puback)], default=0)

    def name(self, broker: str, kind: LogKind = LogKind.EVENTS, epoch: int = EPOCH) -> LogName:
        """A log of that broker."""
        return LogName(broker, epoch, int(kind), "quotes")

    def rows(self, follower: str, owner: str, kind: LogKind = LogKind.EVENTS, epoch: int = EPOCH) -> list[Row]:
        """What one broker's disk has of another's log."""
        return self.disks[follower].rows(self.name(owner, kind, epoch))

    def holders(self, owner: str, position: int = 0) -> list[str]:
        """Whose disks have this event of that broker's log."""
        wanted = self.name(owner)
        return [name for name, disk in self.disks.items() if wanted in disk.logs and disk.logs[wanted].next > position]
