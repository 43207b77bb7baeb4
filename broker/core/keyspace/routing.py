"""Routing: which broker a message for a key goes to next, and the links a broker keeps so that this is soon over.

A key belongs to its *owner*, the first broker at or after it on the ring (`identifiers.successor`, when all are
known). A broker has links to its *neighbours*, predecessor and successors, which the membership protocol keeps right:
correctness rests on them alone. All other links are hints that only make a way shorter. Up to MESH_BROKERS_MAX brokers
each keeps a link to every other, and a way is one hop.

Why a lookup is right with any finger content, and always ends. A message carries its `Way`, which only ever grows,
and on each way a measure shrinks with every hop, whatever the tables on its path say:

    NEAREST     distance to the key, either way round (of two equally far, the one before the key wins)
    DIRECT      how far the broker lies after the key: a broker that knows all others has named you
    CLOCKWISE   how far the broker lies before the key: none nearer is known, so forwards, as in classic Chord
    ARRIVED     as DIRECT: a broker just before the key says that the key is yours

Way and measure depend on key and place alone, so no broker is met twice on one way, even while all tables change.
The way ends where a predecessor shows that the key is this broker's, or with ARRIVED, which only a broker says that
has the key's owner in its successor list. A predecessor that is not known is never guessed: the way then leads on
round the ring to a broker that can say.

The cluster makes its table from the neighbours and from the brokers that it has links to, anew when one of them
changes, and asks `step` for every routed message. What fingers, far links at distances that grow by a power, would be
worth on a ring beyond the mesh is measured in `ops/bench/papers/models`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from .identifiers import RING_SIZE, distance

__all__ = ["MESH_BROKERS_MAX", "RoutingTable", "Step", "Way"]

MESH_BROKERS_MAX = 64
"""Up to so many known brokers each keeps a link to every other: 63 sockets cost nothing, and each hop is a delay."""


class Way(IntEnum):
    """How a message is looking for its key; it only ever grows."""

    NEAREST = 0
    DIRECT = 1
    CLOCKWISE = 2
    ARRIVED = 3


class Step(NamedTuple):
    """Where to next: a broker, or None when the message is at home."""

    broker: int | None
    way: Way


class RoutingTable:
    """All links of one broker at one moment; immutable."""

    __slots__ = ("_around", "both_ways", "broker", "known", "mesh", "predecessor", "successors")

    def __init__(
        self,
        broker: int,
        predecessor: int | None,
        successors: Sequence[int],
        others: Iterable[int] = (),
        *,
        both_ways: bool = True,
        mesh: bool = False,
    ) -> None:
        self.broker = broker
        self.predecessor = None if predecessor == broker else predecessor
        ahead = {one: distance(broker, one) for one in successors if one != broker}
        self.successors = tuple(sorted(ahead, key=ahead.__getitem__))
        neighbours = self.successors if self.predecessor is None else (self.predecessor, *self.successors)
        self.known: tuple[int, ...] = tuple(sorted({*neighbours, *others} - {broker}))
        """Every broker there is a link to, in the order of identifiers; not this one."""
        self._around = sorted([*self.known, broker])
        self.both_ways = both_ways
        self.mesh = mesh

    def without(self, unreachable: Collection[int]) -> RoutingTable:
        """The table when these do not answer; what is right stays right as long as one successor is left."""
        return RoutingTable(
            self.broker,
            None if self.predecessor in unreachable else self.predecessor,
            [one for one in self.successors if one not in unreachable],
            [one for one in self.known if one not in unreachable],
            both_ways=self.both_ways,
            mesh=self.mesh,
        )

    def start(self) -> Way:
        """The way on which a message sets out here."""
        if self.mesh:
            return Way.DIRECT
        return Way.NEAREST if self.both_ways else Way.CLOCKWISE

    def owns(self, key: int) -> bool:
        """Whether the key is surely this broker's: its own identifier, or what the predecessor shows."""
        if self.predecessor is None:
            return key == self.broker
        return distance(key, self.broker) < distance(self.predecessor, self.broker)

    def step(self, key: int, way: Way = Way.NEAREST) -> Step:
        """Where a message for the key goes next. One that sets out here says NEAREST, whatever the plan."""
        if not self.known or self.owns(key):
            return Step(None, way)
        if way is Way.ARRIVED:
            return self._step_back(key)
        owner = self._owner_among_successors(key)
        if owner is not None:
            return Step(owner, Way.ARRIVED)
        way = max(way, self.start())
        if way is Way.NEAREST:
            nearest = self.nearest(key)
            if nearest != self.broker:
                return Step(nearest, way)
        elif way is Way.DIRECT:
            first = self._first_from(key)
            if first != self.broker:
                return Step(first, way)
        return self._step_forwards(key)

    def nearest(self, key: int) -> int:
        """The broker nearest to the key, itself included; of two equally far the one before the key."""
        around = self._around
        place = bisect_right(around, key)
        before, after = around[place - 1], around[place % len(around)]
        return before if distance(before, key) <= distance(key, after) else after

    def _first_from(self, key: int) -> int:
        """The first broker at or after the key, itself included."""
        return self._around[bisect_left(self._around, key) % len(self._around)]

    def _owner_among_successors(self, key: int) -> int | None:
        """The owner, if the successor list reaches as far as the key."""
        ahead = distance(self.broker, key) or RING_SIZE
        return next((one for one in self.successors if ahead <= distance(self.broker, one)), None)

    def _step_forwards(self, key: int) -> Step:
        """To the last known broker before the key, or, knowing none between, to the first from it on."""
        before = self._around[bisect_left(self._around, key) - 1]
        if before != self.broker:
            return Step(before, Way.CLOCKWISE)
        return Step(self._first_from(key), Way.ARRIVED)  # not this broker: another is known, and none before the key

    def _step_back(self, key: int) -> Step:
        """A broker said that the key is ours. It is, unless there is a predecessor of which it has not heard yet."""
        before = self.predecessor
        if before is not None and distance(key, before) < distance(key, self.broker):
            return Step(before, Way.ARRIVED)
        return Step(None, Way.ARRIVED)

    def validate(self) -> None:
        """Asserts that successors and predecessor are among the known brokers, in the order of the ring."""
        assert self.broker not in self.known
        assert set(self.successors) <= set(self.known)
        assert self.predecessor is None or self.predecessor in self.known
        assert list(self.known) == sorted(set(self.known))
        assert all(0 <= one < RING_SIZE for one in self._around)
