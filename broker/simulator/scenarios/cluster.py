"""One run of a cluster: a seed becomes a world, a safety phase with faults, a quiet one without, and a verdict.

start     brokers come up, and clients connect to any of them
safety    clients act, the nemesis strikes; nothing may ever be wrong
quiet     all that was broken is whole again and every broker runs; nobody acts: everything is answered
probe     every client publishes and gets what it asked for, exactly: the cluster lives
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Input, Received
from headgate.protocol.errors import ErrorCode, HeadgateError, ProtocolViolation
from headgate.protocol.messages import Suback

from ..checkers import CLUSTER_CHECKERS, STATE_CHECKERS, Checker, RingKept
from ..engine import ClusterOptions, ClusterWorld, Host, PeerNetworkOptions, Trace, Violation
from ..faults import ClusterFaultOptions, ClusterNemesis
from ..limits import LOOK_SECONDS, PROBE_SECONDS, SETTLE_SECONDS, START_SECONDS
from ..workloads import ClusterClient, ClusterHistory, Traits, Workload
from .cluster_ablations import ablate_cluster

__all__ = ["ClusterRun", "ClusterRunOptions", "ClusterVerdict", "run_cluster"]

_PROBES = 3
_SOUND_EVERY = 64
"""Asking a Node whether it is sound takes longer than most steps; these are enough to find it early."""

_ENDINGS = (
    ErrorCode.TIMEOUT,
    ErrorCode.REPLACED,
    ErrorCode.SLOW_CONSUMER,
    ErrorCode.SHUTTING_DOWN,
    ErrorCode.GOODBYE,
    ErrorCode.DUPLICATE,
)


@dataclass(frozen=True, slots=True)
class ClusterRunOptions:
    """What a run is made from; everything else is drawn from the seed."""

    seed: int
    nodes: int = 3
    seconds: float = 20.0
    clients: int = 6
    faults: tuple[str, ...] = ()
    ablation: str = ""
    placement: str = "anchored"


@dataclass(frozen=True, slots=True)
class ClusterVerdict:
    """How a run ended. `failure` is empty when it went well."""

    options: ClusterRunOptions
    swarm: str
    digest: str
    failure: str
    details: str
    seconds: float
    counts: dict[str, int]


class ClusterRun:
    """The parts of one run; `play` plays it."""

    def __init__(self, options: ClusterRunOptions, write: Callable[[str], object] | None = None) -> None:
        self.options = options
        self.trace = Trace(write)
        self._writes = write is not None
        self._digest = hashlib.sha256()
        self.history = ClusterHistory()
        watchers = (self._to_trace, self.history, self._to_checkers)
        chance = Random(f"{options.seed}/options")
        drawn = _drawn(chance)
        self.faults = ClusterFaultOptions.drawn(chance, options.faults, min(drawn.replicas, options.nodes - 1))
        if self.faults.slow < float("inf"):
            drawn = replace(drawn, outbox_bytes=chance.choice((4_000, 20_000)))
        self.world = ClusterWorld(options.seed, drawn, watchers, self._session_failed)
        self.world.prepare = lambda node: ablate_cluster(node, options.ablation)
        self.checkers: list[Checker] = [kind(self.history) for kind in CLUSTER_CHECKERS]
        random = self.world.random
        self.ring = RingKept(self.world, self.history)
        self.state_checkers = [*(kind(self.world, self.history) for kind in STATE_CHECKERS), self.ring]
        self.nemesis: ClusterNemesis | None = None
        workload = Workload(random)
        self.clients = [
            ClusterClient(
                f"client-{number}",
                self.world,
                self.history,
                self.checkers,
                workload,
                self._traits(random),
                options.placement,
            )
            for number in range(options.clients)
        ]
        self._steps = 0

    def play(self) -> None:
        """All phases. Raises Violation."""
        world, random = self.world, self.world.random
        for _ in range(self.options.nodes):
            world.after(random.uniform(0.0, 1.0), world.add().start)
        world.run_for(START_SECONDS)
        for client in self.clients:
            world.after(random.uniform(0.0, 1.0), client.dial)
            world.after(random.uniform(0.0, 1.0), client.think)
        world.after(0.0, self._look)
        self.nemesis = ClusterNemesis(world, self.history, self.faults)
        world.run_for(self.options.seconds)
        for client in self.clients:
            client.active = False
        self.nemesis.stop()
        world.run_for(SETTLE_SECONDS)
        self._probe()
        for state_checker in self.state_checkers:
            state_checker.rest()

    def _look(self) -> None:
        self._look_once()
        self.world.after(LOOK_SECONDS, self._look)

    def _look_once(self) -> None:
        for checker in self.state_checkers:
            checker.look()

    def _probe(self) -> None:
        """The cluster lives: who publishes now is heard by all who asked for it."""
        since = self.world.now
        for _ in range(_PROBES):
            for client in self.clients:
                if client.open:
                    client.publish()
            self.world.run_for(0.5)
        self.world.run_for(PROBE_SECONDS)
        exact = self.faults.slow == float("inf")  # else some of it may be dropped, and is announced
        for client in self.clients if exact else ():
            for log in client.subscriptions.values():
                for name in log.expected:
                    if self.history.events[name].accepted_at >= since and name not in log.delivered:
                        raise Violation("Liveness", f"{client.name}, subscription {log.number}, misses {name}")
        self._finish()

    def _traits(self, random: Random) -> Traits:
        """A client that leaves time for many brokers."""
        slow = self.faults.slow if self.faults.slow < float("inf") else 0.0
        drawn = Traits.drawn(random, slow)
        return replace(drawn, think_seconds=random.choice((0.1, 0.3, 1.0)), batch_events_max=random.choice((1, 4, 12)))

    def _finish(self) -> None:
        """What the checkers of clients say at the end."""
        for checker in self.checkers:
            checker.finish(self.clients)
        for server in self.world.living():
            self._sound(server.host)

    def _sound(self, host: Host | None) -> None:
        try:
            if host is not None:
                host.node.validate()
        except AssertionError as error:
            text = traceback.format_exception(error)[-2].strip()
            raise Violation("SoundNode", f"{host.node.config.name if host else ''}: {text} {error}") from error

    def counts(self) -> dict[str, int]:
        """What happened, for the report."""
        nodes = self.world.nodes()
        logs = [log for client in self.clients for log in (*client.over, *client.subscriptions.values())]
        return {
            "steps": self.world.steps,
            "events": self.history.accepted_events,
            "deliveries": sum(len(log.delivered) for log in logs),
            "forwarded": sum(node.forwarding.forwarded for node in nodes),
            "relayed": sum(node.forwarding.relayed for node in nodes),
            "lists asked for": sum(node.forwarding.gathering.asked for node in nodes),
            "lost": sum(node.forwarding.lost for node in nodes),
            "ring changes judged": self.ring.checked,
            "ring changes excused": self.ring.excused,
            "deaths in a judged ring": self.ring.outlived,
        } | (dict(self.nemesis.done) if self.nemesis is not None else {})

    @property
    def digest(self) -> str:
        """Of every step's time and shape, and of what every client got: the same in every run of a seed."""
        digest = self._digest.copy()
        for client in self.clients:
            for log in (*client.over, *client.subscriptions.values()):
                digest.update(f"{log.client} {log.request} {log.gap} {' '.join(log.delivered)}\n".encode())
        return digest.hexdigest()

    def _to_trace(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        name = host.node.config.name
        if self._writes:
            self.trace.step(self.world.now, name, happened, effects)
        messages = happened.messages if isinstance(happened, Received) else ()
        said = [effect.message if isinstance(effect, Send) else effect for effect in effects]
        shape = " ".join(type(one).__name__ for one in (happened, *messages, *said))
        self._digest.update(f"{self.world.now:.9f} {name} {shape}\n".encode())

    def _to_checkers(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        self._steps += 1
        self.ring.step(host, effects)
        if any(isinstance(effect, Send) and isinstance(effect.message, Suback) for effect in effects):
            self.world.after(0.0, self._look_once)
        if self._steps % _SOUND_EVERY == 0:
            self._sound(host)

    def _session_failed(self, side: str, failure: HeadgateError) -> None:
        code = failure.code if isinstance(failure, ProtocolViolation) else ErrorCode.PROTOCOL
        if code not in _ENDINGS:
            raise Violation("CleanProtocol", f"the {side} refused what it was sent: {failure}")


def _drawn(random: Random) -> ClusterOptions:
    """What brokers and their links are like in this run."""
    peers = PeerNetworkOptions(
        latency_seconds_max=random.choice((0.003, 0.01, 0.05)),
        whole_probability=random.choice((0.2, 0.8)),
        pipe_high=random.choice((4 * 1024, 64 * 1024)),
        pipe_low=1024,
    )
    return ClusterOptions(replicas=random.choice((1, 2, 2, 2, 3)), peers=peers)


def run_cluster(options: ClusterRunOptions, write: Callable[[str], object] | None = None) -> ClusterVerdict:
    """Play one run to its verdict; whatever a Node raises is a verdict as well."""
    run = ClusterRun(options, write)
    failure = details = ""
    try:
        run.play()
    except Violation as violation:
        failure = str(violation)
        details = "".join(traceback.format_exception(violation))
    except Exception as error:  # a crash of a Node is what a simulator is there to find
        failure = f"Crash: {type(error).__name__}: {error}"
        details = "".join(traceback.format_exception(error))
    return ClusterVerdict(
        options, f"{run.faults}; {run.world.options}", run.digest, failure, details, run.world.now, run.counts()
    )
