"""The ring for people: who is there, who has how much, and where a subscription would live, for 1, 3 and 5 brokers."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.keyspace import RING_SIZE, equality_key, hash_identifier, prefix_key
from headgate.broker.core.limits import Limits
from headgate.protocol.messages import Answer, Ask
from tests.support.node_cluster import Client, NodeCluster

SCHEMA = {"attributes": {"price": {"type": "float", "min": 0, "max": 100, "precision": 0.25}}}


def ask(client: Client, verb: str, **arguments: Any) -> Any:
    client.take()
    client.send(Ask(1, verb, arguments))
    client.cluster.until(lambda: bool(client.of(Answer)))
    (answer,) = client.of(Answer)
    return answer.value


def ring(cluster: NodeCluster, name: str = "b0") -> Any:
    return ask(cluster.connect(name), "ring")


# --- ring -------------------------------------------------------------------------------------------------------------


def test_a_broker_alone_has_all_of_the_ring_and_nobody_to_copy_it() -> None:
    cluster = NodeCluster(1)
    client = cluster.connect("b0")
    client.subscribe(1)
    answer = ask(client, "ring")
    (only,) = answer.pop("brokers")
    counts = {"replicas": 2, "log_copies": 2, "scope": 1.0, "items": 2, "away": [], "refused": []}
    assert answer == {"broker": "b0", "cluster": "headgate", "role": "mesh", "settled": True, **counts}
    assert only == {
        "name": "b0",
        "address": "b0:7401",
        "client_address": "b0:7470",
        "life": 1,
        "state": "up",
        "subscriptions": 1,
        "identifier": f"{hash_identifier('b0'):016x}",
        "after": f"{hash_identifier('b0'):016x}",
        "share": 1.0,
        "replicas": [],
    }


@pytest.mark.parametrize(("brokers", "role", "scope"), [(3, "mesh", 3.0), (5, "ring", 3.0)])
def test_everybody_tells_of_the_same_ring(brokers: int, role: str, scope: float) -> None:
    cluster = NodeCluster(brokers)
    answers = {name: ring(cluster, name) for name in cluster.hosts}
    for name, answer in answers.items():
        assert (answer["broker"], answer["role"], answer["settled"]) == (name, role, True)
        assert sum(one["share"] for one in answer["brokers"]) == pytest.approx(1.0)
        identifiers = [int(one["identifier"], 16) for one in answer["brokers"]]
        assert identifiers == sorted(hash_identifier(one) for one in cluster.hosts)
        assert [int(one["after"], 16) for one in answer["brokers"]] == [identifiers[-1], *identifiers[:-1]]
        names = [one["name"] for one in answer["brokers"]]
        assert [one["replicas"] for one in answer["brokers"]] == [
            [names[(place + step) % brokers] for step in (1, 2)] for place in range(brokers)
        ]
        assert {one["state"] for one in answer["brokers"]} == {"up"}
        assert [one["name"] for one in answer["brokers"] if one["subscriptions"] is not None] == [name]
        for one, identifier, after in zip(
            answer["brokers"], identifiers, [identifiers[-1], *identifiers], strict=False
        ):
            assert one["share"] == pytest.approx(((identifier - after) % RING_SIZE) / RING_SIZE)
            assert (one["address"], one["client_address"], one["life"]) == (
                f"{one['name']}:7401",
                f"{one['name']}:7470",
                1,
            )
    assert sum(answer["scope"] for answer in answers.values()) == pytest.approx(scope)


def test_who_does_not_answer_is_shown_as_down_until_it_is_forgotten() -> None:
    cluster = NodeCluster(3)
    cluster.kill("b1")
    cluster.run(0.5)
    assert {one["name"]: one["state"] for one in ring(cluster)["brokers"]} == {"b0": "up", "b1": "down", "b2": "up"}
    cluster.run(90.0)
    answer = ring(cluster)
    assert [one["name"] for one in answer["brokers"]] == sorted(["b0", "b2"], key=hash_identifier)
    assert [one["address"] for one in answer["away"]] == ["b1:7401"], "it may have logs that nobody else has"
    cluster.start("b1")
    cluster.run(10.0)
    assert ring(cluster)["away"] == []


def test_who_has_not_settled_is_joining() -> None:
    cluster = NodeCluster(3)
    cluster.start("b3")
    answer = ring(cluster, "b3")
    assert (answer["settled"], answer["scope"]) == (False, 0.0)
    assert [one["state"] for one in answer["brokers"] if one["name"] == "b3"] == ["joining"]


# --- explain ----------------------------------------------------------------------------------------------------------


def held(cluster: NodeCluster) -> set[str]:
    """Who owns a key of a subscription that rests there."""
    return {
        name
        for name, host in cluster.hosts.items()
        for item in host.node.cluster.kv.items.table.values()
        if item.name[0] == "sub"
        and item.value is not None
        and (own := host.node.cluster.kv.ownership.own) is not None
        and own.touches(item.low, item.high)
    }


@pytest.mark.parametrize("brokers", [1, 3, 5])
def test_a_value_lives_at_its_one_owner_and_everybody_says_so(brokers: int) -> None:
    cluster = NodeCluster(brokers)
    key = equality_key("quotes", "symbol", "OTE")
    assert key is not None
    for name in cluster.hosts:
        answer = ask(cluster.connect(name), "explain", pattern="quotes", condition="symbol = 'OTE' AND price > 3")
        assert answer["lives_on"] == [cluster.owner(key).name]
        assert answer["keys"] == [f"{key:016x}"]
        assert answer["shelf"] == "values of symbol"
        assert "rests where quotes.symbol = 'OTE' meets" in answer["because"]
        assert ("alone" in answer["because"]) == (brokers == 1)


def test_of_a_stored_stream_it_says_how_many_producers_are_remembered_and_may_be() -> None:
    client = NodeCluster(1).connect("b0")
    assert "producers" not in ask(client, "explain", pattern="quotes")
    ask(client, "schema.put", stream="quotes", schema={"durability": "stored"})
    assert ask(client, "explain", pattern="quotes")["producers"] == {"known": 0, "limit": Limits().producers}


def test_without_a_condition_it_lives_at_its_topic() -> None:
    cluster = NodeCluster(5)
    answer = ask(cluster.connect("b3"), "explain", pattern="quotes/NYSE/*/x")
    assert answer["lives_on"] == [cluster.owner(prefix_key("quotes/NYSE")).name]
    assert answer["shelf"] == "the first 2 levels of the topic"


@pytest.mark.parametrize("condition", ["price > 5 AND price < 50", "price < 20 OR price > 85", "x IN (1, 2, 3, 4, 5)"])
def test_what_lives_in_several_places_names_every_one_of_them(condition: str) -> None:
    cluster = NodeCluster(5)
    client = cluster.connect("b0")
    ask(client, "schema.put", stream="quotes", schema=SCHEMA)
    client.subscribe(1, "quotes", condition)
    cluster.run(1.0)
    answer = ask(client, "explain", pattern="quotes", condition=condition)
    assert set(answer["lives_on"]) == held(cluster)
    assert len(answer["lives_on"]) > 1
    assert len(set(answer["lives_on"])) == len(answer["lives_on"])


COUNTED = {
    "attributes": {
        "price": {"type": "float", "min": 0, "max": 20, "precision": 0.01},
        "symbol": {"type": "string"},
    },
    "placement": "counting",
}


def test_a_counted_subscription_lives_on_lists_and_says_so() -> None:
    cluster = NodeCluster(5)
    client = cluster.connect("b1")
    client.send(Ask(7, "schema.put", {"stream": "quotes", "schema": COUNTED}))
    cluster.run(0.2)
    condition = "symbol = 'OTE' AND price < 3"
    client.subscribe(1, "quotes", condition)
    cluster.run(0.2)
    answer = ask(client, "explain", pattern="quotes", condition=condition)
    owners = {
        cluster.owner(item.low).name
        for node in cluster.nodes
        for item in node.cluster.kv.items.table.values()
        if item.name[0] == "count"
    }
    assert owners <= set(answer["lives_on"]) and len(answer["keys"]) == 2
    assert answer["shelf"] == "lists of symbol, lists of price, 0 to 20 by 0.01"
    assert "it is on the lists of quotes.symbol = 'OTE' and quotes.price up to 3" in answer["because"]
    home = f"{cluster.node('b1').cluster.me:016x}"
    assert answer["subid"] == {"c1": home, "c2": None, "c3": 2}
    (row,) = ask(client, "subs")
    assert row["subid"] == {"c1": home, "c2": row["id"], "c3": 2}
    answer = ask(client, "explain", pattern="quotes", condition="price < 1 OR price > 19")
    assert "on the lists of quotes.price up to 1 or quotes.price from 19 up" in answer["because"]
    assert len(answer["keys"]) == 2 and answer["subid"]["c3"] == 1
    answer = ask(client, "explain", pattern="quotes", condition="symbol = 'OTE' OR price < 3")
    assert answer["shelf"] == "the stream" and "counting, which it cannot be" in answer["because"]
    assert "subid" not in answer
