"""Forwarding, as other brokers see it: what they may say, what a link takes with it, and what comes home to whom."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.inputs import LinkPaused, LinkResumed, Received
from headgate.broker.core.limits import FORWARD_HOPS_MAX, Limits
from headgate.protocol.data import Batch, Portion
from headgate.protocol.messages import Control, Deliver, Error, Forward, Gap, Message, Unsubscribe
from tests.support.builders import quote_batch
from tests.support.node_cluster import events_of
from tests.support.stage import OTE, Stage

# --- FORWARD ----------------------------------------------------------------------------------------------------------

LOSS = 16


def forward(dimensions: list[Any], batch: Batch | None = None, hops: int = 1) -> Forward:
    batch = batch or quote_batch("quotes/a", ["a", "b"], symbol=["OTE", "OTE"])
    return Forward.make(dimensions, hops, batch, "00000000000000aa-1", 0, range(batch.count), 0)


def answered(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, Error)]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (forward([[["heap", "symbol"], [0, 1]]]), "not a dimension"),
        (forward([[["topic", 99], [0, 1]]]), "not a dimension"),
        (forward([[["topic", 1], [0, 1]]], quote_batch(["quotes/a", "trades/a"], ["a", "b"])), "of stream 'quotes'"),
        (forward([[["topic", 1], [0]]], quote_batch("quotes//a", ["a"])), "FORWARD"),
    ],
)
def test_nonsense_costs_its_link_and_nothing_else(wrong: Forward, words: str) -> None:
    stage = Stage()
    cluster = stage.cluster
    (text,) = answered(cluster.tell(stage.source, stage.owner, wrong))
    assert words in text
    assert not cluster.linked(stage.owner, stage.source)
    assert all(cluster.linked(stage.owner, name) for name in cluster.hosts if name not in (stage.owner, stage.source))
    cluster.until(lambda: cluster.linked(stage.owner, stage.source) and cluster.linked(stage.source, stage.owner), 5.0)
    stage.publish("a")
    cluster.run(0.1)
    assert stage.bodies == ["a"]


def test_a_row_that_is_not_in_its_batch_is_nonsense_too() -> None:
    """The codec does not let it through; whoever gets past that meets this."""
    stage = Stage()
    info = stage.cluster.node(stage.owner).cluster.peers.by_identifier[stage.publisher.host.node.cluster.me]
    assert info.link is not None
    wrong = forward([[["equal", "symbol"], [0, 2]]])
    stage.cluster.feed(stage.cluster.hosts[stage.owner], Received(info.link, [wrong]))
    assert not stage.cluster.linked(stage.owner, stage.source)
    assert stage.bodies == []


@pytest.mark.parametrize(
    ("bound", "value", "most"), [("DIMENSIONS_MAX", 2, 2), ("CONTROL_LENGTH_MAX", 2 * 4 * 30 * 3, 3)]
)
def test_many_dimensions_travel_in_several_messages(
    bound: str, value: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message names a bounded number of them, and fewer when each has thousands of rows: it must fit a frame."""
    monkeypatch.setattr(f"headgate.broker.core.forwarding.forwarding.{bound}", value)
    names = "abcdefg"
    stage = Stage(*[f"{name} = 1" for name in names])
    columns: dict[str, Any] = {name: list(range(30)) for name in names}
    stage.publisher.publish(quote_batch("quotes/a", [str(row) for row in range(30)], **columns))
    stage.cluster.run(0.1)
    forwards = [what for _, _, what in stage.cluster.said if isinstance(what, Forward)]
    assert max(len(forward.dimensions) for forward in forwards) == most
    assert sorted(stage.subscriber.bodies) == [(number, "1") for number in range(1, 8)]


def test_what_nobody_here_uses_is_not_matched_and_done_with() -> None:
    stage = Stage()
    said = stage.cluster.tell(stage.source, stage.owner, forward([[["equal", "never used"], [0, 1]]]))
    assert said == []
    stage.cluster.run(0.2)
    assert stage.bodies == []
    info = stage.cluster.node(stage.owner).cluster.peers.by_identifier[stage.publisher.host.node.cluster.me]
    assert info.handled == info.got == 2


def test_only_the_dimensions_that_were_asked_for_are_matched() -> None:
    stage = Stage("symbol = 'OTE'", "volume = 1", "")
    batch = quote_batch("quotes/a", ["a", "b"], symbol=["OTE", "OTE"], volume=[1, 1])
    stage.cluster.tell(stage.source, stage.owner, forward([[["equal", "symbol"], [1]]], batch))
    stage.cluster.run(0.1)
    assert stage.subscriber.bodies == [(1, "b")]


