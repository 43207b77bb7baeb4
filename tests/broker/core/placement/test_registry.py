"""Registry: when SUBACK is sent and when not, what rests where, what comes back and what is dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.broker.core.keyspace import RING_SIZE, equal_dimension, equality_key, topic_dimension
from headgate.broker.core.kv import Item, KvLimits
from headgate.broker.core.limits import Limits
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Goodbye, Suback, Unsuback, Unsubscribe
from tests.support.builders import make_subscribe, quote_batch
from tests.support.node_cluster import Client, NodeCluster

KEY = equality_key("quotes", "x", 1)
assert KEY is not None
ASKED = "x = 1"


def places(cluster: NodeCluster, key: int = KEY) -> list[str]:
    """Names of the brokers, the owner of the key first, then in the order of the ring."""
    owner = cluster.owner(key).name
    ring = sorted(cluster.hosts, key=lambda name: cluster.node(name).cluster.me)
    start = ring.index(owner)
    return ring[start:] + ring[:start]


def resting(cluster: NodeCluster) -> set[str]:
    """Where any subscription rests."""
    return {name for name in cluster.hosts if cluster.node(name).registry.anchored.dimension_of}


def acknowledged(client: Client) -> list[int]:
    return [message.subscription for message in client.of(Suback)]


def delivered(cluster: NodeCluster, publisher: Client, subscriber: Client, **columns: Any) -> list[tuple[int, str]]:
    """What the subscriber gets of one event."""
    subscriber.take()
    publisher.publish(quote_batch(bodies=["event"], **{name: [value] for name, value in columns.items()}))
    cluster.run(0.1)
    return sorted(subscriber.bodies)


# --- In force ---------------------------------------------------------------------------------------------------------


def test_a_subscription_rests_at_the_owner_of_its_key_and_his_siblings_and_nowhere_else() -> None:
    cluster = NodeCluster(5)
    owner, second, third, _, home = places(cluster)
    client = cluster.connect(home)
    client.subscribe(1, "quotes/a/*", ASKED, exact=True)
    assert acknowledged(client) == []
    cluster.until(lambda: acknowledged(client) == [1], 0.1)
    assert resting(cluster) == {owner, second, third}
    node = cluster.node(owner)
    (identity,) = node.registry.anchored.dimension_of
    held = node.subscribers.by_identity[identity]
    assert (str(held.pattern), held.pattern.exact, held.session.name) == ("quotes/a/*", True, home)
    assert list(node.streams.by_name["quotes"].index.match(["quotes/a/b"], 1, {"x": [1]})) == [((identity,), [0])]
    client.send(Unsubscribe(2, 1))
    assert client.of(Unsuback) == [Unsuback(2, 1)]
    cluster.run(0.1)
    assert resting(cluster) == set()


def test_after_unsuback_nothing_comes_even_while_nobody_else_knows_of_it() -> None:
    cluster = NodeCluster(5)
    home, *others = places(cluster)
    client, publisher = cluster.connect(home), cluster.connect(home)
    client.subscribe(1, "quotes", ASKED)
    cluster.run(0.1)
    assert delivered(cluster, publisher, client, x=1) == [(1, "event")]
    cluster.hold(home, *others)
    client.take()
    client.send(Unsubscribe(2, 1))
    publisher.publish(quote_batch(bodies=["late"], x=[1]))
    assert client.got == [Unsuback(2, 1)]
    assert home not in resting(cluster)


@pytest.mark.parametrize("late", [0, 1, 2])
def test_suback_waits_for_the_owner_and_each_sibling(late: int) -> None:
    cluster = NodeCluster(5)
    *holders, home = places(cluster)
    client = cluster.connect(home)
    client.subscribe(1, "quotes", "x = 2")  # so that only the place is waited for, not the use of the dimension
    cluster.until(lambda: acknowledged(client) == [1], 1.0)
    cluster.hold(holders[late], *(name for name in cluster.hosts if name != holders[late]))
    client.subscribe(2, "quotes", ASKED)
    cluster.run(0.5)
    assert acknowledged(client) == [1]
    cluster.release()
    cluster.until(lambda: acknowledged(client) == [1, 2], 2.0)


def test_suback_waits_until_even_a_broker_that_holds_nothing_of_it_knows_the_dimension() -> None:
    cluster = NodeCluster(5)
    _, _, _, idle, home = places(cluster)
    client = cluster.connect(home)
    cluster.hold(idle, *(name for name in cluster.hosts if name != idle))
    client.subscribe(1, "quotes", ASKED)
    cluster.run(0.5)
    assert acknowledged(client) == []
    assert "quotes" not in cluster.node(idle).registry.usage.summaries
    cluster.release()
    cluster.until(lambda: acknowledged(client) == [1], 2.0)
    assert equal_dimension("x") in cluster.node(idle).registry.usage.summaries["quotes"].dimensions
    cluster.hold(idle, *(name for name in cluster.hosts if name != idle))
    client.subscribe(2, "quotes", ASKED)
    cluster.run(0.5)
    assert acknowledged(client) == [1, 2], "the dimension is known already"


def test_what_is_published_anywhere_after_suback_is_seen() -> None:
    cluster = NodeCluster(5)
    publishers = [cluster.connect(name) for name in cluster.hosts]
    for number, home in enumerate(cluster.hosts, 1):
        client = cluster.connect(home)
        client.subscribe(1, "quotes", f"y{number} = {number}")
        cluster.until(lambda client=client: acknowledged(client) == [1], 1.0)  # type: ignore[misc]  # bound at once
        for publisher in publishers:
            columns: dict[str, Any] = {f"y{number}": [number]}
            publisher.publish(quote_batch(bodies=[publisher.host.name], **columns))
        cluster.run(0.1)
        assert sorted(client.bodies) == [(1, name) for name in sorted(cluster.hosts)]


def test_the_longest_conditions_rest_like_any_other() -> None:
    """What is printed of a condition may be thirty times as long as what a client may write."""
    cluster = NodeCluster(5)
    *_, home = places(cluster)
    for name in ("n" * 250, "é" * 125):
        items = ",".join(str(number) if number % 2 else f"'{number}'" for number in range(250))
        client = cluster.connect(home)
        client.subscribe(1, "quotes", f"`{name}` IN ({items})")
        cluster.until(lambda client=client: acknowledged(client) == [1], 1.0)  # type: ignore[misc]  # bound at once
        for publisher in [cluster.connect(broker) for broker in cluster.hosts]:
            assert delivered(cluster, publisher, client, **{name: 7}) == [(1, "event")]
    assert all(node.cluster.settled(cluster.now) for node in cluster.nodes)
    notes = [note.event for host in cluster.hosts.values() for note in host.notes]
    assert "item not understood" not in notes and "broker link ended" not in notes


def test_a_client_that_filters_on_everything_harms_nobody() -> None:
    cluster = NodeCluster(3, check_every=10_000)
    client, publisher = cluster.connect("b1"), cluster.connect("b0")
    client.send(*[make_subscribe(number, "quotes", f"`{number}{'x' * 240}` > 1") for number in range(1, 600)])
    cluster.until(lambda: len(acknowledged(client)) == 599, 5.0)
    assert delivered(cluster, publisher, client, **{f"7{'x' * 240}": 2}) == [(7, "event")]


def test_beyond_so_many_dimensions_a_subscription_rests_at_its_topic() -> None:
    cluster = NodeCluster(1, limits=Limits(dimensions=2))
    client = cluster.connect("b0")
    for number, condition in enumerate(["a = 1", "b = 1", "c = 1", "a = 2"], 1):
        client.subscribe(number, "quotes", condition)
    dimensions = list(cluster.node("b0").registry.anchored.dimension_of.values())
    assert dimensions == [equal_dimension("a"), equal_dimension("b"), topic_dimension(1), equal_dimension("a")]
    assert delivered(cluster, client, client, c=1) == [(3, "event")]


# --- Not in force -----------------------------------------------------------------------------------------------------


def stuck() -> tuple[NodeCluster, Client]:
    """A client of a broker that reaches nobody, and puts that are given up after a second."""
    cluster = NodeCluster(5, kv=KvLimits(put_seconds=1.0))
    home = places(cluster)[-1]
    client = cluster.connect(home)
    cluster.hold(home, *(name for name in cluster.hosts if name != home))
    client.subscribe(1, "quotes", ASKED)
    return cluster, client


def test_what_cannot_be_placed_is_refused_and_leaves_nothing() -> None:
    cluster, client = stuck()
    cluster.until(lambda: bool(client.of(Error)), 1.3)
    (error,) = client.of(Error)
    assert (error.code, error.reference) == (ErrorCode.UNAVAILABLE, 101)
    node = client.host.node
    assert node.subscribers.by_identity == {} and node.registry.usage.dimensions_used("quotes") == {}
    cluster.release()
    cluster.run(30.0)
    assert resting(cluster) == set() and not client.of(Suback)
    client.subscribe(1, "quotes", ASKED)
    cluster.until(lambda: acknowledged(client) == [1], 5.0)
    assert resting(cluster) == set(places(cluster)[:3])


def test_asked_again_before_it_is_in_force_the_last_request_is_answered_once() -> None:
    cluster, client = stuck()
    key = client.host.node.subscribers.by_link[client.link].key
    cluster.disconnect(client)
    again = cluster.connect(client.host.name, session=key)
    again.send(replace(make_subscribe(1, "quotes", ASKED), request=555))
    assert again.of(Error) == []
    cluster.release()
    cluster.until(lambda: bool(again.of(Suback)), 3.0)
    cluster.run(1.0)
    assert again.of(Suback) == [Suback(555, 1)] and client.of(Suback) == []
    again.subscribe(1, "quotes", ASKED)
    assert [error.code for error in again.of(Error)] == [ErrorCode.DUPLICATE]


def test_ended_before_it_is_in_force_it_never_is() -> None:
    cluster, client = stuck()
    client.send(Unsubscribe(2, 1))
    assert client.of(Unsuback) == [Unsuback(2, 1)]
    cluster.release()
    cluster.run(40.0)
    assert client.of(Suback) == [] and client.of(Error) == []
    assert resting(cluster) == set()


def test_a_client_that_goes_meanwhile_leaves_nothing() -> None:
    cluster, client = stuck()
    client.send(Goodbye(0, ""))
    cluster.release()
    cluster.run(40.0)
    assert resting(cluster) == set()
    assert all(node.registry.usage.summaries == {} for node in cluster.nodes)


# --- What comes back, and what is dropped -----------------------------------------------------------------------------


def test_what_a_disaster_took_is_put_again_within_half_a_minute() -> None:
    cluster = NodeCluster(5)
    home = places(cluster)[-1]
    client, publisher = cluster.connect(home), cluster.connect(places(cluster)[1])
    client.subscribe(1, "quotes", ASKED)
    client.subscribe(2, "quotes", "x IN (1, 2, 3)")
    cluster.run(1.0)
    for node in cluster.nodes:
        for name in [name for name in node.cluster.kv.items.table if name[0] in ("sub", "use")]:
            node.cluster.kv.items.remove(name)
        node.cluster.kv.tick(cluster.now)
        node.carry_on(cluster.now)
    assert resting(cluster) == set()
    assert delivered(cluster, publisher, client, x=1) == []
    cluster.run(31.0)
    assert delivered(cluster, publisher, client, x=1) == [(1, "event"), (2, "event")]
    assert delivered(cluster, publisher, client, x=3) == [(2, "event")]
    assert resting(cluster) >= set(places(cluster)[:3])


def test_a_refresh_of_many_goes_in_steps() -> None:
    cluster = NodeCluster(2, limits=Limits(refresh_items=2))
    client = cluster.connect("b1")
    for number in range(1, 6):
        client.subscribe(number, "quotes", ASKED)
    cluster.run(60.0)
    node, puts = cluster.node("b1"), list[int]()
    put = node.cluster.kv.put
    node.cluster.kv.put = lambda items, now: puts.append(len(list(items))) or put(items, now)  # type: ignore[method-assign, func-returns-value]
    cluster.run(31.0)
    assert puts == [1, 2, 2, 1]
    node.registry.life_seen(7, 1, cluster.now)
    puts.clear()
    cluster.run(5.0)
    assert puts == [1, 2, 2, 1] * 2, "somebody came: at once, and again when rings that met are one"


def test_what_belongs_to_a_dead_broker_is_kept_for_a_minute_and_then_dropped() -> None:
    cluster = NodeCluster(5)
    home = places(cluster)[-1]
    client = cluster.connect(home)
    client.subscribe(1, "quotes", ASKED)
    cluster.run(1.0)
    cluster.kill(home)
    cluster.run(44.0)
    assert resting(cluster) == set(places(cluster)[:3])
    assert "quotes" in cluster.nodes[0].registry.usage.summaries
    cluster.run(60.0)
    assert resting(cluster) == set()
    assert all(node.registry.usage.summaries == {} for node in cluster.nodes)
    notes = [note for host in cluster.hosts.values() for note in host.notes if note.event == "broker forgotten"]
    assert {note.facts["broker"] for note in notes} == {f"{client.host.node.cluster.me:016x}"}


def test_what_belongs_to_a_former_life_is_dropped_as_soon_as_the_broker_is_back() -> None:
    cluster = NodeCluster(5)
    home = places(cluster)[-1]
    client = cluster.connect(home)
    client.subscribe(1, "quotes", ASKED)
    cluster.run(1.0)
    cluster.kill(home)
    cluster.run(1.0)
    assert len(resting(cluster)) == 3
    cluster.start(home, list(cluster.hosts)[:1], life=2)
    cluster.until(lambda: resting(cluster) == set(), 4.0)
    assert all(node.registry.usage.summaries == {} for node in cluster.nodes)


def test_after_minutes_apart_live_clients_find_their_subscriptions_in_force() -> None:
    cluster = NodeCluster(5)
    away, *others = reversed(places(cluster))
    clients = [cluster.connect(name) for name in (away, others[0])]
    for client in clients:
        client.subscribe(1, "quotes", ASKED)
        client.subscribe(2, "quotes", "")
    cluster.run(1.0)
    cluster.hold(away, *others)
    for other in others:
        cluster.cut(away, other)
        cluster.cut(other, away)
    cluster.run(100.0)
    cluster.release()
    cluster.until(cluster.settled, 30.0)
    cluster.run(10.0)
    for publisher in [cluster.connect(name) for name in cluster.hosts]:
        for client in clients:
            assert delivered(cluster, publisher, client, x=1) == [(1, "event"), (2, "event")]
    for client in clients:
        client.send(Unsubscribe(1, 1), Unsubscribe(2, 2))
    cluster.until(lambda: not resting(cluster), 20.0)  # what was orphaned meanwhile is brought home first


def test_a_broker_that_stood_still_puts_what_is_its_own_anew() -> None:
    cluster = NodeCluster(2)
    client = cluster.connect("b1")
    client.subscribe(1, "quotes", ASKED)
    cluster.run(1.0)
    held = cluster.node("b0").cluster.kv.items.table
    before = {name: item.version for name, item in held.items()}
    cluster.run(65.0)
    assert {name: item.version for name, item in held.items()} == before
    cluster.node("b1").registry.go_on(cluster.now + 100.0)
    cluster.node("b1").carry_on(cluster.now)
    cluster.run(102.0)
    assert held.keys() == before.keys() and all(held[name].version > before[name] for name in before)


# --- Items ------------------------------------------------------------------------------------------------------------


def item(number: int = 1, part: int = 0, home: int = 99, condition: str = ASKED, **fields: Any) -> Item:
    value = ["quotes", "quotes", False, condition, equal_dimension("x").wire()]
    return Item(("sub", home, 1, number, part), KEY or 0, KEY or 0, 1, value)._replace(**fields)


def test_a_subscription_at_several_keys_is_held_once_until_the_last_is_gone() -> None:
    cluster = NodeCluster(1)
    registry, index = cluster.node("b0").registry, cluster.node("b0").streams
    for part in range(3):
        registry.added(item(part=part), cluster.now)
    assert len(registry.anchored.dimension_of) == len(index.by_name["quotes"].index) == 1
    for part in range(3):
        assert len(registry.anchored.dimension_of) == 1
        registry.removed(item(part=part), cluster.now)
    assert len(registry.anchored.dimension_of) == len(index.by_name["quotes"].index) == 0
    registry.removed(item(), cluster.now)
    registry.validate()


def test_of_our_own_only_what_this_life_still_has_is_held() -> None:
    cluster = NodeCluster(1)
    node = cluster.node("b0")
    node.registry.added(item(home=node.cluster.me), cluster.now)
    assert node.registry.anchored.dimension_of == {}
    node.registry.removed(item(home=node.cluster.me), cluster.now)
    node.validate()


@pytest.mark.parametrize(
    "wrong",
    [
        item(condition="x = = 1"),
        item(value=["quotes"]),
        item(value=["quotes", "*", False, "", ["topic", 1]]),
        item(value=["quotes", "quotes", False, "", ["heap", 1]]),
        item(value=7),
        Item(("use", 99, 1, "quotes"), 0, RING_SIZE - 1, 1, [["?"], []]),
    ],
)
def test_what_is_not_understood_is_noted_and_left_alone(wrong: Item) -> None:
    cluster = NodeCluster(1)
    node = cluster.node("b0")
    node.cluster.kv.put([wrong], cluster.now)
    node.carry_on(cluster.now)
    assert [effect.event for effect in node.effects if hasattr(effect, "event")][-1] == "item not understood"
    assert node.registry.anchored.dimension_of == {}
    node.effects.clear()
    node.validate()


def test_unknown_kinds_of_items_are_nobodys_business() -> None:
    node = NodeCluster(1).node("b0")
    node.registry.added(Item(("later", 1), 0, 0, 1, []), 0.0)
    node.registry.removed(Item(("later", 1), 0, 0, 1, []), 0.0)
    assert node.effects == []
