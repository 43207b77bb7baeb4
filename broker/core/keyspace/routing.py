"""Routing: which broker a message for a key goes to next, and the links a broker keeps so that this is soon over.

A key belongs to its *owner*, the first broker at or after it on the ring (`identifiers.successor`, when all are
known). A broker has three kinds of links:

    neighbours   predecessor and successors: kept right by the membership protocol; correctness rests on them alone
    fingers      brokers far away, at distances that grow by a power: hints that only make a way shorter
    mesh         up to MESH_BROKERS_MAX brokers everybody keeps a link to everybody, and a way is one hop

Fingers, as STATE 4.1 has them, lie at 1, 4, 16, ... on both sides, and a message goes to the link nearest to its key,
ahead or behind. Classic Chord has them at 1, 2, 4, ... ahead only (`ONE_WAY_BASE_2`), as many in number.

Why a lookup is right with any finger content, and always ends. A message carries its `Way`, which only ever grows,
and on each way a measure shrinks with every hop, whatever the tables on its path say:

    NEAREST     distance to the key, either way round (of two equally far, the one before the key wins)
    DIRECT      how far the broker lies after the key: someone who knows everybody has named you
    CLOCKWISE   how far the broker lies before the key: nobody nearer is known, so forwards, as in classic Chord
    ARRIVED     as DIRECT: a broker just before the key says that the key is yours

Way and measure depend on key and place alone, so no broker is met twice on one way, even while all tables change.
The way ends where a predecessor shows that the key is this broker's, or with ARRIVED, which only somebody says who
has the key's owner in his successor list. A predecessor that is not known is never guessed: the way then leads on
round the ring to somebody who can say.

`cluster.py` makes its table from the neighbours and from whom it has links to, anew when one of them changes, and asks
`step` for every routed message. It looks up no fingers yet: its far links are those it happens to have, which makes a
way longer and never wrong. Fingers (`finger_keys`, `links`, `Hops`) serve `travel`, which does all this over tables in
memory, for the papers' figures.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from .identifiers import RING_SIZE, distance, successor

__all__ = [
    "BOTH_WAYS_BASE_2",
    "BOTH_WAYS_BASE_4",
    "MESH_BROKERS_MAX",
    "ONE_WAY_BASE_2",
    "SUCCESSORS",
    "FingerKey",
    "FingerPlan",
    "Hops",
    "Path",
    "RoutingTable",
    "Step",
    "Way",
    "finger_keys",
    "fingers",
    "ideal_table",
    "links",
    "travel",
]

MESH_BROKERS_MAX = 64
"""Up to so many known brokers everybody keeps a link to everybody: 63 sockets cost nothing, and each hop is a delay."""

SUCCESSORS = 4
"""Length of a successor list (DESIGN 4)."""


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


@dataclass(frozen=True, slots=True)
class FingerPlan:
    """Where fingers lie: at powers of `base`, ahead only or on both sides."""

    base: int
    both_ways: bool

    def __post_init__(self) -> None:
        assert self.base >= 2

    def distances(self) -> Iterator[int]:
        """1, base, base squared ... as long as they are sensible: half the ring when there are two sides."""
        step, end = 1, RING_SIZE // 2 if self.both_ways else RING_SIZE
        while step < end:
            yield step
            step *= self.base


BOTH_WAYS_BASE_4 = FingerPlan(4, True)
"""STATE 4.1, the default: as many fingers as classic Chord, and shorter ways."""

ONE_WAY_BASE_2 = FingerPlan(2, False)
"""Classic Chord, for comparison."""

BOTH_WAYS_BASE_2 = FingerPlan(2, True)
"""Twice the fingers; what STATE calls optimal, about log2(N)/3."""


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
        return Step(self._first_from(key), Way.ARRIVED)  # not this broker: somebody is known, and nobody before the key

    def _step_back(self, key: int) -> Step:
        """Somebody said that the key is ours. It is, but for a predecessor that he has not heard of yet."""
        before = self.predecessor
        if before is not None and distance(key, before) < distance(key, self.broker):
            return Step(before, Way.ARRIVED)
        return Step(None, Way.ARRIVED)

    def validate(self) -> None:
        """Asserts what must always hold."""
        assert self.broker not in self.known
        assert set(self.successors) <= set(self.known)
        assert self.predecessor is None or self.predecessor in self.known
        assert list(self.known) == sorted(set(self.known))
        assert all(0 <= one < RING_SIZE for one in self._around)


# --- Which links ------------------------------------------------------------------------------------------------------


class FingerKey(NamedTuple):
    """What to look up for one finger: the first broker at or after the key, or the last at or before it."""

    key: int
    behind: bool


def finger_keys(table: RoutingTable, plan: FingerPlan) -> list[FingerKey]:
    """The lookups that renew the fingers, nearest first; distances within the neighbours need none."""
    broker = table.broker
    ahead = distance(broker, table.successors[-1]) if table.successors else 0
    behind = 0 if table.predecessor is None else distance(table.predecessor, broker)
    keys: list[FingerKey] = []
    for step in plan.distances():
        if step > ahead:
            keys.append(FingerKey((broker + step) % RING_SIZE, behind=False))
        if plan.both_ways and step > behind:
            keys.append(FingerKey((broker - step) % RING_SIZE, behind=True))
    return keys


def fingers(broker: int, members: Sequence[int], plan: FingerPlan) -> list[int]:
    """The fingers of a broker when all members, sorted, are known: what looking up its finger keys comes to."""
    found: dict[int, None] = {}
    for step in plan.distances():
        found[successor(members, (broker + step) % RING_SIZE)] = None
        if plan.both_ways:
            found[members[bisect_right(members, (broker - step) % RING_SIZE) - 1]] = None
    found.pop(broker, None)
    return sorted(found)


def links(table: RoutingTable, looked_up: Iterable[int], heard_of: Collection[int]) -> tuple[list[int], bool]:
    """The brokers to keep a link to, and whether that is the full mesh: everybody, as long as they are few.

    `looked_up` are the fingers, `heard_of` every broker this one knows to be alive.
    """
    everybody = {*heard_of, *table.known} - {table.broker}
    if len(everybody) < MESH_BROKERS_MAX:
        return sorted(everybody), True
    neighbours = {*table.successors} if table.predecessor is None else {*table.successors, table.predecessor}
    return sorted({*neighbours, *looked_up} - {table.broker}), False


def ideal_table(
    broker: int, members: Sequence[int], plan: FingerPlan = BOTH_WAYS_BASE_4, successors: int = SUCCESSORS
) -> RoutingTable:
    """The table of a broker once the ring has settled, fingers only: no mesh, however few the members, sorted, are."""
    place = bisect_left(members, broker)
    following = [members[(place + step) % len(members)] for step in range(1, min(successors, len(members) - 1) + 1)]
    far = fingers(broker, members, plan)
    return RoutingTable(broker, members[place - 1], following, far, both_ways=plan.both_ways)


# --- The whole way ----------------------------------------------------------------------------------------------------


class Path(NamedTuple):
    """The brokers that a message visited, the first where it set out, the last where it stayed."""

    brokers: list[int]
    way: Way
    tries: int
    """Brokers that did not answer and were passed over."""

    @property
    def hops(self) -> int:
        """Messages sent from broker to broker."""
        return len(self.brokers) - 1

    @property
    def lookup_hops(self) -> int:
        """Hops until the owner was known: papers count so, because there FINDSUCC answers (STATE Figure 2).

        The last hop of a message, from the broker that knows the owner to the owner, is not part of a lookup.
        """
        return self.hops - (self.way is Way.ARRIVED and self.hops > 0)


def travel(tables: Mapping[int, RoutingTable], origin: int, key: int) -> Path:
    """Follow a message through the tables of all live brokers; one that has no table does not answer."""
    here, way, tries = origin, Way.NEAREST, 0
    brokers = [origin]
    while True:
        table = tables[here]
        following = table.step(key, way)
        while following.broker is not None and following.broker not in tables:
            tries += 1
            table = table.without({following.broker})
            following = table.step(key, way)
        if following.broker is None:
            return Path(brokers, way, tries)
        here, way = following.broker, following.way
        brokers.append(here)
        assert len(brokers) <= len(Way) * len(tables) + 1, "no broker is met twice on one way"


@dataclass(slots=True)
class Hops:
    """How long the ways of messages were that ended here: plain counts, read by statistics."""

    messages: int = 0
    hops: int = 0
    longest: int = 0

    def add(self, hops: int) -> None:
        """One message arrived."""
        self.messages += 1
        self.hops += hops
        self.longest = max(self.longest, hops)

    @property
    def mean(self) -> float:
        """Hops a message; 0 when there was none."""
        return self.hops / self.messages if self.messages else 0.0
