"""The figures of BLOOM, chapters 4 and 5, that count messages, bytes and links: the paper's number beside ours.

    4.7 to 4.9, 4.11  stress and stretch of links below the overlay, a random graph of routers, one to a broker
    4.10              bytes of KBPP against the saturation of the key, 2,048 brokers, 4 KB
    4.12 to 4.17      sent, received, coverage, requests a second, for filters of 0, 128 and 1,024 bits
    4.18 to 4.20      bytes of edges a broker, and bytes a second that publications take
    4.23 to 4.25      edges a publication, their ratio to l = 0, false positives
    5.2 to 5.4        bytes a second against l and against copies

Publications and subscriptions are those of `bloom_cube`, 0.1 of each a second and broker, a message of 4 KB. What is at
0 bits has the keys of 1,024 and follows the edges whatever it is. Figures 4.21 and 4.22, the upkeep of the overlay, are
those of `bloom_upkeep`. The last table says of each figure whether it is met, or why not.

Of Figure 5.3, what a copy more takes: `first` is a home's first subscription, at all vertices above its key; `later` is
one after a hundred, of which others of that home cover most; `as items` is that as brokers say it, each vertex whole.
"""

from __future__ import annotations

import argparse
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from statistics import mean

from rich.table import Table

from headgate.broker.core.keyspace import KBSP, RING_SIZE, successor
from headgate.matching.cube import ReversePaths, passes, publication_tree, subscription_tree
from headgate.matching.structure import pack

from ..wire import console
from .bloom_cube import BASE, CUBE_SIZES, KINDS_RARE, LENGTH_RARE, World
from .figures import Figure, figures
from .models import ONE_WAY_BASE_2, travel
from .routing import ring

__all__ = ["Routers", "Traffic", "add_arguments", "run", "traffic"]

_MESSAGE_BYTES = 4096
_RATE = 0.1
_DEGREE = 4
_LENGTHS = (0, 128, 1024)
_PAIRS = 300
_COPIES = 7
"""Beside the owner's: the paper's r = 8."""
_KNOWN = ("4.15", "4.19, 20", "5.3")
"""Figures that are not met with some seeds at 4,096 brokers, as their lines say."""
_HELD, _ADDED = 100, 20
"""Subscriptions of a home before those whose cost is counted, and these."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Means over publications, for one length of filters."""

    edges: float
    sent: float
    handled: float
    handled_max: int
    coverage: float
    """Subscribers that are sent it."""
    fp_abs: float
    fp_rel: float
    edge_bytes: float
    """Of the edges that a broker keeps."""


def traffic(world: World, is_bare: bool, received_bare: int = 0) -> tuple[Traffic, int]:
    """What publications cost; and how many messages subscribers' vertices get, which is what fp_rel is measured by."""
    cost = world.cost(BASE if is_bare else KBSP)
    received = wrong = 0
    coverage = []
    for document, items in zip(world.documents, world.items, strict=True):
        met = world.met(document, is_bare)
        got = [home for home in met if is_bare or passes([world.twigs[home]], document)]
        received += len(got)
        wrong += sum(not world.asked[home] <= items for home in got)
        coverage.append(len(got))
    length = world.vertices.length
    laid = sum(
        len(pack(one, length)) for entries in world.laid.values() for filters in entries.values() for one in filters
    )
    sent = cost.messages * max(0.0, cost.handled - 1)
    return (
        Traffic(
            cost.edges,
            sent,
            cost.handled,
            cost.handled_max,
            mean(coverage),
            wrong / max(1, received),
            wrong / max(1, received_bare or received),
            laid / world.count,
        ),
        received,
    )


@dataclass(frozen=True, slots=True)
class _Copied:
    """Bytes a second that a copy more takes, of a home's first subscription and of later ones."""

    first: float
    later: float
    as_items: float


