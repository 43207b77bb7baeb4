"""Faults of a cluster and its brokers.

    crash      a broker is killed or loses power, and starts again later in a new incarnation with its stored records
    pause      a broker is paused, for a moment or longer than it takes until it is declared dead
    leave      a broker stops in order, and starts again later, or never
    join       a new broker joins
    link       a link between two brokers breaks
    partition  one or several brokers are cut off from the others, in both directions or in one
    cut        a client's connection breaks
    disaster   several brokers die at once, perhaps all. Nothing is promised for what they held; the cluster must
               recover
    slow       clients with little credit that give more of it late, and brokers with small outboxes

No more brokers are in trouble at a time than the cluster promises to survive. A broker counts as in trouble for a while
longer, until its neighbours have restored what it held. Every run draws its own rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from ..engine import ClusterWorld, Server
from ..limits import APART_SECONDS, LOST_WITH_STUCK_SECONDS, REPAIR_SECONDS
from ..workloads import ClusterHistory
from .nemesis import NEVER, Nemesis

__all__ = ["CLUSTER_FAULTS", "ClusterFaults", "ClusterNemesis"]

CLUSTER_FAULTS = ("crash", "pause", "partition", "join", "leave", "link", "cut", "disaster", "slow")


@dataclass(frozen=True, slots=True)
class ClusterFaults:
    """Mean seconds between faults of each kind; infinity means never."""

    crash: float = NEVER
    pause: float = NEVER
    partition: float = NEVER
    join: float = NEVER
    leave: float = NEVER
    link: float = NEVER
    cut: float = NEVER
    disaster: float = NEVER
    slow: float = NEVER
    """Not a rate: the share of slow clients, if it is finite."""
    down_seconds_max: float = 5.0
    pause_seconds_max: float = 5.0
    silent_probability: float = 0.5
    together: int = 1
    """How many brokers may be in trouble at a time."""

    @classmethod
    def drawn(cls, random: Random, kinds: Sequence[str], together_max: int) -> ClusterFaults:
        """The rates of one run, for these kinds of faults."""
        rates = {
            "crash": random.choice((3.0, 8.0, 20.0)),
            "pause": random.choice((3.0, 8.0, 20.0)),
            "partition": random.choice((8.0, 20.0)),
            "join": random.choice((5.0, 15.0)),
            "leave": random.choice((5.0, 15.0)),
            "link": random.choice((0.5, 2.0, 8.0)),
            "cut": random.choice((1.0, 5.0)),
            "disaster": random.choice((10.0, 30.0)),
            "slow": random.choice((NEVER, 0.3, 1.0)),
        }
        down = random.choice((0.5, 3.0, 15.0))
        still = random.choice((0.5, 3.0, 15.0))
        silent = random.choice((0.0, 0.5, 1.0))
        together = random.randint(1, max(1, together_max))
        wanted = {kind: seconds for kind, seconds in rates.items() if kind in kinds}
        return cls(
            **wanted, down_seconds_max=down, pause_seconds_max=still, silent_probability=silent, together=together
        )

    def __str__(self) -> str:
        rates = {kind: getattr(self, kind) for kind in CLUSTER_FAULTS if getattr(self, kind) < NEVER}
        kinds = [f"{kind} every {rate:g} s" if kind != "slow" else f"{rate:g} slow" for kind, rate in rates.items()]
        spans = f"down up to {self.down_seconds_max:g} s, still up to {self.pause_seconds_max:g} s"
        return (
            f"{', '.join(kinds) or 'no faults'}; {spans}, {self.silent_probability:g} silent, {self.together} at once"
        )


class ClusterNemesis(Nemesis):
    """Strikes brokers, their links and clients' connections, not more of them at a time than the cluster survives."""

    def __init__(self, world: ClusterWorld, history: ClusterHistory, options: ClusterFaults) -> None:
        super().__init__(world)
        self._world = world
        self._history = history
        self._options = options
        self._troubled: dict[str, float] = {}
        """Broker -> until when it counts as in trouble; infinity while it is."""
        self._gone: dict[str, None] = {}
        self._apart_since = 0.0
        self._apart: tuple[Server, ...] = ()
        self._joins_left = 3
        actions = {
            "crash": self._crash,
            "pause": self._pause,
            "partition": self._partition,
            "join": self._join,
            "leave": self._leave,
            "link": lambda: world.peers.cut_any(self.random),
            "cut": self._cut,
            "disaster": self._disaster,
        }
        for kind, action in actions.items():
            self.every(getattr(options, kind), kind, action)

    def stop(self) -> None:
        """Stop the faults: partitions heal, paused brokers resume, and dead ones start again."""
        super().stop()
        self._heal()
        for server in self._world.servers.values():
            if server.host is not None:
                server.host.resume()
            elif server.name not in self._gone:
                server.start()

    def may_strike(self) -> bool:
        """Always. Notes in the history that a fault happened."""
        self._history.incidents.any = True
        return True

    def _victim(self) -> Server | None:
        """A random broker that may get into trouble now, or None."""
        now = self._world.now
        for name in [name for name, until in self._troubled.items() if until <= now]:
            del self._troubled[name]
        well = [server for server in self._world.serving() if server.name not in self._troubled]
        if len(self._troubled) >= self._options.together or len(well) < 2:
            return None
        return self.random.choice(well)

    def _in_trouble(self, server: Server) -> None:
        self._troubled[server.name] = NEVER

    def _well_again(self, server: Server) -> None:
        self._troubled[server.name] = self._world.now + REPAIR_SECONDS

    def _crash(self) -> bool:
        server = self._victim()
        if server is None or server.host is None:
            return False
        self._in_trouble(server)
        self._history.died(server.host)
        server.crash(self.random.random() < self._options.silent_probability)
        self._world.after(self.random.uniform(0.1, self._options.down_seconds_max), lambda: self._start(server))
        return True

    def _disaster(self) -> bool:
        random, living = self.random, [one for one in self._world.living() if not one.leaving]
        if self._history.incidents.is_apart(self._world.now) or len(living) < 2:
            return False
        struck = random.sample(living, random.randint(2, len(living)))
        for server in struck:
            assert server.host is not None
            self._history.died(server.host)
            self._in_trouble(server)
            server.crash(random.random() < self._options.silent_probability)
            self._world.after(random.uniform(0.1, self._options.down_seconds_max), partial(self._start, server))
        since, until = self._world.now, self._world.now + self._options.down_seconds_max + APART_SECONDS
        self._history.incidents.apart(since - LOST_WITH_STUCK_SECONDS, until)
        return True

    def _start(self, server: Server) -> None:
        if server.host is None:
            server.start()
        self._well_again(server)

    def _pause(self) -> bool:
        server = self._victim()
        if server is None or server.host is None:
            return False
        self._in_trouble(server)
        host = server.host
        host.pause()

        def go_on() -> None:
            host.resume()
            self._well_again(server)

        self._world.after(self.random.uniform(0.1, self._options.pause_seconds_max), go_on)
        return True

    def _leave(self) -> bool:
        server = self._victim()
        if server is None or server.host is None:
            return False
        self._in_trouble(server)
        self._history.left(server.host)
        server.leave()
        living = len(self._world.serving())
        if living > self._world.options.replicas + 1 and self.random.random() < 0.3:
            self._gone[server.name] = None
            self._well_again(server)
        else:
            self._world.after(self.random.uniform(2.0, 5.0), lambda: self._start(server))
        return True

    def _join(self) -> bool:
        first = list(self._world.servers.values())[: self._world.options.seeds]
        if not self._joins_left or not any(server.serves for server in first):
            return False  # it would reach nobody, and begin a cluster of its own
        self._joins_left -= 1
        self._world.add().start()
        return True

    def _cut(self) -> bool:
        connection = self._world.clients.any_connection(self.random)
        if connection is not None:
            connection.cut()
        return connection is not None

    def _partition(self) -> bool:
        if self._apart or self._victim() is None:
            return False
        random, servers = self.random, list(self._world.servers.values())
        count = random.choice((1, random.randint(1, max(1, len(servers) // 2))))
        self._apart = tuple(random.sample(servers, count))
        self._apart_since = self._world.now
        self._history.incidents.parted()
        ways = random.choice(((True, True), (True, True), (True, False), (False, True)))
        for one in self._apart:
            self._in_trouble(one)
            for other in servers:
                if other not in self._apart:
                    if ways[0]:
                        self._world.peers.block(one.name, other.name)
                    if ways[1]:
                        self._world.peers.block(other.name, one.name)
        self._world.after(random.uniform(0.5, 12.0), self._heal)
        return True

    def _heal(self) -> None:
        apart, self._apart = self._apart, ()
        if apart:
            self._world.peers.heal()
            self._history.incidents.apart(self._apart_since, self._world.now + APART_SECONDS)
        for server in apart:
            self._well_again(server)
