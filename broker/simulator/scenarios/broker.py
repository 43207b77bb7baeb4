"""One run: a seed becomes a world, a safety phase with faults, a quiet phase without, a farewell, and a verdict.

safety     clients act, the nemesis strikes; nothing may ever be wrong
quiet      no more faults, nobody acts: everything must be answered, delivered or announced
farewell   all clients leave: the broker must be as empty as it was at the start

In one run of four the broker is shut down in full flight instead of the quiet phase: whoever hears its goodbye has
got everything, or has heard a GAP.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from headgate.broker.core import NodeConfig
from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Drain, Input, WallClock
from headgate.protocol.errors import ErrorCode, HeadgateError, ProtocolViolation

from ..checkers import CHECKERS, Checker, NothingLost
from ..engine import WALL_CLOCK_OFFSET_SECONDS, Host, Network, NetworkOptions, Trace, Violation, World
from ..faults import FAULTS, FaultOptions, Nemesis
from ..limits import QUIET_SECONDS
from ..workloads import Client, History, Traits, Workload
from .ablations import ablate

__all__ = ["Options", "Run", "Verdict", "run_seed"]

_SHUTDOWN_EVERY = 4
_ENDINGS = (ErrorCode.TIMEOUT, ErrorCode.REPLACED, ErrorCode.SLOW_CONSUMER, ErrorCode.SHUTTING_DOWN)
_OF_PEERS = "gone"
"""A drop that a broker without peers cannot have: what it matched for another broker that is gone."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is made from; everything else is drawn from the seed."""

    seed: int
    steps: int = 2_000
    clients: int = 6
    faults: tuple[str, ...] = FAULTS
    checked: bool = True
    ablation: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run ended. `failure` is empty when it went well."""

    options: Options
    digest: str
    failure: str
    details: str
    seconds: float
    counts: dict[str, int]


class Run:
    """The parts of one run; `play` plays it."""

    def __init__(self, options: Options, write: Callable[[str], object] | None = None) -> None:
        self.options = options
        self.trace = Trace(write)
        self.history = History()
        self.world = World(options.seed)
        random = self.world.random
        faults = FaultOptions.drawn(random, options.faults)
        self.network = Network(self.world, NetworkOptions(checked=options.checked), self._session_failed)
        self.checkers: list[Checker] = [kind(self.history) for kind in CHECKERS]
        watchers = (self._to_trace, self.history, self._to_checkers)
        self.host = Host(self.world, _config(random, "slow" in options.faults), watchers)
        ablate(self.host.node, options.ablation)
        workload = Workload(random)
        self.clients = [
            Client(
                f"client-{number}",
                self.host,
                self.network,
                self.history,
                self.checkers,
                workload,
                Traits.drawn(random, faults.slow_probability),
            )
            for number in range(options.clients)
        ]
        self.nemesis = Nemesis(self.world, self.network, faults)
        self.trace.line(f"{options} {self.host.node.config} {faults}")

    def play(self) -> None:
        """All phases. Raises Violation."""
        self.host.feed(WallClock(WALL_CLOCK_OFFSET_SECONDS))
        for client in self.clients:
            self.world.after(self.world.random.uniform(0.0, 1.0), client.dial)
            self.world.after(self.world.random.uniform(0.0, 1.0), client.think)
        while self.world.steps < self.options.steps:
            self.world.step()
        self.nemesis.stop()
        for client in self.clients:
            client.active = False
        if self.options.seed % _SHUTDOWN_EVERY == 0:
            self._shutdown()
        else:
            self._quiet()
        self._farewell()

    def _quiet(self) -> None:
        self.world.run_for(QUIET_SECONDS)
        for checker in self.checkers:
            checker.finish(self.clients)

    def _shutdown(self) -> None:
        self.host.feed(Drain())
        self.world.run_for(QUIET_SECONDS)
        dismissed = [client for client in self.clients if client.dismissed]
        for checker in self.checkers:
            if isinstance(checker, NothingLost):
                checker.finish(dismissed)

    def _farewell(self) -> None:
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
        """What happened, for the report: a campaign that never cut a connection proves nothing about cuts."""
        statistics = self.host.node.statistics(self.world.now)
        return {
            "steps": self.world.steps,
            "events": statistics.events_received,
            "deliveries": sum(
                len(log.delivered) for client in self.clients for log in (*client.over, *client.subscriptions.values())
            ),
            "duplicates": statistics.events_duplicate,
            "refused": statistics.events_refused,
            "cuts": self.nemesis.cuts,
            "pauses": self.nemesis.pauses,
            "unknown": sum(client.unknown_outcomes for client in self.clients),
        } | {f"dropped {reason}": count for reason, count in statistics.drops.items() if count or reason != _OF_PEERS}

    def _to_trace(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        self.trace.step(self.world.now, host.node.config.name, happened, effects)

    def _to_checkers(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        for checker in self.checkers:
            checker.step(host, happened, effects)

    def _session_failed(self, side: str, failure: HeadgateError) -> None:
        """No end may ever find fault with what the other one says; an ERROR that was received is judged elsewhere."""
        code = failure.code if isinstance(failure, ProtocolViolation) else ErrorCode.PROTOCOL
        if code not in _ENDINGS:
            raise Violation("CleanProtocol", f"the {side} refused what it was sent: {failure}")


def run_seed(options: Options, write: Callable[[str], object] | None = None) -> Verdict:
    """Play one run to its verdict; whatever the Node raises is a verdict as well."""
    run = Run(options, write)
    failure = details = ""
    try:
        run.play()
    except Violation as violation:
        failure = str(violation)
    except Exception as error:  # a crash of the Node is what a simulator is there to find
        failure = f"Crash: {type(error).__name__}: {error}"
        details = "".join(traceback.format_exception(error))
    return Verdict(options, run.trace.digest, failure, details, run.world.now, run.counts())


def _config(random: Random, slow: bool) -> NodeConfig:
    outbox = random.choice((1_000, 4_000, 20_000)) if slow else 16 * 1024 * 1024
    return NodeConfig(
        name="broker-1",
        incarnation=1,
        outbox_bytes=outbox,
        outbox_bytes_total=outbox * random.choice((1, 2, 6)),
        slow_consumer="disconnect" if random.random() < 0.25 else "drop",
    )
