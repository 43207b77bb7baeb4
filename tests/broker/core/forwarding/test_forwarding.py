"""Forwarding: each key of a row exactly once, in order, or a GAP; what waits, for how long, and how much of it."""

from __future__ import annotations

import pytest

from headgate.broker.core.keyspace import NOTHING
from headgate.broker.core.limits import WAITING_SECONDS_MAX, Limits
from headgate.protocol.data import Batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Forward, Gap, Puback, Scope
from tests.support.builders import quote_batch
from tests.support.node_cluster import NodeCluster, events_of
from tests.support.stage import OTE, Stage

# --- Among five brokers -----------------------------------------------------------------------------------------------


def test_rows_go_to_who_answers_for_their_keys_and_matches_go_home() -> None:
    stage = Stage()
    stage.publish("a", "b")
    stage.cluster.run(0.1)
    assert stage.bodies == ["a", "b"]
    origin = stage.publisher.host.node.config.origin
    assert events_of(stage.subscriber.got) == [(1, origin, 0), (1, origin, 1)]
    node = stage.publisher.host.node
    assert (node.forwarding.forwarded, stage.subscriber.host.node.forwarding.relayed) == (2, 2)
    (forward,) = [what for _, _, what in stage.cluster.said if isinstance(what, Forward)]
    assert [(dimension, list(rows)) for dimension, rows in forward.dimensions] == [(["equal", "symbol"], [0, 1])]
    assert forward.hops == 1


def test_a_row_that_nobody_can_want_goes_nowhere() -> None:
    stage = Stage()
    said = len(stage.cluster.said)
    stage.publish("a", symbol="nobody asked for this")
    stage.publisher.publish(quote_batch("quotes/a", ["b"], price=[1]), quote_batch("trade/a", ["c"]))
    stage.cluster.run(0.1)
    forwards = [what for _, _, what in stage.cluster.said[said:] if isinstance(what, Forward)]
    assert sum(forward.batch.count for forward in forwards) <= 1
    assert stage.bodies == []


def test_positions_stay_where_they_were_when_only_some_rows_travel() -> None:
    stage = Stage("symbol = 'OTE' AND price > 1")
    stage.publish("a")
    batch = quote_batch("quotes/a", list("bcde"), symbol=["IBM", "OTE", "", "OTE"], price=[2, 2, 2, 2], volume=[1] * 4)
    stage.publisher.publish(batch)
    stage.cluster.run(0.1)
    assert [place for _, _, place in events_of(stage.subscriber.got)] == [2, 4]
    travelled = [what for _, _, what in stage.cluster.said if isinstance(what, Forward) and what.batch.count == 2]
    assert [sorted(one.batch.columns) for one in travelled] == [["price", "symbol"]], "what is filtered on, no more"


def test_where_everything_is_answered_for_nothing_is_forwarded() -> None:
    cluster = NodeCluster(3)
    clients = [cluster.connect(name) for name in cluster.hosts]
    for client in clients:
        client.subscribe(1, "quotes", "symbol = 'OTE'")
    cluster.run(0.1)
    for client in clients:
        client.publish(quote_batch("quotes/a", ["a"], symbol=["OTE"]))
    cluster.run(0.1)
    assert [len(client.bodies) for client in clients] == [3, 3, 3]
    assert not any(isinstance(what, Forward) for _, _, what in cluster.said)


# --- What waits -------------------------------------------------------------------------------------------------------


def test_what_comes_later_waits_behind_what_waits_and_all_goes_on_in_order() -> None:
    stage = Stage("symbol = 'OTE'", "")
    with stage.silence(OTE):
        stage.publish("a", "b")
        stage.publish("c", symbol="IBM")
        stage.publish("d")
        assert [message.sequence for message in stage.publisher.of(Puback)] == [1, 2, 3]
        stage.cluster.run(1.0)
        assert stage.bodies == []
        assert stage.publisher.host.node.next_deadline() <= stage.cluster.now + 0.05
    stage.cluster.run(0.2)
    assert [body for number, body in stage.subscriber.bodies if number == 2] == list("abcd")
    assert [body for number, body in stage.subscriber.bodies if number == 1] == list("abd")
    stage.publish("e")
    stage.cluster.run(0.1)
    assert stage.bodies[-2:] == ["e", "e"]
    assert not stage.subscriber.of(Gap)


