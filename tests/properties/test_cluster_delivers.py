"""Property: whoever publishes and whoever subscribes, a cluster delivers what brute force says, each event once.

Random subscriptions at random brokers (equality, IN, ranges on a declared attribute, topics, OR and AND of them), in
rounds: some begin, some end, a schema comes, and then everybody publishes at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from random import Random
from typing import Any

import pytest

from headgate.matching import Pattern, evaluate, parse_condition, parse_pattern
from headgate.protocol.messages import Answer, Ask, Error, Gap, Suback, Unsuback, Unsubscribe
from tests.support.builders import quote_batch
from tests.support.node_cluster import NodeCluster, events_of

SYMBOLS = ("OTE", "IBM", "SUN", "", None, 5, 5.0, True)
PRICES = (0, 1, 1.0, 2.5, 7, 9.75, 10, 50, 99.5, 100, -3, 1e9, None, float("nan"), "7", False)
TOPICS = ("quotes", "quotes/a", "quotes/b", "quotes/a/x", "quotes/b/x", "quotes/b/y", "quotes/c/x")
PATTERNS = ("quotes", "quotes", "quotes/a", "quotes/*", "quotes/*/x", "quotes/a/x", "quotes/b/*", "quotes/c/z")
SEEDS = range(10)
SCHEMA = {"attributes": {"price": {"type": "float", "min": 0, "max": 100, "precision": 0.25}}}


class Run:
    """One cluster, what its clients asked for, and what was published."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.cluster = NodeCluster(random.choice([1, 2, 3, 4, 5, 5, 5, 6, 7]), seed, check_every=10)
        self.clients = [self.cluster.connect(name) for name in self.cluster.hosts for _ in range(2)]
        self.live: dict[int, tuple[int, Pattern, str, bool]] = {}
        self.numbers = 0
        self.sequences: dict[str, int] = defaultdict(int)
        self.acknowledged: set[int] = set()

    def predicate(self) -> str:
        random = self.random
        low, high = sorted((random.randrange(-2, 30), random.randrange(0, 110)))
        one, other = random.sample(("'OTE'", "'IBM'", "'SUN'", "''", "5"), 2)
        return random.choice(
            [
                *(f"symbol = {one}", f"symbol IN ({one}, {other})", f"symbol = {one} AND price > {low}", "live"),
                *(f"price BETWEEN {low} AND {high}", f"price > {high}", f"price <= {low}", f"price = {low}"),
                *(f"price < {low} OR price > {high}", f"symbol = {one} OR symbol = {other}", "price IS NULL"),
                *(f"symbol = {one} OR price = {low}", f"NOT price > {low}", f"price IN ({low}, {high}, 7)", ""),
                *(f"symbol LIKE 'O%' AND price < {low}", f"volume > {low}", "symbol = 'A' AND symbol = 'B'"),
            ]
        )

    def ask(self) -> None:
        """Some subscriptions begin, some end; then all of that is in force."""
        random, cluster = self.random, self.cluster
        for _ in range(random.randrange(12)):
            self.numbers += 1
            client, pattern, condition = random.randrange(len(self.clients)), random.choice(PATTERNS), self.predicate()
            ordered, exact = random.random() < 0.3, random.random() < 0.2
            self.clients[client].subscribe(self.numbers, pattern, condition, ordered=ordered, exact=exact)
            self.live[self.numbers] = client, parse_pattern(pattern, exact=exact), condition, ordered
        for number in [number for number in self.live if random.random() < 0.15]:
            client = self.live.pop(number)[0]
            self.clients[client].send(Unsubscribe(number, number))
            assert any(said == Unsuback(number, number) for said in self.clients[client].of(Unsuback))
        cluster.until(lambda: self.live.keys() <= self.in_force())

    def in_force(self) -> set[int]:
        """Numbers of subscriptions that were acknowledged, and of those that were in earlier rounds."""
        self.acknowledged |= {said.subscription for client in self.clients for said in client.of(Suback)}
        return self.acknowledged

    def declare(self) -> None:
        client = self.random.choice(self.clients)
        client.send(Ask(1, "schema.put", {"stream": "quotes", "schema": SCHEMA}))
        self.cluster.until(lambda: bool(client.of(Answer)))

    def publish(self) -> list[tuple[str, int, str, dict[str, Any]]]:
        """Everybody, all at once: (origin, place, topic, attributes) of each event."""
        random, events = self.random, []
        for _ in range(random.randrange(1, 5)):
            for client in self.clients:
                count = random.choice([1, 1, 3, 40])
                topics = random.choices(TOPICS, k=count) if random.random() < 0.8 else [random.choice(TOPICS)] * count
                columns: dict[str, list[Any]] = {
                    "symbol": random.choices(SYMBOLS, k=count),
                    "price": random.choices(PRICES, k=count),
                    "live": random.choices([True, False, None], k=count),
                }
                interest = random.choice([None, None, [], ["price"], ["symbol", "volume"]])
                origin = client.host.node.config.origin
                base = self.sequences[origin]
                client.publish(quote_batch(topics, [f"{base + row}" for row in range(count)], interest, **columns))
                self.sequences[origin] += count
                for row, topic in enumerate(topics):
                    attributes = {name: values[row] for name, values in columns.items()}
                    events.append((origin, base + row, topic, attributes))
            if random.random() < 0.5:
                self.cluster.run(random.choice([0.001, 0.002, 0.05]))
        self.cluster.run(1.0)
        return events

    def check(self, events: list[tuple[str, int, str, dict[str, Any]]]) -> None:
        expected: dict[int, list[tuple[int, str, int]]] = {place: [] for place in range(len(self.clients))}
        for number, (client, pattern, condition, _) in self.live.items():
            tree = parse_condition(condition) if condition else None
            for origin, place, topic, attributes in events:
                if pattern.matches(topic) and (tree is None or evaluate(tree, attributes) is True):
                    expected[client].append((number, origin, place))
        for place, subscriber in enumerate(self.clients):
            got = events_of(subscriber.got)
            assert sorted(got) == sorted(expected[place]), f"client {place} of {len(self.clients)}"
            assert not subscriber.of(Gap) and not subscriber.of(Error)
            assert sorted(body for _, body in subscriber.bodies) == sorted(str(event[2]) for event in got)
            for number, (_, _, _, ordered) in self.live.items():
                for origin in self.sequences:
                    seen = [event[2] for event in got if event[:2] == (number, origin)]
                    assert not ordered or seen == sorted(seen)
            subscriber.take()


@cache
def check_world(seed: int) -> Run:
    run = Run(seed)
    for turn in range(3):
        run.ask()
        if turn == 1:
            run.declare()
        for client in run.clients:
            client.take()
        run.check(run.publish())
    return run


@pytest.mark.parametrize("seed", SEEDS)
def test_everybody_gets_exactly_what_it_asked_for(seed: int) -> None:
    check_world(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_everybody_gets_exactly_what_it_asked_for_in_many_worlds(seed: int) -> None:
    check_world(seed)


def test_in_five_brokers_events_really_travel() -> None:
    """Otherwise the property would prove nothing about the ring."""
    runs = [run for run in map(check_world, SEEDS) if len(run.cluster.hosts) >= 5]
    assert len(runs) > 3
    assert all(sum(node.forwarding.forwarded for node in run.cluster.nodes) > 20 for run in runs)
    assert all(sum(node.forwarding.relayed for node in run.cluster.nodes) > 20 for run in runs)
