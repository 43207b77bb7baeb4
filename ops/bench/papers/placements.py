"""Two ways to place subscriptions, side by side: one anchor each, and the counting of RANGE 3.

    anchored    stored at one anchor; an event visits its key on each dimension in use; who matches is told there
    counting    a subID on a list for each value of each attribute; an event asks for a list an attribute, and all lists
                come back to where it was published; who is met often enough is told from there

Both are models that run the code of the broker's core over the tables of one settled ring (`node_placements.py` has
the Nodes themselves), and both must deliver what plain evaluation
of every condition says, on every workload: a difference ends the run. A message is one hop from broker to broker.
Acknowledgements and replicas are left out, being the same for both.

`anchored` pays one thing beside. The first time that a broker's clients use a dimension, every broker is told, so that
events visit that dimension: N - 1 messages. In workloads as short as these nearly every subscription is such a first
time in a large ring, in long ones hardly any. So it has a column of its own, "first uses", and is not in "a subscribe".
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Any

from rich.table import Table

from headgate.broker.core.keyspace import Dimension, RoutingTable, key_of, successor
from headgate.broker.core.placement import Anchor, SubscriptionId, plan
from headgate.matching import Index, Tree, Value, evaluate, parse_pattern, to_text
from headgate.matching.tree import Attribute, Compare, Literal, conjunction, membership

from ..wire import console
from .models import (
    BOTH_WAYS_BASE_4,
    Collection,
    Constraint,
    CountingScheme,
    CountingStore,
    Entry,
    Placement,
    constraints_of,
    counting_scheme,
    spread_segment,
    spread_set,
    travel,
)
from .routing import members_of, ring

__all__ = [
    "PLACEMENT_SIZES",
    "SCHEMA",
    "STREAM",
    "Costs",
    "Workload",
    "add_arguments",
    "anchored",
    "counting",
    "make_workload",
    "run",
]

PLACEMENT_SIZES = (10, 30, 100, 300, 1000)
"""Brokers; issue 4 asks for 10 to 1,000."""

WORKLOADS = 20
"""Random workloads at each size; issue 4 asks for 20."""

_SUBSCRIPTIONS = 60
_EVENTS = 40
STREAM = "quotes"
SCHEMA: dict[str, Any] = {
    "attributes": {
        "price": {"type": "float", "min": 0, "max": 20, "precision": 0.01},
        "volume": {"type": "int", "min": 0, "max": 1000},
        "symbol": {"type": "string"},
        "exchange": {"type": "string"},
    }
}
_PATTERN = parse_pattern(STREAM)

Event = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription, with what counting makes of its condition; `text` is the condition for a broker."""

    identity: SubscriptionId
    condition: Tree
    text: str
    constraints: Mapping[str, Constraint]


@dataclass(slots=True)
class Workload:
    """Subscriptions and events of a run, each with its broker."""

    subscriptions: list[Subscription]
    events: list[tuple[int, Event]]

    def wanted(self, event: Event) -> list[SubscriptionId]:
        """The subscriptions that want this event, by evaluating every condition."""
        return sorted(one.identity for one in self.subscriptions if evaluate(one.condition, event) is True)


@dataclass(slots=True)
class Costs:
    """The costs of one workload."""

    subscribing: int = 0
    """Messages to store."""
    stored: int = 0
    """Copies of subscriptions, or entries on lists."""
    meeting: int = 0
    """Messages until it is known who wants the event."""
    delivering: int = 0
    """Messages that carry it to their brokers."""
    carried: int = 0
    """SubIDs that came back on lists."""
    telling: int = 0
    """Messages that tell everybody of a dimension that a broker uses for the first time."""
    dimensions: int = 0
    """Dimensions in use."""
    delivered: list[list[SubscriptionId]] = field(default_factory=list)
    """For each event, in order, the subscriptions that got it."""


# --- Random workloads -------------------------------------------------------------------------------------------------


def make_workload(members: Sequence[int], random: Random) -> Workload:
    """Few or many symbols, popular or not, more equalities or more ranges, narrow or wide: drawn anew each time."""
    symbols = [f"S{number}" for number in range(random.choice((4, 40, 400)))]
    skew = random.choice((0.0, 1.0, 1.5))
    weights = [1 / (rank + 1) ** skew for rank in range(len(symbols))]
    equalities, widest = random.random(), random.choice((0.1, 1.0, 5.0))
    subscriptions = []
    for number in range(_SUBSCRIPTIONS):
        condition = _condition(random, random.choices(symbols, weights, k=3), equalities, widest)
        constraints = constraints_of(_PATTERN, condition, SCHEMA)
        identity = SubscriptionId(random.choice(members), number, len(constraints))
        subscriptions.append(Subscription(identity, condition, to_text(condition), constraints))
    events = [(random.choice(members), _event(random, random.choices(symbols, weights)[0])) for _ in range(_EVENTS)]
    return Workload(subscriptions, events)


