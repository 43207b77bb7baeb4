"""Checkers of the state of a cluster's brokers: which broker answers for which keys, with which copies and contents.

They look at moments (`look`), all of them at every broker that runs, and at the quiet end (`finish`). A broker that
stands still is looked at too: its word counts for nothing only if its leases are over by the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.broker.core import Node
from headgate.broker.core.keyspace import Scope
from headgate.broker.core.kv import Item
from headgate.broker.core.placement import Laid
from headgate.matching.cube import passes, subscription_tree

from ..engine import ClusterWorld
from ..workloads import Client, ClusterHistory
from .checker import Checker

__all__ = [
    "EdgesLaid",
    "FreshScopes",
    "NothingWaits",
    "OneOwner",
    "Replicated",
    "STATE_CHECKERS",
    "SameSummaries",
    "StateChecker",
    "scope_of",
]


class StateChecker(Checker):
    """A checker of the state of a cluster's brokers."""

    def __init__(self, world: ClusterWorld, history: ClusterHistory) -> None:
        self.world: ClusterWorld = world
        self.history = history


def scope_of(node: Node, now: float) -> Scope:
    """The keys for which a broker may answer now; asking changes nothing."""
    parts = [*node.cluster.kv.leases.scope(now), *node.cluster.kv.replicas.scope(now)]
    return Scope((arc for arc, _ in parts), 0.0, 0)


def placed(node: Node) -> Iterator[Item]:
    """The items of this broker whose clients got SUBACK, and what it told all of the interest of streams."""
    for mine in node.registry._mine.values():
        if mine.meaning is None:
            yield from mine.items
    for ways in node.registry.edges._ways.values():
        under_way = ways.failed.union(*ways.open.values())
        yield from (item for vertex, item in ways.items.items() if vertex not in under_way)


def touches(scope: Scope, item: Item) -> bool:
    """Whether some key of an item is in a scope."""
    return any(arc.touches(item.low, item.high) for arc in scope.stretches)


class FreshScopes(StateChecker):
    """A broker that answers for a key has every subscription that was confirmed there."""

    def look(self) -> None:
        """Compare the items in force with the tables of all that answer for their keys."""
        if self.history.incidents.is_apart(self.world.now):
            return
        nodes = self.world.nodes()
        scopes = [(node, scope_of(node, self.world.now)) for node in nodes]
        for home in nodes:
            for item in placed(home):
                for node, scope in scopes:
                    if touches(scope, item) and item.name not in node.cluster.kv.items.table:
                        self.fail(
                            f"{node.config.name} answers for keys of {item.name} of {home.config.name} and has it not"
                        )


class OneOwner(StateChecker):
    """No key has two owners that hold leases of others and may confirm writes."""

    def look(self) -> None:
        """Compare the arcs of owners, two by two."""
        if self.history.incidents.is_apart(self.world.now):
            return
        now, owned = self.world.now, []
        for node in self.world.nodes():
            kv = node.cluster.kv
            ready = kv.ownership.ready
            if ready is not None and kv.leases.holds(ready, now) and kv.ownership.confirm_from(ready) <= now:
                owned.append((node.config.name, ready))
        for place, (name, arc) in enumerate(owned):
            for other, another in owned[place + 1 :]:
                if arc.overlaps(another):
                    self.fail(f"{name} and {other} both own keys: {arc} and {another}")


class Replicated(StateChecker):
    """At rest every item is at its owners and their siblings, and the owners have all leases."""

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """Compare the tables of owners and siblings with all items."""
        nodes = self.world.nodes()
        wanted = min(len(nodes), self.world.options.replicas + 1)
        for node in nodes:
            if not scope_of(node, self.world.now).covers(node.cluster.me):
                self.fail(f"{node.config.name} does not answer for its own key")
        for home in nodes:
            for item in placed(home):
                copies = sum(item.name in node.cluster.kv.items.table for node in nodes)
                if copies < wanted:
                    self.fail(f"{item.name} of {home.config.name} has {copies} copies, not {wanted}")


class SameSummaries(StateChecker):
    """A broker that answers for a key knows every dimension of the subscriptions in force; at rest all brokers do."""

    def look(self) -> None:
        """Check the brokers that answer for some key."""
        if not self.history.incidents.is_apart(self.world.now):
            self._compare([node for node in self.world.nodes() if scope_of(node, self.world.now).stretches])

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """Check all brokers."""
        self._compare(self.world.nodes())

    def _compare(self, nodes: list[Node]) -> None:
        for home in self.world.nodes():
            for mine in home.registry._mine.values():
                for node in nodes if mine.meaning is None else ():
                    summary = node.registry.usage.summaries.get(mine.subscription.stream)
                    known = set() if summary is None else {*summary.dimensions, *summary.counted, *summary.cubes}
                    missing = [dimension for dimension in mine.dimensions if dimension not in known]
                    if missing:
                        stream = mine.subscription.stream
                        self.fail(
                            f"{node.config.name} does not know that {home.config.name} uses {missing[0]} of {stream}"
                        )


class EdgesLaid(StateChecker):
    """When a subscription on the cube is in force, events find it from every vertex above: each broker that answers for
    one has a filter there that covers it."""

    def __init__(self, world: ClusterWorld, history: ClusterHistory) -> None:
        super().__init__(world, history)
        self._seen: set[tuple[int, int, int]] = set()

    def look(self) -> None:
        """Check those that came into force since the last time."""
        now = self.world.now
        if self.history.incidents.is_apart(now):
            return
        for home in self.world.nodes():
            for number, mine in home.registry._mine.items():
                name = home.config.identifier, home.config.incarnation, number
                if mine.meaning is None and mine.laid is not None and name not in self._seen:
                    self._seen.add(name)
                    self._check(home, mine.laid)

    def _check(self, home: Node, laid: Laid) -> None:
        stream, dimension, asked = laid
        vertices = dimension.vertices(stream)
        scopes = [(node, scope_of(node, self.world.now)) for node in self.world.nodes()]
        for edge in subscription_tree(vertices.vertex_of(asked), vertices.bits):
            for node, scope in scopes:
                if scope.covers(vertices.key(edge.reached)):
                    there = node.registry.edges.at(stream, dimension, edge.reached).get(edge.bit, ())
                    if not passes(there, asked):
                        text = f"{node.config.name} lets no event on from {edge.reached:b} over {edge.bit}"
                        self.fail(f"{text}, where {home.config.name} has a subscription in force")


class NothingWaits(StateChecker):
    """At rest no event waits anywhere."""

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """Look at the backlog of every broker."""
        for node in self.world.nodes():
            if node.forwarding._waiting:
                self.fail(f"{len(node.forwarding._waiting)} batches wait at {node.config.name}")
            if node.forwarding.gathering.events:
                self.fail(f"{node.forwarding.gathering.events} events wait for lists at {node.config.name}")
            for info in node.peers.by_link.values():
                if info.session.outbox or info.forwards:
                    self.fail(f"events wait at {node.config.name} for {info.name}")


STATE_CHECKERS: tuple[type[StateChecker], ...] = (
    FreshScopes,
    OneOwner,
    Replicated,
    SameSummaries,
    EdgesLaid,
    NothingWaits,
)
"""In the order in which they are called."""
