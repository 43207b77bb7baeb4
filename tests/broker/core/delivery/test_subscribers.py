"""Subscribers: credit, outboxes and their bounds, slow consumers, grace, what is lost and how that is said."""

from __future__ import annotations

import pytest

from headgate.broker.core.delivery import GRACE
from headgate.broker.core.delivery.subscribers import size_of
from headgate.broker.core.inputs import LinkPaused, LinkResumed, Received, Wake
from headgate.broker.core.limits import Limits
from headgate.protocol.data import Portion
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Credit, Deliver, Gap, Goodbye, Hold, Unsubscribe, Welcome
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.node_world import NodeWorld

EVENT_BYTES = size_of(Portion("", 0, 0, b"", "quotes/NYSE/OTE", bytes(4), quote_batch(bodies=["a"]).records, 1))
"""What one waiting event of one letter costs."""


def gaps(world: NodeWorld, link: int) -> list[Gap]:
    return [message for message in world.take(link) if isinstance(message, Gap)]


# --- Credit -----------------------------------------------------------------------------------------------------------


def test_deliveries_stop_where_credit_ends_and_go_on_with_more() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(credit=2), world.connect()
    world.publish(publisher, "a", "b", "c", "d")
    assert world.delivered(subscriber) == [(1, "a"), (1, "b")]
    assert deliveries_of(world.grant(subscriber, 3, 2)) == [(1, "c")]
    assert deliveries_of(world.grant(subscriber, 10, 3)) == [(1, "d")]


def test_a_portion_larger_than_the_credit_flows_while_any_is_left() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(credit=2), world.connect()
    world.say(publisher, make_publish(1, quote_batch(bodies=list("abcdef"))))
    world.say(publisher, make_publish(2))
    assert len(world.delivered(subscriber)) == 6
    assert world.grant(subscriber, 6, 6) == []
    assert len(deliveries_of(world.grant(subscriber, 7, 6))) == 1


def test_without_credit_nothing_flows() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(credit=0), world.connect()
    world.publish(publisher, "a")
    assert world.delivered(subscriber) == []
    assert deliveries_of(world.grant(subscriber, 1, 0)) == [(1, "a")]


def test_new_events_do_not_overtake_those_that_wait() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.feed(LinkPaused(subscriber))
    world.publish(publisher, "a")
    world.feed(LinkResumed(subscriber))
    world.publish(publisher, "b")
    assert world.delivered(subscriber) == [(1, "a"), (1, "b")]


def test_a_long_outbox_flows_in_steps_with_others_in_between() -> None:
    world = NodeWorld(limits=Limits(drain_step_bytes=1))
    subscriber, publisher = world.subscriber(), world.connect()
    world.feed(LinkPaused(subscriber))
    world.publish(publisher, "a", "b", "c")
    world.feed(LinkResumed(subscriber))
    assert world.delivered(subscriber) == [(1, "a")]
    assert world.node.next_deadline() == float("-inf")
    world.publish(publisher, "d")
    assert world.delivered(subscriber) == []
    for body in "bcd":
        world.feed(Wake())
        assert world.delivered(subscriber) == [(1, body)]
    assert world.node.next_deadline() > world.now


# --- Slow consumers: drop ---------------------------------------------------------------------------------------------


def test_over_its_bound_an_outbox_drops_the_oldest_and_says_so_first() -> None:
    world = NodeWorld(outbox_bytes=2 * EVENT_BYTES)
    subscriber, publisher = world.subscriber(credit=1), world.connect()
    world.publish(publisher, *"abcde")
    assert world.delivered(subscriber) == [(1, "a")]
    sent = world.grant(subscriber, 100, 1)
    assert sent[0] == Gap(1, 2, "slow consumer")
    assert deliveries_of(sent) == [(1, "d"), (1, "e")]
    assert world.node.statistics(world.now).drops["slow"] == 2
    assert [note.event for note in world.notes].count("slow consumer drops") == 1


