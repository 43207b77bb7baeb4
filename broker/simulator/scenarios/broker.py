"""One broker with its clients.

safety     clients act, the nemesis strikes; checkers look at every step
quiet      no faults, and clients do not act: everything must be answered, delivered or announced
farewell   all clients leave: the broker must be as empty as it was at the start

One run of four shuts the broker down under load instead of the quiet phase: a client that gets its GOODBYE must have
got everything before, or a GAP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from headgate.broker.core import NodeConfig
from headgate.broker.core.inputs import Drain, WallClock
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.errors import ErrorCode

from ..checkers import CHECKERS, NothingLost
from ..engine import WALL_CLOCK_OFFSET_SECONDS, Host, Network, NetworkOptions, Violation, World
from ..faults import FAULTS, ClientFaults, ClientNemesis, kinds_of
from ..limits import CLIENTS_MAX, QUIET_SECONDS, STEPS_MAX
from ..workloads import Client, History, Traits, Workload
from .scenario import Options, Scenario, Write, option, within

__all__ = ["BROKER_ABLATIONS", "BrokerOptions", "BrokerScenario"]

BROKER_ABLATIONS = (
    Safeguard.BOUND,
    Safeguard.CREDIT,
    Safeguard.DEDUPE,
    Safeguard.DERIVE,
    Safeguard.GAP,
    Safeguard.GRACE,
    Safeguard.IN_FLIGHT,
    Safeguard.ORDER,
    Safeguard.OUTBOX,
    Safeguard.PAUSE,
    Safeguard.SECOND_ANSWER,
    Safeguard.SECOND_GAP,
    Safeguard.WITHDRAW,
)
"""What can be switched off."""

_SHUTDOWN_EVERY = 4
_OF_PEERS = "gone"
"""The reason of a drop that a broker without peers cannot have: deliveries for another broker that is gone."""


@dataclass(frozen=True, slots=True)
class BrokerOptions(Options):
    """Options of a run with one broker, the default kind."""

    about = "Run the broker in virtual time under faults, and check every promise it makes."

    steps: int = option(2_000, "events of the safety phase (2000)", within(1, STEPS_MAX))
    clients: int = option(6, "how many (6)", within(1, CLIENTS_MAX))
    faults: tuple[str, ...] = option(FAULTS, f"comma-separated of {', '.join(FAULTS)}; or none (all)", kinds_of(FAULTS))
    ablation: str = option("", "switch off one safeguard", flag="--ablate", choices=BROKER_ABLATIONS)
    fast: bool = option(False, "pass message objects instead of bytes")
    turns: bool = option(False, "turns of the broker's loop are long, and bring reads of several clients")

    def scenario(self, write: Write | None) -> BrokerScenario:
        """A scenario with one broker and its clients."""
        return BrokerScenario(self, write)


class BrokerScenario(Scenario):
    """A scenario with one Host, which runs from the beginning to the end."""

    endings = (ErrorCode.TIMEOUT, ErrorCode.REPLACED, ErrorCode.SLOW_CONSUMER, ErrorCode.SHUTTING_DOWN)

    def __init__(self, options: BrokerOptions, write: Write | None = None) -> None:
        super().__init__(options, write, whole=True)
        self.options = options
        self.history = History()
        self.world = World(options.seed)
        self.world.turns = Random(f"{options.seed}/turns") if options.turns else None
        random = self.world.random
        self.faults = ClientFaults.drawn(random, options.faults)
        self.network = Network(self.world, NetworkOptions(checked=not options.fast), self.session_failed)
        self.checkers = [kind(self.history) for kind in CHECKERS]
        config = replace(_config(random, "slow" in options.faults), safeguards=SAFEGUARDS - {options.ablation})
        self.host = Host(self.world, config, (self.history, self.watch))
        workload = Workload(random)
        self.clients = [
            Client(
                f"client-{number}",
                self.host,
                self.network,
                self.history,
                self.checkers,
                workload,
                Traits.drawn(random, self.faults.slow_probability),
            )
            for number in range(options.clients)
        ]
        self.swarm = str(self.faults)
        self.trace.line(f"{self.host.node.config} {self.faults}")

    def phases(self) -> Sequence[Callable[[], None]]:
        """Safety, then quiet or a shutdown, and the farewell."""
        shutdown = self.options.seed % _SHUTDOWN_EVERY == 0
        return (self.safety, self.shutdown if shutdown else self.quiet, self.farewell)

    def safety(self) -> None:
        """Let clients act and the nemesis strike."""
        self.nemesis = ClientNemesis(self.world, self.network, self.faults)
        self.host.feed(WallClock(WALL_CLOCK_OFFSET_SECONDS))
        for client in self.clients:
            self.world.after(self.world.random.uniform(0.0, 1.0), client.dial)
            self.world.after(self.world.random.uniform(0.0, 1.0), client.think)
        while self.world.steps < self.options.steps:
            self.world.step()
        self.nemesis.stop()
        for client in self.clients:
            client.active = False

    def quiet(self) -> None:
        """Let nobody act until everything is answered, delivered or announced."""
        self.world.run_for(QUIET_SECONDS)
        for checker in self.checkers:
            checker.finish(self.clients)

    def shutdown(self) -> None:
        """Drain the broker: clients that got its GOODBYE lost nothing without a GAP."""
        self.host.feed(Drain())
        self.world.run_for(QUIET_SECONDS)
        dismissed = [client for client in self.clients if client.dismissed]
        for checker in self.checkers:
            if isinstance(checker, NothingLost):
                checker.finish(dismissed)

    def farewell(self) -> None:
        """Let all clients leave; the broker must be empty then."""
        for client in self.clients:
            client.leave()
        self.world.run_for(QUIET_SECONDS)
        node = self.host.node
        left = node.statistics(self.world.now)
        held = (left.connections, left.sessions, left.subscriptions, left.outbox_events, left.outbox_bytes)
        if any(held) or node.subscribers.grace or node.subscribers.draining:
            raise Violation("EmptyAtTheEnd", f"everybody left, and the broker still holds {left}")
        publishers = sum(len(stream.publishers) for stream in node.streams.by_name.values())
        if publishers:
            raise Violation("EmptyAtTheEnd", f"everybody left, and {publishers} publishers are remembered")

    def counts(self) -> dict[str, int]:
        """The counters of the broker and of its clients."""
        statistics = self.host.node.statistics(self.world.now)
        logs = [log for client in self.clients for log in (*client.over, *client.subscriptions.values())]
        return {
            **super().counts(),
            "events": statistics.events_received,
            "deliveries": sum(len(log.delivered) for log in logs),
            "duplicates": statistics.events_duplicate,
            "refused": statistics.events_refused,
            "unknown": sum(client.unknown_outcomes for client in self.clients),
        } | {f"dropped {reason}": count for reason, count in statistics.drops.items() if count or reason != _OF_PEERS}


def _config(random: Random, slow: bool) -> NodeConfig:
    outbox = random.choice((1_000, 4_000, 20_000)) if slow else 16 * 1024 * 1024
    return NodeConfig(
        name="broker-1",
        incarnation=1,
        outbox_bytes=outbox,
        outbox_bytes_total=outbox * random.choice((1, 2, 6)),
        slow_consumer="disconnect" if random.random() < 0.25 else "drop",
    )
