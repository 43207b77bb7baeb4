"""Gathering: who is asked for which list, in which order batches go out, and what happens when a list does not come."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from headgate.broker.core.forwarding import AskLists, Lists
from headgate.broker.core.forwarding.messages import Piece, Spot
from headgate.broker.core.keyspace import NOTHING, count_dimension, equality_key
from headgate.broker.core.limits import WAITING_SECONDS_MAX, Limits
from headgate.broker.core.messages import CONTROLS
from headgate.broker.core.placement import ASK_AGAIN_SECONDS, SubscriptionId
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import (
    Answer,
    Ask,
    Control,
    Deliver,
    Error,
    Forward,
    Gap,
    Puback,
    Suback,
    Unsuback,
    Unsubscribe,
)
from tests.support.builders import quote_batch
from tests.support.node_cluster import Client, NodeCluster

SCHEMA: dict[str, Any] = {
    "attributes": {
        "price": {"type": "float", "min": 0, "max": 20, "precision": 0.01},
        "symbol": {"type": "string"},
        "venue": {"type": "string"},
    },
    "placement": "counting",
}
SYMBOL = count_dimension("symbol")

ASK, LISTS = CONTROLS.kind_of(AskLists), CONTROLS.kind_of(Lists)


def parse_ask(body: list[Any]) -> AskLists:
    return typing.cast(AskLists, CONTROLS.read(ASK, body))


def parse_lists(body: list[Any]) -> tuple[int, list[Piece]]:
    lists = typing.cast(Lists, CONTROLS.read(LISTS, body))
    return lists.number, list(lists.pieces())


def counted_cluster(brokers: int = 5, **config: Any) -> NodeCluster:
    cluster = NodeCluster(brokers, **config)
    client = cluster.connect("b0")
    client.send(Ask(1, "schema.put", {"stream": "quotes", "schema": SCHEMA}))
    cluster.until(lambda: bool(client.of(Answer)))
    return cluster


def key(name: str, value: str) -> int:
    found = equality_key("quotes", name, value)
    assert found is not None
    return found


def cast(cluster: NodeCluster, *values: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Brokers that answer for none of these values and can play others' parts; and who owns each value."""
    holders = {
        name
        for name, host in cluster.hosts.items()
        for one in values
        if host.node.cluster.scope(cluster.now).covers(key(*one))
    }
    return [name for name in cluster.hosts if name not in holders], [cluster.owner(key(*one)).name for one in values]


def apart(cluster: NodeCluster) -> tuple[str, str, str, str, str]:
    """A broker, two symbols that it does not answer for, and their owners, who are two."""
    for one in range(50):
        for other in range(one):
            symbols = f"s{one}", f"s{other}"
            idle, owners = cast(cluster, *(("symbol", symbol) for symbol in symbols))
            if idle and len(set(owners)) == 2:
                return (idle[0], *symbols, *owners)  # type: ignore[return-value]
    raise AssertionError("no such symbols")


def subscribed(cluster: NodeCluster, client: Client, number: int, condition: str, pattern: str = "quotes") -> None:
    client.subscribe(number, pattern, condition)
    cluster.until(lambda: any(said.subscription == number for said in client.of(Suback)), 2.0)
    client.take()


def controls(cluster: NodeCluster, kind: int, since: int = 0) -> list[tuple[str, str, Control]]:
    """Questions, or answers, that were said since then."""
    said = [(source, to, what) for source, to, what in cluster.said[since:] if isinstance(what, Control)]
    return [(source, to, what) for source, to, what in said if what.kind == kind]


def test_each_list_is_asked_for_once_a_batch_and_what_is_met_goes_home() -> None:
    cluster = counted_cluster()
    (origin, *_), (owner,) = cast(cluster, ("symbol", "OTE"))
    home = next(name for name in cluster.hosts if name not in (origin, owner))
    subscriber, publisher = cluster.connect(home), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE' AND price > 8.301 AND price < 9")
    before = len(cluster.said)
    publisher.publish(quote_batch(bodies=["a", "b", "c"], symbol=["OTE", "OTE", "OTE"], price=[8.302, 8.3, 12.0]))
    cluster.run(0.1)
    assert subscriber.bodies == [(1, "a")]
    asked = [
        (to, spot) for source, to, what in controls(cluster, ASK, before) for spot in parse_ask(list(what.body)).spots
    ]
    assert len(asked) == len(set(asked)) and (owner, Spot(SYMBOL, key("symbol", "OTE"))) in asked
    events = [what for _, _, what in cluster.said[before:] if isinstance(what, Forward | Deliver)]
    (delivered,) = events
    assert isinstance(delivered, Deliver) and delivered.portion.count == 2, "8.3 shares the cell of 8.302: a candidate"


