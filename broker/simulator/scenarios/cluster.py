"""A cluster of brokers that come and go, with clients that are connected to any of them.

start     brokers start, and clients connect to any of them
safety    clients act, the nemesis strikes; checkers look at every step
quiet     all faults end, every broker runs and clients do not act: everything is answered
probe     every client publishes, and gets exactly what it subscribed to
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Input
from headgate.broker.core.keyspace import ROUTINGS
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Suback

from ..checkers import CLUSTER_CHECKERS, STATE_CHECKERS, BoundKept, Checker, RingKept
from ..engine import ClusterWorld, Host, PeerNetworkOptions, Topology, Violation
from ..faults import CLUSTER_FAULTS, ClusterFaults, ClusterNemesis, kinds_of
from ..limits import CLIENTS_MAX, LOOK_SECONDS, NODES_MAX, PROBE_SECONDS, SETTLE_SECONDS, START_SECONDS
from ..workloads import ClusterClient, ClusterHistory, DeltaWorkload, Traits, Workload
from .broker import BrokerScenario
from .scenario import Options, Scenario, Write, option, within

__all__ = ["CLUSTER_ABLATIONS", "ClusterOptions", "ClusterScenario"]

CLUSTER_ABLATIONS = (
    Safeguard.COPIES_BEFORE_CONFIRM,
    Safeguard.LAPSE,
    Safeguard.LEASES,
    Safeguard.WAIT_AFTER_GAINING,
    Safeguard.COLD_START_AGREED,
    Safeguard.CANDIDATES_CHECKED,
    Safeguard.LISTS_BY_LEASE,
    Safeguard.LOCAL_FILTER,
    Safeguard.LOSSES_TOLD,
    Safeguard.EDGES_BEFORE_SUBACK,
    Safeguard.PLACED_BEFORE_SUBACK,
    Safeguard.USE_KNOWN_BEFORE_SUBACK,
    Safeguard.WAIT_WITHOUT_KEYS,
    Safeguard.WITHDRAWN_AT_ONCE,
    Safeguard.AMENDED_DECIDED_ONCE,
    Safeguard.AMENDED_FORMER_RESTS,
    Safeguard.AMENDED_ANSWER_BEHIND,
    Safeguard.FORGOTTEN_AFTER_DROP,
    Safeguard.FORGOTTEN_AFTER_LOSS,
    Safeguard.OWN_REFERENCE,
    Safeguard.DELTA_AT_ONE_KEY,
    Safeguard.RING_NOTIFY,
    Safeguard.RING_REPEAT_LAST,
)
"""What can be switched off."""

_PROBES = 3
_PLACEMENTS = ("anchored", "counting")
"""What a stream's setting may be, the default first."""


@dataclass(frozen=True, slots=True)
class ClusterOptions(Options):
    """Options of a run with a cluster: `--nodes`."""

    about = "Run a cluster in virtual time under faults, and check every promise it makes."

    nodes: int = option(3, "brokers at the start", within(1, NODES_MAX))
    seconds: float = option(20.0, "virtual seconds of the safety phase (20)", within(0.001, 1e9, float))
    clients: int = option(6, "how many (6)", within(1, CLIENTS_MAX))
    faults: tuple[str, ...] = option(
        (), f"comma-separated of {', '.join(CLUSTER_FAULTS)}; or none, or all (all)", kinds_of(CLUSTER_FAULTS),
        unsaid=CLUSTER_FAULTS,
    )  # fmt: skip
    ablation: str = option("", "switch off one safeguard", flag="--ablate", choices=CLUSTER_ABLATIONS)
    placement: str = option(
        _PLACEMENTS[0],
        "how subscriptions are put where events pass: the setting of every stream (anchored)",
        choices=_PLACEMENTS,
    )
    delta: bool = option(False, "subscriptions with DELTA, and prices that walk")
    structure: str = option(
        "", "events have documents, some subscriptions XPATH, and streams this routing on the cube", choices=ROUTINGS
    )
    amend: bool = option(False, "clients amend their subscriptions while they go on")
    turns: bool = option(False, "turns of brokers' loops are long, and bring reads of several clients")

    def scenario(self, write: Write | None) -> ClusterScenario:
        """A scenario with brokers and clients."""
        return ClusterScenario(self, write)


