"""The base of what checks a run of the log: one promise each, told of every step, every row on a disk and every end."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Input
from headgate.protocol.data import LogName, Row

from .checkers import Violation
from .cluster_world import ClusterWorld, Server
from .log_disks import Disks
from .log_history import LogHistory
from .log_store import Entry
from .world import Host

__all__ = ["LogChecker"]


class LogChecker:
    """Hooks that do nothing."""

    def __init__(self, world: ClusterWorld, history: LogHistory, disks: Disks) -> None:
        self.world = world
        self.history = history
        self.disks = disks

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """One step of a broker, before its effects are carried out."""

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """A row that was not on that disk before."""

    def finish(self) -> None:
        """All is whole again, and nothing is under way."""

    def fail(self, text: str) -> None:
        """Raises Violation."""
        raise Violation(type(self).__name__, f"at {self.world.now:.4f}: {text}")
