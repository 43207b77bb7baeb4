"""The ring world: many membership machines on one heap, over a network that delays, loses and cuts.

    RingWorld(seed, options)      the heap is that of `World`. The network, the faults and each broker have random
                                  streams of their own, so that one more draw in one changes nothing in the others
    RingHost                      one broker: its machine while it lives, its stored incarnation when it does not
    snapshot()                    all members' pointers and the lists that answers under way lead to, for the oracle

Links keep the order of what is sent (they are TCP connections), unless `reorder` is set. Loss stands for a link that
breaks: what was on it does not arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from headgate.broker.core.membership import (
    Chord,
    ChordConfig,
    ChordEffect,
    ChordInput,
    Heard,
    Letter,
    Member,
    Pointers,
    Post,
    Reborn,
    Snapshot,
    State,
    Tick,
    adopted,
    member_of,
)

from .world import World

__all__ = ["RingHost", "RingNetworkOptions", "RingWorld", "outcome", "pointers_of", "snapshot_of"]


@dataclass(frozen=True, slots=True)
class RingNetworkOptions:
    """How messages between machines travel."""

    latency_seconds_min: float = 0.001
    latency_seconds_max: float = 0.05
    loss_probability: float = 0.0
    reorder: bool = False


class RingHost:
    """One broker of the world: its machine while it runs, its incarnation always."""

    def __init__(self, world: RingWorld, address: str, seeds: Sequence[str]) -> None:
        self.world = world
        self.address = address
        self.seeds = tuple(seeds)
        self.incarnation = 0
        self.machine: Chord | None = None
        self.paused = False
        self.waiting: list[ChordInput] = []
        self._armed = float("inf")
        self._generation = 0

    def start(self) -> None:
        """Start the broker in a new incarnation."""
        assert self.machine is None
        self.incarnation += 1
        member = member_of(self.address, self.incarnation, self.address)
        random = Random(f"{self.world.seed}/{self.address}/{self.incarnation}")
        self.machine = Chord(member, self.seeds, self.world.config, random, self.world.now)
        self.arm()

    def crash(self) -> None:
        """Crash: only the stored incarnation is kept. Messages already sent still arrive."""
        self.machine = None
        self.paused = False
        self.waiting.clear()
        self._generation += 1

    def pause(self) -> None:
        """Pause, as SIGSTOP does: messages pile up."""
        self.paused = True

    def resume(self) -> None:
        """Resume, and handle what has piled up."""
        if self.paused:
            self.paused = False
            for happened in self.waiting[:]:
                self.feed(happened)
            self.waiting.clear()
            self._armed = float("nan")
            self.arm()

    def feed(self, happened: ChordInput) -> None:
        """Handle one input: the four steps of every host."""
        machine = self.machine
        if machine is None:
            return
        if self.paused:
            if isinstance(happened, Heard):
                self.waiting.append(happened)
            return
        before, steps = pointers_of(machine), _steps(machine)
        effects = machine.handle(happened, self.world.now)
        for effect in effects:
            if isinstance(effect, Reborn):
                self.incarnation = max(self.incarnation, effect.member.incarnation)
            elif isinstance(effect, Post):
                self.world.post(self, effect)
        self.world.steps_done += max(0, _steps(machine) - steps)
        self.world.changed = self.world.changed or before != pointers_of(machine)
        self.world.watch(self, happened, effects)
        self.arm()

    def arm(self) -> None:
        """Arm the one timer for the machine's deadline."""
        assert self.machine is not None
        deadline = self.machine.next_deadline()
        if deadline != self._armed:
            self._armed = deadline
            self._generation += 1
            generation = self._generation
            self.world.after(max(1e-6, deadline - self.world.now), lambda: self._wake(generation))

    def _wake(self, generation: int) -> None:
        if generation == self._generation and not self.paused:
            self._armed = float("nan")
            self.feed(Tick())


