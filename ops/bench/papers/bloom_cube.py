"""Publications on the cube at the paper's sizes: KBSP, KBPP and flooding, and what filters save (BLOOM 4, 5).

As in the paper: documents of nine kinds of 9 to 18 elements, twigs of three names, l = 1,024 and k = 1, keys of
n = log2 N bits by the fold; one subscription a broker. Each vertex is its owner's on a ring of random identifiers, each
home lays its own edges, and owners join them. The code is the product's (`ReversePaths`, `walk`), and so are its
messages: one FORWARD a sender and receiver.

    ideal      the edges on the ways to vertices where a filter that the document passes rests
    l = 0      edges without filters: a publication goes wherever there is a subscription (the paper's base line)
    handled    brokers that a publication comes to; `in vain` those of them that are on no such way
    fewer      of the brokers that handle it at l = 0, the part that does not; `at most` that is those on no such way
    messages   FORWARDs a broker reached, but for the one where it was published

**True matches bound what filters can save.** With nine kinds of documents and a subscription at each broker every
publication has many: at 1,024 brokers 20 of the 71 that handle it at l = 0 are on the way to one. So there is a second
world, of as many kinds as it takes for true matches to be rare. There filters of 1,024 bits leave 5 %, who want a name
or two that a document has by chance, and filters of 8,192 bits save the paper's 98 %.

**Key maps** on real documents: learned on one half of them, the other half published (`matching/cube/keys.py`).

**Figure 5.5**: at one moment each broker fails with probability p; the others have the copies that they have. A live
subscriber gets a publication if at each vertex on its way one of r brokers lives (the paper's r counts the owner).
`repaired`: they fail one after another, and what lost a copy is copied before the next one does.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log2
from random import Random

from rich.table import Table

from headgate.broker.core.cluster import HERE
from headgate.broker.core.forwarding import everywhere, walk
from headgate.broker.core.keyspace import FLOOD, KBPP, KBSP, RING_SIZE, Dimension, Step, Vertices, cube_dimension
from headgate.matching.cube import (
    FOLD,
    Antichain,
    Entries,
    KeyMap,
    ReversePaths,
    chosen,
    folded,
    is_below,
    minimal,
    passes,
    publication_tree,
    sampled,
)
from headgate.matching.cube import walk as walk_edges
from headgate.matching.structure import DEFAULT_SHAPE, Shape, filter_of, parse_twig
from headgate.protocol.structure import read_document

from ..wire import console
from .bloom_filtering import readable, structure_of, tree_of
from .bloom_sample import real_documents, twigs_of_tree

__all__ = [
    "BASE",
    "CUBE_SIZES",
    "Cost",
    "KINDS_RARE",
    "LENGTH_RARE",
    "MapCost",
    "World",
    "add_arguments",
    "delivered_share",
    "map_cost",
    "run",
]

CUBE_SIZES = (16, 64, 256, 1024, 4096)
_KINDS = 9
KINDS_RARE, LENGTH_RARE = 4000, 8192
"""Kinds of documents with which few want a publication, and filters long enough for them."""
_DOCUMENTS = 60
BASE = "l = 0"
_MAP_BITS = 8
_MAP_DOCUMENTS_MIN = 20
_EDGES_MORE = 0.3
"""Edges for nothing that are no matter where hardly any are needed."""

_EDGES_MAX, _MESSAGES_MAX, _SAVED_MIN = 1.1, 1.25, 0.98
"""What is to be met: edges over ideal ones, messages a broker, and of the brokers that have to do with a publication in
vain without filters, which part filters save. (Those that true matches need nothing can save; a first one comes in vain
where nobody wants it.)"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Means over publications."""

    edges: float
    handled: float
    in_vain: float
    messages: float
    handled_max: int = 0

    @property
    def needed(self) -> float:
        """Brokers that are on the way to a true match."""
        return self.handled - self.in_vain


