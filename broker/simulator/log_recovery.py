"""S1: who comes back has every row that its disk had said it has; or says loudly that something is missing.

A disk that was harmed in a way that nobody can see (a backup put back) is found out by its siblings, and its log goes
on under another epoch; nothing that was acknowledged is gone while one disk at a time is harmed.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Input, Opened, Stored
from headgate.protocol.data import LogName

from .log_checkers import LogChecker
from .world import Host

__all__ = ["ComesBackWhole"]


class ComesBackWhole(LogChecker):
    """See the head of this file."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]  # those of LogChecker
        self._said: dict[tuple[str, LogName], int] = {}
        self._epochs: dict[str, int] = {}
        self.openings = 0

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Every log goes on where it was said to be, and epochs never go back."""
        name = host.node.config.name
        if isinstance(happened, Stored):
            for log, held in host.node.log.logs.items():
                self._said[name, log] = held.next
        elif isinstance(happened, Opened):
            self.openings += 1
            ends = {state.name: state.next for state in happened.logs}
            if name not in self.history.harmed and not happened.damage:
                for (broker, log), end in self._said.items():
                    if broker == name and ends.get(log, 0) < end:
                        self.fail(f"{name} had {log} up to {end}, and came back with {ends.get(log, 0)}")
            if happened.epoch < self._epochs.get(name, 0) and name not in self.history.harmed:
                self.fail(f"{name} came back in epoch {happened.epoch}, after {self._epochs[name]}")
        self._epochs[name] = max(self._epochs.get(name, 0), host.node.log.epoch)

    def finish(self) -> None:
        """Whatever was acknowledged is on some disk."""
        self.disks.look()
        for event in self.history.acknowledged:
            if not self.disks.holders.get(event):
                self.fail(f"{event} was acknowledged, and no disk has it any more")