class RingWorld(World):
    """Membership machines on one heap, and the messages under way between them."""

    def __init__(self, seed: int, config: ChordConfig, network: RingNetworkOptions) -> None:
        super().__init__(seed)
        self.seed = seed
        self.config = config
        self.network = network
        self.brokers: dict[str, RingHost] = {}
        self.cut: dict[tuple[str, str], None] = {}
        self.changed = False
        self.steps_done = 0
        """Protocol steps that any broker finished, and faults."""
        self.letters = 0
        self.lost_letters = 0
        self.watch: Callable[[RingHost, ChordInput, Sequence[ChordEffect]], None] = lambda host, happened, effects: None
        self.first: dict[str, None] = {}
        """The seeds, which the nemesis starts again in the end."""
        self._network_random = Random(f"{seed}/network")
        self._arrivals: dict[tuple[str, str], float] = {}
        self._states_under_way: dict[int, tuple[RingHost, Letter]] = {}

    def add(self, address: str, seeds: Sequence[str]) -> RingHost:
        """Add a broker, which is not started yet."""
        self.brokers[address] = host = RingHost(self, address, seeds)
        return host

    def open_ring(self, count: int, seeds: int = 3) -> None:
        """Start with so many members, whose pointers are ideal."""
        addresses = [f"broker-{number}" for number in range(count)]
        for address in addresses:
            self.add(address, addresses[:seeds]).start()
        self.first = dict.fromkeys(addresses[:seeds])
        machines = [host.machine for host in self.brokers.values() if host.machine is not None]
        members = [machine.me for machine in machines]
        for machine in machines:
            machine.found(members, self.now)
        for host in self.brokers.values():
            host.arm()

    def living(self) -> list[RingHost]:
        """The brokers that run, paused or not."""
        return [host for host in self.brokers.values() if host.machine is not None]

    def post(self, sender: RingHost, post: Post) -> None:
        """Send a message, or lose it."""
        self.letters += 1
        random, network, pair = self._network_random, self.network, (sender.address, post.address)
        latency = random.uniform(network.latency_seconds_min, network.latency_seconds_max)
        lost = network.loss_probability > 0.0 and random.random() < network.loss_probability
        receiver = self.brokers.get(post.address)
        if receiver is None or lost or pair in self.cut:
            self.lost_letters += 1
            return
        arrival = self.now + latency
        if not network.reorder:
            arrival = self._arrivals[pair] = max(arrival, self._arrivals.get(pair, 0.0))
        letter = post.letter
        if isinstance(letter.body, State):
            self._states_under_way[id(letter)] = (receiver, letter)
            self.changed = True
        self.after(arrival - self.now, lambda: self._arrive(receiver, letter, pair))

    def _arrive(self, receiver: RingHost, letter: Letter, pair: tuple[str, str]) -> None:
        self._states_under_way.pop(id(letter), None)
        if pair in self.cut:
            self.lost_letters += 1
        else:
            receiver.feed(Heard(letter))

    def snapshot(self) -> Snapshot:
        """The pointers of all members now, and the lists to which answers under way will lead."""
        machines = [host.machine for host in self.brokers.values() if host.machine is not None]
        return snapshot_of(machines, [(host.machine, letter) for host, letter in self._states_under_way.values()])


def _steps(machine: Chord) -> int:
    """Protocol steps that this machine finished; entering a ring counts as one."""
    return 0 if machine.ring is None else machine.ring.steps_done + 1


def snapshot_of(machines: Iterable[Chord], answers: Iterable[tuple[Chord | None, Letter]]) -> Snapshot:
    """The pointers of these machines now; `answers` are messages under way, each with its receiver."""
    members: dict[Member, Pointers] = {}
    for machine in machines:
        if machine.ring is not None:
            members[machine.me] = Pointers(machine.ring.predecessor, machine.ring.successors)
    lists = [outcome(machine, letter) for machine, letter in answers]
    return Snapshot(members, [one for one in lists if one])


def outcome(machine: Chord | None, letter: Letter) -> tuple[Member, ...]:
    """The extended list to which this answer will lead, or () when the machine does not wait for it."""
    body = letter.body
    if machine is None or not isinstance(body, State):
        return ()
    step = None if machine.ring is None else machine.ring.step
    joining = machine.joining
    if step is not None and step.number == body.number:
        return (machine.me, *adopted(letter.sender, body.successors))
    if joining is not None and joining.number == body.number and joining.fits(letter.sender, body.successors):
        return (machine.me, *body.successors)
    return ()


def pointers_of(machine: Chord) -> object:
    """The pointers of a machine's member, to be compared with earlier ones."""
    ring = machine.ring
    return (machine.me, ring is None, ring and ring.predecessor, ring and ring.successors)