class World:
    """Brokers on a ring, one subscription at each, and some documents."""

    def __init__(
        self, count: int, seed: int, documents: int = _DOCUMENTS, kinds_count: int = _KINDS, length: int = 1024
    ) -> None:
        random = Random(f"{seed} cube {count}")
        self.count, self.bits = count, round(log2(count))
        self.brokers = sorted({random.randrange(RING_SIZE) for _ in range(count)})
        self.dimension: Dimension = cube_dimension(Shape(length, 1).column, self.bits, KBSP, FOLD)
        self.vertices: Vertices = self.dimension.vertices("library")
        self.owners = [self._owner(self.vertices.key(vertex)) for vertex in range(1 << self.bits)]
        kinds = [_kind(random, number) for number in range(kinds_count)]
        self.asked = [_twig(random, random.choice(kinds)) for _ in range(count)]
        self._kinds, self._more = kinds, Random(f"{seed} cube {count} more")
        self.items = [_document(random, random.choice(kinds)) for _ in range(documents)]
        self.twigs = [filter_of(items, length, 1) for items in self.asked]
        self.documents = [filter_of(items, length, 1) for items in self.items]
        self.laid = self._laid()
        self._bare = {vertex: dict.fromkeys(entries, (0,)) for vertex, entries in self.laid.items()}

    def _owner(self, key: int) -> int:
        return bisect_left(self.brokers, key) % len(self.brokers)

    def _laid(self) -> dict[int, dict[int, Antichain]]:
        """The edges of all homes, joined."""
        homes: dict[int, dict[int, list[int]]] = {}
        for one in self.twigs:
            paths = ReversePaths(self.bits, self.vertices.vertex_of)
            for vertex in paths.add(one):
                for bit, filters in paths.entries[vertex].items():
                    homes.setdefault(vertex, {}).setdefault(bit, []).extend(filters)
        return {
            vertex: {bit: minimal(filters) for bit, filters in entries.items()} for vertex, entries in homes.items()
        }

    def more_twigs(self, count: int) -> list[int]:
        """The filters of other subscriptions, drawn as those of the brokers are."""
        random = self._more
        items = [_twig(random, random.choice(self._kinds)) for _ in range(count)]
        return [filter_of(one, self.vertices.length, 1) for one in items]

    def cost(self, routing: str) -> Cost:
        """What publications cost by this routing."""
        ways: dict[str, Callable[[int], Entries | None]] = {
            KBSP: partial(_at, self.laid),
            BASE: partial(_at, self._bare),
            KBPP: everywhere,
            FLOOD: everywhere,
        }
        edges = handled = in_vain = handled_max = 0
        messages = 0.0
        for document in self.documents:
            root = self.vertices.top if routing == FLOOD else self.vertices.vertex_of(document)
            waiting = deque([(self.owners[root], {(root, self.bits): [0]})])
            came: set[int] = set()
            sent = 0
            while waiting:
                me, steps = waiting.popleft()
                came.add(me)
                done = walk(self.dimension, self.vertices, [document], steps, ways[routing], partial(self._place, me))
                edges += done.local + done.remote
                for broker, parts in done.elsewhere.items():
                    sent += 1
                    on = {(one.vertex, one.cleared): list(rows) for one, rows in parts if isinstance(one, Step)}
                    waiting.append((broker, on))
            handled += len(came)
            handled_max = max(handled_max, len(came))
            in_vain += len(came - {self.owners[vertex] for way in self.ways(document).values() for vertex in way})
            messages += sent / max(1, len(came) - 1)
        count = len(self.documents)
        return Cost(edges / count, handled / count, in_vain / count, messages / count, handled_max)

    def met(self, document: int, bare: bool) -> list[int]:
        """The subscribers at the vertices that a publication comes to; `bare`: over edges without filters."""
        root = self.vertices.vertex_of(document)
        edges = walk_edges(document, root, self.bits, partial(_at, self._bare if bare else self.laid))
        came = {root, *(edge.reached for edge in edges)}
        return [home for home, one in enumerate(self.twigs) if self.vertices.vertex_of(one) in came]

    def _place(self, me: int, key: int) -> int:
        owner = self.owners[self.vertices.vertex_at(key)]
        return HERE if owner == me else owner

    def ways(self, document: int) -> dict[int, list[int]]:
        """Each vertex where a filter that the document passes rests -> the vertices on the way there, both ends too."""
        root = self.vertices.vertex_of(document)
        parent = {edge.reached: edge.vertex for edge in publication_tree(root, self.bits)}
        ways = {}
        for vertex in {self.vertices.vertex_of(one) for one in self.twigs if passes([one], document)}:
            way = ways[vertex] = [vertex]
            while way[-1] != root:
                way.append(parent[way[-1]])
        return ways

    def ideal(self) -> float:
        """Edges that no routing can do without, a publication."""
        edges = sum(len({v for way in self.ways(one).values() for v in way[:-1]}) for one in self.documents)
        return edges / len(self.documents)


def _at(laid: Mapping[int, Entries], vertex: int) -> Entries:
    return laid.get(vertex, {})


