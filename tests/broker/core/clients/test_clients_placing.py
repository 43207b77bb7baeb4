"""Clients and the cluster: another wish under a number that is being placed; what a broker takes along when it goes."""

from __future__ import annotations

from headgate.broker.core.membership import Chord, Heard, Letter, member_of
from headgate.broker.core.membership import Post as Posted
from headgate.broker.core.membership.messages import Greet, Ringed
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Suback, Subscribe
from tests.support.node_cluster import NodeCluster


def test_another_wish_under_a_number_that_is_being_placed_is_refused() -> None:
    cluster = NodeCluster(3)
    client = cluster.connect("b0")
    client.send(
        Subscribe(1, 1, "quotes", "a = 1"), Subscribe(2, 1, "quotes", "a = 2"), Subscribe(3, 1, "quotes", "a = 1")
    )
    cluster.run(3.0)
    assert [(one.reference, one.code) for one in client.of(Error)] == [(2, ErrorCode.DUPLICATE)]
    assert [one.request for one in client.of(Suback)] == [3], "the last of those that asked for the same"


def test_who_leaves_takes_its_clients_subscriptions_along() -> None:
    cluster = NodeCluster(3)
    leaver, stays = cluster.connect("b2"), cluster.connect("b0")
    leaver.subscribe(1, "quotes", "a = 1")
    stays.subscribe(1, "quotes", "a = 1")
    cluster.run(1.0)
    assert [len(node.streams.by_name["quotes"].index) for node in cluster.nodes] == [2, 2, 2]
    cluster.leave("b2")
    cluster.run(0.5)
    left = [cluster.node(name) for name in ("b0", "b1")]
    assert [len(node.streams.by_name["quotes"].index) for node in left] == [1, 1]


def test_the_last_subscription_that_can_match_nothing_leaves_no_use_behind() -> None:
    cluster = NodeCluster(1)
    client = cluster.connect("b0")
    client.subscribe(1, "quotes", "a = NULL")
    assert client.of(Suback)
    cluster.disconnect(client)
    cluster.run(20.0)
    assert cluster.node("b0").registry.usage.summaries == {}


def invites(chord: Chord, now: float) -> bool:
    stranger = member_of("stranger", 1, "stranger:1")
    effects = chord.handle(Heard(Letter(stranger, None, Greet(()))), now)
    return any(isinstance(effect, Posted) and isinstance(effect.letter.body, Ringed) for effect in effects)


def test_a_member_that_slept_invites_nobody_before_it_has_looked_round() -> None:
    cluster = NodeCluster(5)
    chord = cluster.node("b1").cluster.chord
    assert chord is not None and chord.ring is not None
    assert invites(chord, cluster.now)
    assert not invites(chord, cluster.now + 20.0)
