"""Faults of the ring world.

    churn        brokers crash, start again in a new incarnation, and new ones join. Before a crash the nemesis looks at
                 the snapshot: a crash that would break assumptions A3 or A4 is refused and counted, so the invariant
                 must hold at all times
    storm        the same without looking, and pauses, lost messages and partitions, in both directions or in one. After
                 it one ring must form

Every run draws its own rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from headgate.broker.core.membership import Snapshot, invariant

from ..engine import RingHost, RingWorld
from .nemesis import NEVER, Nemesis

__all__ = ["RingFaults", "RingNemesis", "may_crash"]


@dataclass(frozen=True, slots=True)
class RingFaults:
    """Mean seconds between faults of a kind; infinity means never."""

    churn_seconds: float = NEVER
    pause_seconds: float = NEVER
    partition_seconds: float = NEVER
    within_assumptions: bool = True
    sees_answers: bool = True
    """Whether the nemesis spares lists under way too; without it, A3 is read for the members' own lists only."""

    @classmethod
    def churn(cls, random: Random, within_assumptions: bool = True, sees_answers: bool = True) -> RingFaults:
        """Joins, crashes and restarts, from calm to wild."""
        seconds = random.choice((0.05, 0.15, 0.5))
        return cls(churn_seconds=seconds, within_assumptions=within_assumptions, sees_answers=sees_answers)

    @classmethod
    def storm(cls, random: Random) -> RingFaults:
        """All kinds of faults, without asking A3 and A4."""
        return cls(random.choice((0.5, 2.0, 8.0)), random.choice((2.0, 8.0)), random.choice((4.0, 12.0)), False)


def may_crash(snapshot: Snapshot, host: RingHost, list_length: int, sees_answers: bool) -> bool:
    """Whether A3 and A4 allow it: without this broker the invariant still holds."""
    machine = host.machine
    if machine is None or machine.ring is None:
        return True
    others = {member: pointers for member, pointers in snapshot.members.items() if member != machine.me}
    answers = [answer for answer in snapshot.answers if answer[0] != machine.me] if sees_answers else []
    return not invariant(Snapshot(others, answers), list_length)


class RingNemesis(Nemesis):
    """Crashes, restarts and adds brokers; in a storm it pauses them and cuts the ring in two."""

    def __init__(self, world: RingWorld, options: RingFaults) -> None:
        super().__init__(world, Random(f"{world.seed}/faults"))
        self.world = world
        self.options = options
        self._size = len(world.brokers)
        self.every(options.churn_seconds, "churn", self._churn)
        self.every(options.pause_seconds, "pauses", self._pause)
        self.every(options.partition_seconds, "partitions", self._partition)

    def stop(self) -> None:
        """Stop the faults: partitions heal, and paused brokers resume."""
        super().stop()
        self.world.cut.clear()
        for host in self.world.living():
            host.resume()
        for address in self.world.first:  # seeds come back: a newcomer whose seeds are all dead can find nobody
            if self.world.brokers[address].machine is None:
                self._bring_back(self.world.brokers[address])

    def _churn(self) -> bool:
        self.random.choice((self._crash, self._crash, self._restart, self._join))()
        return True

    def _crash(self) -> None:
        living = self.world.living()
        if not living:
            return
        host = self.random.choice(living)
        snapshot, options = self.world.snapshot(), self.options
        allowed = may_crash(snapshot, host, self.world.config.list_length, options.sees_answers)
        if options.within_assumptions and not allowed:
            self.done["refused"] += 1
            return
        self.done["crashes"] += 1
        host.crash()
        self._done()

    def _restart(self) -> None:
        dead = [host for host in self.world.brokers.values() if host.machine is None]
        if dead:
            self.done["restarts"] += 1
            self._bring_back(self.random.choice(dead))
            self._done()

    def _bring_back(self, host: RingHost) -> None:
        """Start it with some living contacts: a broker stores those it had, or the dead seeds alone open a new ring."""
        living = [host.address for host in self.world.living()]
        host.seeds = (*self.world.first, *self.random.sample(living, min(3, len(living))))
        host.start()

    def _join(self) -> None:
        living = [host.address for host in self.world.living()]
        if living and len(living) < 2 * self._size:
            self.done["joins"] += 1
            seeds = [*self.world.first, *self.random.sample(living, min(3, len(living)))]
            self.world.add(f"broker-{len(self.world.brokers)}", seeds).start()
            self._done()

    def _done(self) -> None:
        self.world.changed = True
        self.world.steps_done += 1

    def _pause(self) -> bool:
        living = self.world.living()
        if living:
            host = self.random.choice(living)
            host.pause()
            self.world.after(self.random.uniform(0.1, 8.0), host.resume)
        return bool(living)

    def _partition(self) -> bool:
        """Cut the brokers in two, both ways or one, for a while."""
        one_side = {host for host in self.world.brokers if self.random.random() < 0.5}
        both_ways = self.random.random() < 0.6
        self.done["one-way partitions"] += not both_ways
        for low in self.world.brokers:
            for high in self.world.brokers:
                if low in one_side and high not in one_side:
                    self.world.cut[low, high] = None
                    if both_ways:
                        self.world.cut[high, low] = None
        self.world.after(self.random.uniform(0.5, 10.0), self.world.cut.clear)
        return True
