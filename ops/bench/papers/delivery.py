"""Bringing an event to the brokers that want it: direct links beside multicast trees (STATE 4.2), up to 64 brokers.

    links    every broker has a link to every other (`MESH_BROKERS_MAX`): one message to each, one hop
    trees    every broker has its neighbours and fingers at powers of four: the set is split along them (`spread_set`)

Each row is the mean over random sets of so many brokers. "Messages" are what all brokers send together, "own" those
that the sender sends itself. A tree never needs fewer messages than there are brokers to reach, so with a link to each
there is nothing that it could save but the sender's own: and those it saves at the price of hops, and of brokers on the
way that pass on what they do not want. That is why the Node sends to each, and the table is the evidence.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from rich.table import Table

from headgate.broker.core.keyspace import MESH_BROKERS_MAX, RoutingTable

from ..wire import console
from .models import BOTH_WAYS_BASE_4, split_set, spread_set
from .routing import members_of, ring

__all__ = ["DELIVERY_SIZES", "DeliveryCost", "add_arguments", "delivery_cost", "run"]

DELIVERY_SIZES = (5, 10, 20, 40, MESH_BROKERS_MAX)
_SETS = 200


@dataclass(frozen=True, slots=True)
class DeliveryCost:
    """Means over random sets of destinations."""

    messages: float
    own: float
    hops: float
    hops_max: int


def delivery_cost(
    members: Sequence[int], tables: Mapping[int, RoutingTable], wanted: int, random: Random, sets: int = _SETS
) -> DeliveryCost:
    """Mean costs of trees over these tables, to sets of so many brokers."""
    messages = own = hops = deepest = 0
    for _ in range(sets):
        origin, *destinations = random.sample(members, wanted + 1)
        spread = spread_set(tables, origin, destinations)
        assert spread.times == dict.fromkeys(destinations, 1), "each is told once"
        messages += spread.messages
        own += len(split_set(tables[origin], destinations).shares)
        hops += sum(spread.depth.values())
        deepest = max(deepest, *spread.depth.values())
    return DeliveryCost(messages / sets, own / sets, hops / (sets * wanted), deepest)


_HEADINGS = ("brokers", "wanted by", "links: messages", "hops", "trees: messages", "own", "hops", "at most")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own: the seed is that of `routing`."""
    parser.set_defaults(delivery_sizes=DELIVERY_SIZES)


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    table = Table(title="STATE 4.2: an event to those that want it", title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for count in arguments.delivery_sizes:
        members = members_of(count, arguments.seed)
        tables = ring(count, BOTH_WAYS_BASE_4, 4, arguments.seed)
        random = Random(f"{arguments.seed} delivery {count}")
        for wanted in dict.fromkeys((1, max(2, count // 4), count - 1)):
            cost = delivery_cost(members, tables, wanted, random)
            trees = (f"{cost.messages:.1f}", f"{cost.own:.1f}", f"{cost.hops:.2f}", str(cost.hops_max))
            table.add_row(str(count), str(wanted), str(wanted), "1", *trees)
    target = console()
    target.print(table)
    target.print(
        "Links: one message to each, all of them the sender's own. Up to 64 brokers the Node sends so: a tree would "
        "save messages of its\nsender's and nobody else's, for more hops. Beyond 64 it dials whom it has something "
        f"for, without trees.\nSeed {arguments.seed}, {_SETS} random sets a row.\n"
    )
    return 0
