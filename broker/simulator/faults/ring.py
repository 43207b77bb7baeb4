"""Faults of the ring world, and the one who makes them happen.

    churn        brokers crash, come back in a new incarnation, and new ones join. Before a crash the snapshot is asked:
                 what would break assumptions A3 or A4 is refused and counted, so the invariant must hold at all times
    storm        the same without asking, and pauses, lost letters and partitions, symmetric or one-way: afterwards all
                 heals, and one ring must come of it

Every run draws its own rates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from headgate.broker.core.membership import Snapshot, invariant

from ..engine import RingHost, RingWorld

__all__ = ["RingFaultOptions", "RingNemesis", "may_crash"]

_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class RingFaultOptions:
    """Mean seconds between faults of a kind; infinity means never."""

    churn_seconds: float = _NEVER
    pause_seconds: float = _NEVER
    partition_seconds: float = _NEVER
    within_assumptions: bool = True
    sees_answers: bool = True
    """Whether the nemesis spares lists under way as well; without, A3 is read for the members' own lists only."""

    @classmethod
    def churn(cls, random: Random, within_assumptions: bool = True, sees_answers: bool = True) -> RingFaultOptions:
        """Joins, crashes and restarts, from calm to wild."""
        seconds = random.choice((0.05, 0.15, 0.5))
        return cls(churn_seconds=seconds, within_assumptions=within_assumptions, sees_answers=sees_answers)

    @classmethod
    def storm(cls, random: Random) -> RingFaultOptions:
        """Everything at once."""
        return cls(random.choice((0.5, 2.0, 8.0)), random.choice((2.0, 8.0)), random.choice((4.0, 12.0)), False)


def may_crash(snapshot: Snapshot, host: RingHost, list_length: int, sees_answers: bool) -> bool:
    """Whether A3 and A4 allow it: without this broker the invariant still holds."""
    machine = host.machine
    if machine is None or machine.ring is None:
        return True
    others = {member: pointers for member, pointers in snapshot.members.items() if member != machine.me}
    answers = [answer for answer in snapshot.answers if answer[0] != machine.me] if sees_answers else []
    return not invariant(Snapshot(others, answers), list_length)


class RingNemesis:
    """Makes faults happen until it is told to stop."""

    def __init__(self, world: RingWorld, options: RingFaultOptions) -> None:
        self.world = world
        self.options = options
        self.counts: Counter[str] = Counter()
        self._random = Random(f"{world.seed}/faults")
        self._active = True
        self._size = len(world.brokers)
        self._later(options.churn_seconds, self._churn)
        self._later(options.pause_seconds, self._pause)
        self._later(options.partition_seconds, self._partition)

    def stop(self) -> None:
        """No more faults; partitions heal, and who was paused goes on."""
        self._active = False
        self.world.cut.clear()
        for host in self.world.living():
            host.resume()
        for address in self.world.first:  # seeds come back: a newcomer whose seeds are all dead can find nobody
            if self.world.brokers[address].machine is None:
                self._bring_back(self.world.brokers[address])

    def _later(self, mean_seconds: float, action: Callable[[], None]) -> None:
        if mean_seconds < _NEVER:
            self.world.after(self._random.expovariate(1.0 / mean_seconds), action)

    def _churn(self) -> None:
        if self._active:
            self._random.choice((self._crash, self._crash, self._restart, self._join))()
            self._later(self.options.churn_seconds, self._churn)

    def _crash(self) -> None:
        living = self.world.living()
        if not living:
            return
        host = self._random.choice(living)
        snapshot, options = self.world.snapshot(), self.options
        allowed = may_crash(snapshot, host, self.world.config.list_length, options.sees_answers)
        if options.within_assumptions and not allowed:
            self.counts["refused"] += 1
            return
        self.counts["crashes"] += 1
        host.crash()
        self._done()

    def _restart(self) -> None:
        dead = [host for host in self.world.brokers.values() if host.machine is None]
        if dead:
            self.counts["restarts"] += 1
            self._bring_back(self._random.choice(dead))
            self._done()

    def _bring_back(self, host: RingHost) -> None:
        """Start it with some living contacts: a broker stores those it had, or the dead seeds alone open a new ring."""
        living = [host.address for host in self.world.living()]
        host.seeds = (*self.world.first, *self._random.sample(living, min(3, len(living))))
        host.start()

    def _join(self) -> None:
        living = [host.address for host in self.world.living()]
        if living and len(living) < 2 * self._size:
            self.counts["joins"] += 1
            seeds = [*self.world.first, *self._random.sample(living, min(3, len(living)))]
            self.world.add(f"broker-{len(self.world.brokers)}", seeds).start()
            self._done()

    def _done(self) -> None:
        self.world.changed = True
        self.world.steps_done += 1

    def _pause(self) -> None:
        if self._active:
            living = self.world.living()
            if living:
                host = self._random.choice(living)
                self.counts["pauses"] += 1
                host.pause()
                self.world.after(self._random.uniform(0.1, 8.0), host.resume)
            self._later(self.options.pause_seconds, self._pause)

    def _partition(self) -> None:
        """Cut the brokers in two, both ways or one, for a while."""
        if not self._active:
            return
        one_side = {host for host in self.world.brokers if self._random.random() < 0.5}
        both_ways = self._random.random() < 0.6
        self.counts["partitions" if both_ways else "one-way partitions"] += 1
        for low in self.world.brokers:
            for high in self.world.brokers:
                if low in one_side and high not in one_side:
                    self.world.cut[low, high] = None
                    if both_ways:
                        self.world.cut[high, low] = None
        self.world.after(self._random.uniform(0.5, 10.0), self.world.cut.clear)
        self._later(self.options.partition_seconds, self._partition)
