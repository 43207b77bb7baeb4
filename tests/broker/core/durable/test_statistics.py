"""What brokers count of durable subscriptions: coordinators what waits, logs what they told, homes what they sent."""

from __future__ import annotations

from headgate.broker.core import NodeStatistics
from headgate.protocol.messages import Ack, Acked, AckVerb, Handed, Suback, Subscribe
from tests.support.log_cluster import LogCluster
from tests.support.node_cluster import Client


def attach(cluster: LogCluster, client: Client, name: str, window: int = 1000) -> None:
    """A durable subscription to all quotes."""
    client.take()
    client.send(Subscribe(5, 1, "quotes", "", {"durable": name, "window": window}))
    cluster.until(lambda: bool(client.of(Suback)), 20.0)


def of(cluster: LogCluster, broker: str) -> NodeStatistics:
    """What it has counted so far."""
    return cluster.node(broker).statistics(cluster.now)


def test_coordinator_log_and_home_count_their_parts() -> None:
    cluster = LogCluster(3)
    name = next(f"d{at}" for at in range(99) if cluster.node("b0").durables.coordinator_name(f"d{at}") == "b1")
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b2")
    attach(cluster, subscriber, name, window=3)
    cluster.store(publisher, "a", "b", "c", "d", "e")
    cluster.until(lambda: of(cluster, "b2").durable_sent == 3, 5.0)
    counted = of(cluster, "b1")
    assert (counted.durable_subscriptions, counted.durable_clients) == (1, 1)
    assert (counted.durable_waiting, counted.durable_unacked, counted.durable_handed_out) == (2, 3, 3)
    assert of(cluster, "b0").durable_subscriptions == of(cluster, "b2").durable_subscriptions == 0
    assert of(cluster, "b0").durable_feeds == 1
    assert of(cluster, "b0").durable_facts > 0
    assert sum(of(cluster, "b2").durable_fetches.values()) > 0

    first = subscriber.of(Handed)[0].first
    subscriber.send(Ack(1, 1, AckVerb.ACK, [first, first + 1]), Ack(2, 1, AckVerb.ACK, [first, first]))
    cluster.until(lambda: len(subscriber.of(Acked)) == 2, 5.0)
    cluster.run(1.0)
    counted = of(cluster, "b1")
    assert (counted.durable_settled, counted.durable_stale_acks) == (2, 1)
    assert (counted.durable_waiting, counted.durable_unacked, counted.durable_handed_out) == (0, 3, 5)
    assert counted.durable_states_written > 1
    assert counted.durable_takeovers == 0, "it was made here"

    cluster.disconnect(subscriber)
    cluster.run(1.0)
    counted = of(cluster, "b1")
    assert (counted.durable_clients, counted.durable_waiting, counted.durable_unacked) == (0, 3, 0)
    assert counted.durable_redelivered == 3

    cluster.kill("b1")
    cluster.run(6.0)
    counted = [of(cluster, broker) for broker in ("b0", "b2")]
    assert sum(one.durable_subscriptions for one in counted) == 1
    assert sum(one.durable_takeovers for one in counted) == 1
    assert sum(one.durable_waiting for one in counted) == 3


def test_those_for_which_most_waits_come_first_and_a_removed_one_is_gone() -> None:
    cluster = LogCluster(1)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    coordinator = cluster.node("b0").durables.coordinator
    for name in ("few", "idle", "none", "many"):
        attach(cluster, subscriber, name, window=1)
        cluster.disconnect(subscriber)
        subscriber = cluster.connect("b0")
    cluster.store(publisher, "a", "b")
    cluster.run(1.0)
    for name in ("idle", "none", "few"):
        cluster.ask(publisher, "durable_seek", name=name, to="now")
    cluster.store(publisher, "c")
    cluster.run(1.0)
    cluster.ask(publisher, "durable_seek", name="idle", to="now")
    cluster.ask(publisher, "durable_seek", name="none", to="now")
    cluster.run(1.0)
    assert coordinator.busiest(2) == ["many", "few"]
    assert sorted(coordinator.busiest(9)) == ["few", "idle", "many", "none"]
    assert of(cluster, "b0").durable_waiting == 3 + 1
    assert coordinator.oldest_seconds("many", cluster.now) >= 2.0
    cluster.ask(publisher, "durable_rm", name="many")
    assert coordinator.busiest(1) == ["few"]
    assert of(cluster, "b0").durable_waiting == 1


def test_what_retention_took_is_counted() -> None:
    cluster = LogCluster(1)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    attach(cluster, subscriber, "orders", window=1)
    for body in "abcd":
        cluster.store(publisher, body)
        cluster.run(0.05)
    cluster.run(1.0)
    cluster.node("b0").log.trim(cluster.name("b0"), 3)
    cluster.run(3.0)
    assert of(cluster, "b0").durable_missed == 2
    assert of(cluster, "b0").durable_waiting == 1


def test_one_is_told_of_with_its_keepers_its_logs_and_what_a_change_left() -> None:
    cluster = LogCluster(3)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b2")
    attach(cluster, subscriber, "orders", window=1)
    cluster.store(publisher, "a", "b")
    cluster.run(1.0)
    cluster.ask(publisher, "durable_set", name="orders", where="price > 8", **{"from": "now"})
    row = cluster.ask(publisher, "durable", name="orders")
    assert row["keepers"][0] == row["coordinator"] and len(row["keepers"]) == 2
    assert {one["log"].partition("@")[0]: (one["settled"], one["fed"]) for one in row["logs"]}["b0"] == (0, 2)
    ((before, condition),) = [(one["before"], one["condition"]) for one in row["sections"]]
    assert condition == "" and "b0@" in before and ":2" in before
