"""Registry of counted subscriptions: SUBACK waits for all lists, and what was there before stays where it is."""

from __future__ import annotations

import pytest

from headgate.broker.core.keyspace import count_dimension, equal_dimension, topic_dimension
from headgate.broker.core.limits import REFRESH_SECONDS
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Ask, Goodbye
from tests.broker.core.placement.test_registry import ASKED, KEY, acknowledged, delivered, places, resting
from tests.support.node_cluster import NodeCluster

LIST = count_dimension("x")
COUNTED = {
    "attributes": {"price": {"type": "float", "min": 0, "max": 20, "precision": 0.01}, "x": {"type": "int"}},
    "placement": "counting",
}


def counted_cluster(brokers: int) -> NodeCluster:
    cluster = NodeCluster(brokers)
    client = cluster.connect("b0")
    client.send(Ask(1, "schema.put", {"stream": "quotes", "schema": COUNTED}))
    cluster.until(lambda: bool(client.of(Answer)))
    return cluster


@pytest.mark.parametrize("late", [0, 1, 2])
def test_a_counted_one_is_acknowledged_when_its_lists_are_at_owner_and_siblings(late: int) -> None:
    cluster = counted_cluster(5)
    *holders, home = places(cluster)
    client = cluster.connect(home)
    client.subscribe(1, "quotes", "x = 2")
    cluster.until(lambda: acknowledged(client) == [1], 1.0)
    cluster.hold(holders[late], *(name for name in cluster.hosts if name != holders[late]))
    client.subscribe(2, "quotes", ASKED)
    cluster.run(0.5)
    assert acknowledged(client) == [1]
    cluster.release()
    cluster.until(lambda: acknowledged(client) == [1, 2], 2.0)
    assert resting(cluster) == set(), "it rests on lists, and nothing is matched where those are"
    assert {name for name in cluster.hosts if cluster.node(name).registry.counting.lists.at("quotes", LIST, KEY)} >= {
        *holders[:3]
    }


def test_a_refresh_and_a_new_edition_leave_the_lists_as_they_are() -> None:
    cluster = counted_cluster(5)
    client = cluster.connect("b1")
    client.subscribe(1, "quotes", "x = 1 AND price BETWEEN 1 AND 5")
    cluster.until(lambda: acknowledged(client) == [1], 1.0)
    before = [len(node.registry.counting.lists) for node in cluster.nodes]
    assert sum(before) > 6
    node = cluster.node("b1")
    node.registry._put_anew(cluster.now)
    cluster.run(REFRESH_SECONDS + 5.0)
    assert [len(one.registry.counting.lists) for one in cluster.nodes] == before
    versions = {item.version for item in node.cluster.kv.items.table.values() if item.name[0] == "count"}
    assert versions <= {2}


def test_what_was_asked_for_before_the_stream_was_counted_stays_where_it_is() -> None:
    cluster = NodeCluster(5)
    subscriber, publisher = cluster.connect("b1"), cluster.connect("b2")
    subscriber.subscribe(1, "quotes", ASKED)
    cluster.run(0.5)
    publisher.send(Ask(1, "schema.put", {"stream": "quotes", "schema": COUNTED}))
    cluster.run(0.5)
    subscriber.subscribe(2, "quotes", ASKED)
    subscriber.subscribe(3, "quotes", "x = 1 OR price = 3")
    cluster.run(0.5)
    assert delivered(cluster, publisher, subscriber, x=1) == [(1, "event"), (2, "event"), (3, "event")]
    assert list(cluster.node("b1").registry.counting.checks) == [2]
    summary = cluster.node("b4").registry.usage.summaries["quotes"]
    assert list(summary.dimensions) == [equal_dimension("x"), topic_dimension(1)] and list(summary.counted) == [LIST]
    publisher.take()
    publisher.send(Ask(3, "streams", {}))
    ((row,),) = (answer.value for answer in publisher.of(Answer))
    resting_here = len(cluster.node("b2").streams.by_name["quotes"].index)
    listed = len(cluster.node("b2").registry.counting.lists.at("quotes", LIST, KEY))
    assert (row["placement"], row["subscriptions"]) == ("counting", resting_here + listed)


def test_with_its_session_a_counted_one_ends() -> None:
    cluster = counted_cluster(3)
    client = cluster.connect("b1")
    client.subscribe(1, "quotes", ASKED)
    cluster.run(0.5)
    assert all(len(node.registry.counting.lists) for node in cluster.nodes)
    client.send(Goodbye(ErrorCode.GOODBYE, ""))
    cluster.run(0.5)
    assert not any(len(node.registry.counting.lists) for node in cluster.nodes)
    assert cluster.node("b1").registry.counting.checks == {}