def _copied(world: World, climbed: float) -> _Copied:
    """Figure 5.3: what changes at the vertices above a subscription, each time by 0.1 a second."""
    length = world.vertices.length
    size = mean(len(pack(twig, length)) for twig in world.twigs)
    twigs = world.more_twigs(_HELD + _ADDED)
    paths = ReversePaths(world.bits, world.vertices.vertex_of)
    for one in twigs[:_HELD]:
        paths.add(one)
    changed = whole = 0
    for one in twigs[_HELD:]:
        vertices = paths.add(one)
        changed += len(vertices)
        whole += sum(
            len(pack(kept, length)) for at in vertices for filters in paths.entries[at].values() for kept in filters
        )
    return _Copied(_RATE * climbed * size, _RATE * changed * size / _ADDED, _RATE * whole / _ADDED)


@dataclass(slots=True)
class _Found:
    """What the figures are judged by."""

    traffic: dict[tuple[int, int], Traffic] = field(default_factory=dict)
    """By brokers and l."""
    climbed: dict[tuple[int, int], float] = field(default_factory=dict)
    copied: dict[int, _Copied] = field(default_factory=dict)
    links: dict[int, _Links] = field(default_factory=dict)
    kbpp: list[float] = field(default_factory=list)
    flooding: float = 0.0


@dataclass(frozen=True, slots=True)
class _Links:
    """What the links below carry, for a number of brokers."""

    stress: Sequence[float]
    cube: float
    chord: float
    direct: float
    gain: float
    scribe: float
    busiest: float
    busiest_alone: float


def _rows(seed: int, sizes: Sequence[int], documents: int, found: _Found) -> tuple[Table, Table]:
    counts = Table(title="BLOOM 4.12 to 4.17, 4.23 to 4.25, 5.4: a publication", title_justify="left")
    for heading in (
        *("brokers", "l", "edges", "/ l = 0", "sent", "received", "at most", "covers", "fp abs", "fp rel"),
        *("pub/s", "sub/s"),
    ):
        counts.add_column(heading, justify="right")
    rates = Table(title="BLOOM 4.18 to 4.20, 5.2, 5.3: bytes a second and broker", title_justify="left")
    for heading in ("brokers", "l", "in", "out", "edges kept, bytes", "r = 8: first", "later", "as items"):
        rates.add_column(heading, justify="right")
    for count in sizes:
        base: Traffic | None = None
        bare_received = 0
        for length in _LENGTHS:
            world = World(count, seed, documents, length=length or 1024)
            one, received = traffic(world, not length, bare_received)
            base, bare_received = base or one, bare_received or received
            climbed = mean(
                1 + sum(1 for _ in subscription_tree(world.vertices.vertex_of(twig), world.bits))
                for twig in world.twigs[:100]
            )
            counts.add_row(
                str(count),
                str(length),
                f"{one.edges:.1f}",
                f"{one.edges / base.edges:.2f}" if base.edges else "-",
                f"{one.sent:.1f}",
                f"{one.handled:.1f}",
                str(one.handled_max),
                f"{one.coverage:.1f}",
                f"{one.fp_abs:.3f}",
                f"{one.fp_rel:.4f}",
                f"{_RATE * one.handled:.2f}",
                f"{_RATE * climbed:.2f}",
            )
            copied = _copied(world, climbed)
            found.traffic[count, length], found.climbed[count, length], found.copied[count] = one, climbed, copied
            rates.add_row(
                str(count),
                str(length),
                f"{_RATE * one.handled * _MESSAGE_BYTES:.0f}",
                f"{_RATE * one.sent * _MESSAGE_BYTES:.0f}",
                f"{one.edge_bytes:.0f}",
                *(f"{_COPIES * each:.0f}" for each in (copied.first, copied.later, copied.as_items)),
            )
        counts.add_section()
        rates.add_section()
    return counts, rates


