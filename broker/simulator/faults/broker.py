"""Faults: what goes wrong, how often, drawn from the seed; and the one who makes it happen.

    cuts     connections break; both sides find out in their own time; sometimes the client stays away past its grace
    pauses   clients stop reading for a while, so that pipes fill and the Host hears LinkPaused
    slow     clients with little credit that give more of it late, and brokers with small outboxes

Every run draws its own rates: a swarm finds more than one average would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from ..engine import Network, World

__all__ = ["FAULTS", "FaultOptions", "Nemesis", "parse_faults"]

FAULTS = ("cuts", "pauses", "slow")


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """What may go wrong in one run; an interval of infinity means never."""

    cut_interval_seconds: float = float("inf")
    pause_interval_seconds: float = float("inf")
    pause_seconds_max: float = 3.0
    slow_probability: float = 0.0

    @classmethod
    def drawn(cls, random: Random, kinds: Sequence[str]) -> FaultOptions:
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


def parse_faults(text: str) -> tuple[str, ...]:
    """`cuts,pauses` -> the kinds; `none` -> (). Raises ValueError."""
    kinds = tuple(kind for kind in text.split(",") if kind and kind != "none")
    for kind in kinds:
        if kind not in FAULTS:
            raise ValueError(f"no such fault: {kind}; there are {', '.join(FAULTS)}, and none")
    return kinds


class Nemesis:
    """Makes faults happen until it is told to stop; then everything heals."""

    def __init__(self, world: World, network: Network, options: FaultOptions) -> None:
        self._world = world
        self._network = network
        self._options = options
        self._active = True
        self.cuts = 0
        self.pauses = 0
        self._later(options.cut_interval_seconds, self._cut)
        self._later(options.pause_interval_seconds, self._pause)

    def stop(self) -> None:
        """No more faults, and whoever was paused reads again."""
        self._active = False
        for connection in list(self._network.connections.values()):
            connection.client_reads_again()

    def _later(self, interval_seconds: float, action: Callable[[], None]) -> None:
        if interval_seconds < float("inf"):
            seconds = self._world.random.expovariate(1.0 / interval_seconds)
            self._world.after(seconds, action)

    def _cut(self) -> None:
        if not self._active:
            return
        connections = list(self._network.connections.values())
        if connections:
            self.cuts += 1
            self._world.random.choice(connections).cut()
        self._later(self._options.cut_interval_seconds, self._cut)

    def _pause(self) -> None:
        if not self._active:
            return
        connections = list(self._network.connections.values())
        if connections:
            self.pauses += 1
            connection = self._world.random.choice(connections)
            connection.client_stops_reading()
            self._world.after(
                self._world.random.uniform(0.0, self._options.pause_seconds_max), connection.client_reads_again
            )
        self._later(self._options.pause_interval_seconds, self._pause)