def test_what_is_not_answered_for_here_is_passed_on_and_ends_somewhere() -> None:
    stage = Stage()
    away = stage.home  # it does not answer for the key either
    assert not stage.scope(away).covers(OTE)
    stage.cluster.tell(stage.source, away, forward([[["equal", "symbol"], [0, 1]]]))
    stage.cluster.run(0.1)
    assert stage.bodies == ["a", "b"]
    (passed,) = [what for who, _, what in stage.cluster.said if isinstance(what, Forward) and who == away]
    assert passed.hops == 2
    stage.take()
    batch = quote_batch("quotes/a", list("abc"), symbol=["OTE", "IBM", "OTE"])
    dimensions: list[Any] = [[["equal", "symbol"], [0, 2]]]
    stage.cluster.until(lambda: stage.cluster.linked(away, stage.source), 5.0)
    stage.cluster.tell(stage.source, away, Forward.make(dimensions, 1, batch, "00000000000000aa-1", 100, [3, 8, 20], 0))
    stage.cluster.run(0.1)
    assert events_of(stage.subscriber.got) == [(1, "00000000000000aa-1", 103), (1, "00000000000000aa-1", 120)]
    stage.take()
    stage.cluster.until(lambda: stage.cluster.linked(away, stage.source), 5.0)
    stage.cluster.tell(stage.source, away, forward([[["equal", "symbol"], [0, 1]]], hops=FORWARD_HOPS_MAX))
    stage.cluster.run(0.1)
    assert stage.bodies == []
    assert [(gap.subscription, gap.count) for gap in stage.subscriber.of(Gap)] == [(0, 2)]


def test_what_came_from_brokers_over_the_bound_is_lost_said_and_done_with() -> None:
    stage = Stage(limits=Limits(waiting_events=3))
    with stage.silence(OTE):
        for _ in range(3):
            stage.cluster.tell(stage.owner, stage.source, forward([[["equal", "symbol"], [0, 1]]]))
        stage.cluster.run(0.2)
        assert [(gap.subscription, gap.count) for gap in stage.subscriber.of(Gap)] == [(0, 2), (0, 2)]
    stage.cluster.run(3.0)  # the owner, who did not say any of it, cuts the link when it is told that it is done with
    assert stage.bodies == ["a", "b"]
    info = stage.publisher.host.node.cluster.peers.by_identifier[stage.cluster.node(stage.owner).cluster.me]
    assert info.handled == info.got == 6


# --- Links that break -------------------------------------------------------------------------------------------------


def test_what_was_under_way_on_a_link_that_broke_is_counted_once_and_said() -> None:
    stage = Stage()
    stage.cluster.hold(stage.source, stage.owner)
    stage.publish("a", "b")
    assert stage.publisher.host.node.forwarding.forwarded == 2
    stage.cluster._held.clear()  # what was said is lost
    stage.cluster.cut(stage.source, stage.owner)
    stage.cluster.run(6.0)
    assert [(gap.subscription, gap.count) for gap in stage.subscriber.of(Gap)] == [(0, 2)]
    assert stage.other.of(Gap) == []
    stage.publish("c")
    stage.cluster.run(0.1)
    assert stage.bodies == ["c"]


def test_what_never_went_out_on_a_link_that_broke_goes_out_on_the_next_before_anything_newer() -> None:
    stage = Stage()
    link = stage.publisher.host.node.cluster.peers.by_identifier[stage.cluster.node(stage.owner).cluster.me].link
    assert link is not None
    stage.cluster.feed(stage.publisher.host, LinkPaused(link))
    stage.publish("a", "b")
    stage.publish("c")
    stage.cluster.run(0.1)
    assert stage.bodies == []
    stage.cluster.cut(stage.source, stage.owner)
    stage.publish("d")
    stage.cluster.run(3.0)
    assert stage.bodies == ["a", "b", "c", "d"]
    assert not stage.subscriber.of(Gap)


def test_when_the_owner_dies_what_comes_meanwhile_is_delivered_in_order_or_said_and_nothing_twice() -> None:
    stage = Stage()
    bodies = [str(number) for number in range(120)]
    for number, body in enumerate(bodies):
        if number == 20:
            stage.cluster.kill(stage.owner)
        stage.publish(body)
        stage.cluster.run(0.05)
    stage.cluster.run(10.0)
    assert len(set(stage.bodies)) == len(stage.bodies)
    assert stage.bodies == sorted(stage.bodies, key=int), "what takes the short way waits for what took the long one"
    missing = len(bodies) - len(stage.bodies)
    assert missing <= sum(gap.count for gap in stage.subscriber.of(Gap))
    assert stage.bodies[-10:] == bodies[-10:]
    assert missing < 20


# --- What comes home --------------------------------------------------------------------------------------------------


def deliver(numbers: Any, *bodies: str) -> Deliver:
    batch = quote_batch("quotes/a", list(bodies))
    portion = Portion("00000000000000aa-1", 70, 0, b"", batch.topics, batch.lengths, batch.records, batch.count)
    return Deliver([numbers, len(bodies)], portion)