class Routers:
    """A connected random graph, with the shortest way between any two."""

    def __init__(self, count: int, random: Random) -> None:
        self.links: list[dict[int, None]] = [{} for _ in range(count)]
        for one in range(1, count):
            self._join(one, random.randrange(one))
        while sum(map(len, self.links)) < _DEGREE * count:
            self._join(random.randrange(count), random.randrange(count))
        self._ways: dict[int, list[int]] = {}

    def _join(self, one: int, other: int) -> None:
        if one != other:
            self.links[one][other] = self.links[other][one] = None

    def way(self, start: int, end: int) -> list[tuple[int, int]]:
        """The links from one to the other, each with the lower number first."""
        before = self._ways.get(start)
        if before is None:
            before = self._ways[start] = [-1] * len(self.links)
            before[start] = start
            waiting = deque([start])
            while waiting:
                at = waiting.popleft()
                for near in self.links[at]:
                    if before[near] < 0:
                        before[near] = at
                        waiting.append(near)
        way = []
        while end != start:
            way.append((min(end, before[end]), max(end, before[end])))
            end = before[end]
        return way

    def load(self, hops: Iterable[tuple[int, int]]) -> Counter[tuple[int, int]]:
        """How many packets each link carries, one for each of these hops."""
        return Counter(link for start, end in hops for link in self.way(start, end))


def _stretch(routers: Routers, where: Mapping[int, int], path: Sequence[int]) -> float:
    """How many times as many links below as on the shortest way; 0 for a way to itself."""
    below = sum(len(routers.way(where[one], where[other])) for one, other in pairwise(path))
    return below / len(routers.way(where[path[0]], where[path[-1]])) if path[0] != path[-1] else 0.0


def _drawn_key(random: Random, bits: int, saturation: float) -> int:
    return sum(1 << bit for bit in random.sample(range(bits), round(bits * saturation)))


def _links(seed: int, sizes: Sequence[int], found: _Found) -> Table:
    """Figures 4.7 to 4.9 and 4.11: what the links below carry, of trees and of one message to each."""
    table = Table(title="BLOOM 4.7 to 4.9, 4.11: links below the overlay", title_justify="left")
    for heading in (
        *("brokers", "stress 20 %", "50 %", "75 %", "stretch: cube", "Chord", "direct", "gain", "Scribe's"),
        *("busiest link, KB", "without the cube"),
    ):
        table.add_column(heading, justify="right")
    for count in sizes:
        random = Random(f"{seed} links {count}")
        bits = (count - 1).bit_length()
        routers, place = Routers(count, random), list(range(count))
        random.shuffle(place)  # a vertex is anywhere below
        stress = []
        for saturation in (0.2, 0.5, 0.75):
            some = []
            for _ in range(10):
                key = _drawn_key(random, bits, saturation)
                load = routers.load((place[edge.vertex], place[edge.reached]) for edge in publication_tree(key, bits))
                some.append(mean(load.values()) if load else 0.0)
            stress.append(mean(some))
        tables = ring(count, ONE_WAY_BASE_2, 4, seed)
        brokers = sorted(tables)
        where = dict(zip(brokers, place, strict=True))
        edges, unicast, scribe = 0, 0, 0
        busiest, busiest_alone = [], []
        for _ in range(10):
            key = _drawn_key(random, bits, 0.5)
            reached = list(publication_tree(key, bits))
            hops = [(place[edge.vertex], place[edge.reached]) for edge in reached]
            alone = [(place[key], end) for _, end in hops]
            joins = [travel(tables, brokers[edge.reached], brokers[key]).brokers for edge in reached]
            tree = {(where[above], where[one]): None for path in joins for one, above in pairwise(path)}
            load, load_alone = routers.load(hops), routers.load(alone)
            edges, unicast = edges + load.total(), unicast + load_alone.total()
            scribe += routers.load(tree).total()
            busiest.append(max(load.values()))
            busiest_alone.append(max(load_alone.values()))
        chord, cube, direct = [], [], []
        for _ in range(_PAIRS):
            one, other = random.choice(brokers), random.choice(brokers)
            chord.append(_stretch(routers, where, travel(tables, one, other).brokers))
            direct.append(_stretch(routers, where, (one, other)))
            vertex = random.randrange(1, 1 << bits)
            child = vertex ^ 1 << random.choice([bit for bit in range(bits) if vertex >> bit & 1])
            owner, key = (successor(brokers, one * (RING_SIZE >> bits)) for one in (vertex, child))
            cube.append(_stretch(routers, where, travel(tables, owner, key).brokers))
        links = found.links[count] = _Links(
            stress,
            mean(filter(None, cube)),
            mean(filter(None, chord)),
            mean(filter(None, direct)),
            1 - edges / unicast,
            1 - scribe / unicast,
            mean(busiest) * 4,
            mean(busiest_alone) * 4,
        )
        table.add_row(
            str(count),
            *(
                f"{each:.2f}"
                for each in (*links.stress, links.cube, links.chord, links.direct, links.gain, links.scribe)
            ),
            *(f"{each:.0f}" for each in (links.busiest, links.busiest_alone)),
        )
    return table


