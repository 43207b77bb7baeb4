"""Multicast: one message to many brokers, over the fewest links, to each exactly once.

STATE 4.2: every link is *responsible* for the stretch of ring nearest to it. A broker cuts what it was given into the
stretches of its links, keeps its own, and hands each of the others its part; they do the same. Two forms:

    to a set        `split_set`: the destinations are named; each goes to the link responsible for it
    to a segment    `split_segment`: every broker that owns a key of an arc; nobody need know who they are

      links      a         b              c                 (a bar is half way between two neighbours)
      stretches  ....a.....|....b.........|........c........|
      segment         [====|==============|===]             -> a, b and c get one piece each

Exactly once, whatever the fingers say: the parts of one split never overlap and together are what was split, and each
destination's way shrinks with every hop, as in `routing`, which decides where a stretch is not simply the nearest
link's. Wrong fingers make a tree deep, at worst as deep as the ring is long; with right ones no branch is longer than
the way of a message to its end, for each branch is such a way. That is at most three hops for each digit, in base 4,
of the distance, however the brokers crowd, and about log4 N where they are spread by a hash.

Where the stretches of two links meet, a broker just across the border may be the nearest link of this side's. It then
passes that piece on besides getting the message itself from the other side: one message in a hundred, in a broadcast.

A segment from `low` to `high` is two things: the brokers with identifiers from `low` up to, but without, `high`, found
by stretches; and the owner of `high`, called the *tail*, found as any key's owner is. Where the segment goes so far
round that the tail lies within it, the stretches have reached it, and it ignores the tail.

How a Node would use it beyond 64 brokers (up to so many all are linked, and it sends to each): it puts a `SetShare` or
`SegmentShare` beside the message it sends to a broker; the broker that gets it splits on with its own table. When a
link fails before its share was taken, the sender splits that part again with `table.without({broker})`: `split_set`
with the way that the destinations came on, `split_segment` with `again`. Destinations that a split calls missing are
on no ring: the owner of their place found out, who also holds the replicas of what they had. The anchor of
subscriptions multicasts deliveries to a set; a range subscription and the events of a dynamic filter go to a segment.
`spread_set` and `spread_segment` do all this over tables in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.broker.core.keyspace import RING_SIZE, RoutingTable, Segment, Way, distance

__all__ = [
    "Arc",
    "SegmentShare",
    "SetShare",
    "SetSplit",
    "Spread",
    "again",
    "before_tail",
    "split_segment",
    "split_set",
    "spread_segment",
    "spread_set",
    "start_segment",
]


class Arc(NamedTuple):
    """A stretch of the ring: `length` identifiers from `start` on; a length of RING_SIZE is all of it."""

    start: int
    length: int

    def covers(self, key: int) -> bool:
        """Whether the key lies in it."""
        return distance(self.start, key) < self.length


# --- To a set of brokers ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SetShare:
    """What one link carries of a multicast to a set."""

    broker: int
    way: Way
    destinations: list[int]


@dataclass(slots=True)
class SetSplit:
    """A multicast to a set, at one broker: is it for this one, what goes on, and who was not found."""

    here: bool
    shares: list[SetShare]
    missing: list[int]


def split_set(table: RoutingTable, destinations: Iterable[int], way: Way = Way.NEAREST) -> SetSplit:
    """Split a set among the links; a destination that is linked gets its share at once."""
    here = False
    linked = frozenset(table.known)
    last = max(way, table.start())  # for whom it is the last hop the way does not matter: one message, not two
    shares: dict[tuple[int, Way], list[int]] = {}
    missing: list[int] = []
    for destination in dict.fromkeys(destinations):
        if destination == table.broker:
            here = True
        elif destination in linked:
            shares.setdefault((destination, last), []).append(destination)
        else:
            step = table.step(destination, way)
            if step.broker is None:
                missing.append(destination)
            else:
                shares.setdefault((step.broker, step.way), []).append(destination)
    return SetSplit(here, [SetShare(broker, step, part) for (broker, step), part in shares.items()], missing)


# --- To every broker that owns a key of a segment ---------------------------------------------------------------------


def before_tail(segment: Segment) -> Arc:
    """The identifiers of all brokers concerned but the tail: `high` itself is the tail's."""
    return Arc(segment.low, distance(segment.low, segment.high))


@dataclass(slots=True)
class SegmentShare:
    """What one link carries of a multicast to a segment: stretches still to be served, and perhaps the tail."""

    broker: int
    way: Way
    arcs: list[Arc]
    tail: Way | None
    """The way on which the owner of `high` is looked for; None when that is another share's work."""


def start_segment(table: RoutingTable, segment: Segment) -> SegmentShare:
    """The whole task, as the broker that begins it gives it to itself."""
    arc = before_tail(segment)
    return SegmentShare(table.broker, Way.NEAREST, [arc] if arc.length else [], Way.NEAREST)


def again(given: SegmentShare, failed: SegmentShare) -> SegmentShare:
    """What to split again when a share, made of the given one, could not be handed over."""
    return SegmentShare(given.broker, given.way, failed.arcs, None if failed.tail is None else given.tail)


def split_segment(table: RoutingTable, segment: Segment, share: SegmentShare) -> tuple[bool, list[SegmentShare]]:
    """Split a share among the links: is the segment for this broker, and what goes on."""
    here = any(arc.covers(table.broker) for arc in share.arcs)
    shares: dict[tuple[int, Way], SegmentShare] = {}
    for broker, way, arc in _pieces(table, share):
        shares.setdefault((broker, way), SegmentShare(broker, way, [], None)).arcs.append(arc)
    if share.tail is not None:
        step = table.step(segment.high, share.tail)
        if step.broker is None:
            here = here or not before_tail(segment).covers(table.broker)
        else:
            _join_tail(shares, step.broker, step.way)
    return here, list(shares.values())