def test_a_gap_counts_for_each_subscription_and_does_not_wait_for_credit() -> None:
    world = NodeWorld(outbox_bytes=EVENT_BYTES)
    subscriber = world.subscriber(("quotes", ""), ("quotes/NYSE", ""), ("quotes/ATHEX", ""), credit=0)
    world.publish(world.connect(), *"abc")
    found = [gap for gap in world.grant(subscriber, 0, 0) if isinstance(gap, Gap)]
    assert {gap.subscription: gap.count for gap in found} == {1: 2, 2: 2}


def test_a_portion_over_the_bound_by_itself_is_dropped_whole() -> None:
    world = NodeWorld(outbox_bytes=EVENT_BYTES)
    subscriber, publisher = world.subscriber(credit=0), world.connect()
    world.say(publisher, make_publish(1, quote_batch(bodies=["x" * 500, "y"])))
    assert world.node.statistics(world.now).outbox_bytes == 0
    assert world.grant(subscriber, 10, 0) == [Gap(1, 2, "slow consumer")]


def test_the_bound_of_all_outboxes_makes_whoever_queues_drop_its_own() -> None:
    world = NodeWorld(outbox_bytes=10 * EVENT_BYTES, outbox_bytes_total=3 * EVENT_BYTES)
    publisher = world.connect()
    first = world.subscriber(("quotes/a", ""), credit=0)
    second = world.subscriber(("quotes/b", ""), credit=0)
    size = EVENT_BYTES
    for sequence, topic in enumerate(["quotes/a", "quotes/a", "quotes/a", "quotes/b"], 1):
        world.say(publisher, make_publish(sequence, quote_batch(topic, [str(sequence)])))
        assert world.node.statistics(world.now).outbox_bytes <= 3 * size
    assert deliveries_of(world.grant(first, 10, 0)) == [(1, "1"), (1, "2"), (1, "3")]
    assert world.grant(second, 10, 0) == [Gap(1, 1, "slow consumer")]


def test_a_slow_subscriber_costs_the_others_nothing() -> None:
    world = NodeWorld(outbox_bytes=EVENT_BYTES)
    slow, quick, publisher = world.subscriber(credit=0), world.subscriber(), world.connect()
    world.publish(publisher, *"abcdef")
    assert [body for _, body in world.delivered(quick)] == list("abcdef")
    assert world.delivered(slow) == []


# --- Slow consumers: disconnect ---------------------------------------------------------------------------------------


def test_with_the_other_policy_it_is_disconnected_once_and_told_what_it_lost_when_it_is_back() -> None:
    world = NodeWorld(outbox_bytes=2 * EVENT_BYTES, slow_consumer="disconnect")
    subscriber, publisher = world.subscriber(credit=0), world.connect()
    key = world.key(subscriber)
    world.publish(publisher, *"abc")
    assert world.take_one(subscriber, Goodbye).code == ErrorCode.SLOW_CONSUMER
    assert world.closed == [subscriber]
    world.publish(publisher, *"defgh")
    assert world.take(subscriber) == []
    assert world.closed == [subscriber]
    assert world.grant(subscriber, 100, 0) == [], "its link is closing: a GAP would never arrive"
    world.feed(LinkResumed(subscriber))
    assert world.take(subscriber) == []
    world.drop(subscriber)
    _, sent = world.resume(key)
    delivered = deliveries_of(sent)
    (gap,) = (message for message in sent if isinstance(message, Gap))
    assert gap.count + len(delivered) == 8
    assert sent.index(gap) == 1, "right after WELCOME"


def test_what_a_slow_consumer_said_in_the_same_read_still_counts() -> None:
    world = NodeWorld(outbox_bytes=EVENT_BYTES, slow_consumer="disconnect")
    both = world.subscriber(credit=0)
    world.feed(Received(both, [make_publish(1), make_publish(2), make_publish(3)]))
    assert world.closed == [both]
    assert world.node.statistics(world.now).events_received == 3


