"""Both placements through the Nodes of the product: what brokers say for a subscribe and for a publish.

The workloads are those of `placements.py`, whose model goes on to rings that are too large to run. Here every broker is
a Node (`node_ring.py`): clients subscribe and publish at any of them, with the stream's setting `placement` one and
then the other, and what they get must be what evaluating every condition says; a difference ends the run.

Beside the columns of the model, "copies" are messages to the siblings of the owners, and "first uses" what it takes to
tell every broker of a dimension or a list that a broker's clients use for the first time, whatever the number of
brokers.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rich.table import Table

from headgate.protocol.data import Batch, Scalar, decode_record, make_batch
from headgate.protocol.messages import Answer, Ask, Deliver, Mode, Publish, Suback, Subscribe, Unsuback, Unsubscribe

from ..wire import console
from .node_ring import NodeClient, NodeRing
from .placements import SCHEMA, STREAM, Workload, make_workload

__all__ = ["NODE_SIZES", "PLACEMENTS", "NodeCosts", "add_arguments", "compare_nodes", "run"]

NODE_SIZES = {10: 20, 30: 20, 64: 5, 100: 2}
"""Brokers -> workloads. A hundred Nodes with a link to nearly everybody take two minutes to start."""

PLACEMENTS = ("anchored", "counting")

_WAIT_SECONDS_MAX = 60.0
_QUIET_SECONDS = 3.0
"""Beyond 64 brokers a link may have to be dialled before what waits goes out, which takes about a second."""


@dataclass(slots=True)
class NodeCosts:
    """Messages of a run, and the deliveries."""

    words: Counter[str] = field(default_factory=Counter)
    subscribed: int = 0
    delivered: list[list[list[int]]] = field(default_factory=list)
    """For each workload, and each of its events: the subscriptions it was delivered to."""

    def figures(self) -> list[str]:
        """The columns of the table: for a subscribe, then for a publish."""
        publishes, deliver = sum(map(len, self.delivered)), self.words["deliver"]
        meet = self.words["forward"] + self.words["ask"] + self.words["lists"]
        stored = [f"{self.words[name] / self.subscribed:.1f}" for name in ("store", "copy", "use")]
        return stored + [f"{figure / publishes:.2f}" for figure in (meet + deliver, meet, deliver)]


class _Clients:
    """A client at every broker, and what is asked of the ring through them."""

    def __init__(self, ring: NodeRing) -> None:
        self.ring = ring
        self.all = [ring.connect(place) for place in range(len(ring.nodes))]
        self.place_of = {node.cluster.me: place for place, node in enumerate(ring.nodes)}
        self.sequences: Counter[int] = Counter()

    def of(self, broker: int) -> NodeClient:
        """The client at the broker with this identifier."""
        return self.all[self.place_of[broker]]

    def wait_for(self, kind: type[Any], count: int) -> None:
        """Wait for so many answers of this kind."""
        end = self.ring.now + _WAIT_SECONDS_MAX
        while sum(isinstance(message, kind) for client in self.all for message in client.got) < count:
            assert self.ring.now < end, f"no {kind.__name__} within {_WAIT_SECONDS_MAX:g} seconds"
            self.ring.run(0.1)
        self.take()

    def take(self) -> None:
        """Drop what came."""
        for client in self.all:
            client.take()

    def publish(self, broker: int, batch: Batch) -> None:
        """Publish with the next sequence of that client."""
        place = self.place_of[broker]
        self.sequences[place] += 1
        self.all[place].say(Publish(self.sequences[place], Mode.ACCEPTED, batch))


def _bodies(message: Deliver) -> list[tuple[int, int]]:
    """(event, subscription) of a DELIVER."""
    portion = message.portion
    batch = Batch(portion.topics, portion.count, portion.lengths, portion.records)
    events = [int(decode_record(piece)[1]) for piece in batch.pieces()]
    found: list[tuple[int, int]] = []
    at = 0
    for numbers, count in message.runs():
        found += [(event, number) for event in events[at : at + count] for number in numbers]
        at += count
    return found


def play(clients: _Clients, workload: Workload, placement: str, costs: NodeCosts) -> None:
    """One workload with one placement: declare, subscribe, publish, and take all of it back."""
    ring = clients.ring
    clients.all[0].say(Ask(1, "schema.put", {"stream": STREAM, "schema": {**SCHEMA, "placement": placement}}))
    clients.wait_for(Answer, 1)
    ring.run(_QUIET_SECONDS)
    ring.words.clear()
    for number, one in enumerate(workload.subscriptions):
        clients.of(one.identity.broker).say(Subscribe(number + 1, number + 1, STREAM, one.text, {}))
    clients.wait_for(Suback, len(workload.subscriptions))
    for number, (broker, event) in enumerate(workload.events):
        columns: dict[str, Sequence[Scalar]] = {name: [value] for name, value in event.items()}
        clients.publish(broker, make_batch([STREAM], columns, [str(number).encode()]))
        ring.run(0.02)
    ring.run(_QUIET_SECONDS)
    delivered: list[list[int]] = [[] for _ in workload.events]
    for client in clients.all:
        for message in client.take():
            for place, number in _bodies(message) if isinstance(message, Deliver) else ():
                delivered[place].append(number - 1)
    costs.delivered.append([sorted(numbers) for numbers in delivered])
    costs.words.update(ring.words)
    costs.subscribed += len(workload.subscriptions)
    for number, one in enumerate(workload.subscriptions):
        clients.of(one.identity.broker).say(Unsubscribe(number + 1, number + 1))
    clients.wait_for(Unsuback, len(workload.subscriptions))


def compare_nodes(count: int, workloads: int, seed: int) -> dict[str, NodeCosts]:
    """The sums at one size; asserts that both placements deliver the same, and that it is right."""
    ring = NodeRing(count, seed)
    clients = _Clients(ring)
    members = sorted(clients.place_of)
    sums = {placement: NodeCosts() for placement in PLACEMENTS}
    for number in range(workloads):
        workload = make_workload(members, Random(f"{seed} workload {count} {number}"))
        wanted = [[one.number for one in workload.wanted(event)] for _, event in workload.events]
        for placement, costs in sums.items():
            play(clients, workload, placement, costs)
            text = f"{placement} delivers something else, workload {number}, {count} brokers"
            assert costs.delivered[-1] == [sorted(numbers) for numbers in wanted], text
    return sums


_HEADINGS = ("brokers", "placement", "a subscribe", "copies", "first uses", "a publish", "to meet", "to deliver")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of the rings of Nodes; the seed is that of `routing`."""
    text = f"the largest ring of Nodes (default {max(NODE_SIZES)}; that one takes minutes)"
    parser.add_argument("--nodes-max", type=int, default=max(NODE_SIZES), help=text)
    parser.set_defaults(node_sizes=NODE_SIZES)


def run(arguments: argparse.Namespace) -> int:
    """One table; 0 when both deliver the same, and an AssertionError otherwise."""
    target = console()
    table = Table(title="The placements through Nodes: messages that brokers say", title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading == "placement" else "right")
    for count, workloads_max in arguments.node_sizes.items():
        if count > arguments.nodes_max:
            continue
        workloads = min(workloads_max, arguments.workloads)
        for placement, costs in compare_nodes(count, workloads, arguments.seed).items():
            table.add_row(f"{count} ({workloads})" if placement == PLACEMENTS[0] else "", placement, *costs.figures())
    target.print(table)
    target.print(
        f"In brackets: how many random workloads, seed {arguments.seed}. Both placements delivered the same set on "
        "every one, and it is what\nevaluating every condition says. Acknowledgements are left out. Larger rings: "
        "`placements`, by the model.\n"
    )
    return 0
