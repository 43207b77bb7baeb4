"""What was lost between brokers: who is told of it, when, and that it is said again until it surely came in."""

from __future__ import annotations

import pytest

from headgate.broker.core.inputs import LinkPaused, LinkResumed
from headgate.protocol.messages import Gap, Message
from tests.support.node_world import NodeWorld


def flushed(world: NodeWorld, link: int) -> list[tuple[int, int]]:
    """(subscription, count) of the GAPs that were said on this link."""
    said: list[Message] = world.take(link)
    said += [effect.message for effect in world.node.effects if getattr(effect, "link", 0) == link]  # type: ignore[union-attr]
    world.node.effects[:] = [effect for effect in world.node.effects if getattr(effect, "link", 0) != link]
    return [(message.subscription, message.count) for message in said if isinstance(message, Gap)]


def test_a_loss_in_a_stream_is_told_once_to_each_session_that_wants_any_of_it() -> None:
    world = NodeWorld()
    one = world.subscriber(("quotes/a", ""), ("quotes/b", "price > 1"), ("trades", ""))
    other, idle = world.subscriber(("trades", "")), world.connect()
    world.node.subscribers.lost_in_stream("quotes", 3)
    assert [flushed(world, link) for link in (one, other, idle)] == [[(0, 3)], [], []]
    world.node.subscribers.lost_in_stream("trades", 2)
    assert [flushed(world, link) for link in (one, other, idle)] == [[(0, 2)], [(0, 2)], []]


def test_the_reason_says_that_it_was_not_the_subscriber() -> None:
    world = NodeWorld()
    world.subscriber()
    world.node.subscribers.lost_in_stream("quotes", 3)
    (effect,) = world.node.effects
    world.node.effects.clear()
    assert "between brokers" in effect.message.reason  # type: ignore[union-attr]


def test_a_loss_of_one_subscription_names_it_and_counts_with_its_drops() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", ""), ("trades", ""))
    subscription = world.node.subscribers.by_link[link].subscriptions[2]
    world.node.subscribers.lost_on_the_way(subscription, 3)
    world.node.subscribers.lost_on_the_way(subscription, 4)
    assert flushed(world, link) == [(2, 3), (2, 4)]
    assert subscription.dropped == 7


def test_a_loss_of_nobody_knows_whose_is_told_to_all_who_wait_for_anything() -> None:
    world = NodeWorld()
    link, idle = world.subscriber(), world.connect()
    world.node.subscribers.lost_on_the_way(None, 3)
    assert [flushed(world, one) for one in (link, idle)] == [[(0, 3)], []]


def test_whoever_does_not_read_is_told_when_it_reads_again_before_anything_newer() -> None:
    world = NodeWorld()
    link, publisher = world.subscriber(), world.connect()
    world.feed(LinkPaused(link))
    for _ in range(2):
        world.node.subscribers.lost_in_stream("quotes", 3)
    assert flushed(world, link) == []
    world.publish(publisher, "a")
    world.feed(LinkResumed(link))
    messages = world.take(link)
    assert isinstance(messages[0], Gap) and (messages[0].subscription, messages[0].count) == (0, 6)
    assert len(messages) == 2


@pytest.mark.parametrize("received", [0, 1])
def test_whoever_is_away_is_told_when_it_is_back_and_again_until_it_surely_heard(received: int) -> None:
    world = NodeWorld()
    link, publisher = world.subscriber(), world.connect()
    key = world.key(link)
    world.drop(link)
    world.node.subscribers.lost_in_stream("quotes", 3)
    link, answers = world.resume(key)
    assert [(gap.subscription, gap.count) for gap in answers if isinstance(gap, Gap)] == [(0, 3)]
    world.publish(publisher, "a")
    world.drop(link)
    link, answers = world.resume(key, received=received)
    told = [(gap.subscription, gap.count) for gap in answers if isinstance(gap, Gap)]
    assert told == ([] if received else [(0, 4)]), "what came after it came in, so it came in as well"