def _join_tail(shares: dict[tuple[int, Way], SegmentShare], broker: int, way: Way) -> None:
    """The tail rides on a message that goes to that broker anyway, or is one of its own."""
    for share in shares.values():
        if share.broker == broker:
            share.tail = way
            return
    shares[(broker, way)] = SegmentShare(broker, way, [], way)


def _pieces(table: RoutingTable, share: SegmentShare) -> list[tuple[int, Way, Arc]]:
    """The stretches of a share that others must serve, each with the link responsible for it."""
    if not table.known:
        return []
    nearest = share.way is not Way.CLOCKWISE and table.both_ways
    arcs = list(share.arcs)
    pieces: list[tuple[int, Way, Arc]] = []
    if nearest:
        stretches = _nearest_stretches(table)
        arcs = []
        for broker, arc in _cut(stretches, share.arcs):
            if broker != table.broker:
                pieces.append((broker, Way.NEAREST, arc))
            elif table.predecessor is None:
                arcs.append(arc)  # somebody unknown may lie just behind: reached by going round
    for broker, arc in _cut(_clockwise_stretches(table), arcs):
        if broker != table.broker:
            pieces.append((broker, Way.CLOCKWISE, arc))
    return pieces


def _nearest_stretches(table: RoutingTable) -> list[tuple[int, int]]:
    """(first identifier, broker): up to the next entry's, the broker is the nearest. Sorted by first identifier.

    Among neighbours borders are not half way: nobody is known to live between two of them, so that a piece without
    either would be a message for nothing. What lies between successors is the former's, who knows best; what lies
    between predecessor and successor is this broker's own. Only as far as half the ring, though: beyond, the former
    may be farther from the piece than this broker is, and two could hand it to and fro for ever.
    """
    around = sorted([*table.known, table.broker])
    next_one = {
        former: later
        for former, later in zip((table.broker, *table.successors), table.successors, strict=False)
        if former == table.broker or distance(table.broker, later) <= RING_SIZE // 2
    }
    stretches = []
    for left, broker in zip(around[-1:] + around[:-1], around, strict=True):
        if next_one.get(left) == broker:
            start = broker
        elif broker == table.broker and left == table.predecessor:
            start = left + 1
        else:
            start = left + distance(left, broker) // 2 + 1
        stretches.append((start % RING_SIZE, broker))
    return sorted(stretches)


def _clockwise_stretches(table: RoutingTable) -> list[tuple[int, int]]:
    """(first identifier, broker): up to the next entry's, the broker is the last before them. Sorted."""
    return [(broker, broker) for broker in sorted([*table.known, table.broker])]


def _cut(stretches: Sequence[tuple[int, int]], arcs: Iterable[Arc]) -> list[tuple[int, Arc]]:
    """The arcs cut at the borders of the stretches, each piece with the broker of its stretch."""
    starts = [start for start, _ in stretches]
    pieces: list[tuple[int, Arc]] = []
    for start, length in arcs:
        while length > 0:
            place = bisect_right(starts, start) - 1
            border = starts[(place + 1) % len(starts)]
            room = distance(start, border) or RING_SIZE
            taken = min(room, length)
            pieces.append((stretches[place][1], Arc(start, taken)))
            start, length = (start + taken) % RING_SIZE, length - taken
    return pieces


# --- The whole tree ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Spread:
    """The course of a multicast: which brokers got it how often and after how many hops, and its cost."""

    times: dict[int, int] = field(default_factory=dict)
    """Broker -> how often it was told that the message is for it; right is 1."""
    depth: dict[int, int] = field(default_factory=dict)
    """Broker -> hops on its branch."""
    messages: int = 0
    missing: list[int] = field(default_factory=list)

    def arrive(self, broker: int, depth: int) -> None:
        """The message is for this broker."""
        self.times[broker] = self.times.get(broker, 0) + 1
        self.depth[broker] = max(depth, self.depth.get(broker, 0))


def spread_set(tables: Mapping[int, RoutingTable], origin: int, destinations: Iterable[int]) -> Spread:
    """Follow a multicast to a set through the tables of all live brokers; one without a table does not answer."""
    spread = Spread()
    tasks = deque([(tables[origin], SetShare(origin, Way.NEAREST, list(destinations)), 0)])
    while tasks:
        table, given, depth = tasks.popleft()
        assert depth <= len(Way) * len(tables), "no broker is met twice on one way"
        split = split_set(table, given.destinations, given.way)
        if split.here:
            spread.arrive(table.broker, depth)
        spread.missing += split.missing
        for share in split.shares:
            if share.broker in tables:
                spread.messages += 1
                tasks.append((tables[share.broker], share, depth + 1))
            else:
                part = SetShare(table.broker, given.way, share.destinations)
                tasks.append((table.without({share.broker}), part, depth))
    return spread


def spread_segment(tables: Mapping[int, RoutingTable], origin: int, segment: Segment) -> Spread:
    """The same for a segment."""
    spread = Spread()
    tasks = deque([(tables[origin], start_segment(tables[origin], segment), 0)])
    while tasks:
        table, given, depth = tasks.popleft()
        assert depth <= 2 * len(tables), "no broker is met twice on one way"
        here, shares = split_segment(table, segment, given)
        if here:
            spread.arrive(table.broker, depth)
        for share in shares:
            if share.broker in tables:
                spread.messages += 1
                tasks.append((tables[share.broker], share, depth + 1))
            else:
                tasks.append((table.without({share.broker}), again(given, share), depth))
    return spread