def delivered_share(world: World, copies: int, failing: float, seed: int, repaired: bool = False) -> float:
    """Figure 5.5: the share of deliveries due to live subscribers that are made, when so many brokers fail at once; or
    one after another, and the next broker takes a copy of what lost one before another fails.
    """
    random = Random(f"{seed} {copies} {failing}")
    alive = [random.random() >= failing for _ in range(world.count)]
    holders = [[(owner + step) % world.count for step in range(copies)] for owner in world.owners]
    if repaired:
        _fail_one_by_one(world.count, holders, [broker for broker in range(world.count) if not alive[broker]])
    kept = [any(alive[holder] for holder in some) for some in holders]
    due = made = 0
    homes: dict[int, list[int]] = {}
    for home, one in enumerate(world.twigs):
        homes.setdefault(world.vertices.vertex_of(one), []).append(home)
    for document in world.documents:
        for vertex, way in world.ways(document).items():
            live = sum(alive[home] for home in homes[vertex] if passes([world.twigs[home]], document))
            due += live
            made += live * all(kept[one] for one in way)
    return made / due if due else 1.0


def _fail_one_by_one(count: int, holders: list[list[int]], failing: Sequence[int]) -> None:
    """Who holds each vertex when these brokers have failed in turn; what nobody holds any more cannot be copied."""
    alive = dict.fromkeys(range(count))
    for broker in failing:
        del alive[broker]
        for some in holders:
            if broker not in some:
                continue
            some.remove(broker)
            around = (one % count for one in range(broker + 1, broker + count))
            following = next((one for one in around if one in alive and one not in some), None)
            if some and following is not None:
                some.append(following)


def _kind(random: Random, number: int) -> list[tuple[str, str]]:
    """A kind of documents: each element with the one that it is in, the root first and in none."""
    names = [f"e{number}_{place}" for place in range(random.randint(9, 18))]
    above = [random.choice(names[max(0, place - 4) : place]) if place else "" for place in range(len(names))]
    return list(zip(names, above, strict=True))


def _document(random: Random, kind: Sequence[tuple[str, str]]) -> frozenset[str]:
    there = {kind[0][0]}
    items = {f"n/{kind[0][0]}", f"r/{kind[0][0]}"}
    for name, above in kind[1:]:
        if above in there and random.random() < 0.8:
            there.add(name)
            items |= {f"n/{name}", f"s/{above}/{name}"}
    return frozenset(items)