def test_in_three_brokers_every_list_is_here() -> None:
    cluster = counted_cluster(3)
    subscriber, publisher = cluster.connect("b1"), cluster.connect("b2")
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    publisher.publish(quote_batch(bodies=["a", "b"], symbol=["OTE", "IBM"]))
    cluster.run(0.1)
    assert subscriber.bodies == [(1, "a")]
    assert not controls(cluster, ASK)


def test_a_client_of_the_same_broker_is_checked_here() -> None:
    cluster = counted_cluster(1)
    client = cluster.connect("b0")
    subscribed(cluster, client, 1, "price > 8.301 AND price < 9", "quotes/*/x")
    client.publish(quote_batch(["quotes/a/x", "quotes/a/y", "quotes/b/x"], ["a", "b", "c"], price=[8.5, 8.5, 8.3]))
    assert client.bodies == [(1, "a")]


def test_after_unsuback_nothing_comes_although_lists_still_say_so() -> None:
    cluster = counted_cluster()
    (origin, *_), (owner,) = cast(cluster, ("symbol", "OTE"))
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    cluster.hold(origin, *(name for name in cluster.hosts if name not in (origin, owner)))
    subscriber.send(Unsubscribe(2, 1))
    publisher.publish(quote_batch(bodies=["late"], symbol=["OTE"]))
    cluster.run(0.05)
    assert subscriber.got == [Unsuback(2, 1)]
    cluster.release()
    cluster.run(1.0)
    assert all(not len(node.registry.counting.lists) for node in cluster.nodes)
    assert all(node.registry.usage.beside_index == {} for node in cluster.nodes)


def test_batches_go_out_in_the_order_in_which_they_were_accepted() -> None:
    cluster = counted_cluster(6, replicas=1)
    origin, one, other, owner, _ = apart(cluster)
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, f"symbol IN ('{one}', '{other}')")
    cluster.hold(origin, owner)
    publisher.publish(*(quote_batch(bodies=[body], symbol=[body]) for body in (one, other, one)))
    cluster.run(0.1)
    assert subscriber.bodies == [], "the other list has come, and its event waits for the one before"
    assert cluster.node(origin).forwarding.waiting_events == 3
    cluster.release()
    cluster.run(0.1)
    assert [body for _, body in subscriber.bodies] == [one, other, one]
    assert publisher.of(Puback)[-1].sequence == 3
    assert cluster.node(origin).forwarding.waiting_events == 0


def test_a_list_that_does_not_come_is_asked_for_again() -> None:
    cluster = counted_cluster()
    (origin, *_), (owner,) = cast(cluster, ("symbol", "OTE"))
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    before = len(cluster.said)
    publisher.publish(quote_batch(bodies=["a"], symbol=["OTE"]))
    cluster.cut(origin, owner)  # the question arrives, the answer is lost
    cluster.run(ASK_AGAIN_SECONDS + 0.2)
    assert subscriber.bodies == [(1, "a")]
    assert len(controls(cluster, ASK, before)) == 2
    cluster.run(2.0)
    assert subscriber.bodies == [(1, "a")]


def test_when_its_owner_dies_another_broker_has_the_list() -> None:
    cluster = counted_cluster()
    (origin, *_), (owner,) = cast(cluster, ("symbol", "OTE"))
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    cluster.kill(owner)
    publisher.publish(quote_batch(bodies=["a"], symbol=["OTE"]))
    cluster.until(lambda: bool(subscriber.bodies), WAITING_SECONDS_MAX)
    assert subscriber.bodies == [(1, "a")] and not subscriber.of(Gap)


def test_a_list_that_nobody_gives_makes_its_rows_lost_and_the_others_go_out() -> None:
    cluster = counted_cluster(6, replicas=1)
    origin, one, other, owner, _ = apart(cluster)
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, f"symbol IN ('{one}', '{other}')")
    venue = next(name for name in "abcdefgh" if cluster.owner(key("venue", name)).name != owner)
    subscribed(cluster, subscriber, 2, f"venue = '{venue}'")
    node = cluster.node(origin)
    table = node.cluster.table_of_controls
    told = table[Lists]
    table[Lists] = lambda info, lists, now: told(info, lists, now) if info.name != owner else None
    publisher.publish(quote_batch(bodies=["a", "b"], symbol=[one, other], venue=[venue, "y"]))
    cluster.run(WAITING_SECONDS_MAX - 0.5)
    assert subscriber.got == []
    cluster.run(1.0)
    assert subscriber.bodies == [(2, "a"), (1, "b")]
    assert [gap.count for gap in subscriber.of(Gap)] == [1]
    assert node.forwarding.losses.events == 1


