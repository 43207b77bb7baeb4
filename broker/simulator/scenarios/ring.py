"""One run of the ring world: a seed, its faults, its checkers, its verdict.

A run has a **safety phase**, of so many steps of the protocol and faults, in which the checkers look at every change;
then everything heals and a **liveness phase**, in which the ring must become ideal within a bound of time. What must
hold depends on the kind of run:

    churn      crashes, restarts and joins within assumptions A3 and A4: the invariant holds after every change
    storm      pauses, loss, partitions, any crashes: the invariant may break, but one ring must come of it
    start      no ring at all: brokers come up one after the other and open one
    partition  a ring is cut in two, both halves become ideal rings, and after healing one ring comes of them
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from headgate.broker.core.membership import ChordConfig, ChordEffect, ChordInput, Heard, ideal_complaints

from ..checkers import RING_CHECKERS, STORM_CHECKERS, InvariantHolds, OneQuery, RingChecker
from ..engine import RingHost, RingNetworkOptions, RingWorld, Trace, Violation
from ..faults import RingFaultOptions, RingNemesis
from .ring_ablations import ablate_ring

__all__ = ["KINDS", "RingOptions", "RingRun", "RingVerdict", "run_ring"]

KINDS = ("churn", "storm", "start", "partition")

_CALM_SECONDS = {"churn": 120.0, "storm": 240.0, "start": 120.0, "partition": 240.0}
"""Virtual seconds from the end of all faults to the ideal ring; far more than was ever needed."""


@dataclass(frozen=True, slots=True)
class RingOptions:
    """What decides a run, besides the code."""

    seed: int
    steps: int = 300
    nodes: int = 8
    list_length: int = 2
    kind: str = "churn"
    ablation: str = ""
    limited: bool = True
    """Failures respect A3 and A4."""
    sees_answers: bool = True
    """They respect them for lists in answers under way as well."""
    only_invariant: bool = False
    """Check nothing but R1: for comparing with published counts."""
    calm: bool = True
    """Have a liveness phase."""
    churn_seconds: float = 0.0
    """Mean time between faults of a churn; 0 means drawn."""

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ValueError(f"nodes is {self.nodes}; a world needs at least 1 broker")


@dataclass(frozen=True, slots=True)
class RingVerdict:
    """What came of it; `failure` is empty when all promises were kept."""

    options: RingOptions
    digest: str
    failure: str
    details: str
    seconds: float
    settle_seconds: float
    counts: dict[str, int] = field(default_factory=dict)


class RingRun:
    """Makes the world, plays it, judges it."""

    def __init__(self, options: RingOptions, write: Callable[[str], object] | None = None) -> None:
        self.options = options
        self.trace = Trace(write)
        random = Random(f"{options.seed}/options")
        config, network = _drawn(random, options)
        self.world = world = RingWorld(options.seed, config, network)
        world.prepare = ablate_ring(options.ablation)
        world.watch = self._watch
        self.faults = self._drawn_faults(random)
        self.settle_seconds = 0.0
        if options.kind == "start":
            self._start_slowly()
        else:
            world.open_ring(options.nodes)
        kinds = STORM_CHECKERS if options.kind != "churn" else RING_CHECKERS
        if options.only_invariant or options.ablation:
            kinds = (InvariantHolds,)  # a harmed machine is judged by what becomes of the ring
        if options.ablation == "busy" and not options.only_invariant:
            kinds = (InvariantHolds, OneQuery)  # what it does is seen at once, what comes of it in few seeds
        self.checkers: list[RingChecker] = [kind(world) for kind in kinds]
        for checker in self.checkers:
            if isinstance(checker, InvariantHolds):
                checker.sees_answers = options.sees_answers
        self.nemesis: RingNemesis | None = None
        self.trace.line(f"{options} {config} {network} {self.faults}")

    def _drawn_faults(self, random: Random) -> RingFaultOptions:
        options = self.options
        if options.kind == "churn":
            drawn = RingFaultOptions.churn(random, options.limited, options.sees_answers)
            return replace(drawn, churn_seconds=options.churn_seconds) if options.churn_seconds else drawn
        return RingFaultOptions.storm(random) if options.kind == "storm" else RingFaultOptions()

    def play(self) -> None:
        """Both phases. Raises Violation."""
        world, options = self.world, self.options
        if options.kind == "partition":
            self._halves()
        self.nemesis = RingNemesis(world, self.faults)
        while world.steps_done < options.steps and options.kind in ("churn", "storm"):
            self._step()
        self.nemesis.stop()
        if world.network.loss_probability:
            world.network = RingNetworkOptions(world.network.latency_seconds_min, world.network.latency_seconds_max)
        if options.calm:
            self._become_ideal(
                list(world.brokers) if options.kind == "start" else [one.address for one in world.living()]
            )

    def _start_slowly(self) -> None:
        addresses = [f"broker-{number}" for number in range(self.options.nodes)]
        for address in addresses:
            host = self.world.add(address, addresses[:3])
            self.world.after(self.world.random.uniform(0.0, 5.0), host.start)

    def _halves(self) -> None:
        """Each side becomes an ideal ring of its own."""
        world = self.world
        addresses = list(world.brokers)
        sides = (addresses[::2], addresses[1::2])
        for low in sides[0]:
            for high in sides[1]:
                world.cut[low, high] = world.cut[high, low] = None
        for side in sides:
            self._become_ideal(side)
        world.cut.clear()

    def _step(self) -> None:
        if not self.world.step():
            raise Violation("Alive", "nothing will ever happen again")
        if self.world.changed:
            self.world.changed = False
            for checker in self.checkers:
                checker.settled()

    def _become_ideal(self, addresses: Sequence[str]) -> None:
        """Wait until these brokers are one ideal ring, or a full mesh when they are too few for one."""
        begun = self.world.now
        look_at, complaints = begun, ["it was never looked at"]
        while complaints:
            while self.world.now < look_at:
                self._step()
            look_at = self.world.now + 1.0
            complaints = self._complaints(addresses)
            if self.world.now - begun > _CALM_SECONDS[self.options.kind]:
                raise Violation("BecomesIdeal", "; ".join(complaints[:3]))
        self.settle_seconds = self.world.now - begun

    def _complaints(self, addresses: Sequence[str]) -> list[str]:
        hosts = [self.world.brokers[address] for address in addresses]
        machines = [host.machine for host in hosts if host.machine is not None]
        if len(machines) < len(hosts):
            return ["not everybody has started"]
        if len(machines) >= self.world.config.ring_size_min:
            snapshot = self.world.snapshot()
            wanted = dict.fromkeys(addresses)
            snapshot.members = {one: it for one, it in snapshot.members.items() if one.address in wanted}
            outside = [f"{machine.me} is in no ring" for machine in machines if machine.ring is None]
            return outside + ideal_complaints(snapshot, self.world.config.list_length)
        everybody = sorted(machine.me for machine in machines)
        return [f"{one.me} knows {one.members()}" for one in machines if sorted(one.members()) != everybody]

    def _watch(self, host: RingHost, happened: ChordInput, effects: Sequence[ChordEffect]) -> None:
        cause = type(happened.letter.body).__name__ if isinstance(happened, Heard) else "Tick"
        self.trace.line(f"{self.world.now:.6f} {host.address} {cause} {len(effects)}")
        for checker in self.checkers:
            checker.step(host, happened, effects)

    def counts(self) -> dict[str, int]:
        """What happened."""
        counts = {"steps": self.world.steps_done, "letters": self.world.letters, "lost": self.world.lost_letters}
        return counts | dict(sorted(self.nemesis.counts.items()) if self.nemesis is not None else {})


def run_ring(options: RingOptions, write: Callable[[str], object] | None = None) -> RingVerdict:
    """Play one run to its verdict; whatever a machine raises is a verdict as well."""
    run = RingRun(options, write)
    failure = details = ""
    try:
        run.play()
    except Violation as violation:
        failure = str(violation)
    except Exception as error:  # a crash of the machine is what a simulator is there to find
        failure = f"Crash: {type(error).__name__}: {error}"
        details = "".join(traceback.format_exception(error))
    run.trace.line(f"{run.world.snapshot()}")
    return RingVerdict(options, run.trace.digest, failure, details, run.world.now, run.settle_seconds, run.counts())


def _drawn(random: Random, options: RingOptions) -> tuple[ChordConfig, RingNetworkOptions]:
    """A network, and waits that are surely longer than a round trip in it: A2 holds unless something else breaks it."""
    slowest = random.choice((0.005, 0.05, 0.1))
    config = ChordConfig(
        list_length=options.list_length,
        stabilize_seconds=random.choice((0.3, 1.0)),
        answer_seconds=2.5 * slowest,
        attempts=random.choice((1, 2)) if options.kind == "churn" else 3,
        busy_seconds=slowest,
    )
    loss = random.choice((0.0, 0.02, 0.1)) if options.kind == "storm" else 0.0
    reorder = random.random() < 0.25
    return config, RingNetworkOptions(slowest * random.choice((0.1, 0.8)), slowest, loss, reorder)