def test_a_session_in_its_grace_just_drops() -> None:
    world = NodeWorld(outbox_bytes=2 * EVENT_BYTES, slow_consumer="disconnect")
    subscriber, publisher = world.subscriber(), world.connect()
    key = world.key(subscriber)
    world.drop(subscriber)
    world.publish(publisher, *"abc")
    assert world.closed == []
    assert [message for message in world.resume(key)[1] if isinstance(message, Gap)] == [Gap(1, 3, "slow consumer")]


# --- Grace ------------------------------------------------------------------------------------------------------------


def test_a_session_is_kept_for_the_grace_and_not_a_moment_longer() -> None:
    world = NodeWorld()
    subscriber = world.subscriber()
    key, left = world.key(subscriber), world.now
    world.drop(subscriber)
    assert world.node.next_deadline() == left + 10.0
    world.now = left + 10.0 - 1e-6
    world.feed(Wake())
    assert world.node.statistics(world.now).sessions == 1
    world.now = left + 10.0
    world.feed(Wake())
    statistics = world.node.statistics(world.now)
    assert (statistics.sessions, statistics.subscriptions) == (0, 0)
    assert world.node.timers.when(GRACE) == float("inf")
    welcome = world.resume(key)[1][0]
    assert isinstance(welcome, Welcome)
    assert not welcome.resumed


def test_sessions_expire_in_the_order_in_which_they_left() -> None:
    world = NodeWorld()
    links = [world.subscriber() for _ in range(3)]
    for link in reversed(links):
        world.drop(link)
        world.now += 1.0
    left = []
    while world.node.timers.when(GRACE) < float("inf"):
        world.wake_at(world.node.timers.when(GRACE))
        left.append(world.node.statistics(world.now).sessions)
    assert left == [2, 1, 0]
    assert world.now == 1_012.0


def test_coming_back_stops_the_clock_and_leaving_again_starts_it_anew() -> None:
    world = NodeWorld()
    link = world.subscriber()
    key = world.key(link)
    world.drop(link)
    world.now += 9.0
    link, _ = world.resume(key)
    assert world.node.timers.when(GRACE) == float("inf")
    world.now += 9.0
    world.drop(link)
    assert world.node.timers.when(GRACE) == world.now + 10.0


def test_what_waited_for_a_session_that_expired_is_counted() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.drop(subscriber)
    world.publish(publisher, "a", "b")
    world.wake_at(world.now + 10.0)
    statistics = world.node.statistics(world.now)
    assert statistics.drops["expired"] == 2
    assert (statistics.outbox_events, statistics.outbox_bytes) == (0, 0)


# --- Lost in flight ---------------------------------------------------------------------------------------------------


def test_what_the_connection_swallowed_is_announced_for_the_session_as_a_whole() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    key = world.key(subscriber)
    world.publish(publisher, *"abcde")
    world.drop(subscriber)
    world.publish(publisher, "f")
    link, sent = world.resume(key, received=3)
    assert sent[1] == Gap(0, 2, "the connection was lost")
    assert deliveries_of(sent) == [(1, "f")]
    assert world.node.statistics(world.now).drops["lost"] == 2
    assert world.grant(link, 100, 4) == []


def test_nothing_was_lost_when_everything_came_in() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    key = world.key(subscriber)
    world.publish(publisher, *"ab")
    world.drop(subscriber)
    assert [type(message) for message in world.resume(key, received=2)[1]] == [Welcome]


def test_credit_begins_anew_with_the_new_connection() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(credit=2), world.connect()
    key = world.key(subscriber)
    world.publish(publisher, *"abcdef")
    world.drop(subscriber)
    _, sent = world.resume(key, received=1, credit=3)
    assert deliveries_of(sent) == [(1, "c"), (1, "d"), (1, "e")]