def test_matches_for_what_is_no_more_are_left_out() -> None:
    stage = Stage("symbol = 'OTE'", "symbol = 'IBM'")
    session = stage.subscriber.host.node.subscribers.by_link[stage.subscriber.link]
    first, second = (session.subscriptions[number].identity for number in (1, 2))
    stage.cluster.tell(stage.owner, stage.home, deliver([first, 999, second], "a"))
    assert stage.subscriber.bodies == [(1, "a"), (2, "a")]
    stage.subscriber.say(Unsubscribe(1, 1))
    stage.cluster.tell(stage.owner, stage.home, deliver([first, second], "b"), deliver(first, "c", "d"))
    assert stage.subscriber.bodies == [(2, "b")]
    assert [event[1:] for event in events_of(stage.subscriber.got)] == [("00000000000000aa-1", 70)]
    info = stage.subscriber.host.node.cluster.peers.by_identifier[stage.cluster.node(stage.owner).cluster.me]
    assert info.handled == info.got >= 4


def test_matches_of_many_topics_are_of_one_stream() -> None:
    stage = Stage()
    session = stage.subscriber.host.node.subscribers.by_link[stage.subscriber.link]
    batch = quote_batch("quotes", ["a", "b"])
    topics = "quotes\nquotes/x"
    portion = Portion("00000000000000aa-1", 70, 0, b"", topics, batch.lengths, batch.records, batch.count)
    message = Deliver([session.subscriptions[1].identity, 2], portion)
    stage.cluster.tell(stage.owner, stage.home, message)
    assert stage.subscriber.bodies == [(1, "a"), (1, "b")]
    assert not any("\n" in name for name in stage.subscriber.host.node.streams.by_name)


def test_a_number_that_is_another_brokers_subscription_here_is_not_ours_to_deliver() -> None:
    stage = Stage()
    node = stage.cluster.node(stage.owner)
    (held,) = [
        one for one in node.registry.anchored.dimension_of if node.subscribers.by_identity[one].stream == "quotes"
    ]
    said = stage.cluster.tell(stage.source, stage.owner, deliver(held, "a"))
    stage.cluster.run(0.1)
    assert not any(isinstance(message, Deliver) for message in said) and stage.bodies == []


def test_a_gap_on_the_way_reaches_the_subscription_that_it_names_or_everybody() -> None:
    stage = Stage("symbol = 'OTE'", "symbol = 'IBM'")
    session = stage.subscriber.host.node.subscribers.by_link[stage.subscriber.link]
    stage.cluster.tell(stage.owner, stage.home, Gap(session.subscriptions[2].identity, 3, "slow"))
    assert [(gap.subscription, gap.count) for gap in stage.subscriber.of(Gap)] == [(2, 3)]
    assert session.subscriptions[2].dropped == 3
    stage.cluster.tell(stage.owner, stage.home, Gap(999, 3, "slow"), Gap(0, 4, "slow"))
    assert [(gap.subscription, gap.count) for gap in stage.subscriber.of(Gap)][1:] == [(0, 4)]


def test_what_a_slow_link_between_brokers_dropped_is_a_gap_of_the_subscription_that_it_was_for() -> None:
    stage = Stage("symbol = 'OTE'", "symbol = 'IBM'", outbox_bytes=3_000)
    follower = stage.cluster.hosts[stage.owner]
    link = follower.node.cluster.peers.by_identifier[stage.subscriber.host.node.cluster.me].link
    assert link is not None
    stage.cluster.feed(follower, LinkPaused(link))
    for number in range(20):
        stage.publish(str(number))
        stage.cluster.run(0.01)
    assert stage.bodies == []
    stage.cluster.feed(follower, LinkResumed(link))
    stage.cluster.run(0.1)
    assert stage.bodies and stage.bodies == [str(number) for number in range(20)][-len(stage.bodies) :]
    assert {gap.subscription for gap in stage.subscriber.of(Gap)} == {1}
    assert sum(gap.count for gap in stage.subscriber.of(Gap)) + len(stage.bodies) == 20


def test_a_loss_is_told_to_whoever_wants_any_of_the_stream() -> None:
    stage = Stage()
    stage.other.subscribe(2, "quotes/z")
    idle = stage.cluster.connect(stage.home)
    stage.cluster.tell(stage.source, stage.home, Control(LOSS, ["quotes", 5]))
    stage.cluster.tell(stage.source, stage.owner, Control(LOSS, ["quotes", 5]), Control(LOSS, ["nobody's", 9]))
    assert [(gap.subscription, gap.count) for gap in stage.subscriber.of(Gap)] == [(0, 5)]
    assert [(gap.subscription, gap.count) for gap in stage.other.of(Gap)] == [(0, 5)]
    assert idle.of(Gap) == []


@pytest.mark.parametrize("body", [[], ["quotes"], ["quotes", 0], ["quotes", -1], ["quotes", 2**60], [7, 7], ["q", "1"]])
def test_a_malformed_loss_costs_its_link(body: list[Any]) -> None:
    stage = Stage()
    (text,) = answered(stage.cluster.tell(stage.source, stage.owner, Control(LOSS, body)))
    assert text.startswith("Loss")
    assert not stage.cluster.linked(stage.owner, stage.source)
