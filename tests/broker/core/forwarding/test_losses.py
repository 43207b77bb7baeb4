"""Losses: told on every link, and again to whoever may not have heard it, for as long as it may come back."""

from __future__ import annotations

from typing import Any

from headgate.broker.core.limits import ORPHAN_SECONDS, Limits
from headgate.protocol.messages import Control, Gap
from tests.support.node_cluster import Client, NodeCluster

LOSS = 16


def told(cluster: NodeCluster, recipient: str, since: int) -> list[list[Any]]:
    return [
        list(what.body)
        for source, to, what in cluster.said[since:]
        if (source, to) == ("b0", recipient) and isinstance(what, Control) and what.kind == LOSS
    ]


def lose(cluster: NodeCluster, count: int, stream: str = "quotes") -> None:
    """As if a FORWARD of b0 had got lost."""
    forwarding = cluster.node("b0").forwarding
    info = cluster.node("b0").cluster.linked()[0]
    forwarding.lost_with(info, stream, count, cluster.now)
    effects, cluster.node("b0").effects[:] = cluster.node("b0").effects[:], []
    for effect in effects:
        cluster._carry_out(cluster.hosts["b0"], effect)


def subscriber(cluster: NodeCluster, name: str) -> Client:
    client = cluster.connect(name)
    client.subscribe(1, "quotes")
    cluster.run(0.1)
    return client


def counts(client: Client) -> list[int]:
    return [gap.count for gap in client.of(Gap)]


def test_whoever_has_a_link_is_told_at_once_and_once() -> None:
    cluster = NodeCluster(3)
    clients = [subscriber(cluster, name) for name in ("b0", "b1", "b2")]
    lose(cluster, 3)
    cluster.run(20.0)
    assert [counts(client) for client in clients] == [[3]] * 3


def test_whoever_has_no_link_just_now_is_told_when_it_has_one_again() -> None:
    cluster = NodeCluster(3)
    client, other = subscriber(cluster, "b1"), subscriber(cluster, "b2")
    cluster.cut("b1", "b0")
    cluster.until(lambda: not cluster.linked("b0", "b1"), 0.1)
    lose(cluster, 3)
    lose(cluster, 4, "trades")
    assert counts(client) == []
    cluster.until(lambda: cluster.linked("b1", "b0"), 3.0)
    cluster.run(0.1)
    assert counts(client) == [3] and counts(other) == [3]


def test_what_was_said_just_before_the_link_broke_is_said_again_and_older_things_are_not() -> None:
    cluster = NodeCluster(3)
    client = subscriber(cluster, "b1")
    lose(cluster, 1)
    cluster.run(10.0)
    lose(cluster, 2)  # lost with the link, as far as anybody knows
    cluster.cut("b1", "b0")
    since = len(cluster.said)
    cluster.until(lambda: not cluster.linked("b0", "b1"), 0.1)
    cluster.until(lambda: cluster.linked("b0", "b1"), 3.0)
    cluster.run(0.1)
    assert told(cluster, "b1", since) == [["quotes", 2]]
    assert counts(client)[0] == 1 and 2 in counts(client)


def test_a_newcomer_and_another_life_have_nobody_to_tell() -> None:
    cluster = NodeCluster(2)
    cluster.cut("b1", "b0")
    lose(cluster, 3)
    cluster.kill("b1")
    since = len(cluster.said)
    cluster.start("b1", life=2)
    cluster.start("b2")
    cluster.run(5.0)
    assert cluster.linked("b0", "b1") and cluster.linked("b0", "b2")
    assert told(cluster, "b1", since) == told(cluster, "b2", since) == []


def test_what_is_remembered_has_an_end() -> None:
    cluster = NodeCluster(2, limits=Limits(losses_kept=5))
    losses = cluster.node("b0").forwarding.losses
    for count in range(1, 9):
        lose(cluster, count)
    assert [count for _, _, count in losses._told] == [4, 5, 6, 7, 8]
    cluster.run(ORPHAN_SECONDS + 1)
    lose(cluster, 9)
    assert [count for _, _, count in losses._told] == [9]
    cluster.kill("b1")
    cluster.run(1.0)
    assert len(losses._doubtful_since) == 1
    cluster.start("b2")
    cluster.run(ORPHAN_SECONDS)
    cluster.kill("b2")
    cluster.run(1.0)
    assert len(losses._doubtful_since) == 1, "only of who went last"
