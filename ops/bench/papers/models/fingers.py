"""Fingers: far links of a broker on a ring beyond the mesh, and the way of a message over tables in memory.

Fingers, as STATE 4.1 has them, lie at 1, 4, 16, ... on both sides, and a message goes to the link nearest to its key,
ahead or behind. Classic Chord has them at 1, 2, 4, ... ahead only (`ONE_WAY_BASE_2`), as many in number. A broker
looks up no fingers: its far links are those it happens to have, which makes a way longer and never wrong. What fingers
are worth is measured here, with the broker's own `RoutingTable`: `finger_keys` is what to look up, `links` what to
keep, `ideal_table` what comes of it, `travel` the way of one message.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headgate.broker.core.keyspace import MESH_BROKERS_MAX, RING_SIZE, RoutingTable, Way, distance, successor

__all__ = [
    "BOTH_WAYS_BASE_2",
    "BOTH_WAYS_BASE_4",
    "ONE_WAY_BASE_2",
    "SUCCESSORS",
    "FingerKey",
    "FingerPlan",
    "Hops",
    "Path",
    "finger_keys",
    "fingers",
    "ideal_table",
    "links",
    "travel",
]

SUCCESSORS = 4
"""Length of a successor list, as in the product."""


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