def test_a_gap_that_may_not_have_arrived_is_said_again() -> None:
    world = NodeWorld(outbox_bytes=EVENT_BYTES)
    subscriber, publisher = world.subscriber(credit=0), world.connect()
    key = world.key(subscriber)
    world.publish(publisher, *"abc")
    assert world.grant(subscriber, 0, 0) == [Gap(1, 2, "slow consumer")]
    world.drop(subscriber)
    _, sent = world.resume(key, received=0, credit=0)
    assert [message for message in sent if isinstance(message, Gap)] == [Gap(1, 2, "slow consumer")]


@pytest.mark.parametrize("how", ["CREDIT", "HELLO"])
def test_a_gap_that_went_before_something_that_arrived_is_not_said_again(how: str) -> None:
    world = NodeWorld(outbox_bytes=EVENT_BYTES)
    subscriber, publisher = world.subscriber(credit=0), world.connect()
    key = world.key(subscriber)
    world.publish(publisher, *"abc")
    sent = world.grant(subscriber, 5, 0)
    assert [type(message) for message in sent] == [Gap, Deliver]
    if how == "CREDIT":
        world.grant(subscriber, 6, 1)
        assert world.node.subscribers.by_key[key].announced == {}
    world.drop(subscriber)
    assert [type(message) for message in world.resume(key, received=1)[1]] == [Welcome]


def test_two_gaps_that_may_not_have_arrived_are_said_again_as_one() -> None:
    world = NodeWorld(outbox_bytes=EVENT_BYTES)
    subscriber, publisher = world.subscriber(credit=0), world.connect()
    key = world.key(subscriber)
    for bodies in ("abc", "de"):
        world.publish(publisher, *bodies)
        world.grant(subscriber, 0, 0)
    world.drop(subscriber)
    assert Gap(1, 4, "slow consumer") in world.resume(key, credit=0)[1]


# --- Withdrawal -------------------------------------------------------------------------------------------------------


def test_nothing_of_a_subscription_leaves_the_outbox_after_its_end() -> None:
    world = NodeWorld()
    subscriber = world.subscriber(("quotes", ""), ("quotes/NYSE", ""), credit=0)
    publisher = world.connect()
    batch = quote_batch(["quotes/NYSE", "quotes/ATHEX", "quotes/NYSE"], ["a", "b", "c"])
    world.say(publisher, make_publish(1, batch))
    world.say(subscriber, Unsubscribe(9, 1))
    sent = world.grant(subscriber, 10, 0)
    assert deliveries_of(sent) == [(2, "a"), (2, "c")]
    (deliver,) = (message for message in sent if isinstance(message, Deliver))
    assert list(deliver.portion.rows()) == [0, 2]
    assert deliver.portion.base == 0


def test_a_number_used_again_gets_nothing_of_what_waited_for_the_one_before() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(credit=0), world.connect()
    world.publish(publisher, *"abc")
    world.say(subscriber, Unsubscribe(9, 1), make_subscribe(1))
    world.publish(publisher, "d")
    assert deliveries_of(world.grant(subscriber, 10, 0)) == [(1, "d")]
    assert world.node.statistics(world.now).outbox_bytes == 0


def test_a_gap_of_a_subscription_that_ended_is_not_said() -> None:
    world = NodeWorld(outbox_bytes=EVENT_BYTES)
    subscriber, publisher = world.subscriber(credit=0), world.connect()
    world.publish(publisher, *"abc")
    world.say(subscriber, Unsubscribe(9, 1))
    world.say(subscriber, make_subscribe(1))
    assert world.grant(subscriber, 10, 0) == []


def test_validate_notices_an_outbox_that_could_flow() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.feed(LinkPaused(subscriber))
    world.publish(publisher, "a")
    world.node.subscribers.by_link[subscriber].paused = False
    with pytest.raises(AssertionError):
        world.node.validate()


def test_validate_notices_a_wrong_count() -> None:
    world = NodeWorld()
    subscriber = world.subscriber(credit=0)
    world.publish(world.connect(), "a")
    world.node.subscribers.by_link[subscriber].outbox_bytes += 1
    with pytest.raises(AssertionError):
        world.node.validate()


