"""The cluster's world: brokers that start, crash, pause, join and leave, and the links between them.

Server          one broker over all its incarnations: name, address, records and log, and its Host while it runs
ClusterWorld    all of them, on one heap, with one network for clients and one for brokers
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.inputs import Drain, Loaded, Reachable, WallClock
from headgate.broker.core.limits import LOG_COPIES_DEFAULT
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.errors import HeadgateError

from ..limits import LEAVE_SECONDS
from .disk import Disk, ListStore, LogHost
from .network import Network, NetworkOptions
from .peer_network import PeerNetwork, PeerNetworkOptions
from .world import WALL_CLOCK_OFFSET_SECONDS, Host, Watcher, World

__all__ = ["Topology", "ClusterWorld", "Server"]


@dataclass(frozen=True, slots=True)
class Topology:
    """Configuration that all brokers of a world share, and the options of their links."""

    replicas: int = 2
    seeds: int = 2
    """How many of the first brokers are the seeds of every broker."""
    grace_seconds: float = 10.0
    checked: bool = True
    outbox_bytes: int = 16 * 1024 * 1024
    copies: int = LOG_COPIES_DEFAULT
    """On how many disks an event of a stored stream is before it is acknowledged."""
    safeguards: frozenset[Safeguard] = SAFEGUARDS
    peers: PeerNetworkOptions = field(default_factory=PeerNetworkOptions)


class Server:
    """One broker: its address and disk over all its incarnations, and its Host while it runs."""

    def __init__(self, world: ClusterWorld, name: str, seeds: Sequence[str]) -> None:
        self.world = world
        self.name = name
        self.address = f"{name}:7472"
        self.seeds = tuple(seeds)
        self.life = 0
        self.host: Host | None = None
        self.leaving = False
        self.disk = Disk()
        self.log: LogHost | None = None
        self._records: dict[str, object] = {}

    @property
    def serves(self) -> bool:
        """Whether this broker answers a client that connects now."""
        return self.host is not None and not self.host.paused and not self.leaving

    def start(self) -> None:
        """Start the broker, with the records that earlier incarnations stored."""
        assert self.host is None
        world, self.leaving = self.world, False
        self.life += 1
        config = NodeConfig(
            name=self.name,
            incarnation=self.life,
            seeds=self.seeds,
            replicas=world.options.replicas,
            grace_seconds=world.options.grace_seconds,
            outbox_bytes=world.options.outbox_bytes,
            outbox_bytes_total=world.options.outbox_bytes * 4,
            safeguards=world.options.safeguards,
            log_copies=world.options.copies,
        )
        host = self.host = Host(world, config, world.watchers)
        world.prepare(host.node)
        host.dial = lambda address: world.peers.dial(host, address)
        host.records.update(self._records)
        self._records = host.records
        world.peers.hosts[self.address] = host
        self._begin_log(host)
        host.feed(WallClock(WALL_CLOCK_OFFSET_SECONDS))
        host.feed(Loaded(dict(host.records)))
        host.feed(Reachable(self.address, f"{self.name}:7470"))

    def crash(self, silent: bool = False) -> None:
        """Crash. With `silent` the network tells no other broker, as when a machine loses its power."""
        if self.host is not None:
            host, self.host = self.host, None
            if self.log is not None:
                self.log.crash()
                self.log = None
            self.world.peers.hosts.pop(self.address, None)
            self.world.peers.silent_deaths = silent
            host.crash()
            self.world.peers.silent_deaths = False

    def _begin_log(self, host: Host) -> None:
        """Open the store on the disk, and make its writer. It draws from a random stream of its own."""
        world = self.world
        store = ListStore(self.disk, self.name, lambda: WALL_CLOCK_OFFSET_SECONDS + world.now)
        random = Random(f"{world.seed}/{self.name}/{self.life}/disk")
        self.log = LogHost(store, host.feed, world.after, random, lambda: host.paused)
        world.prepare_log(self.log)
        host.ask_store = self.log.ask
        host.halt = lambda reason: world.after(0.0, lambda: self.crash() if self.host is host else None)
        host.feed(store.open())

    def leave(self) -> None:
        """Stop the broker in order, as SIGTERM does."""
        host = self.host
        if host is None or host.paused or self.leaving:
            return
        self.leaving = True
        host.feed(Drain())
        self.world.after(LEAVE_SECONDS, lambda: self.crash() if self.host is host else None)


class ClusterWorld(World):
    """All brokers of a cluster on one heap, with one network for clients and one for brokers."""

    def __init__(
        self,
        seed: int,
        options: Topology,
        watchers: Sequence[Watcher],
        failed: Callable[[str, HeadgateError], None],
    ) -> None:
        super().__init__(seed)
        self.seed = seed
        self.options = options
        self.watchers = watchers
        self.servers: dict[str, Server] = {}
        self.prepare: Callable[[Node], None] = lambda node: None
        self.prepare_log: Callable[[LogHost], None] = lambda log: None
        self.clients = Network(self, NetworkOptions(checked=options.checked), failed)
        self.peers = PeerNetwork(self, options.peers, self.clients.next_link, failed)

    def add(self) -> Server:
        """Add one broker, which is not started yet."""
        name = f"broker-{len(self.servers) + 1}"
        first = [f"broker-{number + 1}:7472" for number in range(self.options.seeds)]
        server = self.servers[name] = Server(self, name, first)
        return server

    def living(self) -> list[Server]:
        """The brokers whose process exists, paused or not."""
        return [server for server in self.servers.values() if server.host is not None]

    def nodes(self) -> list[Node]:
        """The Nodes of the living brokers."""
        return [server.host.node for server in self.servers.values() if server.host is not None]

    def serving(self) -> list[Server]:
        """The brokers that answer clients now."""
        return [server for server in self.servers.values() if server.serves]
