"""The Node: its one mutator, its one deadline, draining, records of earlier lives."""

from __future__ import annotations

import pytest

from headgate.broker.core.delivery import GRACE
from headgate.broker.core.effects import Close, Send, Store
from headgate.broker.core.inputs import Drain, LinkPaused, LinkResumed, Loaded, Received, Wake, WallClock
from headgate.broker.core.limits import STORE_SECONDS_MAX, Limits
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import (
    Answer,
    Ask,
    Credit,
    Deliver,
    Error,
    Gap,
    Goodbye,
    Hello,
    Mode,
    Ping,
    Puback,
    Scope,
    Suback,
    Subscribe,
    Unsubscribe,
    Welcome,
)
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.log_world import LogWorld
from tests.support.node_world import NodeWorld


def test_what_it_hands_out_is_no_longer_its_own() -> None:
    world = NodeWorld()
    effects = world.feed(Received(1, [Hello(name="a")]))
    assert world.node.effects == []
    world.feed(Wake())
    assert effects


def test_hello_and_more_may_come_in_one_read() -> None:
    world = NodeWorld()
    answers = world.dial()[1]
    assert [type(answer) for answer in answers] == [Welcome]
    world.feed(Received(7, [Hello(name="b"), make_subscribe(1), make_publish(1)]))
    kinds = [type(message) for message in world.take(7)]
    assert kinds[0] is Welcome
    assert kinds[-1] is Puback
    assert kinds.index(Suback) < kinds.index(Deliver)


def test_a_link_that_never_said_hello_is_not_listened_to() -> None:
    world = NodeWorld()
    assert world.feed(Received(1, [Goodbye(0, ""), make_subscribe(1)])) == []
    assert world.node.statistics(world.now).sessions == 0


def test_one_acknowledgement_covers_all_batches_of_a_read() -> None:
    world = NodeWorld()
    link = world.connect()
    answers = world.say(link, make_publish(1), make_publish(2), make_publish(3))
    assert [answer for answer in answers if isinstance(answer, Puback)] == [Puback(3)]


def test_nothing_is_acknowledged_when_nothing_was_accepted() -> None:
    world = NodeWorld()
    assert world.say(world.connect(), Credit(5, 0)) == []


def test_what_was_said_after_goodbye_was_not_said() -> None:
    world = NodeWorld()
    link = world.connect()
    world.feed(Received(link, [Goodbye(0, ""), make_subscribe(1), make_publish(1)]))
    assert world.effects == [Close(link)]
    statistics = world.node.statistics(world.now)
    assert (statistics.sessions, statistics.subscriptions, statistics.events_received) == (0, 0, 0)


def test_what_was_said_after_a_violation_was_not_said() -> None:
    world = NodeWorld()
    link = world.connect()
    answers = world.say(link, make_publish(5), make_subscribe(1), make_publish(1))
    assert [type(answer) for answer in answers] == [Error]
    assert world.closed == [link]
    statistics = world.node.statistics(world.now)
    assert (statistics.subscriptions, statistics.events_received) == (0, 0)


def test_a_message_that_a_broker_never_gets_is_a_bug_of_the_host() -> None:
    world = NodeWorld()
    link = world.connect()
    with pytest.raises(KeyError):
        world.node.handle(Received(link, [Ping(1)]), world.now)


def test_the_time_of_an_event_is_the_wall_clock_in_microseconds() -> None:
    world = NodeWorld(now=50.0)
    world.feed(WallClock(1_700_000_000.25))
    subscriber, publisher = world.subscriber(), world.connect()
    world.publish(publisher, "a")
    assert world.take_one(subscriber, Deliver).portion.time == 1_700_000_050_250_000


def test_there_is_no_deadline_while_everybody_is_there() -> None:
    world = NodeWorld()
    link = world.connect()
    assert world.node.timers.when(GRACE) == float("inf")
    world.drop(link)
    assert world.node.timers.when(GRACE) == world.now + 10.0


def test_a_paused_link_gets_nothing_until_it_resumes() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.feed(LinkPaused(subscriber))
    world.publish(publisher, "a", "b")
    assert world.delivered(subscriber) == []
    world.feed(LinkResumed(subscriber))
    assert world.delivered(subscriber) == [(1, "a"), (1, "b")]


def test_schemas_of_earlier_lives_are_loaded_and_other_records_left_alone() -> None:
    world = NodeWorld()
    world.feed(Loaded({"schema/quotes": {"attributes": {}}, "other/x": 1}))
    link = world.connect()
    answers = world.say(link, Ask(1, "schema.list", {}))
    assert answers == [Answer(1, [{"stream": "quotes", "schema": {"attributes": {}}, "defaults": {}}])]


def test_a_schema_is_stored_and_forgotten() -> None:
    world = NodeWorld()
    link = world.connect()
    world.say(link, Ask(1, "schema.put", {"stream": "quotes", "schema": {"attributes": {}}}))
    assert Store("schema/quotes", [int(world.now * 1e6), {"attributes": {}}]) in world.effects
    world.say(link, Ask(2, "schema.rm", {"stream": "quotes"}))
    assert Store("schema/quotes", [int(world.now * 1e6) + 1, None]) in world.effects


