"""The audit log of durable subscriptions: what each wanted from when on, and what it was handed and acknowledged."""

from __future__ import annotations

from typing import Any

from headgate.broker.core.clients.audit import ACKNOWLEDGED, DURABLE, SENT, SENT_AGAIN
from headgate.broker.core.limits import AUDIT_SECONDS
from headgate.protocol.data import LogKind
from headgate.protocol.messages import Ack, AckVerb, Handed, Suback, Subscribe
from tests.broker.core.clients.test_audit_log import lines
from tests.support.builders import make_publish, quote_batch
from tests.support.log_cluster import LogCluster
from tests.support.node_cluster import Client


def attach(cluster: LogCluster, client: Client, where: str = "price > 1") -> None:
    client.take()
    client.send(Subscribe(5, 1, "quotes", where, {"durable": "orders"}))
    cluster.until(lambda: bool(client.of(Suback)), 20.0)


def quote(client: Client, *prices: int) -> None:
    client.sequence += 1
    bodies = [str(price) for price in prices]
    client.send(make_publish(client.sequence, quote_batch(bodies=bodies, price=[float(price) for price in prices])))


def written(cluster: LogCluster, kind: LogKind) -> list[dict[str, Any]]:
    """Lines of all brokers, as they were written."""
    cluster.run(2 * AUDIT_SECONDS + 1.0)
    return [line for name in cluster.disks for line in lines(cluster.rows(name, name, kind))]


def test_what_is_handed_out_comes_again_and_is_acknowledged_has_lines_under_the_name_alone() -> None:
    cluster = LogCluster(3, schema={"audit": True})
    publisher, first = cluster.connect("b0"), cluster.connect("b1")
    attach(cluster, first)
    quote(publisher, 1, 2, 3, 4)
    cluster.until(lambda: bool(first.of(Handed)), 5.0)
    number = first.of(Handed)[0].first
    first.send(Ack(0, 1, AckVerb.ACK, [number, number]), Ack(0, 1, AckVerb.PROGRESS, [number + 1, number + 1]))
    cluster.run(0.1)
    first.send(Ack(0, 1, AckVerb.ACK, [number, number]))  # a stale one says nothing
    cluster.run(0.1)
    cluster.disconnect(first)
    cluster.run(0.1)
    second = cluster.connect("b2")
    attach(cluster, second)
    cluster.until(lambda: bool(second.of(Handed)), 5.0)
    again = second.of(Handed)[0].first
    second.send(Ack(0, 1, AckVerb.NAK, [again + 1, again + 1], 0.0))
    cluster.until(lambda: len(second.of(Handed)) == 2, 5.0)
    second.send(Ack(0, 1, AckVerb.ACK, [0, second.of(Handed)[1].first]))
    deliveries = written(cluster, LogKind.DELIVERIES)
    (identity,) = {line["subscription"] for line in deliveries}
    assert {line["home"] for line in deliveries} == {DURABLE}
    assert {line["origin"] for line in deliveries} == {cluster.hosts["b0"].node.config.origin}
    base = min(line["sequence"] for line in deliveries)
    counted: dict[tuple[int, int], int] = {}
    for line in deliveries:
        key = (line["sequence"] - base, line["outcome"])
        counted[key] = counted.get(key, 0) + 1
    sent = {(0, SENT): 1, (1, SENT): 1, (2, SENT): 1, (1, SENT_AGAIN): 1, (2, SENT_AGAIN): 2}
    assert counted == sent | {(0, ACKNOWLEDGED): 1, (1, ACKNOWLEDGED): 1, (2, ACKNOWLEDGED): 1}
    (wish,) = written(cluster, LogKind.SUBSCRIPTIONS)
    assert (wish["home"], wish["subscription"], wish["subscriber"]) == (DURABLE, identity, "orders")
    assert (wish["action"], wish["condition"]) == ("subscribe", "`price` > 1")


def test_changes_seeks_and_removal_are_lines_and_a_restart_is_one_and_ends_nothing() -> None:
    cluster = LogCluster(1, schema={"audit": True})
    publisher, first = cluster.connect("b0"), cluster.connect("b0")
    attach(cluster, first)
    cluster.ask(publisher, "durable_set", name="orders", where="price > 2")
    cluster.ask(publisher, "durable_seek", name="orders", to="now")
    told = written(cluster, LogKind.SUBSCRIPTIONS)
    expected = [("subscribe", "`price` > 1"), ("subscribe", "`price` > 2")]
    expected += [("unsubscribe", "`price` > 2"), ("subscribe", "`price` > 2")]
    assert [(line["action"], line["condition"]) for line in told] == expected
    cluster.kill("b0")
    cluster.start("b0")
    told = written(cluster, LogKind.SUBSCRIPTIONS)[len(expected) :]
    expected = [("restarted", ""), ("subscribe", "`price` > 2")]
    assert [(line["action"], line["condition"]) for line in told] == expected
    publisher = cluster.connect("b0")
    cluster.ask(publisher, "durable_rm", name="orders")
    assert written(cluster, LogKind.SUBSCRIPTIONS)[-1]["action"] == "unsubscribe"


def test_a_stream_that_is_audited_later_and_for_a_while_has_lines_of_that_time() -> None:
    cluster = LogCluster(1)
    publisher, first = cluster.connect("b0"), cluster.connect("b0")
    attach(cluster, first)
    quote(publisher, 2)
    assert written(cluster, LogKind.SUBSCRIPTIONS) == written(cluster, LogKind.DELIVERIES) == []
    for audited in (True, False, True):
        cluster.ask(publisher, "schema.put", stream="quotes", schema={"durability": "stored", "audit": audited})
        cluster.run(1.0)
    told = [(line["action"], line["reason"]) for line in written(cluster, LogKind.SUBSCRIPTIONS)]
    over = ("unsubscribe", "the stream is not audited any more")
    assert told == [("subscribe", ""), over, ("subscribe", "")]
    quote(publisher, 3)
    assert [line["outcome"] for line in written(cluster, LogKind.DELIVERIES)] == [SENT]


def test_what_retention_took_is_a_gap() -> None:
    cluster = LogCluster(1, schema={"audit": True})
    publisher, first = cluster.connect("b0"), cluster.connect("b0")
    attach(cluster, first)
    cluster.disconnect(first)
    for price in (2, 3, 4):
        quote(publisher, price)
        cluster.run(0.05)
    cluster.run(1.0)
    cluster.node("b0").log.trim(cluster.name("b0"), 2)
    cluster.run(3.0)
    gap = written(cluster, LogKind.SUBSCRIPTIONS)[-1]
    assert (gap["action"], gap["reason"].split()[0]) == ("gap", "2")
