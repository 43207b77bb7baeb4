"""Durable subscriptions over brokers with disks: attached, handed out, acknowledged; over the death of clients and
brokers."""

from __future__ import annotations

from typing import Any

from headgate.protocol.data import decode_record
from headgate.protocol.messages import Ack, Acked, AckVerb, Ended, Error, Handed, Suback, Subscribe
from tests.support.log_cluster import LogCluster
from tests.support.node_cluster import Client


def subscribe(cluster: LogCluster, client: Client, name: str = "orders", **options: Any) -> Any:
    """A durable subscription to all quotes; SUBACK, or the ERROR."""
    client.take()
    client.send(
        Subscribe(5, 1, options.pop("pattern", "quotes"), options.pop("where", ""), {"durable": name, **options})
    )
    cluster.until(lambda: bool(client.of(Suback) or client.of(Error)), 20.0)
    return [*client.of(Suback), *client.of(Error)][0]


def bodies(client: Client) -> list[str]:
    """What was handed to it, in order."""
    found: list[str] = []
    for handed in client.of(Handed):
        portion, at = handed.portion, 0
        for place in range(portion.count):
            length = int.from_bytes(portion.lengths[4 * place : 4 * place + 4], "little")
            found.append(decode_record(portion.records[at : at + length])[1].decode())
            at += length
    return found


def ack_all(cluster: LogCluster, client: Client) -> Acked:
    """Everything is acknowledged; the confirmation."""
    last = max(handed.first + handed.portion.count - 1 for handed in client.of(Handed))
    client.send(Ack(9, 1, AckVerb.ACK, [0, last]))
    cluster.until(lambda: bool(client.of(Acked)), 20.0)
    return client.of(Acked)[0]


def test_one_broker_hands_out_in_order_and_remembers_what_was_acknowledged() -> None:
    cluster = LogCluster(1)
    publisher, first = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, first), Suback)
    cluster.store(publisher, "a", "b")
    cluster.store(publisher, "c")
    cluster.until(lambda: bodies(first) == ["a", "b", "c"], 5.0)
    assert ack_all(cluster, first).stale == []
    cluster.kill("b0")
    cluster.start("b0")
    cluster.run(1.0)
    again, publisher = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, again), Suback)
    cluster.store(publisher, "d")
    cluster.until(lambda: bodies(again) == ["d"], 5.0)


def test_three_brokers_hand_out_what_was_stored_anywhere() -> None:
    cluster = LogCluster(3)
    clients = [cluster.connect(f"b{number}") for number in range(3)]
    assert isinstance(subscribe(cluster, clients[0]), Suback)
    for number, client in enumerate(clients):
        cluster.store(client, f"from {number}")
    cluster.until(lambda: sorted(bodies(clients[0])) == ["from 0", "from 1", "from 2"], 5.0)
    assert ack_all(cluster, clients[0]).stale == []


def test_a_subscription_outlives_its_coordinator() -> None:
    cluster = LogCluster(3)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    name = next(f"orders{number}" for number in range(99) if _coordinator(cluster, f"orders{number}") == "b1")
    assert isinstance(subscribe(cluster, subscriber, name), Suback)
    cluster.store(publisher, "a")
    cluster.until(lambda: bodies(subscriber) == ["a"], 5.0)
    assert ack_all(cluster, subscriber).stale == []
    subscriber.take()
    cluster.kill("b1")
    cluster.until(lambda: bool(subscriber.of(Ended)), 10.0)
    assert isinstance(subscribe(cluster, subscriber, name), Suback)
    cluster.store(publisher, "b")
    cluster.until(lambda: bodies(subscriber) == ["b"], 10.0)


def _coordinator(cluster: LogCluster, name: str) -> str:
    return cluster.hosts["b0"].node.durables.coordinator_name(name)
