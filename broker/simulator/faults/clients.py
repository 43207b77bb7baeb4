"""Faults of clients and their connections.

    cuts     connections break, and each side finds out after a delay; some clients stay away past their grace
    pauses   clients stop reading for a while, so that pipes fill and the Host gets LinkPaused
    slow     clients with little credit that give more of it late, and brokers with small outboxes

Every run draws its own rates: runs with different rates find more than runs with one average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ..engine import Network, World
from .nemesis import Nemesis

__all__ = ["FAULTS", "ClientFaults", "ClientNemesis"]

FAULTS = ("cuts", "pauses", "slow")


@dataclass(frozen=True, slots=True)
class ClientFaults:
    """What may go wrong in one run; an interval of infinity means never."""

    cut_interval_seconds: float = float("inf")
    pause_interval_seconds: float = float("inf")
    pause_seconds_max: float = 3.0
    slow_probability: float = 0.0

    @classmethod
    def drawn(cls, random: Random, kinds: Sequence[str]) -> ClientFaults:
        """The rates of one run, for these kinds of faults."""
        cut = random.choice((0.2, 1.0, 3.0))
        pause = random.choice((0.1, 0.5, 2.0))
        longest = random.choice((0.5, 3.0, 15.0))
        slow = random.choice((0.3, 1.0))
        return cls(
            cut if "cuts" in kinds else float("inf"),
            pause if "pauses" in kinds else float("inf"),
            longest,
            slow if "slow" in kinds else 0.0,
        )


class ClientNemesis(Nemesis):
    """Breaks connections, and has clients stop reading."""

    def __init__(self, world: World, network: Network, options: ClientFaults) -> None:
        super().__init__(world)
        self._world = world
        self._network = network
        self._options = options
        self.every(options.cut_interval_seconds, "cuts", self._cut)
        self.every(options.pause_interval_seconds, "pauses", self._pause)

    def stop(self) -> None:
        """Stop the faults; paused clients read again."""
        super().stop()
        for connection in list(self._network.connections.values()):
            connection.client_reads_again()

    def _cut(self) -> bool:
        connection = self._network.any_connection(self.random)
        if connection is not None:
            connection.cut()
        return connection is not None

    def _pause(self) -> bool:
        connection = self._network.any_connection(self.random)
        if connection is not None:
            connection.client_stops_reading()
            seconds = self.random.uniform(0.0, self._options.pause_seconds_max)
            self._world.after(seconds, connection.client_reads_again)
        return connection is not None