class ClusterScenario(Scenario):
    """A scenario with brokers that may fail, and checkers of the state of all of them."""

    world: ClusterWorld

    endings = (*BrokerScenario.endings, ErrorCode.GOODBYE, ErrorCode.DUPLICATE)

    def __init__(self, options: ClusterOptions, write: Write | None = None) -> None:
        super().__init__(options, write)
        self.options = options
        self.history = ClusterHistory()
        chance = Random(f"{options.seed}/options")
        topology = _drawn(chance)
        self.faults = ClusterFaults.drawn(chance, options.faults, min(topology.replicas, options.nodes - 1))
        if self.faults.slow < float("inf"):
            topology = replace(topology, outbox_bytes=chance.choice((4_000, 20_000)))
        topology = replace(topology, safeguards=SAFEGUARDS - {options.ablation})
        self.world = ClusterWorld(options.seed, topology, (self.history, self.watch), self.session_failed)
        self.world.turns = Random(f"{options.seed}/turns") if options.turns else None
        self.ring = RingKept(self.world, self.history)
        self.bound = BoundKept(self.history)
        self.of_clients: list[Checker] = [*(kind(self.history) for kind in CLUSTER_CHECKERS), self.bound]
        of_state = [kind(self.world, self.history) for kind in STATE_CHECKERS]
        self.checkers: Sequence[Checker] = (*self.of_clients, *of_state, self.ring)
        random = self.world.random
        workload = DeltaWorkload(random) if options.delta else Workload(random, bool(options.structure))
        amender = Workload(Random(f"{options.seed}/amend"), bool(options.structure)) if options.amend else None
        self.clients = [
            ClusterClient(
                f"client-{number}",
                self.world,
                self.history,
                self.of_clients,
                workload,
                self._traits(random),
                options.placement,
                options.structure,
                amender,
            )
            for number in range(options.clients)
        ]
        self.swarm = f"{self.faults}; {topology}"

    def phases(self) -> Sequence[Callable[[], None]]:
        """Start, safety, quiet and the probe."""
        return (self.start, self.safety, self.quiet, self.probe)

    def start(self) -> None:
        """Start the brokers."""
        for _ in range(self.options.nodes):
            self.world.after(self.world.random.uniform(0.0, 1.0), self.world.add().start)
        self.world.run_for(START_SECONDS)

    def safety(self) -> None:
        """Let clients act and the nemesis strike; checkers look at the brokers' state."""
        world, random = self.world, self.world.random
        for client in self.clients:
            world.after(random.uniform(0.0, 1.0), client.dial)
            world.after(random.uniform(0.0, 1.0), client.think)
            if self.options.amend:
                world.after(1.0, client.think_again)
        world.after(0.0, self._look)
        self.nemesis = ClusterNemesis(world, self.history, self.faults)
        world.run_for(self.options.seconds)

    def quiet(self) -> None:
        """End all faults, and let nobody act until everything is answered."""
        assert self.nemesis is not None
        for client in self.clients:
            client.active = False
        self.nemesis.stop()
        self.world.run_for(SETTLE_SECONDS)

    def probe(self) -> None:
        """Let every client publish: each event must reach all who subscribed to it."""
        since = self.world.now
        for _ in range(_PROBES):
            for client in self.clients:
                if client.open:
                    client.publish()
            self.world.run_for(0.5)
        self.world.run_for(PROBE_SECONDS)
        exact = self.faults.slow == float("inf")  # else some may be dropped and announced
        for client in self.clients if exact else ():
            for log in client.subscriptions.values() if not self.options.delta else ():
                for name in log.expected:
                    if self.history.events[name].accepted_at >= since and name not in log.delivered:
                        raise Violation("Liveness", f"{client.name}, subscription {log.number}, misses {name}")
        for server in self.world.living():
            assert server.host is not None
            self.look_closely(server.host)
        for checker in self.checkers:
            checker.finish(self.clients)

    def watch(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Trace and check a step; when a SUBACK goes out, look at the brokers' state at once."""
        super().watch(host, happened, effects)
        if any(isinstance(effect, Send) and isinstance(effect.message, Suback) for effect in effects):
            self.world.after(0.0, self._look_once)

    def counts(self) -> dict[str, int]:
        """The counters of brokers, clients and the checker of the ring."""
        nodes = self.world.nodes()
        logs = [log for client in self.clients for log in (*client.over, *client.subscriptions.values())]
        return {
            **super().counts(),
            "events": self.history.accepted_events,
            "deliveries": sum(len(log.delivered) for log in logs),
            "forwarded": sum(node.forwarding.forwarded for node in nodes),
            "relayed": sum(node.forwarding.relayed for node in nodes),
            "lists asked for": sum(node.forwarding.gathering.asked for node in nodes),
            "edges walked": sum(node.forwarding.edges_local + node.forwarding.edges_remote for node in nodes),
            "false positives": sum(log.removed for log in logs),
            "lost": sum(node.forwarding.losses.events for node in nodes),
            "amendments": self.history.amended_since(0.0),
            "delivered to DELTA": self.bound.wanted,
            "suppressed": self.bound.suppressed,
            "delivered once more": self.bound.extra,
            "ring changes judged": self.ring.checked,
            "ring changes excused": self.ring.excused,
            "deaths in a judged ring": self.ring.outlived,
        }

    def last_lines(self) -> Iterable[str]:
        """The deliveries of every client."""
        for client in self.clients:
            for log in (*client.over, *client.subscriptions.values()):
                yield f"{log.client} {log.request} {log.gap} {' '.join(log.delivered)}"

    def _look(self) -> None:
        self._look_once()
        self.world.after(LOOK_SECONDS, self._look)

    def _look_once(self) -> None:
        for checker in self.checkers:
            checker.look()

    def _traits(self, random: Random) -> Traits:
        """Traits of a client that acts seldom, since there are many brokers."""
        slow = self.faults.slow if self.faults.slow < float("inf") else 0.0
        drawn = Traits.drawn(random, slow)
        return replace(drawn, think_seconds=random.choice((0.1, 0.3, 1.0)), batch_events_max=random.choice((1, 4, 12)))


def _drawn(random: Random) -> Topology:
    """Draw the configuration of brokers and links."""
    peers = PeerNetworkOptions(
        latency_seconds_max=random.choice((0.003, 0.01, 0.05)),
        whole_probability=random.choice((0.2, 0.8)),
        pipe_high=random.choice((4 * 1024, 64 * 1024)),
        pipe_low=1024,
    )
    return Topology(replicas=random.choice((1, 2, 2, 2, 3)), peers=peers)