def _condition(random: Random, symbols: list[str], equalities: float, widest: float) -> Tree:
    parts: list[Tree] = []
    if random.random() < equalities:
        wanted = dict.fromkeys(symbols[: random.choice((1, 1, 2, 3))])
        parts.append(membership(Attribute("symbol"), [Literal(symbol) for symbol in wanted]))
    if random.random() < equalities / 2:
        parts.append(Compare("=", Attribute("exchange"), Literal(random.choice(("NYSE", "ATHEX")))))
    if not parts or random.random() < 0.6:
        low = random.uniform(0, 20)
        parts.append(Compare(random.choice((">", ">=")), Attribute("price"), Literal(low)))
        high = Literal(low + random.uniform(0.01, widest))
        parts.append(Compare(random.choice(("<", "<=")), Attribute("price"), high))
    if random.random() < 0.2:
        operator = random.choice(("=", ">=", "<>"))  # the last is nothing that could be counted
        parts.append(Compare(operator, Attribute("volume"), Literal(random.randrange(1000))))
    return conjunction(parts)


def _event(random: Random, symbol: str) -> Event:
    """Prices are on the grid or between its lines; now and then something is missing."""
    price = random.uniform(0, 20)
    event: Event = {
        "symbol": symbol,
        "exchange": random.choice(("NYSE", "ATHEX", None)),
        "price": round(price, 2) if random.random() < 0.5 else price,
        "volume": random.randrange(1000),
    }
    if random.random() < 0.1:
        del event[random.choice(tuple(event))]
    return event


# --- One anchor each --------------------------------------------------------------------------------------------------


def anchored(members: Sequence[int], tables: Mapping[int, RoutingTable], workload: Workload) -> Costs:
    """Plan, store by multicast to the anchor, visit every dimension in use, match there, tell from there."""
    costs = Costs()
    indexes: dict[tuple[int, Dimension], Index] = {}
    dimensions: dict[Dimension, None] = {}
    uses: dict[tuple[int, Dimension], None] = {}
    for number, one in enumerate(workload.subscriptions):
        anchor = plan(_PATTERN, one.condition, SCHEMA)
        dimensions[anchor.dimension] = None
        uses[one.identity.broker, anchor.dimension] = None
        for broker in _store_anchored(tables, one.identity.broker, anchor, costs):
            indexes.setdefault((broker, anchor.dimension), Index()).add(number, _PATTERN, one.condition)
    costs.dimensions, costs.telling = len(dimensions), len(uses) * (len(members) - 1)
    for origin, event in workload.events:
        delivered: list[SubscriptionId] = []
        for dimension in dimensions:
            key = key_of(STREAM, dimension, STREAM, event)
            if key is None:
                continue
            path = travel(tables, origin, key)
            costs.meeting += path.hops
            index = indexes.get((successor(members, key), dimension))
            delivered += _deliver_from(tables, path.brokers[-1], index, event, workload, costs)
        costs.delivered.append(sorted(delivered))
    return costs


def _store_anchored(tables: Mapping[int, RoutingTable], origin: int, anchor: Anchor, costs: Costs) -> dict[int, None]:
    """The brokers that hold the subscription, each once, however many of its keys it owns."""
    holders: dict[int, None] = {}
    for segment in anchor.segments:
        spread = spread_segment(tables, origin, segment)
        costs.subscribing += spread.messages
        holders.update(dict.fromkeys(spread.times))
    costs.stored += len(holders)
    return holders


def _deliver_from(
    tables: Mapping[int, RoutingTable], anchor: int, index: Index | None, event: Event, workload: Workload, costs: Costs
) -> list[SubscriptionId]:
    """Who of those that rest here gets the event; their brokers are told by one multicast."""
    if index is None:
        return []
    columns = {name: [value] for name, value in event.items()}
    matches = [number for numbers, _ in index.match([STREAM], 1, columns) for number in numbers]
    found = [workload.subscriptions[number].identity for number in matches]
    if found:
        costs.delivering += spread_set(tables, anchor, [one.broker for one in found]).messages
    return found


# --- Counting ---------------------------------------------------------------------------------------------------------