def test_a_long_list_comes_in_pieces_and_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.broker.core.forwarding.messages.IDENTITIES_PER_MESSAGE_MAX", 2)
    cluster = counted_cluster()
    (origin, *_), _ = cast(cluster, ("symbol", "OTE"))
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    for number in range(1, 6):
        subscribed(cluster, subscriber, number, "symbol = 'OTE' AND venue = 'x'")
    before = len(cluster.said)
    publisher.publish(quote_batch(bodies=["a"], symbol=["OTE"], venue=["x"]))
    cluster.run(0.1)
    assert sorted(subscriber.bodies) == [(number, "a") for number in range(1, 6)]
    assert len(controls(cluster, LISTS, before)) >= 3


def test_pieces_of_an_answer_that_broke_off_are_not_counted_with_those_of_the_next() -> None:
    cluster = counted_cluster()
    (origin, *_), (owner,) = cast(cluster, ("symbol", "OTE"))
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE' AND venue = 'x'")
    cluster.hold(origin, *(name for name in cluster.hosts if name != origin))
    before = len(cluster.said)
    publisher.publish(quote_batch(bodies=["a"], symbol=["OTE"], venue=["y"]))
    question = parse_ask(list(next(what for _, to, what in controls(cluster, ASK, before) if to == owner).body))
    me = cluster.node(origin)
    half = [me.cluster.me, max(me.registry._mine), 2, me.config.incarnation]
    wire = [question.number, [[half[0], half[3]]]]
    piece = [SYMBOL.wire(), key("symbol", "OTE")]
    for place, last in ((0, False), (0, False), (1, False), (7, True)):
        flat = [0, half[1], half[2]] if place == 0 else []
        cluster.tell(owner, origin, Control(LISTS, [*wire, [[*piece, place, last, flat]]]))
    (gather,) = me.forwarding.gathering._by_number.values()
    assert gather.lists[Spot(SYMBOL, key("symbol", "OTE"))] == [SubscriptionId(half[0], half[1], 2, half[3])]
    cluster.release()
    cluster.run(1.0)
    assert subscriber.bodies == []


@pytest.mark.parametrize("ablated", [False, True])
def test_who_does_not_answer_for_a_key_hands_the_question_on(ablated: bool) -> None:
    """Else it would say that nobody rests there: chance finds that hardly ever, so the ablation is caught here."""
    safeguards = SAFEGUARDS - {Safeguard.LISTS_BY_LEASE} if ablated else SAFEGUARDS
    cluster = counted_cluster(safeguards=safeguards)
    (origin, asked, *_), (owner,) = cast(cluster, ("symbol", "OTE"))
    subscriber = cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    before = len(cluster.said)
    spots = [[SYMBOL.wire(), [key("symbol", "OTE")]]]
    cluster.tell(origin, asked, Control(ASK, [77, f"{origin}:7401", 0, "quotes", spots]))
    cluster.run(0.1)
    if ablated:
        ((source, _, what),) = controls(cluster, LISTS, before)
        _, (piece,) = parse_lists(list(what.body))
        assert source == asked and not piece.identities
        return
    ((source, to, what),) = controls(cluster, ASK, before)
    assert (source, to, parse_ask(list(what.body)).hops) == (asked, owner, 1)
    ((source, to, what),) = controls(cluster, LISTS, before)
    number, (piece,) = parse_lists(list(what.body))
    assert (source, to, number) == (owner, origin, 77)
    assert isinstance(piece, Piece) and len(piece.identities) == 1 and piece.last


def test_what_belongs_to_a_former_life_of_a_broker_is_nobody_s() -> None:
    cluster = counted_cluster()
    (origin, *_), _ = cast(cluster, ("symbol", "OTE"))
    home = next(name for name in cluster.hosts if name not in (origin, "b0"))
    subscriber, publisher = cluster.connect(home), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    node = cluster.node(origin)
    gathering, me = node.forwarding.gathering, cluster.node(home).cluster.me
    batch = quote_batch(bodies=["a"], symbol=["OTE"])
    assert gathering._plan(batch, 0, [SubscriptionId(me, 1, 1, 0)], cluster.now) == ()
    assert gathering._plan(batch, 0, [SubscriptionId(node.cluster.me, 1, 1, 0)], cluster.now) == ()
    session, number = gathering._plan(batch, 0, [SubscriptionId(me, 1, 1, 1)], cluster.now)
    assert (session.name, number) == (home, 1)
    cluster.kill(home)
    cluster.start(home, life=2)
    cluster.run(10.0)
    assert all(not len(one.registry.counting.lists) for one in cluster.nodes)
    publisher.publish(batch)
    cluster.run(0.2)
    assert cluster.node(home).forwarding.relayed == 0