# --- Draining ---------------------------------------------------------------------------------------------------------


def test_everybody_is_told_goodbye_and_nobody_is_taken_any_more() -> None:
    world = NodeWorld()
    first, second = world.connect(), world.connect()
    world.feed(Drain())
    for link in (first, second):
        assert world.take_one(link, Goodbye).code == ErrorCode.SHUTTING_DOWN
    assert world.closed == [first, second]
    link, answers = world.dial()
    assert answers == [Error(ErrorCode.SHUTTING_DOWN, Scope.CONNECTION, 0, "the broker is shutting down")]
    assert world.closed[-1] == link


def test_what_may_still_be_sent_is_sent_before_goodbye() -> None:
    world = NodeWorld(limits=Limits(drain_step_bytes=1))
    subscriber, publisher = world.subscriber(), world.connect()
    world.feed(LinkPaused(subscriber))
    world.publish(publisher, "a", "b", "c")
    world.feed(LinkResumed(subscriber))
    assert deliveries_of(world.take(subscriber)) == [(1, "a")]
    world.feed(Drain())
    sent = world.take(subscriber)
    assert deliveries_of(sent) == [(1, "b"), (1, "c")]
    assert isinstance(sent[-1], Goodbye)
    assert not [message for message in sent if isinstance(message, Gap)]


@pytest.mark.parametrize("paused", [False, True])
def test_what_may_not_be_sent_any_more_is_announced(paused: bool) -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(credit=1), world.connect()
    world.publish(publisher, "a", "b", "c")
    if paused:
        world.feed(LinkPaused(subscriber))
    world.take(subscriber)
    world.feed(Drain())
    sent = world.take(subscriber)
    assert sent[0] == Gap(1, 2, "the broker is shutting down")
    assert isinstance(sent[1], Goodbye)
    assert world.node.statistics(world.now).drops["shutdown"] == 2


def test_nothing_is_sent_after_goodbye() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.feed(Drain())
    world.take(subscriber)
    world.feed(Received(publisher, [make_publish(1)]))
    world.feed(LinkResumed(subscriber))
    assert world.take(subscriber) == []
    world.feed(Drain())
    assert not [effect for effect in world.effects if isinstance(effect, Send)]


# --- Invariants -------------------------------------------------------------------------------------------------------


def test_validate_notices_an_index_that_forgot_a_subscription() -> None:
    world = NodeWorld()
    world.subscriber()
    world.node.streams.by_name["quotes"].index.remove(1)
    with pytest.raises(AssertionError):
        world.node.validate()


def test_validate_notices_effects_that_were_left_behind() -> None:
    world = NodeWorld()
    world.node.effects.append(Close(1))
    with pytest.raises(AssertionError):
        world.node.validate()


def test_the_same_inputs_give_the_same_effects() -> None:
    def play() -> list[object]:
        world = NodeWorld()
        seen: list[object] = []
        link = world.connect()
        for message in (Subscribe(1, 1, "quotes", "price > 1"), make_publish(1, quote_batch(price=[2.0]))):
            world.say(link, message)
            seen += world.effects
        return seen

    assert play() == play()


def test_ending_many_subscriptions_unread_costs_what_waits_and_not_the_time_of_others() -> None:
    world = NodeWorld(limits=Limits(withdrawn=2))
    subscriber, publisher = world.subscriber(*[("quotes", "")] * 4, credit=0), world.connect()
    world.publish(publisher, "a")
    (waiting,) = world.node.subscribers.by_link[subscriber].outbox
    world.say(subscriber, Unsubscribe(9, 1), Unsubscribe(10, 2))
    assert world.node.subscribers.by_link[subscriber].outbox[0] is waiting, "nothing is looked through"
    world.say(subscriber, Unsubscribe(11, 3))
    assert world.grant(subscriber, 10, 0) == [Gap(4, 1, "slow consumer")]


# --- the log ----------------------------------------------------------------------------------------------------------


def test_a_broker_that_stops_waits_for_its_disk_and_answers_before_it_says_goodbye() -> None:
    world = LogWorld()
    publisher = world.connect()
    world.say(publisher, make_publish(1, mode=Mode.STORED))
    world.feed(Drain())
    assert world.take(publisher) == []
    (error,) = (one for one in world.say(publisher, make_publish(2, mode=Mode.STORED)) if isinstance(one, Error))
    assert error.code == ErrorCode.UNAVAILABLE
    world.sync()
    puback, goodbye = world.take(publisher)
    assert puback == Puback(2)
    assert isinstance(goodbye, Goodbye)


def test_a_disk_that_does_not_answer_does_not_keep_a_broker_from_stopping() -> None:
    world = LogWorld()
    publisher = world.connect()
    world.say(publisher, make_publish(1, mode=Mode.STORED))
    world.feed(Drain())
    world.wake_at(world.now + STORE_SECONDS_MAX)
    assert isinstance(world.take(publisher)[-1], Goodbye)