def _twig(random: Random, kind: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Of three names, one below the other where the kind is deep enough."""
    above = dict(kind)
    names = [random.choice(kind)[0]]
    while len(names) < 3 and above[names[-1]]:
        names.append(above[names[-1]])
    return parse_twig("/".join(reversed(names))).items()


@dataclass(frozen=True, slots=True)
class MapCost:
    """What a key map makes of real documents and twigs: shares, and means over publications."""

    without_key: float
    """Twigs whose key is empty: all publications come by."""
    busiest_rest: float
    """Twigs at the vertex where most rest."""
    met: float
    """Twigs that a publication could meet by its key alone."""
    busiest_root: float
    """Publications that begin at the vertex where most do."""
    edges: float
    ideal: float


def map_cost(keys: KeyMap, documents: Sequence[int], twigs: Sequence[int]) -> MapCost:
    """What this map makes of them."""
    paths = ReversePaths(keys.bits, keys.key)
    for one in twigs:
        paths.add(one)
    rests, roots = Counter(map(keys.key, twigs)), Counter(map(keys.key, documents))
    edges = ideal = met = 0
    for document in documents:
        root = keys.key(document)
        edges += sum(1 for _ in walk_edges(document, root, keys.bits, partial(_at, paths.entries)))
        met += sum(number for vertex, number in rests.items() if is_below(vertex, root))
        parent = {edge.reached: edge.vertex for edge in publication_tree(root, keys.bits)}
        needed: set[int] = set()
        for vertex in {keys.key(one) for one in twigs if passes([one], document)}:
            while vertex != root and vertex not in needed:
                needed.add(vertex)
                vertex = parent[vertex]
        ideal += len(needed)
    count = len(documents)
    return MapCost(
        rests[0] / len(twigs),
        max(rests.values()) / len(twigs),
        met / count,
        max(roots.values()) / count,
        edges / count,
        ideal / count,
    )


def _maps(seed: int, count: int) -> Table:
    """The paper's map, sampling, and the one that is learned, on documents that it was not learned from."""
    table = Table(title=f"key maps, {1 << _MAP_BITS} vertices, {count} twigs of each set", title_justify="left")
    for heading in ("set", "map", "no key", "busiest rest", "met by key", "busiest root", "edges", "over ideal"):
        table.add_column(heading, justify="right" if heading not in ("set", "map") else "left")
    length, hashes = DEFAULT_SHAPE.length, DEFAULT_SHAPE.hashes
    for name, texts in real_documents().items():
        texts = [text for text in texts if readable(text)]
        if len(texts) < _MAP_DOCUMENTS_MIN:
            continue
        random = Random(f"{seed} {name}")
        items = [structure_of(read_document(text, "application/xml")) for text in texts]
        documents = [filter_of(one, length, hashes) for one in items]
        tree = tree_of(texts)
        twigs = [
            parse_twig(twigs_of_tree(random.choice(tree.below), random, 4)).filter(length, hashes) for _ in range(count)
        ]
        maps = {
            "fold": folded(length, _MAP_BITS),
            "sampled": sampled(length, _MAP_BITS, sum(map(len, items)) / len(items)),
            "learned": chosen(length, _MAP_BITS, documents[::2], twigs),
        }
        for kind, keys in maps.items():
            cost = map_cost(keys, documents[1::2], twigs)
            shares = (f"{one:.0%}" for one in (cost.without_key, cost.busiest_rest))
            over = f"{cost.edges / cost.ideal:.2f}" if cost.ideal else "-"
            middle = f"{cost.met:.0f}", f"{cost.busiest_root:.0%}", f"{cost.edges:.2f}", over
            table.add_row(name, kind, *shares, *middle)
        table.add_section()
    return table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own: the seed is that of `routing`."""
    parser.set_defaults(cube_sizes=CUBE_SIZES, cube_documents=_DOCUMENTS, cube_twigs=200)


def run(arguments: argparse.Namespace) -> int:
    """Print the tables; 1 when something is not met."""
    seed, target, good = arguments.seed, console(), True
    table = Table(title=f"BLOOM 4: a publication on the cube, seed {seed}", title_justify="left")
    for heading in (
        "brokers",
        "kinds",
        "l",
        "routing",
        "edges",
        "over ideal",
        "handled",
        "fewer",
        "at most",
        "messages",
    ):
        table.add_column(heading, justify="left" if heading == "routing" else "right")
    world = None
    for count in arguments.cube_sizes:
        for kinds, length, routings in (
            (_KINDS, 1024, (KBSP, KBPP, FLOOD, BASE)),
            (KINDS_RARE, 1024, (KBSP, BASE)),
            (KINDS_RARE, LENGTH_RARE, (KBSP, BASE)),
        ):
            one = World(count, seed, arguments.cube_documents, kinds, length)
            world = one if kinds == _KINDS else world
            ideal, costs = one.ideal(), {routing: one.cost(routing) for routing in routings}
            kbsp, base = costs[KBSP], costs[BASE]
            for routing, cost in costs.items():
                table.add_row(
                    str(count),
                    str(kinds),
                    str(length),
                    routing,
                    f"{cost.edges:.1f}",
                    f"{cost.edges / ideal:.2f}" if ideal else "-",
                    f"{cost.handled:.1f}",
                    f"{1 - cost.handled / base.handled:.1%}" if routing == KBSP else "",
                    f"{1 - max(1.0, kbsp.needed) / base.handled:.1%}" if routing == KBSP else "",
                    f"{cost.messages:.2f}",
                )
            good = good and kbsp.edges <= _EDGES_MAX * ideal + _EDGES_MORE and kbsp.messages <= _MESSAGES_MAX
            good = good and kbsp.in_vain <= (1 - _SAVED_MIN) * base.in_vain + 1
        table.add_section()
    target.print(table)
    if world is not None:
        target.print(_figure_5_5(world, seed))
    target.print(_maps(seed, arguments.cube_twigs))
    return 0 if good else 1


def _figure_5_5(world: World, seed: int) -> Table:
    table = Table(title=f"Figure 5.5: deliveries to live subscribers, {world.count} brokers", title_justify="left")
    for heading in ("p", "r = 1", "r = 2", "r = 8", "r = 2, repaired", "the paper, r = 8", "Eq 5.1: all is kept"):
        table.add_column(heading, justify="right")
    for failing, paper in ((0.0, "100 %"), (0.25, "100 %"), (0.5, "about 80 %")):
        shares = [f"{delivered_share(world, copies, failing, seed):.1%}" for copies in (1, 2, 8)]
        shares.append(f"{delivered_share(world, 2, failing, seed, repaired=True):.1%}")
        table.add_row(f"{failing:.0%}", *shares, paper, f"{(1 - failing**8) ** (world.count / 8):.1%}")
    return table