def test_what_is_dropped_on_its_way_home_is_announced() -> None:
    cluster = counted_cluster(2, outbox_bytes=4_000)
    subscriber, publisher = cluster.connect("b0"), cluster.connect("b1")
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    info = cluster.node("b1").cluster.peers.by_identifier[cluster.node("b0").cluster.me]
    info.session.paused = True
    for number in range(20):
        publisher.publish(quote_batch(bodies=[f"{number} " + "x" * 500], symbol=["OTE"]))
    info.session.paused = False
    cluster.node("b1").peers.traffic.pump(info)
    publisher.publish(quote_batch(bodies=["last"], symbol=["OTE"]))
    cluster.run(1.0)
    assert len(subscriber.bodies) < 21
    assert sum(gap.count for gap in subscriber.of(Gap)) == 21 - len(subscriber.bodies)


def test_a_broker_that_answers_for_nothing_asks_when_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = counted_cluster()
    (origin, *_), _ = cast(cluster, ("symbol", "OTE"))
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    node = cluster.node(origin)
    with monkeypatch.context() as patch:
        patch.setattr(node.cluster.kv, "scope", lambda now: NOTHING)
        assert node.forwarding.gathering.concerns("never heard of", cluster.now)
        publisher.publish(quote_batch(bodies=["a"], symbol=["OTE"]))
        assert len(list(node.forwarding.gathering)) == 1
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    cluster.run(0.1)
    assert not list(node.forwarding.gathering)
    assert not node.forwarding.gathering.concerns("never heard of", cluster.now)


def test_what_cannot_be_read_when_its_turn_comes_ends_nothing_but_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = counted_cluster(1)
    client = cluster.connect("b0")
    node = cluster.node("b0")
    broken = quote_batch(bodies=["a"], interest=[], symbol=["OTE"])
    broken.records = b"\xc1" * len(broken.records)
    with monkeypatch.context() as patch:
        patch.setattr(node.cluster.kv, "scope", lambda now: NOTHING)
        client.publish(broken)
        assert client.of(Puback) and len(list(node.forwarding.gathering)) == 1
    subscribed(cluster, client, 1, "symbol = 'OTE'")
    cluster.run(0.1)
    client.publish(quote_batch(bodies=["b"], symbol=["OTE"]))
    assert client.bodies == [(1, "b")]
    assert any(note.event == "batch to be counted not understood" for note in cluster.hosts["b0"].notes)


def test_more_than_may_wait_is_refused() -> None:
    cluster = counted_cluster(limits=Limits(waiting_events=3))
    (origin, *_), (owner,) = cast(cluster, ("symbol", "OTE"))
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    cluster.hold(origin, owner)
    publisher.publish(*(quote_batch(bodies=[f"{number}"], symbol=["OTE"]) for number in range(4)))
    (refused,) = publisher.of(Error)
    assert (refused.code, refused.reference) == (ErrorCode.UNAVAILABLE, 4)
    cluster.release()
    cluster.run(0.2)
    assert [body for _, body in subscriber.bodies] == ["0", "1", "2"]


def test_no_more_batches_ask_at_a_time_than_may() -> None:
    cluster = counted_cluster(limits=Limits(batches_asking=2))
    (origin, *_), (owner,) = cast(cluster, ("symbol", "OTE"))
    subscriber, publisher = cluster.connect(origin), cluster.connect(origin)
    subscribed(cluster, subscriber, 1, "symbol = 'OTE'")
    cluster.hold(origin, owner)
    before = len(cluster.said)
    publisher.publish(*(quote_batch(bodies=[f"{number}"], symbol=["OTE"]) for number in range(5)))
    assert len(controls(cluster, ASK, before)) == 2
    cluster.release()
    cluster.run(0.02)
    assert [body for _, body in subscriber.bodies] == [str(number) for number in range(5)]


def test_records_that_cannot_be_read_harm_nobody_else() -> None:
    cluster = counted_cluster(2)
    subscriber, publisher = cluster.connect("b0"), cluster.connect("b1")
    subscribed(cluster, subscriber, 1, "symbol = 'OTE' AND venue LIKE 'x%'")
    broken = quote_batch(bodies=["a"], symbol=["OTE"], venue=["x"])
    broken.records = b"\xc1" * len(broken.records)
    publisher.publish(broken, quote_batch(bodies=["b"], symbol=["OTE"], venue=["x"]))
    cluster.run(0.5)
    assert subscriber.bodies == [(1, "b")]
    assert any(note.event == "counted batch not understood" for note in cluster.hosts["b0"].notes)