# --- Subscriptions that are full --------------------------------------------------------------------------------------


def told(world: NodeWorld, link: int) -> list[tuple[int, str]]:
    world.node.validate()
    return world.delivered(link)


def test_what_is_for_a_subscription_that_is_held_waits_by_itself() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(("quotes", ""), ("quotes/NYSE", "")), world.connect()
    assert world.say(subscriber, Hold(1, True)) == []
    world.publish(publisher, "a", "b")
    assert told(world, subscriber) == [(2, "a"), (2, "b")]
    assert world.node.statistics(world.now).outbox_events == 2
    assert deliveries_of(world.say(subscriber, Hold(1, False))) == [(1, "a"), (1, "b")]
    world.publish(publisher, "c")
    assert sorted(told(world, subscriber)) == [(1, "c"), (2, "c")]


def test_what_waits_among_others_joins_it_and_keeps_its_order() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(("quotes", ""), ("quotes/NYSE", ""), credit=1), world.connect()
    world.publish(publisher, *"abc")
    world.say(subscriber, Hold(1, True))
    assert deliveries_of(world.grant(subscriber, 3, 1)) == [(2, "b"), (2, "c")]
    world.publish(publisher, "d")
    assert told(world, subscriber) == []
    assert world.say(subscriber, Hold(1, False)) == [], "there is no credit"
    assert deliveries_of(world.grant(subscriber, 100, 3)) == [(1, "b"), (1, "c"), (1, "d"), (2, "d")]


def test_a_held_subscription_that_ends_leaves_nothing_and_an_unknown_one_is_passed_over() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.say(subscriber, Hold(1, True), Hold(7, True), Hold(7, False))
    world.publish(publisher, "a")
    world.say(subscriber, Unsubscribe(9, 1), Hold(1, False))
    world.node.validate()
    assert world.node.statistics(world.now).outbox_bytes == 0
    world.say(subscriber, make_subscribe(1))
    world.publish(publisher, "b")
    assert told(world, subscriber) == [(1, "b")]


def test_a_client_that_is_back_says_anew_what_is_full() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    key = world.key(subscriber)
    world.say(subscriber, Hold(1, True))
    world.publish(publisher, "a")
    world.drop(subscriber)
    world.publish(publisher, "b")
    link, answers = world.resume(key, credit=0)
    assert deliveries_of(answers) == []
    world.say(link, Hold(1, True))
    assert world.grant(link, 10, 0) == []
    assert deliveries_of(world.say(link, Hold(1, False))) == [(1, "a"), (1, "b")]


def test_bytes_are_credit_as_well() -> None:
    world = NodeWorld()
    size = len(quote_batch(bodies=["a"]).records)
    subscriber, publisher = world.subscriber(credit_bytes=2 * size), world.connect()
    world.publish(publisher, *"abcd")
    assert world.delivered(subscriber) == [(1, "a"), (1, "b")]
    assert deliveries_of(world.say(subscriber, Credit(65_536, 2, 3 * size))) == [(1, "c")]
    assert deliveries_of(world.say(subscriber, Credit(65_536, 3, 1))) == [], "less than before has no effect"
    world.drop(subscriber)


def test_a_session_that_ends_with_something_held_is_gone() -> None:
    world = NodeWorld(outbox_bytes=3 * EVENT_BYTES, slow_consumer="disconnect")
    subscriber, publisher = world.subscriber(), world.connect()
    world.say(subscriber, Hold(1, True))
    world.publish(publisher, *"abcd")
    assert world.take_one(subscriber, Goodbye).code == ErrorCode.SLOW_CONSUMER
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.say(subscriber, Hold(1, True))
    world.publish(publisher, "a")
    world.say(subscriber, Goodbye(0, ""))
    world.node.validate()
    assert world.node.statistics(world.now).outbox_bytes == 0
