"""The ring of brokers alone: membership machines under faults, and the invariant at every change.

A run has a **safety phase**, of so many steps of the protocol and faults, in which the checkers look at every change;
then everything heals and a **liveness phase**, in which the ring must become ideal within a bound of time. What must
hold depends on the kind of run:

    churn      crashes, restarts and joins within assumptions A3 and A4: the invariant holds after every change
    storm      pauses, loss, partitions, any crashes: the invariant may break, but one ring must come of it
    start      no ring at all: brokers come up one after the other and open one
    partition  a ring is cut in two, both halves become ideal rings, and after healing one ring comes of them
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from headgate.broker.core.membership import ChordConfig, ChordEffect, ChordInput, ideal_complaints
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard

from ..checkers import RING_CHECKERS, STORM_CHECKERS, InvariantHolds, OneQuery, RingChecker
from ..engine import RingHost, RingNetworkOptions, RingWorld, Violation
from ..faults import RingFaults, RingNemesis
from ..limits import NODES_MAX, STEPS_MAX
from .scenario import Options, Scenario, Write, option, within

__all__ = ["KINDS", "RING_ABLATIONS", "VARIANTS", "RingOptions", "RingScenario"]

_PREFIX = "ring-"
RING_ABLATIONS = tuple(one.removeprefix(_PREFIX) for one in sorted(Safeguard) if one.startswith(_PREFIX))
"""What can be switched off: the safeguards of the ring, whose names need not say `ring` here."""

KINDS = ("churn", "storm", "start", "partition")

VARIANTS: dict[str, dict[str, object]] = {
    "corrected, r=2": {},
    "corrected, r=3": {"list_length": 3},
    "dead head dropped, no padding": {"ablation": "padding"},
    "pad by repeating the last entry": {"ablation": "repeat-last"},
    "join with one successor, no list": {"ablation": "one-successor"},
    "adopt new successor unchecked": {"ablation": "unchecked"},
    "no notify after a dead new successor": {"ablation": "notify"},
    "initial ring of 2 with r=2": {"ablation": "round", "nodes": 2},
    "failures not limited by A3/A4": {"unlimited": True, "only_invariant": True},
    "busy rule on, answers not spared": {"answers_not_spared": True, "only_invariant": True},
    "busy rule off, answers not spared": {"answers_not_spared": True, "ablation": "busy", "only_invariant": True},
}
"""Name -> what is different from the corrected protocol with two successors."""

_CALM_SECONDS = {"churn": 120.0, "storm": 240.0, "start": 120.0, "partition": 240.0}
"""Virtual seconds from the end of all faults to the ideal ring; far more than was ever needed."""


@dataclass(frozen=True, slots=True)
class RingOptions(Options):
    """Options of a run with a bare ring: the word `ring`."""

    words = ("ring",)
    about = "Run the ring of brokers in virtual time under faults, and check its invariant at every change."

    steps: int = option(300, "protocol steps and faults of a run (300)", within(1, STEPS_MAX))
    nodes: int = option(8, "brokers at the beginning (8)", within(1, NODES_MAX))
    list_length: int = option(2, "successors a member (2)", within(2, 16))
    kind: str = option("churn", "what happens to the ring (churn)", choices=KINDS)
    ablation: str = option("", "switch off one safeguard", flag="--ablate", choices=RING_ABLATIONS)
    unlimited: bool = option(False, "crash whoever comes up, whatever A3 and A4 say")
    answers_not_spared: bool = option(False, "read A3 for members' own lists only, not for answers")
    churn_seconds: float = option(0.0, "mean time between faults (drawn)", float)
    only_invariant: bool = option(False, "check the invariant and nothing else, as published counts do")

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ValueError(f"nodes is {self.nodes}; a world needs at least 1 broker")

    def scenario(self, write: Write | None) -> RingScenario:
        """A scenario with membership machines."""
        return RingScenario(self, write)


class RingScenario(Scenario):
    """A scenario with membership machines that exchange messages, and the checkers of their ring."""

    world: RingWorld
    checkers: Sequence[RingChecker]

    def __init__(self, options: RingOptions, write: Write | None = None) -> None:
        super().__init__(options, write)
        self.options = options
        random = Random(f"{options.seed}/options")
        config, network = _drawn(random, options)
        self.world = world = RingWorld(options.seed, config, network)
        world.watch = self._watch
        self.faults = self._drawn_faults(random)
        self.settle_seconds = 0.0
        if options.kind == "start":
            self._start_slowly()
        else:
            world.open_ring(options.nodes)
        kinds = STORM_CHECKERS if options.kind != "churn" else RING_CHECKERS
        if options.only_invariant or options.ablation:
            kinds = (InvariantHolds,)  # with an ablation, only the state of the ring counts
        if options.ablation == "busy" and not options.only_invariant:
            kinds = (InvariantHolds, OneQuery)  # two open queries are seen at once, their consequences in few seeds
        self.checkers = [kind(world) for kind in kinds]
        for checker in self.checkers:
            if isinstance(checker, InvariantHolds):
                checker.sees_answers = not options.answers_not_spared
        self.swarm = f"{config} {network} {self.faults}"

    def phases(self) -> Sequence[Callable[[], None]]:
        """Safety and liveness."""
        return (self.safety, self.liveness)

    def _drawn_faults(self, random: Random) -> RingFaults:
        options = self.options
        if options.kind == "churn":
            drawn = RingFaults.churn(random, not options.unlimited, not options.answers_not_spared)
            return replace(drawn, churn_seconds=options.churn_seconds) if options.churn_seconds else drawn
        return RingFaults.storm(random) if options.kind == "storm" else RingFaults()

    def safety(self) -> None:
        """Play steps and faults; the checkers look at every change."""
        world, options = self.world, self.options
        if options.kind == "partition":
            self._halves()
        self.nemesis = RingNemesis(world, self.faults)
        while world.steps_done < options.steps and options.kind in ("churn", "storm"):
            self._step()
        self.nemesis.stop()
        if world.network.loss_probability:
            world.network = RingNetworkOptions(world.network.latency_seconds_min, world.network.latency_seconds_max)

    def liveness(self) -> None:
        """End all faults, and wait for one ideal ring of all living brokers."""
        slow = self.options.kind == "start"
        self._become_ideal(list(self.world.brokers) if slow else [one.address for one in self.world.living()])

    def _start_slowly(self) -> None:
        addresses = [f"broker-{number}" for number in range(self.options.nodes)]
        for address in addresses:
            host = self.world.add(address, addresses[:3])
            self.world.after(self.world.random.uniform(0.0, 5.0), host.start)

    def _halves(self) -> None:
        """Cut the ring in two, and wait until each side is an ideal ring."""
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
        self.trace.step(self.world.now, host.address, happened, effects)
        for checker in self.checkers:
            checker.step(host, happened, effects)

    def counts(self) -> dict[str, int]:
        """The counters of the world and of the nemesis."""
        letters = {"letters": self.world.letters, "lost": self.world.lost_letters}
        return super().counts() | {"steps": self.world.steps_done} | letters

    def last_lines(self) -> Iterable[str]:
        """The pointers of all members at the end."""
        return (f"{self.world.snapshot()}",)


def _drawn(random: Random, options: RingOptions) -> tuple[ChordConfig, RingNetworkOptions]:
    """Draw a network, and timeouts that exceed a round trip in it, so that only faults break A2."""
    slowest = random.choice((0.005, 0.05, 0.1))
    config = ChordConfig(
        list_length=options.list_length,
        stabilize_seconds=random.choice((0.3, 1.0)),
        answer_seconds=2.5 * slowest,
        attempts=random.choice((1, 2)) if options.kind == "churn" else 3,
        busy_seconds=slowest,
        safeguards=SAFEGUARDS - {f"{_PREFIX}{options.ablation}"},
    )
    loss = random.choice((0.0, 0.02, 0.1)) if options.kind == "storm" else 0.0
    reorder = random.random() < 0.25
    return config, RingNetworkOptions(slowest * random.choice((0.1, 0.8)), slowest, loss, reorder)
