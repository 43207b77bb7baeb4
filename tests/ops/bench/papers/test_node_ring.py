"""A ring of Nodes: it settles, clients are served, and what brokers say is counted under its name."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.forwarding import AskLists, Lists
from headgate.broker.core.kv import Copy, Put
from headgate.broker.core.messages import CONTROLS, STORE
from headgate.ops.bench.papers.node_ring import NodeRing, word_of
from headgate.protocol.messages import Answer, Ask, Control, Credit, Deliver, Forward, Message, Puback, Suback
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch

SCHEMA: dict[str, Any] = {"attributes": {"symbol": {"type": "string"}}, "placement": "counting"}

PUT, COPY, LEASE = STORE.kind_of(Put), STORE.kind_of(Copy), 7


def item(kind: str) -> list[Any]:
    return [[kind, 7, 1, 5, 0], 3, 3, 1, []]


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (Control(1, [[PUT, [1, 2, 0, 3, 3, 0, [item("sub")]]]]), "store"),
        (Control(2, [3, 0, 1, 7, [PUT, [1, 2, 0, 3, 3, 0, [item("count"), item("sub")]]]]), "store"),
        (Control(1, [[COPY, [1, [item("count")]]]]), "copy"),
        (Control(1, [[COPY, [1, [item("use")]]]]), "use"),
        (Control(1, [[PUT, [1, 2, 0, 3, 3, 0, [item("schema")]]]]), ""),
        (Control(1, [[LEASE, [1]]]), ""),
        (Control(3, []), ""),
        (Control(CONTROLS.kind_of(AskLists), []), "ask"),
        (Control(CONTROLS.kind_of(Lists), []), "lists"),
        (Credit(1, 1), ""),
    ],
)
def test_words_by_name(message: Message, word: str) -> None:
    assert word_of(message) == word


def test_events_by_name() -> None:
    batch = quote_batch()
    assert word_of(Forward.make([], 0, batch, "o", 0, [0], 0)) == "forward"
    assert word_of(Deliver([1, 1], batch.portion([0], "o", 0, 0))) == "deliver"


@pytest.mark.parametrize("brokers", [1, 3, 6])
def test_clients_of_any_broker_are_served(brokers: int) -> None:
    ring = NodeRing(brokers, seed=1)
    assert len(ring.nodes) == brokers
    clients = [ring.connect(place) for place in range(brokers)]
    clients[0].say(Ask(1, "schema.put", {"stream": "quotes", "schema": SCHEMA}))
    ring.run(0.5)
    assert any(isinstance(message, Answer) for message in clients[0].take())
    ring.words.clear()
    for number, client in enumerate(clients, 1):
        client.say(make_subscribe(number, "quotes", "symbol = 'OTE'"))
    ring.run(0.5)
    assert all(isinstance(client.take()[-1], Suback) for client in clients)
    assert bool(ring.words["store"] + ring.words["copy"]) == (brokers > 1) == bool(ring.words["use"])
    clients[-1].say(make_publish(1, quote_batch(bodies=["a"], symbol=["OTE"])))
    ring.run(0.5)
    assert any(isinstance(message, Puback) for message in clients[-1].got)
    assert [deliveries_of(client.take()) for client in clients] == [[(number, "a")] for number in range(1, brokers + 1)]
    assert ring.words["deliver"] == brokers - 1


def test_a_ring_is_the_same_for_the_same_seed() -> None:
    counts = []
    for _ in range(2):
        ring = NodeRing(5, seed=3)
        ring.connect(2).say(make_subscribe(1, "quotes", "symbol = 'OTE'"))
        ring.run(1.0)
        counts.append((ring.now, dict(ring.words)))
    assert counts[0] == counts[1]