def test_a_batch_of_one_topic_that_waited_is_matched_whole_when_all_is_answered_for_here() -> None:
    cluster = NodeCluster(1)
    client = cluster.connect("b0")
    client.subscribe(1, "quotes")
    node = cluster.node("b0").cluster
    scope = node.scope
    node._scope, node.scope = NOTHING, lambda now: NOTHING  # type: ignore[method-assign]
    client.publish(quote_batch("quotes/a", list("abc")))
    assert client.bodies == []
    node.scope = scope  # type: ignore[method-assign]
    cluster.run(0.1)
    assert client.bodies == [(1, "a"), (1, "b"), (1, "c")]
    assert [place for _, _, place in events_of(client.got)] == [0, 1, 2]


def test_after_fifteen_seconds_what_nobody_answers_for_is_lost_and_said_and_the_rest_goes_on() -> None:
    stage = Stage("symbol = 'OTE'", "symbol = 'IBM'")
    stage.publisher.subscribe(1, "quotes/z")
    stage.cluster.run(0.1)
    with stage.silence(OTE):
        stage.publish("a", "b")
        stage.publish("c", symbol="IBM")
        stage.cluster.run(WAITING_SECONDS_MAX - 0.1)
        assert stage.bodies == [] and not stage.subscriber.of(Gap)
        stage.cluster.run(0.2)
        assert stage.bodies == ["c"]
        assert [(gap.subscription, gap.count) for gap in stage.subscriber.of(Gap)] == [(0, 2)]
        assert [(gap.subscription, gap.count) for gap in stage.publisher.of(Gap)] == [(0, 2)]
        assert stage.other.of(Gap) == []
        assert stage.publisher.host.node.forwarding.losses.events == 2
    stage.publish("d")
    stage.cluster.run(0.1)
    assert stage.bodies == ["c", "d"]


@pytest.mark.parametrize("bound", ["waiting_events", "waiting_bytes"])
def test_over_the_bound_publishers_are_refused_and_in_time_taken_again(bound: str) -> None:
    size = len(quote_batch("quotes/a", ["a"], symbol=["OTE"]).records)
    stage = Stage(limits=Limits(**{bound: 2 if bound == "waiting_events" else 2 * size}))
    with stage.silence(OTE):
        stage.publish("a")
        stage.publish("b")
        assert stage.publisher.of(Error) == []
        stage.publish("c")
        (error,) = stage.publisher.of(Error)
        assert (error.code, error.scope, error.reference) == (ErrorCode.UNAVAILABLE, Scope.PUBLISH, 3)
        stage.publisher.publish(quote_batch("trades/a", ["t"]))
        assert len(stage.publisher.of(Error)) == 2, "the bound is the broker's, not the stream's"
    stage.cluster.run(0.2)
    stage.publish("d")
    stage.cluster.run(0.1)
    assert stage.bodies == ["a", "b", "d"]


def test_a_batch_that_cannot_be_read_is_refused_when_it_comes_and_not_when_its_turn_comes() -> None:
    stage = Stage()
    good = quote_batch("quotes/a", ["a"], symbol=["OTE"])
    broken = Batch(good.topics, 1, good.lengths, good.records, {"symbol": b"\xc1"})
    with stage.silence(OTE):
        stage.publisher.publish(broken, quote_batch("quotes/a", ["b"], symbol=["OTE"]))
        assert [error.code for error in stage.publisher.of(Error)] == [ErrorCode.BAD_BATCH]
        stage.publisher.publish(quote_batch(["quotes/a", "other/b"], ["c", "d"], symbol=["OTE", "OTE"]))
        assert [error.code for error in stage.publisher.of(Error)][1:] == [ErrorCode.BAD_TOPIC]
    stage.cluster.run(0.2)
    assert stage.bodies == ["b"]
    origin = stage.publisher.host.node.config.origin
    assert events_of(stage.subscriber.got) == [(1, origin, 0)], "what was refused took no place"
