"""Durable subscriptions when links break, answers are late, and two want something at once."""

from __future__ import annotations

import pytest

from headgate.broker.core.durable import DurableState, encode_state, keeping
from headgate.broker.core.inputs import LinkDown
from headgate.protocol.messages import Answer, Ask, Ended, Error, Suback, Subscribe, Unsuback, Unsubscribe
from tests.support.log_cluster import LogCluster

from .test_durables import bodies, subscribe


def name_at(cluster: LogCluster, broker: str) -> str:
    """A name of which this broker is the coordinator."""
    some = next(iter(cluster.hosts))
    return next(
        f"orders{n}" for n in range(999) if cluster.node(some).durables.coordinator_name(f"orders{n}") == broker
    )


def break_unseen(cluster: LogCluster, one: str, other: str) -> None:
    """The first hears that their link is gone, and comes back before the other hears it."""
    for end in [end for end in cluster._ends.values() if (end.host.name, end.other.host.name) == (one, other)]:
        end.open = end.other.open = False
        cluster._ends.pop(end.link)
        cluster.feed(end.host, LinkDown(end.link, "cut"))
    cluster.run(5.0)
    assert cluster.linked(one, other) and cluster.linked(other, one)


def test_a_broker_whose_link_was_replaced_is_asked_anew() -> None:
    cluster = LogCluster(3)
    subscriber, publisher = cluster.connect("b1"), cluster.connect("b2")
    assert isinstance(subscribe(cluster, subscriber, name_at(cluster, "b1")), Suback)
    break_unseen(cluster, "b2", "b1")
    cluster.store(publisher, "a")
    cluster.until(lambda: bodies(subscriber) == ["a"], 5.0)


def test_clients_behind_a_link_that_was_replaced_take_part_no_more() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    ghost, other = cluster.connect("b2"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, ghost, name), Suback)
    break_unseen(cluster, "b2", "b1")
    assert ghost.of(Ended)
    assert isinstance(subscribe(cluster, other, name), Suback)


def test_unsubscribe_while_attaching() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one = cluster.connect("b0")
    cluster.node("b1").durables.keeping.is_ready = False
    one.send(Subscribe(5, 1, "quotes", "", {"durable": name}))
    cluster.run(0.05)
    one.take()
    one.send(Unsubscribe(6, 1))
    cluster.run(0.5)
    assert one.of(Unsuback) and not one.of(Error)
    cluster.node("b1").durables.keeping.is_ready = True
    cluster.run(2.0)
    assert not one.of(Suback)


def test_two_changes_at_once_both_hold() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one, other = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, name), Suback)
    other.send(Ask(1, "durable_set", {"name": name, "where": "price > 8", "from": "now"}))
    other.send(Ask(2, "durable_set", {"name": name, "max_deliver": 7}))
    cluster.until(lambda: len(other.of(Answer) + other.of(Error)) == 2)
    row = cluster.ask(one, "durable", name=name)
    assert (row["condition"], row["max_deliver"], row["version"]) == ("`price` > 8", 7, 3)


def fill(cluster: LogCluster, count: int) -> None:
    """The first broker keeps so many small states."""
    kept = cluster.node("b0").durables.keeping._kept
    for number in range(count):
        state = DurableState(f"{number}", stream="q", pattern="q", removed=True, generation=1)
        kept[state.name] = keeping._Kept(1, encode_state(state), 0)


def test_many_small_states_are_collected() -> None:
    cluster = LogCluster(2)
    fill(cluster, 20_000)
    cluster.start("b2")
    cluster.run(15.0)
    assert all(node.durables.keeping.is_ready for node in cluster.nodes)


def test_collecting_may_take_longer_than_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "COLLECT_PAGE_BYTES", 1)
    cluster = LogCluster(2)
    fill(cluster, 4_000)
    cluster.start("b2")
    cluster.run(15.0)
    assert all(node.durables.keeping.is_ready for node in cluster.nodes)