def _saturation(seed: int, found: _Found) -> Table:
    """Figure 4.10: the tree of a key is all there is to it."""
    bits, random = 11, Random(f"{seed} saturation")
    table = Table(title="BLOOM 4.10: KB a publication by KBPP, 2,048 brokers", title_justify="left")
    for heading in ("saturation", "KBPP", "flooding"):
        table.add_column(heading, justify="right")
    flooding = (1 << bits) - 1
    found.flooding = 4 * flooding
    for saturation in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
        edges = mean(
            sum(1 for _ in publication_tree(sum(1 << bit for bit in range(bits) if random.random() < saturation), bits))
            for _ in range(200)
        )
        table.add_row(f"{saturation:.0%}", f"{4 * edges:.0f}", str(4 * flooding))
        found.kbpp.append(4 * edges)
    return table


def _judged(found: _Found, sizes: Sequence[int], rare: tuple[int, Traffic, Traffic]) -> list[Figure]:
    """Each figure of the paper, by what was found at the most brokers; what it says of 1,024 by those."""
    most, middle = max(sizes), min(1024, max(sizes))
    by, short = found.traffic, middle
    grown = [by[count, 1024] for count in sizes]
    bare, some, full = (by[most, length] for length in _LENGTHS)
    links, first = found.links[most], found.links[min(sizes)]
    fewer = 1 - by[middle, 1024].handled / by[middle, 0].handled
    edges_left = by[middle, 1024].edges / by[middle, 0].edges
    rare_count, rare_bare, rare_full = rare
    rare_fewer, rare_left = 1 - rare_full.handled / rare_bare.handled, rare_full.edges / max(1.0, rare_bare.edges)
    rates = [_RATE * count * _MESSAGE_BYTES / 1000 for count in (full.handled, full.sent)]
    copied = found.copied[most]
    matches = f"{by[short, 1024].coverage:.0f} of {short} subscribers want a publication of nine kinds"
    few = f"with {KINDS_RARE} kinds and l = {LENGTH_RARE}, where few want one"
    falls = all(
        by[count, 0].handled >= by[count, 128].handled * 0.98 >= by[count, 1024].handled * 0.96 for count in sizes
    )
    return [
        Figure(
            "4.7",
            "stress grows with brokers and saturation",
            list(links.stress) == sorted(links.stress) and links.stress[-1] > first.stress[-1],
        ),
        Figure(
            "4.8",
            "stretch as of plain Chord, flat",
            all(one.direct <= one.chord for one in found.links.values()),
            f"{links.direct:.1f}: any two have a link; by Chord {links.chord:.1f}, an edge of a cube {links.cube:.1f}",
        ),
        Figure(
            "4.9",
            "gain as of application multicast (Scribe)",
            all(one.gain >= one.scribe for one in found.links.values()),
            f"{links.gain:.2f}, Scribe over Chord {links.scribe:.2f}",
        ),
        Figure("4.10", "KBPP below flooding even at 60 %", max(found.kbpp) < found.flooding),
        Figure(
            "4.11",
            "the busiest link carries less with the cube",
            all(one.busiest <= one.busiest_alone for one in found.links.values()),
        ),
        Figure(
            "4.12, 13",
            "sent and received grow with brokers; fewer received the longer l",
            falls and [one.handled for one in grown] == sorted(one.handled for one in grown),
        ),
        Figure("4.14", "covers fewer the longer l", bare.coverage >= some.coverage * 0.98 >= full.coverage * 0.96),
        Figure(
            "4.15",
            "at l = 0 at most 200 of 4,096 receive one",
            bare.handled_max <= 200,
            f"{bare.handled_max} of {most}, by the fullest key that is drawn; {bare.handled:.0f} in the mean",
        ),
        Figure(
            "4.16",
            "subscriptions a second, the same for each l",
            max(found.climbed[most, one] for one in _LENGTHS)
            <= 1.25 * min(found.climbed[most, one] for one in _LENGTHS),
            "but for other keys of 128 bits",
        ),
        Figure(
            "4.17",
            "98 % fewer handled at 1,024, l = 1,024",
            rare_full.handled <= max(0.02 * rare_bare.handled, 1.2),  # it comes to one broker at least
            f"{rare_fewer:.1%} at {rare_count} {few}; {fewer:.0%} where {matches}",
        ),
        Figure("4.18", "tables of 6 Kbit", full.edge_bytes * 8 <= 6144, f"{full.edge_bytes * 8 / 1000:.1f} Kbit"),
        Figure(
            "4.19, 20",
            "8 KB/s in and 10 KB/s out from 1,024 brokers on",
            rates[0] <= 1.25 * 8 and rates[1] <= 1.25 * 10,
            f"{rates[0]:.1f} in, {rates[1]:.1f} out at {most}, where {full.coverage:.0f} are sent each",
        ),
        Figure("4.23", "fewer than 100 edges a publication", max(one.edges for one in grown) < 100),
        Figure(
            "4.24",
            "edges: orders of magnitude fewer than at l = 0",
            min(edges_left, rare_left) <= 0.01,
            f"{rare_left:.1%} of them {few}; {edges_left:.0%} where {matches}",
        ),
        Figure(
            "4.25",
            "fp rel below .1 at l = 128, down to .004 at 1,024",
            some.fp_rel < 0.1 and full.fp_rel <= 0.004,
            f"{some.fp_rel:.3f}, {full.fp_rel:.4f}",
        ),
        Figure("5.2, 5.4", "less traffic, and fewer received, the longer l", falls),
        Figure(
            "5.3",
            "788 B/s more at r = 8",
            _COPIES * copied.later <= 788,
            f"{_COPIES * copied.later:.0f} B/s at {most}, for filters of one home cover only its own",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own: the seed is that of `routing`."""
    parser.set_defaults(traffic_sizes=CUBE_SIZES, traffic_documents=40)


def run(arguments: argparse.Namespace) -> int:
    """Print the tables; 1 when something is not as it should be."""
    target, found = console(), _Found()
    sizes, seed, documents = arguments.traffic_sizes, arguments.seed, arguments.traffic_documents
    tables = [
        *_rows(seed, sizes, documents, found),
        _links(seed, sizes, found),
        _saturation(seed, found),
    ]
    for table in tables:
        target.print(table)
    count = min(1024, max(sizes))
    rare = World(count, seed, documents, KINDS_RARE, LENGTH_RARE)
    shown = _judged(found, sizes, (count, traffic(rare, True)[0], traffic(rare, False)[0]))
    target.print(figures("BLOOM, chapters 4 and 5: met or why not", shown))
    return 0 if all(one.is_met for one in shown if one.number not in _KNOWN) else 1