def counting(
    members: Sequence[int], tables: Mapping[int, RoutingTable], workload: Workload, placement: Placement
) -> Costs:
    """An entry a value, a question an attribute, and the lists counted where the event came from."""
    costs = Costs()
    scheme = counting_scheme(STREAM, SCHEMA, placement)
    stores = {broker: CountingStore() for broker in members}
    conditions = {one.identity: one.condition for one in workload.subscriptions}
    for one in workload.subscriptions:
        entries = scheme.entries(one.constraints)
        costs.stored += len(entries)
        costs.subscribing += _storing_messages(members, tables, one.identity.broker, entries, scheme)
        for entry in entries:
            stores[successor(members, entry.key)].store(entry, one.identity)
    for origin, event in workload.events:
        questions = scheme.questions(event)
        collection = Collection(questions)
        for entry in questions:
            path = travel(tables, origin, entry.key)
            found = stores[path.brokers[-1]].list_at(entry)
            costs.meeting += path.hops + (path.hops > 0)  # and the answer, straight back
            costs.carried += len(found)
            collection.add(entry, found)
        candidates = collection.matches()
        costs.delivering += spread_set(tables, origin, [one.broker for one in candidates]).messages if candidates else 0
        costs.delivered.append([one for one in candidates if evaluate(conditions[one], event) is True])
    return costs


def _storing_messages(
    members: Sequence[int],
    tables: Mapping[int, RoutingTable],
    origin: int,
    entries: Sequence[Entry],
    scheme: CountingScheme,
) -> int:
    """A way to each entry's key; ordered values cost one way, and then the successors up to the last (RANGE 4.1)."""
    messages = 0
    for name, group in groupby(entries, key=lambda entry: entry.attribute):
        keys = [entry.key for entry in group]
        if scheme.placement is Placement.HASHED or name not in scheme.domains:
            messages += sum(travel(tables, origin, key).hops for key in keys)
            continue
        owners = dict.fromkeys(successor(members, key) for key in keys)
        first, last = (members.index(owner) for owner in (next(iter(owners)), next(reversed(owners))))
        messages += travel(tables, origin, keys[0]).hops + (last - first) % len(members)
    return messages


# --- Tables -----------------------------------------------------------------------------------------------------------


def compare(count: int, workloads: int, seed: int) -> dict[str, Costs]:
    """The sums over so many workloads at one size; asserts that all deliver the same, and that it is right."""
    members, tables = members_of(count, seed), ring(count, BOTH_WAYS_BASE_4, 4, seed)
    sums: dict[str, Costs] = {}
    for number in range(workloads):
        workload = make_workload(members, Random(f"{seed} workload {count} {number}"))
        wanted = [workload.wanted(event) for _, event in workload.events]
        runs = {"anchored": anchored(members, tables, workload)}
        runs |= {f"counting {one.value}": counting(members, tables, workload, one) for one in Placement}
        for name, costs in runs.items():
            assert costs.delivered == wanted, f"{name} delivers something else, workload {number}, {count} brokers"
            total = sums.setdefault(name, Costs())
            for figure in ("subscribing", "stored", "meeting", "delivering", "carried", "dimensions", "telling"):
                setattr(total, figure, getattr(total, figure) + getattr(costs, figure))
            total.delivered += costs.delivered
    return sums


_HEADINGS = ("brokers", "placement", "a subscribe", "first uses", "copies", "a publish", "to meet", "to deliver", "IDs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of the placements; seed and largest ring are those of `routing`."""
    parser.add_argument("--workloads", type=int, default=WORKLOADS, help=f"random ones a size (default {WORKLOADS})")


def run(arguments: argparse.Namespace) -> int:
    """One table; 0 when all deliver the same, and an AssertionError otherwise."""
    target = console()
    table = Table(title="RANGE 3: messages of counting, and of one anchor", title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading == "placement" else "right")
    sizes = [count for count in PLACEMENT_SIZES if count <= arguments.brokers_max]
    dimensions = 0
    for count in sizes:
        sums = compare(count, arguments.workloads, arguments.seed)
        dimensions += sums["anchored"].dimensions
        for name, costs in sums.items():
            subscribes, publishes = arguments.workloads * _SUBSCRIPTIONS, arguments.workloads * _EVENTS
            figures = (costs.meeting + costs.delivering, costs.meeting, costs.delivering, costs.carried)
            table.add_row(
                *(str(count) if name == "anchored" else "", name),
                *(f"{figure / subscribes:.1f}" for figure in (costs.subscribing, costs.telling, costs.stored)),
                *(f"{figure / publishes:.2f}" for figure in figures),
            )
    target.print(table)
    mean_dimensions = dimensions / max(1, len(sizes) * arguments.workloads)
    target.print(
        f"{arguments.workloads} random workloads a size ({_SUBSCRIPTIONS} subscriptions, {_EVENTS} events each), seed "
        f"{arguments.seed}: all three delivered the same set on every one,\nand it is what evaluating every condition "
        f"says. Dimensions in use: {mean_dimensions:.1f} a workload. First uses are paid once a broker\n"
        "and dimension: the longer a workload the fewer. IDs: what lists bring back for an event.\n"
    )
    return 0
