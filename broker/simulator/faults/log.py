"""Faults of a cluster that keeps logs: brokers, links, producers' connections and disks.

    crash     a broker dies, perhaps in the middle of a transaction, and starts again with what its disk has synced
    pause     a broker is paused
    link      a link between two brokers breaks
    cut       a producer's connection breaks
    apart     one broker is cut off from the others for a while
    slow      a disk takes a hundred times as long as usual
    full      a disk takes no writes for a while
    failing   a write to a disk fails and its result is unknown: its broker stops, and its next incarnation finds the
              disk in order
    brim      a disk that is nearly full takes some writes and refuses others for a while
    follower  one disk at a time is full for long
    pair      two brokers do not reach each other for a while, and both reach all others
    join      a new broker joins, twice at most
    leave     a broker stops in order, and starts again
    harm      once: a disk is lost, its newest rows are lost, one row is damaged, or a backup takes its place

One broker at a time dies, is paused or is cut off. A disk is harmed while no broker is in trouble, and one disk in a
run: of two copies one may be lost. What is in NAMED_FAULTS happens only when it is named, so that older seeds keep
their course. No other fault happens until its copies are restored. A broker that never had
another broker beside it has the only copy, so its disk is not harmed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from ..engine import ClusterWorld, Server
from ..limits import CALM_AFTER_HARM_SECONDS, LEAVE_SECONDS
from ..workloads import LogHistory
from .nemesis import Nemesis

__all__ = ["LOG_FAULTS", "LogFaults", "LogNemesis", "NAMED_FAULTS"]

LOG_FAULTS = ("crash", "pause", "link", "cut", "apart", "slow", "full", "failing", "harm")
NAMED_FAULTS = ("brim", "follower", "pair", "join", "leave")
"""Faults that happen only when they are named."""

_JOINS_MAX = 2
_HARMS = ("all", "newest", "rot", "backup", "backup")
_BACKUP_SECONDS = 2.0
_HARMLESS_SECONDS = 4.0
"""Until there is something to lose, and a backup to put back."""


@dataclass(frozen=True, slots=True)
class LogFaults:
    """Mean seconds between faults of each kind; infinity means never."""

    rates: dict[str, float]
    down_seconds_max: float
    together: int

    @classmethod
    def drawn(cls, random: Random, kinds: tuple[str, ...]) -> LogFaults:
        """The rates of one run."""
        rates = {kind: random.choice((2.0, 5.0, 15.0)) for kind in LOG_FAULTS}
        rates["harm"] = random.choice((0.5, 2.0))
        rates |= dict.fromkeys(NAMED_FAULTS, 3.0)
        wanted = {kind: rate for kind, rate in rates.items() if kind in kinds}
        return cls(wanted, random.choice((0.3, 2.0, 6.0)), 1)

    def __str__(self) -> str:
        return ", ".join(f"{kind} every {rate:g} s" for kind, rate in self.rates.items()) or "no faults"


class LogNemesis(Nemesis):
    """Strikes brokers and disks, one at a time, and harms one disk while no broker is in trouble."""

    def __init__(self, world: ClusterWorld, history: LogHistory, faults: LogFaults, look: Callable[[], None]) -> None:
        super().__init__(world)
        self._world = world
        self._history = history
        self._faults = faults
        self._look = look
        self._busy_until = self._calm_until = 0.0
        self._harmed = False
        self._joins_left = _JOINS_MAX
        self._backups: dict[str, Any] = {}
        actions: dict[str, Callable[[], bool]] = {
            "crash": self._crash,
            "pause": self._pause,
            "link": lambda: world.peers.cut_any(self.random),
            "cut": self._cut,
            "apart": self._apart,
            "slow": self._slow,
            "full": self._full,
            "failing": self._failing,
            "brim": self._brim,
            "follower": self._follower,
            "pair": self._pair,
            "join": self._join,
            "leave": self._leave,
            "harm": self._harm,
        }
        for kind, rate in faults.rates.items():
            self.every(rate, kind, actions[kind])
        self._began = world.now
        if "harm" in faults.rates:
            for server in world.servers.values():
                world.after(world.random.uniform(1.0, _HARMLESS_SECONDS), partial(self._back_up, server))

    def stop(self) -> None:
        """Stop the faults, and end those that last."""
        super().stop()
        self._world.peers.heal()
        for server in self._world.servers.values():
            self._mend(server)
            if server.host is not None:
                server.host.resume()
            else:
                server.start()

    def may_strike(self) -> bool:
        """Not while the copies of a harmed disk are restored."""
        return self._world.now >= self._calm_until

    def _victim(self, seconds: float) -> Server | None:
        """A broker that may get into trouble now, and is for so long; or None."""
        world = self._world
        serving = world.serving()
        if world.now < self._busy_until or len(serving) < len(world.servers):
            return None
        self._busy_until = world.now + seconds + self.random.uniform(0.2, 3.0)
        return world.random.choice(serving)

    def _down(self) -> float:
        return self.random.uniform(0.1, self._faults.down_seconds_max)

    def _crash(self) -> bool:
        seconds = self._down()
        server = self._victim(seconds)
        if server is None:
            return False
        server.crash(self.random.random() < 0.5)
        self._world.after(seconds, lambda: self._start(server))
        return True

    def _start(self, server: Server) -> None:
        if server.host is None and self.active:
            server.start()

    def _pause(self) -> bool:
        seconds = self._down()
        server = self._victim(seconds)
        if server is None or server.host is None:
            return False
        host = server.host
        host.pause()
        self._world.after(seconds, host.resume)
        return True

    def _cut(self) -> bool:
        connection = self._world.clients.any_connection(self.random)
        if connection is not None:
            connection.cut()
        return connection is not None

    def _apart(self) -> bool:
        seconds = self.random.uniform(0.5, 8.0)
        server = self._victim(seconds)
        if server is None:
            return False
        self._world.peers.isolate(server.name, self._world.servers)
        self._world.after(seconds, self._world.peers.heal)
        return True

    def _slow(self) -> bool:
        server = self.random.choice(list(self._world.servers.values()))
        log = server.log
        if log is None:
            return False
        log.slowness = self.random.choice((10.0, 100.0, 300.0))
        self._world.after(self.random.uniform(0.5, 6.0), lambda: setattr(log, "slowness", 1.0))
        return True

    def _full(self) -> bool:
        server = self.random.choice(list(self._world.servers.values()))
        server.disk.full = True
        self._world.after(self.random.uniform(0.1, 6.0), lambda: self._mend(server))
        return True

    def _brim(self) -> bool:
        server = self.random.choice(list(self._world.servers.values()))
        server.disk.brim = Random(self.random.getrandbits(32))
        self._world.after(self.random.uniform(0.5, 6.0), lambda: self._mend(server))
        return True

    def _follower(self) -> bool:
        servers = list(self._world.servers.values())
        if any(server.disk.full for server in servers):
            return False
        server = self.random.choice(servers)
        server.disk.full = True
        self._world.after(self.random.uniform(6.0, 12.0), lambda: self._mend(server))
        return True

    def _pair(self) -> bool:
        seconds = self.random.uniform(0.5, 8.0)
        server = self._victim(seconds)
        others = [name for name in self._world.servers if server is not None and name != server.name]
        if server is None or not others:
            return False
        self._world.peers.isolate(server.name, [self.random.choice(others)])
        self._world.after(seconds, self._world.peers.heal)
        return True

    def _join(self) -> bool:
        world = self._world
        if not self._joins_left or len(world.serving()) < len(world.servers):
            return False  # it may reach nobody, and begin a cluster of its own
        self._joins_left -= 1
        world.add().start()
        return True

    def _leave(self) -> bool:
        seconds = LEAVE_SECONDS + self._down()
        server = self._victim(seconds)
        if server is None:
            return False
        server.leave()

        def come_back() -> None:
            if server.host is None:  # also when faults have ended meanwhile
                server.start()

        self._world.after(seconds, come_back)
        return True

    def _failing(self) -> bool:
        seconds = self._down()
        server = self._victim(seconds + 1.0)
        if server is None:
            return False
        server.disk.fails = True

        def come_back() -> None:
            self._mend(server)
            self._start(server)

        self._world.after(seconds + 1.0, come_back)
        return True

    def _mend(self, server: Server) -> None:
        server.disk.full = server.disk.fails = False
        server.disk.brim = None

    # --- harm --------------------------------------------------------------------------------------------------------

    def _back_up(self, server: Server) -> None:
        self._backups[server.name] = server.disk.copy()
        if self.active and not self._harmed:
            self._world.after(self.random.uniform(1.0, 4.0) * _BACKUP_SECONDS, lambda: self._back_up(server))

    def _harm(self) -> bool:
        """Once, and only when nobody is in trouble: who comes back with an old disk is told so by its followers."""
        random, nodes = self.random, self._world.nodes()
        early = self._world.now < self._began + _HARMLESS_SECONDS
        if len(self._world.servers) < 2 or self._harmed or early or not all(node.log.recovered for node in nodes):
            return False
        if len(nodes) < len(self._world.servers) or any(len(node.cluster.linked()) < len(nodes) - 1 for node in nodes):
            return False
        how = random.choice(_HARMS)
        seconds = self._down()
        server = self._victim(seconds + CALM_AFTER_HARM_SECONDS)
        backup = None if server is None else self._backups.get(server.name)
        if server is None or backup is None:
            return False
        self._look()  # the history remembers it
        self._harmed = True
        self._calm_until = self._busy_until
        self._history.harmed[server.name] = self._world.now
        server.crash()
        if how == "all":
            server.disk.lose_all()
        elif how == "rot":
            server.disk.rot(random)
        elif how == "newest":
            server.disk.lose_newest(backup)
        else:
            server.disk.restore(backup)
        self.done[f"harm: {how}"] += 1
        self._world.after(seconds, lambda: self._start(server))
        return True
