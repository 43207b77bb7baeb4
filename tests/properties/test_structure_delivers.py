"""Property: by whichever way events go on the cube, a cluster delivers what brute force over filters says, each once.

Documents and twigs are of few names, so that filters of 64 bits say yes often, by chance as well.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import pytest

from headgate.broker.core.keyspace import ROUTINGS
from headgate.matching import XPath, evaluate, extensions, parse_condition
from headgate.matching.cube import chosen
from headgate.matching.structure import DEFAULT_SHAPE, filter_of, pack, parse_twig
from headgate.protocol.data import encode_column
from headgate.protocol.messages import Answer, Ask, Error, Gap, Suback, Unsubscribe
from tests.support.builders import quote_batch
from tests.support.node_cluster import NodeCluster, events_of

NAMES = "abcdefghijkl"
COLUMN = DEFAULT_SHAPE.column


def items_of(tree: Any, above: str = "") -> set[str]:
    """The items of a document: a name, and what is below it."""
    name, below = tree
    found = {f"n/{name}", f"s/{above}/{name}" if above else f"r/{name}"}
    return found.union(*(items_of(one, name) for one in below))


def drawn(random: Random, depth: int) -> Any:
    return random.choice(NAMES), [drawn(random, depth - 1) for _ in range(random.randrange(4) if depth else 0)]


class StructureRun:
    """One cluster, its twigs, and what was published."""

    def __init__(self, seed: int, routing: str, brokers: int = 5, **config: Any) -> None:
        self.random = Random(seed)
        self.cluster = NodeCluster(brokers, seed, check_every=10, **config)
        self.clients = [self.cluster.connect(name) for name in self.cluster.hosts]
        self.live: dict[int, tuple[int, str]] = {}
        self.numbers = 0
        self.sequences: dict[str, int] = defaultdict(int)
        self.put({"structure.routing": routing})

    def put(self, schema: dict[str, Any]) -> None:
        teller = self.random.choice(self.clients)
        teller.take()
        teller.send(Ask(1, "schema.put", {"stream": "quotes", "schema": schema}))
        self.cluster.until(lambda: bool(teller.of(Answer)))

    def twig(self) -> str:
        random = self.random
        first, second, third = (random.choice(NAMES) for _ in range(3))
        return random.choice(
            [f"/{first}", f"{first}/{second}", f"{first}[{second}]/{third}", f"{first}/{second}/{third}"]
        )

    def ask(self, count: int) -> None:
        cluster, random = self.cluster, self.random
        for _ in range(count):
            self.numbers += 1
            client, condition = random.randrange(len(self.clients)), f"XPATH '{self.twig()}'"
            condition += random.choice(["", "", " AND price > 5", " AND symbol = 'OTE'"])
            self.clients[client].subscribe(self.numbers, "quotes", condition)
            self.live[self.numbers] = client, condition
        acknowledged: set[int] = set()

        def in_force() -> bool:
            acknowledged.update(said.subscription for client in self.clients for said in client.of(Suback))
            return len(acknowledged) >= count

        cluster.until(in_force)

    def end(self, share: float) -> None:
        for number in [number for number in self.live if self.random.random() < share]:
            client, _ = self.live.pop(number)
            self.clients[client].send(Unsubscribe(number, number))

    def publish(self) -> list[tuple[str, int, dict[str, Any], int | None]]:
        random, events = self.random, []
        for client in self.clients:
            count = random.choice([1, 3, 20])
            filters: list[int | None] = [
                filter_of(items_of(drawn(random, 4)), DEFAULT_SHAPE.length, DEFAULT_SHAPE.hashes) for _ in range(count)
            ]
            for row in range(count):
                if random.random() < 0.1:
                    filters[row] = random.choice([None, 0])
            columns: dict[str, list[Any]] = {
                "price": random.choices([1, 7], k=count),
                "symbol": random.choices(["OTE", "IBM"], k=count),
            }
            origin = client.host.node.config.origin
            base = self.sequences[origin]
            batch = quote_batch(bodies=["x"] * count, **columns)
            if random.random() < 0.1:  # a client that knows nothing of structure
                filters = [None] * count
            else:
                packed = [None if one is None else pack(one, DEFAULT_SHAPE.length) if one else b"" for one in filters]
                batch.columns[COLUMN] = encode_column(packed)
            client.publish(batch)
            self.sequences[origin] += count
            for row in range(count):
                events.append((origin, base + row, {name: one[row] for name, one in columns.items()}, filters[row]))
        self.cluster.run(1.0)
        return events

    def check(self, events: list[tuple[str, int, dict[str, Any], int | None]]) -> None:
        expected: dict[int, list[tuple[int, str, int]]] = {place: [] for place in range(len(self.clients))}
        for number, (client, condition) in self.live.items():
            tree = parse_condition(condition)
            (twig,) = (parse_twig(one.twig) for one in extensions(tree) if isinstance(one, XPath))
            wanted = twig.filter(DEFAULT_SHAPE.length, DEFAULT_SHAPE.hashes)
            for origin, place, attributes, known in events:
                if evaluate(tree, attributes) is True and (known is None or not wanted & ~known):
                    expected[client].append((number, origin, place))
        for place, subscriber in enumerate(self.clients):
            assert sorted(events_of(subscriber.got)) == sorted(expected[place])
            assert not subscriber.of(Gap) and not subscriber.of(Error)
            subscriber.take()

    def total(self, name: str) -> int:
        return sum(getattr(node.forwarding, name) for node in self.cluster.nodes)


def played(seed: int, routing: str, brokers: int = 5, learns: bool = False, **config: Any) -> StructureRun:
    run = StructureRun(seed, routing, brokers, **config)
    for turn in range(3):
        if learns and turn:  # who subscribes from now on rests on another cube than those who are there
            run.put({"structure.map": learned_map(run.random)})
        run.ask(12)
        run.check(run.publish())
        if turn == 1:
            run.end(0.6)
            run.cluster.run(0.5)
            run.check(run.publish())
    return run


def learned_map(random: Random) -> str:
    def drawn_filter(depth: int) -> int:
        return filter_of(items_of(drawn(random, depth)), DEFAULT_SHAPE.length, DEFAULT_SHAPE.hashes)

    return chosen(
        DEFAULT_SHAPE.length, 8, [drawn_filter(4) for _ in range(20)], [drawn_filter(1) for _ in range(20)]
    ).name


@pytest.mark.parametrize("routing", ROUTINGS)
def test_the_same_while_key_maps_are_learned(routing: str) -> None:
    run = played(11, routing, learns=True, replicas=1)
    cubes = {cube for node in run.cluster.nodes for cube in node.registry.usage.summaries["quotes"].cubes}
    assert len({cube.phi for cube in cubes}) == 3 and len(set(map(str, cubes))) == 3


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("replicas", [0, 1, 2])
def test_everybody_gets_exactly_the_documents_that_its_twig_lets_through(routing: str, replicas: int) -> None:
    run = played(replicas, routing, replicas=replicas)
    assert run.total("forwarded") and run.total("edges_local") + run.total("edges_remote")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_the_same_in_many_worlds(seed: int) -> None:
    random = Random(seed)
    played(seed, random.choice(ROUTINGS), random.choice([1, 2, 3, 5, 6, 7]), replicas=random.choice([0, 1, 2]))


def test_what_nobody_asks_for_any_more_leaves_nothing_behind() -> None:
    run = played(7, "kbsp", replicas=1)
    run.end(1.0)
    run.cluster.run(1.0)
    for node in run.cluster.nodes:
        kinds = {str(item.name[0]) for item in node.cluster.kv.items.table.values() if item.value is not None}
        assert not kinds & {"sub", "edge", "use"}
        assert not node.registry.edges.kept("quotes")


def test_following_edges_costs_less_than_looking_everywhere() -> None:
    edges = {}
    for routing in ROUTINGS:
        run = played(3, routing, replicas=0)
        edges[routing] = run.total("edges_local") + run.total("edges_remote")
    assert edges["kbsp"] < edges["kbpp"] < edges["flood"]
